package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"weir/migrations"
)

// SchemaTooNewError says that a newer weir has migrated the database. Nothing was changed.
type SchemaTooNewError struct {
	Database int64 // version of the database
	Binary   int64 // newest version this binary knows
}

func (e *SchemaTooNewError) Error() string {
	return fmt.Sprintf("the database is at schema version %d, this weir knows versions up to %d: run the weir that migrated it, or a newer one; nothing was changed",
		e.Database, e.Binary)
}

// SchemaStatus says where the schema of a database stands. Versions count from 1; 0 is a database without a schema.
type SchemaStatus struct {
	Version int64 // of the database
	Head    int64 // newest this binary knows
	Dirty   bool  // a migration is at work, or died at work: see Running
	Running bool  // some weir holds the migration lock
}

// Ready reports whether this binary can work on the database.
func (s SchemaStatus) Ready() bool { return s.Version == s.Head && !s.Dirty }

// Querier is what MigrationStatus needs of a connection or a pool. Not a transaction: on an empty database a query fails,
// which would spoil it.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// MigrationStatus reads where the schema stands, for readiness and for people. It takes no lock.
func MigrationStatus(ctx context.Context, db Querier) (SchemaStatus, error) {
	return migrationStatus(ctx, db, migrations.FS)
}

func migrationStatus(ctx context.Context, db Querier, files fs.FS) (SchemaStatus, error) {
	head, err := headVersion(files)
	if err != nil {
		return SchemaStatus{}, err
	}
	s := SchemaStatus{Head: head}
	err = db.QueryRow(ctx, `select version, dirty from schema_migrations`).Scan(&s.Version, &s.Dirty)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) && !undefinedTable(err) {
		return SchemaStatus{}, fmt.Errorf("read schema version: %w", err)
	}
	s.Version = max(s.Version, 0) // the library says -1 when it died on the way down to nothing
	holder, err := migrationLockHolder(ctx, db)
	s.Running = holder != 0
	return s, err
}

// migrationLock is the advisory lock of a migrating weir, in the two-integer form. Advisory locks are per database.
const (
	migrationLockClass = 0x77656972 // "weir"
	migrationLockID    = 1
)

// Migrate brings the schema of the database to the version this binary knows. Any number of processes may call it at
// once; one works, the others wait for it. ctx bounds all of it.
//
// A process that is killed in a migration leaves a "dirty" mark that does not tell whether the migration was committed.
// Migrate finds out from schema_history, which the migration writes in its own transaction, and goes on from there.
//
// Errors: *SchemaTooNewError; the context's; else what Postgres said.
func Migrate(ctx context.Context, dsn string, log *slog.Logger) error {
	if err := migrateUp(ctx, dsn, migrations.FS, log); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

func migrateUp(ctx context.Context, dsn string, files fs.FS, log *slog.Logger) (err error) {
	begin := time.Now()
	cfg, err := migrationConfig(dsn)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		// Closing would give the lock back too, but some time after we have said that we are done.
		_, _ = conn.Exec(ctx, `select pg_advisory_unlock_all()`)
		_ = conn.Close(ctx)
	}()
	if err := acquireMigrationLock(ctx, conn, log); err != nil {
		return err
	}

	lib, err := openLibrary(ctx, cfg, files)
	defer lib.close()
	if err != nil {
		return lib.explain(ctx, conn, err)
	}
	// Read only now: the library's own lock, which opening it took and gave back, is held by the server process of a killed
	// weir for as long as that still works on its last statement.
	before, err := migrationStatus(ctx, conn, files)
	if err != nil {
		return err
	}
	if before.Version > before.Head {
		return &SchemaTooNewError{Database: before.Version, Binary: before.Head}
	}
	if before.Dirty {
		if err := lib.heal(ctx, conn, before, log); err != nil {
			return err
		}
	}
	if err := lib.Up(); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		return lib.explain(ctx, conn, err)
	}
	if err := letRequestsIn(ctx, conn); err != nil {
		return err
	}
	log.InfoContext(ctx, "schema is current", "version", before.Head, "was", before.Version, "duration", time.Since(begin))
	return nil
}

