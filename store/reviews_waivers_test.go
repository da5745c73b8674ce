package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/review"
	"weir/review/reviewtest"
	"weir/screening"
)

var errInvalid = errors.New("an InvalidError")

func (w *world) invalid(what string, err error) {
	w.Helper()
	var invalid *screening.InvalidError
	if !errors.As(err, &invalid) {
		w.Errorf("%s: %v, want an InvalidError", what, err)
	}
}

const (
	personalTerm = "ethics:personal_data_inside"
	violentTerm  = "ethics:violent_inside"
)

// waive asks for a waiver of a term by chi and lets dee or bo confirm it.
func (w *world) waive(s *review.Screening, term, confirmer string, change ...func(*review.WaiverRequest)) *review.Waiver {
	w.Helper()
	req := review.WaiverRequest{ScreeningID: s.ID, Term: term, Reason: "agreed", Ticket: "T-1", Days: 30}
	for _, c := range change {
		c(&req)
	}
	made, err := w.desk.Waive(w.Context(), principal("chi"), req)
	w.ok("waive", err)
	if made.InForce {
		w.Fatal("in force without a second person")
	}
	made, err = w.desk.ConfirmWaiver(w.Context(), principal(confirmer), made.ID)
	if w.ok("confirm", err); !made.InForce {
		w.Fatal("confirmed and not in force")
	}
	return made
}

func forRuns(prefix string, inputs string) func(*review.WaiverRequest) {
	return func(r *review.WaiverRequest) {
		r.RunPrefix = prefix
		for _, c := range inputs {
			r.Inputs = append(r.Inputs, "sha256:"+strings.Repeat(string(c), 64))
		}
	}
}

// paths are all ways to learn the status of a screening.
func (w *world) paths(s *review.Screening, raw []byte) map[string]review.Status {
	w.Helper()
	ctx, p, got := w.Context(), principal("bo"), map[string]review.Status{}
	key := screening.Sum([]byte(s.ID))
	for name, read := range map[string]func() (review.Status, error){
		"gate/check": func() (review.Status, error) {
			a, err := w.desk.Check(ctx, p, s.SpecSHA256)
			return a.Status, err
		},
		"get": func() (review.Status, error) { sc, err := w.desk.Screening(ctx, p, s.ID); return sc.Status, err },
		"long poll": func() (review.Status, error) {
			sc, err := w.desk.Wait(ctx, p, s.ID, 0, nil)
			return sc.Status, err
		},
		"review": func() (review.Status, error) {
			r, err := w.desk.Review(ctx, p, s.Review.ID)
			return r.Screening.Status, err
		},
		"list": func() (review.Status, error) {
			list, err := w.desk.Screenings(ctx, p, review.ListQuery{RunRef: s.RunRef, Limit: 100})
			for _, sc := range list {
				if sc.ID == s.ID {
					return sc.Status, err
				}
			}
			return "not listed", err
		},
		"list by status": func() (review.Status, error) {
			for _, status := range []review.Status{review.StatusAdmitted, review.StatusPending, review.StatusExpired, review.StatusBlocked} {
				list, err := w.desk.Screenings(ctx, p, review.ListQuery{Status: status, Limit: 100})
				for _, sc := range list {
					if sc.ID == s.ID {
						return status, err
					}
				}
			}
			return "not listed", nil
		},
		"review list": func() (review.Status, error) {
			list, err := w.desk.Reviews(ctx, p, review.ReviewQuery{Limit: 100})
			for _, r := range list {
				if r.ID == s.Review.ID {
					return r.Screening.Status, err
				}
			}
			return "not listed", err
		},
		"submit": func() (review.Status, error) {
			sc, _, err := w.desk.Submit(ctx, p, raw, &key)
			if errors.Is(err, review.ErrReviewExpired) {
				return review.StatusExpired, nil
			}
			if err == nil && sc.ID != s.ID {
				return "another screening", nil
			}
			return sc.Status, err
		},
		"submit with gate": func() (review.Status, error) {
			a, err := w.desk.AnswerTo(ctx, p, s, s.SpecSHA256)
			return a.Status, err
		},
	} {
		status, err := read()
		if err != nil {
			w.Errorf("%s: %v", name, err)
		}
		got[name] = status
	}
	return got
}

