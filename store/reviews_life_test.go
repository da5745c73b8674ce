package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"weir/review"
	"weir/screening"
)

// pinned writes a spec whose inputs have digests: one data set for each letter.
func pinned(run, note string, inputs string, states ...string) []byte {
	var list []string
	for i, c := range inputs {
		list = append(list, fmt.Sprintf("{id: d%d, kind: dataset, digests: [{alg: sha256, value: \"%s\"}]}", i+1, strings.Repeat(string(c), 64)))
	}
	return []byte(strings.Replace(string(spec(run, note, states...)), "inputs: [{id: d1, kind: dataset}]", "inputs: ["+strings.Join(list, ", ")+"]", 1))
}

// use gives the world other people or policies; "" keeps the usual ones.
func (w *world) use(people, policies string) {
	w.Helper()
	s := setup(w.T)
	var err error
	if people != "" {
		if s.People, err = review.LoadPeople("people.yaml", []byte(people)); err != nil {
			w.Fatal(err)
		}
	}
	if policies == "" {
		policies = policiesYAML
	}
	if s.Policies, err = review.LoadPolicies("policies.yaml", []byte(policies), s.People); err != nil {
		w.Fatal(err)
	}
	if w.desk, err = review.NewDesk(w.store, s, review.Config{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) review(s *review.Screening) *review.Review {
	w.Helper()
	now, err := w.store.Screening(w.Context(), "default", s.ID)
	if err != nil {
		w.Fatal(err)
	}
	r, err := w.store.Review(w.Context(), "default", now.Review.ID)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *world) status(s *review.Screening) review.Status {
	w.Helper()
	now, err := w.store.Screening(w.Context(), "default", s.ID)
	if err != nil {
		w.Fatal(err)
	}
	return now.Status
}

func (w *world) sweep() {
	w.Helper()
	if _, err := w.desk.Expire(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// ok and refused are what an act comes to.
func (w *world) ok(what string, err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

func (w *world) refused(what string, err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Errorf("%s: %v, want %v", what, err, want)
	}
}

// The database's CHECK is the table of package review: of all states, events and
// states it takes exactly the steps that the table has.
func TestDatabaseHasTheStateMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("bo", spec("r", "", "personal_data=present"))
	stored := slices.DeleteFunc(review.States(), func(s review.State) bool { return s == review.Claimed })
	events := map[review.Event]bool{}
	for _, step := range review.Steps() {
		events[step.Event] = true
	}
	want := review.StoredSteps()
	try := func(from string, event review.Event, to review.State) bool {
		tx, err := w.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		closed, asked, outcome := "null", "null", "null"
		if !to.Live() {
			closed = "now()"
		}
		if to == review.NeedsEvidence {
			asked = "now()"
		}
		if to == review.Decided {
			outcome = "'block'"
		}
		if from == "none" {
			_, err = tx.Exec(t.Context(), `update review set closed_at = now(), state = 'withdrawn', event = 'withdraw', version = version + 1`)
			if err == nil {
				_, err = tx.Exec(t.Context(), `insert into review (id, project, screening_id, state, event, due_at, closed_at, asked_at, outcome)
					select gen_random_uuid(), project, screening_id, $1, $2, due_at, `+closed+`, `+asked+`, `+outcome+` from review`, to, event)
			}
		} else {
			// Into the state from which it is tried, past the machine.
			_, err = tx.Exec(t.Context(), `alter table review disable trigger review_step`)
			if err == nil {
				_, err = tx.Exec(t.Context(), `update review set state = $1, event = e, from_state = f, closed_at = case when $2 then now() end,
					asked_at = case when $1 = 'needs_evidence' then now() end, outcome = case when $1 = 'decided' then 'block' end
					from (select split_part(s, ' ', 1) as f, split_part(s, ' ', 2) as e from unnest($3::text[]) s
						where split_part(s, ' ', 3) = $1 and split_part(s, ' ', 1) <> 'none' limit 1) x`, from, !review.State(from).Live(), want)
			}
			if err != nil {
				t.Fatalf("into %s: %v", from, err)
			}
			_, err = tx.Exec(t.Context(), `alter table review enable trigger review_step`)
			if err == nil {
				_, err = tx.Exec(t.Context(), `update review set state = $1, event = $2, version = version + 1, closed_at = `+closed+
					`, asked_at = `+asked+`, outcome = `+outcome, to, event)
			}
		}
		var pg *pgconn.PgError
		if err != nil && (!errors.As(err, &pg) || pg.Code != "23514") {
			t.Fatalf("%s %s %s: %v", from, event, to, err)
		}
		return err == nil
	}
	var got []string
	for _, from := range append([]review.State{"none"}, stored...) {
		for event := range events {
			for _, to := range stored {
				if try(string(from), event, to) {
					got = append(got, fmt.Sprintf("%s %s %s", from, event, to))
				}
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps (-table +database)\n%s", diff)
	}
	for _, sql := range []string{`update review set state = 'claimed', event = 'claim', version = version + 1`,
		`update review set event = 'vote'`, `update review set event = 'vote', version = version + 2`} {
		if _, err := w.pool.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s: taken", sql)
		}
	}
	if w.status(s) != review.StatusPending {
		t.Error("the tries were kept")
	}
}

func TestClaimIsALeaseAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("bo", spec("r", "", "personal_data=present"))
	id, ctx := s.Review.ID, t.Context()
	_, err := w.desk.Claim(ctx, principal("bo"), id, 0)
	w.refused("a party claims", err, review.ErrNotAllowed)
	r, err := w.desk.Claim(ctx, principal("chi"), id, 1)
	w.ok("claim", err)
	if left := time.Until(*r.Panels[0].ClaimedUntil); r.State != review.Claimed || r.Panels[0].ClaimedBy != "chi" || left < 25*time.Minute || left > 31*time.Minute || r.Version != 1 {
		t.Errorf("claimed: %+v", r)
	}
	_, err = w.desk.Claim(ctx, principal("dee"), id, 0)
	w.refused("another claims", err, review.ErrConflict)
	_, err = w.desk.Release(ctx, principal("dee"), id, 0)
	w.refused("another releases", err, review.ErrConflict)
	_, err = w.desk.Claim(ctx, principal("chi"), id, 9)
	w.refused("another version", err, review.ErrConflict)
	w.exec(`update review_panel set claimed_until = now() + interval '1 minute'`)
	r, err = w.desk.Claim(ctx, principal("chi"), id, 0)
	if w.ok("renewed", err); time.Until(*r.Panels[0].ClaimedUntil) < 25*time.Minute {
		t.Errorf("renewed: %+v", r.Panels[0])
	}
	w.ok("dee votes on what chi looks at", w.vote("dee", s, review.VoteAdmit))
	w.exec(`update review_panel set claimed_until = now()`) // half an hour later
	if r := w.review(s); r.State != review.Open || r.Panels[0].ClaimedBy != "" {
		t.Errorf("after its time: %s, claimed by %q", r.State, r.Panels[0].ClaimedBy)
	}
	r, err = w.desk.Claim(ctx, principal("dee"), id, 0)
	if w.ok("the next claims", err); r.State != review.Claimed {
		t.Errorf("state %s", r.State)
	}
	r, err = w.desk.Release(ctx, principal("dee"), id, 0)
	if w.ok("release", err); r.State != review.Open || r.Panels[0].ClaimedBy != "" {
		t.Errorf("released: %+v", r.Panels[0])
	}
	w.ok("chi votes without a claim", w.vote("chi", s, review.VoteAdmit))
	_, err = w.desk.Claim(ctx, principal("chi"), id, 0)
	w.refused("claims what is decided", err, review.ErrConflict)
	w.checkRecord()
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := spec("r", "", "personal_data=present") // due in 48 hours
	s := w.submit("bo", raw)
	id, ctx := s.Review.ID, t.Context()
	_, err := w.desk.Ask(ctx, principal("bo"), id, 1, "?")
	w.refused("a party asks", err, review.ErrNotAllowed)
	_, err = w.desk.Answer(ctx, principal("bo"), s.ID, "nobody asked")
	w.refused("an answer without a question", err, review.ErrConflict)
	_, err = w.desk.Ask(ctx, principal("chi"), id, 1, " \u200b ")
	var invalid *screening.InvalidError
	if !errors.As(err, &invalid) {
		t.Errorf("a question that says nothing: %v", err)
	}
	w.later(s, 40*time.Hour)
	r, err := w.desk.Ask(ctx, principal("chi"), id, 1, "where is it from?")
	w.ok("ask", err)
	if left := time.Until(r.DueAt); r.State != review.NeedsEvidence || left < 6*24*time.Hour || left > 8*24*time.Hour {
		t.Errorf("asked: %s, due in %s", r.State, left)
	}
	if w.gate(raw) != review.StatusPending {
		t.Errorf("gate %s", w.gate(raw))
	}
	w.refused("a vote while it waits", w.vote("chi", s, review.VoteAdmit), review.ErrConflict)
	w.refused("a block while it waits", w.vote("dee", s, review.VoteBlock), review.ErrConflict)
	w.later(s, 72*time.Hour)
	w.sweep() // what stands still is neither due nor reminded of
	_, err = w.desk.Answer(ctx, principal("chi"), s.ID, "not mine to answer")
	w.refused("a stranger answers", err, review.ErrNotAllowed)
	_, err = w.desk.Answer(ctx, principal("ana"), s.ID, "from the shop's own tickets")
	w.ok("the owner answers", err)
	r = w.review(s)
	if left := time.Until(r.DueAt); r.State != review.Open || left < 7*time.Hour || left > 9*time.Hour {
		t.Errorf("answered: %s, due in %s, want the 8 hours that were left", r.State, left)
	}
	var said []string
	for _, n := range r.Notes {
		said = append(said, string(n.Kind)+" "+n.Person)
	}
	if diff := cmp.Diff([]string{"question chi", "answer ana"}, said); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
	_, err = w.desk.Ask(ctx, principal("dee"), id, r.Version, "and who agreed?")
	w.ok("asked again", err)
	w.later(s, 8*24*time.Hour)
	if w.gate(raw) != review.StatusExpired {
		t.Errorf("nobody answered: %s, want expired", w.gate(raw))
	}
	_, err = w.desk.Answer(ctx, principal("ana"), s.ID, "too late")
	w.refused("a late answer", err, review.ErrConflict)
	w.sweep()
	if got := w.review(s).State; got != review.Expired {
		t.Errorf("swept: %s", got)
	}
	w.checkRecord()
}

func TestEvidenceAsANewSubmission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("bo", spec("r", "", "personal_data=present"))
	_, err := w.desk.Ask(t.Context(), principal("chi"), s.Review.ID, 1, "?")
	w.ok("ask", err)
	w.submit("bo", spec("r", "with evidence", "personal_data=present"))
	if got := w.review(s).State; got != review.Superseded || w.status(s) != review.StatusSuperseded {
		t.Errorf("review %s, screening %s, want superseded", got, w.status(s))
	}
	w.checkRecord()
}

// Taking back works in every state that waits for somebody, and in no other.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(w *world, s *review.Screening) error{
		"open": func(*world, *review.Screening) error { return nil },
		"claimed": func(w *world, s *review.Screening) error {
			_, err := w.desk.Claim(w.Context(), principal("chi"), s.Review.ID, 0)
			return err
		},
		"needs_evidence": func(w *world, s *review.Screening) error {
			_, err := w.desk.Ask(w.Context(), principal("chi"), s.Review.ID, 0, "?")
			return err
		},
		"half voted": func(w *world, s *review.Screening) error { return w.vote("chi", s, review.VoteAdmit) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			raw := spec("r", "", "personal_data=present")
			s := w.submit("bo", raw)
			w.ok(name, prepare(w, s))
			_, err := w.desk.Withdraw(t.Context(), principal("chi"), s.ID, "mine to stop?")
			w.refused("a stranger withdraws", err, review.ErrNotAllowed)
			sc, err := w.desk.Withdraw(t.Context(), principal("bo"), s.ID, "not needed any more")
			if w.ok("withdraw", err); sc.Status != review.StatusWithdrawn || w.gate(raw) != review.StatusWithdrawn || w.review(s).State != review.Withdrawn {
				t.Errorf("screening %s, gate %s, review %s", sc.Status, w.gate(raw), w.review(s).State)
			}
			w.refused("a vote after it", w.vote("dee", s, review.VoteAdmit), review.ErrConflict)
			_, err = w.desk.Withdraw(t.Context(), principal("bo"), s.ID, "again")
			w.refused("twice", err, review.ErrConflict)
			if n := w.deliveries()["review.withdrawn pending"]; n != 2 {
				t.Errorf("%d endpoints told, want 2", n)
			}
			if again := w.submit("bo", raw); again.ID == s.ID || again.Status != review.StatusPending {
				t.Errorf("submitted again: %s", again.Status)
			}
			w.checkRecord()
		})
	}
}