// letRequestsIn makes what is not in the schema: the role that requests have, which is
// the cluster's, and its rights, which a dump can leave out.
func letRequestsIn(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	if err := conn.QueryRow(ctx, `select to_regprocedure('let_requests_in()') is not null`).Scan(&there); err != nil || !there {
		return err
	}
	_, err := conn.Exec(ctx, `select let_requests_in()`)
	return err
}

func migrationConfig(dsn string) (*pgx.ConnConfig, error) {
	// The pool's parser, because a DSN with pool_max_conns and the like is a good one.
	pool, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg := pool.ConnConfig
	// Limits that suit requests would cut a migration short, or end the session that holds our lock meanwhile.
	for _, limit := range []string{"statement_timeout", "lock_timeout", "idle_session_timeout"} {
		cfg.RuntimeParams[limit] = "0"
	}
	cfg.RuntimeParams["application_name"] = "weir migrate"
	return cfg, nil
}

// acquireMigrationLock polls instead of waiting in the server: a waiting statement would hold a snapshot and so block
// others, and would not end with ctx if the network is gone.
//
// It comes before the library's own lock, which cannot be bounded by a context, and whose waiter, once the library gives
// up, takes the lock later in the background and never gives it back.
func acquireMigrationLock(ctx context.Context, conn *pgx.Conn, log *slog.Logger) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for holder := 0; ; {
		var locked bool
		err := conn.QueryRow(ctx, `select pg_try_advisory_lock($1::int, $2::int)`, migrationLockClass, migrationLockID).Scan(&locked)
		if err == nil && locked {
			return nil
		}
		if err == nil && holder == 0 {
			if holder, err = migrationLockHolder(ctx, conn); err == nil {
				log.InfoContext(ctx, "another weir migrates this database: waiting", "session", holder)
			}
		}
		if err == nil {
			select {
			case <-tick.C:
				continue
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("another weir (database session %d) still migrates this database: %w", holder, context.Cause(ctx))
		}
		return fmt.Errorf("take the migration lock: %w", err)
	}
}

// migrationLockHolder returns the server process id of the session that holds the migration lock, 0 if none does.
func migrationLockHolder(ctx context.Context, db Querier) (pid int, err error) {
	err = db.QueryRow(ctx, `
		select coalesce(max(pid), 0) from pg_locks
		where locktype = 'advisory' and granted and classid = $1 and objid = $2 and objsubid = 2
		  and database = (select oid from pg_database where datname = current_database())`,
		migrationLockClass, migrationLockID).Scan(&pid)
	if err != nil {
		return 0, fmt.Errorf("look for the holder of the migration lock: %w", err)
	}
	return pid, nil
}

// library is golang-migrate on one connection that ends with a context. The library itself knows no contexts: it waits
// for locks and statements without any limit.
type library struct {
	*migrate.Migrate
	files   fs.FS
	db      *sql.DB
	session *atomic.Uint32 // server process id of its connection, 0 before it is connected
	hangUp  func()         // closes the connection, whatever happens on it
}

// openLibrary returns a library even with an error, to explain that and to be closed.
func openLibrary(ctx context.Context, cfg *pgx.ConnConfig, files fs.FS) (*library, error) {
	ctx, hangUp := context.WithCancel(ctx)
	lib := &library{files: files, session: new(atomic.Uint32), hangUp: hangUp}

	cfg = cfg.Copy()
	dial := cfg.DialFunc
	cfg.DialFunc = func(_ context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr) // ours, not the library's background context
		if err == nil {
			context.AfterFunc(ctx, func() { c.Close() })
		}
		return c, err
	}
	cfg.AfterConnect = func(_ context.Context, c *pgconn.PgConn) error {
		lib.session.Store(c.PID())
		return nil
	}
	lib.db = stdlib.OpenDB(*cfg)
	lib.db.SetMaxOpenConns(1)

	driver, err := migratepgx.WithInstance(lib.db, &migratepgx.Config{})
	if err != nil {
		return lib, err
	}
	source, err := iofs.New(files, ".")
	if err != nil {
		return lib, err
	}
	lib.Migrate, err = migrate.NewWithInstance("iofs", source, "pgx5", driver)
	if err != nil {
		return lib, err
	}
	lib.LockTimeout = 1 << 62 // ctx is the limit; after the library's own it would leave a waiter behind
	return lib, nil
}