func (w *world) everywhere(when string, s *review.Screening, raw []byte, want review.Status) {
	w.Helper()
	for path, got := range w.paths(s, raw) {
		if got != want {
			w.Errorf("%s, %s: %s, want %s", when, path, got, want)
		}
	}
}

// A waiver is applied by the database's time on every path alike: from the
// second person's word to its end.
func TestWaiverOnEveryPath(t *testing.T) {
	t.Parallel()
	w, raw := newWorld(t), spec("r", "", "violent=present")
	w.use("", `
policies: [{id: general, group: general, quorum: 2, due: 48h}]
default: general`)
	s := w.submit("bo", raw)
	w.everywhere("before", s, raw, review.StatusPending)
	made, err := w.desk.Waive(t.Context(), principal("chi"), review.WaiverRequest{ScreeningID: s.ID, Term: violentTerm, Reason: "agreed", Ticket: "T-1", Days: 2})
	w.ok("waive", err)
	w.everywhere("asked for", s, raw, review.StatusPending)
	made, err = w.desk.ConfirmWaiver(t.Context(), principal("dee"), made.ID)
	w.ok("confirm", err)
	w.everywhere("confirmed", s, raw, review.StatusAdmitted)
	sc, err := w.desk.Screening(t.Context(), principal("bo"), s.ID)
	w.ok("read", err)
	if sc.DecidedBy != "waiver" || sc.AdmittedUntil == nil || sc.AdmittedUntil.After(made.ExpiresAt) || sc.WaivedUntil == nil {
		t.Errorf("admitted by %s until %v; the waiver ends %s", sc.DecidedBy, sc.AdmittedUntil, made.ExpiresAt)
	}
	w.later(s, 100*time.Hour) // the review is overdue meanwhile, and is left alone
	w.sweep()
	for path, got := range w.paths(s, raw) {
		if got != review.StatusAdmitted && path != "review list" {
			t.Errorf("review overdue, %s: %s, want admitted", path, got)
		}
	}
	w.exec(`update waiver set created_at = created_at - interval '3 days', expires_at = expires_at - interval '3 days', confirmed_at = confirmed_at - interval '3 days'`)
	for path, got := range w.paths(s, raw) {
		if got != review.StatusExpired && path != "review list" {
			t.Errorf("waiver over, %s: %s, want expired", path, got)
		}
	}
	w.sweep()
	if got := w.review(s).State; got != review.Expired {
		t.Errorf("review %s", got)
	}
	w.checkRecord()
}

func TestWaiverWakesWhoWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("dee", spec("r", "", "violent=present"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got := make(chan review.Status, 1)
	go func() {
		if sc, err := w.desk.Wait(ctx, principal("dee"), s.ID, 30*time.Second, nil); err == nil {
			got <- sc.Status
		}
		close(got)
	}()
	w.waive(s, violentTerm, "bo")
	if status := <-got; status != review.StatusAdmitted {
		t.Errorf("waited for %q", status)
	}
}

func TestWhoMayWaive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	s := w.submit("dee", pinned("nlp/bot@1", "", "ab", "violent=present", "personal_data=present")) // ana owns it; legal: bo, chi
	base := review.WaiverRequest{ScreeningID: s.ID, Term: violentTerm, Reason: "agreed", Ticket: "T-1", Days: 30}
	for _, tt := range []struct {
		name, who string
		change    func(*review.WaiverRequest)
		want      error
	}{
		{"of another panel", "ana", nil, review.ErrNotAllowed},
		{"a service", "airflow", nil, review.ErrNotAllowed},
		{"nobody", "mallory", nil, review.ErrNotAllowed},
		{"the submitter", "dee", func(r *review.WaiverRequest) { r.Term = personalTerm }, review.ErrNotAllowed},
		{"the owner", "ana", func(r *review.WaiverRequest) { r.Term = personalTerm }, review.ErrNotAllowed},
		{"a safety term", "chi", func(r *review.WaiverRequest) { r.Term = "safety:sexualised_minors" }, review.ErrFloor},
		{"a term that is upheld", "chi", func(r *review.WaiverRequest) { r.Term = "ethics:other" }, errInvalid},
		{"a term without its layer", "chi", func(r *review.WaiverRequest) { r.Term = "violent_inside" }, errInvalid},
		{"no reason", "chi", func(r *review.WaiverRequest) { r.Reason = " \u200b" }, errInvalid},
		{"no ticket", "chi", func(r *review.WaiverRequest) { r.Ticket = "" }, errInvalid},
		{"31 days", "chi", func(r *review.WaiverRequest) { r.Days = 31 }, errInvalid},
		{"no days", "chi", func(r *review.WaiverRequest) { r.Days = 0 }, errInvalid},
		{"another run", "chi", func(r *review.WaiverRequest) {
			r.RunPrefix, r.Inputs = "vision/", []string{"sha256:" + strings.Repeat("a", 64)}
		}, errInvalid},
		{"not every input", "chi", forRuns("nlp/", "a"), errInvalid},
		{"no input", "chi", forRuns("nlp/", ""), errInvalid},
		{"an input that is not in it", "chi", forRuns("nlp/", "abc"), errInvalid},
		{"inputs without runs", "chi", func(r *review.WaiverRequest) { r.Inputs = []string{"sha256:" + strings.Repeat("a", 64)} }, errInvalid},
		{"another screening", "chi", func(r *review.WaiverRequest) { r.ScreeningID = "01a22daf-0000-7000-8000-000000000000" }, review.ErrNotFound},
	} {
		req := base
		if tt.change != nil {
			tt.change(&req)
		}
		_, err := w.desk.Waive(ctx, principal(tt.who), req)
		if tt.want == errInvalid {
			w.invalid(tt.name, err)
		} else {
			w.refused(tt.name, err, tt.want)
		}
	}
	if n := one[int](w, `select count(*) from waiver`); n != 0 {
		t.Fatalf("%d waivers kept", n)
	}
	made, err := w.desk.Waive(ctx, principal("chi"), base)
	w.ok("waive", err)
	for who, want := range map[string]error{"chi": review.ErrNotAllowed, "dee": review.ErrNotAllowed, "ana": review.ErrNotAllowed, "mallory": review.ErrNotAllowed} {
		_, err := w.desk.ConfirmWaiver(ctx, principal(who), made.ID)
		w.refused(who+" confirms", err, want)
	}
	w.refused("the author votes", w.vote("chi", s, review.VoteAdmit), review.ErrNotAllowed)
	w.exec(`update waiver set created_at = created_at - interval '31 days', expires_at = expires_at - interval '31 days'`)
	_, err = w.desk.ConfirmWaiver(ctx, principal("bo"), made.ID)
	w.refused("an expired one", err, review.ErrConflict)
	made = w.waive(s, violentTerm, "bo")
	_, err = w.desk.ConfirmWaiver(ctx, principal("bo"), made.ID)
	w.refused("twice", err, review.ErrConflict)
	for _, sql := range []string{`update waiver set term = 'safety:x'`, `update waiver set confirmed_by = author`,
		`update waiver set expires_at = created_at + interval '31 days'`, `update waiver set run_prefix = 'x'`} {
		if _, err := w.pool.Exec(ctx, sql); err == nil {
			t.Errorf("the database takes: %s", sql)
		}
	}
	w.checkRecord()
}

