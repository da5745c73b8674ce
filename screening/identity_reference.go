package screening

import (
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
// Nearly all text is ASCII without apostrophes and takes the loop in scan. What begins a token with anything else in
// it goes through unusual, rune by rune.
type refScan struct {
	text   string
	marker markerState

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
	s.scan()
	if s.marker == markerFound {
		s.fired |= firedMarker
	}
	if s.seen&(refVerb|refFrame) == refVerb|refFrame {
		s.fired |= firedPair
	}
	return TextVerdict{IdentityOverride: s.fired != 0, Empty: isRefBlank(text), Rules: refRuleNames[s.fired]}
}

func (s *refScan) scan() {
	text := s.text
	for i := 0; i < len(text); {
		sym := refSymbols[text[i]]
		if sym == symNonASCII {
			i = s.unusual(i)
			continue
		}
		if sym == symOther || sym > symDigit {
			s.marker = markerAutomaton[s.marker][sym]
			i++
			continue
		}
		start, marker := i, s.marker
		for {
			marker = markerAutomaton[marker][sym&(symCount-1)]
			if i++; i == len(text) {
				break
			}
			if sym = refSymbols[text[i]]; sym == symOther || sym > symHyphen {
				break
			}
		}
		if i < len(text) && (sym == symApostrophe || sym == symNonASCII) {
			i = s.unusual(start)
			continue
		}
		s.marker = marker
		var class uint16
		if i-start <= maxPackedWord {
			class = refWords.get(packWord(text, start, i))
		}
		s.token(class)
	}
}

// token counts a token and looks back for what it makes a pair with. Looking back from both sides of a pair is the
// same as looking to both sides of the qualifier.
func (s *refScan) token(class uint16) {
	s.tokens++
	if class == 0 {
		return
	}
	s.seen |= class
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
	s.token(class)
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
