package screening

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// runGates runs every gate that needs only pack, cases and floor, in a fixed order.
func (b *Bundle) runGates(reg *Registry, floor *Pack, asOf Day) ([]Gate, error) {
	if b.Cases == nil {
		return nil, fmt.Errorf("pack %s has no cases", b.Pack.ID)
	}
	packs := []*Pack{b.Pack}
	if b.Pack.ID != FloorID {
		packs = append(packs, floor)
	}
	v, err := NewVocabulary(reg, VocabularyConfig{}, append(packs, b.Bases...)...)
	if err != nil {
		return nil, err
	}
	v.dated = false // what is not yet in force must work on its first day, so all terms count as in force
	g := gateRun{bundle: b, v: v, asOf: asOf, terms: v.answerable(b.Pack)}
	return []Gate{g.replay(), g.cases(), g.coverage(), g.vacuous(), g.complete(), g.required()}, nil
}

type gateRun struct {
	bundle *Bundle
	v      *Vocabulary
	asOf   Day
	terms  []*Term
}

// answerable lists the terms that a pack's cases have to show: its own and those
// that it raises, as the vocabulary has them.
func (v *Vocabulary) answerable(p *Pack) (terms []*Term) {
	ids := make([]string, 0, len(p.Terms)+len(p.Raises))
	for i := range p.Terms {
		ids = append(ids, p.Terms[i].ID)
	}
	for _, r := range p.Raises {
		ids = append(ids, r.Term)
	}
	slices.Sort(ids[len(p.Terms):])
	for _, id := range ids {
		if t, ok := v.Term(tagID(p.Layer, id)); ok {
			terms = append(terms, t)
		}
	}
	return terms
}

// classify decides a case and gives the findings of the pack under test.
func (g *gateRun) classify(s *Spec) (*Decision, map[string]*Finding, error) {
	raw, err := json.Marshal(s, json.Deterministic(true))
	if err != nil {
		return nil, nil, err
	}
	d, err := Classify(&ParsedSpec{Spec: s, Raw: raw, SHA256: Sum(raw), doc: document{json: raw}, coded: s.code()}, g.v, g.asOf)
	if err != nil {
		return nil, nil, err
	}
	found := map[string]*Finding{}
	for _, t := range g.terms {
		found[t.ID], _ = d.Finding(tagID(g.bundle.Pack.Layer, t.ID))
	}
	return d, found, nil
}

func gate(name string, measured, threshold int, passed bool, detail string) Gate {
	return Gate{Name: name, Passed: passed, Measured: measured, Threshold: threshold, Detail: detail}
}

// replay: deciding every case again gives the same bytes.
func (g *gateRun) replay() Gate {
	specs := g.specs()
	same := 0
	for _, s := range specs {
		first, _, err1 := g.classify(s)
		second, _, err2 := g.classify(s)
		if err1 != nil || err2 != nil {
			continue
		}
		a, err1 := MarshalDecision(first)
		b, err2 := MarshalDecision(second)
		if err1 == nil && err2 == nil && bytes.Equal(a, b) {
			same++
		}
	}
	return gate("replay", same, len(specs), same == len(specs), fmt.Sprintf("%d of %d cases give the same bytes when decided again", same, len(specs)))
}

func (g *gateRun) specs() (all []*Spec) {
	for i := range g.bundle.Cases.Cases {
		all = append(all, &g.bundle.Cases.Cases[i].Spec)
	}
	for i := range g.bundle.Cases.Complete {
		all = append(all, &g.bundle.Cases.Complete[i].Spec)
	}
	return all
}

// cases: every case gives its expected findings.
func (g *gateRun) cases() Gate {
	right, wrong := 0, ""
	for i := range g.bundle.Cases.Cases {
		c := &g.bundle.Cases.Cases[i]
		if problem := g.caseProblem(c); problem == "" {
			right++
		} else if wrong == "" {
			wrong = fmt.Sprintf("; case %q: %s", c.Name, problem)
		}
	}
	n := len(g.bundle.Cases.Cases)
	return gate("cases", right, n, right == n && n > 0, fmt.Sprintf("%d of %d cases give the expected findings%s", right, n, wrong))
}

func (g *gateRun) caseProblem(c *Case) string {
	_, found, err := g.classify(&c.Spec)
	if err != nil {
		return err.Error()
	}
	for _, term := range slices.Sorted(maps.Keys(c.Expect)) {
		if f := found[term]; f.State != c.Expect[term] {
			return fmt.Sprintf("%s is %s, expected %s (%s)", term, f.State, c.Expect[term], f.Reason)
		}
	}
	return ""
}

// coverage: every checkable term has a case that violates it and one that
// upholds it, because a predicate that cannot fail is not a check.
func (g *gateRun) coverage() Gate {
	covered, checkable := 0, 0
	var lacking []string
	for _, t := range g.terms {
		if t.ViolatedIf == nil && t.Predicate == "" {
			continue
		}
		checkable++
		has := func(want State) bool {
			return slices.ContainsFunc(g.bundle.Cases.Cases, func(c Case) bool { return c.Expect[t.ID] == want })
		}
		if has(Violated) && has(Upheld) {
			covered++
		} else {
			lacking = append(lacking, t.ID)
		}
	}
	return gate("coverage", covered, checkable, covered == checkable, note(
		fmt.Sprintf("%d of %d checkable terms have a case that violates and one that upholds them", covered, checkable), lacking))
}

// vacuous: a term that acts but can never be checked is a promise without a check.
func (g *gateRun) vacuous() Gate {
	var empty []string
	for _, t := range g.terms {
		if t.Response != Observe && t.ViolatedIf == nil && t.Predicate == "" {
			empty = append(empty, t.ID)
		}
	}
	return gate("vacuous", len(empty), 0, len(empty) == 0, note(
		fmt.Sprintf("%d terms act without a predicate", len(empty)), empty))
}

