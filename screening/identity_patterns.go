package screening

import (
	"slices"
	"strconv"
	"strings"
)

type elementKind uint8

const (
	elemWord      elementKind = iota // count words at most, exactly one unless optional
	elemGap                          // up to count words but these
	elemNot                          // none of the next count words
	elemEnd                          // a noun phrase ends
	elemStop                         // a clause ends
	elemAddressed                    // the next word is said to the reader
	elemMain                         // the next word is in a main clause
	elemBegin                        // a clause begins
)

// An element of a pattern. What it is about is any word, a word of some classes, or one of some words.
type element struct {
	kind     elementKind
	optional bool
	count    uint8 // how many words at most
	any      bool
	classes  wordClass
	words    []uint16
}

func (e *element) matches(t idToken) bool {
	return t.classes&e.classes != 0 || e.any && t.classes&clsStop == 0 || slices.Contains(e.words, t.word)
}

// takes is matches for the words of a gap as well.
func (e *element) takes(t idToken) bool {
	if e.kind == elemGap {
		return t.classes&clsStop == 0 && !e.matches(t)
	}
	return e.matches(t)
}

// patternSet is the compiled form of hardenedRules.
type patternSet struct {
	lex    *lexicon
	all    []pattern
	byWord [][]uint16 // patterns by the number of a word they can begin with
	reach  int        // words the longest pattern can take, and look ahead to
}

type pattern struct {
	elements []element
	rule     uint8
}

func compileHardened() *patternSet {
	var literals []string
	parse(func(word string) uint16 { literals = append(literals, word); return 0 })
	p := &patternSet{lex: newLexicon(literals)}
	p.all = parse(p.lex.id)
	p.byWord = make([][]uint16, len(p.lex.classes))
	for n := range p.all {
		reach := 0
		for i := range p.all[n].elements {
			reach += int(p.all[n].elements[i].count)
		}
		p.reach = max(p.reach, reach)
		first := p.all[n].elements[0]
		if first.kind >= elemAddressed {
			first = p.all[n].elements[1]
		}
		for word := 1; word < len(p.byWord); word++ {
			if first.matches(idToken{word: uint16(word), classes: p.lex.classes[word]}) {
				p.byWord[word] = append(p.byWord[word], uint16(n))
			}
		}
	}
	return p
}

// parse reads hardenedRules; number gives the numbers of words.
func parse(number func(word string) uint16) []pattern {
	var all []pattern
	for rule := range hardenedRules {
		for _, text := range hardenedRules[rule].patterns {
			p := pattern{rule: uint8(rule)}
			for _, field := range strings.Fields(text) {
				p.elements = appendElements(p.elements, field, number)
			}
			all = append(all, p)
		}
	}
	return all
}

func appendElements(to []element, field string, number func(word string) uint16) []element {
	e := element{kind: elemWord, count: 1}
	switch {
	case field == "END":
		return append(to, element{kind: elemEnd, count: 1})
	case field == "STOP":
		return append(to, element{kind: elemStop, count: 1})
	case strings.HasPrefix(field, ".."):
		e.kind, e.optional, e.count, field = elemGap, true, atoi(field[2:3]), strings.TrimPrefix(field[3:], "-")
		if field == "" {
			return append(to, e)
		}
	case field[0] == '^':
		to, field = append(to, element{kind: elemAddressed}), field[1:]
	case field[0] == '<':
		to, field = append(to, element{kind: elemMain}), field[1:]
	case field[0] == '[':
		to, field = append(to, element{kind: elemBegin}), field[1:]
	case field[0] == '!':
		e.kind, field = elemNot, field[1:]
		if field[0] <= '9' {
			e.count, field = atoi(field[:1]), field[1:]
		}
	}
	switch field[len(field)-1] {
	case '?':
		e.optional, field = true, field[:len(field)-1]
	case '*':
		e.optional, e.count, field = true, 4, field[:len(field)-1]
	}
	for _, name := range strings.Split(field, "|") {
		switch class, known := wordClassNames[name]; {
		case name == "ANY":
			e.any = true
		case known:
			e.classes |= class
		case name == strings.ToLower(name):
			e.words = append(e.words, number(name))
		default:
			panic("screening: pattern: no class " + name)
		}
	}
	return append(to, e)
}

func atoi(s string) uint8 {
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil {
		panic("screening: pattern: " + err.Error())
	}
	return uint8(n)
}

