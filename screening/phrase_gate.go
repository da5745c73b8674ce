package screening

import (
	"encoding/binary"
	"math/bits"
	"slices"
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

// turnsAway reports whether no phrase can be in the text, which it folds on the way.
func (l *gateLook) turnsAway(g *phraseGate) bool {
	text, plain := l.fold()
	if !plain {
		return false
	}
	real := text[:len(text)-gateBlock]
	looked := 0         // bytes that were looked at closely
	inWord := uint64(0) // 1: the byte before belongs to a word
	for at, words := range l.words {
		starts := words &^ (words<<1 | inWord)
		inWord = words >> 63
		for base := at * gateBlock; starts != 0; starts &= starts - 1 {
			i := base + bits.TrailingZeros64(starts)
			word := binary.LittleEndian.Uint32(text[i:])
			end := (word - lanes32) &^ word & (0x80 * lanes32) // has a bit where the word is over
			word &= end&-end - 1
			if word&(0x20*lanes32)<<1&^word != 0 { // has digits
				word = gateClasses(word)
			}
			if !g.fits(word) {
				continue
			}
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
)

// gateLook is the room for one look at a text: a copy to fold, and a bit for each of its bytes that belongs to a word.
type gateLook struct {
	text  []byte
	words []uint64
}

// fold puts the text in lower case, and zero where it is no word, with some more zeros behind it. plain: all is ASCII,
// and nothing is a symbol that could stand for a letter.
func (l *gateLook) fold() (folded []byte, plain bool) {
	for len(l.text)%gateBlock != 0 {
		l.text = append(l.text, 0)
	}
	text := l.text
	l.words = slices.Grow(l.words[:0], len(text)/gateBlock)
	var high uint64
	for at := 0; at < len(text); at += gateBlock {
		block := text[at : at+gateBlock]
		var words, odd uint64
		for k := 0; k < gateBlock; k += 8 {
			x := binary.LittleEndian.Uint64(block[k:])
			high |= x
			x &^= highBits
			lower := x | 0x20*lanes
			letters := laneRange(lower, 'a', 'z')
			in := letters | laneRange(x, '0', '9')
			odd |= (lower+0x20*lanes)&^letters | laneRange(x, '!', '$') // symbols are among them
			words |= in >> 7 * 0x0102040810204080 >> 56 << k
			if odd&highBits != 0 && symbolLanes(x) != 0 {
				return nil, false
			}
			binary.LittleEndian.PutUint64(block[k:], lower&(in-in>>7))
		}
		l.words = append(l.words, words)
	}
	l.text = append(text, make([]byte, gateBlock)...)
	return l.text, high&highBits == 0
}

// gateClasses puts letters for the digits of a word.
func gateClasses(word uint32) uint32 {
	for i := 0; i < 32; i += 8 {
		if c := byte(word >> i); c >= '0' && c <= '9' {
			word ^= uint32(c^spellingClass[c]) << i
		}
	}
	return word
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
