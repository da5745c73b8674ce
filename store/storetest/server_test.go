//go:build linux

package storetest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

func TestServerIsSharedAndEndsWithItsLastUser(t *testing.T) {
	t.Parallel()
	dir := sharedDir(t)

	// Each join is what a test process does once; the locks do not care that it is the same process here.
	const n = 4
	var wg sync.WaitGroup
	members := make([]*member, n)
	for i := range n {
		wg.Go(func() {
			var err error
			if members[i], err = join(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for i := range n {
		if members[i].dsn != members[0].dsn {
			t.Errorf("server %d is %s, another is %s", i, members[i].dsn, members[0].dsn)
		}
		members[i].ping(t)
	}

	pid := daemonPID(t, dir)
	for i, m := range members {
		if i == n-1 {
			m.ping(t) // the last one still has it
		}
		m.mustLeave(t)
	}
	awaitEnd(t, dir)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range left {
		names = append(names, filepath.Base(path))
	}
	if diff := cmp.Diff([]string{"daemon", "start", "users"}, names); diff != "" {
		t.Errorf("files left behind (-want +got):\n%s", diff)
	}

	again := mustJoin(t, dir)
	again.ping(t)
	if daemonPID(t, dir) == pid {
		t.Error("the daemon did not end")
	}
	again.mustLeave(t)
	awaitEnd(t, dir)
}

func TestJoinWhileDaemonEnds(t *testing.T) {
	t.Parallel()
	dir := sharedDir(t)
	for range 5 {
		m := mustJoin(t, dir) // may meet the daemon of the round before on its way out
		m.ping(t)
		m.mustLeave(t)
	}
	awaitEnd(t, dir)
}

func TestKilledDaemonIsReplaced(t *testing.T) {
	t.Parallel()
	dir := sharedDir(t)
	bereft := mustJoin(t, dir)
	pid := daemonPID(t, dir)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, dir)

	m := mustJoin(t, dir)
	m.ping(t)
	if daemonPID(t, dir) == pid {
		t.Error("the killed daemon was not replaced")
	}
	m.mustLeave(t)
	bereft.mustLeave(t)
	awaitEnd(t, dir)
}

func TestServerThatDoesNotStartSaysWhy(t *testing.T) {
	t.Setenv("WEIR_PG_BIN", "/nonexistent")
	_, err := join(sharedDir(t))
	if err == nil || !strings.Contains(err.Error(), "apt-get install postgresql") {
		t.Errorf("join = %v, want the way out", err)
	}
}

func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-storetest-") // not t.TempDir: the account that root switches to must get there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustJoin(t *testing.T, dir string) *member {
	t.Helper()
	m, err := join(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *member) mustLeave(t *testing.T) {
	t.Helper()
	if err := m.leave(); err != nil {
		t.Error(err)
	}
}

func (m *member) ping(t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), m.dsn)
	if err != nil {
		t.Error(err)
		return
	}
	conn.Close(t.Context())
}

// daemonPID reads who owns the server.
func daemonPID(t *testing.T, dir string) int {
	t.Helper()
	dsn, err := os.ReadFile(filepath.Join(dir, "dsn"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := pgx.ParseConfig(string(dsn))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(cfg.Host, "..", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// awaitEnd waits until the daemon has let go of its directory.
func awaitEnd(t *testing.T, dir string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for {
		free, err := lock(filepath.Join(dir, "daemon"), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			free.Close()
			return
		}
		select {
		case <-deadline:
			t.Fatalf("the daemon does not end: %v", err)
		case <-tick.C:
		}
	}
}
