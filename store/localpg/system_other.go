//go:build !linux

package localpg

import (
	"os"
	"syscall"
)

// dieWithParent does nothing here: only Linux can tie a child's life to ours. A killed owner leaves its server running,
// and the next start is refused by Postgres with the pid to stop.
func dieWithParent(*syscall.SysProcAttr, os.Signal) {}

func serverProcesses(string) (pids []int, certain bool) { return nil, false }
