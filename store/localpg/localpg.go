package localpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// roleName is the superuser of the cluster, databaseName what DSN leads to.
const (
	roleName     = "weir"
	databaseName = "weir"
)

// Config says where the server lives. The zero value is a durable server in DefaultDir.
type Config struct {
	// Dir is the state directory, made if missing. Empty means DefaultDir().
	Dir string

	// BinDir holds the initdb and postgres to use. Empty means: WEIR_PG_BIN, what pg_config names, the newest of the
	// usual places, PATH.
	BinDir string

	// Volatile trades every guarantee about crashes for speed (fsync off and the like). For tests only.
	Volatile bool

	// Params are server settings (postgresql.conf names) on top of ours, e.g. max_connections.
	Params map[string]string

	// Log gets the life of the server, and the server's own log at debug level. Nil discards.
	Log *slog.Logger
}

// Server is a running Postgres. Its methods may be called from any goroutine.
type Server struct {
	cfg     Config
	log     *slog.Logger
	account *account
	binDir  string
	version int
	data    string

	lock   *os.File // holds the flock; must stay reachable while the server runs
	output output
	cmd    *exec.Cmd
	dsn    string

	patience time.Duration // between the hard stop and the kill
	stopping atomic.Bool
	done     chan struct{}
	err      error // set before done is closed
}

// DefaultDir is the state directory of a server that was not told where to live: /var/lib/weir for root, else weir
// under $XDG_STATE_HOME or ~/.local/state.
func DefaultDir() (string, error) {
	return defaultDir(os.Geteuid(), os.Getenv("XDG_STATE_HOME"), os.UserHomeDir)
}

func defaultDir(uid int, xdgState string, home func() (string, error)) (string, error) {
	switch {
	case uid == 0:
		return "/var/lib/weir", nil // root's home is closed to the account that the server runs as
	case filepath.IsAbs(xdgState): // the XDG rules say to ignore a relative one
		return filepath.Join(xdgState, "weir"), nil
	}
	dir, err := home()
	if err != nil {
		return "", fmt.Errorf("find a state directory: %w: set HOME or XDG_STATE_HOME, or name a directory", err)
	}
	return filepath.Join(dir, ".local", "state", "weir"), nil
}

// Exists reports whether a state directory holds a database, or something in its place that Start would look at. It
// changes nothing.
func Exists(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "data"))
	return !errors.Is(err, fs.ErrNotExist)
}

// Available says whether this machine has a server to start: nil, or ErrNoBinaries.
func Available(ctx context.Context) error {
	_, err := systemSearch.find(ctx, "")
	return err
}

// Start starts the server and returns when it answers. ctx bounds the start, not the life of the server.
//
// Errors: ErrNoBinaries, *InUseError, *VersionError, or what initdb or postgres said.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	return systemSearch.start(ctx, cfg)
}

func (where search) start(ctx context.Context, cfg Config) (_ *Server, err error) {
	s := &Server{
		log:      cfg.Log,
		done:     make(chan struct{}),
		patience: 6 * time.Second, // the postmaster itself gives its children five
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.output.log = s.log

	if s.binDir, err = where.find(ctx, cfg.BinDir); err != nil {
		return nil, err
	}
	if s.version, err = majorVersion(ctx, s.binDir); err != nil {
		return nil, err
	}
	if s.account, err = serverAccount(where.env("WEIR_PG_USER")); err != nil {
		return nil, err
	}
	if cfg.Dir == "" {
		if cfg.Dir, err = DefaultDir(); err != nil {
			return nil, err
		}
	}
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, err
	}
	if err := makeStateDir(cfg.Dir); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	// One name per directory: processes are found, and sockets named, by it.
	if cfg.Dir, err = filepath.EvalSymlinks(cfg.Dir); err != nil {
		return nil, err
	}
	s.cfg = cfg
	s.data = filepath.Join(cfg.Dir, "data")

	if s.lock, err = acquire(cfg.Dir); err != nil {
		return nil, err
	}
	if err := s.launch(ctx); err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	if err := s.awaitReady(ctx); err != nil {
		s.stopping.Store(true)
		s.signal(syscall.SIGQUIT)
		<-s.done
		return nil, fmt.Errorf("start postgres in %s: %w%s%s", s.data, err, s.output.quote(), s.account.hint(s.data))
	}
	return s, nil
}

// makeStateDir makes a directory that the server's account may pass through; it will own only what is inside.
func makeStateDir(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err // somebody chose its mode, and it stays as it is
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	return os.Chmod(dir, 0o711) // whatever the umask, and services like to have a strict one
}

