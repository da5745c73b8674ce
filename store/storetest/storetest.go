package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// patience bounds each step, so that a broken server fails a test with a reason instead of the run's timeout.
const patience = time.Minute

// Pool returns a small pool on a migrated database that belongs to this test. It is closed when the test ends; a
// connection that the test never gave back is reported.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 8 // many tests run at once, on one server
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() {
			pool.Close() // waits for every connection
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(10 * time.Second):
			t.Errorf("pool does not close: %d connections were never released", pool.Stat().AcquiredConns())
		}
	})
	return pool
}

// DSN returns the connection URL of a migrated database that belongs to this test.
func DSN(t testing.TB) string {
	t.Helper()
	dsn := serverDSN(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	template, err := migrated(ctx, dsn)
	if err != nil {
		t.Fatalf("make the template database: %v", err)
	}
	return create(t, dsn, template)
}

// Empty returns the connection URL of a database without any schema that belongs to this test, for tests of the
// migrations themselves.
func Empty(t testing.TB) string {
	t.Helper()
	return create(t, serverDSN(t), "template0")
}

var privateServer = sync.OnceValues(joinServer)

func serverDSN(t testing.TB) string {
	t.Helper()
	if dsn := os.Getenv("WEIR_TEST_DSN"); dsn != "" {
		return dsn
	}
	private, err := privateServer()
	if err != nil {
		t.Fatalf("tests need PostgreSQL: apt-get install postgresql, or set WEIR_TEST_DSN to a server where databases may be created: %v", err)
	}
	return private.dsn
}

// create makes a database from the template and drops it when the test ends.
func create(t testing.TB, dsn, template string) string {
	t.Helper()
	name := "weir_test_" + strings.ToLower(rand.Text()[:16])
	err := admin(t.Context(), dsn, func(conn *pgx.Conn) string {
		sql := "create database " + name + " template " + template
		if major, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), "."); major != "14" {
			sql += " strategy file_copy" // what 14 always does; for a small database three times as fast as by WAL
		}
		return sql
	})
	if err != nil {
		t.Fatalf("create a test database: %v", err)
	}
	own := withDatabase(dsn, name)
	t.Cleanup(func() {
		if t.Failed() && os.Getenv("WEIR_KEEP_TEST_DB") == "1" {
			t.Logf("kept %s (a private server ends with the run: set WEIR_TEST_DSN to look at it later)", own)
			return
		}
		// By force: code under test may have left a session, which is its affair and not a reason to fail here.
		err := admin(context.WithoutCancel(t.Context()), dsn, func(*pgx.Conn) string {
			return "drop database " + name + " with (force)"
		})
		if err != nil {
			t.Errorf("drop the test database: %v", err)
		}
	})
	return own
}

// admin runs one statement outside of any test database.
func admin(ctx context.Context, dsn string, sql func(*pgx.Conn) string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql(conn))
	return errors.Join(err, conn.Close(ctx))
}

// With returns dsn, a URL or keyword=value pairs, with one more setting of the connection; value has no blanks.
func With(dsn, name, value string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return dsn + " " + name + "=" + value
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}

// withDatabase returns dsn, a URL or keyword=value pairs, with another database.
func withDatabase(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return dsn + " dbname=" + name // the last one counts
	}
	u.Path = "/" + name
	query := u.Query()
	query.Del("dbname") // would win over the path
	query.Del("database")
	u.RawQuery = query.Encode()
	return u.String()
}
