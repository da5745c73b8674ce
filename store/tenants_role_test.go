package store_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/review"
	"weir/review/reviewtest"
	"weir/store"
	"weir/store/localpg"
)

// cluster is a Postgres of its own: roles are not a database's, so tests of them must
// not share one.
type cluster struct {
	*testing.T
	admin *pgx.Conn
	dsn   string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-roles-") // not t.TempDir: the account that root switches to must get there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	server, err := localpg.Start(t.Context(), localpg.Config{Dir: dir, Volatile: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{T: t, dsn: server.DSN()}
	if c.admin, err = pgx.Connect(t.Context(), c.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.admin.Close(context.WithoutCancel(t.Context())) })
	return c
}

func (c *cluster) exec(sql string) {
	c.Helper()
	if _, err := c.admin.Exec(c.Context(), sql); err != nil {
		c.Fatalf("%s: %v", sql, err)
	}
}

// database makes one that belongs to owner, and gives the URL by which user reaches it.
func (c *cluster) database(name, owner string) { c.exec(`create database ` + name + ` owner ` + owner) }

func (c *cluster) url(database, user string) string {
	u, err := url.Parse(c.dsn)
	if err != nil {
		c.Fatal(err)
	}
	u.Path, u.User = "/"+database, url.User(user)
	return u.String()
}

func (c *cluster) migrate(database, user string) error {
	return store.Migrate(c.Context(), c.url(database, user), slog.New(slog.DiscardHandler))
}

// world is a store with a desk on a database, as user.
func (c *cluster) world(database, user string) *world {
	c.Helper()
	st, err := store.Open(c.Context(), c.url(database, user), store.Config{})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(st.Close)
	desk, err := review.NewDesk(st, reviewtest.Setup(c.T, peopleYAML, policiesYAML, reviewtest.Floor, pledgeYAML), review.Config{})
	if err != nil {
		c.Fatal(err)
	}
	return &world{T: c.T, dsn: c.url(database, user), store: st, desk: desk}
}

// kept checks that requests of a project see theirs, and what works over all sees all.
func (w *world) kept() {
	w.Helper()
	if err := w.store.Ping(w.Context()); err != nil {
		w.Fatal(err)
	}
	run := uuid.NewString() // a restored database has others
	for _, project := range []string{"a", "b"} {
		if _, _, err := w.desk.Submit(w.Context(), allOf(project, "bo"), spec(run, "", "violent=present"), nil); err != nil {
			w.Fatal(err)
		}
	}
	var seen, all int
	if err := store.Of(w.store, "a").QueryRow(w.Context(), `select count(*) from screening where run_ref = $1`, run).Scan(&seen); err != nil || seen != 1 {
		w.Errorf("a request sees %d screenings, want 1 (%v)", seen, err)
	}
	if err := store.Every(w.store).QueryRow(w.Context(), `select count(*) from screening where run_ref = $1`, run).Scan(&all); err != nil || all != 2 {
		w.Errorf("what works over all sees %d screenings, want 2 (%v)", all, err)
	}
	if n, err := w.store.Sequence(w.Context(), 100, signingKey(w.T)); err != nil || n == 0 {
		w.Errorf("%d events sequenced, %v", n, err)
	}
}

