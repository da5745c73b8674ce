package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir/review"
	"weir/screening"
	"weir/store"
)

// tables says of every table whose its rows are, and what a request may do. A new
// table needs a line here and, where requests have a part in it, its policies.
var tables = map[string]struct {
	// project is SQL for the project of a row x; 'null' for the deployment's. Empty:
	// nothing in the table is a project's.
	project string
	rights  string // of requests
}{
	"spec":            {"x.project", "select insert update"},
	"screening":       {"x.project", "select insert update"},
	"screening_party": {"x.project", "select insert update"},
	"finding":         {"x.project", "select insert update"},
	"review":          {"x.project", "select insert update"},
	"review_panel":    {"x.project", "select insert update"},
	"vote":            {"x.project", "select insert update"},
	"idempotency":     {"x.project", "select insert update"},
	"waiver":          {"x.project", "select insert update"},
	"correction":      {"x.project", "select insert update"},
	"bypass":          {"x.project", "select insert update"},
	"exposure":        {"x.project", "select insert update"},
	"payload":         {"x.project", "select insert update delete"},
	"lineage":         {"x.project", "select insert"},
	"recall":          {"x.project", "select insert update"},
	"recall_work":     {"x.project", "select insert"},
	"api_key":         {"x.project", "select insert update"},
	"console_link":    {"x.project", "select insert update"},
	"console_session": {"x.project", "select insert update delete"},
	"review_note":     {"(select project from review where id = x.review_id)", "select insert update"},
	"correction_status": {"(select project from correction c where c.screening_id = x.screening_id and c.candidate_id = x.candidate_id)",
		"select insert update"},
	"delivery_attempt": {"(select project from delivery where id = x.delivery_id)", "select"},
	"audit_event":      {"x.project", "select insert"},
	"erasure":          {"x.project", "select insert"},
	"delivery":         {"nullif(x.project, '')", "select insert update"},

	"pack":              {"", "select"}, // what decides is for all to read
	"endpoint":          {"", "select update"},
	"endpoint_event":    {"", "select insert"},
	"log_origin":        {"", "select"},
	"log_node":          {"", "select"}, // hashes
	"log_checkpoint":    {"", "select"},
	"log_key":           {"", "select"}, // public ones
	"log_cosignature":   {"", "select"},
	"schema_history":    {"", ""},
	"schema_migrations": {"", ""},
}

