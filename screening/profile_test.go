package screening

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const isSFT = "violated_if: {fact: objective.kind, has: sft}"

// TestProfileRaises: what a profile raises shows in the effect, with who did it;
// of two profiles the stricter wins, in any order.
func TestProfileRaises(t *testing.T) {
	t.Parallel()
	floor := testFloor(t)
	base := ethicsPack(t, termText("watched", Observe, isSFT), termText("other", Escalate, "violated_if: {fact: base_model.stated, has: \"yes\"}"))
	soft := profile(t, "soft", base, "{term: watched, response: escalate}")
	hard := profile(t, "hard", base, "{term: watched, response: block}")
	hard2 := profile(t, "hard2", base, "{term: watched, response: block}")
	for _, tt := range []struct {
		name   string
		packs  []*Pack
		effect Response
		raised *Raised
	}{
		{"no profile", nil, Observe, nil},
		{"one", []*Pack{soft}, Escalate, &Raised{Observe, []string{"soft"}}},
		{"two", []*Pack{soft, hard}, Block, &Raised{Observe, []string{"hard"}}},
		{"two, the other way", []*Pack{hard, soft}, Block, &Raised{Observe, []string{"hard"}}},
		{"two that agree", []*Pack{hard2, soft, hard}, Block, &Raised{Observe, []string{"hard", "hard2"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := vocabulary(t, VocabularyConfig{}, append([]*Pack{base, floor}, tt.packs...)...)
			d := classify(t, v, parseSpec(t, ""))
			var got *TermEffect
			for _, e := range d.Effects() {
				if e.Term == "ethics:watched" {
					got = &e
				}
			}
			if got == nil || got.Effect != tt.effect || got.Pack != "pledge" || cmp.Diff(tt.raised, got.Raised) != "" {
				t.Errorf("got %+v %+v, want %s %+v", got, got.Raised, tt.effect, tt.raised)
			}
			if len(d.Packs) != 2+len(tt.packs) || len(d.Ethics) != 1 {
				t.Errorf("packs %v, %d ethics verdicts", d.Packs, len(d.Ethics))
			}
			if term, _ := v.Term("ethics:watched"); term.Response != tt.effect {
				t.Errorf("the vocabulary has %s", term.Response)
			}
			if base.Terms[1].Response != Observe {
				t.Error("the base was changed")
			}
			if tt.effect == Block && d.Refusal != Refusal([]string{"ethics:watched"}) {
				t.Errorf("refusal %q", d.Refusal)
			}
		})
	}
}

// TestUncheckedRaises: every pair of settings that two profiles can raise, on a
// spec that leaves the term open.
func TestUncheckedRaises(t *testing.T) {
	t.Parallel()
	const open = "over: [dataset], violated_if: {tag: {minors: present}}"
	for _, tt := range []struct {
		base   string
		raises []string
		want   Response
	}{
		{termText("x", Observe, open), []string{"response: escalate"}, Escalate},                     // by the default of its new response
		{termText("x", Observe, open), []string{"response: escalate, unchecked: hedge"}, Hedge},      // as it says
		{termText("x", Observe, open), []string{"response: escalate", "unchecked: hedge"}, Escalate}, // one profile's word does not weaken another's
		{termText("x", Observe, open), []string{"unchecked: hedge"}, Hedge},
		{termText("x", Escalate, open+", unchecked: observe"), []string{"unchecked: hedge"}, Hedge},
		{termText("x", Escalate, open+", unchecked: observe"), []string{"response: block"}, Escalate}, // as every term that blocks
		{termText("x", Hedge, open+", unchecked: observe"), []string{"response: escalate"}, Observe},  // the pack's own word stays
		{termText("x", Hedge, open), []string{"response: block", "unchecked: escalate"}, Escalate},
	} {
		base := ethicsPack(t, tt.base)
		packs := []*Pack{base, testFloor(t)}
		for i, r := range tt.raises {
			packs = append(packs, profile(t, fmt.Sprintf("p%d", i), base, "{term: x, "+r+"}"))
		}
		for range 2 {
			d := classify(t, vocabulary(t, VocabularyConfig{}, packs...), parseSpec(t, "inputs: [{id: a, kind: dataset}]"))
			if got := d.Effects()[0].Effect; got != tt.want {
				t.Errorf("%s %v: got %s, want %s", tt.base, tt.raises, got, tt.want)
			}
			slices.Reverse(packs[2:])
		}
	}
}

// TestRaisedHedgeStays: a hedge that a profile turned into an escalation goes
// with the run that people admit.
func TestRaisedHedgeStays(t *testing.T) {
	t.Parallel()
	base := ethicsPack(t, termText("h", Hedge, isSFT))
	d := classify(t, vocabulary(t, VocabularyConfig{}, base, testFloor(t), profile(t, "house", base, "{term: h, response: escalate}")), parseSpec(t, ""))
	if d.Outcome != OutcomeEscalate || d.Hedge == nil || d.Hedge.Text != "Perhaps" || !slices.Equal(d.Hedge.Terms, []string{"ethics:h"}) {
		t.Errorf("%s, hedge %+v", d.Outcome, d.Hedge)
	}
}

// TestHedgeTextOfAProfile: a pack that had no need for a text is hedged with the profile's.
func TestHedgeTextOfAProfile(t *testing.T) {
	t.Parallel()
	base := loadPack(t, strings.Replace(packText("pledge", Ethics, termText("x", Observe, isSFT)), "preferred_hedge_soft: Perhaps\n", "", 1))
	text := profileText("house", base, "{term: x, response: hedge}")
	d := classify(t, vocabulary(t, VocabularyConfig{}, base, testFloor(t), loadPack(t, text)), parseSpec(t, ""))
	if d.Hedge == nil || d.Hedge.Text != "Perhaps" {
		t.Errorf("hedge %+v", d.Hedge)
	}
	silent := loadPack(t, strings.Replace(text, "preferred_hedge_soft: Perhaps\n", "", 1))
	if _, err := NewVocabulary(NewRegistry(), VocabularyConfig{}, base, testFloor(t), silent); err == nil || !strings.Contains(err.Error(), "term x hedges") {
		t.Errorf("no text at all: %v", err)
	}
}

// TestProfileIsNoPolicy: where the packs that are extended could check nothing
// that decides, a profile does not make up for it.
func TestProfileIsNoPolicy(t *testing.T) {
	t.Parallel()
	floor, clean := testFloor(t), parseSpec(t, "objective: {kind: dpo}")
	base := ethicsPack(t, termText("x", Observe, isSFT))
	own := termText("own", Escalate, isSFT)
	for name, packs := range map[string][]*Pack{
		"the pack alone":         {base},
		"raised":                 {base, profile(t, "house", base, "{term: x, response: escalate}")},
		"a term of its own":      {base, profile(t, "house", base, "{term: x, response: hedge}", own)},
		"a pack beside it, here": {base, loadPack(t, packText("house", Ethics, own))},
	} {
		d := classify(t, vocabulary(t, VocabularyConfig{}, append(packs, floor)...), clean)
		if want := !strings.Contains(name, "beside"); d.NoPolicyMatched != want || (d.Outcome == OutcomeEscalate) != want {
			t.Errorf("%s: %s, no_policy_matched %t", name, d.Outcome, d.NoPolicyMatched)
		}
	}
}

// TestProfileStopsTheLoad: a vocabulary is not built on another base than the
// profile was written for.
func TestProfileStopsTheLoad(t *testing.T) {
	t.Parallel()
	floor := testFloor(t)
	base := ethicsPack(t, termText("x", Observe, isSFT))
	changed := ethicsPack(t, termText("x", Observe, isSFT), termText("y", Observe, isSFT))
	house := profile(t, "house", base, "{term: x, response: escalate}")
	for _, tt := range []struct {
		name  string
		cfg   VocabularyConfig
		packs []*Pack
		want  []string
	}{
		{"absent", VocabularyConfig{}, []*Pack{house}, []string{"pack.yaml: line 8: /extends/0", "pledge", base.SHA256.String()}},
		{"absent, unratified", VocabularyConfig{Unratified: true}, []*Pack{house}, []string{"/extends/0"}},
		{"changed", VocabularyConfig{}, []*Pack{house, changed}, []string{"pack.yaml: line 8: /extends/0/sha256", "pledge", base.SHA256.String(), changed.SHA256.String()}},
		{"audit only", VocabularyConfig{AuditOnly: true}, []*Pack{house, base}, []string{"audit-only", "x of pack pledge"}},
	} {
		_, err := NewVocabulary(NewRegistry(), tt.cfg, append(tt.packs, floor)...)
		for _, part := range tt.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v lacks %q", tt.name, err, part)
			}
		}
	}
}

