package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/screening"
)

// TestEnginesAgree: all engines find the same rules broken in 200 specs.
func TestEnginesAgree(t *testing.T) {
	t.Parallel()
	engines := must(newEngines())
	admitted, seen := 0, map[string]bool{}
	for i, spec := range genSpecs(200) {
		p, err := screening.ParseSpec(spec.json)
		if err != nil {
			t.Fatalf("spec %d: %v\n%s", i, err, spec.json)
		}
		d := must(screening.Classify(p, engines.weir, day))
		want := weirFired(d)
		if (len(want) > 0) != spec.dirty || (d.Outcome == screening.OutcomeAdmit) == spec.dirty {
			t.Errorf("spec %d: dirty %v, outcome %v, fired %v", i, spec.dirty, d.Outcome, want)
		}
		if d.Outcome == screening.OutcomeAdmit {
			admitted++
		}
		for _, id := range want {
			seen[id] = true
		}
		for name, opa := range map[string]*opaEngine{"opa": engines.opa, "opa tuned": engines.opaTuned} {
			got := opaFired(must(opa.eval(must(opa.decode(spec.json)))))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("spec %d: %s: (-weir +opa)\n%s", i, name, diff)
			}
		}
		for name, cel := range map[string]*celEngine{"cel": engines.cel, "cel tuned": engines.celTuned} {
			got := celFired(must(cel.eval(must(cel.decode(spec.json)))))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("spec %d: %s: (-weir +cel)\n%s", i, name, diff)
			}
		}
	}
	if admitted != 100 || len(seen) != ruleCount {
		t.Errorf("%d specs admitted, %d different rules fired", admitted, len(seen))
	}
}

func TestPolicySize(t *testing.T) {
	t.Parallel()
	phrases := map[string]bool{}
	for _, r := range phraseRules {
		for _, p := range r.phrases {
			phrases[p] = true
		}
	}
	got := fmt.Sprint(len(tagRules), len(provenanceRules), len(phraseRules), len(phrases))
	if got != "15 8 7 150" {
		t.Errorf("rules of tags, provenance, phrases, and phrases: %s", got)
	}
	for _, s := range genSpecs(20) {
		if n := len(s.json); n < 4<<10 || n > 6<<10 {
			t.Errorf("a spec has %d bytes", n)
		}
	}
}