func TestAppeal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.use(`
people: [{id: ana}, {id: bo}, {id: chi}, {id: dee}, {id: eve}]
groups: {general: [ana, bo, chi, dee, eve], legal: [bo, chi, eve]}`, "")
	ctx, raw := t.Context(), spec("r", "", "violent=present") // legal: one of bo, chi, eve
	s := w.submit("dee", raw)
	_, err := w.desk.Appeal(ctx, principal("dee"), s.ID, "early")
	w.refused("of what is open", err, review.ErrConflict)
	w.ok("block", w.vote("bo", s, review.VoteBlock))
	_, err = w.desk.Appeal(ctx, principal("chi"), s.ID, "for a friend")
	w.refused("by a stranger", err, review.ErrNotAllowed)
	sc, err := w.desk.Appeal(ctx, principal("dee"), s.ID, "the films are fiction")
	w.ok("appeal", err)
	r := w.review(s)
	if sc.Status != review.StatusBlocked || w.gate(raw) != review.StatusBlocked || r.Kind != review.KindAppeal || r.Origin != s.Review.ID || r.State != review.Open {
		t.Errorf("the block does not hold: %s, %+v", sc.Status, r)
	}
	_, err = w.desk.Appeal(ctx, principal("ana"), s.ID, "again")
	w.refused("twice at once", err, review.ErrConflict)
	w.refused("who blocked votes again", w.vote("bo", &review.Screening{SpecSHA256: s.SpecSHA256, Review: sc.Review}, review.VoteAdmit), review.ErrNotAllowed)
	w.ok("another blocks", w.vote("chi", &review.Screening{SpecSHA256: s.SpecSHA256, Review: sc.Review}, review.VoteBlock))
	if w.gate(raw) != review.StatusBlocked || w.submit("dee", raw).ID != s.ID {
		t.Errorf("gate %s", w.gate(raw))
	}
	if sc, err = w.desk.Appeal(ctx, principal("dee"), s.ID, "once more"); err != nil {
		t.Fatal(err)
	}
	w.overdue(sc)
	w.sweep()
	if w.gate(raw) != review.StatusBlocked || w.review(s).State != review.Expired {
		t.Errorf("an appeal that expired: gate %s, review %s", w.gate(raw), w.review(s).State)
	}
	if again := w.submit("dee", spec("r", "other bytes", "violent=present")); again.ID != s.ID {
		t.Errorf("an appeal that expired reopened the block: %s", again.Status)
	}
	_, err = w.desk.Appeal(ctx, principal("dee"), s.ID, "and again")
	w.ok("appeal", err)
	if sc, err = w.desk.Withdraw(ctx, principal("dee"), s.ID, "no"); err != nil || sc.Status != review.StatusBlocked {
		t.Errorf("appeal withdrawn: %v, %v", sc, err)
	}
	if sc, err = w.desk.Appeal(ctx, principal("dee"), s.ID, "last"); err != nil {
		t.Fatal(err)
	}
	w.ok("admit", w.vote("eve", &review.Screening{SpecSHA256: s.SpecSHA256, Review: sc.Review}, review.VoteAdmit))
	if w.gate(raw) != review.StatusAdmitted {
		t.Errorf("gate %s, want admitted", w.gate(raw))
	}
	w.checkRecord()
}

func TestAppealNeedsPeopleWhoAreLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("chi", spec("r", "", "violent=present")) // legal: bo and chi
	w.ok("block", w.vote("bo", s, review.VoteBlock))
	_, err := w.desk.Appeal(t.Context(), principal("chi"), s.ID, "to whom?")
	w.refused("nobody is left", err, review.ErrConflict)
}

// What the floor blocks is final: there is no way to bring it before people.
func TestFloorIsFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("bo", spec("r", "", "minors=present", "sexual_content=present", "violent=present"))
	ctx := t.Context()
	_, err := w.desk.Appeal(ctx, principal("bo"), s.ID, "please")
	w.refused("appeal", err, review.ErrFloor)
	_, err = w.desk.Reopen(ctx, principal("bo"), s.ID, "please")
	w.refused("reopen", err, review.ErrConflict)
	for _, term := range []string{"safety:sexualised_minors", "ethics:violent_inside"} {
		_, err = w.desk.Waive(ctx, principal("chi"), review.WaiverRequest{ScreeningID: s.ID, Term: term, Reason: "r", Ticket: "T-1", Days: 1})
		w.refused("waive "+term, err, review.ErrFloor)
	}
	for _, sql := range []string{`update screening set status = 'pending'`, `update screening set decided_by = 'people'`,
		`update screening set status = 'admitted', decided_by = 'people', admitted_until = now() + interval '1 day'`,
		`update screening set status = 'admitted', decided_by = 'waiver', admitted_until = now() + interval '1 day'`} {
		if _, err := w.pool.Exec(ctx, sql); err == nil {
			t.Errorf("the database takes: %s", sql)
		}
	}
	if w.status(s) != review.StatusBlocked {
		t.Errorf("status %s", w.status(s))
	}
}

