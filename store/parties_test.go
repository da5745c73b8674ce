package store_test

import (
	"errors"
	"testing"

	"weir/review"
)

// Whoever submitted the same bytes has a part in them: may read, may not vote.
func TestEverySubmitterIsAParty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := spec("r", "", "violent=present")
	s := w.submit("dee", raw)
	again, existing, err := w.desk.Submit(t.Context(), principal("bo"), raw, nil)
	if err != nil || !existing || again.ID != s.ID {
		t.Fatalf("bo's submission of the same bytes: %v, existing %t (%v)", again, existing, err)
	}
	if err := w.vote("bo", s, review.VoteAdmit); !errors.Is(err, review.ErrNotAllowed) {
		t.Errorf("bo voted on what bo submitted: %v", err)
	}
	submitOnly := review.Principal{Subject: "bo", Project: "default", Scopes: []review.Scope{review.ScopeSubmit}}
	if _, err := w.desk.Screening(t.Context(), submitOnly, s.ID); err != nil {
		t.Errorf("bo cannot read what was answered to bo: %v", err)
	}
	if err := w.vote("chi", s, review.VoteAdmit); err != nil {
		t.Errorf("chi: %v", err)
	}
}

// The latest screening of the bytes answers on every path, also by the id of an older one.
func TestNewerScreeningOfTheSameBytesSupersedes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := spec("r", "")
	old := w.submit("bo", raw)
	next := w.submit("bo", raw)
	if next.ID == old.ID {
		t.Fatal("one screening; the test needs two")
	}
	got, err := w.store.Screening(t.Context(), "default", old.ID)
	if err != nil || got.Status != review.StatusSuperseded || got.SupersededBy != next.ID {
		t.Errorf("older screening: %s by %q (%v), want superseded by the newer", got.Status, got.SupersededBy, err)
	}
	if w.gate(raw) != review.StatusAdmitted {
		t.Error("the gate is closed for admitted bytes")
	}
	w.checkRecord()
}

// A pipeline and the person it submits for share a run; nobody else may take it.
func TestRunOfAServiceBelongsToItsPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	forAna := func(note string) []byte { return withOnBehalf(spec("r", note)) }
	service := review.Principal{Subject: "airflow", Project: "default", Scopes: []review.Scope{review.ScopeSubmit}}
	submit := func(p review.Principal, raw []byte) error {
		_, _, err := w.desk.Submit(t.Context(), p, raw, nil)
		return err
	}
	steps := []struct {
		name string
		p    review.Principal
		raw  []byte
		want error
	}{
		{"the pipeline", service, forAna("1"), nil},
		{"ana by hand", principal("ana"), spec("r", "2"), nil},
		{"the pipeline again", service, forAna("3"), nil},
		{"bo, claiming to act for ana", principal("bo"), forAna("4"), review.ErrRunRefTaken},
		{"bo", principal("bo"), spec("r", "5"), review.ErrRunRefTaken},
	}
	for _, s := range steps {
		if err := submit(s.p, s.raw); !errors.Is(err, s.want) {
			t.Errorf("%s: %v, want %v", s.name, err, s.want)
		}
	}
}

func TestRenamedPersonHasVotedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("bo", spec("r", "", "personal_data=present"))
	if err := w.vote("chi", s, review.VoteAdmit); err != nil {
		t.Fatal(err)
	}
	people, err := review.LoadPeople("people.yaml", []byte(`
people: [{id: ana}, {id: bo}, {id: charlie, aliases: [chi]}, {id: dee}]
groups: {general: [ana, bo, charlie, dee], legal: [bo, charlie]}`))
	if err != nil {
		t.Fatal(err)
	}
	setup := w.desk.Setup()
	setup.People = people
	renamed, err := review.NewDesk(w.store, setup, review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.store.Review(t.Context(), "default", s.Review.ID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = renamed.Vote(t.Context(), principal("charlie"), r.ID, review.VoteRequest{ExpectedVersion: r.Version,
		SpecSHA256: s.SpecSHA256, Choice: review.VoteAdmit, Reason: "again", Terms: r.Panels[0].Terms})
	if !errors.Is(err, review.ErrConflict) {
		t.Errorf("second vote under a new name: %v, want ErrConflict", err)
	}
}

// Who was renamed still sees what they submitted, goes on with its run, and can take
// it back.
func TestRenamedSubmitterKeepsTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("chi", spec("r", "", "personal_data=present"))
	w.use(`
people: [{id: ana}, {id: bo}, {id: charlie, aliases: [chi]}, {id: dee}]
groups: {general: [ana, bo, charlie, dee], legal: [bo, charlie]}`, "")
	submitter := func(name string) review.Principal {
		return review.Principal{Subject: name, Project: "default", Scopes: []review.Scope{review.ScopeSubmit}}
	}
	_, err := w.desk.Screening(t.Context(), submitter("charlie"), s.ID)
	w.ok("read", err)
	_, err = w.desk.Screening(t.Context(), submitter("dee"), s.ID)
	w.refused("somebody else reads", err, review.ErrNotFound)
	for name, want := range map[string]int{"charlie": 1, "chi": 1, "dee": 0, "nobody": 0} {
		list, err := w.desk.Screenings(t.Context(), submitter(name), review.ListQuery{Limit: 10})
		if err != nil || len(list) != want {
			t.Errorf("%s lists %d (%v), want %d", name, len(list), err, want)
		}
	}
	_, _, err = w.desk.Submit(t.Context(), submitter("dee"), spec("r", "dee's"), nil)
	w.refused("somebody else goes on with the run", err, review.ErrRunRefTaken)
	next, _, err := w.desk.Submit(t.Context(), submitter("charlie"), spec("r", "next", "personal_data=present"), nil)
	w.ok("go on with the run", err)
	_, err = w.desk.Withdraw(t.Context(), submitter("charlie"), next.ID, "not needed")
	w.ok("withdraw", err)
}
