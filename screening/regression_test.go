package screening

import (
	"strings"
	"testing"
)

func TestRegressionGate(t *testing.T) {
	t.Parallel()
	const cases = `
schema: weir/cases/v1
pack: pledge
cases:
  - {name: a, spec: {objective: {kind: dpo}}, expect: {tuned: violated}}
  - {name: b, spec: {objective: {kind: kto}}, expect: {tuned: upheld}}
`
	old := ethicsPack(t, termText("tuned", Observe, "violated_if: {fact: objective.kind, any_of: [dpo, sft]}"))
	next := ethicsPack(t, termText("tuned", Observe, "violated_if: {fact: objective.kind, has: dpo}"))
	precedents := []Precedent{
		{Source: "c1", Spec: []byte(specText("objective: {kind: dpo}")), AsOf: testDay, Term: "tuned", Finding: Violated},
		{Source: "c2", Spec: []byte(specText("objective: {kind: sft}")), AsOf: testDay, Term: "tuned", Finding: Violated},
		{Source: "c3", Spec: []byte(specText("objective: {kind: kto}")), AsOf: testDay, Term: "tuned", Finding: Violated}, // neither agrees
	}
	tests := []struct {
		name       string
		regression *Regression
		passed     bool
		measured   int
		threshold  int
		detail     string
	}{
		{"no database", nil, true, 0, 0, "not_run"},
		{"nothing replaced", &Regression{Precedents: precedents}, true, 0, 0, "not_run"},
		{"replaced by itself", &Regression{Replaces: next, Precedents: precedents}, true, 1, 1, "1 of 1"},
		{"loses an example", &Regression{Replaces: old, Precedents: precedents}, false, 1, 2, "c2 (tuned)"},
	}
	for _, tt := range tests {
		b := &Bundle{Pack: next, Regression: tt.regression}
		b.Cases = loadCases(t, next, cases)
		r, err := b.Ratify(NewRegistry(), testFloor(t), testDay)
		if err != nil {
			t.Fatal(err)
		}
		g := r.Gates[len(r.Gates)-1]
		if g.Name != regressionGate || g.Passed != tt.passed || g.Measured != tt.measured || g.Threshold != tt.threshold || !strings.Contains(g.Detail, tt.detail) {
			t.Errorf("%s: %+v", tt.name, g)
		}
		if r.Ratified != tt.passed {
			t.Errorf("%s: ratified %t; failures %v", tt.name, r.Ratified, r.FailureReasons)
		}
	}
}
