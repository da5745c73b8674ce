package screening

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Explanation stands beside a decision, for whoever has to act on it: which
// statement is missing for which terms, and what would change each finding.
type Explanation struct {
	Missing []TermStatement `json:"missing"` // the decision's missing statements, with their terms
	Flips   []Flip          `json:"flips"`   // of every finding that is not upheld, in the order of the verdicts
}

// TermStatement is a missing statement with the terms that it decides, alone or
// together with the other missing ones.
type TermStatement struct {
	Statement
	Terms []string `json:"terms"` // tagged
}

// Flip is the smallest change to a spec by which one finding would be upheld. It
// says what would have to be true and be stated, not that it may be stated.
type Flip struct {
	Term    string   `json:"term"`    // tagged
	Changes []Change `json:"changes"` // all are needed, and none of them alone is needless; empty = see Why
	Why     string   `json:"why,omitzero"`
	Remedy  string   `json:"remedy,omitzero"` // of the term
}

// Ways to change a spec.
const (
	DoState   = "state"   // nothing, or that it is not known, is stated
	DoReplace = "replace" // what is stated would have to be otherwise
	DoRemove  = "remove"  // the text would have to go
)

// Change is one part of a flip.
type Change struct {
	Do      string   `json:"do"`
	Pointer string   `json:"pointer"`          // what is changed, or where it would stand
	Fact    string   `json:"fact"`             // tag.NAME, a fact of the table, phrase, obfuscation, or a key of the evidence
	From    string   `json:"from,omitzero"`    // as it is stated
	To      []string `json:"to,omitzero"`      // any one of these would do
	Without []string `json:"without,omitzero"` // of a list: none of these
	Span    *Span    `json:"span,omitzero"`    // of a text: the bytes that would have to go
	Say     string   `json:"say"`              // the change in words
}

// Explain decides again, as [Classify] does, and works out what would change each
// finding. Every flip has been tried: with it the term is upheld, with less it is
// not. It is meant for those who ask, and costs more than deciding.
func Explain(spec *ParsedSpec, v *Vocabulary, asOf Day) (*Decision, *Explanation, error) {
	d, err := Classify(spec, v, asOf)
	if err != nil {
		return nil, nil, err
	}
	x := &Explanation{Missing: d.missingTerms(v), Flips: []Flip{}}
	e, work := v.begin(spec), maxWork
	answers := e.answers
	for i := range v.packs {
		p := &v.packs[i]
		for j := range p.terms {
			if answers[j].result != resultUpheld {
				flip := newFlipper(e, &p.terms[j], &answers[j], &work).flip()
				flip.Term, flip.Remedy = tagID(p.Layer, p.terms[j].ID), p.terms[j].Remedy
				x.Flips = append(x.Flips, flip)
			}
		}
		answers = answers[len(p.terms):]
	}
	v.end(e)
	slices.SortStableFunc(x.Flips, func(a, b Flip) int { // the verdicts of the floor come first
		return cmp.Compare(strings.Index(a.Term, string(Ethics)), strings.Index(b.Term, string(Ethics)))
	})
	return d, x, nil
}

// missingTerms finds the terms of each missing statement: those that ask for
// statements and of which one open part is decided by statements that are all among the missing, it among them.
func (d *Decision) missingTerms(v *Vocabulary) []TermStatement {
	askers := d.askers(v)
	out := make([]TermStatement, len(d.Missing))
	at := make(map[Statement]int, len(d.Missing))
	all := make(map[Statement]bool, len(d.Missing))
	for i, s := range d.Missing {
		out[i] = TermStatement{s, []string{}}
		at[s], all[s] = i, true
	}
	each := func(layer Layer, findings []*Finding) {
		for _, f := range findings {
			tagged := tagID(layer, f.Term)
			if !askers[tagged] {
				continue
			}
			for _, part := range f.open {
				for _, way := range part {
					if missing(way, all) > 0 {
						continue
					}
					for _, s := range way {
						if o := &out[at[s]]; !slices.Contains(o.Terms, tagged) {
							o.Terms = append(o.Terms, tagged)
						}
					}
				}
			}
		}
	}
	for i := range d.Safety {
		each(Safety, d.Safety[i].Findings)
	}
	for i := range d.Ethics {
		each(Ethics, d.Ethics[i].Findings)
	}
	return out
}