// match reports whether the elements fit the tokens from i on. Patterns are short and their repetitions bounded, so
// trying every way costs no more than a fixed number of steps.
func match(elements []element, toks []idToken, i int) bool {
	for n := range elements {
		e := &elements[n]
		switch e.kind {
		case elemAddressed:
			if i >= len(toks) || !addressed(toks, i) {
				return false
			}
		case elemMain:
			if i >= len(toks) || !inMainClause(toks, i) {
				return false
			}
		case elemBegin:
			if i >= len(toks) || !beginsClause(toks, i) {
				return false
			}
		case elemEnd, elemStop:
			ends := clsStop | clsFunc
			if e.kind == elemStop {
				ends = clsStop
			}
			if i < len(toks) && toks[i].classes&ends == 0 && !toks[i].clause {
				return false
			}
		case elemNot:
			for k := i; k < min(i+int(e.count), len(toks)) && toks[k].classes&clsStop == 0; k++ {
				if e.matches(toks[k]) {
					return false
				}
			}
		default:
			if !e.optional {
				if i >= len(toks) || !e.matches(toks[i]) {
					return false
				}
				i++
				continue
			}
			for k := 0; ; k++ {
				if match(elements[n+1:], toks, i+k) {
					return true
				}
				if k == int(e.count) || i+k >= len(toks) || !e.takes(toks[i+k]) {
					return false
				}
			}
		}
	}
	return true
}

const (
	lookBack = 12 // words before one that tell whether it is addressed
	subject  = 5  // words between a subject and its verb
)

// addressed reports whether the verb toks[at] is said to the reader: an order ("drop it", "please drop it", "stop
// holding on and drop it"), or a statement about the reader or the assistant ("you dropped it", "I want you to drop
// it", "the assistant will drop it"). An order not to is none. Third persons ("the program drops it") and infinitives
// of purpose ("used to drop it") are not said to anybody.
func addressed(toks []idToken, at int) bool {
	form := toks[at].classes & (clsBase | clsIng | clsFin)
	order := form&(clsBase|clsIng) != 0
	infinitive, finite := false, false
	for i, steps := at, 0; ; i, steps = i-1, steps+1 {
		if beginsClause(toks, i) {
			return order && !infinitive && !finite
		}
		before := toks[i-1]
		switch {
		case steps > subject, before.classes&clsNeg != 0:
			return false
		case before.classes&clsYou != 0:
			return i < 2 || toks[i-1].clause || toks[i-2].classes&clsSub == 0 || toks[i-2].classes&clsConj != 0
		case before.classes&clsBot != 0:
			return true
		case before.classes&clsStart != 0 && form&clsIng != 0:
			return true
		case before.classes&clsUs != 0, before.classes&clsTime != 0 && infinitive:
			return true
		case before.classes&clsTo != 0:
			infinitive = true
		case before.classes&clsAdv != 0 || infinitive && before.classes&clsWish != 0:
		case before.classes&clsAux != 0:
			finite = true // "will drop it" is no order, whoever will
		case before.classes&clsConj != 0:
			return order && !infinitive && afterOrder(toks, i-1)
		case before.classes&clsOn != 0:
			// "from now on": what it introduces is checked by the pattern.
			return order && i > 1 && toks[i-2].classes&clsAdv != 0
		default:
			return false
		}
	}
}

func beginsClause(toks []idToken, i int) bool {
	return i == 0 || toks[i].clause || toks[i-1].classes&clsStop != 0
}

// afterOrder reports whether the sentence spoke to the reader before at, or began with an order.
func afterOrder(toks []idToken, at int) bool {
	for i := at - 1; i >= 0 && i > at-lookBack; i-- {
		t := toks[i]
		if t.classes&clsStop != 0 {
			return false
		}
		if t.classes&(clsYou|clsYour|clsBot) != 0 {
			return true
		}
		if beginsClause(toks, i) && t.classes&clsBase != 0 {
			return true
		}
	}
	return false
}

// inMainClause reports whether the pronoun toks[at] begins no subordinate clause.
func inMainClause(toks []idToken, at int) bool {
	for i := at; i > 0 && i > at-3; i-- {
		if toks[i].clause {
			return true
		}
		before := toks[i-1].classes
		if before&clsSub != 0 {
			return i > 1 && toks[i-2].classes&clsDecree != 0
		}
		if before&(clsAdv|clsConj) == 0 {
			return true
		}
	}
	return true
}
