package screening

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiffPacks(t *testing.T) {
	t.Parallel()
	old := ethicsPack(t,
		termText("goes", Escalate, "violated_if: {fact: objective.kind, has: sft}"),
		termText("harder", Escalate, "violated_if: {fact: objective.kind, has: sft}"),
		termText("same", Hedge, "violated_if: {any: [{fact: objective.kind, has: dpo}]}"))
	next := ethicsPack(t,
		termText("comes", Observe, "structural: elsewhere"),
		termText("harder", Block, "violated_if: {fact: objective.kind, any_of: [sft]}"),
		termText("same", Hedge, "violated_if: {any: [{has: dpo, fact: objective.kind}]}"))
	changes, err := DiffPacks(old, next)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, c := range changes {
		for _, f := range c.Fields {
			if c.Kind == "changed" {
				got[c.Term] = append(got[c.Term], f.Key+": "+f.Old+" → "+f.New)
			}
		}
		if c.Kind != "changed" {
			got[c.Term] = []string{c.Kind}
		}
	}
	want := map[string][]string{"goes": {"removed"}, "comes": {"added"}, "harder": {
		`response: "escalate" → "block"`,
		`violated_if: {"fact":"objective.kind","has":"sft"} → {"any_of":["sft"],"fact":"objective.kind"}`}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	other := ethicsPack(t, termText("a", Observe, "structural: elsewhere"))
	again := *other
	again.PreferredHedgeSoft = "Maybe"
	if changes, err := DiffPacks(other, &again); err != nil || len(changes) != 1 || changes[0].Term != PackItself {
		t.Errorf("another hedge text: %v (%v)", changes, err)
	}
	if same, err := DiffPacks(old, old); err != nil || len(same) != 0 {
		t.Errorf("a pack differs from itself: %v (%v)", same, err)
	}
}