func TestReopen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, raw := t.Context(), spec("r", "", "personal_data=present")
	s := w.submit("bo", raw)
	_, err := w.desk.Reopen(ctx, principal("bo"), s.ID, "early")
	w.refused("what is open", err, review.ErrConflict)
	w.ok("one of two", w.vote("chi", s, review.VoteAdmit))
	w.overdue(s) // not swept: reopening closes it first
	_, err = w.desk.Reopen(ctx, review.Principal{Subject: "dee", Project: "default", Scopes: []review.Scope{review.ScopeSubmit}}, s.ID, "not mine")
	w.refused("a stranger", err, review.ErrNotFound)
	sc, err := w.desk.Reopen(ctx, principal("bo"), s.ID, "people were away")
	w.ok("reopen", err)
	r := w.review(s)
	if sc.Status != review.StatusPending || w.gate(raw) != review.StatusPending || r.Kind != review.KindReopen || r.Origin != s.Review.ID || len(r.Panels[0].Votes) != 0 {
		t.Errorf("reopened: %s, %+v", sc.Status, r)
	}
	w.ok("chi", w.vote("chi", sc, review.VoteAdmit))
	w.ok("dee", w.vote("dee", sc, review.VoteAdmit))
	if w.gate(raw) != review.StatusAdmitted {
		t.Errorf("gate %s", w.gate(raw))
	}
	w.checkRecord()

	// Another spec took the run meanwhile: it is not two at once.
	old := w.submit("bo", spec("q", "", "personal_data=present"))
	w.overdue(old)
	w.sweep()
	w.submit("bo", spec("q", "clean"))
	_, err = w.desk.Reopen(ctx, principal("bo"), old.ID, "this one too")
	w.refused("the run goes on with another spec", err, review.ErrRunRefTaken)
}

