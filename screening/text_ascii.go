package screening

import (
	"encoding/binary"
	"math/bits"
)

// The ASCII path of textScan, eight bytes at a time: a byte is a lane of a 64-bit word, and a mask has the high bit of
// the lanes that it selects.

const (
	lanes    = 0x0101010101010101
	highBits = 0x80 * lanes
)

// laneRange selects the lanes of x, all below 0x80, that are in [low, high].
func laneRange(x uint64, low, high byte) uint64 {
	return (x + uint64(0x80-low)*lanes) &^ (x + uint64(0x7F-high)*lanes) & highBits
}

// laneEqual selects the lanes of x, all below 0x80, that are c.
func laneEqual(x uint64, c byte) uint64 {
	return ^((x ^ uint64(c)*lanes) + 0x7F*lanes) & highBits
}

// symbolLanes selects the lanes of x, all below 0x80, that are symbols; see classSymbol.
func symbolLanes(x uint64) uint64 {
	return laneEqual(x, '@') | laneEqual(x, '$') | laneEqual(x, '!') | laneEqual(x, '|')
}

// nextSymbol is the place of the first symbol from i on in ASCII text, its length if there is none.
func nextSymbol(text string, i int) int {
	for ; i+8 <= len(text); i += 8 {
		if found := symbolLanes(load8(text, i)); found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(text) && asciiClass[text[i]] != classSymbol; i++ {
	}
	return i
}

// laneShape gathers what letters a word is made of (see shapeOf): each property has one bit of every lane.
type laneShape uint64

const (
	laneUpper laneShape = highBits >> iota
	laneInner
	laneLetter
	laneDigit01
	laneStroke
	laneM
	laneRN
)

// suspicious is the function of that name for lanes.
func (p laneShape) suspicious() bool {
	return p&laneM != 0 || p&laneRN != 0 || p&laneDigit01 != 0 && p&laneLetter != 0 ||
		p&laneUpper != 0 && p&laneStroke != 0
}

// asciiRun appends the words from i on for as long as there is one space or other plain separator after each, and
// returns where it stopped: before anything that needs a closer look, or at i if that is the first word already.
func (s *textScan) asciiRun(i, limit int) int {
	text, spell := s.text, s.spelled || s.skels != nil
	toks, used := s.toks, s.used
	s.gap = 0
run:
	for i+9 <= len(text) && len(toks) < limit {
		switch {
		case asciiClass[text[i]] == classWord:
		case asciiClass[text[i]] == classSymbol && text[i] != '!' && asciiClass[text[i+1]] == classWord:
			s.saw++
			i++
		default:
			break run
		}
		start, at := i, used
		var (
			hash  uint64
			shape laneShape
			n     int // letters in the last lanes
		)
		if asciiClass[text[i+1]] < classWord { // a word of one character, as a text may have by the million
			c := text[i]
			hash = mixHash(0, uint64(c|0x20)<<56)
			if spell {
				s.room(used + 1)
				s.units[used], s.classes[used] = asciiUnit[c], spellingClass[c]
				used++
			}
			if c >= 'A' && s.skels != nil && s.skels.anyLetter(c) {
				shape = laneLetter
			}
			i++
			n = -1
		}
		for n >= 0 {
			x := load8(text, i)
			high := x & highBits
			x &^= highBits
			lower := x | 0x20*lanes
			letters := laneRange(lower, 'a', 'z') &^ high
			digits := laneRange(x, '0', '9') &^ high
			n = bits.TrailingZeros64(^(letters|digits)&highBits) / 8
			if n < 8 && high>>(8*n)&0x80 != 0 {
				i, used = start, at // the word goes on outside ASCII
				break run
			}
			if spell {
				if used+8 > len(s.units) {
					s.room(used + 8)
				}
				// Bits of lanes beyond the word must not count; n is 0 at the end of a word of eight.
				letters &= 1<<(8*n) - 1
				strokeI, lowerL := laneEqual(x, ambiguousStroke)&letters, laneEqual(lower, 'l')&letters
				upper := ^x << 2 & letters
				// Lower case, but for the capital I; the class of l is that of i, two bits away.
				binary.LittleEndian.PutUint64(s.units[used:], lower&^(strokeI>>2))
				binary.LittleEndian.PutUint64(s.classes[used:], lower^(lowerL>>7|lowerL>>5))
				inner := upper
				if i == start {
					inner &^= 0x80
				}
				// An r before an n, which the next eight bytes may begin with.
				rn := laneEqual(lower, 'r') & letters & (laneEqual(lower, 'n')>>8 | 1<<63)
				shape |= laneShape(upper | inner>>1 | letters>>2 | (strokeI|lowerL&^upper)>>4 | laneEqual(lower, 'm')&letters>>5 | rn>>6)
				if digits &= 1<<(8*n) - 1; digits != 0 {
					shape |= laneShape(laneRange(x, '0', '1') & digits >> 3)
					for k := range n {
						s.classes[used+k] = spellingClass[text[i+k]]
					}
				}
				used += n
			}
			i += n
			if n < 8 {
				if n > 0 {
					hash = mixHash(hash, lower<<(64-8*n))
				}
				break
			}
			hash = mixHash(hash, lower)
			if i+8 > len(text) || i-start > maxTokenBytes-8 {
				i, used = start, at
				break run
			}
		}
		var t *textToken
		toks, t = nextToken(toks)
		t.hash, t.start, t.end = hash, uint32(start), uint32(i)
		t.unit, t.units, t.fold = uint32(at), uint16(used-at), uint32(len(s.folds))
		if s.skels != nil && (shape&laneLetter != 0 && s.skels.anyOf(used-at) || used-at > 1 && shape.suspicious()) {
			t.lookalikes = s.asciiLookalikes(at, used-at, shape&laneInner != 0, hash)
		}
		s.gap, s.afterLong, s.afterSyll = 0, i-start >= minAbbreviated, false
		switch c := text[i]; asciiClass[c] {
		case classSpace:
			s.gap = bitSpace
			i++
		case classPlain:
			i++
		case classSymbol:
			if s.role(i) != symbolsApart {
				s.saw++
			}
			if c != '!' {
				i++
				break
			}
			fallthrough
		default:
			// Punctuation and a space end no sentence before a small letter or a digit.
			if i+2 >= len(text) || text[i+1] != ' ' || asciiClass[text[i+2]] != classWord || isUpper(text[i+2]) {
				break run
			}
			s.gap = bitSpace
			i += 2
		case classOther:
			break run
		}
	}
	s.toks, s.used = toks, used
	return i
}

// strokelessLanes is appendStrokeless for units in the lanes that end with the last. ok: it is not for more than one m,
// which takes two lanes, nor for digits, which are rare, nor for letters outside ASCII.
func strokelessLanes(units uint64) (strokeless uint64, ok bool) {
	m := laneEqual(units, 'm')
	if units&highBits != 0 || laneRange(units, '0', '1') != 0 || m&(m-1) != 0 {
		return 0, false
	}
	if m != 0 {
		if units&0xFF != 0 {
			return 0, false // no lane is free
		}
		at := bits.TrailingZeros64(m) &^ 7
		before := units & (1<<at - 1) >> 8
		units = units>>at>>8<<8<<at | before | uint64('r')<<at>>8 | uint64('n')<<at
	}
	i, stroke := laneEqual(units, 'i'), laneEqual(units, ambiguousStroke)
	return units ^ (i>>7*('i'^'l') | stroke>>7*(ambiguousStroke^'l')), true
}
