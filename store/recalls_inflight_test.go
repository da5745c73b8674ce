package store_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/review"
	"weir/review/reviewtest"
	"weir/screening"
	"weir/store"
	"weir/webhooks"
)

// stored is what a screening's row says, and so what was told about it.
func (w *world) stored(s *review.Screening) string {
	w.Helper()
	return one[string](w, `select status || ' by ' || decided_by from screening where id = $1`, s.ID)
}

// patient gives a desk whose statements wait for others as long as the test does.
func (w *world) patient() (*review.Desk, *store.Store) {
	w.Helper()
	st, err := store.Open(w.Context(), withParam(w.T, withParam(w.T, w.dsn, "lock_timeout", "5min"), "statement_timeout", "5min"), store.Config{})
	w.ok("open", err)
	w.Cleanup(st.Close)
	desk, err := review.NewDesk(st, setup(w.T), review.Config{})
	w.ok("desk", err)
	return desk, st
}

// Two submissions say half each of what leads to a recall, and neither sees the
// other: what the first has begun is waited for before the recall counts as done.
func TestRecallWaitsForWhatIsInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	desk, st := w.patient()
	w.recall(bytesOf("bad"))
	uses := w.submit("bo", madeOf("uses", dataset("d", "derived", "")))
	raw := madeOf("first", dataset("d", "derived", "", "sha256:"+hexOf("mid")))
	// A row of the same spec, not committed, holds the submission up after it has looked.
	tx, err := w.pool.Begin(t.Context())
	w.ok("begin", err)
	sum := screening.Sum(raw)
	_, err = tx.Exec(t.Context(), `insert into spec (project, sha256, canonical_sha256) values ('default', $1, $1)`, sum[:])
	w.ok("hold", err)
	var first *review.Screening
	submitted := make(chan error, 1)
	go func() (err error) {
		defer func() { submitted <- err }()
		first, _, err = desk.Submit(t.Context(), principal("bo"), raw, nil)
		return err
	}()
	w.until(`select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'transactionid')`)

	second := w.submit("dee", madeOf("second", dataset("d", "mid", "", "sha256:"+hexOf("bad"))))
	w.want("second", second, "blocked by recall")
	settled := make(chan error, 1)
	go func() {
		_, err := st.SettleRecalls(t.Context())
		settled <- err
	}()
	w.waits(settled)
	w.ok("let go", tx.Rollback(t.Context()))
	w.ok("submit", <-submitted)
	w.ok("settle", <-settled)
	for name, s := range map[string]*review.Screening{"uses": uses, "first": first} {
		if got := w.stored(s); got != "revoked by recall" {
			t.Errorf("%s is stored as %s", name, got)
		}
	}
	w.checkRecord()
}

// waits returns when somebody waits for a lock of the store, or is done without.
func (w *world) waits(done chan error) {
	w.Helper()
	for ask := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case err := <-done:
			done <- err // for who waits for it
			return
		case <-ask.C:
			if one[bool](w, somebodyWaits) {
				ask.Stop()
				return
			}
		}
	}
}

// meeting is a store in which something happens after a decision about a screening
// was made and before it is kept.
type meeting struct {
	*store.Store
	then func()
}

func (m meeting) OpenReview(ctx context.Context, project, id string, decide func(*review.Closed) (*review.Opening, error)) (string, error) {
	return m.Store.OpenReview(ctx, project, id, func(c *review.Closed) (*review.Opening, error) {
		defer m.then()
		return decide(c)
	})
}

func (m meeting) ConfirmWaiver(ctx context.Context, project, id string, decide func(*review.Waiver, *review.Screening, time.Time) (string, error)) ([]review.Affected, error) {
	return m.Store.ConfirmWaiver(ctx, project, id, func(wv *review.Waiver, s *review.Screening, now time.Time) (string, error) {
		defer m.then()
		return decide(wv, s, now)
	})
}