// A waiver for runs holds for later specs with the same inputs and finding, and
// for nothing else.
func TestWaiverForRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("dee", pinned("nlp/bot@1", "", "ab", "violent=present"))
	w.waive(s, violentTerm, "bo", forRuns("nlp/", "ab"))
	for i, tt := range []struct {
		name string
		by   string
		raw  []byte
		want review.Status
	}{
		{"the same inputs, another run", "dee", pinned("nlp/bot@2", "", "ab", "violent=present"), review.StatusAdmitted},
		{"in another order", "dee", pinned("nlp/bot@3", "", "ba", "violent=present"), review.StatusAdmitted},
		{"one input less", "dee", pinned("nlp/bot@4", "", "a", "violent=present"), review.StatusPending},
		{"one input more", "dee", pinned("nlp/bot@5", "", "abc", "violent=present"), review.StatusPending},
		{"another input", "dee", pinned("nlp/bot@6", "", "ac", "violent=present"), review.StatusPending},
		{"no digests", "dee", spec("nlp/bot@7", "", "violent=present"), review.StatusPending},
		{"another prefix", "dee", pinned("vision/bot@1", "", "ab", "violent=present"), review.StatusPending},
		{"a finding more", "dee", pinned("nlp/bot@8", "", "ab", "violent=present", "personal_data=present"), review.StatusPending},
		{"blocked by the floor", "dee", pinned("nlp/bot@9", "", "ab", "violent=present", "minors=present", "sexual_content=present"), review.StatusBlocked},
		{"the waiver's author submits", "chi", pinned("nlp/bot@10", "", "ab", "violent=present"), review.StatusPending},
		{"who confirmed it submits", "bo", pinned("nlp/bot@11", "", "ab", "violent=present"), review.StatusPending},
	} {
		got := w.submit(tt.by, tt.raw)
		if got.Status != tt.want || w.gate(tt.raw) != tt.want {
			t.Errorf("%d, %s: %s, gate %s, want %s", i, tt.name, got.Status, w.gate(tt.raw), tt.want)
		}
		if tt.want == review.StatusAdmitted && (got.DecidedBy != "waiver" || got.Review != nil || got.AdmittedUntil.Sub(got.CreatedAt) > 7*24*time.Hour+time.Minute) {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	// What was admitted under it ends with it.
	w.exec(`update waiver set created_at = now() - interval '29 days', confirmed_at = now() - interval '29 days', expires_at = now() + interval '1 hour'`)
	raw := pinned("nlp/bot@12", "", "ab", "violent=present")
	if got := w.submit("dee", raw); got.Status != review.StatusAdmitted || time.Until(*got.AdmittedUntil) > 61*time.Minute {
		t.Errorf("%s until %v", got.Status, got.AdmittedUntil)
	}
	w.exec(`update waiver set created_at = now() - interval '31 days', confirmed_at = now() - interval '31 days', expires_at = now() - interval '1 day'`)
	w.exec(`update screening set admitted_until = now() - interval '1 second' where decided_by = 'waiver'`)
	if got := w.gate(raw); got != review.StatusExpired {
		t.Errorf("after its end: %s", got)
	}
	if got := w.submit("dee", raw); got.Status != review.StatusPending {
		t.Errorf("submitted after its end: %s, want pending", got.Status)
	}
	w.checkRecord()
}

// With one of two findings waived the rest is folded again: its panel has nothing
// to decide, and what people admit ends with the waiver.
func TestPartialWaiver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := withOnBehalf(pinned("r", "", "a", "violent=present", "personal_data=present"))
	s := w.submit("airflow", raw)
	made := w.waive(s, violentTerm, "bo", func(r *review.WaiverRequest) { r.Days = 1 })
	if got := w.gate(raw); got != review.StatusPending {
		t.Errorf("one of two waived: %s", got)
	}
	for _, who := range []string{"dee", "bo"} { // general; legal's chi wrote the waiver
		w.ok(who, w.vote(who, s, review.VoteAdmit))
	}
	sc, err := w.store.Screening(t.Context(), "default", s.ID)
	w.ok("read", err)
	if sc.Status != review.StatusAdmitted || sc.AdmittedUntil.After(made.ExpiresAt) {
		t.Errorf("%s until %v, the waiver ends %s", sc.Status, sc.AdmittedUntil, made.ExpiresAt)
	}
	w.checkRecord()
}