func (lib *library) close() {
	if lib.Migrate != nil {
		_, _ = lib.Migrate.Close() // ends the session in good order, so that nothing of it is left when we return
	}
	lib.hangUp() // a driver that failed to open keeps its connection
	_ = lib.db.Close()
}

// heal makes a dirty database clean, at the version it really has.
func (lib *library) heal(ctx context.Context, conn *pgx.Conn, dirty SchemaStatus, log *slog.Logger) error {
	// The newest row is the truth for both directions: an interrupted migration to N has left row N if it was committed
	// and N-1 as the newest if not.
	var version int64
	err := conn.QueryRow(ctx, `select coalesce(max(version), 0) from schema_history`).Scan(&version)
	if err != nil && !undefinedTable(err) { // no table: the first migration was not committed
		return fmt.Errorf("read schema_history: %w", err)
	}
	if version > dirty.Head {
		return &SchemaTooNewError{Database: version, Binary: dirty.Head}
	}
	log.WarnContext(ctx, "an earlier migration was interrupted: going on from what it committed",
		"interrupted_at", dirty.Version, "committed", version)
	force := int(version)
	if force == 0 {
		force = database.NilVersion
	}
	if err := lib.Force(force); err != nil {
		return lib.explain(ctx, conn, err)
	}
	return nil
}

// explain turns an error of the library into one for people. conn is another connection to the same database.
func (lib *library) explain(ctx context.Context, conn *pgx.Conn, err error) error {
	if ctx.Err() != nil {
		return lib.interrupted(ctx, conn)
	}
	status, statusErr := migrationStatus(ctx, conn, lib.files)
	if statusErr != nil || !status.Dirty {
		return shorten(err)
	}
	return fmt.Errorf("schema version %d: %w", status.Version, shorten(err))
}

// interrupted says what the library was waiting for when ctx ended, and ends its session on the server, which would
// otherwise work on, or take the lock it waits for, with nobody there to tell.
func (lib *library) interrupted(ctx context.Context, conn *pgx.Conn) error {
	cause := context.Cause(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	var blockers []int32
	session := int32(lib.session.Load())
	err := conn.QueryRow(ctx, `select pg_blocking_pids($1)`, session).Scan(&blockers)
	if err == nil {
		_, err = conn.Exec(ctx, `select pg_terminate_backend(pid, 900) from pg_stat_activity where pid = $1 and usename = session_user`, session)
	}
	message := "interrupted"
	if len(blockers) > 0 {
		message = fmt.Sprintf("interrupted while waiting for locks of database sessions %v: look them up in pg_stat_activity", blockers)
	}
	if err != nil {
		return fmt.Errorf("%s: %w (and its session %d could not be ended: %w)", message, cause, session, err)
	}
	return fmt.Errorf("%s: %w", message, cause)
}

// shorten leaves out the SQL: the text of a library error holds the whole file.
func shorten(err error) error {
	var byValue database.Error
	var byPointer *database.Error
	switch {
	case errors.As(err, &byPointer):
		byValue = *byPointer
	case !errors.As(err, &byValue):
		return err
	}
	if byValue.OrigErr == nil {
		return errors.New(byValue.Err)
	}
	if byValue.Line > 0 {
		return fmt.Errorf("line %d: %w", byValue.Line, byValue.OrigErr)
	}
	return byValue.OrigErr
}

// headVersion is the highest version among the migration files.
func headVersion(files fs.FS) (int64, error) {
	names, err := fs.Glob(files, "*.up.sql")
	if err != nil {
		return 0, err
	}
	var head int64
	for _, name := range names {
		digits, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("migration file %s: name does not start with a version: %w", name, err)
		}
		head = max(head, version)
	}
	return head, nil
}

func undefinedTable(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == "42P01"
}
