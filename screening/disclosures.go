package screening

import (
	"strconv"
	"strings"
)

// tagSet has a bit for each tag.
type tagSet uint32

// tagRow is what is known of all tags at one place. A tag stands in one of the first three at most.
type tagRow struct {
	worse, unknown, better tagSet
	// hint: prose or inference speaks for the worse state. It may raise an escalation and never clears anything.
	hint tagSet
}

// isPart reports whether a scope names less than the whole.
func isPart(scope string) bool {
	scope = strings.TrimSpace(scope)
	return !IsBlank(scope) && !strings.EqualFold(scope, "whole") && !strings.EqualFold(scope, "all")
}

func (r *tagRow) known() tagSet { return r.worse | r.unknown | r.better }

// state is what is known of one tag.
func (r *tagRow) state(ti int) tagState {
	switch bit := tagSet(1) << ti; {
	case r.worse&bit != 0:
		return tags[ti].worse()
	case r.unknown&bit != 0:
		return unknownState
	case r.better&bit != 0:
		return tags[ti].better()
	}
	return notAssessed
}

// open: a hint speaks against what is stated, so nothing is settled.
func (r *tagRow) open(ti int) bool { return r.hint&^r.worse&(1<<ti) != 0 }

// worse is the state nobody wants: present for a hazard, absent for a protective tag.
func (t *tag) worse() tagState {
	if t.protective {
		return absent
	}
	return present
}

func (t *tag) better() tagState {
	if t.protective {
		return present
	}
	return absent
}

// tagLevel folds the statements of one level: a structured present or absent
// beats unknown, and of two the worse holds.
func tagLevel(statements []Disclosure) (r tagRow) {
	for i := range statements {
		d := &statements[i]
		ti, ok := tagIndex[d.Tag]
		if !ok {
			continue // check refuses it before anything is classified
		}
		bit, s := tagSet(1)<<ti, stateOf(d.State)
		switch worse := tags[ti].worse(); {
		case d.Basis != "structured":
			if s == worse {
				r.hint |= bit
			}
		case s == worse:
			r.worse |= bit
		case s == unknownState, s != notAssessed && isPart(d.Scope): // what clears a part leaves the rest open
			r.unknown |= bit
		case s != notAssessed:
			r.better |= bit
		}
	}
	r.better &^= r.worse
	r.unknown &^= r.worse | r.better
	return r
}

// with joins what is known at two levels: the worse holds, and unknown is worse than the good answer.
func (r tagRow) with(o *tagRow) tagRow {
	r.hint |= o.hint
	r.worse |= o.worse
	r.unknown = (r.unknown | o.unknown) &^ r.worse
	r.better = (r.better | o.better) &^ (r.worse | r.unknown)
	return r
}

// tagTable works out all tags at all places: row 0 is the spec as a whole, row i+1 the input i.
func tagTable(s *Spec) []tagRow {
	own := tagLevel(s.Disclosures)
	whole, said := own, ^tagSet(0)
	table := append(make([]tagRow, 0, len(s.Inputs)+1), whole)
	for i := range s.Inputs {
		row := tagLevel(s.Inputs[i].Disclosures)
		row = row.with(&own)
		whole = whole.with(&row)
		said &= row.known()
		table = append(table, row)
	}
	// The good answer of some inputs does not speak for those that say nothing.
	whole.better &= said
	table[0] = whole
	return table
}

// tagPointer names a disclosure: input is wholeSpec for the spec's own list.
type tagPointer struct{ input, index int }

func (p tagPointer) String() string {
	if p.input == wholeSpec {
		return "/disclosures/" + strconv.Itoa(p.index)
	}
	return inputPointer(p.input) + "/disclosures/" + strconv.Itoa(p.index)
}

// statedAt finds the statement that decided the state of a tag at a place: the
// first that says so at the first level where it holds.
func (f *facts) statedAt(ti, input int) (p tagPointer) {
	want := f.tags[input+1].state(ti)
	f.eachLevel(input, func(level int, statements []Disclosure) bool {
		if row := tagLevel(statements); row.state(ti) != want {
			return false
		}
		for i := range statements {
			if d := &statements[i]; d.Tag == tags[ti].name && d.Basis == "structured" && stateOf(d.State) == want {
				p = tagPointer{level, i}
				return true
			}
		}
		return false
	})
	return p
}

// hintedAt finds the first hint for the worse state of a tag.
func (f *facts) hintedAt(ti, input int) (p tagPointer) {
	f.eachLevel(input, func(level int, statements []Disclosure) bool {
		for i := range statements {
			if d := &statements[i]; d.Tag == tags[ti].name && d.Basis != "structured" && stateOf(d.State) == tags[ti].worse() {
				p = tagPointer{level, i}
				return true
			}
		}
		return false
	})
	return p
}

// eachLevel goes through the lists of statements that speak for a place until
// found: an input's own come before the spec's, and those before all inputs'.
func (f *facts) eachLevel(input int, found func(level int, statements []Disclosure) bool) {
	if input != wholeSpec && found(input, f.spec.Inputs[input].Disclosures) || found(wholeSpec, f.spec.Disclosures) || input != wholeSpec {
		return
	}
	for i := range f.spec.Inputs {
		if found(i, f.spec.Inputs[i].Disclosures) {
			return
		}
	}
}
