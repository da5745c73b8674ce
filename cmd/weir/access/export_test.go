package access

// The limits that tests come up against.
const (
	WaitersAtMost = waitersAtMost
	KeysOld       = keysOld
)
