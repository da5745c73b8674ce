package screening

import "strconv"

// tagCell is what is known of one tag at one place.
type tagCell struct {
	state   tagState
	pointer tagPointer // the statement that decided state
	// hint: prose or inference speaks for the worse state. It may raise an
	// escalation and never clears anything.
	hint   bool
	hintAt tagPointer
}

// tagPointer names a disclosure: input is wholeSpec for the spec's own list.
type tagPointer struct{ input, index int }

func (p tagPointer) String() string {
	if p.input == wholeSpec {
		return "/disclosures/" + strconv.Itoa(p.index)
	}
	return inputPointer(p.input) + "/disclosures/" + strconv.Itoa(p.index)
}

// severity orders states from the harmless end: for a hazard present is worst,
// for a protective tag absent is. Nothing said is below everything.
func (t *tag) severity(s tagState) int {
	switch {
	case s == notAssessed:
		return 0
	case s == unknownState:
		return 2
	case (s == present) != t.protective:
		return 3
	}
	return 1
}

// worse is the state nobody wants: present for a hazard, absent for a protective tag.
func (t *tag) worse() tagState {
	if t.protective {
		return absent
	}
	return present
}

// tagLevel folds the statements of one level: a structured present or absent
// beats unknown, and of two the worse holds.
func tagLevel(statements []Disclosure, input int, cells *[numTags]tagCell) {
	for i := range statements {
		d := &statements[i]
		ti, ok := tagIndex[d.Tag]
		if !ok {
			continue // check refuses it before anything is classified
		}
		t, c, s := &tags[ti], &cells[ti], tagStateNames[d.State]
		if d.Basis != "structured" {
			if s == t.worse() && !c.hint {
				c.hint, c.hintAt = true, tagPointer{input, i}
			}
			continue
		}
		if levelRank(t, s) > levelRank(t, c.state) {
			c.state, c.pointer = s, tagPointer{input, i}
		}
	}
}

// levelRank: nothing < unknown < the better answer < the worse answer.
func levelRank(t *tag, s tagState) int {
	switch t.severity(s) {
	case 1:
		return 2
	case 2:
		return 1
	default:
		return t.severity(s)
	}
}

// tagTable works out all tags at all places; across levels the worse holds.
func tagTable(s *Spec) [][numTags]tagCell {
	table := make([][numTags]tagCell, len(s.Inputs)+1)
	own, silent := &table[0], [numTags]bool{}
	tagLevel(s.Disclosures, wholeSpec, own)
	whole := *own
	for i := range s.Inputs {
		row := &table[i+1]
		tagLevel(s.Inputs[i].Disclosures, i, row)
		for ti := range tags {
			row[ti] = worseCell(&tags[ti], row[ti], own[ti])
			whole[ti] = worseCell(&tags[ti], whole[ti], row[ti])
			silent[ti] = silent[ti] || row[ti].state == notAssessed
		}
	}
	for ti := range tags {
		// The good answer of some inputs does not speak for those that say nothing.
		if c := &whole[ti]; silent[ti] && tags[ti].severity(c.state) == 1 {
			c.state, c.pointer = notAssessed, tagPointer{}
		}
	}
	table[0] = whole
	return table
}

func worseCell(t *tag, a, b tagCell) tagCell {
	if t.severity(b.state) > t.severity(a.state) {
		a.state, a.pointer = b.state, b.pointer
	}
	if b.hint && !a.hint {
		a.hint, a.hintAt = true, b.hintAt
	}
	return a
}