// askers are the terms for whose sake statements are missing: those that stop or
// hedge while they are open, and if no policy matched all that could match. A term
// that is out of force or only observes asks for nothing.
func (d *Decision) askers(v *Vocabulary) map[string]bool {
	could := map[string]bool{}
	for i := range v.packs {
		for j := range v.packs[i].terms {
			if t := &v.packs[i].terms[j]; t.decides && d.NoPolicyMatched {
				could[tagID(v.packs[i].Layer, t.ID)] = true
			}
		}
	}
	askers := map[string]bool{}
	for _, e := range d.effects {
		askers[e.Term] = e.Effect >= Hedge || could[e.Term]
	}
	return askers
}

// A flip is searched among ways. A way is a set of needs, each of which allows a
// variable (a fact, a tag at one level, a text) some of the options that it has;
// option 0 is as it is now. The clauses give their ways by the same three-valued
// rules by which they are evaluated, and what comes out is evaluated again.

// need is that a variable takes one of the options in the mask.
type need struct {
	variable int
	mask     uint64
}

func (n need) change() bool { return n.mask&1 == 0 }

// way is a set of needs in the order of their variables.
type way []need

// and joins two ways; it fails if a variable cannot meet both.
func (w way) and(o way) (out way, ok bool) {
	out = make(way, 0, len(w)+len(o))
	for len(w) > 0 && len(o) > 0 {
		switch a, b := w[0], o[0]; {
		case a.variable < b.variable:
			out, w = append(out, a), w[1:]
		case a.variable > b.variable:
			out, o = append(out, b), o[1:]
		case a.mask&b.mask == 0:
			return nil, false
		default:
			out, w, o = append(out, need{a.variable, a.mask & b.mask}), w[1:], o[1:]
		}
	}
	return append(append(out, w...), o...), true
}

// implies reports whether whatever meets w meets o too.
func (w way) implies(o way) bool {
	for _, n := range o {
		for len(w) > 0 && w[0].variable < n.variable {
			w = w[1:]
		}
		if len(w) == 0 || w[0].variable > n.variable || w[0].mask&^n.mask != 0 {
			return false
		}
	}
	return true
}

type ways []way

// asItIs is the one way that needs nothing.
var asItIs = ways{nil}

// At every step only the cheapest ways are kept; of equals those that state what
// is open rather than replace what is stated. Over many inputs they are long, so
// fewer are, and a change of the spec goes before one of an input.
const (
	maxWays     = 64
	maxWaysMany = 4
	manyInputs  = 8
)

func (x *flipper) or(a, b ways) ways { return x.cut(slices.Concat(a, b)) }

func (x *flipper) and(a, b ways) (out ways) {
	for _, p := range a {
		for _, q := range b {
			if *x.work -= len(p) + len(q) + 16; *x.work < 0 {
				return nil
			}
			if both, ok := p.and(q); ok {
				out = append(out, both)
			}
		}
	}
	return x.cut(out)
}

// cut drops ways that ask more than another, and the dearest beyond the bound.
func (x *flipper) cut(w ways) (out ways) {
	if len(w) < 2 {
		return w
	}
	most, many := maxWays, len(x.e.spec.Inputs) > manyInputs
	if many {
		most = maxWaysMany
	}
	type priced struct {
		way
		changes, replaced, inputs int
	}
	prices := make([]priced, len(w))
	for i, one := range w {
		prices[i].way = one
		for _, n := range one {
			if n.change() {
				prices[i].changes++
				if x.variables[n.variable].stated {
					prices[i].replaced++
				}
				if many && x.variables[n.variable].input != wholeSpec {
					prices[i].inputs++
				}
			}
		}
	}
	slices.SortStableFunc(prices, func(a, b priced) int { return cmp.Or(a.changes-b.changes, a.replaced-b.replaced, a.inputs-b.inputs) })
	for _, p := range prices {
		if len(out) == most {
			break
		}
		if !slices.ContainsFunc(out, func(o way) bool { return p.implies(o) }) {
			out = append(out, p.way)
		}
	}
	return out
}

// flipper works out the flip of one term on one spec.
type flipper struct {
	e         *evaluation
	t         *compiledTerm
	answer    *answer
	variables []variable
	index     map[variableKey]int
	texts     []textPart  // what the term reads in texts; parts that overlap are one
	trial     *evaluation // of a changed copy of the spec
	scratch   *Spec       // a copy of the spec in which one thing is changed at a time
	asked     map[int][]string
	budget    int  // of evaluations while searching
	work      *int // that is left for all flips
}