const tieredPolicies = `
policies:
  - {id: violence, match: {terms: ["violent_*"]}, group: legal, quorum: 2, due: 24h, then: lead, endpoints: [one]}
  - {id: general, group: general, quorum: 1, due: 48h, endpoints: [two]}
  - {id: lead, group: lead, quorum: 1, due: 12h, endpoints: [three]}
default: general
endpoints:
  - {id: one, url: "https://one.example/", secret_env: S}
  - {id: two, url: "https://two.example/", secret_env: S}
  - {id: three, url: "https://three.example/", secret_env: S}
`

const tieredPeople = `
people: [{id: ana}, {id: bo}, {id: chi}, {id: dee}, {id: eve}]
groups: {general: [ana, bo, chi, dee], legal: [bo, chi, eve], lead: [chi, dee]}
`

func TestTiers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.use(tieredPeople, tieredPolicies)
	raw := spec("r", "", "violent=present")
	s := w.submit("bo", raw)
	w.ok("chi, in legal", w.vote("chi", s, review.VoteAdmit))
	w.refused("dee, whose turn has not come", w.vote("dee", s, review.VoteAdmit), review.ErrConflict)
	w.later(s, 13*time.Hour)
	w.sweep()
	w.sweep()
	if n := w.deliveries()["review.reminder pending"]; n != 1 {
		t.Errorf("%d reminders at half of the time, want 1", n)
	}
	w.later(s, 12*time.Hour) // 25 of 24 hours
	if w.gate(raw) != review.StatusPending {
		t.Errorf("about to be handed over: %s, want pending", w.gate(raw))
	}
	w.refused("eve, in legal, too late", w.vote("eve", s, review.VoteAdmit), review.ErrConflict)
	for range 2 {
		w.sweep()
	}
	r := w.review(s)
	if r.Panels[0].Live() || !r.Panels[1].Live() || r.State != review.Open || r.Version != 3 {
		t.Fatalf("handed over: %+v", r)
	}
	if left := time.Until(r.DueAt); left < 11*time.Hour || left > 13*time.Hour {
		t.Errorf("the next tier has %s, want its 12 hours", left)
	}
	want := map[string]int{"review.opened pending": 1, "review.reminder pending": 1, "review.overdue pending": 2}
	if diff := cmp.Diff(want, w.deliveries()); diff != "" {
		t.Errorf("deliveries (-want +got)\n%s", diff)
	}
	w.refused("eve, whose panel has passed", w.vote("eve", s, review.VoteAdmit), review.ErrConflict)
	if w.gate(raw) != review.StatusPending { // lead needs one; chi's vote in legal must not be it
		t.Errorf("time alone completed a quorum: %s", w.gate(raw))
	}
	w.later(s, 13*time.Hour)
	if w.gate(raw) != review.StatusExpired {
		t.Errorf("nobody is left to hand over to: %s, want expired", w.gate(raw))
	}
	w.sweep()
	if got := w.review(s).State; got != review.Expired {
		t.Errorf("review %s", got)
	}
	w.checkRecord()
}