// complete: every complete case is admitted, whatever no_policy_matched says.
func (g *gateRun) complete() Gate {
	admitted, n := 0, len(g.bundle.Cases.Complete)
	var refused []string
	for i := range g.bundle.Cases.Complete {
		c := &g.bundle.Cases.Complete[i]
		switch d, _, err := g.classify(&c.Spec); {
		case err != nil:
			refused = append(refused, fmt.Sprintf("%s (%v)", c.Name, err))
		case admits(d):
			admitted++
		default:
			refused = append(refused, c.Name+" (by "+strings.Join(stopping(d), ", ")+")")
		}
	}
	if n == 0 && g.acts() {
		return gate("complete", 0, 0, false, "there is no complete case; a pack that blocks or escalates needs one")
	}
	return gate("complete", admitted, n, admitted == n, note(
		fmt.Sprintf("%d of %d complete cases are admitted", admitted, n), refused))
}

// stopping lists the terms that keep a decision from being an admit.
func stopping(d *Decision) (terms []string) {
	for _, c := range d.Causes {
		if c.Effect >= Escalate {
			terms = append(terms, c.Term)
		}
	}
	return terms
}

// admits leaves no_policy_matched aside: one pack alone need not cover a whole deployment.
func admits(d *Decision) bool {
	return d.Outcome == OutcomeAdmit || d.Outcome == OutcomeEscalate && d.NoPolicyMatched && !slices.ContainsFunc(d.Causes,
		func(c EffectiveFinding) bool { return c.Effect >= Escalate })
}

// acts reports whether the pack has terms that block or escalate.
func (g *gateRun) acts() bool {
	return slices.ContainsFunc(g.terms, func(t *Term) bool { return t.Response >= Escalate })
}

// required: taking one statement out of a complete case, where that leaves a
// block or escalate term unchecked that was checked, stops the admission.
func (g *gateRun) required() Gate {
	tried, slipped := 0, []string{}
	for i := range g.bundle.Cases.Complete {
		c := &g.bundle.Cases.Complete[i]
		_, whole, err := g.classify(&c.Spec)
		if err != nil {
			continue // the gate complete says so
		}
		for _, less := range withoutOne(&c.Spec) {
			d, found, err := g.classify(less.spec)
			if err != nil || !g.leavesOpen(whole, found) {
				continue
			}
			tried++
			if admits(d) {
				slipped = append(slipped, c.Name+" without "+less.what)
			}
		}
	}
	if tried == 0 && g.acts() {
		return gate("required", 0, 0, false, "no complete case has a statement whose loss leaves a term open")
	}
	return gate("required", tried-len(slipped), tried, len(slipped) == 0, note(
		fmt.Sprintf("%d of %d required statements stop the admission when they are left out", tried-len(slipped), tried), slipped))
}

func (g *gateRun) leavesOpen(whole, less map[string]*Finding) bool {
	return slices.ContainsFunc(g.terms, func(t *Term) bool {
		return t.Response >= Escalate && whole[t.ID].RuntimeCheckable() && !less[t.ID].RuntimeCheckable()
	})
}

type lessSpec struct {
	what string
	spec *Spec
}

// withoutOne gives the spec with each statement left out in turn.
func withoutOne(s *Spec) (out []lessSpec) {
	less := func(what string, change func(*Spec)) {
		c := *s
		c.Inputs = slices.Clone(s.Inputs)
		change(&c)
		out = append(out, lessSpec{what, &c})
	}
	for i := range s.Disclosures {
		less(tagPointer{wholeSpec, i}.String(), func(c *Spec) {
			c.Disclosures = slices.Delete(slices.Clone(c.Disclosures), i, i+1)
		})
	}
	less("/objective/purposes", func(c *Spec) { c.Objective.Purposes = nil })
	less("/base_model", func(c *Spec) { c.BaseModel = "" })
	less("/evidence/context", func(c *Spec) { c.Evidence.Context = Context{} })
	less("/objective/markets", func(c *Spec) { c.Objective.Markets = nil })
	for i := range s.Inputs {
		at := inputPointer(i)
		for j := range s.Inputs[i].Disclosures {
			less(tagPointer{i, j}.String(), func(c *Spec) {
				c.Inputs[i].Disclosures = slices.Delete(slices.Clone(c.Inputs[i].Disclosures), j, j+1)
			})
		}
		less(at+"/sources", func(c *Spec) { c.Inputs[i].Sources = nil })
		less(at+"/collection", func(c *Spec) { c.Inputs[i].Collection = nil })
		less(at+"/license", func(c *Spec) { c.Inputs[i].License = License{} })
		less(at+"/consent", func(c *Spec) { c.Inputs[i].Consent = Consent{} })
		less(at+"/lineage", func(c *Spec) { c.Inputs[i].Lineage = nil })
		less(at+"/shape", func(c *Spec) { c.Inputs[i].Shape = nil })
		less(at+"/residency", func(c *Spec) { c.Inputs[i].Residency = nil })
		less(at+"/split", func(c *Spec) { c.Inputs[i].Split = "" })
		less(at+"/trust_remote_code", func(c *Spec) { c.Inputs[i].TrustRemoteCode = nil })
	}
	return out
}

// note appends the first few names to a sentence.
func note(text string, names []string) string {
	const most = 5
	if len(names) == 0 {
		return text
	}
	more := ""
	if len(names) > most {
		names, more = names[:most], ", …"
	}
	return text + ": " + strings.Join(names, ", ") + more
}
