package screening

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// value is a three-valued truth with the reason why the middle one is unknown.
// The order is that of "any": the largest of the parts is the value of the whole.
type value uint8

const (
	no       value = iota // certain: the clause does not hold
	silent                // unknown: nothing, or "unknown", was stated
	hinted                // unknown: something that may not decide speaks for it
	yesValue              // certain: the clause holds
)

func (v value) known() bool { return v == no || v == yesValue }

// clause is a compiled condition. It holds no state; it may fail with a panic or
// by marking the evaluation failed, and then its term decides nothing.
type clause interface {
	// value tells whether the clause holds at an input (or wholeSpec).
	value(e *evaluation, input int) value
	// explain adds what led to the value, and what would decide it if it is open.
	explain(e *evaluation, input int, x *explanation)
}

// recorder is a clause whose numbers belong in the record even when it is upheld.
type recorder interface{ records() }

// explanation collects evidence, reasons and what would decide an open clause.
type explanation struct {
	evidence []Evidence
	reasons  []string
	// open lists alternatives: each is a set of statements that would decide it.
	// nil = no statement can; a person has to look.
	open    [][]Statement
	negated bool // the clause stands under a not: it clears its term by holding
	joined  bool // open has been set
}

// maxEvidence bounds what one finding shows; a text can name a thing thousands of times.
const maxEvidence = 200

func (x *explanation) because(reason string, evidence ...Evidence) {
	x.reasons = append(x.reasons, reason)
	x.evidence = append(x.evidence, evidence...)
}

// cite adds evidence up to the bound.
func (x *explanation) cite(ev Evidence) {
	if len(x.evidence) <= maxEvidence { // one more than is shown, so that it shows that there was more
		x.evidence = append(x.evidence, ev)
	}
}

// join adds the explanation of a part. either: deciding one of the open parts is
// enough; otherwise all of them have to be decided.
func (x *explanation) join(part clause, e *evaluation, input int, either bool) {
	sub := explanation{negated: x.negated}
	part.explain(e, input, &sub)
	x.evidence = append(x.evidence, sub.evidence...)
	x.reasons = append(x.reasons, sub.reasons...)
	switch {
	case !x.joined:
		x.open = sub.open
	case either:
		x.open = append(x.open, sub.open...)
		x.open = x.open[:min(len(x.open), maxAlternatives)]
	default:
		x.open = both(x.open, sub.open)
	}
	x.joined = true
}

// Evidence is one name and value that a finding rests on, and where it stands.
type Evidence struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Pointer string `json:"pointer"`
	Span    *Span  `json:"span,omitempty"` // byte range in the text at Pointer
}

// Span is a byte range [Start, End) of a text field.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

type allOf []clause

func (c allOf) value(e *evaluation, input int) value {
	result, open := yesValue, no
	for _, part := range c { // no short circuit: every part is looked at
		switch v := part.value(e, input); {
		case v == no:
			result = no
		case !v.known():
			open = max(open, v)
		}
	}
	if result == yesValue && open != no {
		return open
	}
	return result
}

func (c allOf) explain(e *evaluation, input int, x *explanation) {
	whole := c.value(e, input)
	for _, part := range c {
		switch v := part.value(e, input); {
		case v == whole, !v.known() && !whole.known():
			x.join(part, e, input, !x.negated)
		case v == yesValue && !whole.known(): // what holds already is why the open part matters
			var held explanation
			part.explain(e, input, &held)
			x.evidence = append(x.evidence, held.evidence...)
		}
	}
}

type anyOf []clause

func (c anyOf) value(e *evaluation, input int) value {
	result := no
	for _, part := range c {
		result = max(result, part.value(e, input))
	}
	return result
}

func (c anyOf) explain(e *evaluation, input int, x *explanation) {
	whole := c.value(e, input)
	for _, part := range c {
		if v := part.value(e, input); v == whole || !v.known() && !whole.known() {
			x.join(part, e, input, x.negated)
		}
	}
}

type notOf struct{ part clause }

func (c notOf) value(e *evaluation, input int) value {
	switch v := c.part.value(e, input); v {
	case no:
		return yesValue
	case yesValue:
		return no
	default:
		return v
	}
}

func (c notOf) explain(e *evaluation, input int, x *explanation) {
	x.negated = !x.negated
	c.part.explain(e, input, x)
	x.negated = !x.negated
}

// tagClause: {tag: {minors: present}}.
type tagClause struct {
	tag  int
	want tagState // present or absent
}

func (c tagClause) value(e *evaluation, input int) value { return c.of(&e.tags[input+1]) }

// of is the value where this is known of the tags.
func (c tagClause) of(row *tagRow) value {
	bit := tagSet(1) << c.tag
	yes, other := row.better, row.worse
	if c.want == tags[c.tag].worse() {
		yes, other = other, yes
	}
	switch {
	case row.open(c.tag):
		return hinted // prose speaks for the worse state; it may not decide, nor be overlooked
	case yes&bit != 0:
		return yesValue
	case other&bit != 0:
		return no
	default:
		return silent
	}
}

// worseIs is the value that the clause has where the worse is stated.
func (c tagClause) worseIs() value {
	if c.want == tags[c.tag].worse() {
		return yesValue
	}
	return no
}

