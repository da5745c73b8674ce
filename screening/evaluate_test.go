package screening

import (
	"testing"

	"pgregory.net/rapid"
)

// TestDecideIsClassify: the outcome alone is that of the whole decision.
func TestDecideIsClassify(t *testing.T) {
	t.Parallel()
	floor := testFloor(t)
	rapid.Check(t, func(t *rapid.T) {
		v, err := NewVocabulary(NewRegistry(), VocabularyConfig{}, drawPacks(t, floor)...)
		if err != nil {
			t.Fatal(err)
		}
		p, err := ParseSpec(specJSON(t, drawSpec(t)))
		if err != nil {
			t.Fatal(err)
		}
		whole, err1 := Classify(p, v, testDay)
		alone, err2 := Decide(p, v, testDay)
		if err1 != nil || err2 != nil || whole.Outcome != alone {
			t.Fatalf("%v (%v), alone %v (%v)", whole.Outcome, err1, alone, err2)
		}
	})
}

// TestDecideLeavesNothingBehind: room that is used again holds nothing of the spec before.
func TestDecideLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	v := vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t,
		termText("kids", Escalate, "over: [dataset], violated_if: {tag: {minors: present}}"),
		termText("words", Escalate, "violated_if: {phrases: [weapon smuggling]}"),
		termText("licence", Escalate, "over: [dataset], violated_if: {fact: license.restrictions, has: nc}")))
	clean := parseSpec(t, "disclosures: [{tag: minors, state: absent, basis: structured}]\ninputs: [{id: a, kind: dataset, license: {declared: [{spdx: MIT}]}}]")
	dirty := parseSpec(t, `objective: {kind: sft, out_of_scope: [weapon smuggling]}
disclosures: [{tag: minors, state: present, basis: structured}]
inputs: [{id: a, kind: dataset, license: {declared: [{spdx: CC-BY-NC-4.0}]}}, {id: b, kind: dataset}]`)
	want := marshal(t, classify(t, v, clean))
	for range 3 {
		classify(t, v, dirty)
		if got := marshal(t, classify(t, v, clean)); got != want {
			t.Fatalf("after another spec:\n%s\nbefore:\n%s", got, want)
		}
	}
	if o, err := Decide(clean, v, testDay); o != OutcomeAdmit || err != nil {
		t.Fatalf("got %v, %v", o, err)
	}
}

// TestAdmitAllocatesNothing: not parallel, for it counts.
func TestAdmitAllocatesNothing(t *testing.T) {
	v := vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t,
		termText("kids", Escalate, "over: [dataset], violated_if: {tag: {minors: present}}"),
		termText("words", Escalate, "violated_if: {phrases: [weapon smuggling]}"),
		termText("sources", Escalate, "over: [dataset], violated_if: {fact: sources.kind, has: web_crawl}"),
		termText("parents", Escalate, "over: [dataset], violated_if: {fact: lineage.parents, has: unrecorded}"),
		termText("licence", Escalate, "over: [dataset], violated_if: {fact: license.restrictions, has: nc}")))
	p := parseSpec(t, `objective: {kind: sft, purpose: A text about customer support.}
disclosures: [{tag: minors, state: absent, basis: structured}]
inputs: [{id: a, kind: dataset, name: n, sources: [{kind: licensed}], license: {declared: [{spdx: MIT}]}, lineage: {}}]`)
	fewest := 1.0
	for range 20 { // under the race detector, room is dropped at random
		fewest = min(fewest, testing.AllocsPerRun(1, func() {
			if o, err := Decide(p, v, testDay); o != OutcomeAdmit || err != nil {
				t.Fatalf("got %v, %v", o, err)
			}
		}))
	}
	if fewest > 0 {
		t.Errorf("an admit allocates %v times", fewest)
	}
}
