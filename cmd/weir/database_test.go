package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/store/storetest"
)

// connect looks into a database past the program.
func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func emptyDatabase(t testing.TB) string { t.Helper(); return storetest.Empty(t) }

// frontDoor lets a database of the tests, which is on a socket in the file
// system, be reached over TCP, as one elsewhere is. It gives where, and the DSN.
func frontDoor(t testing.TB, dsn string) (address, through string) {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	network, behind := "tcp", net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))
	if strings.HasPrefix(cfg.Host, "/") {
		network, behind = "unix", filepath.Join(cfg.Host, ".s.PGSQL."+strconv.Itoa(int(cfg.Port)))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		to.Close()
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial(network, behind)
			if err != nil {
				client.Close()
				return
			}
			go pass(server, client)
			go pass(client, server)
		}
	}()
	return l.Addr().String(), (&url.URL{Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Host: l.Addr().String(),
		Path: "/" + cfg.Database, RawQuery: "sslmode=disable"}).String()
}

// Who only looks makes no database: nothing at all appears in the state directory.
func TestLookingMakesNoDatabase(t *testing.T) {
	t.Parallel()
	report := []string{"--config", configFor(t, ""), "--packs", pledge(t)}
	for name, tt := range map[string]struct {
		args []string
		code int
		says string
	}{
		"replay":     {[]string{"pack", "replay", "--database", "--since", "1d", "--fail-on-difference"}, exitUsage, "no database yet"},
		"verify":     {[]string{"verify", "--database"}, exitUsage, "no database yet"},
		"doctor":     {append([]string{"doctor"}, report...), 0, "no database yet"},
		"key list":   {[]string{"key", "list"}, exitFailed, "no database yet"},
		"key revoke": {[]string{"key", "revoke", "x"}, exitFailed, "no database yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			r := weirEnv(t, nil, append(tt.args, "--state-dir", dir)...)
			if flat := strings.Join(strings.Fields(r.stdout+r.stderr), " "); r.code != tt.code || !strings.Contains(flat, tt.says) {
				t.Errorf("exit %d, want %d: %s%s", r.code, tt.code, r.stdout, r.stderr)
			}
			if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("something was made: %v", err)
			}
		})
	}
}

// The zero-setup database: made at the first start, kept, owned by one gate, and
// gone with it.
func TestPrivatePostgres(t *testing.T) {
	t.Parallel()
	dir, config := filepath.Join(stateDir(t), "weir"), configFor(t, "")
	start := func(most time.Duration) *gate {
		begin := time.Now()
		g := startGate(t, nil, "--state-dir", dir, "--config", config).ready()
		took := time.Since(begin)
		t.Logf("ready after %s", took.Round(time.Millisecond))
		if took > most {
			t.Errorf("ready after %s, want at most %s", took, most)
		}
		return g
	}
	g := start(30 * time.Second) // alone on a machine: 2 to 3 s, promised: 15 s
	info, err := os.Stat(filepath.Join(dir, "admin.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("admin.key: %v, %v", info, err)
	}
	admin, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(g.log.String(), strings.TrimSpace(string(admin))) {
		t.Error("the key is in the log")
	}
	if r, err := send(t.Context(), "GET", g.url+"/v1/packs", strings.TrimSpace(string(admin)), nil); err != nil || r.status != 200 {
		t.Errorf("the admin key: status %d, %v", r.status, err)
	}
	token := keyFor(t, dir, "bo")
	first, err := post(t.Context(), g.url, token, "k", spec("r"))
	if err != nil || first.status != 201 {
		t.Fatalf("status %d, %v: %s", first.status, err, first.body)
	}

	second := weirEnv(t, nil, "serve", "--listen", "127.0.0.1:0", "--packs", pledge(t), "--state-dir", dir, "--config", config)
	if second.code != exitFailed || !strings.Contains(second.stderr, "another weir runs on the state directory") {
		t.Errorf("a second gate: exit %d\n%s", second.code, second.stderr)
	}
	if r := weirEnv(t, nil, "doctor", "--state-dir", dir, "--config", config, "--packs", pledge(t)); r.code != 0 || !strings.Contains(r.stdout, "database answers") {
		t.Errorf("doctor beside a running gate: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if s := get(t, g.url+"/readyz"); s != 200 {
		t.Errorf("the first gate was disturbed: readyz %d", s)
	}

	g.kill()
	noneLeft(t, dir)
	g = start(15 * time.Second) // promised: 3 s
	if r, err := send(t.Context(), "GET", g.url+"/v1/screenings/"+first.text("id"), token, nil); err != nil || r.status != 200 || decision(r) != decision(first) {
		t.Errorf("after kill -9: status %d, %v", r.status, err)
	}
	if again, err := os.ReadFile(filepath.Join(dir, "admin.key")); err != nil || string(again) != string(admin) {
		t.Errorf("the admin key changed (%v)", err)
	}

	// The database dies on its own: the gate does not pretend.
	if err := syscall.Kill(postmaster(t, dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-g.ended
	if code := g.cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(g.log.String(), "private Postgres ended") {
		t.Errorf("without its database: exit %d\n%s", code, g.log)
	}
	noneLeft(t, dir)
	g = start(15 * time.Second)
	if code := g.stop(syscall.SIGINT); code != 0 {
		t.Errorf("SIGINT: exit %d\n%s", code, g.log)
	}
	noneLeft(t, dir)
	// Commands bring the database up for themselves.
	if r := weirEnv(t, nil, "key", "list", "--state-dir", dir); r.code != 0 || !strings.Contains(r.stdout, "bo") {
		t.Errorf("key list without a gate: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	noneLeft(t, dir)
}
