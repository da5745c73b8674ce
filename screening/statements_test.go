package screening

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// part writes "a+b|c" as alternatives.
func part(text string) (alternatives [][]Statement) {
	for set := range strings.SplitSeq(text, "|") {
		var statements []Statement
		for s := range strings.SplitSeq(set, "+") {
			statements = append(statements, Statement{Pointer: "/" + s})
		}
		alternatives = append(alternatives, statements)
	}
	return alternatives
}

func TestShortest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ parts, want string }{
		{"", ""},
		{"a", "a"},
		{"b a", "a b"},
		{"a+b|c", "c"},
		{"a|b b", "b"},                          // what is needed anyway decides the choice
		{"a|b b|c", "b"},                        // one for two
		{"a|x b|x c|x", "x"},                    // one for all
		{"p|q q|r r|s", "p r"},                  // any two that cover
		{"a|b c|d e|f", "a c e"},                // nothing shared
		{"x+y|a x+y|b x+y|c x+y|d", "x y"},      // a dear choice that pays off
		{"/10/k|/9/k /10/k /2/k", "/2/k /10/k"}, // pointers in order of number
	} {
		var parts [][][]Statement
		for p := range strings.FieldsSeq(tt.parts) {
			parts = append(parts, part(p))
		}
		parts = append(parts, nil, [][]Statement{}) // what nothing decides is left out
		var got []string
		for _, s := range shortest(parts) {
			got = append(got, s.Pointer[1:])
		}
		if len(got) != len(strings.Fields(tt.want)) || tt.parts != "p|q q|r r|s" && strings.Join(got, " ") != tt.want {
			t.Errorf("%q: got %v, want %s", tt.parts, got, tt.want)
		}
	}
}

// TestShortestIsShortest compares with trying every set of statements.
func TestShortestIsShortest(t *testing.T) {
	t.Parallel()
	const letters = "abcdefg"
	rapid.Check(t, func(rt *rapid.T) {
		var parts [][][]Statement
		for range rapid.IntRange(0, 5).Draw(rt, "parts") {
			var sets []string
			for range rapid.IntRange(1, 3).Draw(rt, "ways") {
				var set []string
				for range rapid.IntRange(1, 3).Draw(rt, "statements") {
					set = append(set, string(rapid.SampledFrom([]byte(letters)).Draw(rt, "statement")))
				}
				sets = append(sets, strings.Join(set, "+"))
			}
			parts = append(parts, part(strings.Join(sets, "|")))
		}
		got := shortest(parts)
		best := len(letters) + 1
		for bits := range 1 << len(letters) {
			chosen := map[Statement]bool{}
			for i, l := range letters {
				if bits&(1<<i) != 0 {
					chosen[Statement{Pointer: "/" + string(l)}] = true
				}
			}
			if decidesAll(parts, chosen) {
				best = min(best, len(chosen))
			}
		}
		chosen := map[Statement]bool{}
		for _, s := range got {
			chosen[s] = true
		}
		if !decidesAll(parts, chosen) || len(got) != best {
			rt.Fatalf("got %v, the shortest has %d; parts %v", got, best, parts)
		}
	})
}

func decidesAll(parts [][][]Statement, chosen map[Statement]bool) bool {
	for _, p := range parts {
		decided := false
		for _, set := range p {
			decided = decided || missing(set, chosen) == 0
		}
		if !decided {
			return false
		}
	}
	return true
}

func TestShortestIsQuick(t *testing.T) {
	t.Parallel()
	var parts [][][]Statement
	for i := range 3000 {
		parts = append(parts, part(fmt.Sprintf("a%d+b%d|c%d|d%d", i, i%7, i%11, i%13)), part(fmt.Sprintf("d%d|e%d+f%d", i, i, i%3)))
	}
	start := time.Now()
	got := shortest(parts)
	if took := time.Since(start); took > soon {
		t.Errorf("took %s for %d statements", took, len(got))
	}
}
