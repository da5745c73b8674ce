package localpg

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// InUseError says that another process runs a server on the state directory.
type InUseError struct {
	Dir string
	PID int // 0 if the owner has not written it yet
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("state directory %s is in use by pid %d: stop that process or choose another directory", e.Dir, e.PID)
}

// VersionError says that the data directory was made by another major version of Postgres than the binaries. Nothing was
// touched.
type VersionError struct {
	DataDir string
	Data    string // as PG_VERSION says
	BinDir  string
	Binary  int
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("data directory %s belongs to PostgreSQL %s, the binaries in %s are version %d: "+
		"set WEIR_PG_BIN to the bin directory of version %s, or move the data with pg_upgrade; nothing was changed",
		e.DataDir, e.Data, e.BinDir, e.Binary, e.Data)
}

// acquire takes the lock of the state directory. The lock lasts as long as the returned file is open, so the caller must
// keep it reachable: a collected os.File closes itself.
func acquire(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err != nil {
		defer f.Close()
		if !errors.Is(err, errLocked) {
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		text, err := os.ReadFile(f.Name())
		if err != nil {
			return nil, err
		}
		return nil, &InUseError{Dir: dir, PID: firstNumber(string(text))}
	}
	pid := strconv.Itoa(os.Getpid()) + "\n"
	if err := errors.Join(f.Truncate(int64(len(pid))), writeAt(f, pid)); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

// ensureCluster makes the data directory if there is none, and refuses one that the binaries cannot run.
func (s *Server) ensureCluster(ctx context.Context) error {
	made, err := os.ReadFile(filepath.Join(s.data, "PG_VERSION"))
	switch {
	case err == nil:
		if data := strings.TrimSpace(string(made)); data != strconv.Itoa(s.version) {
			return &VersionError{DataDir: s.data, Data: data, BinDir: s.binDir, Binary: s.version}
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if _, err := os.Lstat(s.data); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists but is not a PostgreSQL data directory (it has no PG_VERSION): move it away; nothing was changed", s.data)
	}
	return s.initCluster(ctx)
}

func (s *Server) initCluster(ctx context.Context) error {
	building := s.data + ".init"
	// A killed start may have left initdb's child at work in there for a moment.
	if err := s.awaitOrphans(ctx, building); err != nil {
		return err
	}
	if err := os.RemoveAll(building); err != nil {
		return err
	}
	if err := s.account.mkdir(building); err != nil {
		return err
	}

	args := []string{
		"-D", building, "--username=" + roleName, "--auth=trust", // the socket directory is the door
		"--encoding=UTF8", "--locale=C", "--data-checksums", "--no-instructions",
	}
	if s.cfg.Volatile {
		args = append(args, "--no-sync")
	}
	cmd := s.command(ctx, "initdb", building, args...)
	// Killed, not interrupted: an initdb that handles a signal could still be writing while the next start cleans up.
	dieWithParent(cmd.SysProcAttr, os.Kill)
	begin := time.Now()
	wait, err := start(cmd)
	if err == nil {
		err = <-wait
	}
	if err != nil {
		return fmt.Errorf("initdb in %s: %w%s%s", building, err, s.output.quote(), s.account.hint(building))
	}
	if err := os.Rename(building, s.data); err != nil {
		return err
	}
	s.output.tail = nil // not to be quoted when postgres fails later
	s.log.InfoContext(ctx, "database cluster created", "dir", s.data, "postgres", s.version, "duration", time.Since(begin))
	return nil
}

// awaitOrphans waits until no server of an earlier, killed owner works in data any more, and then removes the pid file
// such a server could not remove. We hold the lock, so whatever runs there has no owner.
func (s *Server) awaitOrphans(ctx context.Context, data string) error {
	pidFile := filepath.Join(data, "postmaster.pid")
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for asked := 0; ; {
		pids, certain := serverProcesses(data)
		if len(pids) == 0 {
			if !certain {
				return nil // Postgres makes its own check of the pid file and refuses if in doubt
			}
			// No process, no server: without this a zombie or a stranger that got the same pid would block the start.
			err := os.Remove(pidFile)
			if err == nil {
				s.log.WarnContext(ctx, "stale postmaster.pid removed", "dir", data)
			} else if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		// The kernel has asked the postmaster already when its owner died; ask again in case the owner was not us.
		text, _ := os.ReadFile(pidFile)
		for _, pid := range pids {
			if pid == firstNumber(string(text)) && pid != asked {
				s.log.WarnContext(ctx, "stopping a server that lost its owner", "dir", data, "pid", pid)
				if err := interrupt(pid); err != nil {
					return fmt.Errorf("stop server pid %d of %s: %w", pid, data, err)
				}
				asked = pid
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("server processes %v of an earlier run still work in %s: %w", pids, data, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// socketName is what Postgres calls the socket of port 5432.
const socketName = ".s.PGSQL.5432"

// maxSocketPath stays under the 104 bytes (macOS; Linux has 108) of a socket address.
const maxSocketPath = 100

// makeSocketDir returns a directory for the socket that only the server's account may enter.
func (s *Server) makeSocketDir() (string, error) {
	dir := filepath.Join(s.cfg.Dir, "run")
	if len(filepath.Join(dir, socketName)) > maxSocketPath {
		sum := sha256.Sum256([]byte(s.cfg.Dir))
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("weir-%x", sum[:6]))
		if len(filepath.Join(dir, socketName)) > maxSocketPath {
			return "", fmt.Errorf("both %s and %s are too long for a unix socket (%d bytes): choose a shorter state directory", s.cfg.Dir, dir, maxSocketPath)
		}
	}
	// The temp directory is everybody's; mkdir refuses a directory that somebody else put there to catch connections.
	return dir, s.account.mkdir(dir)
}

// command prepares a Postgres program to run in dir as the server's account.
func (s *Server) command(ctx context.Context, name, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.binDir, name), args...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = &s.output, &s.output
	cmd.SysProcAttr = s.account.sysProcAttr()
	cmd.WaitDelay = 5 * time.Second // for a grandchild that keeps our pipe open
	// The account that runs the server can read its environment, and ours holds secrets: only what a program needs goes on.
	for _, name := range []string{"PATH", "TZ", "TMPDIR", "LD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	return cmd
}