// searchBudget bounds what a condition that can only be tried out may cost: an
// evaluation counts for one, and for more with many inputs.
const searchBudget = 3_000

// maxWork bounds what all flips of a spec cost together: some tenths of a second,
// which only hundreds of inputs need.
const maxWork = 6_000_000

func newFlipper(e *evaluation, t *compiledTerm, a *answer, work *int) *flipper {
	return &flipper{e: e, t: t, answer: a, index: map[variableKey]int{}, trial: &evaluation{facts: new(facts)},
		asked: map[int][]string{}, budget: searchBudget, work: work}
}

func (x *flipper) flip() Flip {
	f := Flip{Changes: []Change{}}
	if a := x.answer; a.detail > 0 {
		switch d := &x.e.details[a.detail-1]; {
		case d.noDataset:
			f.Changes = []Change{{Do: DoState, Pointer: "/inputs", Fact: "inputs", Say: "name the data sets, and what is known of them"}}
			return f
		case d.given == nil || d.given.Cause == CauseError:
			f.Why = "the check failed; what makes it fail has to be found first"
			return f
		}
	}
	state, cause := x.answer.result.state()
	switch {
	case x.t.Structural != "":
		f.Why = "it cannot be seen in a spec"
		return f
	case cause == CauseNoPredicate:
		f.Why = "nothing checks it"
		return f
	case x.t.over != 0 && !x.e.hasDataset:
		f.Why = "while no input is a data set it is never upheld"
		return f
	}
	x.asks(x.t.ViolatedIf)
	x.reads(x.t.clause)
	for _, all := range []bool{false, true} {
		for _, w := range x.termWays(all) {
			if chosen := x.smallest(w); chosen != nil {
				f.Changes = x.changes(chosen, w)
				return f
			}
		}
	}
	if *x.work < 0 {
		f.Why = "the spec is too large to work it out"
		return f
	}
	f.Why = "no statement was found that decides it; a person has to look"
	if state == Violated {
		f.Why = "no statement was found that changes it; another input would"
	}
	return f
}

// asks notes the values that the term asks of each fact.
func (x *flipper) asks(n *clauseNode) {
	n.mentions(func(n *clauseNode) bool {
		if n.Fact == "" {
			return false
		}
		if col, ok := resolveFact(n.Fact, x.t.over == 0); ok {
			for _, w := range append(slices.Clone(n.AnyOf), n.Has) {
				if w != "" && !slices.Contains(x.asked[col], w) {
					x.asked[col] = append(x.asked[col], w)
				}
			}
		}
		return false
	})
}

// termWays are the ways to have the term upheld. Inputs at which it is upheld
// are left aside at first: few changes reach them.
func (x *flipper) termWays(all bool) ways {
	switch {
	case x.t.clause == nil:
		return x.tried(x.contextVariables(), func(e *evaluation) bool { return x.t.answer(e).result == resultUpheld })
	case x.t.over == 0:
		return x.ways(x.t.clause, wholeSpec, no)
	}
	out := asItIs
	for i := range x.e.inputs {
		if (x.t.over|x.t.ifStated)&x.e.inputs[i].kind != 0 && (all || x.t.at(x.e, i) != no) {
			out = x.and(out, x.ways(x.t.clause, i, no))
		}
	}
	return out
}

// ways are the ways in which a clause comes to want, which is no or yesValue.
func (x *flipper) ways(c clause, input int, want value) ways {
	switch c := c.(type) {
	case allOf:
		return x.parts(c, input, want, want == no)
	case anyOf:
		return x.parts(c, input, want, want == yesValue)
	case notOf:
		return x.ways(c.part, input, yesValue-want)
	case tagClause:
		return x.tagWays(c, input, want)
	case factClause:
		return x.factWays(c, input, want)
	case phraseClause:
		if want == yesValue {
			break
		}
		var w way
		c.each(x.e, input, func(h phraseHit, _ value) { w = x.without(w, h.field, h.start) })
		return ways{w}
	case obfuscationClause:
		if want == yesValue {
			break
		}
		var w way
		c.each(x.e, input, func(o textObfuscation) { w = x.without(w, o.field, o.start) })
		return ways{w}
	case examplesClause:
		if want == no {
			return ways{{{x.variable(variableKey{kind: theExamples}, func() variable { return variable{options: []option{{}, {}}} }), 1 << 1}}}
		}
	case *celClause:
		return x.tried(x.celVariables(c, input), func(e *evaluation) bool {
			e.failure = ""
			return c.value(e, input) == want && e.failure == ""
		})
	}
	if c.value(x.e, input) == want {
		return asItIs
	}
	return nil
}

