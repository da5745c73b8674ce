//go:build linux || darwin

package storetest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"weir/store/localpg"
)

// daemonEnv turns this process into the daemon that owns the server in the directory it names.
const daemonEnv = "WEIR_STORETEST_DAEMON"

// The daemon is the test binary itself, so it has to be caught before the tests run. A TestMain could do that, but every
// package with a database test would need one and would hang or fork without end if it forgot; an init cannot be
// forgotten, and without the variable it does nothing.
func init() {
	if dir := os.Getenv(daemonEnv); dir != "" {
		os.Exit(daemon(dir))
	}
}

// settings make a server that is fast and may lose everything.
var settings = map[string]string{
	"max_connections": "300",
	"autovacuum":      "off", // could hold up the cloning of a template
	"wal_level":       "minimal",
	"max_wal_senders": "0",
	"max_wal_size":    "128MB", // memory, most likely
	"timezone":        "<+14>-14",
}

// member is a test process that uses the shared server.
type member struct {
	dsn   string
	users *os.File // the lock that tells the daemon we are here; reachable, or its finalizer would give it back
}

func (m *member) leave() error { return m.users.Close() }

// joinServer joins the server that all test processes of this user share. Nobody leaves: the kernel does that for a
// process that ends, however it ends.
func joinServer() (*member, error) {
	dir, err := serverDir()
	if err != nil {
		return nil, err
	}
	return join(dir)
}

// join returns a running server in dir, which stays until its last member leaves.
func join(dir string) (_ *member, err error) {
	starting, err := lock(filepath.Join(dir, "start"), syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer starting.Close()
	// If the daemon is about to end, this waits until it has. From here on a living one stays alive.
	users, err := lock(filepath.Join(dir, "users"), syscall.LOCK_SH)
	if err != nil {
		return nil, err
	}
	m := &member{users: users}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.leave())
		}
	}()
	free, err := lock(filepath.Join(dir, "daemon"), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		text, err := os.ReadFile(filepath.Join(dir, "dsn"))
		m.dsn = string(text)
		return m, err
	}
	if err != nil {
		return nil, err
	}
	free.Close()
	m.dsn, err = startDaemon(dir)
	return m, err
}

// startDaemon returns when the server is ready. The daemon must not share our standard output: go test waits until
// everybody has closed it.
func startDaemon(dir string) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	answer, ready, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer answer.Close()
	cmd := exec.Command(exe)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), daemonEnv+"="+dir)
	cmd.ExtraFiles = []*os.File{ready} // descriptor 3
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	ready.Close()
	if err != nil {
		return "", err
	}
	go func() { _ = cmd.Wait() }() // ends after us, or it is reaped
	if err := answer.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	text, err := io.ReadAll(answer)
	if err != nil {
		return "", fmt.Errorf("wait for the test database daemon in %s: %w", dir, err)
	}
	dsn, ok := strings.CutPrefix(string(text), "ready ")
	if !ok {
		return "", fmt.Errorf("the test database daemon in %s did not start: %s", dir, text)
	}
	return dsn, nil
}

// daemon runs the server until no test process is left.
func daemon(dir string) (exitCode int) {
	syscall.CloseOnExec(3) // or the server would have it too, and our starter would wait for both to close it
	answer := os.NewFile(3, "answer")
	err := serve(dir, func(dsn string) {
		fmt.Fprintf(answer, "ready %s", dsn)
		answer.Close()
	})
	if err != nil {
		fmt.Fprint(answer, err) // to nobody if it was ready once
		return 1
	}
	return 0
}

func serve(dir string, ready func(dsn string)) error {
	life, err := lock(filepath.Join(dir, "daemon"), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return err
	}
	// A killed daemon leaves files behind that nothing has ever synced: not worth a recovery. Its server may be writing its
	// last into them, so this one gets a directory of its own, and what cannot be removed now is left to the next daemon.
	old, err := filepath.Glob(filepath.Join(dir, "pg-*"))
	if err != nil {
		return err
	}
	for _, pg := range old {
		_ = os.RemoveAll(pg)
	}
	pg, dsnFile := filepath.Join(dir, "pg-"+rand.Text()[:8]), filepath.Join(dir, "dsn")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server, err := localpg.Start(ctx, localpg.Config{Dir: pg, Volatile: true, Params: settings, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := os.WriteFile(dsnFile, []byte(server.DSN()), 0o600); err != nil {
		return err
	}
	ready(server.DSN())

	var alone *os.File
	unused := make(chan error, 1)
	go func() {
		var err error
		alone, err = lock(filepath.Join(dir, "users"), syscall.LOCK_EX)
		unused <- err
	}()
	select {
	case err = <-unused:
	case <-server.Done():
		return server.Err()
	}

	cancel()
	_ = server.Stop(ctx) // with no time given it stops the hard way, which is right for data that nobody wants
	// A test process that waits for users looks at daemon next, so that one is given back first.
	err = errors.Join(err, os.Remove(dsnFile), os.RemoveAll(pg), life.Close())
	if alone != nil {
		err = errors.Join(err, alone.Close())
	}
	return err
}

// serverDir returns the directory of the shared server: in memory if there is room, one per user and choice of server.
func serverDir() (string, error) {
	base := os.TempDir()
	var stat syscall.Statfs_t
	// Containers have 64 MB there unless told otherwise.
	if err := syscall.Statfs("/dev/shm", &stat); err == nil && uint64(stat.Bavail)*uint64(stat.Bsize) >= 1<<30 {
		base = "/dev/shm"
	}
	sum := sha256.Sum256(fmt.Append(nil, settings, os.Getenv("WEIR_PG_BIN"), os.Getenv("WEIR_PG_USER")))
	dir := filepath.Join(base, fmt.Sprintf("weir-test-%d-%x", os.Geteuid(), sum[:4]))
	err := os.Mkdir(dir, 0o711)
	if err == nil {
		err = os.Chmod(dir, 0o711) // whatever the umask: the account that the server runs as must get through
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	// The place is everybody's to write to, so the directory could be somebody else's.
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; !info.IsDir() || info.Mode().Perm()&0o022 != 0 || int(owner) != os.Geteuid() {
		return "", fmt.Errorf("%s is %v of uid %d, want a directory that only uid %d can write to: remove it", dir, info.Mode(), owner, os.Geteuid())
	}
	return dir, nil
}

// lock opens a file and locks it. The lock ends with the file.
func lock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
}
