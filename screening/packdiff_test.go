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

// TestDiffShowsDatesAndRaises: what changes a decision without changing a
// predicate is told too.
func TestDiffShowsDatesAndRaises(t *testing.T) {
	t.Parallel()
	const body = "violated_if: {fact: objective.kind, has: sft}"
	base := ethicsPack(t, termText("a", Escalate, body), termText("b", Hedge, body), termText("c", Observe, body))
	dated := ethicsPack(t, termText("a", Escalate, body), termText("b", Hedge, body+", effective_from: 2027-01-01, sunset: 2028-01-01"), termText("c", Observe, body))
	moved := ethicsPack(t, termText("a", Escalate, body), termText("b", Hedge, body+", effective_from: 2027-02-01"), termText("c", Observe, body))
	weak := profile(t, "house", base, "{term: a, response: block}", termText("own", Observe, body))
	strong := profile(t, "house", base, "{term: a, response: block}, {term: b, unchecked: escalate}", termText("own", Observe, body))
	elsewhere := profile(t, "house", moved, "{term: a, response: block}", termText("own", Observe, body))
	pin := func(p *Pack) string { return "pledge " + p.SHA256.String() }
	for _, tt := range []struct {
		name      string
		old, next *Pack
		want      []string
	}{
		{"dates come", base, dated, []string{`changed b effective_from  "2027-01-01"`, `changed b sunset  "2028-01-01"`}},
		{"dates move and go", dated, moved, []string{`changed b effective_from "2027-01-01" "2027-02-01"`, `changed b sunset "2028-01-01" `}},
		{"a profile of the pack", base, strong, []string{"changed (pack) extends  " + pin(base), `changed a response "escalate" "block"`, `changed b unchecked  "escalate"`, "added own"}},
		{"a pack and its profile, the other way", weak, base, []string{"changed (pack) extends " + pin(base) + " ", `changed a response "block" "escalate"`, "removed own"}},
		{"a profile raises more", weak, strong, []string{`changed raise of b unchecked  "escalate"`}},
		{"a profile raises less", strong, weak, []string{`changed raise of b unchecked "escalate" `}},
		{"a profile is bound to another pack", weak, elsewhere, []string{"changed (pack) extends " + pin(base) + " " + pin(moved)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			changes, err := DiffPacks(tt.old, tt.next)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range changes {
				if c.Kind != "changed" {
					got = append(got, c.Kind+" "+c.Term)
					continue
				}
				for _, f := range c.Fields {
					got = append(got, c.Kind+" "+c.Term+" "+f.Key+" "+f.Old+" "+f.New)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
