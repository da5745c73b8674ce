package screening

import (
	"encoding/binary"
	"math/bits"
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
)

// newPhraseGate builds the gate of a matcher, nil where one would be of no use.
func newPhraseGate(m *phraseMatcher) *phraseGate {
	if len(m.entries) == 0 || len(m.entries) > maxGatedPhrases {
		return nil
	}
	b := gateBuilder{m: m, gate: new(phraseGate), known: map[string]bool{}}
	for p := range m.entries {
		if !b.spell(m.phraseWords(p), nil) {
			return nil
		}
	}
	b.gate.heads = newHashTable(2 * len(b.known))
	width := min(max(bits.Len(uint(len(b.known)*128)), 10), 18)
	b.gate.starts, b.gate.shift = make([]uint64, 1<<width/64), uint8(32-width)
	for head := range b.known {
		b.gate.add(head)
	}
	return b.gate
}

type gateBuilder struct {
	m     *phraseMatcher
	gate  *phraseGate
	known map[string]bool // first letters of the phrases
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
	g.addStarts(head, 0, 0)
}

// addStarts enters the ways in which a text word can begin: with n letters so far, and the phrase's rest to come. Digits
// are not entered, see next.
func (g *phraseGate) addStarts(rest string, word uint32, n int) {
	if n > 0 {
		slot := g.startSlot(word)
		g.starts[slot/64] |= 1 << (slot % 64)
	}
	if n == 4 || rest == "" {
		return
	}
	letter := func(c byte, taken int) { g.addStarts(rest[taken:], word|uint32(c)<<(8*n), n+1) }
	letter(rest[0], 1)
	if rest[0] == 'i' {
		letter('l', 1)
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

// turnsAway reports whether no phrase can be in the text.
func (g *phraseGate) turnsAway(text []byte) bool {
	look := gateLook{gate: g, text: text, steps: len(text)/4 + maxGateSteps}
	at := 0
	for ; at+gateBlock+8 <= len(text); at += gateBlock {
		if !look.block(text[at:at+gateBlock+8], at) {
			return false
		}
	}
	var rest [2*gateBlock + 8]byte // with room to look beyond the last word
	n := copy(rest[:], text[at:])
	return n == 0 || look.block(rest[:gateBlock+8], at) && (n <= gateBlock || look.block(rest[gateBlock:], at+gateBlock))
}

const gateBlock = 64

// gateLook is one look at a text, block by block.
type gateLook struct {
	gate   *phraseGate
	text   []byte
	steps  int    // left
	inWord uint64 // 1: the byte before the block belongs to a word
}

// block looks at the words that begin in the first gateBlock bytes of a block, which stands at a place of the text.
func (l *gateLook) block(block []byte, at int) bool {
	g := l.gate
	words, plain := wordBits(block)
	if !plain {
		return false
	}
	for starts := words &^ (words<<1 | l.inWord); starts != 0; starts &= starts - 1 {
		i := bits.TrailingZeros64(starts)
		n := bits.TrailingZeros64(^(words >> i) | 1<<4)
		if i > gateBlock-4 {
			for n = 1; n < 4 && asciiClass[block[i+n]] == classWord; n++ {
			}
		}
		mask := wordMasks[n]
		word := (binary.LittleEndian.Uint32(block[i:]) | 0x20*lanes32) & mask
		fits := g.fits(word)
		if ^word&mask&(0x40*lanes32) != 0 { // has digits, which stand for letters
			fits = g.mayStart(block[i : i+n])
		}
		if fits && !l.deadEnd(at+i) {
			return false
		}
	}
	l.inWord = words >> 63
	return true
}

const lanes32 = lanes & 0xFFFFFFFF

// wordMasks select the first bytes of four.
var wordMasks = [...]uint32{0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF}

// mayStart looks a word up by its spelling classes.
func (g *phraseGate) mayStart(letters []byte) bool {
	var word uint32
	for i, c := range letters {
		word |= uint32(spellingClass[c]) << (8 * i)
	}
	return g.fits(word)
}

// deadEnd reports whether the letters from here on are those of no phrase.
func (l *gateLook) deadEnd(at int) bool {
	g := l.gate
	var h uint64
	n, end := 0, min(at+maxGateSteps, len(l.text))
	for i := at; i < end; i++ {
		c := l.text[i]
		if asciiClass[c] != classWord {
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
					l.steps -= i - at
					return l.steps > 0
				}
			}
			if c != 'm' {
				break
			}
			c = 'n'
		}
	}
	return end == len(l.text)
}

// Values of phraseGate.heads.
const (
	headEnds   = 1 << iota // a phrase, or its first gateLetters
	headGoesOn             // the first firstLook letters of a longer one
)

// wordBits has a bit for each of the first 64 bytes that belongs to a word. plain: all are ASCII, and none is a symbol
// that could stand for a letter.
func wordBits(block []byte) (words uint64, plain bool) {
	_ = block[gateBlock-1]
	var high uint64
	clean := uint64(highBits)
	for k := 0; k < gateBlock; k += 8 {
		x := load8(block, k)
		high |= x
		x &^= highBits
		clean &= ((x ^ '@'*lanes) + 0x7F*lanes) & ((x ^ '$'*lanes) + 0x7F*lanes) & ((x ^ '!'*lanes) + 0x7F*lanes) & ((x ^ '|'*lanes) + 0x7F*lanes)
		in := laneRange(x|0x20*lanes, 'a', 'z') | laneRange(x, '0', '9')
		words |= in >> 7 * 0x0102040810204080 >> 56 << k
	}
	return words, high&highBits == 0 && clean == highBits
}
