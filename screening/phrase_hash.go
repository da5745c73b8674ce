package screening

import "math/bits"

// hashTable maps 64-bit hashes to non-zero values. It keeps only half of a hash, in the room of a pointer: two keys
// that share slot and half are one, which the exact confirmation of every hit makes harmless.
type hashTable struct {
	slots []hashSlot
	mask  uint32
}

type hashSlot struct{ tag, value uint32 }

// newHashTable makes a table for n keys at most; it does not grow.
func newHashTable(n int) hashTable {
	size := uint32(1) << bits.Len(uint(n+n/3))
	return hashTable{make([]hashSlot, size), size - 1}
}

// slot returns the value of a key to be set at once; an untouched one is zero.
func (t *hashTable) slot(key uint64) *uint32 {
	tag := uint32(key >> 32)
	for i := uint32(key) & t.mask; ; i = (i + 1) & t.mask {
		if s := &t.slots[i]; s.value == 0 || s.tag == tag {
			s.tag = tag
			return &s.value
		}
	}
}

// get returns the value of a key, 0 if there is none.
func (t *hashTable) get(key uint64) uint32 {
	tag := uint32(key >> 32)
	for i := uint32(key) & t.mask; ; i = (i + 1) & t.mask {
		if s := t.slots[i]; s.value == 0 || s.tag == tag {
			return s.value
		}
	}
}

// hashFilter is a Bloom filter that keeps both bits of a key in one word, so that a miss costs one load. At sixteen bits
// a key it lets one or two in a hundred pass.
type hashFilter struct {
	words []uint64
	mask  uint64
}

func newHashFilter(n int) hashFilter {
	const keysPerWord = 4
	size := uint64(1) << bits.Len(uint(n/keysPerWord)|1)
	return hashFilter{make([]uint64, size), size - 1}
}

func (f *hashFilter) word(key uint64) *uint64 { return &f.words[key>>12&f.mask] }

func (f *hashFilter) add(key uint64) { *f.word(key) |= filterMask(key) }

func (f *hashFilter) has(key uint64) bool {
	mask := filterMask(key)
	return *f.word(key)&mask == mask
}

func filterMask(key uint64) uint64 { return 1<<(key&63) | 1<<(key>>6&63) }

// headHash hashes the first letters of a spelling.
func headHash(classes []byte) uint64 {
	_ = classes[headLetters-1]
	return mixHash(load8(classes, 0), uint64(classes[8])|uint64(classes[9])<<8)
}

// spellingHash hashes letter by letter, since where a spelling ends is found out on the way.
func spellingHash(classes []byte) uint64 {
	var h uint64
	for _, c := range classes {
		h = spellingStep(h, c)
	}
	return spellingDone(h)
}

func spellingStep(h uint64, c byte) uint64 { return (h ^ uint64(c)) * 0x9E3779B97F4A7C15 }
func spellingDone(h uint64) uint64         { return mixHash(h, h>>32) }

// Hashing: eight bytes a step, one multiplication each. Hashes only find candidates; a hit is confirmed letter by
// letter, so colliding words cost time and nothing else.

func mixHash(h, x uint64) uint64 {
	hi, lo := bits.Mul64(h^x^0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93)
	return hi ^ lo
}

// hashASCII hashes text[start:end] in lower case: letters and digits only, for which setting one bit is enough.
func hashASCII(text string, start, end int) (h uint64) {
	for ; end-start >= 8; start += 8 {
		h = mixHash(h, load8(text, start)|0x20*lanes)
	}
	var x uint64
	n := end - start
	for i := range n {
		x |= uint64(text[start+i]|0x20) << (64 - 8*n + 8*i)
	}
	if n > 0 {
		h = mixHash(h, x)
	}
	return h
}

func hashBytes(b []byte) (h uint64) {
	for ; len(b) >= 8; b = b[8:] {
		h = mixHash(h, load8(b, 0))
	}
	if len(b) == 0 {
		return h
	}
	if cap(b) >= 8 {
		return mixHash(h, load8(b[:8], 0)<<(64-8*len(b)))
	}
	var x uint64
	for i, c := range b {
		x |= uint64(c) << (64 - 8*len(b) + 8*i)
	}
	return mixHash(h, x)
}

func load8[T string | []byte](s T, i int) uint64 {
	_ = s[i+7]
	return uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
		uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
}
