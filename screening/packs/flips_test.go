package packs_test

import (
	"strings"
	"testing"

	"weir/screening"
)

// TestEveryFindingSaysWhatWouldChangeIt: over all cases of the shipped packs, a
// finding that is not upheld has a change, or says why there is none.
func TestEveryFindingSaysWhatWouldChangeIt(t *testing.T) {
	t.Parallel()
	reg := screening.NewRegistry()
	bundles := shipped(t, reg)
	flips := 0
	for id, b := range bundles {
		all := []*screening.Pack{bundles[screening.FloorID].Pack}
		if id != screening.FloorID {
			all = append(all, b.Pack)
		}
		v, err := screening.NewVocabulary(reg, screening.VocabularyConfig{}, all...)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range b.Cases.Cases {
			spec := c.Spec
			spec.DisclosureStatement = "It may err."
			_, x, err := screening.Explain(&screening.ParsedSpec{Spec: &spec}, v, asOf)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range x.Flips {
				flips++
				if (len(f.Changes) == 0) != (f.Why != "") {
					t.Errorf("%s, %s: %+v", c.Name, f.Term, f)
				}
				for _, ch := range f.Changes {
					if ch.Say == "" || ch.Pointer == "" || ch.Fact == "" || strings.Contains(ch.Say, "without ,") {
						t.Errorf("%s, %s: %+v", c.Name, f.Term, ch)
					}
				}
				if why := f.Why; why != "" && why != "it cannot be seen in a spec" && why != "while no input is a data set it is never upheld" {
					t.Errorf("%s, %s: %s", c.Name, f.Term, why)
				}
			}
		}
	}
	if flips < 1000 {
		t.Errorf("only %d findings were looked at", flips)
	}
}
