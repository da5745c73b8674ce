package screening

import (
	"maps"
	"slices"
	"strconv"
)

// CasesSchema is the value of a case file's schema key.
const CasesSchema = "weir/cases/v1"

// Cases are the examples that a pack has to get right to be ratified.
type Cases struct {
	Pack     string         `json:"pack"`
	Cases    []Case         `json:"cases"`
	Complete []CompleteCase `json:"complete"`
	SHA256   Digest256      `json:"-"` // of the canonical form
}

// Case is a spec, or the part of one that matters, and what terms find in it.
type Case struct {
	Name   string           `json:"name"`
	Spec   Spec             `json:"spec"`
	Expect map[string]State `json:"expect"` // term id → finding
}

// CompleteCase is a realistic, fully disclosed spec of at least eight inputs. It
// must be admitted, and must stop being admitted when a required statement goes.
type CompleteCase struct {
	Name string `json:"name"`
	Spec Spec   `json:"spec"`
}

const minCompleteInputs = 8

// LoadCases reads a case file for a pack. The error is an [*InvalidError].
func LoadCases(name string, data []byte, p *Pack) (*Cases, error) {
	doc, err := parseDocument("cases", name, data)
	if err != nil {
		return nil, err
	}
	var wire struct {
		Schema string `json:"schema"`
		Cases
	}
	if err := doc.decodeNotes(&wire); err != nil {
		return nil, err
	}
	c := &wire.Cases
	var ps problems
	if wire.Schema != CasesSchema {
		ps.add("/schema", "must be %q", CasesSchema)
	}
	if c.Pack != p.ID {
		ps.add("/pack", "must be %s, the id of the pack beside it", p.ID)
	}
	c.check(&ps, p)
	if err := ps.invalid("cases", name, doc); err != nil {
		return nil, err
	}
	canonical, err := Canonical(doc.json)
	if err != nil {
		return nil, err
	}
	c.SHA256 = Sum(canonical)
	return c, nil
}

func (c *Cases) check(ps *problems, p *Pack) {
	names := map[string]bool{}
	unique := func(at, name string) {
		if IsBlank(name) || names[name] {
			ps.add(at+"/name", "must be given and differ from the other names")
		}
		names[name] = true
	}
	for i := range c.Cases {
		cs, at := &c.Cases[i], "/cases/"+strconv.Itoa(i)
		unique(at, cs.Name)
		checkCaseSpec(ps, at, &cs.Spec)
		if len(cs.Expect) == 0 {
			ps.add(at+"/expect", "must say what at least one term finds")
		}
		for _, term := range slices.Sorted(maps.Keys(cs.Expect)) {
			state := cs.Expect[term]
			if !slices.ContainsFunc(p.Terms, func(t Term) bool { return t.ID == term }) &&
				!slices.ContainsFunc(p.Raises, func(r Raise) bool { return r.Term == term }) {
				ps.add(at+"/expect/"+escapePointer(term), "is not a term of the pack, or one that it raises")
			}
			if state != Violated && state != Upheld && state != NotCheckable {
				ps.add(at+"/expect/"+escapePointer(term), "must be violated, upheld or not_checkable")
			}
		}
	}
	for i := range c.Complete {
		cs, at := &c.Complete[i], "/complete/"+strconv.Itoa(i)
		unique(at, cs.Name)
		checkCaseSpec(ps, at, &cs.Spec)
		if len(cs.Spec.Inputs) < minCompleteInputs {
			ps.add(at+"/spec/inputs", "a complete case has at least %d inputs", minCompleteInputs)
		}
	}
}

// checkCaseSpec fills in what a case leaves out because it does not matter to
// it, and then holds it to the rules of a submitted spec.
func checkCaseSpec(ps *problems, at string, s *Spec) {
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&s.Schema, SpecSchema)
	fill(&s.RunRef, "case")
	fill(&s.Owner, "case")
	fill(&s.Objective.Kind, "other")
	fill(&s.DisclosureStatement, "A case.")
	for _, p := range s.check() {
		ps.add(at+"/spec"+p.Pointer, "%s", p.Detail)
	}
}
