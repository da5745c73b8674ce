package store_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/review"
	"weir/store"
	"weir/store/ledger"
)

// Of a thousand decisions of one instant every page size gives each once, whatever
// is written and numbered meanwhile; and so does the list of screenings.
func TestEveryDecisionOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.thousandOfOneInstant()
	want := one[[]string](w, `select array_agg(id::text order by id) from screening`)
	w.sequenceAll(1000)
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, _, err := w.desk.Submit(t.Context(), principal("bo"), spec(fmt.Sprint("later/", i), ""), nil); err != nil {
				t.Errorf("submit: %v", err)
				return
			}
			if _, err := w.store.Sequence(t.Context(), 100); err != nil {
				t.Errorf("sequence: %v", err)
				return
			}
		}
	})
	for _, size := range []int{1, 7, 500} {
		seen := map[string]int{}
		last := int64(-1)
		err := store.RecordsBy(t.Context(), w.store, ledger.Selection{Project: "default"}, size, func(r *ledger.Record) error {
			seen[r.DecisionID]++
			if r.LogIndex <= last {
				t.Errorf("page size %d: %d after %d", size, r.LogIndex, last)
			}
			last = r.LogIndex
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		once(t, fmt.Sprintf("records in pages of %d", size), seen, want)

		seen = map[string]int{}
		for q := (review.ListQuery{Limit: size}); ; {
			list, err := w.store.Screenings(t.Context(), "default", q)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range list {
				seen[s.ID]++
			}
			if len(list) < size {
				break
			}
			q.After = &review.Cursor{At: list[size-1].CreatedAt, ID: list[size-1].ID}
		}
		once(t, fmt.Sprintf("list in pages of %d", size), seen, want)
	}
	close(stop)
	writing.Wait()
}

func once(t *testing.T, what string, seen map[string]int, want []string) {
	t.Helper()
	missing := 0
	for _, id := range want {
		if seen[id] == 0 {
			missing++
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s: %s came %d times", what, id, n)
		}
	}
	if missing > 0 {
		t.Errorf("%s: %d of %d are missing", what, missing, len(want))
	}
}

// thousandOfOneInstant multiplies a screening in one transaction.
func (w *world) thousandOfOneInstant() {
	w.Helper()
	s := w.submit("bo", spec("r", ""))
	w.exec(`with n as (select gen_random_uuid() as id from generate_series(1, 999)),
			new as (insert into screening (id, project, spec_sha256, canonical_sha256, run_ref, team, submitter, owner, on_behalf_of, as_of, engine, outcome,
				decision_sha256, packs_sha256, findings_sha256, status, decided_by, admitted_until, created_at, month)
			select n.id, project, spec_sha256, canonical_sha256, run_ref, team, submitter, owner, on_behalf_of, as_of, engine, outcome,
				decision_sha256, packs_sha256, findings_sha256, status, decided_by, admitted_until, created_at, month from n, screening s where s.id = $1),
			bytes as (insert into payload (screening_id, project, outcome, month, spec, decision)
				select n.id, p.project, p.outcome, p.month, p.spec, p.decision from n, payload p where p.screening_id = $1)
		insert into audit_event (screening_id, project, type, actor, body) select n.id, e.project, e.type, e.actor, e.body from n, audit_event e where e.screening_id = $1`, s.ID)
	w.exec(`analyze`)
}

// Who asks for a few of a long log does not wait for a statement that reads all of it.
func TestRecordsAreReadInLooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.submit("bo", spec("few", "1"))
	w.thousandOfOneInstant()
	last := w.submit("bo", spec("few", "2"))
	w.sequenceAll(2000)
	seen := &statements{}
	st, err := store.Open(t.Context(), w.dsn, store.Traced(seen))
	w.ok("open", err)
	t.Cleanup(st.Close)
	var got []string
	w.ok("records", store.RecordsBy(t.Context(), st, ledger.Selection{Project: "default", RunRef: "few"}, 2, func(r *ledger.Record) error {
		got = append(got, r.DecisionID)
		return nil
	}))
	if diff := cmp.Diff([]string{first.ID, last.ID}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, s := range seen.take() {
		if !strings.Contains(s.sql, "prev_hash") {
			continue
		}
		var plan []byte
		w.ok("explain", store.Of(w.store, "default").QueryRow(t.Context(), `explain (analyze, format json) `+s.sql, s.args...).Scan(&plan))
		for node, rows := range rowsRead(t, plan) {
			if rows > 2*40 {
				t.Fatalf("%s reads %d rows", node, rows)
			}
		}
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("bo", spec("even/1", ""))
	odd := w.submit("bo", spec("odd/1", "", "minors=present", "sexual_content=present"))
	w.submit("bo", spec("odd/2", "", "violent=present"))
	if _, err := w.erase(odd.ID); err != nil {
		t.Fatal(err)
	}
	w.sequenceAll(100)
	read := func(q ledger.Selection, after int64) (out []*ledger.Record) {
		t.Helper()
		q.Project = "default"
		err := w.store.Records(t.Context(), q, after, func(r *ledger.Record) error { out = append(out, r); return nil }, func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	all := read(ledger.Selection{}, -1)
	if len(all) != 3 {
		t.Fatalf("%d records, want 3", len(all))
	}
	if r := all[0]; r.Result.Outcome != "admit" || r.Input.Spec == nil || *r.Input.Spec != string(spec("even/1", "")) || len(r.Results) != 3 ||
		len(r.Bundles) != 2 || len(r.Erased)+len(r.Masked) != 0 || r.RequestedBy != "bo" || r.Result.Status != "admitted" {
		t.Errorf("%+v", r)
	}
	gone := []string{"/bundles", "/input/spec", "/results"}
	if r := all[1]; r.Input.Spec != nil || r.Erasure == nil || r.Erasure.Actor != "chi" || !cmp.Equal(r.Erased, gone) ||
		!cmp.Equal(r.Result.Causes, []string{"safety:sexualised_minors"}) {
		t.Errorf("erased: %+v", r)
	}
	for _, r := range read(ledger.Selection{DigestsOnly: true}, -1) {
		if r.Input.Spec != nil || len(r.Results) != 0 || !cmp.Equal(append(r.Erased, r.Masked...), gone) {
			t.Errorf("without payloads: %+v", r)
		}
	}
	if rest := read(ledger.Selection{}, all[0].LogIndex); !cmp.Equal(rest, all[1:]) {
		t.Errorf("going on: %s", cmp.Diff(all[1:], rest))
	}
	if odd := read(ledger.Selection{RunRef: "odd/", Outcome: "escalate"}, -1); len(odd) != 1 || odd[0].Labels.RunRef != "odd/2" {
		t.Errorf("filtered: %+v", odd)
	}
	if two := read(ledger.Selection{From: all[0].Timestamp, To: all[2].Timestamp}, -1); !cmp.Equal(two, all[:2]) {
		t.Errorf("until the last: %s", cmp.Diff(all[:2], two))
	}
}
