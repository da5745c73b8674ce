package screening

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"
)

// phraseGate tells, for most plain ASCII texts, that no phrase can be in them in any form, at a fraction of what a
// search costs. It may let any text through, but never turns away one with a hit.
//
// Every hit begins where a word of the text begins, and its letters follow in order whatever stands between them. So a
// text can be turned away if at none of its words the letters go on like a phrase: the first four are looked up at
// once, the next few only where those fit. Letters count as the same here if any form takes one for another: the
// spelling classes, and m for rn.
type phraseGate struct {
	starts  []uint64  // by the hash of the first letters of the first word
	shift   uint8     // of those hashes
	heads   hashTable // hashes of the first letters, as many as lengths says
	lengths uint32    // bit n: some phrase is looked up by n letters
	most    int       // the largest of those
}

const (
	gateLetters = 16 // looked at in all
	firstLook   = 6  // of them, which nearly always tells already
	// A gate for more phrases lets through nearly everything.
	maxGatedPhrases = 4096
	// maxGateSteps bounds how far one look may go; separators have no other bound.
	maxGateSteps = 64
	// closeLooks is how much more than half of the text may be looked at closely: a text that needs more of that is
	// searched at once.
	closeLooks = 512
)

// newPhraseGate builds the gate of a matcher, nil where one would be of no use.
func newPhraseGate(m *phraseMatcher) *phraseGate {
	if len(m.entries) == 0 || len(m.entries) > maxGatedPhrases {
		return nil
	}
	b := gateBuilder{m: m, gate: new(phraseGate), known: map[string]bool{}, starts: map[uint32]bool{}}
	for p := range m.entries {
		if !b.spell(m.phraseWords(p), nil) {
			return nil
		}
	}
	b.gate.heads = newHashTable(2 * len(b.known))
	for head := range b.known {
		b.gate.add(head)
		b.addStarts(head, 0, 0)
	}
	width := min(max(bits.Len(uint(len(b.starts)*64)), 10), 18)
	b.gate.starts, b.gate.shift = make([]uint64, 1<<width/64), uint8(32-width)
	for word := range b.starts {
		slot := b.gate.startSlot(word)
		b.gate.starts[slot/64] |= 1 << (slot % 64)
	}
	return b.gate
}

type gateBuilder struct {
	m     *phraseMatcher
	gate  *phraseGate
	known map[string]bool // first letters of the phrases
	// starts has the ways in which a text word can begin: its first four letters and digits as they are written, the
	// first in the lowest byte, or all of a shorter word.
	starts map[uint32]bool
}

// spell gathers the first letters of a phrase, for each way its words look in ASCII, and reports whether that was
// possible: a phrase that looks too many ways is not gated. A word that never looks like ASCII ends the matter.
func (b *gateBuilder) spell(words []uint32, letters []byte) bool {
	if len(words) == 0 || len(letters) >= gateLetters {
		b.known[string(letters[:min(len(letters), gateLetters)])] = true
		return len(b.known) <= 4*maxGatedPhrases
	}
	var last string
	for _, upper := range [...]bool{false, true} {
		looks := string(appendSkeleton(nil, b.m.fold(words[0]), upper))
		if !isASCII(looks) || looks == last {
			continue
		}
		last = looks
		if !b.spell(words[1:], appendGateLetters(letters[:len(letters):len(letters)], looks)) {
			return false
		}
	}
	return true
}