// parts joins the ways of the parts: one of them is enough, or all are needed.
func (x *flipper) parts(parts []clause, input int, want value, either bool) (out ways) {
	if !either {
		out = asItIs
	}
	for _, part := range parts {
		if w := x.ways(part, input, want); either {
			out = x.or(out, w)
		} else {
			out = x.and(out, w)
		}
	}
	return out
}

// factWays tries every option of the fact.
func (x *flipper) factWays(c factClause, input int, want value) ways {
	v := x.factVariable(c.col, input)
	var mask uint64
	for i := range x.variables[v].options {
		if got, ok := x.with(v, i, c); ok && got == want {
			mask |= 1 << i
		}
	}
	if mask == 0 {
		return nil
	}
	return ways{{{v, mask}}}
}

// tagWays: the state at an input comes from its own statements and the spec's;
// the good answer about the spec needs that of every input, the bad one any.
func (x *flipper) tagWays(c tagClause, input int, want value) (out ways) {
	first, last := input, input
	if input == wholeSpec {
		first, last = 0, len(x.e.spec.Inputs)-1
	}
	anywhere := input == wholeSpec && want == c.worseIs() // one place is enough
	for _, spec := range x.levels(c.tag, wholeSpec) {
		if last < first || anywhere && c.of(&spec.row) == want {
			if c.of(&spec.row) == want {
				out = x.or(out, ways{spec.needs})
			}
			continue
		}
		every, any := ways{spec.needs}, ways(nil)
		for in := first; in <= last; in++ {
			var here ways
			for _, own := range x.levels(c.tag, in) {
				if row := own.row.with(&spec.row); c.of(&row) == want {
					here = append(here, own.needs)
				}
			}
			every = x.and(every, here)
			if anywhere {
				any = x.or(any, x.and(ways{spec.needs}, here))
			}
		}
		if anywhere {
			every = any
		}
		out = x.or(out, every)
	}
	return out
}

// fewChoices is how many choices of options are all tried.
const fewChoices = 500

// tried searches by trying: all there is if that is little; else what one
// variable does alone, then two, then three, with the others as they are.
func (x *flipper) tried(variables []int, holds func(*evaluation) bool) (out ways) {
	slices.Sort(variables)
	choices := 1
	for _, v := range variables {
		choices = min(choices*len(x.variables[v].options), fewChoices+1)
	}
	switch {
	case len(variables) == 0:
		if x.try(nil, holds) {
			return asItIs
		}
		return nil
	case choices <= fewChoices:
		x.every(variables, nil, func(w way, last int) {
			if mask := x.options(w, last, 0, holds); mask != 0 {
				w = append(slices.Clone(w), need{last, mask})
				slices.SortFunc(w, func(a, b need) int { return cmp.Compare(a.variable, b.variable) })
				out = append(out, w)
			}
		})
		return x.cut(out)
	}
	if x.try(nil, holds) {
		var w way
		for _, v := range variables {
			w = append(w, need{v, 1})
		}
		out = append(out, w)
	}
	for size := 1; size <= 3 && len(out) == 0; size++ {
		x.combine(variables, size, nil, func(fixed way, last int) {
			mask := x.options(fixed, last, 1, holds)
			if mask != 0 {
				out = append(out, append(slices.Clone(fixed), need{last, mask}))
			}
		})
	}
	for i, w := range out { // the rest has to stay as it was when this was tried
		for _, v := range variables {
			if !slices.ContainsFunc(w, func(n need) bool { return n.variable == v }) {
				out[i] = append(out[i], need{v, 1})
			}
		}
		slices.SortFunc(out[i], func(a, b need) int { return cmp.Compare(a.variable, b.variable) })
	}
	return x.cut(out)
}

// options tries every option of a variable beside what is fixed, from the first given.
func (x *flipper) options(fixed way, variable, first int, holds func(*evaluation) bool) (mask uint64) {
	for i := first; i < len(x.variables[variable].options); i++ {
		if x.try(append(slices.Clone(fixed), need{variable, 1 << i}), holds) {
			mask |= 1 << i
		}
	}
	return mask
}

