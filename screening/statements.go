package screening

import (
	"cmp"
	"slices"
	"strings"
)

// Statement is something the submitter can add to a spec to decide an open term.
type Statement struct {
	Pointer string `json:"pointer"` // where to put it
	Say     string `json:"say"`     // what to put there, as YAML
}

// maxAlternatives bounds the ways to decide one part.
const maxAlternatives = 16

// both joins two sets of alternatives when both have to be decided.
func both(a, b [][]Statement) [][]Statement {
	var out [][]Statement
	for _, x := range a {
		for _, y := range b {
			if len(out) == maxAlternatives {
				return out
			}
			out = append(out, merge(x, y))
		}
	}
	return out
}

// merge gives the statements of a, then those of b that a has not.
func merge(a, b []Statement) []Statement {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// shortest picks, for all undecided parts together, the shortest list of
// statements that decides every one of them. A part is a list of alternatives;
// one without any is left out, as no statement decides it. Parts that share no
// statement are searched apart, and each search has a budget: what it has found
// by then is short, though perhaps not the shortest.
func shortest(parts [][][]Statement) []Statement {
	chosen := map[Statement]bool{}
	var choices [][][]Statement
	for _, alternatives := range parts {
		switch len(alternatives) {
		case 0:
		case 1:
			for _, s := range alternatives[0] {
				chosen[s] = true
			}
		default:
			choices = append(choices, alternatives)
		}
	}
	choices = slices.DeleteFunc(choices, func(alternatives [][]Statement) bool {
		return slices.ContainsFunc(alternatives, func(set []Statement) bool { return missing(set, chosen) == 0 })
	})
	for _, group := range related(choices) {
		search := statementSearch{parts: group, chosen: chosen, budget: 2_000}
		search.from(0, nil)
		for _, s := range search.best {
			chosen[s] = true
		}
	}
	out := make([]Statement, 0, len(chosen))
	for s := range chosen {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Statement) int {
		return cmp.Or(comparePointers(a.Pointer, b.Pointer), strings.Compare(a.Say, b.Say))
	})
	return out
}

func missing(set []Statement, chosen map[Statement]bool) (n int) {
	for _, s := range set {
		if !chosen[s] {
			n++
		}
	}
	return n
}

// related groups the parts that share statements, directly or through others.
func related(parts [][][]Statement) (groups [][][][]Statement) {
	groupOf := map[Statement]int{}
	for _, part := range parts {
		groups = append(groups, [][][]Statement{part})
		mine := len(groups) - 1
		for _, set := range part {
			for _, s := range set {
				other, met := groupOf[s]
				groupOf[s] = mine
				if !met || other == mine {
					continue
				}
				groups[mine] = append(groups[mine], groups[other]...)
				groups[other] = nil
				for t, g := range groupOf {
					if g == other {
						groupOf[t] = mine
					}
				}
			}
		}
	}
	return slices.DeleteFunc(groups, func(g [][][]Statement) bool { return g == nil })
}

// statementSearch tries every way through the parts, the cheapest first, and
// gives up a way as soon as it is no shorter than the best.
type statementSearch struct {
	parts  [][][]Statement
	chosen map[Statement]bool // decided before the search
	best   []Statement
	found  bool
	budget int
}

func (s *statementSearch) from(part int, taken []Statement) {
	if s.found && (len(taken) >= len(s.best) || s.budget <= 0) {
		return
	}
	if part == len(s.parts) {
		s.best, s.found = taken, true
		return
	}
	s.budget--
	ways := make([][]Statement, len(s.parts[part]))
	for i, set := range s.parts[part] {
		fresh := slices.DeleteFunc(slices.Clone(set), func(st Statement) bool { return s.chosen[st] })
		ways[i] = merge(taken, fresh)
	}
	slices.SortStableFunc(ways, func(a, b []Statement) int { return len(a) - len(b) })
	if len(ways[0]) == len(taken) { // decided already: no other way can be shorter
		ways = ways[:1]
	}
	for _, way := range ways {
		s.from(part+1, way)
	}
}

// comparePointers orders /inputs/2 before /inputs/10.
func comparePointers(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "/"), strings.Split(b, "/"), func(x, y string) int {
		if isDigits(x) && isDigits(y) {
			return cmp.Or(len(x)-len(y), strings.Compare(x, y))
		}
		return strings.Compare(x, y)
	})
}

func isDigits(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}
