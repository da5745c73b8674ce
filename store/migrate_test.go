package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/golang-migrate/migrate/v4/database"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"weir/migrations"
	"weir/store/storetest"
)

var quiet = slog.New(slog.DiscardHandler)

func TestMigrateFresh(t *testing.T) {
	t.Parallel()
	db := openEmpty(t)
	head, err := headVersion(migrations.FS)
	if err != nil {
		t.Fatal(err)
	}
	db.wantStatus(t, migrations.FS, SchemaStatus{Head: head})

	for range 2 { // the second finds nothing to do
		if err := Migrate(t.Context(), db.dsn, quiet); err != nil {
			t.Fatal(err)
		}
		db.wantStatus(t, migrations.FS, SchemaStatus{Version: head, Head: head})
		db.wantHistory(t, head)
	}
}

func TestMigrateAgreesWithTestDatabases(t *testing.T) {
	t.Parallel()
	made := open(t, storetest.DSN(t))
	want := made.schema(t)
	if err := Migrate(t.Context(), made.dsn, quiet); err != nil {
		t.Fatal(err)
	}
	fresh := openEmpty(t)
	if err := Migrate(t.Context(), fresh.dsn, quiet); err != nil {
		t.Fatal(err)
	}
	for name, db := range map[string]*testDB{"a test database migrated again": made, "a fresh one": fresh} {
		if diff := cmp.Diff(want, db.schema(t)); diff != "" {
			t.Errorf("a test database differs from %s (-test +other):\n%s", name, diff)
		}
	}
}

func TestMigrateUpDownUp(t *testing.T) {
	t.Parallel()
	db := openEmpty(t)
	if err := Migrate(t.Context(), db.dsn, quiet); err != nil {
		t.Fatal(err)
	}
	up := db.schema(t)

	cfg, err := migrationConfig(db.dsn)
	if err != nil {
		t.Fatal(err)
	}
	lib, err := openLibrary(t.Context(), cfg, migrations.FS)
	if err == nil {
		err = lib.Down()
	}
	lib.close()
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, line := range db.schema(t) {
		if !strings.Contains(line, "schema_migrations") { // the library's own
			left = append(left, line)
		}
	}
	if len(left) > 0 {
		t.Errorf("left after down:\n%s", strings.Join(left, "\n"))
	}

	if err := Migrate(t.Context(), db.dsn, quiet); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(up, db.schema(t)); diff != "" {
		t.Errorf("second up differs from first (-first +second):\n%s", diff)
	}
}

func TestMigrateConcurrently(t *testing.T) {
	t.Parallel()
	db := openEmpty(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if err := Migrate(t.Context(), db.dsn, quiet); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	head, err := headVersion(migrations.FS)
	if err != nil {
		t.Fatal(err)
	}
	db.wantStatus(t, migrations.FS, SchemaStatus{Version: head, Head: head})
	db.wantHistory(t, head)
}

// threeFiles are migrations for tests that need a middle.
var threeFiles = fstest.MapFS{
	"000001_history.up.sql":   {Data: []byte("create table schema_history (version bigint primary key);\ninsert into schema_history(version) values (1);")},
	"000001_history.down.sql": {Data: []byte("drop table schema_history;")},
	"000002_two.up.sql":       {Data: []byte("create table two ();\ninsert into schema_history(version) values (2);")},
	"000002_two.down.sql":     {Data: []byte("drop table two; delete from schema_history where version = 2;")},
	"000003_three.up.sql":     {Data: []byte("create table three ();\ninsert into schema_history(version) values (3);")},
	"000003_three.down.sql":   {Data: []byte("drop table three; delete from schema_history where version = 3;")},
}

// with returns threeFiles with another text for one of them.
func with(name, sql string) fstest.MapFS {
	files := maps.Clone(threeFiles)
	files[name] = &fstest.MapFile{Data: []byte(sql)}
	return files
}

// upTo returns those of threeFiles that a binary of that version knows.
func upTo(version int) fstest.MapFS {
	files := fstest.MapFS{}
	for name, f := range threeFiles {
		if name <= fmt.Sprintf("%06d_~", version) {
			files[name] = f
		}
	}
	return files
}

func TestMigrateHealsInterruptedMigration(t *testing.T) {
	t.Parallel()
	// The states that a kill can leave: what was committed, and what the library had marked.
	tests := []struct {
		name      string
		committed int
		marked    int
	}{
		{"first, not committed", 0, 1},
		{"first, committed", 1, 1},
		{"middle, not committed", 1, 2},
		{"middle, committed", 2, 2},
		{"last, not committed", 2, 3},
		{"last, committed", 3, 3},
		{"on the way down, not committed", 3, 2},
		{"on the way down, committed", 2, 2},
		{"on the way down to nothing, not committed", 1, database.NilVersion},
		{"on the way down to nothing, committed", 0, database.NilVersion},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := openEmpty(t)
			if tt.committed > 0 {
				if err := migrateUp(t.Context(), db.dsn, upTo(tt.committed), quiet); err != nil {
					t.Fatal(err)
				}
			}
			db.mark(t, tt.marked, true)
			db.wantStatus(t, threeFiles, SchemaStatus{Version: int64(max(tt.marked, 0)), Head: 3, Dirty: true})

			if err := migrateUp(t.Context(), db.dsn, threeFiles, quiet); err != nil {
				t.Fatal(err)
			}
			db.wantStatus(t, threeFiles, SchemaStatus{Version: 3, Head: 3})
			db.wantHistory(t, 3)
		})
	}
}

