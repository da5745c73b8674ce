package main

import (
	"strings"

	"github.com/coregx/ahocorasick"
)

// coregx is the fastest Go Aho-Corasick library tried. It has no case folding, so it is given text in lower case, and
// the folding is not counted.
type coregx struct{ automaton *ahocorasick.Automaton }

func newCoregx(phrases []string) (*coregx, error) {
	a, err := ahocorasick.NewBuilder().AddStrings(phrases).Build()
	return &coregx{a}, err
}

func (c *coregx) scan(lower []byte) int { return len(c.automaton.FindAllOverlapping(lower)) }

func (c *coregx) find(text string) []hit {
	var hits []hit
	for _, m := range c.automaton.FindAllOverlapping([]byte(strings.ToLower(text))) {
		hits = append(hits, hit{int(m.PatternID), m.Start, m.End})
	}
	return hits
}
