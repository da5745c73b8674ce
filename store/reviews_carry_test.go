package store_test

import (
	"testing"

	"weir/review"
	"weir/review/reviewtest"
)

// Votes hold for a superseding spec only if it asks nothing that they had not
// answered, of the same bytes (RELIABILITY fault test 21, KNOWN_FAULTS 16).
func TestVotesCarryOver(t *testing.T) {
	t.Parallel()
	const personal, violent = "personal_data=present", "violent=present"
	tests := []struct {
		name     string
		old, new []byte
		people   string // declared when the new one is submitted
		by       string // submits both
		want     int    // votes carried
	}{
		{"the same findings", pinned("r", "1", "a", personal), pinned("r", "2", "a", personal), "", "bo", 1},
		{"fewer findings", pinned("r", "1", "a", personal, violent), pinned("r", "2", "a", personal), "", "bo", 1},
		{"fewer inputs", pinned("r", "1", "ab", personal), pinned("r", "2", "a", personal), "", "bo", 0},
		{"another input", pinned("r", "1", "a", personal), pinned("r", "2", "b", personal), "", "bo", 0},
		{"one input more", pinned("r", "1", "a", personal), pinned("r", "2", "ab", personal), "", "bo", 0},
		{"one finding more", pinned("r", "1", "a", personal), pinned("r", "2", "a", personal, violent), "", "bo", 0},
		{"inputs without digests", spec("r", "1", personal), spec("r", "2", personal), "", "bo", 0},
		{"another state of the same term", pinned("r", "1", "a", personal), pinned("r", "2", "a", "personal_data=unknown"), "", "bo", 0},
		{"no ethics term is checkable any more", pinned("r", "1", "a", "personal_data=unknown"),
			pinned("r", "2", "a", "personal_data=unknown", "violent=unknown"), "", "bo", 0},
		{"an open floor", pinned("r", "1", "a", personal, "minors=unknown", "sexual_content=present"),
			pinned("r", "2", "a", personal, "minors=unknown", "sexual_content=present"), "", "bo", 0},
		{"the voter has left the group", pinned("r", "1", "a", personal), pinned("r", "2", "a", personal),
			`people: [{id: ana}, {id: bo}, {id: chi}, {id: dee}]
groups: {general: [ana, bo, dee], legal: [bo, chi]}`, "bo", 0},
		{"the voter was renamed", pinned("r", "1", "a", personal), pinned("r", "2", "a", personal),
			`people: [{id: ana}, {id: bo}, {id: charlie, aliases: [chi]}, {id: dee}]
groups: {general: [ana, bo, charlie, dee], legal: [bo, charlie]}`, "bo", 1},
		{"the voter is a party now", pinned("r", "1", "a", personal), []byte(string(pinned("r", "2", "a", personal)) + "on_behalf_of: chi\n"), "", "bo", 0},
		{"the voter is a party now, renamed", pinned("r", "1", "a", personal), []byte(string(pinned("r", "2", "a", personal)) + "on_behalf_of: charlie\n"),
			`people: [{id: ana}, {id: bo}, {id: charlie, aliases: [chi]}, {id: dee}]
groups: {general: [ana, bo, charlie, dee], legal: [bo, charlie]}`, "bo", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.submit(tt.by, tt.old)
			_, err := w.desk.Vote(t.Context(), principal("chi"), s.Review.ID, review.VoteRequest{ExpectedVersion: 1, SpecSHA256: s.SpecSHA256,
				Choice: review.VoteAdmit, Reason: "looked at it", Terms: []string{"ethics:personal_data_inside"}, Facts: factsFor(tt.name)})
			w.ok("vote", err)
			if tt.people != "" {
				w.use(tt.people, "")
			}
			next := w.submit(tt.by, tt.new)
			if next.Status != review.StatusPending {
				t.Fatalf("%s", next.Status)
			}
			r, got := w.review(next), 0
			for _, p := range r.Panels {
				for _, v := range p.Votes {
					got++
					if v.Origin != s.Review.ID || v.Choice != review.VoteAdmit || v.Reason == "" || len(v.Terms) == 0 {
						t.Errorf("carried %+v", v)
					}
				}
			}
			if got != tt.want {
				t.Errorf("%d votes carried, want %d", got, tt.want)
			}
			if n := one[int](w, `select count(*) from audit_event where type = 'review.votes_carried'`); n != tt.want {
				t.Errorf("%d events tell of carried votes", n)
			}
			if tt.want == 1 { // quorum 2: one more is enough, and the same person is not
				who := "dee"
				w.ok(who, w.vote(who, next, review.VoteAdmit))
				if got := w.status(next); got != review.StatusAdmitted {
					t.Errorf("with one vote more: %s", got)
				}
			}
			w.checkRecord()
		})
	}
}

