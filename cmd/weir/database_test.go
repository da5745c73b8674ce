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
	"testing"

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