// A killed weir's last statement works on in the server, and commits, while the next weir starts.
func TestMigrateWaitsForOrphanedStatement(t *testing.T) {
	t.Parallel()
	db := openEmpty(t)
	if err := migrateUp(t.Context(), db.dsn, upTo(1), quiet); err != nil {
		t.Fatal(err)
	}
	db.mark(t, 2, true)
	orphan := db.holdLibraryLock(t)
	tx, err := orphan.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `create table two ()`); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `insert into schema_history(version) values (2)`); err != nil {
		t.Fatal(err)
	}

	result := make(chan error, 1)
	go func() { result <- migrateUp(t.Context(), db.dsn, threeFiles, quiet) }()
	db.awaitWaiter(t)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := orphan.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	db.wantHistory(t, 3)
}

func TestMigrateRefusesNewerDatabase(t *testing.T) {
	t.Parallel()
	for _, dirty := range []bool{false, true} {
		t.Run(fmt.Sprintf("dirty=%v", dirty), func(t *testing.T) {
			t.Parallel()
			db := openEmpty(t)
			if err := migrateUp(t.Context(), db.dsn, threeFiles, quiet); err != nil {
				t.Fatal(err)
			}
			db.mark(t, 3, dirty)
			before := db.schema(t)

			err := migrateUp(t.Context(), db.dsn, upTo(2), quiet)
			var tooNew *SchemaTooNewError
			if !errors.As(err, &tooNew) || *tooNew != (SchemaTooNewError{Database: 3, Binary: 2}) {
				t.Fatalf("error %v, want *SchemaTooNewError of 3 and 2", err)
			}
			if diff := cmp.Diff(before, db.schema(t)); diff != "" {
				t.Errorf("the schema changed:\n%s", diff)
			}
			db.wantStatus(t, upTo(2), SchemaStatus{Version: 3, Head: 2, Dirty: dirty})
			db.wantHistory(t, 3)
		})
	}
}

func TestMigrateIsBoundedByContext(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		block func(*testDB, *testing.T) *pgx.Conn
		want  string // %d is the blocking session
	}{
		{"another weir at work", (*testDB).holdMigrationLock, "another weir (database session %d) still migrates"},
		{"the library's lock held by a stranger", (*testDB).holdLibraryLock, "waiting for locks of database sessions [%d]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := openEmpty(t)
			blocker := tt.block(db, t)

			for range 2 { // the second is no worse off for the first
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				begin := time.Now()
				err := Migrate(ctx, db.dsn, quiet)
				cancel()
				if took := time.Since(begin); took > 5*time.Second {
					t.Errorf("took %v with a limit of 300ms", took)
				}
				want := fmt.Sprintf(tt.want, blocker.PgConn().PID())
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want a deadline and %q", err, want)
				}
			}
			db.awaitSessions(t, 2) // ours and the blocker's: the calls that gave up leave none

			if err := blocker.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := Migrate(t.Context(), db.dsn, quiet); err != nil {
				t.Errorf("after the blocker is gone: %v", err)
			}
		})
	}
}