// factsFor states what the open floor of one row needs.
func factsFor(name string) []review.Fact {
	if name != "an open floor" {
		return nil
	}
	return []review.Fact{{Pointer: "/disclosures", Value: []byte(`{"tag": "minors", "state": "absent", "basis": "structured"}`)}}
}

// Carried votes can be all that was needed; who voted does not have to come back.
func TestCarriedVotesCanDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("airflow", withOnBehalf(pinned("r", "1", "a", "personal_data=present", "violent=present")))
	for _, who := range []string{"dee", "bo"} { // general has its two, and legal its one
		if who == "bo" {
			break
		}
		w.ok(who, w.vote(who, s, review.VoteAdmit))
	}
	raw := withOnBehalf(pinned("r", "2", "a", "personal_data=present"))
	next := w.submit("airflow", raw)
	w.ok("chi", w.vote("chi", next, review.VoteAdmit))
	if got := w.gate(raw); got != review.StatusAdmitted {
		t.Errorf("%s", got)
	}
	w.checkRecord()

	// All of general's votes are there; legal's finding goes away with the new spec.
	w.use("", `
policies:
  - {id: violence, match: {terms: ["violent_*"]}, group: legal, quorum: 2, due: 24h}
  - {id: general, group: general, quorum: 1, due: 48h}
default: general`)
	first := w.submit("airflow", withOnBehalf(pinned("q", "1", "a", "personal_data=present", "violent=present")))
	w.ok("dee", w.vote("dee", first, review.VoteAdmit))
	second := withOnBehalf(pinned("q", "2", "a", "personal_data=present"))
	got := w.submit("airflow", second)
	if got.Status != review.StatusAdmitted || got.DecidedBy != "people" || w.gate(second) != review.StatusAdmitted {
		t.Errorf("%s by %s", got.Status, got.DecidedBy)
	}
	if got := one[string](w, `select type from audit_event where screening_id = $1 order by seq desc limit 1`, got.ID); got != "review.decided" {
		t.Errorf("last event %s", got)
	}
	w.checkRecord()
}

// A voter who submits the bytes voted on becomes a party, and the vote counts no more.
func TestVoteOfWhoBecameAPartyDoesNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := spec("r", "", "personal_data=present")
	s := w.submit("bo", raw)
	w.ok("chi", w.vote("chi", s, review.VoteAdmit))
	w.submit("chi", raw)
	w.ok("dee", w.vote("dee", s, review.VoteAdmit))
	if got := w.gate(raw); got != review.StatusPending {
		t.Errorf("%s, want pending: two of general are needed, chi has a part in it", got)
	}
}

