//go:build unix

package localpg

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// helperDir makes this test binary start a server there and wait to be killed.
const helperDir = "WEIR_LOCALPG_TEST_HELPER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		s, err := Start(context.Background(), Config{Dir: dir, Volatile: true})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(s.DSN())
		<-s.Done()
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestRestartKeepsData(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: stateDir(t)} // durable, as in production

	begin := time.Now()
	s := mustStart(t, cfg)
	t.Logf("first start %v", time.Since(begin))
	run(t, s, `create table kept as select 42 as answer`)
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	default:
		t.Error("Done is open after Stop")
	}
	if err := s.Err(); err != nil {
		t.Errorf("Err() after Stop = %v, want nil", err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Errorf("second Stop: %v", err)
	}

	begin = time.Now()
	s = mustStart(t, cfg)
	again := time.Since(begin)
	t.Logf("second start %v", again)
	if again > 5*time.Second {
		t.Errorf("second start took %v", again)
	}
	if got := query(t, s, `select answer::text from kept`); got != "42" {
		t.Errorf("answer = %s, want 42", got)
	}
	for name, want := range map[string]string{
		"listen_addresses": "", "unix_socket_permissions": "0700", "fsync": "on", "synchronous_commit": "on", "data_checksums": "on",
		"server_encoding": "UTF8", "lc_collate": "C",
	} {
		if got := query(t, s, `select setting from pg_settings where name = '`+name+`'`); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

func TestInUse(t *testing.T) {
	t.Parallel()
	s := mustStart(t, Config{Dir: stateDir(t), Volatile: true})

	_, err := Start(t.Context(), Config{Dir: s.cfg.Dir})
	var inUse *InUseError
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() {
		t.Fatalf("second start: %v, want *InUseError of pid %d", err, os.Getpid())
	}
	if want := fmt.Sprintf("in use by pid %d", os.Getpid()); !strings.Contains(err.Error(), want) {
		t.Errorf("error %q does not say %q", err, want)
	}
	query(t, s, `select 'unharmed'`)
}

func TestOtherVersionRefused(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	data := filepath.Join(dir, "data")
	write(t, filepath.Join(data, "PG_VERSION"), "9\n")
	write(t, filepath.Join(data, "precious"), "all we know")

	_, err := Start(t.Context(), Config{Dir: dir})
	var version *VersionError
	if !errors.As(err, &version) || version.Data != "9" {
		t.Fatalf("start: %v, want *VersionError about version 9", err)
	}
	if !strings.Contains(err.Error(), "WEIR_PG_BIN") {
		t.Errorf("error %q does not say what to do", err)
	}
	if got := read(t, filepath.Join(data, "precious")) + read(t, filepath.Join(data, "PG_VERSION")); got != "all we know9\n" {
		t.Errorf("files changed: %q", got)
	}
}

func TestForeignDataDirRefused(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	precious := filepath.Join(dir, "data", "precious")
	write(t, precious, "all we know")

	_, err := Start(t.Context(), Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "not a PostgreSQL data directory") {
		t.Fatalf("start: %v, want a refusal", err)
	}
	if got := read(t, precious); got != "all we know" {
		t.Errorf("files changed: %q", got)
	}
}

func TestHalfMadeClusterIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	write(t, filepath.Join(dir, "data.init", "PG_VERSION"), "15\n")
	write(t, filepath.Join(dir, "data.init", "base", "half"), "…")

	s := mustStart(t, Config{Dir: dir, Volatile: true})
	query(t, s, `select 'works'`)
	if _, err := os.Lstat(filepath.Join(dir, "data.init")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("data.init is still there: %v", err)
	}
}

func TestKilledOwnerLeavesNoServer(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	owner := startOwner(t, dir)
	owner.awaitReady(t)
	owner.kill(t)
	awaitNoServer(t, dir) // with nobody there to stop it but the kernel
	if _, err := os.Lstat(filepath.Join(dir, "data", "postmaster.pid")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no clean shutdown: postmaster.pid: %v", err)
	}
}

func TestStartRightAfterKilledOwner(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	owner := startOwner(t, dir)
	run(t, owner.awaitReady(t), `create table kept as select 42 as answer`)
	owner.kill(t)

	// The orphan may still be at work: the start must wait for it.
	s := mustStart(t, Config{Dir: dir, Volatile: true})
	if got := query(t, s, `select answer::text from kept`); got != "42" {
		t.Errorf("answer = %s, want 42", got)
	}
}

func TestStartAfterOwnerKilledInInitdb(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	owner := startOwner(t, dir)
	eventually(t, "initdb is at work", func() bool {
		_, err := os.Lstat(filepath.Join(dir, "data.init", "PG_VERSION"))
		return err == nil
	})
	owner.kill(t)

	s := mustStart(t, Config{Dir: dir, Volatile: true})
	query(t, s, `select 'works'`)
}

func TestKilledServerIsNoticed(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: stateDir(t), Log: slog.New(slog.DiscardHandler)}
	s := mustStart(t, cfg)
	run(t, s, `create table kept as select 42 as answer`)
	if err := s.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("Done stays open")
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "ended by itself: signal: killed") {
		t.Errorf("Err() = %v", err)
	}

	s = mustStart(t, cfg) // in spite of the postmaster.pid that was left behind
	if got := query(t, s, `select answer::text from kept`); got != "42" {
		t.Errorf("answer after recovery = %s, want 42", got)
	}
}

