package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/review"
	"weir/review/reviewtest"
	"weir/screening"
	"weir/store"
)

func TestSubmitKeepsEverythingOrNothing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		raw        []byte
		status     review.Status
		deliveries int
	}{
		{"admit", spec("r", ""), review.StatusAdmitted, 0},
		{"block", spec("r", "", "minors=present", "sexual_content=present"), review.StatusBlocked, 0},
		{"escalate, one panel", spec("r", "", "personal_data=present"), review.StatusPending, 2},
		{"escalate, two panels share an endpoint", spec("r", "", "personal_data=present", "violent=present"), review.StatusPending, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.submit("bo", tt.raw)
			if s.Status != tt.status || w.gate(tt.raw) != tt.status {
				t.Errorf("status %s, gate %s, want %s", s.Status, w.gate(tt.raw), tt.status)
			}
			raw, err := w.store.SpecBytes(t.Context(), "default", s.SpecSHA256)
			if err != nil || !bytes.Equal(raw, tt.raw) {
				t.Errorf("spec bytes differ from what was sent (%v)", err)
			}
			if n := one[int](w, `select count(*) from audit_event where screening_id = $1 and type = 'screening.decided'`, s.ID); n != 1 {
				t.Errorf("%d audit events, want 1", n)
			}
			if n := one[int](w, `select count(*) from delivery`); n != tt.deliveries {
				t.Errorf("%d deliveries, want %d", n, tt.deliveries)
			}
			if got := one[int](w, `select count(*) from finding where screening_id = $1 and causing`, s.ID); (got > 0) != (tt.status != review.StatusAdmitted) {
				t.Errorf("%d causing findings for status %s", got, tt.status)
			}
			if s.Status == review.StatusAdmitted {
				left := time.Until(*s.AdmittedUntil)
				if left < 6*24*time.Hour || left > 8*24*time.Hour {
					t.Errorf("admitted for %s, want about 7 days", left)
				}
			}
		})
	}
}

func TestFiftyParallelSubmissionsWithOneKeyAreOne(t *testing.T) {
	t.Parallel()
	for _, raw := range [][]byte{spec("r", ""), spec("r", "", "personal_data=present")} {
		w := newWorld(t)
		key := screening.Sum([]byte("k"))
		var wg sync.WaitGroup
		ids := make([]string, 50)
		for i := range ids {
			wg.Go(func() {
				for {
					s, _, err := w.desk.Submit(within(t, 30*time.Second), principal("bo"), raw, &key)
					if errors.Is(err, review.ErrInFlight) {
						continue
					}
					if err != nil {
						t.Errorf("submit: %v", err)
						return
					}
					ids[i] = s.ID
					return
				}
			})
		}
		wg.Wait()
		if u := slices.Compact(slices.Sorted(slices.Values(ids))); len(u) != 1 {
			t.Errorf("%d different screenings answered one key: %v", len(u), u)
		}
		if n := one[int](w, `select count(*) from screening`); n != 1 {
			t.Errorf("%d screenings kept, want 1", n)
		}
	}
}

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := screening.Sum([]byte("k"))
	submit := func(who string, raw []byte) (*review.Screening, bool, error) {
		return w.desk.Submit(t.Context(), principal(who), raw, &key)
	}
	first, existing, err := submit("bo", spec("a", ""))
	if err != nil || existing {
		t.Fatalf("first: existing %t, %v", existing, err)
	}
	again, existing, err := submit("bo", spec("a", ""))
	if err != nil || !existing || again.ID != first.ID {
		t.Errorf("replay: %v, existing %t, %v; want the first screening", again, existing, err)
	}
	if _, _, err := submit("bo", spec("b", "")); !errors.Is(err, review.ErrKeyReused) {
		t.Errorf("same key, other body: %v, want ErrKeyReused", err)
	}
	other, existing, err := submit("chi", spec("c", ""))
	if err != nil || existing || other.ID == first.ID {
		t.Errorf("another principal's key: existing %t, %v; want it independent", existing, err)
	}
}

func TestReplayedKeyTellsTheStatusOfNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key, raw := screening.Sum([]byte("k")), spec("r", "", "violent=present")
	s, _, err := w.desk.Submit(t.Context(), principal("dee"), raw, &key)
	if err != nil || s.Status != review.StatusPending {
		t.Fatalf("%v, %v", s, err)
	}
	if err := w.vote("bo", s, review.VoteAdmit); err != nil {
		t.Fatal(err)
	}
	now, _, err := w.desk.Submit(t.Context(), principal("dee"), raw, &key)
	if err != nil || now.ID != s.ID || now.Status != review.StatusAdmitted {
		t.Errorf("replay says %s (%v), want admitted", now.Status, err)
	}
}

func TestOpenReviewIsNotOpenedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := spec("r", "", "personal_data=present")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, _, err := w.desk.Submit(t.Context(), principal("bo"), raw, nil); err != nil && !errors.Is(err, review.ErrInFlight) {
				t.Errorf("submit: %v", err)
			}
		})
	}
	wg.Wait()
	if n := one[int](w, `select count(*) from review`); n != 1 {
		t.Errorf("%d reviews, want 1", n)
	}
}

func TestAnotherSpecOfTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	old := spec("r", "", "personal_data=present")
	s := w.submit("bo", old)
	if _, _, err := w.desk.Submit(t.Context(), principal("chi"), spec("r", "other"), nil); !errors.Is(err, review.ErrRunRefTaken) {
		t.Fatalf("another submitter: %v, want ErrRunRefTaken", err)
	}
	next := w.submit("bo", spec("r", "changed"))
	if got := w.gate(old); got != review.StatusSuperseded {
		t.Errorf("old spec is %s, want superseded", got)
	}
	old1, err := w.store.Screening(t.Context(), "default", s.ID)
	if err != nil || old1.SupersededBy != next.ID || old1.Review.State != review.Superseded {
		t.Errorf("old screening: superseded by %q, review %v (%v)", old1.SupersededBy, old1.Review, err)
	}
	want := map[string]int{"review.opened cancelled": 2, "review.superseded pending": 2}
	if diff := cmp.Diff(want, w.deliveries()); diff != "" {
		t.Errorf("deliveries (-want +got)\n%s", diff)
	}
	// An admission is superseded as well: approval of A never opens the gate for B.
	w.submit("bo", spec("r", "third"))
	if got := w.gate(spec("r", "changed")); got != review.StatusSuperseded {
		t.Errorf("earlier admission is %s, want superseded", got)
	}
	w.checkRecord()
}

func (w *world) deliveries() map[string]int {
	w.Helper()
	rows, err := w.pool.Query(w.Context(), `select type || ' ' || state from delivery`)
	if err != nil {
		w.Fatal(err)
	}
	got := map[string]int{}
	for rows.Next() {
		var k string
		if err := rows.Scan(&k); err != nil {
			w.Fatal(err)
		}
		got[k]++
	}
	return got
}

func TestHumanAnswersHold(t *testing.T) {
	t.Parallel()
	t.Run("an admission, for the same bytes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		raw := spec("r", "", "violent=present")
		s := w.submit("dee", raw)
		if err := w.vote("bo", s, review.VoteAdmit); err != nil {
			t.Fatal(err)
		}
		if again := w.submit("dee", raw); again.ID != s.ID || again.Status != review.StatusAdmitted {
			t.Errorf("resubmitted: %s %s, want the admitted screening", again.ID, again.Status)
		}
		w.exec(`update screening set admitted_until = now() - interval '1 second' where id = $1`, s.ID)
		if got := w.gate(raw); got != review.StatusExpired {
			t.Errorf("after its time the gate says %s, want expired", got)
		}
		if again := w.submit("dee", raw); again.ID == s.ID || again.Status != review.StatusPending {
			t.Errorf("after its time: %s, want a new review", again.Status)
		}
	})
	t.Run("a block, for the same content in other bytes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := w.submit("dee", spec("r", "", "violent=present"))
		if err := w.vote("bo", s, review.VoteBlock); err != nil {
			t.Fatal(err)
		}
		if again := w.submit("dee", spec("r", "another comment", "violent=present")); again.ID != s.ID || again.Status != review.StatusBlocked {
			t.Errorf("same content: %s, want the blocked screening", again.Status)
		}
	})
}

func TestExpiredReviewStaysClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := spec("r", "", "personal_data=present")
	s := w.submit("bo", raw)
	w.overdue(s)
	if got := w.gate(raw); got != review.StatusExpired {
		t.Errorf("overdue and not yet swept: %s, want expired", got)
	}
	if err := w.vote("chi", s, review.VoteAdmit); !errors.Is(err, review.ErrConflict) {
		t.Errorf("vote on an overdue review: %v, want a conflict", err)
	}
	for _, want := range []int{1, 0} {
		if n, err := w.desk.Expire(t.Context()); err != nil || n != want {
			t.Errorf("sweep closed %d (%v), want %d", n, err, want)
		}
	}
	if _, _, err := w.desk.Submit(t.Context(), principal("bo"), raw, nil); !errors.Is(err, review.ErrReviewExpired) {
		t.Errorf("resubmitted: %v, want ErrReviewExpired", err)
	}
	if diff := cmp.Diff(map[string]int{"review.opened cancelled": 2, "review.expired pending": 2}, w.deliveries()); diff != "" {
		t.Errorf("deliveries (-want +got)\n%s", diff)
	}
	w.checkRecord()
}

func TestDecisionOfAnotherDayIsNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	parsed, err := screening.ParseSpec(spec("r", ""))
	if err != nil {
		t.Fatal(err)
	}
	d, err := screening.Classify(parsed, w.desk.Setup().Vocabulary, "2001-02-03")
	if err != nil {
		t.Fatal(err)
	}
	body, err := screening.MarshalDecision(d)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.store.Submit(t.Context(), &review.Submission{Principal: principal("bo"), Spec: parsed, Owner: "ana", Decision: d,
		DecisionJSON: body, AdmissionPeriod: time.Hour})
	if !errors.Is(err, review.ErrDayChanged) {
		t.Errorf("%v, want ErrDayChanged", err)
	}
	if n := one[int](w, `select count(*) from spec`); n != 0 {
		t.Errorf("%d specs kept", n)
	}
}

// A group shares a transaction, but not its members' faults.
func TestOneBadRowFailsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`alter table screening add check (run_ref <> 'refused')`)
	var wg sync.WaitGroup
	errs := make([]error, 40)
	for i := range errs {
		wg.Go(func() {
			run := fmt.Sprintf("run-%d", i)
			if i == 7 {
				run = "refused"
			}
			_, _, errs[i] = w.desk.Submit(t.Context(), principal("bo"), spec(run, ""), nil)
		})
	}
	wg.Wait()
	for i, err := range errs {
		if (i == 7) != errors.Is(err, review.ErrUnavailable) {
			t.Errorf("submission %d: %v", i, err)
		}
	}
	if n := one[int](w, `select count(*) from screening`); n != len(errs)-1 {
		t.Errorf("%d kept, want %d", n, len(errs)-1)
	}
	w.checkRecord()
}

func TestStoppedStoreKeepsNothingMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("bo", spec("a", ""))
	w.store.Close()
	if _, _, err := w.desk.Submit(t.Context(), principal("bo"), spec("b", ""), nil); !errors.Is(err, review.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
}

func TestProjectsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("bo", spec("r", "", "personal_data=present"))
	for name, err := range map[string]error{
		"screening": errOf(w.store.Screening(t.Context(), "other", s.ID)),
		"spec":      errOf(w.store.ScreeningOfSpec(t.Context(), "other", s.SpecSHA256)),
		"bytes":     errOf(w.store.SpecBytes(t.Context(), "other", s.SpecSHA256)),
		"review":    errOf(w.store.Review(t.Context(), "other", s.Review.ID)),
		"vote": w.store.ChangeReview(t.Context(), "other", s.Review.ID, func(*review.Review, time.Time) (*review.Change, error) {
			t.Error("another project's review was handed out")
			return nil, review.ErrConflict
		}),
	} {
		if !errors.Is(err, review.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
	}
	list, err := w.store.Screenings(t.Context(), "other", review.ListQuery{Limit: 10})
	if err != nil || len(list) != 0 {
		t.Errorf("%d screenings listed (%v), want none", len(list), err)
	}
}

func errOf[T any](_ T, err error) error { return err }

func TestPagesHoldEveryRowOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 23
	for i := range n {
		w.submit("bo", spec(fmt.Sprintf("r%d", i), ""))
	}
	w.exec(`update screening set created_at = '2026-01-02 03:04:05.678901+00'`) // ties
	for _, limit := range []int{1, 7, 500} {
		seen := map[string]int{}
		for q := (review.ListQuery{Limit: limit}); ; {
			page, err := w.store.Screenings(t.Context(), "default", q)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range page {
				seen[s.ID]++
			}
			if len(page) < limit {
				break
			}
			last := page[len(page)-1]
			q.After = &review.Cursor{At: last.CreatedAt, ID: last.ID}
		}
		if len(seen) != n {
			t.Errorf("pages of %d: %d different rows, want %d", limit, len(seen), n)
		}
		for id, times := range seen {
			if times != 1 {
				t.Errorf("pages of %d: %s came %d times", limit, id, times)
			}
		}
	}
}

func TestMalformedDSNDoesNotShowItsPassword(t *testing.T) {
	t.Parallel()
	_, err := store.Open(t.Context(), "postgres://weir:hunter2@[bad/db", store.Config{})
	if err == nil || bytes.Contains([]byte(err.Error()), []byte("hunter2")) {
		t.Errorf("error %v", err)
	}
}

// Two who submit the same bytes at the same moment both get the answer that
// counts: the latest. None is told that the other's took its place.
func TestSameBytesAtOnceGetOneAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const rounds, each = 20, 4
	for i := range rounds {
		raw := spec(fmt.Sprint("r", i), "")
		answers := make([]*review.Screening, each)
		var wg sync.WaitGroup
		for j := range each {
			wg.Go(func() {
				var err error
				if answers[j], _, err = w.desk.Submit(t.Context(), principal("bo"), raw, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, s := range answers {
			if s != nil && s.Status != review.StatusAdmitted {
				t.Fatalf("round %d: %s", i, s.Status)
			}
		}
	}
}

// A submission waits for nothing that has ended, of however many times its bytes came.
func TestWhatEndedIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		raw         []byte
		next, ended review.Status
	}{
		"admitted": {spec("run/hourly", ""), review.StatusAdmitted, review.StatusSuperseded},
		"blocked":  {spec("run/hourly", "", "personal_data=present"), review.StatusBlocked, review.StatusBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var err error
			if w.desk, err = review.NewDesk(w.store, reviewtest.Setup(t, peopleYAML, policiesYAML, reviewtest.Floor,
				strings.Replace(pledgeYAML, "response: escalate", "response: block", 1)), review.Config{}); err != nil {
				t.Fatal(err)
			}
			first, last := w.submit("bo", tt.raw), w.submit("bo", tt.raw)
			if first.ID == last.ID {
				t.Fatal("the same bytes were not decided anew")
			}
			tx, err := w.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(context.Background()) //nolint:errcheck // it only holds the row
			if _, err := tx.Exec(t.Context(), `select from screening where id = $1 for update`, first.ID); err != nil {
				t.Fatal(err)
			}
			next := w.submit("bo", tt.raw)
			if next.ID == last.ID || next.Status != tt.next {
				t.Errorf("%+v", next)
			}
			if got, err := w.store.Screening(t.Context(), "default", last.ID); err != nil || got.Status != tt.ended {
				t.Errorf("the one before: %v, %v", got, err)
			}
		})
	}
}