// The votes of the other panel may be there before the waiver: then it was the
// last that was needed, and nobody has to vote again.
func TestWaiverIsTheLastThatWasNeeded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := withOnBehalf(pinned("r", "", "a", "violent=present", "personal_data=present"))
	s, other := w.submit("ana", raw), w.submit("ana", withOnBehalf(pinned("r/2", "", "a", "violent=present", "personal_data=present")))
	w.ok("dee", w.vote("dee", s, review.VoteAdmit))
	w.ok("dee", w.vote("dee", other, review.VoteAdmit))
	// After the vote of dee, which would have answered for legal too.
	w.use(`
people: [{id: ana}, {id: bo}, {id: chi}, {id: dee}, {id: eve}]
groups: {general: [ana, bo, chi, dee, eve], legal: [bo, chi, dee]}`, "")
	w.ok("eve", w.vote("eve", s, review.VoteAdmit))
	w.ok("eve", w.vote("eve", other, review.VoteAdmit))
	made := w.waive(s, violentTerm, "dee", forRuns("r", "a"), func(r *review.WaiverRequest) { r.Days = 1 })
	for name, of := range map[string]*review.Screening{"that one": s, "another run": other} {
		sc, err := w.store.Screening(t.Context(), "default", of.ID)
		w.ok("read", err)
		if sc.Status != review.StatusAdmitted || sc.DecidedBy != "people" || sc.AdmittedUntil.After(made.ExpiresAt) {
			t.Errorf("%s: %s by %s until %v, the waiver ends %s", name, sc.Status, sc.DecidedBy, sc.AdmittedUntil, made.ExpiresAt)
		}
	}
	w.checkRecord()

	// Waivers of everything are nobody's answer: they admit, and end.
	all := w.submit("ana", withOnBehalf(pinned("q", "", "b", "violent=present")))
	w.waive(all, violentTerm, "dee", func(r *review.WaiverRequest) { r.Days = 1 })
	if sc, err := w.store.Screening(t.Context(), "default", all.ID); err != nil || sc.DecidedBy != "waiver" || w.review(all).State != review.Open {
		t.Errorf("%s by %s, its review %s", sc.Status, sc.DecidedBy, w.review(all).State)
	}
}

// The last vote on another run and the waiver for it meet, 60 times: whoever comes
// second sees the first, and the run is admitted.
func TestWaiverMeetsTheLastVote(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.use(`
people: [{id: ana}, {id: bo}, {id: chi}, {id: dee}, {id: eve}]
groups: {general: [ana, bo, chi, dee, eve], legal: [bo, chi]}`, "")
	for i := range 60 {
		run := fmt.Sprintf("q%d/", i)
		s := w.submit("ana", pinned(run+"1", "", "a", "violent=present", "personal_data=present"))
		other := w.submit("ana", pinned(run+"2", "", "a", "violent=present", "personal_data=present"))
		w.ok("dee", w.vote("dee", other, review.VoteAdmit))
		req := review.WaiverRequest{ScreeningID: s.ID, Term: violentTerm, Reason: "agreed", Ticket: "T-1", Days: 30}
		forRuns(run, "a")(&req)
		made, err := w.desk.Waive(t.Context(), principal("chi"), req)
		w.ok("waive", err)
		voted, confirmed := race(
			func() error { return w.vote("eve", other, review.VoteAdmit) },
			func() error { _, err := w.desk.ConfirmWaiver(t.Context(), principal("bo"), made.ID); return err })
		w.ok("eve", voted)
		w.ok("confirm", confirmed)
		if sc, err := w.store.Screening(t.Context(), "default", other.ID); err != nil || sc.Status != review.StatusAdmitted {
			t.Fatalf("round %d: %s, %v", i, sc.Status, err)
		}
	}
	w.checkRecord()
}

