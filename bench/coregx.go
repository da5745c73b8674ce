package main

import (
	"encoding/binary"

	"github.com/coregx/ahocorasick"
)

// coregx is the fastest Go Aho-Corasick library tried. It has neither case folding nor whole words, so both are done
// around it, as fast as is known here: eight bytes a step, into room that is used again.
type coregx struct {
	automaton *ahocorasick.Automaton
	lower     []byte
}

func newCoregx(phrases []string) (*coregx, error) {
	a, err := ahocorasick.NewBuilder().AddStrings(phrases).Build()
	return &coregx{automaton: a}, err
}

// scan searches text that is in lower case already, and keeps hits within words.
func (c *coregx) scan(lower []byte) []ahocorasick.Match { return c.automaton.FindAllOverlapping(lower) }

// scanWords folds an ASCII text, searches it, and keeps the hits that are whole words.
func (c *coregx) scanWords(text string) []ahocorasick.Match {
	c.lower = appendLower(c.lower[:0], text)
	all := c.scan(c.lower)
	kept := all[:0]
	for _, m := range all {
		if (m.Start == 0 || !isWordByte(c.lower[m.Start-1])) && (m.End == len(c.lower) || !isWordByte(c.lower[m.End])) {
			kept = append(kept, m)
		}
	}
	return kept
}

// appendLower appends an ASCII text in lower case.
func appendLower(dst []byte, text string) []byte {
	const lanes = 0x0101010101010101
	at := len(dst)
	dst = append(dst, text...)
	rest := dst[at:]
	for ; len(rest) >= 8; rest = rest[8:] {
		x := binary.LittleEndian.Uint64(rest)
		upper := (x + (0x80-'A')*lanes) &^ (x + (0x7F-'Z')*lanes) & (0x80 * lanes)
		binary.LittleEndian.PutUint64(rest, x|upper>>2)
	}
	for i, c := range rest {
		if c >= 'A' && c <= 'Z' {
			rest[i] = c | 0x20
		}
	}
	return dst
}

func (c *coregx) find(text string) []hit {
	var hits []hit
	for _, m := range c.scanWords(text) {
		hits = append(hits, hit{int(m.PatternID), m.Start, m.End})
	}
	return hits
}
