package main

import (
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/open-policy-agent/opa/v1/ast"

	"weir/screening"
)

// comparePolicies measures deciding: from JSON to what fired with its evidence, and evaluation alone.
func comparePolicies(rep *report) error {
	e, err := newEngines()
	if err != nil {
		return err
	}
	specs := genSpecs(40)
	var parsed []*screening.ParsedSpec
	var opaInputs []ast.Value
	var celInputs []*celSpec
	for _, s := range specs {
		parsed = append(parsed, must(screening.ParseSpec(s.json)))
		opaInputs = append(opaInputs, must(e.opa.decode(s.json)))
		celInputs = append(celInputs, must(e.cel.decode(s.json)))
	}
	n := len(specs)
	fromJSON := compare(n,
		entrant{"weir: strict decode, both digests, classify", func(i int) {
			must(screening.Classify(must(screening.ParseSpec(specs[i].json)), e.weir, day))
		}},
		entrant{"OPA, tuned policy", func(i int) { must(e.opaTuned.eval(must(e.opaTuned.decode(specs[i].json)))) }},
		entrant{"OPA, 30 rules", func(i int) { must(e.opa.eval(must(e.opa.decode(specs[i].json)))) }},
		entrant{"cel-go, 30 programs", func(i int) { must(e.cel.eval(must(e.cel.decode(specs[i].json)))) }},
		entrant{"cel-go, tuned programs", func(i int) { must(e.celTuned.eval(must(e.celTuned.decode(specs[i].json)))) }},
	)
	rep.table("From JSON to the rules that fired, with evidence (half of the specs clean)", fromJSON)
	rep.goal("OPA (tuned) from JSON / weir", 25, fromJSON[1].ratio)
	rep.goal("cel-go from JSON / weir", 10, fromJSON[3].ratio)

	clean := func(i int) int { return i &^ 1 }
	admit := compare(n,
		entrant{"weir: outcome (Decide)", func(i int) { must(screening.Decide(parsed[clean(i)], e.weir, day)) }},
		entrant{"weir: whole decision (Classify)", func(i int) { must(screening.Classify(parsed[clean(i)], e.weir, day)) }},
		entrant{"OPA, tuned policy", func(i int) { must(e.opaTuned.eval(opaInputs[clean(i)])) }},
		entrant{"OPA, 30 rules", func(i int) { must(e.opa.eval(opaInputs[clean(i)])) }},
		entrant{"cel-go, 30 programs", func(i int) { must(e.cel.eval(celInputs[clean(i)])) }},
		entrant{"cel-go, tuned programs", func(i int) { must(e.celTuned.eval(celInputs[clean(i)])) }},
	)
	rep.table("Evaluation alone, the input decoded, specs that are admitted (nothing fires, so there is no evidence)", admit)
	rep.goal("OPA (tuned), evaluation / weir", 100, admit[2].ratio)
	rep.goal("cel-go, evaluation / weir", 50, admit[4].ratio)
	rep.atMost("allocations of an admit", 0, admit[0].allocs)

	dirty := func(i int) int { return i | 1 }
	fired := compare(n,
		entrant{"weir: whole decision (Classify)", func(i int) { must(screening.Classify(parsed[dirty(i)], e.weir, day)) }},
		entrant{"weir: outcome (Decide)", func(i int) { must(screening.Decide(parsed[dirty(i)], e.weir, day)) }},
		entrant{"OPA, tuned policy", func(i int) { must(e.opaTuned.eval(opaInputs[dirty(i)])) }},
		entrant{"cel-go, 30 programs", func(i int) { must(e.cel.eval(celInputs[dirty(i)])) }},
	)
	rep.table("Evaluation alone, the input decoded, specs in which rules fire, with evidence", fired)

	decode := compare(n,
		entrant{"weir: ParseSpec (strict, checked, both digests)", func(i int) { must(screening.ParseSpec(specs[i].json)) }},
		entrant{"encoding/json into the same struct, not strict", func(i int) { must(0, json.Unmarshal(specs[i].json, new(screening.Spec))) }},
		entrant{"json v2 module into the same struct, unknown keys refused", func(i int) {
			must(0, jsonv2.Unmarshal(specs[i].json, new(screening.Spec), jsonv2.RejectUnknownMembers(true)))
		}},
		entrant{"OPA: ast.ValueFromReader", func(i int) { must(e.opa.decode(specs[i].json)) }},
		entrant{"SHA-256 of the bytes (weir does it twice)", func(i int) { screening.Sum(specs[i].json) }},
	)
	rep.table("Decoding", decode)
	rep.goal("encoding/json, not strict / weir, strict", 1, decode[1].ratio)
	return nil
}
