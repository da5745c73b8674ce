package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/review"
	"weir/screening"
	"weir/store"
	"weir/webhooks"
)

// statements keeps what a store sends.
type statements struct {
	mu   sync.Mutex
	list []statement
}

type statement struct {
	sql  string
	args []any
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	s.add(d.SQL, d.Args)
	return ctx
}
func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (*statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (s *statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	s.add(d.SQL, d.Args)
}
func (*statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (s *statements) add(sql string, args []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, statement{sql, args})
}

func (s *statements) take() []statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list
}

// manyScreenings makes 100,000 screenings of the last 100 days, a fifth of them
// escalated, of which 500 are open, with findings, events, votes and messages.
const manyScreenings = `
insert into spec (project, sha256, canonical_sha256)
	select 'default', sha256(n::text::bytea), sha256(n::text::bytea) from generate_series(1, 100000) n;
insert into screening (id, project, spec_sha256, canonical_sha256, run_ref, team, submitter, owner, on_behalf_of, as_of, engine, outcome,
		decision_sha256, packs_sha256, findings_sha256, status, decided_by, admitted_until, created_at)
	select md5('s' || n)::uuid, 'default', sha256(n::text::bytea), sha256(n::text::bytea), 'run/' || n, 'team' || n % 50, 'ana', 'ana', '', '2026-11-01', '1',
		case when n % 5 = 0 then 'escalate' when n % 5 = 1 then 'block' else 'admit' end, sha256('d'), sha256('p'), sha256('f'),
		case when n % 5 = 0 then case when n > 97500 then 'pending' else 'blocked' end when n % 5 = 1 then 'blocked' else 'admitted' end,
		case when n % 5 = 0 and n <= 97500 then 'people' else 'packs' end,
		case when n % 5 > 1 then now() + interval '1 day' end, now() - (100000 - n) * interval '86 seconds'
	from generate_series(1, 100000) n;
insert into payload (screening_id, project, outcome, month, spec, decision) select id, project, outcome, month, '{}', convert_to(repeat('x', 600), 'UTF8') from screening;
insert into screening_party (screening_id, project, name) select id, project, 'ana' from screening;
insert into finding (screening_id, project, term, pack, state, cause, effect, severity, causing)
	select s.id, s.project, 'ethics:term_' || t, 'pledge', 'violated', '', case s.outcome when 'block' then 'block' else 'escalate' end,
		(array['low', 'medium', 'high'])[1 + t % 3], true
	from screening s, generate_series(1, 3) t where s.outcome <> 'admit';
insert into audit_event (screening_id, type, actor, body) select id, 'screening.decided', 'ana', '{}' from screening where outcome = 'escalate' limit 5000;
insert into review (id, project, screening_id, state, outcome, event, from_state, opened_at, due_at, expires_at, closed_at)
	select md5('r' || s.id)::uuid, 'default', s.id, case when s.status = 'pending' then 'open' else 'decided' end,
		case when s.status <> 'pending' then 'block' end, case when s.status = 'pending' then 'open' else 'decide' end,
		case when s.status <> 'pending' then 'open' end, s.created_at, s.created_at + interval '4 days', s.created_at + interval '4 days',
		case when s.status <> 'pending' then s.created_at + interval '3 hours' end
	from screening s where s.outcome = 'escalate';
insert into review_panel (review_id, project, panel, policy, group_name, quorum, due_at, due_seconds, terms, endpoints)
	select id, project, 1, 'general', case when random() < 0.5 then 'general' else 'legal' end, 1, due_at, 345600, '{ethics:term_1}', '{}' from review;
insert into vote (review_id, project, panel, policy, person, choice, reason, terms, group_name, spec_sha256)
	select r.id, r.project, 1, 'general', 'bo', 'block', 'r', '{}', 'general', s.spec_sha256 from review r join screening s on s.id = r.screening_id where r.state = 'decided';
insert into exposure (project, person, screening_id, excerpts, at) select 'default', 'p' || n % 50, md5('s' || n)::uuid, 1, now() - n * interval '1 minute'
	from generate_series(1, 50000) n;
insert into console_session (id_sha256, project, person, scopes) select sha256(n::text::bytea), 'default', 'bo', '{review}' from generate_series(1, 2000) n;
`