// launch brings the data directory in order and starts postgres in it. From then on the lock is given back by the
// goroutine that sees postgres end.
func (s *Server) launch(ctx context.Context) error {
	if err := s.ensureCluster(ctx); err != nil {
		return err
	}
	if err := s.awaitOrphans(ctx, s.data); err != nil {
		return err
	}
	socketDir, err := s.makeSocketDir()
	if err != nil {
		return fmt.Errorf("make socket directory: %w", err)
	}
	s.dsn = (&url.URL{
		Scheme: "postgres", User: url.User(roleName), Path: "/" + databaseName,
		RawQuery: url.Values{"host": {socketDir}, "port": {"5432"}}.Encode(),
	}).String()

	params := map[string]string{
		"listen_addresses":        "",
		"unix_socket_directories": socketDir,
		"unix_socket_permissions": "0700",
		"port":                    "5432",
		"log_line_prefix":         "",
		"log_checkpoints":         "off",
		// What goes wrong in a statement is told to its client. The log would repeat it with the data it was about.
		"log_min_messages":        "log",
		"log_min_error_statement": "panic",
	}
	if s.cfg.Volatile {
		maps.Copy(params, map[string]string{"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"})
	}
	maps.Copy(params, s.cfg.Params)
	args := []string{"-D", s.data}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		args = append(args, "-c", name+"="+params[name])
	}

	// Not bound to ctx, which is about the start.
	s.cmd = s.command(context.WithoutCancel(ctx), "postgres", s.data, args...)
	dieWithParent(s.cmd.SysProcAttr, os.Interrupt) // SIGINT is Postgres's fast shutdown
	wait, err := start(s.cmd)
	if err != nil {
		return fmt.Errorf("start postgres: %w%s", err, s.account.hint(s.data))
	}
	go func() {
		err := <-wait
		if !s.stopping.Load() {
			s.err = fmt.Errorf("postgres (pid %d, data in %s) ended by itself: %s%s", s.cmd.Process.Pid, s.data, s.cmd.ProcessState, s.output.quote())
			s.log.Error("database server ended by itself", "dir", s.data, "state", s.cmd.ProcessState.String(), "error", err)
		}
		s.lock.Close() // nobody uses the directory any more: the next Start may have it
		close(s.done)
	}()
	return nil
}

// start starts cmd on an OS thread of its own and keeps that thread until cmd has ended, because "die with the parent"
// means the parent thread: the Go runtime may end a thread whenever no goroutine holds it.
func start(cmd *exec.Cmd) (wait <-chan error, err error) {
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	return ended, <-started
}

// awaitReady connects until the server answers, and makes the database if this is the first time.
func (s *Server) awaitReady(ctx context.Context) error {
	cfg, err := pgx.ParseConfig(s.dsn)
	if err != nil {
		return err
	}
	cfg.Database = "postgres" // ours may not exist yet
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err == nil {
			err = ensureDatabase(ctx, conn)
			return errors.Join(err, conn.Close(ctx))
		}
		select {
		case <-s.done:
			return errors.New("postgres ended while starting")
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

func ensureDatabase(ctx context.Context, conn *pgx.Conn) error {
	var exists bool
	err := conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, databaseName).Scan(&exists)
	if err == nil && !exists {
		_, err = conn.Exec(ctx, `create database `+databaseName)
	}
	return err
}

// DSN is the connection URL, good for pgx and psql alike. It holds no secret; the socket directory is the lock.
func (s *Server) DSN() string { return s.dsn }

// Done is closed when the server process has ended, asked or not.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says, once Done is closed, how the server ended: nil if Stop asked for it.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Stop ends the server: open transactions are rolled back, clients disconnected, files in order. It returns when the
// process is gone. If ctx ends first the server is stopped the hard way, which costs the next start a crash recovery, and
// the error says so. Stopping a stopped server does nothing.
func (s *Server) Stop(ctx context.Context) error {
	s.stopping.Store(true)
	s.signal(syscall.SIGINT)
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
	}
	s.signal(syscall.SIGQUIT)
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
		s.signal(syscall.SIGKILL)
		<-s.done
	}
	return fmt.Errorf("stop postgres in %s: %w: stopped the hard way, the next start recovers", s.data, context.Cause(ctx))
}

// signal does nothing to a server that has ended, and there is nothing else a signal to our own child can fail with.
func (s *Server) signal(sig os.Signal) { _ = s.cmd.Process.Signal(sig) }

// output logs what a Postgres program prints, and keeps the end of it for error messages. It is written by the one
// goroutine that copies the pipe and read after the program has ended, so it needs no lock.
type output struct {
	log  *slog.Logger
	rest []byte
	tail []string
}

func (o *output) Write(p []byte) (int, error) {
	o.rest = append(o.rest, p...)
	for {
		line, rest, ok := bytes.Cut(o.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		o.rest = rest
		o.line(strings.TrimSpace(string(line)))
	}
}

func (o *output) line(line string) {
	if line == "" {
		return
	}
	level := slog.LevelDebug
	if severity, _, _ := strings.Cut(line, ":"); severity == "FATAL" || severity == "PANIC" {
		level = slog.LevelWarn
	}
	o.log.Log(context.Background(), level, "postgres", "line", line)
	o.tail = append(o.tail, line)
	if extra := len(o.tail) - 8; extra > 0 {
		o.tail = slices.Delete(o.tail, 0, extra)
	}
}

// quote renders the last lines for the end of an error message.
func (o *output) quote() string {
	if len(o.tail) == 0 {
		return ""
	}
	return ": it said: " + strings.Join(o.tail, " | ")
}
