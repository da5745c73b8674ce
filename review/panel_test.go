package review

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"weir/screening"
)

const testPeople = `
people: [{id: ana}, {id: bo, aliases: [bo2]}, {id: chi}, {id: dee}, {id: eve}]
services: [{id: airflow}]
groups: {legal: [bo, chi], lead: [chi, dee], all: [ana, bo, chi, dee]}
`

func testSetup(t *testing.T) Setup {
	t.Helper()
	people, err := LoadPeople("people.yaml", []byte(testPeople))
	if err != nil {
		t.Fatal(err)
	}
	return Setup{People: people}
}

func finding(term, severity string, effect screening.Response) screening.EffectiveFinding {
	return screening.EffectiveFinding{Term: term, Severity: severity, Effect: effect}
}

func row(term, severity string, effect screening.Response) FindingRow {
	return FindingRow{Term: term, Severity: severity, Effect: effect}
}

func TestRouting(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../testdata/declarations/working_policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	peopleData, err := os.ReadFile("../testdata/declarations/working_people.yaml")
	if err != nil {
		t.Fatal(err)
	}
	people, err := LoadPeople("people.yaml", peopleData)
	if err != nil {
		t.Fatal(err)
	}
	policies, err := LoadPolicies("policies.yaml", data, people)
	if err != nil {
		t.Fatal(err)
	}
	const esc = screening.Escalate
	tests := []struct {
		name   string
		team   string
		causes []FindingRow
		want   []string // policy: terms
	}{
		{"pattern", "", []FindingRow{row("ethics:license_nc", "low", esc)}, []string{"rights: ethics:license_nc"}},
		{"exact name", "", []FindingRow{row("ethics:lineage_poisoned", "low", esc)}, []string{"rights: ethics:lineage_poisoned"}},
		{"a name is not a prefix", "", []FindingRow{row("ethics:lineage_poisoned2", "low", esc)}, []string{"rest: ethics:lineage_poisoned2"}},
		{"first match wins", "nlp", []FindingRow{row("ethics:license_nc", "critical", esc)}, []string{"rights: ethics:license_nc"}},
		{"every key must match", "nlp", []FindingRow{row("ethics:violent", "high", esc)}, []string{"grave: ethics:violent"}},
		{"one key does not", "vision", []FindingRow{row("ethics:violent", "high", esc)}, []string{"rest: ethics:violent"}},
		{"no team", "", []FindingRow{row("ethics:violent", "high", esc)}, []string{"rest: ethics:violent"}},
		{"default", "nlp", []FindingRow{row("ethics:violent", "low", esc)}, []string{"rest: ethics:violent"}},
		{"several, in the order of the file", "nlp", []FindingRow{row("ethics:a", "low", esc), row("safety:b", "critical", esc),
			row("ethics:license_x", "low", esc), row("ethics:c", "low", esc)},
			[]string{"rights: ethics:license_x", "grave: safety:b", "rest: ethics:a ethics:c"}},
		{"no causing finding", "nlp", nil, []string{"rest: "}},
		{"only a hedge", "nlp", []FindingRow{row("ethics:license_x", "low", screening.Hedge)}, []string{"rest: "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range (Setup{People: people, Policies: policies}).route(tt.causes, tt.team) {
				got = append(got, p.Policy+": "+strings.Join(p.Terms, " "))
				if p.Quorum < 1 || p.Group == "" || p.Due < time.Minute {
					t.Errorf("panel without what decides it: %+v", p)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("panels (-want +got)\n%s", diff)
			}
		})
	}
}

// A policy can match by the tags that a term asks about, and hands over to others.
func TestTagsAndTiers(t *testing.T) {
	t.Parallel()
	read := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile("../testdata/declarations/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	people, err := LoadPeople("people.yaml", read("working_people.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	policies, err := LoadPolicies("policies.yaml", read("working_policies_tiers.yaml"), people)
	if err != nil {
		t.Fatal(err)
	}
	reg := screening.NewRegistry()
	var packs []*screening.Pack
	for _, text := range []string{`# YAML
{schema: weir/pack/v1, id: safety_floor, version: "1", layer: safety, title: T, description: D, terms: [
		{id: a, title: T, description: D, severity: high, violated_if: {fact: objective.purposes, has: social_scoring}, response: block, remedy: R}]}`,
		`# YAML
{schema: weir/pack/v1, id: p, version: "1", layer: ethics, title: T, description: D, terms: [
		{id: about_people, title: T, description: D, severity: high, over: [dataset], violated_if: {any: [{tag: {biometric: present}}, {tag: {violent: present}}]}, response: escalate, remedy: R},
		{id: license_x, title: T, description: D, severity: high, over: [dataset], violated_if: {tag: {personal_data: present}}, response: escalate, remedy: R},
		{id: other, title: T, description: D, severity: high, over: [dataset], violated_if: {tag: {violent: present}}, response: escalate, remedy: R}]}`} {
		p, err := screening.LoadPack("test", []byte(text), reg)
		if err != nil {
			t.Fatal(err)
		}
		packs = append(packs, p)
	}
	v, err := screening.NewVocabulary(reg, screening.VocabularyConfig{}, packs...)
	if err != nil {
		t.Fatal(err)
	}
	const esc = screening.Escalate
	var got []string
	for _, p := range (Setup{Vocabulary: v, People: people, Policies: policies}).route([]FindingRow{
		row("ethics:about_people", "high", esc), row("ethics:license_x", "high", esc), row("ethics:other", "high", screening.Block)}, "") {
		got = append(got, fmt.Sprintf("%d %s %s begins %t, then %d", p.Number, p.Policy, strings.Join(p.Terms, " "), p.DueAt != nil, p.Next))
	}
	want := []string{
		"1 rights ethics:license_x begins true, then 4", "2 people ethics:about_people begins true, then 5", "3 rest ethics:other begins true, then 0",
		"4 lead ethics:license_x begins false, then 6", "5 lead ethics:about_people begins false, then 7",
		"6 rest ethics:license_x begins false, then 0", "7 rest ethics:about_people begins false, then 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("panels (-want +got)\n%s", diff)
	}
}

// What one vote does to a review, as a table over the pure function.
func TestCast(t *testing.T) {
	t.Parallel()
	setup := testSetup(t)
	desk := &Desk{cfg: Config{AdmissionPeriod: time.Hour}}
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	sum := screening.Sum([]byte("spec"))
	decision := &screening.Decision{Outcome: screening.OutcomeEscalate, AsOf: "2026-11-01", Packs: []screening.PackRef{}, Missing: []screening.Statement{},
		Causes: []screening.EffectiveFinding{finding("ethics:x", "low", screening.Escalate)}, Safety: []screening.SafetyVerdict{}, Ethics: []screening.EthicsVerdict{}}
	encode := func(d *screening.Decision) []byte {
		t.Helper()
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	nothing := *decision
	nothing.Causes, nothing.NoPolicyMatched = []screening.EffectiveFinding{finding("ethics:h", "low", screening.Hedge)}, true

	type change func(*Review, *VoteRequest)
	voted := func(policy, person string, choice Choice) change {
		return func(r *Review, _ *VoteRequest) {
			for i := range r.Panels {
				if r.Panels[i].Policy == policy {
					r.Panels[i].Votes = append(r.Panels[i].Votes, Vote{Person: person, Choice: choice})
				}
			}
		}
	}
	block := func(_ *Review, v *VoteRequest) { v.Choice = VoteBlock }
	floor := func(_ *Review, v *VoteRequest) { v.Facts = []Fact{} } // stands for an open floor below
	quorum := func(n ...int) change {
		return func(r *Review, _ *VoteRequest) {
			for i := range n {
				r.Panels[i].Quorum = n[i]
			}
		}
	}
	all := func(cs ...change) change {
		return func(r *Review, v *VoteRequest) {
			for _, c := range cs {
				c(r, v)
			}
		}
	}
	onePanel := func(r *Review, _ *VoteRequest) { r.Panels = r.Panels[:1] } // legal only

	tests := []struct {
		name    string
		person  string
		change  change
		want    string // policies voted in, and the outcome
		refused error  // or why not
	}{
		{"one panel, quorum reached", "bo", onePanel, "legal → admit", nil},
		{"one panel, quorum of two", "bo", all(onePanel, quorum(2)), "legal → ", nil},
		{"second of two", "bo", all(onePanel, quorum(2), voted("legal", "chi", VoteAdmit)), "legal → admit", nil},
		{"two panels, voter in one", "bo", nil, "legal → ", nil},
		{"two panels, voter in both", "chi", nil, "legal lead → admit", nil},
		{"two panels, the other has its quorum", "bo", voted("lead", "dee", VoteAdmit), "legal → admit", nil},
		{"two panels, the other lacks one", "bo", all(quorum(1, 2), voted("lead", "dee", VoteAdmit)), "legal → ", nil},
		{"one block ends it", "bo", block, "legal → block", nil},
		{"one block ends it against admits", "bo", all(block, quorum(2), voted("legal", "chi", VoteAdmit), voted("lead", "chi", VoteAdmit)), "legal → block", nil},
		{"a block needs no checked floor", "bo", all(block, floor), "legal → block", nil},
		{"nobody admits over an unchecked floor", "bo", floor, "", ErrConflict},
		{"not in a group", "eve", nil, "", ErrNotAllowed},
		{"in another group", "ana", nil, "", ErrNotAllowed},
		{"submitter", "bo", func(r *Review, _ *VoteRequest) { r.Screening.Submitter = "bo" }, "", ErrNotAllowed},
		{"submitter under an alias", "bo", func(r *Review, _ *VoteRequest) { r.Screening.Submitter = "bo2" }, "", ErrNotAllowed},
		{"owner", "bo", func(r *Review, _ *VoteRequest) { r.Screening.Owner = "bo" }, "", ErrNotAllowed},
		{"submitted for", "bo", func(r *Review, _ *VoteRequest) { r.Screening.OnBehalfOf = "bo" }, "", ErrNotAllowed},
		{"submitter blocks", "bo", all(block, func(r *Review, _ *VoteRequest) { r.Screening.Submitter = "bo" }), "", ErrNotAllowed},
		{"twice", "bo", voted("legal", "bo", VoteAdmit), "", ErrConflict},
		{"twice, other choice", "bo", all(block, voted("legal", "bo", VoteAdmit)), "", ErrConflict},
		{"voted in one of two panels already", "chi", voted("lead", "chi", VoteAdmit), "legal → admit", nil},
		{"voted in both", "chi", all(voted("lead", "chi", VoteAdmit), voted("legal", "chi", VoteAdmit)), "", ErrConflict},
		{"a vote of who has become a party since does not count", "chi", all(onePanel, quorum(2), voted("legal", "bo", VoteAdmit),
			func(r *Review, _ *VoteRequest) { r.Screening.Parties = []string{"bo"} }), "legal → ", nil},
		{"wrote a waiver", "bo", func(r *Review, _ *VoteRequest) { r.Excluded = []string{"bo2"} }, "", ErrNotAllowed},
		{"waits for evidence", "bo", func(r *Review, _ *VoteRequest) { r.State = NeedsEvidence }, "", ErrConflict},
		{"claimed by another", "bo", func(r *Review, _ *VoteRequest) { r.State, r.Panels[0].ClaimedBy = Claimed, "chi" }, "legal → ", nil},
		{"floor violated", "bo", func(r *Review, _ *VoteRequest) { r.Screening.FloorViolated = true }, "", ErrFloor},
		{"panel passed on", "bo", func(r *Review, _ *VoteRequest) { r.Panels[0].PassedAt = &now }, "", ErrConflict},
		{"panel about to pass on", "bo", func(r *Review, _ *VoteRequest) { r.Panels[0].DueAt, r.Panels[0].Next = &now, 2 }, "", ErrConflict},
		{"panel whose turn has not come", "bo", func(r *Review, _ *VoteRequest) { r.Panels[0].DueAt = nil }, "", ErrConflict},
		{"votes of a panel that passed on count no more", "dee", all(voted("legal", "chi", VoteAdmit), quorum(1, 2),
			func(r *Review, _ *VoteRequest) { r.Panels[0].PassedAt = &now }), "lead → ", nil},
		{"the other panel's finding is waived", "bo", func(r *Review, _ *VoteRequest) {
			r.Panels[1].Terms, r.Waived = []string{"ethics:w"}, []Waived{{"ethics:w", now}}
		}, "legal → admit", nil},
		{"the other panel's finding is waived, and nothing was checkable", "bo", func(r *Review, _ *VoteRequest) {
			r.Panels[1].Terms, r.Waived, r.Screening.Unmatched = []string{"ethics:w"}, []Waived{{"ethics:w", now}}, true
		}, "legal → ", nil},
		{"half of the other panel's findings are waived", "bo", func(r *Review, _ *VoteRequest) {
			r.Panels[1].Terms, r.Waived = []string{"ethics:w", "ethics:v"}, []Waived{{"ethics:w", now}}
		}, "legal → ", nil},
		{"old version", "bo", func(_ *Review, v *VoteRequest) { v.ExpectedVersion = 2 }, "", ErrConflict},
		{"other bytes", "bo", func(_ *Review, v *VoteRequest) { v.SpecSHA256 = screening.Sum(nil) }, "", ErrConflict},
		{"decided", "bo", func(r *Review, _ *VoteRequest) { r.State = Decided }, "", ErrConflict},
		{"expired", "bo", func(r *Review, _ *VoteRequest) { r.State = Expired }, "", ErrConflict},
		{"at the due time", "bo", func(r *Review, _ *VoteRequest) { r.ExpiresAt = &now }, "", ErrConflict},
		{"a microsecond before it", "bo", func(r *Review, _ *VoteRequest) { at := now.Add(time.Microsecond); r.ExpiresAt = &at }, "legal → ", nil},
		{"no panel at all", "bo", func(r *Review, _ *VoteRequest) { r.Panels = nil }, "", ErrNotAllowed},
		{"nothing cited", "bo", func(_ *Review, v *VoteRequest) { v.Terms = nil }, "", errInvalid},
		{"something else cited", "bo", func(_ *Review, v *VoteRequest) { v.Terms = []string{"ethics:y"} }, "", errInvalid},
		{"one of two cited is something else", "bo", func(_ *Review, v *VoteRequest) { v.Terms = []string{"ethics:x", "x"} }, "", errInvalid},
		{"nothing to cite", "bo", func(r *Review, v *VoteRequest) { r.Screening.Decision, v.Terms = encode(&nothing), nil }, "legal → ", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			due := now.Add(time.Hour)
			r := &Review{ID: "r", State: Open, Version: 1, ExpiresAt: &due,
				Panels:    []Panel{{Number: 1, Policy: "legal", Group: "legal", Quorum: 1, DueAt: &due}, {Number: 2, Policy: "lead", Group: "lead", Quorum: 1, DueAt: &due}},
				Screening: &Screening{ID: "s", Submitter: "airflow", Owner: "eve", OnBehalfOf: "eve", SpecSHA256: sum, Decision: encode(decision)}}
			req := VoteRequest{ExpectedVersion: 1, SpecSHA256: sum, Choice: VoteAdmit, Reason: "looked", Terms: []string{"ethics:x"}}
			if tt.change != nil {
				tt.change(r, &req)
			}
			var unchecked error
			if req.Facts != nil {
				unchecked = &VoteError{ErrConflict, "not checked"}
			}
			c, err := desk.cast(r, now, tt.person, setup.People, unchecked, req)
			if tt.refused != nil {
				var invalid *screening.InvalidError
				if c != nil || !errors.Is(err, tt.refused) && !(tt.refused == errInvalid && errors.As(err, &invalid)) {
					t.Errorf("got %+v, %v; want %v", c, err, tt.refused)
				}
				if err != nil && err.Error() == tt.refused.Error() && tt.refused != ErrFloor {
					t.Errorf("refused without a reason: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var in []string
			for _, v := range c.Votes {
				in = append(in, v.Policy)
				if v.Person != tt.person || v.Choice != req.Choice || v.Reason != req.Reason || v.Group == "" {
					t.Errorf("vote row %+v", v)
				}
			}
			if got := fmt.Sprintf("%s → %s", strings.Join(in, " "), c.Outcome); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if c.Actor != tt.person || c.AdmissionPeriod != time.Hour {
				t.Errorf("change %+v", c)
			}
		})
	}
}

var errInvalid = errors.New("an InvalidError")

// Two people decide a review in every order of votes: any block is a block, and
// an admit needs every panel (KNOWN_FAULTS 13).
func TestEveryInterleaving(t *testing.T) {
	t.Parallel()
	setup := testSetup(t)
	desk := &Desk{}
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	d := &screening.Decision{Outcome: screening.OutcomeEscalate, AsOf: "2026-11-01"}
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	voters := []string{"bo", "chi", "dee"} // legal; legal and lead; lead
	choices := []Choice{VoteAdmit, VoteBlock}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for bits := range 8 {
			due := now.Add(time.Hour)
			r := &Review{State: Open, Version: 1, ExpiresAt: &due, Screening: &Screening{Submitter: "eve", Decision: raw},
				Panels: []Panel{{Number: 1, Policy: "legal", Group: "legal", Quorum: 2, DueAt: &due}, {Number: 2, Policy: "lead", Group: "lead", Quorum: 1, DueAt: &due}}}
			var outcome Choice
			blocked := false
			for _, i := range order {
				choice := choices[bits>>i&1]
				c, err := desk.cast(r, now, voters[i], setup.People, nil, VoteRequest{ExpectedVersion: r.Version, Choice: choice, Reason: "r"})
				if outcome != "" {
					if !errors.Is(err, ErrConflict) {
						t.Errorf("order %v, bits %b: a vote after the end: %v", order, bits, err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("order %v, bits %b: %v", order, bits, err)
				}
				blocked = blocked || choice == VoteBlock
				r.Version++
				for _, v := range c.Votes {
					for p := range r.Panels {
						if r.Panels[p].Policy == v.Policy {
							r.Panels[p].Votes = append(r.Panels[p].Votes, v.Vote)
						}
					}
				}
				if outcome = c.Outcome; outcome != "" {
					r.State = Decided
				}
			}
			want := VoteAdmit
			if blocked {
				want = VoteBlock
			}
			if outcome != want {
				t.Errorf("order %v, bits %b: %q, want %q", order, bits, outcome, want)
			}
		}
	}
}

// A desk asks nothing of its store for whom it must turn away.
func TestNobodyGetsPastTheDesk(t *testing.T) {
	t.Parallel()
	setup := testSetup(t)
	desk := &Desk{} // without a store: reaching for it would panic
	desk.setup.Store(&setup)
	everything := Scopes
	ctx := context.Background()
	for name, p := range map[string]Principal{
		"no scope":         {Subject: "ana", Project: "default"},
		"undeclared":       {Subject: "mallory", Project: "default", Scopes: everything},
		"nobody at all":    {Project: "default", Scopes: everything},
		"a group's name":   {Subject: "legal", Project: "default", Scopes: everything},
		"other upper case": {Subject: "ANA", Project: "default", Scopes: everything},
	} {
		if _, _, err := desk.Submit(ctx, p, []byte("{}"), nil); !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s submits: %v", name, err)
		}
		if _, _, err := desk.Preview(ctx, p, []byte("{}")); !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s previews: %v", name, err)
		}
		if _, err := desk.Vote(ctx, p, "r", VoteRequest{}); !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s votes: %v", name, err)
		}
	}
	service := Principal{Subject: "airflow", Project: "default", Scopes: everything}
	if _, err := desk.Vote(ctx, service, "r", VoteRequest{}); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("a service votes: %v", err)
	}
	bare := Principal{Subject: "ana", Project: "default"}
	for what, err := range map[string]error{
		"check":      errOf(desk.Check(ctx, bare, screening.Digest256{})),
		"screening":  errOf(desk.Screening(ctx, bare, "s")),
		"screenings": errOf(desk.Screenings(ctx, bare, ListQuery{})),
		"spec":       errOf(desk.SpecBytes(ctx, bare, "s")),
		"review":     errOf(desk.Review(ctx, bare, "r")),
		"reviews":    errOf(desk.Reviews(ctx, bare, ReviewQuery{})),
	} {
		if !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s without a scope: %v", what, err)
		}
	}
}

func errOf[T any](_ T, err error) error { return err }

func TestNewDeskNeedsItsParts(t *testing.T) {
	t.Parallel()
	if d, err := NewDesk(nil, Setup{}, Config{}); err == nil {
		t.Errorf("a desk of nothing: %v", d)
	}
}
