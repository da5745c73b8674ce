package storetest

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"weir/migrations"
)

func TestPoolIsMigratedAndPrivate(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(migrations.FS, "*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	a, b := Pool(t), Pool(t)
	for _, pool := range []*pgxpool.Pool{a, b} {
		var history, version int
		var dirty bool
		err := pool.QueryRow(t.Context(), `select (select count(*) from schema_history), version, dirty from schema_migrations`).
			Scan(&history, &version, &dirty)
		if err != nil || history != len(files) || version != len(files) || dirty {
			t.Errorf("history %d, version %d, dirty %v, error %v, want both %d and clean", history, version, dirty, err, len(files))
		}
	}
	if _, err := a.Exec(t.Context(), `create table only_in_a ()`); err != nil {
		t.Fatal(err)
	}
	if tables(t, b, "only_in_a") != 0 {
		t.Error("one test sees the tables of another")
	}
}

func TestEmptyHasNoSchema(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if n := tables(t, pool, "%"); n != 0 {
		t.Errorf("%d tables in an empty database", n)
	}
}

func TestDatabaseGoesWithItsTest(t *testing.T) {
	t.Parallel()
	dsn := ""
	t.Run("owner", func(t *testing.T) {
		dsn = DSN(t)
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn // left open: that must not keep the database
	})
	if exists(t, dsn) {
		t.Error("the database outlives its test")
	}
}

// failed is a test that has failed, whose cleanups run when asked.
type failed struct {
	testing.TB
	cleanups []func()
	log      []any
}

func (f *failed) Failed() bool               { return true }
func (f *failed) Cleanup(c func())           { f.cleanups = append(f.cleanups, c) }
func (f *failed) Logf(_ string, args ...any) { f.log = append(f.log, args...) }

func TestFailedTestKeepsItsDatabaseOnRequest(t *testing.T) {
	for _, keep := range []string{"", "1"} {
		t.Run("WEIR_KEEP_TEST_DB="+keep, func(t *testing.T) {
			t.Setenv("WEIR_KEEP_TEST_DB", keep)
			test := &failed{TB: t}
			dsn := DSN(test)
			for _, c := range test.cleanups {
				c()
			}
			if kept := exists(t, dsn); kept != (keep == "1") {
				t.Errorf("kept = %v", kept)
			}
			if keep == "1" {
				if len(test.log) == 0 || test.log[0] != dsn {
					t.Errorf("log %q does not name the kept database %s", test.log, dsn)
				}
				t.Setenv("WEIR_KEEP_TEST_DB", "")
				for _, c := range test.cleanups {
					c()
				}
			}
		})
	}
}

func TestWithDatabase(t *testing.T) {
	t.Parallel()
	tests := []struct{ dsn, want string }{
		{"postgres://ana:pw@db:5433/postgres?sslmode=disable", "postgres://ana:pw@db:5433/own?sslmode=disable"},
		{"postgres://weir@/weir?host=%2Frun%2Fpg&port=5432", "postgres://weir@/own?host=%2Frun%2Fpg&port=5432"},
		{"postgres://db?dbname=postgres", "postgres://db/own"},
		{"host=/run/pg dbname=postgres", "host=/run/pg dbname=postgres dbname=own"},
	}
	for _, tt := range tests {
		got := withDatabase(tt.dsn, "own")
		if got != tt.want {
			t.Errorf("withDatabase(%q) = %q, want %q", tt.dsn, got, tt.want)
		}
		if cfg, err := pgx.ParseConfig(got); err != nil || cfg.Database != "own" {
			t.Errorf("%q leads to database %q, %v", got, cfg.Database, err)
		}
	}
}

func BenchmarkDSN(b *testing.B) {
	for b.Loop() {
		DSN(b)
	}
}

func tables(t *testing.T, pool *pgxpool.Pool, like string) (n int) {
	t.Helper()
	err := pool.QueryRow(t.Context(), `select count(*) from pg_tables where schemaname = 'public' and tablename like $1`, like).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func exists(t *testing.T, dsn string) bool {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err == nil {
		conn.Close(t.Context())
		return true
	}
	if !strings.Contains(err.Error(), "does not exist") {
		t.Fatal(err)
	}
	return false
}

func TestMain(m *testing.M) {
	// DATABASE_URL must not matter; this one would break everything if it did.
	os.Setenv("DATABASE_URL", "postgres://production.invalid/weir")
	os.Exit(m.Run())
}

func TestWith(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{"postgres://db/own", "postgres://db/own?sslmode=disable", "postgres://weir@/own?host=%2Frun%2Fpg&port=5432", "host=/run/pg dbname=own"} {
		got := With(dsn, "statement_timeout", "1s")
		cfg, err := pgx.ParseConfig(got)
		if err != nil || cfg.Database != "own" || cfg.RuntimeParams["statement_timeout"] != "1s" {
			t.Errorf("With(%q) = %q, %v", dsn, got, err)
		}
	}
}
