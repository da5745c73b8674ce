package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// opaEngine is Open Policy Agent as a library, with a prepared query.
type opaEngine struct{ query rego.PreparedEvalQuery }

// opaPlain is the policy as one writes it: a Rego rule for each rule.
func opaPlain() string {
	var b strings.Builder
	b.WriteString(opaHead)
	for _, r := range tagRules {
		fmt.Fprintf(&b, "fired contains {\"rule\": %q, \"at\": i} if { some i, d in input.disclosures; d.tag == %q; d.state == %q; d.basis == \"structured\" }\n", r.id, r.tag, r.state)
		fmt.Fprintf(&b, "fired contains {\"rule\": %q, \"input\": i, \"at\": j} if { some i, x in input.inputs; some j, d in x.disclosures; d.tag == %q; d.state == %q; d.basis == \"structured\" }\n", r.id, r.tag, r.state)
	}
	b.WriteString(opaProvenance())
	for _, r := range phraseRules {
		fmt.Fprintf(&b, "fired contains {\"rule\": %q, \"phrase\": p} if { some p in [%s]; contains(purpose, p) }\n", r.id, quoted(r.phrases))
	}
	return b.String()
}

// opaTuned asks each question once: the rules of a stated tag are looked up, and all phrases are gone through in one
// comprehension-free loop. Of the forms tried it is the fastest.
func opaTuned() string {
	var b strings.Builder
	b.WriteString(opaHead)
	b.WriteString("tag_rules := {")
	for i, r := range tagRules {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q: {%q: %q}", r.tag, r.state, r.id)
	}
	b.WriteString("}\nphrase_rules := {")
	first := true
	for _, r := range phraseRules {
		for _, p := range r.phrases {
			if !first {
				b.WriteString(", ")
			}
			first = false
			fmt.Fprintf(&b, "%q: %q", p, r.id)
		}
	}
	b.WriteString("}\n")
	b.WriteString(`
fired contains {"rule": rule, "at": i} if { some i, d in input.disclosures; rule := tag_rules[d.tag][d.state]; d.basis == "structured" }
fired contains {"rule": rule, "input": i, "at": j} if { some i, x in input.inputs; some j, d in x.disclosures; rule := tag_rules[d.tag][d.state]; d.basis == "structured" }
fired contains {"rule": rule, "phrase": p} if { some p, rule in phrase_rules; contains(purpose, p) }
`)
	b.WriteString(opaProvenance())
	return b.String()
}

var opaHead = fmt.Sprintf(`package gate
noncommercial := {%s}
licenses := {%s}
ids := {d.id | some d in input.inputs}
purpose := lower(input.objective.purpose)
`, quoted(noncommercialLicenses), quoted(slices.Concat(openLicenses, noncommercialLicenses)))

func opaProvenance() string {
	var b strings.Builder
	for _, r := range provenanceRules {
		fmt.Fprintf(&b, "fired contains {\"rule\": %q, \"input\": i} if { some i, d in input.inputs; d.kind == \"dataset\"; %s }\n", r.id, r.rego)
	}
	return b.String()
}

func newOPA(policy string) (*opaEngine, error) {
	q, err := rego.New(rego.Query("data.gate.fired"), rego.Module("gate.rego", policy)).PrepareForEval(context.Background())
	return &opaEngine{q}, err
}

// decode reads JSON into OPA's own values, which is faster than by way of a map.
func (o *opaEngine) decode(doc []byte) (ast.Value, error) {
	return ast.ValueFromReader(bytes.NewReader(doc))
}

// eval gives the set of what fired, with evidence.
func (o *opaEngine) eval(input ast.Value) ([]any, error) {
	rs, err := o.query.Eval(context.Background(), rego.EvalParsedInput(input))
	if err != nil {
		return nil, err
	}
	return rs[0].Expressions[0].Value.([]any), nil
}

func opaFired(set []any) []string {
	var fired []string
	for _, v := range set {
		fired = append(fired, v.(map[string]any)["rule"].(string))
	}
	slices.Sort(fired)
	return slices.Compact(fired)
}
