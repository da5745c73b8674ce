package localpg

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// dieWithParent makes the kernel send sig to the child when the thread that started it dies.
func dieWithParent(attr *syscall.SysProcAttr, sig os.Signal) { attr.Pdeathsig = sig.(syscall.Signal) }

// serverProcesses lists the Postgres processes of a data directory: all of them change into it, and the postmaster names
// it on its command line as well. Zombies do not count. certain is false if a process could have been missed because
// /proc hides where it works, as in a container without CAP_SYS_PTRACE.
func serverProcesses(data string) (pids []int, certain bool) {
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(procs) == 0 {
		return nil, false
	}
	certain = true
	for _, proc := range procs {
		comm, err := os.ReadFile(filepath.Join(proc, "comm"))
		if name := string(bytes.TrimSpace(comm)); err != nil || (name != "postgres" && name != "initdb") {
			continue
		}
		args, err := os.ReadFile(filepath.Join(proc, "cmdline"))
		if err != nil || len(args) == 0 {
			continue // gone, or a zombie
		}
		cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
		if cwd == data || bytes.Contains(args, []byte("\x00"+data+"\x00")) {
			if pid, err := strconv.Atoi(filepath.Base(proc)); err == nil {
				pids = append(pids, pid)
			}
		} else if errors.Is(err, fs.ErrPermission) {
			certain = false
		}
	}
	return pids, certain
}
