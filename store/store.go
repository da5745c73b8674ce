package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"

	"weir/review"
	"weir/screening"
	"weir/webhooks"
)

// Config tunes a Store.
type Config struct {
	// MaxConns bounds the connections for requests; a third as many, at least 2, work
	// over all projects beside them. Default the DSN's pool_max_conns, else 12.
	MaxConns int32
	// BaseURL is where people reach this service; webhook messages link to it.
	// Default empty: messages carry no link.
	BaseURL string
	// Log gets what nobody else is told. Default slog.Default().
	Log *slog.Logger
	// Tracing makes spans of the statements of traced requests. Nil: none.
	Tracing trace.TracerProvider
	// tracer sees every statement, for tests of what they cost. May be nil.
	tracer pgx.QueryTracer
	// Enqueued is called after a commit that wrote deliveries. May be nil.
	Enqueued func()
	// Breaker says when a webhook endpoint that fails is left alone.
	Breaker webhooks.Breaker
}

// Store keeps screenings, reviews, deliveries and keys. Safe for concurrent use.
type Store struct {
	requests  *pgxpool.Pool // sees one project at a time: see tenant
	every     *pgxpool.Pool // sees all: for what the gate does by itself, and for operators
	cfg       Config
	committer *committer
	dialled   dialledAddresses

	dayMu   sync.Mutex
	day     screening.Day
	dayRead time.Time
}

// ErrBadDSN: the database URL cannot be read. Trying again is no use.
var ErrBadDSN = errors.New("the database URL cannot be read; expected postgres://user:password@host:port/database or key=value pairs")

// CheckDSN reports whether a database URL can be read. The error is ErrBadDSN and
// does not show the URL, which may hold a password.
func CheckDSN(dsn string) error {
	if _, err := pgxpool.ParseConfig(dsn); err != nil {
		return ErrBadDSN
	}
	return nil
}

// Open connects to a migrated database. The DSN's own settings win over the defaults.
func Open(ctx context.Context, dsn string, cfg Config) (*Store, error) {
	pc, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, ErrBadDSN
	}
	if cfg.MaxConns == 0 && !strings.Contains(dsn, "pool_max_conns") {
		cfg.MaxConns = 12
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if pc.ConnConfig.Tracer = cfg.tracer; cfg.Tracing != nil {
		pc.ConnConfig.Tracer = newStatementTracer(cfg.Tracing)
	}
	if cfg.MaxConns != 0 {
		pc.MaxConns = cfg.MaxConns
	}
	pc.MaxConnLifetime = 30 * time.Minute
	pc.MaxConnLifetimeJitter = 5 * time.Minute
	if pc.ConnConfig.ConnectTimeout == 0 {
		pc.ConnConfig.ConnectTimeout = 3 * time.Second
	}
	dialer := &net.Dialer{Timeout: 3 * time.Second, KeepAlive: 10 * time.Second}
	// A statement that hangs, a lock that is never given up and a transaction
	// left open must each end by themselves. And what is compiled anew for each
	// statement, a second for the large ones, never pays for the few rows they touch.
	for name, value := range map[string]string{"statement_timeout": "5s", "lock_timeout": "2s", "jit": "off",
		"idle_in_transaction_session_timeout": "10s", "timezone": "UTC", "application_name": "weir"} {
		if _, set := pc.ConnConfig.RuntimeParams[name]; !set {
			pc.ConnConfig.RuntimeParams[name] = value
		}
	}
	cfg.Breaker = cfg.Breaker.WithDefaults()
	if err := cfg.Breaker.Validate(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg}
	pc.ConnConfig.DialFunc = s.dialled.noting(dialer.DialContext)
	every := pc.Copy()
	every.MaxConns = max(2, pc.MaxConns/3)
	every.AfterConnect = keepRights
	pc.AfterConnect, pc.PrepareConn = lowerRights, giveProject
	if s.requests, err = pgxpool.NewWithConfig(ctx, pc); err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	if s.every, err = pgxpool.NewWithConfig(ctx, every); err != nil {
		s.requests.Close()
		return nil, fmt.Errorf("database: %w", err)
	}
	s.committer = newCommitter(s)
	return s, nil
}

// dialledAddresses are where connections to the database went.
type dialledAddresses struct {
	mu    sync.Mutex
	addrs []netip.AddrPort
}

// noting remembers each address that dial got through to.
func (d *dialledAddresses) noting(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if at, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil { // a socket in the file system has none
			d.mu.Lock()
			if !slices.Contains(d.addrs, at) {
				d.addrs = append(d.addrs, at)
			}
			d.mu.Unlock()
		}
		return conn, nil
	}
}

// Close waits for writes under way and closes the connections.
func (s *Store) Close() {
	s.committer.close()
	s.requests.Close()
	s.every.Close()
}

// Ping reports whether the database answers requests. Besides review.ErrUnavailable
// the error is ErrTenants when it would answer those of one project with what is
// another's, and so is not asked.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return translate(s.requests.Ping(s.nobody().context(ctx)))
}

// Schema tells where the schema stands.
func (s *Store) Schema(ctx context.Context) (SchemaStatus, error) {
	status, err := MigrationStatus(ctx, s.every)
	return status, translate(err)
}

// Today is the database's UTC day, read at most once a minute: Submit refuses a
// decision of another day anyway.
func (s *Store) Today(ctx context.Context) (screening.Day, error) {
	s.dayMu.Lock()
	known, read := s.day, s.dayRead
	s.dayMu.Unlock()
	if known != "" && time.Since(read) < time.Minute {
		return known, nil
	}
	// Not under the lock: whoever waits for a database that hangs must not make
	// others wait longer than their own deadline.
	var day string
	err := s.nobody().QueryRow(ctx, `select to_char(now() at time zone 'utc', 'YYYY-MM-DD')`).Scan(&day)
	if err != nil {
		return "", translate(err)
	}
	s.dayMu.Lock()
	defer s.dayMu.Unlock()
	s.day, s.dayRead = screening.Day(day), time.Now()
	return s.day, nil
}

func (s *Store) forgetDay() {
	s.dayMu.Lock()
	defer s.dayMu.Unlock()
	s.day = ""
}

// translate turns errors of the database into the domain's. What it does not
// know is unavailable: nobody may take it for an answer.
func translate(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return review.ErrNotFound
	}
	var pg *pgconn.PgError
	// invalid_text_representation and character_not_in_repertoire: an id that is no UUID,
	// or a name with a NUL in it, names nothing that is kept.
	if errors.As(err, &pg) && (pg.Code == "22P02" || pg.Code == "22021") {
		return review.ErrNotFound
	}
	return fmt.Errorf("%w: %w", review.ErrUnavailable, err)
}

// retryable reports whether a transaction may be run again as a whole: it
// certainly did not commit.
func retryable(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "40001" || pg.Code == "40P01"
	}
	return pgconn.SafeToRetry(err)
}