// tenantTables are those with what is a project's.
func tenantTables() (names []string) {
	for name, t := range tables {
		if t.project != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// A table that nobody thought of is not reachable, and fails here.
func TestEveryTableIsSomebodys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rows, err := w.pool.Query(t.Context(), `select c.relname, c.relrowsecurity, c.relispartition,
			exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'project' and not a.attisdropped),
			(select concat_ws(' ', case when has_table_privilege(gate_role(), c.oid, 'select') then 'select' end,
				case when has_table_privilege(gate_role(), c.oid, 'insert') then 'insert' end,
				case when has_table_privilege(gate_role(), c.oid, 'update') then 'update' end,
				case when has_table_privilege(gate_role(), c.oid, 'delete') then 'delete' end,
				case when has_table_privilege(gate_role(), c.oid, 'truncate, references, trigger') then 'more' end))
		from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f') order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	missing := maps.Clone(tables)
	var name, rights string
	var guarded, part, named bool
	if _, err := pgx.ForEachRow(rows, []any{&name, &guarded, &part, &named, &rights}, func() error {
		want, known := tables[name]
		delete(missing, name)
		switch {
		case part: // read through the table that it is a part of, and by no other way
			if rights != "" {
				t.Errorf("part %s: requests may %s; only its table has a policy", name, rights)
			}
		case !known:
			t.Errorf("table %s is not in the list above: say whose its rows are, and give it policies if requests have a part in it", name)
		case rights != want.rights:
			t.Errorf("table %s: requests may %q, want %q", name, rights, want.rights)
		case rights != "" && !guarded:
			t.Errorf("table %s: requests may %s, and row-level security is off", name, rights)
		case named && want.project == "":
			t.Errorf("table %s has a column project, and the list says that its rows are nobody's", name)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for name := range missing {
		t.Errorf("table %s is in the list and not in the database", name)
	}
}

// What is left when a statement forgets its condition: nothing of another project.
func TestStatementsWithoutAConditionSeeOneProject(t *testing.T) {
	t.Parallel()
	w, _, _, _ := twoProjects(t, store.Config{})
	ours, nobodys := store.Of(w.store, "b"), freshNobody(t, w)
	for _, name := range tenantTables() {
		project := tables[name].project
		all := one[int](w, `select count(*) from `+name+` x`)
		want := one[int](w, `select count(*) from `+name+` x where `+project+` = 'b' or `+project+` is null`)
		foreign := one[int](w, `select count(*) from `+name+` x where `+project+` = 'a'`)
		if foreign == 0 || want == 0 {
			t.Errorf("%s: %d rows of a and %d that b may see; furnish must leave some of both", name, foreign, want)
			continue
		}
		var seen, theirs int
		if err := ours.QueryRow(t.Context(), `select count(*), count(*) filter (where `+project+` = 'a') from `+name+` x`).Scan(&seen, &theirs); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if seen != want || theirs != 0 {
			t.Errorf("%s: b sees %d of %d rows, %d of them of a; want %d", name, seen, all, theirs, want)
		}
		if err := nobodys.QueryRow(t.Context(), `select count(*) from `+name).Scan(&seen); err != nil || seen != 0 {
			t.Errorf("%s: without a project, %d rows (%v), want none", name, seen, err)
		}
		for _, change := range []string{`delete from ` + name, `update ` + name + ` set ` + firstColumn(w, name) + ` = ` + firstColumn(w, name)} {
			n, err := undone(t, ours, change)
			if err == nil && n > want {
				t.Errorf("%s: changed %d rows, b has %d", change, n, want)
			}
			// Not allowed, or refused by a trigger on a row of b's own.
			if err != nil && !code(err, "42501") && !code(err, "23001") && !code(err, "23503") && !code(err, "428C9") {
				t.Errorf("%s: %v", change, err)
			}
		}
		// A row of a's, written as b.
		row := one[string](w, `select to_json(x)::text from `+name+` x where `+project+` = 'a' limit 1`)
		if _, err := undone(t, ours, `insert into `+name+` overriding system value select * from json_populate_record(null::`+name+`, $1::json)`, row); !code(err, "42501") {
			t.Errorf("%s: a row of another project was written: %v", name, err)
		}
	}
}

// A row of b's own that hangs on something of a's.
func TestNothingHangsOnAnotherProject(t *testing.T) {
	t.Parallel()
	w, a, b, _ := twoProjects(t, store.Config{})
	ours := store.Of(w.store, "b")
	for name, sql := range map[string]string{
		"finding": `insert into finding (screening_id, project, term, pack, state, cause, effect, severity, causing)
			values ($1, 'b', 'ethics:x', 'p', 'violated', '', 'escalate', 'low', true)`,
		"screening_party": `insert into screening_party (screening_id, project, name) values ($1, 'b', 'mallory')`,
		"idempotency":     `insert into idempotency (project, principal, key_sha256, spec_sha256, screening_id) values ('b', 'x', sha256('x'), sha256('x'), $1)`,
		"waiver":          `insert into waiver select (jsonb_populate_record(w, jsonb_build_object('id', gen_random_uuid(), 'screening_id', $1::uuid))).* from waiver w limit 1`,
		"exposure":        `insert into exposure (project, person, screening_id, excerpts) values ('b', 'x', $1, 1)`,
		"audit_event":     `insert into audit_event (screening_id, project, type, actor, body) values ($1, 'b', 'review.decided', 'x', '{}')`,
		"delivery":        `insert into delivery (message_id, endpoint, type, project, screening_id, body) values ('m', 'one', 't', 'b', $1, '{}')`,
		"review":          `insert into review (id, project, screening_id, state, due_at) values (gen_random_uuid(), 'b', $1, 'open', now() + interval '1 hour')`,
		"bypass": `insert into bypass (project, id, submitter, bypassed_at, reason, spec_sha256, spec, run_ref, outcome, screening_id)
			values ('b', gen_random_uuid(), 'x', now(), 'r', sha256('x'), 'x', '', '', $1)`,
		"correction": `insert into correction select (jsonb_populate_record(c, jsonb_build_object('screening_id', $1::uuid))).* from correction c limit 1`,
	} {
		if _, err := undone(t, ours, sql, a.open.ID); !code(err, "23503") && !code(err, "23505") {
			t.Errorf("%s of b on a screening of a: %v, want a foreign key to refuse it", name, err)
		}
		if _, err := undone(t, ours, sql, b.open.ID); err != nil && !code(err, "23505") {
			t.Errorf("%s of b on a screening of b, which shows that the statement is right: %v", name, err)
		}
	}
	for name, sql := range map[string]string{
		"recall_work": `insert into recall_work (project, recall_id) values ('b', $1)`,
		"screening":   `update screening set status = 'revoked', decided_by = 'recall', recall_id = $1 where run_ref = 'decided'`,
	} {
		if _, err := undone(t, ours, sql, a.recall); !code(err, "23503") {
			t.Errorf("%s of b by a recall of a: %v, want a foreign key to refuse it", name, err)
		}
		if n, err := undone(t, ours, sql, b.recall); err != nil || n != 1 {
			t.Errorf("%s of b by a recall of b, which shows that the statement is right: %d, %v", name, n, err)
		}
	}
	for name, sql := range map[string]string{
		"review_note":  `insert into review_note (review_id, seq, kind, person, text) values ($1, 99, 'comment', 'x', 'x')`,
		"vote":         `insert into vote (review_id, project, panel, policy, person, choice, reason, terms, group_name, spec_sha256) values ($1, 'b', 1, 'p', 'x', 'admit', 'r', '{}', 'g', sha256('x'))`,
		"review_panel": `insert into review_panel (review_id, project, panel, policy, group_name, quorum, due_seconds, terms, endpoints) values ($1, 'b', 9, 'p', 'g', 1, 1, '{}', '{}')`,
	} {
		if _, err := undone(t, ours, sql, a.open.Review.ID); !code(err, "23503") && !code(err, "42501") {
			t.Errorf("%s of b on a review of a: %v", name, err)
		}
		if _, err := undone(t, ours, sql, b.open.Review.ID); err != nil {
			t.Errorf("%s of b on a review of b, which shows that the statement is right: %v", name, err)
		}
	}
}

// freshNobody is the database as a request sees it whose connection never had a project.
func freshNobody(t *testing.T, w *world) interface {
	QueryRow(context.Context, string, ...any) pgx.Row
} {
	t.Helper()
	st, err := store.Open(t.Context(), w.dsn, store.Config{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return store.Nobody(st)
}

// undone runs a statement, tells how many rows it changed, and takes it back.
func undone(t *testing.T, db interface {
	Begin(context.Context) (pgx.Tx, error)
}, sql string, args ...any) (int, error) {
	t.Helper()
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tag, err := tx.Exec(t.Context(), sql, args...)
	if rerr := tx.Rollback(t.Context()); rerr != nil {
		t.Fatal(rerr)
	}
	return int(tag.RowsAffected()), err
}

func code(err error, want string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == want
}

func firstColumn(w *world, table string) string {
	return one[string](w, `select attname::text from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped
		and attidentity = '' order by attnum limit 1`, table)
}

// A connection that had one project and gets another shows nothing of the first, and
// one that is given back in the middle of a submission neither.
func TestAConnectionChangesItsProject(t *testing.T) {
	t.Parallel()
	w, a, b, _ := twoProjects(t, store.Config{MaxConns: 1})
	for range 2 {
		for _, f := range []*furnished{a, b} {
			list, err := w.store.Screenings(t.Context(), f.project, review.ListQuery{Limit: 100})
			if err != nil || len(list) != 2 {
				t.Fatalf("%s: %d screenings, want 2 (%v)", f.project, len(list), err)
			}
			var seen []string
			rows, err := store.Of(w.store, f.project).Query(t.Context(), `select distinct project from screening`)
			if err == nil {
				seen, err = pgx.CollectRows(rows, pgx.RowTo[string])
			}
			if err != nil || !slices.Equal(seen, []string{f.project}) {
				t.Errorf("%s sees the screenings of %v (%v)", f.project, seen, err)
			}
			// The committer's own setting ends with its transaction.
			other := map[string]string{"a": "b", "b": "a"}[f.project]
			if _, _, err := w.desk.Submit(t.Context(), allOf(other, "bo"), f.openRaw, nil); err != nil {
				t.Fatal(err)
			}
			var project string
			if err := store.Of(w.store, f.project).QueryRow(t.Context(), `select min(project) from screening`).Scan(&project); err != nil || project != f.project {
				t.Errorf("%s sees a screening of %q (%v)", f.project, project, err)
			}
		}
	}
}

// captured keeps what the desk wanted to submit.
type captured struct {
	*store.Store
	subs []*review.Submission
}

func (c *captured) Submit(_ context.Context, sub *review.Submission) (review.Kept, error) {
	c.subs = append(c.subs, sub)
	return review.Kept{}, review.ErrInFlight
}

// Submissions of several projects go in one transaction, each under its own.
func TestAGroupOfSeveralProjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := &captured{Store: w.store}
	desk, err := review.NewDesk(c, setup(t), review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for i, project := range []string{"a", "b", "b", "a", "c"} {
		run := fmt.Sprintf("r%d", i)
		want[project] = append(want[project], run)
		if _, _, err := desk.Submit(t.Context(), allOf(project, "bo"), spec(run, "", "personal_data=present"), nil); !errors.Is(err, review.ErrInFlight) {
			t.Fatal(err)
		}
	}
	if _, err := store.WriteTogether(t.Context(), w.store, c.subs...); err != nil {
		t.Fatal(err)
	}
	if n := one[int](w, `select count(distinct xmin::text) from screening`); n != 1 {
		t.Fatalf("%d transactions; the test needs one", n)
	}
	got := map[string][]string{}
	for project := range want {
		list, err := w.store.Reviews(t.Context(), project, review.ReviewQuery{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			got[project] = append(got[project], r.Screening.RunRef)
			if len(r.Panels) == 0 || len(r.Screening.Parties) == 0 || r.Screening.Decision == nil {
				t.Errorf("%s: %+v is not whole", project, r)
			}
		}
		slices.Sort(got[project])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs by project (-want +got):\n%s", diff)
	}
	w.checkRecord()
}

// A submission is one round trip, whosever it is. A request for another project than
// the connection had is one more than its own, and the next none.
func TestRoundTripsOfProjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := newProxy(t, w.dsn, false)
	st, err := store.Open(t.Context(), p.dsn, store.Config{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	c := &captured{Store: st}
	desk, err := review.NewDesk(c, setup(t), review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i, project := range []string{"a", "b", "a", "a", "b"} {
		if _, _, err := desk.Submit(t.Context(), allOf(project, "bo"), spec(fmt.Sprintf("r%d", i), "", "personal_data=present"), nil); !errors.Is(err, review.ErrInFlight) {
			t.Fatal(err)
		}
	}
	var digest screening.Digest256
	read := func(project string) func() error {
		return func() error {
			if _, err := st.ScreeningOfSpec(t.Context(), project, digest); !errors.Is(err, review.ErrNotFound) {
				return err
			}
			return nil
		}
	}
	submit := func(i int) func() error {
		return func() error { _, err := st.Submit(t.Context(), c.subs[i]); return err }
	}
	authenticate := func() error {
		if _, err := st.Authenticate(t.Context(), "nobody", digest); !errors.Is(err, review.ErrUnauthenticated) {
			return fmt.Errorf("not unauthenticated: %w", err)
		}
		return nil
	}
	for _, step := range []struct {
		what string
		do   func() error
		want int64 // -1: statements are prepared the first time
	}{
		{"the first submission", submit(0), -1},
		{"the first read", read("a"), -1},
		{"the first key", authenticate, -1},
		{"a submission of b", submit(1), 1},
		{"a submission of a", submit(2), 1},
		{"the next of a", submit(3), 1},
		{"a read of a", read("a"), 1},
		{"a key", authenticate, 1},
		{"a read of a, after a key", read("a"), 1},
		{"a read of b", read("b"), 2},
		{"the next of b", read("b"), 1},
		{"a submission of b, after a read", submit(4), 1},
		{"a read of b, after a submission", read("b"), 1},
	} {
		before := p.exchanges.Load()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if n := p.exchanges.Load() - before; step.want >= 0 && n != step.want {
			t.Errorf("%s: %d round trips, want %d", step.what, n, step.want)
		}
	}
}

// Who asks for a connection of requests without saying for which project gets none.
func TestNoConnectionWithoutAProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := store.TakeRequestConnection(t.Context(), w.store); err == nil || !strings.Contains(err.Error(), "for no project") {
		t.Errorf("%v", err)
	}
	// An empty project is none.
	w.furnish("a")
	for _, project := range []string{"", "A", "a ", "*", "%"} {
		list, err := w.store.Screenings(t.Context(), project, review.ListQuery{Limit: 10})
		if err != nil || len(list) != 0 {
			t.Errorf("project %q: %d screenings, %v", project, len(list), err)
		}
	}
}