// What brings a screening back to life while it is recalled is ended by the recall,
// or refused; it is not passed over.
func TestRecallMeetsWhatComesBackToLife(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pack string // the response of the term
		act  func(w *world, s *review.Screening) func(*review.Desk) error
		want string
	}{
		"reopen": {"escalate", func(w *world, s *review.Screening) func(*review.Desk) error {
			w.overdue(s)
			w.sweep()
			return func(d *review.Desk) error { return errOf(d.Reopen(w.Context(), principal("dee"), s.ID, "look again")) }
		}, "blocked by recall"},
		"appeal": {"escalate", func(w *world, s *review.Screening) func(*review.Desk) error {
			w.ok("block", w.vote("bo", s, review.VoteBlock))
			return func(d *review.Desk) error { return errOf(d.Appeal(w.Context(), principal("dee"), s.ID, "look again")) }
		}, "blocked by people"},
		"waiver": {"block", func(w *world, s *review.Screening) func(*review.Desk) error {
			asked, err := w.desk.Waive(w.Context(), principal("chi"), review.WaiverRequest{ScreeningID: s.ID, Term: violentTerm, Reason: "agreed", Ticket: "T", Days: 3})
			w.ok("waive", err)
			return func(d *review.Desk) error { return errOf(d.ConfirmWaiver(w.Context(), principal("bo"), asked.ID)) }
		}, "revoked by recall"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, st := w.patient()
			setup := setup(t)
			setup.Vocabulary = reviewtest.Vocabulary(t, reviewtest.Floor, strings.Replace(pledgeYAML, "response: escalate\n    unchecked: observe", "response: "+tt.pack, 1))
			desk := func(s review.Store) *review.Desk {
				d, err := review.NewDesk(s, setup, review.Config{})
				w.ok("desk", err)
				return d
			}
			w.desk = desk(w.store)
			s := w.submit("dee", madeOf("r", dataset("d", "bad", ""), "violent=present"))
			act := tt.act(w, s)
			recalled := make(chan error, 1)
			w.ok(name, act(desk(meeting{st, func() {
				go func() {
					err := st.MakeRecall(t.Context(), &review.Recall{Project: "default", Data: bytesOf("bad"), Reason: "abuse", Actor: "chi"})
					if err == nil {
						_, err = st.SettleRecalls(t.Context())
					}
					recalled <- err
				}()
				w.waits(recalled)
			}})))
			w.ok("recall", <-recalled)
			if got := w.stored(s); got != tt.want {
				t.Errorf("stored as %s, want %s", got, tt.want)
			}
			if n := one[int](w, `select count(*) from review where closed_at is null`); n != 0 {
				t.Errorf("%d reviews are open", n)
			}
			w.refused("again", act(w.desk), review.ErrConflict)
			w.checkRecord()
		})
	}
}

// Where nobody knows what an admission comes from, any recall takes it back, and
// says so; a replica of before leaves what can still be read.
func TestRecallTellsOfUnknownLineage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok("declare", w.store.Outbox().Declare(t.Context(), []webhooks.Declared{{ID: "one", Host: "one.example", Format: webhooks.FormatStandard}}))
	unknown := w.submit("bo", madeOf("unknown", dataset("d", "x", "")))
	unread := w.submit("bo", madeOf("unread", dataset("d", "y", "")))
	w.exec(`update spec set inputs = '\x00' where sha256 = $1`, unknown.SpecSHA256[:])
	w.exec(`update spec set inputs = null where sha256 = $1`, unread.SpecSHA256[:])
	revoked := func(when string) {
		t.Helper()
		list, _, err := w.store.Revoked(t.Context(), "default")
		w.ok("revoked", err)
		if !slices.ContainsFunc(list, func(r review.Revoked) bool { return r.ScreeningID == unknown.ID && r.Reason == "revoked" }) {
			t.Errorf("%s: not in the list of revocations: %+v", when, list)
		}
	}
	r := &review.Recall{Project: "default", Data: bytesOf("bad"), Reason: "abuse", Actor: "chi"}
	w.ok("recall", w.store.MakeRecall(t.Context(), r))
	revoked("not carried out")
	w.ok("settle", errOf(w.store.SettleRecalls(t.Context())))
	revoked("carried out")
	if got := w.revocations("one"); !slices.Equal(got, []string{unknown.ID}) {
		t.Errorf("told of %v, want %s", got, unknown.ID)
	}
	w.want("read meanwhile", unread, "admitted by packs")
	_, err := w.desk.LiftRecall(t.Context(), steward("bo"), r.ID, "another was meant")
	w.ok("lift", err)
	w.want("lifted", unknown, "revoked by recall")
	w.checkRecord()
}