const profileCases = `schema: weir/cases/v1
pack: house
cases:
- name: bad
  spec: {inputs: [{id: a, kind: dataset, disclosures: [{tag: minors, state: present, basis: structured}]}]}
  expect: {kids: violated}
- name: good
  spec: {inputs: [{id: a, kind: dataset, disclosures: [{tag: minors, state: absent, basis: structured}]}]}
  expect: {kids: upheld}
complete:
- name: eight
  spec:
    disclosures: [{tag: minors, state: absent, basis: structured}]
    inputs: [{id: a, kind: dataset}, {id: b, kind: dataset}, {id: c, kind: dataset}, {id: d, kind: dataset},
      {id: e, kind: dataset}, {id: f, kind: dataset}, {id: g, kind: code}, {id: h, kind: tokenizer}]
`

// TestProfileIsRatified: a profile has cases, gates and a seal of its own, run
// with the packs that it extends.
func TestProfileIsRatified(t *testing.T) {
	t.Parallel()
	reg, floor := NewRegistry(), testFloor(t)
	base := ethicsPack(t, termText("kids", Observe, "over: [dataset], violated_if: {tag: {minors: present}}"), termText("deep", Observe, "structural: elsewhere"))
	ratify := func(t *testing.T, raises, cases string) (*Bundle, []byte) {
		t.Helper()
		text := []byte(profileText("house", base, raises))
		p := loadPack(t, string(text))
		b := &Bundle{Pack: p, Cases: loadCases(t, p, cases), Bases: []*Pack{base}}
		r, err := b.Ratify(reg, floor, testDay)
		if err != nil {
			t.Fatal(err)
		}
		if text, err = SealPack(text, r.SHA256); err != nil {
			t.Fatal(err)
		}
		b.Pack, b.Report = loadPack(t, string(text)), r
		return b, text
	}
	const raiseKids = "{term: kids, response: block}"
	b, _ := ratify(t, raiseKids, profileCases)
	if err := b.InForce(reg, floor); err != nil {
		t.Fatal(err)
	}
	other := ethicsPack(t, termText("kids", Observe, "over: [dataset], violated_if: {tag: {minors: absent}}"))
	for name, bases := range map[string][]*Pack{"without its base": nil, "with another base": {other}} {
		moved := *b
		moved.Bases = bases
		var no *NotInForceError
		if err := moved.InForce(reg, floor); !errors.As(err, &no) || !strings.Contains(err.Error(), base.SHA256.String()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, tt := range []struct{ name, raises, cases, want string }{
		{"a raised term without a case", raiseKids, strings.ReplaceAll(profileCases, "expect: {kids: violated}", "expect: {kids: not_checkable}"), "coverage: 0 of 1"},
		{"nothing checks a raised term", raiseKids + ", {term: deep, response: escalate}", profileCases, "vacuous: 1 terms act without a predicate: deep"},
		{"no complete case", raiseKids, profileCases[:strings.Index(profileCases, "complete:")], "no complete case"},
		{"a raise to observe nothing needs none", "{term: kids, response: hedge}", profileCases[:strings.Index(profileCases, "complete:")], ""},
		{"the complete case meets the raise", raiseKids, strings.Replace(profileCases, "{id: b, kind: dataset}", "{id: b, kind: dataset, disclosures: [{tag: minors, state: present, basis: structured}]}", 1), "complete: 0 of 1"},
		{"a statement that is not required", "{term: kids, response: escalate, unchecked: hedge}", profileCases, "required: 0 of 1"},
	} {
		b, _ := ratify(t, tt.raises, tt.cases)
		if got := strings.Join(b.Report.FailureReasons, "\n"); b.Report.Ratified != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q lacks %q", tt.name, got, tt.want)
		}
	}
	p := loadPack(t, profileText("house", base, raiseKids))
	if _, err := LoadCases("c", []byte(strings.Replace(profileCases, "{kids: upheld}", "{deep: not_checkable}", 1)), p); err == nil {
		t.Error("a case speaks of a term that the profile does not touch")
	}
	regression := &Bundle{Pack: b.Pack, Cases: b.Cases, Bases: b.Bases, Regression: &Regression{Replaces: p, Bases: b.Bases,
		Precedents: []Precedent{{Source: "one", Spec: []byte(specText("inputs: [{id: a, kind: dataset}]")), AsOf: testDay, Term: "kids", Finding: NotCheckable}}}}
	if r, err := regression.Ratify(reg, floor, testDay); err != nil || !r.Ratified || r.Gates[len(r.Gates)-1].Measured != 1 {
		t.Errorf("regression of a profile: %+v, %v", r, err)
	}
}

// drawProfile raises some terms of the packs, and has terms of its own.
func drawProfile(t *rapid.T, id string, packs []*Pack) *Pack {
	var extends, raised, own []string
	for _, p := range packs {
		if p.Layer == Safety {
			continue
		}
		extends = append(extends, fmt.Sprintf("{id: %s, sha256: %s}", p.ID, p.SHA256))
		for i := range p.Terms {
			term := &p.Terms[i]
			response := rapid.SampledFrom([]Response{0, Observe, Hedge, Escalate, Block}).Draw(t, "response")
			unchecked := rapid.SampledFrom([]Response{0, Observe, Hedge, Escalate}).Draw(t, "unchecked")
			r := Raise{Term: term.ID, Response: response, Unchecked: unchecked}
			var ps problems
			if r.check(&ps, "", []*Pack{p}); ps != nil || response == Block && unchecked != Escalate && unchecked != 0 {
				continue
			}
			text := "{term: " + term.ID
			if response != 0 {
				text += ", response: " + response.String()
			}
			if unchecked != 0 {
				text += ", unchecked: " + unchecked.String()
			}
			raised = append(raised, text+"}")
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "own terms") {
		own = append(own, drawTerm(t, fmt.Sprintf("%s_t%d", id, i), Observe, Hedge, Escalate, Block))
	}
	if len(own)+len(raised) == 0 || len(extends) == 0 {
		return nil
	}
	text := strings.TrimSuffix(packText(id, Ethics), "terms:\n") +
		"extends: [" + strings.Join(extends, ", ") + "]\nraises: [" + strings.Join(raised, ", ") + "]\n"
	if len(own) > 0 {
		text += "terms:\n" + strings.Join(own, "")
	}
	p, err := LoadPack("profile.yaml", []byte(text), NewRegistry())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// TestProfileIsNeverMilder: on any spec, packs with profiles decide at least as
// strictly as without, keep every hedge, find the same, and in any order.
func TestProfileIsNeverMilder(t *testing.T) {
	t.Parallel()
	floor := testFloor(t)
	raised := 0
	rapid.Check(t, func(t *rapid.T) {
		packs, doc := drawPacks(t, floor), specJSON(t, drawSpec(t))
		before := decide(t, packs, doc)
		all := slices.Clone(packs)
		for i := range rapid.IntRange(1, 2).Draw(t, "profiles") {
			if p := drawProfile(t, fmt.Sprintf("a_profile%d", i), packs); p != nil {
				all = append(all, p)
			}
		}
		after := decide(t, all, doc)
		if after.Outcome < before.Outcome {
			t.Fatalf("%s became %s", before.Outcome, after.Outcome)
		}
		if before.Hedge != nil && (after.Hedge == nil || slices.ContainsFunc(before.Hedge.Terms, func(id string) bool { return !slices.Contains(after.Hedge.Terms, id) })) {
			t.Fatalf("hedge %+v became %+v", before.Hedge, after.Hedge)
		}
		effects := map[string]Response{}
		for _, e := range after.Effects() {
			effects[e.Term] = e.Effect
		}
		for _, e := range before.Effects() {
			if effects[e.Term] < e.Effect {
				t.Fatalf("%s: %s became %s", e.Term, e.Effect, effects[e.Term])
			}
			if effects[e.Term] > e.Effect {
				raised++
			}
			was, _ := before.Finding(e.Term)
			is, _ := after.Finding(e.Term)
			if was.State != is.State || was.Cause != is.Cause {
				t.Fatalf("%s: found %s, then %s", e.Term, was.State, is.State)
			}
		}
		want, _ := MarshalDecision(after)
		if got, _ := MarshalDecision(decide(t, rapid.Permutation(all).Draw(t, "order"), doc)); string(got) != string(want) {
			t.Fatalf("in another order:\n%s\n%s", want, got)
		}
	})
	if raised == 0 {
		t.Error("no profile raised an effect")
	}
}