// every visits each choice of one option for all variables but that with the most.
func (x *flipper) every(variables []int, fixed way, visit func(way, int)) {
	if len(fixed) == 0 {
		slices.SortStableFunc(variables, func(a, b int) int { return cmp.Compare(len(x.variables[a].options), len(x.variables[b].options)) })
	}
	if len(fixed) == len(variables)-1 {
		visit(fixed, variables[len(fixed)])
		return
	}
	v := variables[len(fixed)]
	for i := range x.variables[v].options { // as it is comes last, as in levels
		o := (i + 1) % len(x.variables[v].options)
		x.every(variables, append(slices.Clone(fixed), need{v, 1 << o}), visit)
	}
}

// combine visits every choice of size variables: all but the last with one option each.
func (x *flipper) combine(variables []int, size int, fixed way, visit func(way, int)) {
	for i, v := range variables {
		if x.budget < 0 {
			return
		}
		if size == 1 {
			visit(fixed, v)
			continue
		}
		for o := 1; o < len(x.variables[v].options); o++ {
			x.combine(variables[i+1:], size-1, append(slices.Clone(fixed), need{v, 1 << o}), visit)
		}
	}
}

func (x *flipper) try(w way, holds func(*evaluation) bool) (ok bool) {
	x.budget -= 1 + len(x.e.spec.Inputs)/2
	*x.work -= 400 * (1 + len(x.e.spec.Inputs))
	if x.budget < 0 || *x.work < 0 {
		return false
	}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return x.change(w) && holds(x.trial)
}

// smallest drops what a way does not need after all; nil if it does not uphold the term.
func (x *flipper) smallest(w way) way {
	upheld := func(e *evaluation) bool {
		e.details = e.details[:0]
		return x.t.answer(e).result == resultUpheld
	}
	chosen := make(way, 0, len(w))
	for _, n := range w {
		if n.change() {
			chosen = append(chosen, need{n.variable, 1 << bits.TrailingZeros64(n.mask)})
		}
	}
	x.budget = max(x.budget, maxInputs) // the proof is always made
	if len(chosen) == 0 || !x.try(chosen, upheld) {
		return nil
	}
	for i := 0; i < len(chosen); {
		if less := slices.Delete(slices.Clone(chosen), i, i+1); len(less) > 0 && x.try(less, upheld) {
			chosen = less
		} else {
			i++
		}
	}
	return chosen
}

// change sets the trial to the spec with the needs met, each by its first option.
func (x *flipper) change(w way) bool {
	spec := copySpec(x.e.spec)
	var gone []textPart
	for _, n := range w {
		v := &x.variables[n.variable]
		o := bits.TrailingZeros64(n.mask)
		if o == 0 {
			continue
		}
		switch v.kind {
		case aText:
			gone = append(gone, x.texts[v.index])
		default:
			if !x.set(spec, v, o) {
				return false
			}
		}
	}
	t := x.trial
	coded := spec.code()
	t.reset(spec, &coded, nil)
	t.fields, t.failure = x.e.fields, ""
	t.hits, t.obfuscations = x.e.hits, x.e.obfuscations
	if len(gone) > 0 {
		covered := func(field, start int) bool {
			return slices.ContainsFunc(gone, func(p textPart) bool { return p.covers(field, start) })
		}
		t.hits = make(map[int][]phraseHit, len(x.e.hits))
		for phrase, hits := range x.e.hits {
			t.hits[phrase] = slices.DeleteFunc(slices.Clone(hits), func(h phraseHit) bool { return covered(h.field, h.start) })
		}
		t.obfuscations = slices.DeleteFunc(slices.Clone(x.e.obfuscations), func(o textObfuscation) bool { return covered(o.field, o.start) })
	}
	return true
}

// changes puts the chosen options in words, with all that the way allows in place of each.
func (x *flipper) changes(chosen, w way) (out []Change) {
	for _, n := range chosen {
		i, _ := slices.BinarySearchFunc(w, n.variable, func(x need, v int) int { return cmp.Compare(x.variable, v) })
		out = append(out, x.say(&x.variables[n.variable], n.mask, w[i].mask)...)
	}
	return out
}

func orList(values []string) string {
	const most = 8
	if len(values) > most {
		return strings.Join(values[:most], ", ") + fmt.Sprintf(" or %d more", len(values)-most)
	}
	if len(values) < 2 {
		return strings.Join(values, "")
	}
	return strings.Join(values[:len(values)-1], ", ") + " or " + values[len(values)-1]
}
