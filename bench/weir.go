package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/screening"
)

func sortedKeys(o object) []string {
	return slices.SortedFunc(maps.Keys(o), func(a, b string) int { return cmp.Compare(keyOrder[a], keyOrder[b]) })
}

// weirVocabulary compiles the policy for weir: one tag rule in the floor, all others in a pack beside it.
func weirVocabulary() (*screening.Vocabulary, error) {
	var floor, pledge strings.Builder
	term := func(id, response, body string) string {
		return fmt.Sprintf("  - {id: %s, title: %s, description: A rule of the comparison., severity: high, response: %s, remedy: Change it., %s}\n",
			id, id, response, body)
	}
	head := func(b *strings.Builder, id, layer string) {
		fmt.Fprintf(b, "schema: weir/pack/v1\nid: %s\nversion: \"1\"\nlayer: %s\ntitle: Comparison\ndescription: Comparison.\nterms:\n", id, layer)
	}
	head(&floor, screening.FloorID, "safety")
	head(&pledge, "comparison", "ethics")
	for _, r := range tagRules {
		body := fmt.Sprintf("violated_if: {tag: {%s: %s}}", r.tag, r.state)
		if r.id == floorTag {
			floor.WriteString(term(r.id, "block", body))
		} else {
			pledge.WriteString(term(r.id, "escalate", body))
		}
	}
	for _, r := range provenanceRules {
		pledge.WriteString(term(r.id, "escalate", "over: [dataset], violated_if: "+r.weir))
	}
	for _, r := range phraseRules {
		pledge.WriteString(term(r.id, "escalate", "violated_if: {phrases: ["+quoted(r.phrases)+"]}"))
	}
	reg := screening.NewRegistry()
	var packs []*screening.Pack
	for _, text := range []string{floor.String(), pledge.String()} {
		p, err := screening.LoadPack("comparison.yaml", []byte(text), reg)
		if err != nil {
			return nil, err
		}
		packs = append(packs, p)
	}
	return screening.NewVocabulary(reg, screening.VocabularyConfig{}, packs...)
}

const day = screening.Day("2026-11-30")

// weirFired lists the rules that fired: violated ones, and those that a phrase in the purpose gives a hint for, since
// by weir's rules a purpose decides nothing and a person has to read it.
func weirFired(d *screening.Decision) (fired []string) {
	for _, e := range d.Effects() {
		f, ok := d.Finding(e.Term)
		if ok && (f.State == screening.Violated || f.Cause == screening.CauseHint) {
			fired = append(fired, e.ID())
		}
	}
	slices.Sort(fired)
	return fired
}