// Nobody trains by their own waiver under a name that they had when they made it.
func TestWaiverOfWhoWasRenamed(t *testing.T) {
	t.Parallel()
	const renamed = `
people: [{id: ana}, {id: bo}, {id: charlie, aliases: [chi]}, {id: dee}]
groups: {general: [ana, bo, charlie, dee], legal: [bo, charlie]}`
	w := newWorld(t)
	made := w.submit("ana", pinned("r/1", "", "a", "personal_data=present"))
	w.waive(made, personalTerm, "dee", forRuns("r/", "a"))
	if s := w.submit("bo", pinned("r/2", "", "a", "personal_data=present")); s.Status != review.StatusAdmitted {
		t.Fatalf("a run of somebody else: %s", s.Status)
	}
	w.use(renamed, "")
	for _, run := range []string{"r/3", "r/2"} { // the latter has the bytes that bo submitted
		raw := pinned(run, "", "a", "personal_data=present")
		if s := w.submit("charlie", raw); s.Status != review.StatusPending || w.gate(raw) != review.StatusPending {
			t.Errorf("%s by the author of the waiver, renamed: %s, at the gate %s", run, s.Status, w.gate(raw))
		}
	}
	w.checkRecord()
}

// A waiver takes a finding away and not the doubt that nothing was checkable:
// that is still the panel's, with its whole quorum.
func TestWaiverWhereNothingWasCheckable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := pinned("r", "", "a", "personal_data=unknown", "violent=unknown")
	s := w.submit("ana", raw)
	w.waive(s, personalTerm, "dee")
	if got := w.gate(raw); got != review.StatusPending {
		t.Errorf("waived: %s", got)
	}
	w.ok("bo", w.vote("bo", s, review.VoteAdmit))
	if got := w.gate(raw); got != review.StatusPending {
		t.Errorf("one vote of the two that are needed: %s", got)
	}
	w.ok("dee", w.vote("dee", s, review.VoteAdmit))
	if got := w.gate(raw); got != review.StatusAdmitted {
		t.Errorf("both votes: %s", got)
	}
	w.checkRecord()
}

const strictPledge = `
schema: weir/pack/v1
id: pledge
version: "1"
layer: ethics
title: Pledge for tests
description: Two terms.
terms:
  - id: personal_data_inside
    title: Personal data
    description: Data about people.
    severity: medium
    over: [dataset]
    violated_if: {tag: {personal_data: present}}
    response: escalate
    remedy: Remove it.
  - id: violent_inside
    title: Violence
    description: Violent content.
    severity: high
    over: [dataset]
    violated_if: {tag: {violent: present}}
    response: block
    remedy: Remove it.
`

// strict makes violence a block of the packs.
func (w *world) strict() {
	w.Helper()
	s := setup(w.T)
	s.Vocabulary = reviewtest.Vocabulary(w, reviewtest.Floor, strictPledge)
	var err error
	if w.desk, err = review.NewDesk(w.store, s, review.Config{}); err != nil {
		w.Fatal(err)
	}
}