func TestMigrateCancelledInStatement(t *testing.T) {
	t.Parallel()
	db := openEmpty(t)
	slow := with("000002_two.up.sql", "select pg_sleep(600); insert into schema_history(version) values (2);")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- migrateUp(ctx, db.dsn, slow, quiet) }()
	db.await(t, `select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')`)
	running, err := migrationStatus(t.Context(), db.conn, slow)
	if want := (SchemaStatus{Version: 2, Head: 3, Dirty: true, Running: true}); running != want || err != nil {
		t.Errorf("status %+v, %v, want %+v", running, err, want)
	}

	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	db.awaitSessions(t, 1) // the one with the statement is gone
	if err := migrateUp(t.Context(), db.dsn, threeFiles, quiet); err != nil {
		t.Fatal(err)
	}
	db.wantHistory(t, 3)
}

func TestMigrateSilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never says a word
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := Migrate(ctx, "postgres://weir@"+l.Addr().String()+"/weir?sslmode=disable", quiet); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want context.DeadlineExceeded", err)
	}
}

func TestMigrateErrorIsShort(t *testing.T) {
	t.Parallel()
	db := openEmpty(t)
	const tail = "-- a thousand lines more --"
	broken := with("000002_two.up.sql", "create table two ();\n\ncreate table two ();\n"+tail)
	err := migrateUp(t.Context(), db.dsn, broken, quiet)
	if err == nil || strings.Contains(err.Error(), tail) {
		t.Fatalf("error %v, want one without the SQL", err)
	}
	for _, want := range []string{"schema version 2", `relation "two" already exists`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}

	syntax := with("000002_two.up.sql", "create table two ();\n\ncreate tabel three ();\n"+tail)
	err = migrateUp(t.Context(), db.dsn, syntax, quiet)
	if err == nil || strings.Contains(err.Error(), tail) || !strings.Contains(err.Error(), "schema version 2: line 3: ") {
		t.Errorf("error %v, want the version and the line and no SQL", err)
	}

	if err := migrateUp(t.Context(), db.dsn, threeFiles, quiet); err != nil {
		t.Errorf("with the file repaired: %v", err)
	}
	db.wantHistory(t, 3)
}

func TestMigrateTakesPoolDSN(t *testing.T) {
	t.Parallel()
	db := openEmpty(t)
	dsn := storetest.With(storetest.With(db.dsn, "pool_max_conns", "4"), "statement_timeout", "1")
	if err := Migrate(t.Context(), dsn, quiet); err != nil {
		t.Error(err)
	}
}

// testDB is a database and a session on it to look at it with.
type testDB struct {
	dsn  string
	conn *pgx.Conn
}

func open(t *testing.T, dsn string) *testDB {
	t.Helper()
	return &testDB{dsn: dsn, conn: connect(t, dsn)}
}

