package main

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/ext"
)

// celSpec is what the policy reads of a spec, as Go structs: cel-go's faster kind of input.
type (
	celSpec struct {
		Objective   celObjective    `json:"objective"`
		Inputs      []celInput      `json:"inputs"`
		Disclosures []celDisclosure `json:"disclosures"`
	}
	celObjective struct {
		Purpose string `json:"purpose"`
	}
	celInput struct {
		ID              string          `json:"id"`
		Kind            string          `json:"kind"`
		Revision        string          `json:"revision"`
		Sources         []celSource     `json:"sources"`
		License         celLicense      `json:"license"`
		Consent         celConsent      `json:"consent"`
		Lineage         celLineage      `json:"lineage"`
		TrustRemoteCode bool            `json:"trust_remote_code"`
		Disclosures     []celDisclosure `json:"disclosures"`
	}
	celSource struct {
		Kind string `json:"kind"`
	}
	celLicense struct {
		Declared []celDeclared `json:"declared"`
		TDM      string        `json:"tdm"`
	}
	celDeclared struct {
		SPDX string `json:"spdx"`
	}
	celConsent struct {
		Status string `json:"status"`
	}
	celLineage struct {
		DerivedFrom []celParent `json:"derived_from"`
	}
	celParent struct {
		Ref string `json:"ref"`
	}
	celDisclosure struct {
		Tag   string `json:"tag"`
		State string `json:"state"`
		Basis string `json:"basis"`
	}
)

// celEngine is cel-go with one program for each rule, or tuned. A program gives the list of its evidence.
type celEngine struct {
	ids      []string // of the rule of each program; "" = the evidence itself says which, as "rule:…"
	programs []cel.Program
}

// newCEL compiles the policy as one writes it, a program for each rule; tuned, the rules of tags and those of phrases
// are one program each, which looks up what the rule of a hit is.
func newCEL(tuned bool) (*celEngine, error) {
	env, err := cel.NewEnv(
		ext.NativeTypes(ext.ParseStructTag("json"), reflect.TypeFor[celSpec](), reflect.TypeFor[celObjective](), reflect.TypeFor[celInput](),
			reflect.TypeFor[celSource](), reflect.TypeFor[celLicense](), reflect.TypeFor[celDeclared](),
			reflect.TypeFor[celConsent](), reflect.TypeFor[celLineage](), reflect.TypeFor[celParent](), reflect.TypeFor[celDisclosure]()),
		cel.Variable("spec", cel.ObjectType(path.Base(reflect.TypeFor[celSpec]().PkgPath())+".celSpec")), cel.Variable("purpose", cel.StringType))
	if err != nil {
		return nil, err
	}
	e := &celEngine{}
	add := func(id, expr string) {
		if err != nil {
			return
		}
		checked, issues := env.Compile(expr)
		if err = issues.Err(); err != nil {
			err = fmt.Errorf("rule %q: %w", id, err)
			return
		}
		var p cel.Program
		p, err = env.Program(checked, cel.EvalOptions(cel.OptOptimize))
		e.ids, e.programs = append(e.ids, id), append(e.programs, p)
	}
	if tuned {
		e.addTuned(add)
	} else {
		e.addPlain(add)
	}
	named := strings.NewReplacer("noncommercial", "["+quoted(noncommercialLicenses)+"]",
		"licenses", "["+quoted(slices.Concat(openLicenses, noncommercialLicenses))+"]")
	for _, r := range provenanceRules {
		add(r.id, fmt.Sprintf(`spec.inputs.filter(d, d.kind == "dataset" && %s).map(d, d.id)`, named.Replace(r.cel)))
	}
	return e, err
}

func (e *celEngine) addPlain(add func(id, expr string)) {
	for _, r := range tagRules {
		one := fmt.Sprintf(`d.tag == %q && d.state == %q && d.basis == "structured"`, r.tag, r.state)
		add(r.id, fmt.Sprintf(`spec.disclosures.filter(d, %s).map(d, d.tag) + spec.inputs.filter(i, i.disclosures.exists(d, %s)).map(i, i.id)`, one, one))
	}
	for _, r := range phraseRules {
		add(r.id, fmt.Sprintf(`[%s].filter(p, purpose.contains(p))`, quoted(r.phrases)))
	}
}

func (e *celEngine) addTuned(add func(id, expr string)) {
	var ofTag, ofPhrase, phrases []string
	for _, r := range tagRules {
		ofTag = append(ofTag, fmt.Sprintf("%q: %q", r.tag+"="+r.state, r.id))
	}
	for _, r := range phraseRules {
		for _, p := range r.phrases {
			ofPhrase = append(ofPhrase, fmt.Sprintf("%q: %q", p, r.id))
			phrases = append(phrases, p)
		}
	}
	tags, rules := "{"+strings.Join(ofTag, ", ")+"}", "{"+strings.Join(ofPhrase, ", ")+"}"
	hit := fmt.Sprintf(`d.basis == "structured" && (d.tag + "=" + d.state) in %s`, tags)
	rule := tags + `[d.tag + "=" + d.state]`
	add("", fmt.Sprintf(`spec.disclosures.filter(d, %s).map(d, %s)`, hit, rule))
	add("", fmt.Sprintf(`spec.inputs.filter(i, i.disclosures.exists(d, %s)).map(i, i.disclosures.filter(d, %s).map(d, %s)[0])`, hit, hit, rule))
	add("", fmt.Sprintf(`[%s].filter(p, purpose.contains(p)).map(p, %s[p])`, quoted(phrases), rules))
}

func (e *celEngine) decode(doc []byte) (*celSpec, error) {
	var s celSpec
	err := json.Unmarshal(doc, &s)
	return &s, err
}

// eval gives the evidence of every rule that fired.
func (e *celEngine) eval(s *celSpec) (fired []celHit, err error) {
	vars := map[string]any{"spec": s, "purpose": strings.ToLower(s.Objective.Purpose)}
	for i, p := range e.programs {
		out, _, err := p.Eval(vars)
		if err != nil {
			return nil, err
		}
		if list := out.(traits.Lister); list.Size() != types.IntZero {
			fired = append(fired, celHit{e.ids[i], list})
		}
	}
	return fired, nil
}

type celHit struct {
	rule     string
	evidence traits.Lister
}

func celFired(hits []celHit) (fired []string) {
	for _, h := range hits {
		for it := h.evidence.Iterator(); it.HasNext() == types.True; {
			rule := h.rule
			if value := it.Next().Value(); rule == "" {
				rule = value.(string)
			}
			fired = append(fired, rule)
		}
	}
	slices.Sort(fired)
	return slices.Compact(fired)
}