// No page reads a big table from end to end, by the plans of what it really
// sends, at 100,000 screenings.
func TestConsolePlans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for sql := range strings.SplitSeq(manyScreenings, ";\n") {
		if _, err := w.pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", strings.TrimSpace(sql)[:40], err)
		}
	}
	if _, err := w.pool.Exec(t.Context(), `vacuum analyze`); err != nil { // as autovacuum does, which tests turn off
		t.Fatal(err)
	}
	var id, screeningID, runRef string
	if err := w.pool.QueryRow(t.Context(), `select r.id::text, s.id::text, s.run_ref from review r join screening s on s.id = r.screening_id
		where r.closed_at is null limit 1`).Scan(&id, &screeningID, &runRef); err != nil {
		t.Fatal(err)
	}
	seen := &statements{}
	st, err := store.Open(t.Context(), w.dsn, store.Traced(seen))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	ctx, p := t.Context(), "default"
	queue := func(q review.QueueQuery) func() error {
		return func() error { q.Limit = 26; _, err := st.Queue(ctx, p, q); return err }
	}
	for name, ask := range map[string]func() error{
		"session":           func() error { _, err := st.Session(ctx, screening.Sum([]byte("7"))); return err },
		"queue, mine":       queue(review.QueueQuery{View: review.QueueMine, Person: "bo", Groups: []string{"general"}}),
		"queue, open":       queue(review.QueueQuery{View: review.QueueOpen}),
		"queue, filtered":   queue(review.QueueQuery{View: review.QueueOpen, Term: "ethics:term_1", Severity: "high", Team: "team5", Groups: []string{"legal"}}),
		"queue, next page":  queue(review.QueueQuery{View: review.QueueOpen, After: &review.Cursor{At: time.Now(), ID: id}}),
		"queue, overdue":    queue(review.QueueQuery{View: review.QueueOverdue}),
		"queue, closed":     queue(review.QueueQuery{View: review.QueueClosed}),
		"review":            func() error { _, err := st.Review(ctx, p, id); return err },
		"screening":         func() error { _, err := st.Screening(ctx, p, screeningID); return err },
		"spec":              func() error { _, err := st.SpecBytes(ctx, p, screening.Sum([]byte("7"))); return err },
		"history":           func() error { _, err := st.History(ctx, "default", screeningID, 0, 12); return err },
		"superseded":        func() error { _, err := st.SupersededBy(ctx, p, runRef, screeningID); return err },
		"screenings":        func() error { _, err := st.Screenings(ctx, p, review.ListQuery{Limit: 26}); return err },
		"screenings of one": func() error { _, err := st.Screenings(ctx, p, review.ListQuery{Limit: 26, RunRef: runRef}); return err },
		"pending ones": func() error {
			_, err := st.Screenings(ctx, p, review.ListQuery{Limit: 26, Status: review.StatusPending})
			return err
		},
		"of none": func() (err error) {
			for _, status := range []review.Status{review.StatusExpired, review.StatusSuperseded, review.StatusWithdrawn, review.StatusRevoked} {
				_, none := st.Screenings(ctx, p, review.ListQuery{Limit: 26, Status: status})
				err = errors.Join(err, none)
			}
			return err
		},
		"dashboard":  func() error { _, err := st.Dashboard(ctx, p, 30); return err },
		"exposure":   func() error { _, err := st.Exposure(ctx, p, "p7"); return err },
		"deliveries": func() error { _, err := st.Deliveries(ctx, p, webhooks.RecordQuery{Limit: 26}); return err },
	} {
		start := time.Now()
		err := ask()
		took := time.Since(start)
		sent := seen.take()
		if err != nil && name != "superseded" && name != "spec" || len(sent) == 0 {
			t.Errorf("%s: %d statements, %v", name, len(sent), err)
		}
		t.Logf("%s: %v", name, took)
		for _, s := range sent {
			for _, table := range fullReads(t, store.Of(w.store, p), s) {
				t.Errorf("%s reads %s from end to end: %.80s", name, table, strings.Join(strings.Fields(s.sql), " "))
			}
		}
	}
	// A waiver is confirmed among 40,000 findings of its term, of which 500 wait.
	var plan []byte
	if err := store.Of(w.store, p).QueryRow(ctx, `explain (analyze, format json) `+store.WaitingSQL, p, "ethics:term_1", make([]byte, 32), make([]byte, 32), "run/", 1000).Scan(&plan); err != nil {
		t.Fatal(err)
	}
	for node, rows := range rowsRead(t, plan) {
		if rows > 1000 {
			t.Errorf("%s reads %d rows for a waiver", node, rows)
		}
	}
	// The check itself notices one.
	if full := fullReads(t, store.Of(w.store, p), statement{sql: `select count(*) from finding where cause = $1`, args: []any{""}}); len(full) == 0 {
		t.Error("a full read is not noticed")
	}
}

// fullReads names the big tables that a statement's plan reads in sequence, for who
// asks by db: what row-level security adds is part of a plan.
func fullReads(t *testing.T, db interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}, s statement) (tables []string) {
	t.Helper()
	var plan []byte
	if err := db.QueryRow(t.Context(), `explain (format json) `+s.sql, s.args...).Scan(&plan); err != nil {
		if strings.HasPrefix(s.sql, "begin") || strings.HasPrefix(s.sql, "set local") || strings.HasPrefix(s.sql, "commit") || strings.HasPrefix(s.sql, "rollback") {
			return nil
		}
		t.Fatalf("explain %s: %v", s.sql, err)
	}
	var parsed any
	if err := json.Unmarshal(plan, &parsed); err != nil {
		t.Fatal(err)
	}
	big := map[string]bool{"screening": true, "spec": true, "finding": true, "screening_party": true, "review": true, "review_panel": true, "vote": true,
		"audit_event": true, "exposure": true, "console_session": true, "lineage": true}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, part := range v {
				walk(part)
			}
		case map[string]any:
			if table, _ := v["Relation Name"].(string); v["Node Type"] == "Seq Scan" && big[table] {
				tables = append(tables, table)
			}
			for _, part := range v {
				walk(part)
			}
		}
	}
	walk(parsed)
	return tables
}

// Exposures are counted per person and over time; a login link, once.
func TestExposure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("ana", spec("run/a", "", "personal_data=present"))
	for i := range 3 {
		e, err := w.store.NoteExposure(t.Context(), "default", "bo", s.ID, 2)
		if err != nil || e.Today != i+1 || e.Week != i+1 {
			t.Fatalf("%+v, %v", e, err)
		}
	}
	if e, err := w.store.Exposure(t.Context(), "default", "chi"); err != nil || e != (review.Exposure{}) {
		t.Errorf("of another: %+v, %v", e, err)
	}
	if _, err := w.pool.Exec(t.Context(), `delete from exposure`); err == nil {
		t.Error("what was opened can be forgotten")
	}
}