// What a gate needs of the roles of its cluster, and what it says when it is not there.
func TestRoles(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for _, sql := range []string{`create role plain login`, `create role maker login createrole`, `create role "Odd-Näme" login createrole`,
		`create role stranger login`} {
		c.exec(sql)
	}

	t.Run("an owner who may make roles", func(t *testing.T) {
		for _, owner := range []string{"maker", "Odd-Näme"} {
			database := "of_" + strings.ToLower(owner[:3])
			c.database(database, pgx.Identifier{owner}.Sanitize())
			if err := c.migrate(database, owner); err != nil {
				t.Fatal(err)
			}
			c.world(database, owner).kept()
		}
	})

	t.Run("an owner who may not", func(t *testing.T) {
		c.database("plain", "plain")
		err := c.migrate("plain", "plain")
		if err == nil {
			t.Fatal("migrated without a role for requests")
		}
		says := regexp.MustCompile(`as an administrator run: (create role \w+ nologin; grant \w+ to plain;)`).FindStringSubmatch(err.Error())
		if says == nil {
			t.Fatalf("%v: does not say what to run", err)
		}
		conn, cerr := pgx.Connect(t.Context(), c.url("plain", "plain"))
		if cerr != nil {
			t.Fatal(cerr)
		}
		defer conn.Close(t.Context())
		if status, serr := store.MigrationStatus(t.Context(), conn); serr != nil || status.Version != tenantsMigration || !status.Dirty {
			t.Errorf("%+v, %v", status, serr)
		}
		c.exec(says[1]) // by the letter
		if err := c.migrate("plain", "plain"); err != nil {
			t.Fatal(err)
		}
		c.world("plain", "plain").kept()
	})

	t.Run("restored for another owner", func(t *testing.T) {
		var bin string
		if err := c.admin.QueryRow(t.Context(), `select setting from pg_config where name = 'BINDIR'`).Scan(&bin); err != nil {
			t.Fatal(err)
		}
		dump := filepath.Join(t.TempDir(), "dump")
		c.database("elsewhere", "maker")
		for _, args := range [][]string{{"pg_dump", "-Fc", "-f", dump, c.url("plain", "plain")},
			{"pg_restore", "--exit-on-error", "--no-owner", "--no-privileges", "-d", c.url("elsewhere", "maker"), dump}} {
			if out, err := exec.CommandContext(t.Context(), filepath.Join(bin, args[0]), args[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", args[0], err, out)
			}
		}
		if err := c.migrate("elsewhere", "maker"); err != nil {
			t.Fatal(err)
		}
		c.world("elsewhere", "maker").kept()
		c.refused("elsewhere", "stranger")
	})

	t.Run("many databases of one owner at once", func(t *testing.T) {
		c.exec(`create role crowd login createrole`)
		var wg sync.WaitGroup
		for _, name := range []string{"crowd1", "crowd2", "crowd3", "crowd4", "crowd5", "crowd6"} {
			c.database(name, "crowd")
			for range 2 {
				wg.Go(func() {
					if err := c.migrate(name, "crowd"); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
		}
		wg.Wait()
	})

	t.Run("a role that ignores the policies", func(t *testing.T) {
		c.exec(`create role lax login createrole`)
		c.database("lax", "lax")
		if err := c.migrate("lax", "lax"); err != nil {
			t.Fatal(err)
		}
		for _, attribute := range []string{"bypassrls", "superuser"} {
			c.exec(`alter role weir_gate_lax ` + attribute)
			w := c.world("lax", "lax")
			if err := w.store.Ping(t.Context()); !errors.Is(err, store.ErrTenants) || !strings.Contains(err.Error(), "bypassrls") {
				t.Errorf("%s: %v", attribute, err)
			}
			if _, _, err := w.desk.Submit(t.Context(), allOf("a", "bo"), spec("r", ""), nil); !errors.Is(err, review.ErrUnavailable) {
				t.Errorf("%s: submitted: %v", attribute, err)
			}
			if _, err := w.store.Screenings(t.Context(), "a", review.ListQuery{Limit: 1}); !errors.Is(err, review.ErrUnavailable) {
				t.Errorf("%s: read: %v", attribute, err)
			}
			c.exec(`alter role weir_gate_lax no` + attribute)
		}
		// Taken away: nothing is answered, and the next start makes it again.
		c.exec(`revoke weir_gate_lax from lax`)
		if err := c.world("lax", "lax").store.Ping(t.Context()); !errors.Is(err, store.ErrTenants) || !strings.Contains(err.Error(), "weir migrate up") {
			t.Errorf("without the role: %v", err)
		}
		if err := c.migrate("lax", "lax"); err != nil {
			t.Fatal(err)
		}
		c.world("lax", "lax").kept()
	})

	t.Run("a user who does not own the tables", func(t *testing.T) {
		c.database("owned", "maker")
		if err := c.migrate("owned", "maker"); err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.Connect(t.Context(), c.url("owned", "maker"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.Exec(t.Context(), `grant all on all tables in schema public to stranger; grant weir_gate_maker to stranger`); err != nil {
			t.Fatal(err)
		}
		w := c.world("owned", "stranger")
		if _, err := w.store.Sequence(t.Context(), 1); !errors.Is(err, store.ErrTenants) {
			t.Errorf("works over all projects, and sees none of them: %v", err)
		}
		c.refused("owned", "plain")
	})
}

// refused checks that others of the cluster get at nothing by the functions that
// answer before a project is known.
func (c *cluster) refused(database, user string) {
	c.Helper()
	conn, err := pgx.Connect(c.Context(), c.url(database, user))
	if err != nil {
		c.Fatal(err)
	}
	defer conn.Close(c.Context())
	for _, sql := range []string{`select key_of('x')`, `select session_of('x', '1h', '1h')`, `select use_login_link('x')`, `select login_link('x')`, `select end_session('x')`,
		`select log_places(0, 1, 1)`, `set role weir_gate_maker`} {
		if _, err := conn.Exec(c.Context(), sql); !code(err, "42501") {
			c.Errorf("%s: %s: %v, want it refused", database, sql, err)
		}
	}
}