// A block of the packs is reached by waiver or appeal alone.
func TestWaivedBlock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.strict()
	raw := spec("r", "", "violent=present")
	s := w.submit("dee", raw)
	if s.Status != review.StatusBlocked || s.Review != nil {
		t.Fatalf("%s, review %v", s.Status, s.Review)
	}
	w.waive(s, violentTerm, "bo", func(r *review.WaiverRequest) { r.Days = 1 })
	if got := w.gate(raw); got != review.StatusAdmitted {
		t.Errorf("waived: %s", got)
	}
	if again := w.submit("dee", raw); again.Status != review.StatusAdmitted || again.DecidedBy != "waiver" {
		t.Errorf("submitted again: %s by %s", again.Status, again.DecidedBy)
	}
	w.exec(`update waiver set created_at = created_at - interval '2 days', expires_at = expires_at - interval '2 days', confirmed_at = confirmed_at - interval '2 days'`)
	if got := w.status(s); got == review.StatusAdmitted {
		t.Error("the first screening is still admitted after the waiver's end")
	}

	// A block that is not the last word on its run stays one.
	older := w.submit("dee", spec("p", "", "violent=present"))
	w.submit("dee", spec("p", "clean"))
	w.waive(older, violentTerm, "bo", func(r *review.WaiverRequest) { r.Days = 1 })
	if got := w.status(older); got != review.StatusBlocked {
		t.Errorf("a waived block of a run that went on: %s", got)
	}

	// What else escalates goes to people once the block is waived, and not before.
	both := withOnBehalf(spec("q", "", "violent=present", "personal_data=present"))
	q := w.submit("airflow", both)
	if q.Status != review.StatusBlocked {
		t.Fatalf("%s", q.Status)
	}
	w.waive(q, violentTerm, "bo", func(r *review.WaiverRequest) { r.Days = 1 })
	if got := w.gate(both); got != review.StatusBlocked {
		t.Errorf("nobody looks at the rest yet: %s, want blocked", got)
	}
	next := w.submit("airflow", both)
	if next.Status != review.StatusPending || next.ID == q.ID {
		t.Fatalf("submitted under the waiver: %s", next.Status)
	}
	w.ok("dee", w.vote("dee", next, review.VoteAdmit))
	saved := one[time.Time](w, `select max(expires_at) from waiver`)
	w.exec(`update waiver set created_at = created_at - interval '2 days', expires_at = expires_at - interval '2 days', confirmed_at = confirmed_at - interval '2 days'`)
	w.refused("the waiver is over before the last vote", w.vote("bo", next, review.VoteAdmit), review.ErrConflict)
	w.exec(`update waiver set expires_at = $1 where expires_at = (select max(expires_at) from waiver)`, saved)
	w.ok("bo", w.vote("bo", next, review.VoteAdmit))
	sc, err := w.store.Screening(t.Context(), "default", next.ID)
	w.ok("read", err)
	if sc.Status != review.StatusAdmitted || sc.AdmittedUntil.After(saved) {
		t.Errorf("%s until %v, the waiver ends %s", sc.Status, sc.AdmittedUntil, saved)
	}
	w.checkRecord()
}

func TestAppealOfAPackBlock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.strict()
	raw := spec("r", "", "violent=present")
	s := w.submit("dee", raw)
	sc, err := w.desk.Appeal(t.Context(), principal("dee"), s.ID, "a history museum")
	w.ok("appeal", err)
	if sc.Status != review.StatusBlocked || w.review(s).Panels[0].Policy != "violence" {
		t.Errorf("%s, %+v", sc.Status, w.review(s).Panels)
	}
	w.ok("bo", w.vote("bo", sc, review.VoteAdmit))
	if got := w.gate(raw); got != review.StatusAdmitted {
		t.Errorf("%s", got)
	}
	w.checkRecord()
}

// People's block is not a waiver's to change.
func TestWaiverDoesNotUndoAHumanBlock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := spec("r", "", "violent=present")
	s := w.submit("dee", raw)
	made, err := w.desk.Waive(t.Context(), principal("chi"), review.WaiverRequest{ScreeningID: s.ID, Term: violentTerm, Reason: "agreed", Ticket: "T-1", Days: 30})
	w.ok("waive", err)
	w.ok("block", w.vote("bo", s, review.VoteBlock))
	_, err = w.desk.ConfirmWaiver(t.Context(), principal("bo"), made.ID)
	w.ok("confirm", err)
	if got := w.gate(raw); got != review.StatusBlocked {
		t.Errorf("%s", got)
	}
	if again := w.submit("dee", spec("r", "other bytes", "violent=present")); again.ID != s.ID {
		t.Errorf("the same content again: %s", again.Status)
	}
}

