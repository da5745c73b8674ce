package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/review"
	"weir/store"
	"weir/store/ledger"
	"weir/webhooks"
)

// verifies sequences what is there, a few at a time, and holds the log to itself:
// in the database, and in an export.
func (w *world) verifies(key ledger.Key) {
	w.Helper()
	w.sequenceAll(7, key)
	c, err := w.store.CheckLog(w.Context(), func(int64) {}, key.Public())
	if events := one[int64](w, `select count(*) from audit_event`); err != nil || c.Size != events || c.Signed() != events {
		w.Fatalf("of %d events: %+v, %v", events, c, err)
	}
	files, _ := w.export(ledger.Selection{}, key)
	if _, err := ledger.VerifyBundle(w.Context(), files, ledger.VerifyOptions{Keys: []ledger.PublicKey{key.Public()}}); err != nil {
		w.Fatal(err)
	}
	w.checkRecord()
}

// Whoever writes about one subject at the same time: nobody is turned away for it,
// and the events are one chain, in the log in its order.
func TestFiftyWritersOnOneChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	patient, err := store.Open(t.Context(), withParam(t, withParam(t, w.dsn, "lock_timeout", "60s"), "statement_timeout", "60s"), store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(patient.Close)
	w.store = patient // however slow the machine is
	w.desk, err = review.NewDesk(patient, setup(t), review.Config{})
	w.ok("desk", err)
	key := signingKey(t)
	w.ok("packs", w.store.KeepPacks(t.Context(), w.packs()))
	w.declare("one", "two")
	raw := madeOf("run", dataset("d", "set", "s3://set"), "personal_data=present", "violent=present")
	s := w.submit("dee", raw)
	var corrections []*review.Correction
	var waivers []*review.Waiver
	for i := range 6 {
		corrections = append(corrections, w.correct("chi", s, fmt.Sprint("Before, ", i), nil))
		made, err := w.desk.Waive(t.Context(), principal("chi"), review.WaiverRequest{ScreeningID: s.ID, Term: personalTerm, Reason: "r", Ticket: "T", Days: 1})
		w.ok("waive", err)
		waivers = append(waivers, made)
	}
	event := func(column, subject string) error {
		_, err := w.pool.Exec(t.Context(), `insert into audit_event (`+column+`, type, actor, body) values ($1, 'test.event', 'test', '{}')`, subject)
		return err
	}
	kinds := []struct {
		name     string
		conflict bool // may come too late, by what others did
		write    func(i int) error
	}{
		{"correction", false, func(i int) error {
			_, _, err := w.desk.Correct(t.Context(), curator("chi"), review.CorrectionRequest{ScreeningID: s.ID, Text: fmt.Sprint("At once, ", i)})
			return err
		}},
		{"status of a correction", false, func(i int) error {
			_, err := w.desk.Judge(t.Context(), curator("bo"), idOf(corrections[i]), review.Coherent, "so it is")
			return err
		}},
		{"comment", false, func(i int) error {
			_, err := w.desk.Comment(t.Context(), principal("chi"), s.Review.ID, 0, fmt.Sprint("comment ", i))
			return err
		}},
		{"waiver", true, func(int) error {
			_, err := w.desk.Waive(t.Context(), principal("chi"), review.WaiverRequest{ScreeningID: s.ID, Term: violentTerm, Reason: "r", Ticket: "T", Days: 1})
			return err
		}},
		{"waiver confirmed", true, func(i int) error {
			_, err := w.desk.ConfirmWaiver(t.Context(), principal("bo"), waivers[i].ID)
			return err
		}},
		{"bypass", false, func(int) error {
			_, _, err := w.desk.ReportBypass(t.Context(), principal("bo"), review.Bypass{ID: uuid.NewString(), At: time.Now(), Reason: "down", Spec: raw})
			return err
		}},
		{"claim", true, func(i int) error {
			if i == 0 {
				_, err := w.desk.Recall(t.Context(), steward("chi"), bytesOf("set"), "consent was withdrawn")
				return err
			}
			_, err := w.desk.Claim(t.Context(), principal("bo"), s.Review.ID, 1)
			return err
		}},
		{"sweep", false, func(int) error { _, err := w.store.SweepReviews(t.Context()); return err }},
		{"endpoint", true, func(i int) error {
			order := webhooks.Order{Actor: "bo", Reason: "noisy"}
			if i%2 == 0 {
				return w.store.DisableEndpoint(t.Context(), "one", order)
			}
			return w.store.EnableEndpoint(t.Context(), "one", order)
		}},
		{"event of a screening, by whatever writer", false, func(int) error { return event("screening_id", s.ID) }},
		{"event of something else", false, func(int) error { return event("subject", "test/it") }},
	}
	w.exec(`update review_panel set remind_at = now() - interval '1 second'`)
	start := make(chan struct{})
	var writers sync.WaitGroup
	for i := range 55 {
		kind := kinds[i%len(kinds)]
		writers.Go(func() {
			<-start
			if err := kind.write(i / len(kinds)); err != nil && (!kind.conflict || !errors.Is(err, review.ErrConflict)) {
				t.Errorf("%s: %v", kind.name, err)
			}
		})
	}
	close(start)
	writers.Wait()
	w.verifies(key)
}

// An event waits for the one before it in its chain, whatever wrote that and
// whatever it is about, and not for those of other chains.
func TestNextEventWaitsForTheLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := signingKey(t)
	w.ok("packs", w.store.KeepPacks(t.Context(), w.packs()))
	s, other := w.submit("bo", spec("r", "")), w.submit("bo", spec("r2", ""))
	const insert = `insert into audit_event (screening_id, subject, type, actor, body) values ($1, $2, 'test.event', 'test', '{}')`
	for _, about := range [][]any{{s.ID, nil}, {nil, "test/it"}} {
		tx, err := w.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), insert, about...); err != nil {
			t.Fatal(err)
		}
		second := make(chan error, 1)
		go func() { _, err := w.pool.Exec(t.Context(), insert, about...); second <- err }()
		w.until(`select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
			and query like 'insert into audit_event%')`)
		w.exec(insert, other.ID, nil)
		w.exec(insert, nil, "test/other")
		w.ok("commit", tx.Commit(t.Context()))
		if err := <-second; err != nil {
			t.Errorf("about %v: %v", about, err)
		}
	}
	w.verifies(key)
}

// Numbers of rows are drawn before the chain is known: the log goes by the chain.
func TestLogGoesByTheChain(t *testing.T) {
	t.Parallel()
	for _, round := range []int{1, 2, 3, 100} {
		t.Run(fmt.Sprint("at most ", round), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			key := signingKey(t)
			w.ok("packs", w.store.KeepPacks(t.Context(), w.packs()))
			s := w.submit("bo", spec("r", ""))
			for _, e := range []struct {
				id       int
				about, s any
			}{
				{1900, s.ID, nil}, {1100, s.ID, nil}, {1500, s.ID, nil}, // numbers 2, 3 and 4 of the chain
				{1800, nil, "test/it"}, {1200, nil, "test/it"}, {1000, nil, "test/it"},
				{1850, nil, "test/other"},
			} {
				w.exec(`insert into audit_event (id, screening_id, subject, type, actor, body) overriding system value
					values ($1, $2, $3, 'test.event', 'test', '{}')`, e.id, e.about, e.s)
			}
			for {
				n, err := w.store.Sequence(t.Context(), round, key)
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					break
				}
				if _, err := w.store.CheckLog(t.Context(), func(int64) {}, key.Public()); err != nil {
					t.Fatal(err)
				}
			}
			w.verifies(key)
		})
	}
}