func TestTierDecides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.use(tieredPeople, tieredPolicies)
	raw := spec("r", "", "violent=present")
	s := w.submit("bo", raw)
	w.ok("chi in legal", w.vote("chi", s, review.VoteAdmit))
	w.later(s, 25*time.Hour)
	w.sweep()
	w.ok("chi again, in lead", w.vote("chi", s, review.VoteAdmit))
	if w.gate(raw) != review.StatusAdmitted {
		t.Errorf("gate %s", w.gate(raw))
	}
	w.checkRecord()
}

// A panel that has its quorum waits for the others; its own time is over.
func TestAnsweredPanelDoesNotExpire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := spec("r", "", "personal_data=present", "violent=present") // violence due 24h, general 48h
	s := w.submit("airflow", withOnBehalf(raw))
	w.ok("bo, legal and general", w.vote("bo", s, review.VoteAdmit))
	w.later(s, 30*time.Hour)
	w.sweep()
	if r := w.review(s); r.State != review.Open || time.Until(r.DueAt) > 19*time.Hour {
		t.Fatalf("%s, due in %s", r.State, time.Until(r.DueAt))
	}
	w.ok("dee, general", w.vote("dee", s, review.VoteAdmit))
	if got := w.status(s); got != review.StatusAdmitted {
		t.Errorf("%s", got)
	}
	w.checkRecord()
}

func TestComments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("bo", spec("r", "", "personal_data=present"))
	for i, who := range []string{"chi", "bo", "dee"} {
		r, err := w.desk.Comment(t.Context(), principal(who), s.Review.ID, 1, fmt.Sprintf("remark %d", i))
		if w.ok("comment", err); len(r.Notes) != i+1 || r.Notes[i].Person != who || r.Version != 1 {
			t.Errorf("%+v", r.Notes)
		}
	}
	_, err := w.desk.Comment(t.Context(), principal("chi"), s.Review.ID, 7, "stale")
	w.refused("on another version", err, review.ErrConflict)
	_, err = w.desk.Comment(t.Context(), principal("airflow"), s.Review.ID, 0, "beep")
	w.refused("a service", err, review.ErrNotAllowed)
	w.ok("block", w.vote("chi", s, review.VoteBlock))
	_, err = w.desk.Comment(t.Context(), principal("dee"), s.Review.ID, 0, "for the record")
	w.ok("on a closed review", err)
	c, _, err := w.desk.CorrectReview(t.Context(), principal("dee"), s.Review.ID, review.CorrectionRequest{Text: "The data is synthetic."})
	if w.ok("correction", err); c.ScreeningID != s.ID {
		t.Errorf("correction of %s", c.ScreeningID)
	}
	w.checkRecord()
}
