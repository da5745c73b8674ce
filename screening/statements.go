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
		search.from(0)
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
	parent := make([]int, len(parts)) // a forest; the root stands for its group
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	firstWith := map[Statement]int{}
	for i, part := range parts {
		parent[i] = i
		for _, s := range slices.Concat(part...) {
			if first, met := firstWith[s]; met {
				parent[root(i)] = root(first)
			} else {
				firstWith[s] = i
			}
		}
	}
	groupOf := map[int]int{}
	for i, part := range parts {
		g, met := groupOf[root(i)]
		if !met {
			g = len(groups)
			groupOf[root(i)] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], part)
	}
	return groups
}

// statementSearch tries every way through the parts, the cheapest first, and
// gives up a way as soon as it is no shorter than the best.
type statementSearch struct {
	parts  [][][]Statement
	chosen map[Statement]bool // decided before the search, and on the way that is tried
	taken  []Statement        // on the way that is tried
	best   []Statement
	found  bool
	budget int
}

func (s *statementSearch) from(part int) {
	if s.found && (len(s.taken) >= len(s.best) || s.budget <= 0) {
		return
	}
	if part == len(s.parts) {
		s.best, s.found = slices.Clone(s.taken), true
		return
	}
	s.budget--
	ways := slices.Clone(s.parts[part])
	slices.SortStableFunc(ways, func(a, b []Statement) int { return missing(a, s.chosen) - missing(b, s.chosen) })
	if missing(ways[0], s.chosen) == 0 { // decided already: no other way can be shorter
		ways = ways[:1]
	}
	for _, way := range ways {
		before := len(s.taken)
		for _, st := range way {
			if !s.chosen[st] {
				s.chosen[st] = true
				s.taken = append(s.taken, st)
			}
		}
		s.from(part + 1)
		for _, st := range s.taken[before:] {
			delete(s.chosen, st)
		}
		s.taken = s.taken[:before]
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
