package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"weir/review"
)

// A question that was put before the deadline counts although the sweep had looked
// before it was kept: the review and its screening stay open, together.
func TestQuestionInTheLastMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	desk, _ := w.patient()
	s := w.submit("dee", spec("r", "", "violent=present"))
	w.overdue(s)
	tx, err := w.pool.Begin(t.Context())
	w.ok("begin", err)
	_, err = tx.Exec(t.Context(), `lock table waiver in access exclusive mode`) // the sweep asks for waivers after it has looked
	w.ok("hold", err)
	swept := make(chan error, 1)
	go func() {
		_, err := desk.Expire(t.Context())
		swept <- err
	}()
	w.until(`select exists (select from pg_locks where relation = 'waiver'::regclass and not granted)`)
	w.exec(`update review set state = 'needs_evidence', event = 'ask', version = version + 1, asked_at = now(),
		due_at = now() + interval '7 days', expires_at = now() + interval '7 days' where id = $1`, s.Review.ID)
	w.ok("let go", tx.Rollback(t.Context()))
	w.ok("sweep", <-swept)
	if got := one[string](w, `select s.status || ', ' || r.state from screening s join review r on r.screening_id = s.id`); got != "pending, needs_evidence" {
		t.Errorf("%s", got)
	}
}

const races = 200

// race runs two acts at once.
func race(a, b func() error) (errA, errB error) {
	var wg sync.WaitGroup
	wg.Go(func() { errA = a() })
	wg.Go(func() { errB = b() })
	wg.Wait()
	return errA, errB
}

// Admit, block, expiry and supersede meet, 200 times each: one wins, the others
// hear of it, and what is stored is the winner's (RELIABILITY fault test 19).
func TestRaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	voter := func(who string, s *review.Screening, choice review.Choice) func() error {
		return func() error {
			_, err := w.desk.Vote(t.Context(), principal(who), s.Review.ID, review.VoteRequest{ExpectedVersion: 1, SpecSHA256: s.SpecSHA256,
				Choice: choice, Reason: "race", Terms: []string{violentTerm}})
			return err
		}
	}
	lost := func(what string, err error) bool {
		t.Helper()
		if err != nil && !errors.Is(err, review.ErrConflict) {
			t.Fatalf("%s lost with %v, want ErrConflict", what, err)
		}
		return err != nil
	}
	// stored is where a screening and the review it had then stand.
	stored := func(s *review.Screening) string {
		t.Helper()
		return one[string](w, `select screening_status(s, r.expires_at) || ', ' || r.state from screening s join review r on r.id = $2 where s.id = $1`, s.ID, s.Review.ID)
	}
	expect := func(what string, vote error, s *review.Screening, status review.Status, state review.State) {
		t.Helper()
		if got, want := stored(s), fmt.Sprintf("%s, %s", status, state); got != want {
			t.Fatalf("%s: vote %v; stored %s, want %s", what, vote, got, want)
		}
	}
	won := map[string]int{}
	for i := range races {
		s := w.submit("dee", spec(fmt.Sprintf("votes-%d", i), "", "violent=present"))
		admit, block := race(voter("bo", s, review.VoteAdmit), voter("chi", s, review.VoteBlock))
		want := review.StatusAdmitted
		if lost("admit", admit) {
			want = review.StatusBlocked
		}
		if lost("block", block) == (admit != nil) {
			t.Fatalf("admit: %v, block: %v; want one winner", admit, block)
		}
		expect("votes", admit, s, want, review.Decided)
		won["votes "+string(want)]++
	}
	for i := range races {
		s := w.submit("dee", spec(fmt.Sprintf("expiry-%d", i), "", "violent=present"))
		due := time.Duration(i%25) * time.Millisecond
		w.exec(`with p as (update review_panel set due_at = now() + $2::interval where review_id = $1)
			update review set opened_at = now() - interval '1 day', due_at = now() + $2::interval, expires_at = now() + $2::interval where id = $1`,
			s.Review.ID, due)
		vote, _ := race(voter("bo", s, review.VoteAdmit), func() error {
			for stored(s) == "pending, open" {
				w.sweep()
			}
			return nil
		})
		want, state := review.StatusAdmitted, review.Decided
		if lost("vote", vote) {
			want, state = review.StatusExpired, review.Expired
		}
		w.sweep() // one that the vote had locked
		expect("expiry", vote, s, want, state)
		won["expiry "+string(want)]++
	}
	for i := range races {
		run := fmt.Sprintf("supersede-%d", i)
		choice := []review.Choice{review.VoteAdmit, review.VoteBlock}[i%2]
		s := w.submit("dee", spec(run, "", "violent=present"))
		vote, submit := race(voter("bo", s, choice), func() error {
			_, _, err := w.desk.Submit(t.Context(), principal("dee"), spec(run, "other", "violent=present"), nil)
			return err
		})
		if submit != nil {
			t.Fatalf("submit: %v", submit)
		}
		want, state := review.StatusSuperseded, review.Superseded // an admission is superseded, too
		if !lost("vote", vote) {
			state = review.Decided
			if choice == review.VoteBlock {
				want = review.StatusBlocked
			}
		}
		expect("supersede, "+string(choice), vote, s, want, state)
		won["supersede "+string(state)]++
	}
	w.use(`
people: [{id: ana}, {id: bo}, {id: chi}, {id: dee}]
groups: {general: [ana, bo, chi, dee], legal: [bo, chi]}`, "")
	for i := range races / 4 { // an appeal holds its screening blocked; it meets a new spec all the same
		run := fmt.Sprintf("appeal-%d", i)
		s := w.submit("dee", spec(run, "", "violent=present"))
		w.ok("block", voter("chi", s, review.VoteBlock)())
		s, err := w.desk.Appeal(t.Context(), principal("dee"), s.ID, "please")
		w.ok("appeal", err)
		vote, submit := race(voter("bo", s, review.VoteAdmit), func() error {
			_, _, err := w.desk.Submit(t.Context(), principal("dee"), spec(run, "other", "personal_data=present"), nil)
			return err
		})
		if submit != nil {
			t.Fatalf("submit: %v", submit)
		}
		want, state := review.StatusBlocked, review.Superseded // people's block outlives its appeal
		if !lost("vote", vote) {
			want, state = review.StatusSuperseded, review.Decided
		}
		expect("appeal", vote, s, want, state)
		won["appeal "+string(state)]++
	}
	t.Logf("won: %v", won)
	w.checkRecord()
	for what, sql := range map[string]string{
		"reviews with more or less than one end": `select count(*) from review r where closed_at is not null and 1 <> (select count(*) from audit_event a
			where a.screening_id = r.screening_id and (a.type in ('review.decided', 'review.expired', 'review.withdrawn')
				or a.type in ('screening.superseded', 'review.superseded') and convert_from(a.body, 'UTF8')::jsonb ? 'review_id')
				and convert_from(a.body, 'UTF8')::jsonb ->> 'review_id' = r.id::text)`,
		"endpoints not told of an end once": `select count(*) from review r join review_panel p on p.review_id = r.id, unnest(p.endpoints) e
			where r.closed_at is not null and 1 <> (select count(*) from delivery d where d.review_id = r.id and d.endpoint = e and d.type <> 'review.opened')`,
	} {
		if n := one[int](w, sql); n != 0 {
			t.Errorf("%d %s", n, what)
		}
	}
}