func TestStopDoesNotWaitForever(t *testing.T) {
	t.Parallel()
	s := mustStart(t, Config{Dir: stateDir(t), Volatile: true})
	s.patience = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// Frozen, it cannot hear the polite request.
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Stop = %v, want context.Canceled", err)
	}
	<-s.Done()
	query(t, mustStart(t, s.cfg), `select 'recovered'`)
}

func TestLongDirectoryGetsShortSocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(stateDir(t), strings.Repeat("long-", 30))
	s := mustStart(t, Config{Dir: dir, Volatile: true})
	query(t, s, `select 'works'`)
	if strings.Contains(s.DSN(), "long-") {
		t.Errorf("socket is in the long directory: %s", s.DSN())
	}
	socketDir, err := s.makeSocketDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(socketDir) })
}

func TestSocketDirMustBePrivate(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	socketDir := filepath.Join(dir, "run")
	if err := errors.Join(os.Mkdir(socketDir, 0o755), os.Chmod(socketDir, 0o755)); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Config{Dir: dir, Volatile: true})
	if err == nil || !strings.Contains(err.Error(), "want a directory with mode 0700") {
		t.Errorf("start = %v, want a refusal of the open directory", err)
	}
	mustAcquire(t, dir) // the failed start let go of the directory
}

func TestPostgresErrorIsQuoted(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	_, err := Start(t.Context(), Config{Dir: dir, Volatile: true, Params: map[string]string{"max_connections": "many"}})
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "max_connections"`) {
		t.Errorf("start = %v, want what postgres said", err)
	}
	mustAcquire(t, dir)
}

func TestStartIsBounded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Config{Dir: stateDir(t)}); !errors.Is(err, context.Canceled) {
		t.Errorf("start = %v, want context.Canceled", err)
	}
}

func TestFindBinaries(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"lib/9/bin", "lib/15/bin", "lib/16/bin", "config", "named", "path"} {
		for _, name := range []string{"initdb", "postgres"} {
			if dir == "lib/16/bin" && name == "initdb" {
				continue // a client-only install
			}
			write(t, filepath.Join(root, dir, name), "#!/bin/sh\n")
			if err := os.Chmod(filepath.Join(root, dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	at := func(dir string) string { return filepath.Join(root, dir) }

	tests := []struct {
		name                           string
		binDir, env, pgConfig, libGlob string
		path                           string
		want                           string // empty: ErrNoBinaries
		wantErr                        string
	}{
		{name: "nothing anywhere", wantErr: "apt-get install postgresql) or set DATABASE_URL"},
		{name: "asked for", binDir: at("named"), env: at("config"), want: at("named")},
		{name: "asked for by environment", env: at("named"), pgConfig: at("config"), want: at("named")},
		{name: "asked for and missing is not replaced", env: at("nowhere"), pgConfig: at("config"), wantErr: "WEIR_PG_BIN " + at("nowhere")},
		{name: "pg_config", pgConfig: at("config"), libGlob: at("lib/*/bin"), want: at("config")},
		{name: "pg_config of a client", pgConfig: at("lib/16/bin"), libGlob: at("lib/*/bin"), want: at("lib/15/bin")},
		{name: "newest complete one", libGlob: at("lib/*/bin"), want: at("lib/15/bin")},
		{name: "path", path: at("path/postgres"), want: at("path")},
		{name: "path to a client", path: at("lib/16/bin/postgres"), wantErr: "apt-get"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			orMissing := func(s string) (string, error) {
				if s == "" {
					return "", exec.ErrNotFound
				}
				return s, nil
			}
			where := search{
				env:      func(name string) string { return map[string]string{"WEIR_PG_BIN": tt.env}[name] },
				pgConfig: func(context.Context) (string, error) { return orMissing(tt.pgConfig) },
				globs:    []string{tt.libGlob},
				lookPath: func(string) (string, error) { return orMissing(tt.path) },
			}
			got, err := where.find(t.Context(), tt.binDir)
			if got != tt.want || (tt.want == "") != errors.Is(err, ErrNoBinaries) {
				t.Errorf("find = %q, %v, want %q", got, err, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("error %q does not say %q", err, tt.wantErr)
			}
		})
	}
}

func TestStartWithoutBinaries(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	where := search{
		env:      func(string) string { return "" },
		pgConfig: func(context.Context) (string, error) { return "", exec.ErrNotFound },
		lookPath: func(string) (string, error) { return "", exec.ErrNotFound },
	}
	if _, err := where.start(t.Context(), Config{Dir: dir}); !errors.Is(err, ErrNoBinaries) {
		t.Errorf("start = %v, want ErrNoBinaries", err)
	}
}

func TestDefaultDir(t *testing.T) {
	t.Parallel()
	home := func() (string, error) { return "/home/ana", nil }
	tests := []struct {
		uid       int
		xdg, want string
	}{
		{0, "/xdg", "/var/lib/weir"},
		{7, "/xdg", "/xdg/weir"},
		{7, "", "/home/ana/.local/state/weir"},
		{7, "relative", "/home/ana/.local/state/weir"},
	}
	for _, tt := range tests {
		if got, err := defaultDir(tt.uid, tt.xdg, home); got != tt.want || err != nil {
			t.Errorf("defaultDir(%d, %q) = %q, %v, want %q", tt.uid, tt.xdg, got, err, tt.want)
		}
	}
	if _, err := defaultDir(7, "", func() (string, error) { return "", errors.New("no home") }); err == nil {
		t.Error("no home and no XDG_STATE_HOME is not an error")
	}
}

func TestRootIsNotAnAccountForPostgres(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("not root: the server runs as ourselves")
		return
	}
	for name, want := range map[string]string{"root": "name another account", "no-such-user": "no account no-such-user"} {
		if _, err := serverAccount(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("serverAccount(%q) = %v, want %q", name, err, want)
		}
	}
}

// stateDir is like t.TempDir, but the account that root switches to can reach it.
func stateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-localpg-")
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

func mustStart(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		_ = s.Stop(ctx)
	})
	return s
}

func mustAcquire(t *testing.T, dir string) {
	t.Helper()
	f, err := acquire(dir)
	if err != nil {
		t.Errorf("the directory is still locked: %v", err)
		return
	}
	f.Close()
}

func run(t *testing.T, s *Server, sql string) {
	t.Helper()
	query(t, s, `do $$ begin `+sql+`; end $$; select ''`)
}

func query(t *testing.T, s *Server, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return string(results[len(results)-1].Rows[0][0])
}

// owner is another process that owns a server.
type owner struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
}

func startOwner(t *testing.T, dir string) owner {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperDir+"="+dir)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return owner{cmd, bufio.NewReader(stdout)}
}

func (o owner) awaitReady(t *testing.T) *Server {
	t.Helper()
	line, err := o.stdout.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "postgres://") {
		t.Fatalf("helper process said %q, %v", line, err)
	}
	return &Server{dsn: strings.TrimSpace(line)}
}

func (o owner) kill(t *testing.T) {
	t.Helper()
	if err := o.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = o.cmd.Wait()
}

// awaitNoServer waits until no process works in the data directory.
func awaitNoServer(t *testing.T, dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "no server process is left", func() bool {
		pids, _ := serverProcesses(filepath.Join(dir, "data"))
		return len(pids) == 0
	})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("not reached in 30 s: %s", what)
		case <-tick.C:
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The account that runs the server can read its environment; ours holds webhook secrets.
func TestServerGetsNoSecrets(t *testing.T) {
	t.Setenv("WEIR_TEST_SECRET", "whsec_c2VjcmV0")
	t.Setenv("DATABASE_URL", "postgres://u:p@h/d")
	account, err := serverAccount("")
	if err != nil {
		t.Fatal(err)
	}
	cmd := (&Server{account: account}).command(t.Context(), "postgres", t.TempDir())
	for _, kv := range cmd.Env {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "PATH", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "LC_ALL":
		default:
			t.Errorf("%s is handed on", name)
		}
	}
	if len(cmd.Env) == 0 {
		t.Error("an empty environment would be filled with ours")
	}
}
