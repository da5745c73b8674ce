package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/review"
	"weir/screening"
)

// Of every spec the latest screening of the window is read, oldest first, of this
// project only, with what it came to; whatever the size of the slices.
func TestStoredSpecs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := spec("one", ""), spec("two", "", "personal_data=present", "violent=unknown")
	first := w.submit("bo", one)
	escalated := w.submit("bo", two)
	again := w.submit("bo", one) // takes the place of the first
	if again.ID == first.ID {
		t.Fatal("the admitted spec was not screened anew")
	}
	other := principal("bo")
	other.Project = "other"
	if _, _, err := w.desk.Submit(t.Context(), other, spec("three", ""), nil); err != nil {
		t.Fatal(err)
	}
	old := w.submit("bo", spec("old", ""))
	w.exec(`update screening set created_at = now() - interval '40 days' where id = $1`, old.ID)

	now, err := w.store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read := func(since, until time.Time, limit int) (ids []string) {
		q := review.StoredQuery{Since: since, Until: until, Limit: limit}
		for {
			list, next, err := w.store.StoredSpecs(t.Context(), "default", q)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range list {
				if s.Superseded {
					if len(s.Raw) > 0 || s.Effects != nil {
						t.Errorf("the bytes of %s were read in vain", s.At.ID)
					}
					continue
				}
				ids = append(ids, s.At.ID)
			}
			if q.After = next; next == nil {
				return ids
			}
		}
	}
	month := now.AddDate(0, 0, -30)
	for limit := 1; limit < 5; limit++ {
		if d := cmp.Diff([]string{escalated.ID, again.ID}, read(month, now.Add(time.Second), limit)); d != "" {
			t.Errorf("in slices of %d: %s", limit, d)
		}
	}
	if d := cmp.Diff([]string{old.ID, escalated.ID, again.ID}, read(now.AddDate(0, 0, -50), now.Add(time.Second), 2)); d != "" {
		t.Errorf("since before: %s", d)
	}
	// A window that ends before a spec was screened again still has its first screening.
	if d := cmp.Diff([]string{first.ID, escalated.ID}, read(month, again.CreatedAt, 2)); d != "" {
		t.Errorf("until in between: %s", d)
	}

	list, _, err := w.store.StoredSpecs(t.Context(), "default", review.StoredQuery{Since: escalated.CreatedAt, Until: again.CreatedAt, Limit: 9})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d specs, %v", len(list), err)
	}
	want := review.StoredSpec{At: review.Cursor{At: escalated.CreatedAt, ID: escalated.ID}, RunRef: "two", SpecSHA256: screening.Sum(two),
		AsOf: escalated.AsOf, Engine: screening.EngineVersion, Outcome: screening.OutcomeEscalate, Raw: two,
		Effects: map[string]review.Effect{"ethics:personal_data_inside": {Effect: screening.Escalate, Finding: screening.Violated},
			"ethics:violent_inside": {Effect: screening.Observe, Finding: screening.NotCheckable}}}
	if d := cmp.Diff(want, list[0]); d != "" {
		t.Errorf("what is read of a spec: %s", d)
	}
}

// The packs that decided decide again alike: whatever a replay shows comes from the candidate.
func TestReplayOfTheSamePacksChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, s := range [][]byte{spec("a", ""), spec("b", "", "personal_data=present"), spec("c", "", "personal_data=unknown", "violent=present"),
		spec("d", "", "minors=present", "sexual_content=present"), spec("e", "", "personal_data=not_assessed", "violent=not_assessed")} {
		w.submit("bo", s)
	}
	p := principal("bo")
	p.Scopes = []review.Scope{review.ScopePolicy}
	q := review.ReplayQuery{Candidate: w.desk.Setup().Vocabulary, Until: time.Now().AddDate(1, 0, 0), Limit: 100}
	page, err := w.desk.Replay(t.Context(), p, q)
	if err != nil || page.Replayed != 5 || len(page.Differences) != 0 || page.Next != nil {
		t.Errorf("%+v (%v)", page, err)
	}
	p.Project = "other"
	if page, err := w.desk.Replay(t.Context(), p, q); err != nil || page.Replayed != 0 {
		t.Errorf("another project: %+v (%v)", page, err)
	}
	p.Scopes = []review.Scope{review.ScopeSubmit, review.ScopeReview, review.ScopeCurate, review.ScopeAdmin}
	if _, err := w.desk.Replay(t.Context(), p, q); err == nil {
		t.Error("replayed without the scope")
	}
}