func appendGateLetters(dst []byte, word string) []byte {
	for i := range len(word) {
		if c := spellingClass[word[i]]; c == 'm' {
			dst = append(dst, 'r', 'n')
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

func (g *phraseGate) add(head string) {
	var h uint64
	for i := range len(head) {
		h = spellingStep(h, head[i])
		if i+1 == firstLook {
			*g.heads.slot(spellingDone(h)) |= headGoesOn
		}
	}
	*g.heads.slot(spellingDone(h)) |= headEnds
	g.lengths |= 1 << len(head)
	g.most = max(g.most, len(head))
}

// addStarts gathers starts: word has n letters so far, rest are those of the phrase still to come.
func (b *gateBuilder) addStarts(rest string, word uint32, n int) {
	if n > 0 {
		b.starts[word] = true
	}
	if n == 4 || rest == "" {
		return
	}
	letter := func(c byte, taken int) { b.addStarts(rest[taken:], word|uint32(c)<<(8*n), n+1) }
	for c := range byte(0x80) {
		if isLower(c) && spellingClass[c] == rest[0] || '0' <= c && c <= '9' && spellingClass[c] == rest[0] {
			letter(c, 1)
		}
	}
	if len(rest) > 1 && rest[:2] == "rn" {
		letter('m', 2)
	}
}

func (g *phraseGate) fits(word uint32) bool {
	slot := g.startSlot(word)
	return g.starts[slot/64]>>(slot%64)&1 != 0
}

func (g *phraseGate) startSlot(word uint32) uint32 { return word * 0x9E3779B1 >> (g.shift & 31) }

// turnsAway reports whether no phrase can be in the text, which it folds on the way.
func (l *gateLook) turnsAway(g *phraseGate) bool { return l.turnsAwayPlain(g) && len(l.odd) == 0 }

// turnsAwayPlain reports whether no phrase can be in the text but in one of its texts that is odd.
func (l *gateLook) turnsAwayPlain(g *phraseGate) bool {
	text := l.fold()
	real := text[:len(text)-gateBlock]
	looked := 0         // bytes that were looked at closely
	inWord := uint64(0) // 1: the byte before belongs to a word
	for at, words := range l.words {
		starts := words &^ (words<<1 | inWord)
		inWord = words >> 63
		block := (*[gateBlock + 4]byte)(text[at*gateBlock:])
		for ; starts != 0; starts &= starts - 1 {
			n := bits.TrailingZeros64(starts) % gateBlock
			word := binary.LittleEndian.Uint32(block[n:])
			end := ^word & (wordBit * lanes32) // has a bit where the word is over
			if word &= end&-end/wordBit - 1; !g.fits(word) {
				continue
			}
			i := at*gateBlock + n
			if looked > i/2+closeLooks || !g.deadEnd(real[i:], &looked) {
				return false
			}
		}
	}
	return true
}

const (
	gateBlock = 64
	lanes32   = lanes & 0xFFFFFFFF
	wordBit   = 0x20 // lower-case letters and digits have it, the zeros between words do not
)

// gateLook is the room for one look at a text: a copy to fold, and a bit for each of its bytes that belongs to a word.
type gateLook struct {
	text    []byte
	words   []uint64
	odd     textPlaces // what is not ASCII, and symbols that could stand for letters; blank in the folded text
	glued   textPlaces // digits that stand beside letters, and those letters
	escapes textPlaces // what begins an escape or a tag
}

// textPlaces are bytes of a text, in order: where a block of it begins and which they are in that block.
type textPlaces []blockBytes

type blockBytes struct {
	block int
	bytes uint64
}

// fold puts the text in lower case, and zero where it is no word, with some more zeros behind it.
func (l *gateLook) fold() (folded []byte) {
	for len(l.text)%gateBlock != 0 {
		l.text = append(l.text, 0)
	}
	text := l.text
	l.words = slices.Grow(l.words[:0], len(text)/gateBlock)
	l.odd, l.glued, l.escapes = l.odd[:0], l.glued[:0], l.escapes[:0]
	var wasLetter, wasDigit uint64
	for at := 0; at < len(text); at += gateBlock {
		block := (*[gateBlock]byte)(text[at:])
		var words, anyDigit, odd, escapes uint64
		for k := 0; k < gateBlock; k += 8 {
			x := binary.LittleEndian.Uint64(block[k:])
			if high := x & highBits; high != 0 {
				odd |= laneBits(high) << k
				x &^= high | (high - high>>7)
			}
			lower := x | 0x20*lanes
			// As a rule, what is not below the digits is a letter or a digit.
			in := x + (0x80-'0')*lanes
			other := (lower+(0x80-'9'-1)*lanes)&^(lower+(0x80-'a')*lanes) | (lower + (0x80-'z'-1)*lanes)
			if rare := (x + (0x80-'!')*lanes) &^ (x + (0x80-'&'-1)*lanes); (other|rare)&highBits != 0 {
				odd |= laneBits(symbolLanes(x)) << k
				escapes |= laneBits(laneEqual(x, '%')|laneEqual(x, '&')|laneEqual(x, '<')) << k
				in &^= other
			}
			in &= highBits
			anyDigit |= in &^ (x << 1) // letters have the bit below
			words |= laneBits(in) << k
			binary.LittleEndian.PutUint64(block[k:], lower&(in-in>>7))
		}
		if odd != 0 {
			l.odd = append(l.odd, blockBytes{at, odd})
		}
		if escapes != 0 {
			l.escapes = append(l.escapes, blockBytes{at, escapes})
		}
		digits := uint64(0)
		if anyDigit != 0 {
			for k := 0; k < gateBlock; k += 8 {
				x := binary.LittleEndian.Uint64(block[k:])
				digits |= laneBits(x<<2&^(x<<1)&highBits) << k
			}
		}
		letters := words &^ digits
		if glued := letters&(digits<<1|wasDigit) | digits&(letters<<1|wasLetter); glued != 0 {
			l.glued = append(l.glued, blockBytes{at, glued})
		}
		wasLetter, wasDigit = letters>>63, digits>>63
		l.words = append(l.words, words)
	}
	l.text = append(text, make([]byte, gateBlock)...)
	return l.text
}

// laneBits gives a bit for each lane that is selected.
func laneBits(selected uint64) uint64 { return selected >> 7 * 0x0102040810204080 >> 56 }

// touch reports whether one of the places is in a part of the text.
func (p textPlaces) touch(from, to int) bool {
	return len(p) > 0 && p.in(from, to)
}

func (p textPlaces) in(from, to int) bool {
	i := sort.Search(len(p), func(i int) bool { return p[i].block+gateBlock > from })
	for ; i < len(p) && p[i].block < to; i++ {
		bytes := p[i].bytes
		bytes &= ^uint64(0) << max(from-p[i].block, 0)
		bytes &= ^uint64(0) >> max(p[i].block+gateBlock-to, 0)
		if bytes != 0 {
			return true
		}
	}
	return false
}

// deadEnd reports whether the letters from here on are those of no phrase.
func (g *phraseGate) deadEnd(text []byte, looked *int) bool {
	var h uint64
	n, end := 0, min(maxGateSteps, len(text))
	for i, c := range text[:end] {
		if c == 0 {
			continue
		}
		c = spellingClass[c]
		for range 2 { // an m is an r and an n
			letter := c
			if c == 'm' {
				letter = 'r'
			}
			h = spellingStep(h, letter)
			if n++; n == firstLook || g.lengths>>n&1 != 0 {
				switch v := g.heads.get(spellingDone(h)); {
				case v&headEnds != 0 && g.lengths>>n&1 != 0:
					return false
				case v == 0 && n == firstLook, n >= g.most:
					*looked += i
					return true
				}
			}
			if c != 'm' {
				break
			}
			c = 'n'
		}
	}
	return end == len(text)
}

// Values of phraseGate.heads.
const (
	headEnds   = 1 << iota // a phrase, or its first gateLetters
	headGoesOn             // the first firstLook letters of a longer one
)