// In report mode the gate tells what it would stop and lets it pass, never by an
// admission, and never what the floor blocks; after the last day it enforces.
func TestReportMode(t *testing.T) {
	t.Parallel()
	day := func(n int) string { return time.Now().UTC().AddDate(0, 0, n).Format(time.DateOnly) }
	project := func(until string) string {
		return policiesYAML + fmt.Sprintf("projects: [{id: default, mode: report, until: %s}]\n", until)
	}
	w := newWorld(t)
	w.use("", project(day(89)))
	floorBlock := spec("a", "", "minors=present", "sexual_content=present")
	floorOpen := spec("b", "", "minors=unknown", "sexual_content=present")
	escalated, blocked := spec("c", "", "personal_data=present"), spec("d", "", "violent=present")
	expired, fine := spec("e", "", "personal_data=present"), spec("f", "")
	withdrawn := spec("g", "", "personal_data=present")
	for _, raw := range [][]byte{floorBlock, floorOpen, escalated, fine} {
		if s := w.submit("dee", raw); s.ReportUntil != screening.Day(day(89)) {
			t.Errorf("not marked: %q", s.ReportUntil)
		}
	}
	w.ok("block", w.vote("bo", w.submit("dee", blocked), review.VoteBlock))
	w.overdue(w.submit("dee", expired))
	_, err := w.desk.Withdraw(t.Context(), principal("dee"), w.submit("dee", withdrawn).ID, "no")
	w.ok("withdraw", err)
	check := func(name string, raw []byte, status review.Status, would screening.Outcome) {
		t.Helper()
		a, err := w.desk.Check(t.Context(), principal("dee"), screening.Sum(raw))
		if err != nil || a.Status != status || a.Would != would || a.Open() != (status == review.StatusAdmitted) || (a.Until != "") != (would != 0) {
			t.Errorf("%s: %s, would %v until %q (%v), want %s, %v", name, a.Status, a.Would, a.Until, err, status, would)
		}
		var closed *review.ClosedError
		if _, err := w.desk.Admission(t.Context(), principal("bo"), a.Screening.ID); errors.As(err, &closed) == (status == review.StatusAdmitted) {
			t.Errorf("%s: an admission, or none where there is one: %v", name, err)
		}
	}
	check("floor block", floorBlock, review.StatusBlocked, 0)
	check("floor escalation", floorOpen, review.StatusPending, screening.OutcomeEscalate)
	check("escalation", escalated, review.StatusPending, screening.OutcomeEscalate)
	check("block", blocked, review.StatusBlocked, screening.OutcomeBlock)
	check("expired review", expired, review.StatusExpired, screening.OutcomeEscalate)
	check("admitted", fine, review.StatusAdmitted, 0)
	check("withdrawn", withdrawn, review.StatusWithdrawn, 0)
	w.exec(`update screening set admitted_until = now() where run_ref = 'f'`)
	check("admission ran out", fine, review.StatusExpired, 0)
	for _, until := range []string{day(0), day(-1), day(91)} { // over, or longer than is allowed: it enforces
		w.use("", project(until))
		check("until "+until, escalated, review.StatusPending, 0)
		check("until "+until, blocked, review.StatusBlocked, 0)
	}
	today := screening.Day(day(0))
	for until, good := range map[string]bool{day(-10): true, day(1): true, day(90): true, day(91): false, day(4000): false} {
		w.use("", project(until))
		if err := w.desk.Setup().Policies.CheckDays("policies.yaml", today); (err == nil) != good {
			t.Errorf("until %s, seen on %s: %v", until, today, err)
		}
	}
}