func (c tagClause) explain(e *evaluation, input int, x *explanation) {
	state, name := e.tags[input+1].state(c.tag), tags[c.tag].name
	ev := Evidence{Name: "tag." + name, Value: stateName(state)}
	if state != notAssessed {
		ev.Pointer = e.statedAt(c.tag, input).String()
	}
	open := func(at string) {
		x.open = [][]Statement{{{Pointer: at, Say: fmt.Sprintf("{tag: %s, state: present|absent, basis: structured}", name)}}}
	}
	switch v := c.value(e, input); {
	case v.known():
		x.because(name+" is stated as "+ev.Value, ev)
	case v == hinted: // no statement can decide it: the words would still stand there
		hint := stateName(tags[c.tag].worse())
		x.because(name+": prose or inference says "+hint+", which cannot decide it either way",
			Evidence{Name: ev.Name, Value: hint + " (hint)", Pointer: e.hintedAt(c.tag, input).String()})
	case state == notAssessed:
		x.because(name + " is not stated")
		open("/disclosures")
	default:
		x.because(name+" is stated as not known", ev)
		open(ev.Pointer)
	}
}

func stateName(s tagState) string {
	return [...]string{notAssessed: "not_assessed", absent: "absent", unknownState: "unknown", present: "present"}[s]
}

// factClause: {fact: license.restrictions, has: nc} or {…, any_of: [nc, nd]}.
type factClause struct {
	col   int // in factDefs
	want  []string
	codes codeSet // of want, if the fact has a closed list
}

func (c factClause) value(e *evaluation, input int) value {
	codes, stated, unknown := e.coded(c.col, input)
	return c.answer(e.facts, input, codes, stated, unknown)
}

// of is the value in a spec that was not coded.
func (c factClause) of(s *Spec, input int) value {
	f := facts{spec: s}
	found := f.get(c.col, input)
	return c.answer(&f, input, found.codes, found.stated, found.unknown)
}

func (c factClause) answer(f *facts, input int, codes codeSet, stated, unknown bool) value {
	switch {
	case codes&c.codes != 0, factDefs[c.col].codes == nil && slices.ContainsFunc(f.values(c.col, input), c.wants):
		return yesValue
	case !stated || unknown:
		return silent
	}
	return no
}

func (c factClause) wants(value string) bool { return slices.Contains(c.want, value) }

func (c factClause) explain(e *evaluation, input int, x *explanation) {
	values, def := e.values(c.col, input), &factDefs[c.col]
	ev := Evidence{Name: def.name, Value: cmp.Or(strings.Join(values, ", "), "none"), Pointer: e.pointer(c.col, input)}
	switch v := c.value(e, input); {
	case v == yesValue: // of a long list, only what matters here
		ev.Value = strings.Join(slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !c.wants(v) }), ", ")
		verb := " is "
		if def.list && len(values) > 1 {
			verb = " has "
		}
		x.because(def.name+verb+ev.Value, ev)
		return
	case v == no:
		x.because(def.name+" is "+ev.Value+", not "+strings.Join(c.want, " or "), ev)
		return
	case e.get(c.col, input).stated:
		ev.Value = "unknown"
		x.because(def.name+" is stated but leaves it open", ev)
	default:
		x.because(def.name + " is not stated")
	}
	x.open = [][]Statement{{{Pointer: ev.Pointer, Say: def.say}}}
}

// phraseClause: {phrases: [...]}. A hit in the free-text purpose, or one that
// needed a loose reading, is only a hint.
type phraseClause struct {
	texts  []string
	first  int // index of texts[0] in the matcher
	safety bool
}

func (c phraseClause) each(e *evaluation, input int, visit func(phraseHit, value)) {
	if len(e.hits) == 0 {
		return
	}
	for phrase := range len(c.texts) {
		for _, h := range e.hits[c.first+phrase] {
			if !e.reads(input, h.field) {
				continue
			}
			v := yesValue
			if c.safety || h.form.loose() || e.fields[h.field].at == purpose {
				v = hinted
			}
			visit(h, v)
		}
	}
}

func (c phraseClause) value(e *evaluation, input int) (best value) {
	c.each(e, input, func(_ phraseHit, v value) { best = max(best, v) })
	return best
}

func (c phraseClause) explain(e *evaluation, input int, x *explanation) {
	reasons := map[value]string{no: "no text names it", yesValue: "the text names it",
		hinted: "the text seems to name it; a person has to read it"}
	c.each(e, input, func(h phraseHit, _ value) {
		x.cite(Evidence{Name: "phrase", Value: c.texts[h.phrase-c.first], Pointer: e.fields[h.field].at.String(), Span: &Span{h.start, h.end}})
	})
	x.because(reasons[c.value(e, input)])
}

// obfuscationClause: {obfuscated: true}. Text that hides itself from matching.
type obfuscationClause struct{ safety bool }

func (c obfuscationClause) each(e *evaluation, input int, visit func(textObfuscation)) {
	for _, o := range e.obfuscations {
		if e.reads(input, o.field) {
			visit(o)
		}
	}
}

func (c obfuscationClause) value(e *evaluation, input int) (v value) {
	found := yesValue
	if c.safety {
		found = hinted
	}
	c.each(e, input, func(textObfuscation) { v = found })
	return v
}

func (c obfuscationClause) explain(e *evaluation, input int, x *explanation) {
	c.each(e, input, func(o textObfuscation) {
		x.cite(Evidence{Name: "obfuscation", Value: o.kind.String(), Pointer: e.fields[o.field].at.String(), Span: &Span{o.start, o.end}})
	})
	if c.value(e, input) == no {
		x.because("no text hides itself from matching")
	} else {
		x.because("text is written so that matching misses it")
	}
}