// Where the floor is not checked, an admit states what upholds it; the statement
// is kept with the vote, and nothing less opens the way.
func TestAdmitOverAnUncheckedFloor(t *testing.T) {
	t.Parallel()
	fact := func(pointer, value string) review.Fact { return review.Fact{Pointer: pointer, Value: []byte(value)} }
	absent := fact("/disclosures", `{"tag": "minors", "state": "absent", "basis": "structured"}`)
	tests := []struct {
		name  string
		tags  []string
		facts []review.Fact
		want  error
	}{
		{"nothing stated", nil, nil, review.ErrConflict},
		{"what upholds it", nil, []review.Fact{absent}, nil},
		{"at the input, where the spec says unknown", nil, []review.Fact{fact("/inputs/0/disclosures", `{"tag": "minors", "state": "absent", "basis": "structured"}`)}, review.ErrConflict},
		{"something else", nil, []review.Fact{fact("/disclosures", `{"tag": "violent", "state": "absent", "basis": "structured"}`)}, review.ErrConflict},
		{"not known either", nil, []review.Fact{fact("/disclosures", `{"tag": "minors", "state": "unknown", "basis": "structured"}`)}, review.ErrConflict},
		{"hearsay", nil, []review.Fact{fact("/disclosures", `{"tag": "minors", "state": "absent", "basis": "prose"}`)}, review.ErrConflict},
		{"what violates it", nil, []review.Fact{fact("/disclosures", `{"tag": "minors", "state": "present", "basis": "structured"}`)}, review.ErrFloor},
		{"for a floor that is checked", []string{"personal_data=present"}, []review.Fact{absent}, errInvalid},
		{"no such tag", nil, []review.Fact{fact("/disclosures", `{"tag": "minor", "state": "absent", "basis": "structured"}`)}, errInvalid},
		{"over what the spec states", nil, []review.Fact{fact("/inputs/0/kind", `"code"`)}, errInvalid},
		{"the owner", nil, []review.Fact{fact("/owner", `"chi"`)}, errInvalid},
		{"another input", nil, []review.Fact{fact("/inputs/1", `{"id": "d2"}`)}, errInvalid},
		{"the list of inputs", nil, []review.Fact{fact("/inputs", `[]`)}, errInvalid},
		{"no pointer", nil, []review.Fact{fact("", `{}`)}, errInvalid},
		{"no value", nil, []review.Fact{{Pointer: "/disclosures"}}, errInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.use("", `
policies: [{id: general, group: general, quorum: 1, due: 48h}]
default: general`)
			if tt.tags == nil {
				tt.tags = []string{"minors=unknown", "sexual_content=present"}
			}
			raw := spec("r", "", tt.tags...)
			s := w.submit("bo", raw)
			r := w.review(s)
			_, err := w.desk.Vote(t.Context(), principal("chi"), r.ID, review.VoteRequest{ExpectedVersion: 1, SpecSHA256: s.SpecSHA256,
				Choice: review.VoteAdmit, Reason: "looked", Terms: r.Panels[0].Terms, Facts: tt.facts})
			if tt.want == errInvalid {
				w.invalid(tt.name, err)
			} else {
				w.refused(tt.name, err, tt.want)
			}
			want := review.StatusPending
			if tt.want == nil {
				want = review.StatusAdmitted
				v := w.review(s).Panels[0].Votes[0]
				if len(v.Facts) != 1 || v.Facts[0].Pointer != "/disclosures" {
					t.Errorf("kept with the vote: %+v", v)
				}
				if n := one[int](w, `select count(*) from audit_event where type = 'review.decided' and convert_from(body, 'UTF8') like '%"facts":[{"pointer":"/disclosures"%'`); n != 1 {
					t.Error("the record does not show what was stated")
				}
			}
			if got := w.gate(raw); got != want {
				t.Errorf("gate %s, want %s", got, want)
			}
		})
	}
}

// A floor that was added since the spec was decided binds the voters of now.
func TestAdmitUnderTheFloorOfNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("bo", spec("r", "", "violent=present"))
	grown := setup(t)
	grown.Vocabulary = reviewtest.Vocabulary(t, reviewtest.Floor+`
  - id: violence
    title: Violence
    description: Added later.
    severity: critical
    over: [dataset]
    violated_if: {tag: {violent: present}}
    response: block
    remedy: Take it out.
`, pledgeYAML)
	var err error
	if w.desk, err = review.NewDesk(w.store, grown, review.Config{}); err != nil {
		t.Fatal(err)
	}
	w.refused("admit", w.vote("chi", s, review.VoteAdmit), review.ErrFloor)
	w.ok("block", w.vote("chi", s, review.VoteBlock))
}
