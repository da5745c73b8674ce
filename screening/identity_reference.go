package screening

import (
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// The reference rules were defined by a program in another language. It normalised the whole text, searched it for
// markers, cut it into tokens, folded verbs and looked for pairs. This scan gives the same answers in one pass over
// the text as it is, without building any of these. What the definition depends on, and Go does otherwise:
//
//   - Lower-casing is the full mapping of that language. Only two characters outside ASCII have lower-case letters in
//     it, and all markers, words and tokens are ASCII: the Kelvin sign is a k, and U+0130 is an i followed by a
//     combining dot, which ends the token. (Final sigma, the other context it knows, changes one Greek letter for
//     another, and neither can be seen by the rules.)
//   - A contraction is written out only between word boundaries, where letters and digits of every script and the
//     underscore are word characters. Contractions are letters, an apostrophe, letters. So of the declared
//     alternatives at most one fits a place, their order decides nothing, and no two can overlap.
//   - Dashes become spaces, and nothing else does: markers need exactly one space (or dash) between their words.
//   - White space, which makes a text empty, includes U+001C to U+001F and U+0085.
//
// Nearly all text is ASCII without apostrophes and goes through plain, which finds the tokens in blocks of bytes and
// looks for markers only around the few tokens that every marker has one of. What has anything else in it goes through
// careful, and there through unusual, rune by rune. The scan ends when all rules have fired.
type refScan struct {
	text    string
	segment int         // where plain began: no marker goes across it
	marker  markerState // of careful

	tokens  int // so far
	seen    uint16
	verb    int // token number of the last of each class
	frame   int
	quality int
	fired   uint8

	word [maxPackedWord]byte // the open token in unusual
	size int                 // its length, also beyond what word can hold
}

const refWindow = 3 // tokens to either side of a qualifier

const (
	firedMarker = 1 << iota
	firedPair
	firedFrame
	firedVerb
	firedAll = 1<<iota - 1
)

// refRuleNames gives the rules of a set of fired bits.
var refRuleNames = nameSets("a", "b", "c", "d")

// nameSets lists, for every set of bits, the names of the bits that are set, so that a verdict needs no allocation.
func nameSets(names ...string) [][]string {
	sets := make([][]string, 1<<len(names))
	for set := range sets {
		for i, name := range names {
			if set&(1<<i) != 0 {
				sets[set] = append(sets[set], name)
			}
		}
		sets[set] = sets[set][:len(sets[set]):len(sets[set])]
	}
	return sets
}

func screenReference(text string) TextVerdict {
	const far = -1 - refWindow
	s := refScan{text: text, verb: far, frame: far, quality: far}
	for i := 0; i < len(text) && s.fired != firedAll; {
		if i = s.plain(i); i < len(text) && s.fired != firedAll {
			i = s.careful(i)
		}
	}
	return TextVerdict{IdentityOverride: s.fired != 0, Empty: isRefBlank(text), Rules: refRuleNames[s.fired]}
}

// plain scans from i, which is in no token and no marker, and returns where something is that it cannot read: the
// start of a token, or a place between tokens.
func (s *refScan) plain(i int) int {
	text := s.text
	s.segment = i
	for i < len(text) {
		words, odd := refMasks(text, i)
		// Up to the token that has something odd in it or behind it, or that may go on in the next block.
		stop := bits.TrailingZeros64(odd)
		size := bits.Len64(^words & (1<<stop - 1))
		words &= 1<<size - 1
		starts, ends := words&^(words<<1), words<<1&^words
		for ; starts != 0; starts, ends = starts&(starts-1), ends&(ends-1) {
			start, end := i+bits.TrailingZeros64(starts), i+bits.TrailingZeros64(ends)
			s.tokens++
			var w packedWord
			var last uint32
			if start+maxPackedWord <= len(text) && end >= 4 {
				const lower = 0x2020202020202020
				around, masks := text[start:start+maxPackedWord], &refSizeMasks[min(end-start, maxPackedWord)]
				w.head, w.tail = (word8(around[:8])|lower)&masks.head, (word8(around[8:])|lower)&masks.tail
				last = word4(text[end-4 : end])
			} else {
				w = packWord(text, start, min(end, start+maxPackedWord))
				if end >= 4 {
					last = word4(text[end-4 : end])
				}
			}
			if uint32(w.head)&0xFFFFFF == refYou || last>>8 == refYou || last == refYour || last == refTend {
				s.findMarker(start, end)
			}
			if hash := refFilterHash(w); refFilter[hash>>6]&(1<<(hash&63)) != 0 || byte(w.head) == '-' {
				s.plainToken(start, end)
			}
		}
		if s.fired == firedAll {
			return len(text)
		}
		i += size
		if stop < refBlock || size == 0 { // what is odd, or a token as long as the block
			return i
		}
	}
	return len(text)
}

// Every marker has a token in it that begins with "you", or ends with "you", "your" or "pretend".
const (
	refYou  = 'y' | 'o'<<8 | 'u'<<16
	refYour = refYou | 'r'<<24
	refTend = 't' | 'e'<<8 | 'n'<<16 | 'd'<<24
)

// plainToken classifies text[start:end], which is letters, digits and hyphens and has been counted as a token.
func (s *refScan) plainToken(start, end int) {
	for s.text[start] == '-' {
		if start++; start == end {
			s.tokens--
			return
		}
	}
	if end-start <= maxPackedWord {
		s.classify(refWords.get(packWord(s.text, start, end)))
	}
}

// word4 reads four bytes, in lower case if they are letters.
func word4(b string) uint32 {
	return (uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24) | 0x20202020
}

// findMarker looks for a marker that a token is part of, not further than the longest reaches: text in which every word
// could begin one must not be read again for each of them.
func (s *refScan) findMarker(start, end int) {
	if s.fired&firedMarker != 0 {
		return
	}
	state := s.markerAt(start)
	for i := start; i < min(len(s.text), end+maxMarker) && (i < end || state != 0); i++ {
		state = markerAutomaton[state][refSymbols[s.text[i]]&(symCount-1)]
		if state == markerFound {
			s.fired |= firedMarker
			return
		}
	}
}

// markerAt is the state before i, from the text that plain has read.
func (s *refScan) markerAt(i int) (state markerState) {
	for k := max(s.segment, i-maxMarker); k < i; k++ {
		state = markerAutomaton[state][refSymbols[s.text[k]]&(symCount-1)]
	}
	return state
}

// careful scans from i, where plain stopped, and returns where plain can go on.
func (s *refScan) careful(i int) int {
	text := s.text
	s.marker = s.markerAt(i)
	for i < len(text) {
		sym := refSymbols[text[i]]
		switch {
		case sym == symNonASCII:
			i = s.unusual(i)
		case sym == symOther || sym > symDigit:
			s.marker = markerAutomaton[s.marker][sym]
			i++
		default:
			i = s.carefulToken(i)
		}
		if s.marker == markerFound {
			s.fired |= firedMarker
			s.marker = 0
		}
		// Not where plain would stop again at once.
		if s.marker == 0 && (i == len(text) || text[i] < utf8.RuneSelf && text[i] != '\'' && text[i] != '-') {
			break
		}
	}
	return i
}

// carefulToken scans a token that begins in ASCII.
func (s *refScan) carefulToken(start int) int {
	text := s.text
	i, marker, sym := start, s.marker, uint8(symOther)
	for ; i < len(text); i++ {
		if sym = refSymbols[text[i]]; sym == symOther || sym > symHyphen {
			break
		}
		marker = markerAutomaton[marker][sym&(symCount-1)]
	}
	if i < len(text) && (sym == symApostrophe || sym == symNonASCII) {
		return s.unusual(start)
	}
	s.marker = marker
	s.tokens++
	if i-start <= maxPackedWord {
		s.classify(refWords.get(packWord(text, start, i)))
	}
	return i
}

// classify takes the class of the last token counted, and looks back for what it makes a pair with. Looking back from
// both sides of a pair is the same as looking to both sides of the qualifier.
func (s *refScan) classify(class uint16) {
	if class == 0 {
		return
	}
	s.seen |= class
	if s.seen&(refVerb|refFrame) == refVerb|refFrame {
		s.fired |= firedPair
	}
	at := s.tokens
	if class&refVerb != 0 {
		s.verb = at
	}
	if class&refFrame != 0 {
		s.frame = at
	}
	if class&refQualifier != 0 {
		s.quality = at
	}
	// One of the two is this token, or the pair was found before.
	if abs(s.frame-s.quality) <= refWindow && s.seen&refQualifier != 0 {
		s.fired |= firedFrame
	}
	if abs(s.verb-s.quality) <= refWindow && s.seen&refQualifier != 0 {
		s.fired |= firedVerb
	}
}

func abs(n int) int { return max(n, -n) }

// unusual scans from i, where a token or a rune outside ASCII begins, at least up to the next place that is outside
// of a token and followed by ASCII, and returns where it stopped.
func (s *refScan) unusual(i int) int {
	text := s.text
	inWord := i > 0 && endsInWord(text[:i])
	for i < len(text) {
		if !inWord {
			if long, n := contractionAt(text, i); n > 0 {
				for k := range len(long) {
					s.put(long[k])
				}
				i, inWord = i+n, true
				continue
			}
		}
		c := refRuneAt(text, i)
		s.put(c.ascii)
		i, inWord = i+c.size, c.word
		if c.dotted {
			s.put(notASCII)
		}
		if s.size == 0 && i < len(text) && text[i] < utf8.RuneSelf {
			return i
		}
	}
	s.endToken()
	return i
}

// put adds one character of the normalised text.
func (s *refScan) put(c byte) {
	sym := refSymbols[c]
	s.marker = markerAutomaton[s.marker][sym&(symCount-1)]
	switch {
	case sym == symOther || sym > symApostrophe, sym > symDigit && s.size == 0:
		s.endToken()
	default:
		if s.size < len(s.word) {
			s.word[s.size] = c
		}
		s.size++
	}
}

func (s *refScan) endToken() {
	if s.size == 0 {
		return
	}
	var class uint16
	if s.size <= maxPackedWord {
		var w packedWord
		for k := s.size - 1; k >= 0; k-- {
			w.tail = w.tail<<8 | w.head>>56
			w.head = w.head<<8 | uint64(s.word[k])
		}
		class = refWords.get(w)
	}
	s.size = 0
	s.tokens++
	s.classify(class)
}

// notASCII stands for every character that is not ASCII after normalising.
const notASCII = 0x80

// refRune is a character of the text after normalising.
type refRune struct {
	ascii  byte // lower case, or notASCII
	word   bool // a word character, to the next one
	dotted bool // followed by a combining dot, which is none
	size   int  // bytes of the text
}

func refRuneAt(text string, i int) refRune {
	c := text[i]
	if c < utf8.RuneSelf {
		if sym := refSymbols[c]; sym != symOther && sym <= symDigit {
			return refRune{ascii: c | 0x20, word: true, size: 1}
		}
		return refRune{ascii: c, word: c == '_', size: 1}
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	switch r {
	case '‘', '’':
		return refRune{ascii: '\'', size: n}
	case '–', '—':
		return refRune{ascii: ' ', size: n}
	case '\u212A': // Kelvin sign
		return refRune{ascii: 'k', word: true, size: n}
	case 'İ':
		return refRune{ascii: 'i', dotted: true, size: n}
	}
	return refRune{ascii: notASCII, word: unicode.IsLetter(r) || unicode.IsNumber(r), size: n}
}

// endsInWord reports whether the last character of a text that is not empty is a word character.
func endsInWord(text string) bool {
	_, n := utf8.DecodeLastRuneInString(text)
	return refRuneAt(text, len(text)-n).word
}

// contractionAt returns the long form of the contraction that begins at i, behind a word boundary, and its length in
// the text; zero if there is none. It is as long as the letters around one apostrophe: what is shorter would not end
// at a word boundary.
func contractionAt(text string, i int) (long string, size int) {
	var w packedWord
	quoted := false
	n, start := 0, i
	for i < len(text) {
		c := refRuneAt(text, i)
		isQuote := c.ascii == '\''
		if !isQuote && (!c.word || c.ascii < 'a' || c.ascii > 'z') || isQuote && quoted {
			if c.word || c.dotted {
				return "", 0
			}
			break
		}
		quoted = quoted || isQuote
		if n++; n > maxPackedWord {
			return "", 0
		}
		if n <= 8 {
			w.head |= uint64(c.ascii) << (8 * (n - 1))
		} else {
			w.tail |= uint64(c.ascii) << (8 * (n - 9))
		}
		i += c.size
	}
	if !quoted {
		return "", 0
	}
	if at := refContractionTable.get(w); at != 0 {
		return refContractions[at-1].long, i - start
	}
	return "", 0
}

// isRefBlank reports whether stripping white space leaves nothing.
func isRefBlank(text string) bool {
	for _, r := range text {
		switch {
		case r >= '\t' && r <= '\r', r >= 0x1C && r <= ' ', r == 0x85, r == 0xA0, r == 0x1680,
			r >= 0x2000 && r <= 0x200A, r == 0x2028, r == 0x2029, r == 0x202F, r == 0x205F, r == 0x3000:
		default:
			return false
		}
	}
	return true
}

// refBlock is how many bytes plain looks at together.
const refBlock = 64

// refMasks tells what the bytes of the block at i are, one bit for each: what a token is made of, and what plain
// cannot read. What is beyond the text is neither.
func refMasks(text string, i int) (words, odd uint64) {
	if i+refBlock <= len(text) {
		block := text[i : i+refBlock]
		for k := 0; k <= refBlock-8; k += 8 {
			w, o := refMasks8(word8(block[k : k+8]))
			words = words>>8 | gatherHigh(w)
			odd = odd>>8 | gatherHigh(o)
		}
		return words, odd
	}
	k := i
	for ; k < len(text); k += 8 {
		w, o := refMasks8(loadText8(text, k))
		words = words>>8 | gatherHigh(w)
		odd = odd>>8 | gatherHigh(o)
	}
	rest := refBlock - (k - i)
	return words >> rest, odd >> rest
}

// refMasks8 tells that for eight bytes, in the high bit of each. It computes in the seven low bits, so that nothing is
// carried to the next byte.
func refMasks8(v uint64) (words, odd uint64) {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	low := v &^ high
	letter := low | 0x20*ones
	letters := (letter + (0x80-'a')*ones) &^ (letter + (0x80-'z'-1)*ones)
	digits := (low + (0x80-'0')*ones) &^ (low + (0x80-'9'-1)*ones)
	others := (low ^ '-'*ones) + 0x7F*ones
	quotes := (low ^ '\''*ones) + 0x7F*ones
	return (letters | digits | ^others) &^ v & high, (v | ^quotes) & high
}

// gatherHigh puts the high bits of all bytes, when nothing else is set, into the highest byte.
func gatherHigh(v uint64) uint64 { return v >> 7 * 0x0102040810204080 & (0xFF << 56) }