func openEmpty(t *testing.T) *testDB {
	t.Helper()
	return open(t, storetest.Empty(t))
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func (db *testDB) wantStatus(t *testing.T, files fs.FS, want SchemaStatus) {
	t.Helper()
	got, err := migrationStatus(t.Context(), db.conn, files)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if ready := want.Version == want.Head && !want.Dirty; got.Ready() != ready {
		t.Errorf("Ready() = %v, want %v", got.Ready(), ready)
	}
}

// wantHistory says that every migration up to head was committed, once.
func (db *testDB) wantHistory(t *testing.T, head int64) {
	t.Helper()
	var want []int64
	for v := range head {
		want = append(want, v+1)
	}
	var got []int64
	err := db.conn.QueryRow(t.Context(), `select array_agg(version order by version) from schema_history`).Scan(&got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

// mark leaves the library's table as the library would.
func (db *testDB) mark(t *testing.T, version int, dirty bool) {
	t.Helper()
	for _, sql := range []string{
		`create table if not exists schema_migrations (version bigint not null primary key, dirty boolean not null)`,
		`truncate schema_migrations`,
		fmt.Sprintf(`insert into schema_migrations (version, dirty) values (%d, %v)`, version, dirty),
	} {
		if _, err := db.conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// holdMigrationLock is another weir at work, holdLibraryLock another user of the library, or a killed weir's session.
func (db *testDB) holdMigrationLock(t *testing.T) *pgx.Conn {
	t.Helper()
	conn := connect(t, db.dsn)
	if _, err := conn.Exec(t.Context(), `select pg_advisory_lock($1::int, $2::int)`, migrationLockClass, migrationLockID); err != nil {
		t.Fatal(err)
	}
	return conn
}

func (db *testDB) holdLibraryLock(t *testing.T) *pgx.Conn {
	t.Helper()
	conn := connect(t, db.dsn)
	id, err := database.GenerateAdvisoryLockId(conn.Config().Database, "public", "schema_migrations")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `select pg_advisory_lock(`+id+`)`); err != nil {
		t.Fatal(err)
	}
	return conn
}

// awaitSessions waits until that many sessions are left; a server process ends a moment after its connection.
func (db *testDB) awaitSessions(t *testing.T, n int) {
	t.Helper()
	db.await(t, fmt.Sprintf(
		`select count(*) = %d from pg_stat_activity where datname = current_database() and backend_type = 'client backend'`, n))
}

// awaitWaiter waits until some session waits for an advisory lock.
func (db *testDB) awaitWaiter(t *testing.T) {
	t.Helper()
	db.await(t, `select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'advisory')`)
}

func (db *testDB) await(t *testing.T, condition string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for {
		var holds bool
		if err := db.conn.QueryRow(t.Context(), condition).Scan(&holds); err != nil {
			t.Fatal(err)
		}
		if holds {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("not so in 30 s: %s", condition)
		case <-tick.C:
		}
	}
}

// schema describes everything a migration can make, a line each, sorted.
func (db *testDB) schema(t *testing.T) []string {
	t.Helper()
	rows, err := db.conn.Query(t.Context(), `
		with ours as (select oid from pg_namespace where nspname = 'public')
		select line from (
			select format('relation %s %s %s %s rls=%s', relname, relkind, reloptions, relacl, relrowsecurity) as line
			from pg_class where relnamespace in (select oid from ours)
			union all
			select format('column %s.%s %s %s notnull=%s default=%s generated=%s%s storage=%s',
				relname, attname, attnum, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid),
				attgenerated, attidentity, attstorage)
			from pg_class c join pg_attribute a on attrelid = c.oid left join pg_attrdef d on adrelid = attrelid and adnum = attnum
			where relnamespace in (select oid from ours) and relkind in ('r', 'p', 'v', 'm') and attnum > 0 and not attisdropped
			union all
			select format('constraint %s on %s %s', conname, conrelid::regclass, pg_get_constraintdef(oid))
			from pg_constraint where connamespace in (select oid from ours)
			union all
			select pg_get_indexdef(indexrelid)
			from pg_index join pg_class c on c.oid = indexrelid where relnamespace in (select oid from ours)
			union all
			select pg_get_triggerdef(t.oid)
			from pg_trigger t join pg_class c on c.oid = tgrelid where relnamespace in (select oid from ours) and not tgisinternal
			union all
			select pg_get_functiondef(oid)
			from pg_proc where pronamespace in (select oid from ours) and prokind in ('f', 'p')
			union all
			select format('view %s %s', relname, pg_get_viewdef(oid))
			from pg_class where relnamespace in (select oid from ours) and relkind in ('v', 'm')
			union all
			select format('type %s %s %s', typname, typtype,
				(select string_agg(enumlabel, ',' order by enumsortorder) from pg_enum where enumtypid = t.oid))
			from pg_type t where typnamespace in (select oid from ours) and typtype in ('e', 'd', 'r')
			union all
			select format('policy %s on %s %s %s', polname, polrelid::regclass, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
			from pg_policy
			union all
			select format('schema %s', nspname) from pg_namespace where nspname !~ '^pg_' and nspname not in ('public', 'information_schema')
			union all
			select format('extension %s', extname) from pg_extension where extname <> 'plpgsql'
		) as schema(line) order by line collate "C"`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return lines
}
