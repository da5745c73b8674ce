//go:build unix

package localpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

var errLocked = errors.New("locked by another process")

func tryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}

func interrupt(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGINT); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// account is the user that the server runs as.
type account struct {
	name     string
	uid, gid int
	switched bool // not our own: files must be given to it
}

// serverAccount is our own account, or for root, whom Postgres refuses, the named one, else postgres, else nobody.
func serverAccount(named string) (*account, error) {
	if os.Geteuid() != 0 {
		return &account{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	candidates := []string{"postgres", "nobody"}
	if named != "" {
		candidates = []string{named}
	}
	for _, name := range candidates {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, err
		}
		if uid == 0 {
			return nil, fmt.Errorf("WEIR_PG_USER %s is root: PostgreSQL refuses to run as root, name another account", name)
		}
		return &account{name: name, uid: uid, gid: gid, switched: true}, nil
	}
	return nil, fmt.Errorf("PostgreSQL refuses to run as root and there is no account %s on this machine: set WEIR_PG_USER to one, or start weir as another user",
		strings.Join(candidates, " or "))
}

// mkdir makes a directory that only the account may enter. One that is there already must be just that: whoever else made
// it could read what is put there.
func (a *account) mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	if info.Mode() != fs.ModeDir|0o700 || (owner != a.uid && owner != os.Geteuid()) {
		return fmt.Errorf("%s is %v of uid %d, want a directory with mode 0700 of uid %d: remove it", dir, info.Mode(), owner, a.uid)
	}
	if owner == a.uid {
		return nil
	}
	return os.Chown(dir, a.uid, a.gid)
}

func (a *account) sysProcAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		// A group of its own: Ctrl-C at a terminal is for us, and we stop the server last.
		Setpgid: true,
	}
	if a.switched {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attr
}

// hint ends the message of a program that failed: the usual reason, when there is one.
func (a *account) hint(dir string) string {
	if !a.switched {
		return ""
	}
	return fmt.Sprintf(" (it runs as user %s, who must be able to reach %s through all directories above it)", a.name, dir)
}
