package screening

import (
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/mtibben/confusables"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Normalisation works rune by rune from a table instead of running whole-string transforms. That is possible because
// the form phrases are compared in has no marks: once marks are dropped, the order and the composition of what is left
// do not depend on neighbours, so "strip ignorables, NFKC, fold, NFKC, NFD, drop marks" is a map over single runes.
// It keeps every letter next to the byte it came from, which is what lets a hit point into the text as submitted.
//
// Two forms come out of it:
//
//   - the folded form decides what a text says: compatibility forms (width, ligatures, mathematical alphabets) and case
//     are gone, and so are marks, where a script can be read without them;
//   - the skeleton decides what a text looks like: each letter as it was written is replaced by the Latin letter a
//     reader would take it for (Unicode TS 39). It rewrites innocent text as well, so it is only ever compared with
//     another skeleton.
//
// Marks are dropped for the scripts in markOptional. Elsewhere (Devanagari vowels, Thai, the voicing of kana) a mark is
// as much part of the spelling as a letter, and stays.

// runeKind says what a rune does to the word it stands in.
type runeKind uint8

const (
	kindSeparator runeKind = iota // ends a word; also everything unassigned or private
	kindIgnorable                 // shows nothing: as if it were not there
	kindMark                      // an optional mark: as if it were not there
	kindKeptMark                  // part of the letter before, if that is of a script that keeps marks
	kindLetter                    // letters and digits of scripts that separate words
	kindSyllable                  // a character of a script without spaces between words: a word of its own
	kindJoin                      // continues a syllable (vowel and final consonant of Hangul)
	kindSymbol                    // a separator that looks like a letter: one only where symbols are read as letters
	kindSequence                  // decomposes to several of the above; fold holds the decomposition
)

type runeBits uint16

const (
	bitLower      runeBits = 1 << iota // does not begin a sentence: a lower-case letter or a digit
	bitLatin                           // a letter of the Latin script
	bitCousin                          // a letter of a script that shares shapes with Latin
	bitAlike                           // a letter of such a script that passes for a Latin one
	bitGreek                           // of the Greek script
	bitCursive                         // of a script that uses invisible joiners in its spelling
	bitKeepsMarks                      // of a script whose marks are part of the spelling
	bitSpace                           // separator: white space
	bitTerminal                        // separator: ends a sentence if white space follows
	bitFullStop                        // separator: ends a sentence by itself (the terminals outside ASCII)
	bitDot                             // separator: may belong to an abbreviation
	bitClause                          // separator: comma, colon or semicolon
)

// ambiguousStroke stands in a skeleton for a vertical stroke that may be read as i or as l. Every other letter of a
// skeleton is lower case.
const ambiguousStroke = 'I'

type runeEntry struct {
	fold string
	skel string
	kind runeKind
	bits runeBits
}

// runeTable remembers what each rune does, by rune>>8 and rune&0xff. A page is worked out when a text first needs it: the
// whole table would cost every process, and every run of the command line, some fifty milliseconds. Goroutines that race
// for a page store the same content.
type runeTable struct {
	pages [unicode.MaxRune>>8 + 1]atomic.Pointer[[256]runeEntry]
}

// page returns the entries of a page, nil where every rune follows from its range alone.
func (t *runeTable) page(n rune) *[256]runeEntry {
	if p := t.pages[n].Load(); p != nil {
		return p
	}
	return t.build(n)
}

func (t *runeTable) build(n rune) *[256]runeEntry {
	if fromRange(n) {
		return nil
	}
	b := tableBuilder{caser: cases.Fold()}
	entries := new([256]runeEntry)
	for i := range entries {
		entries[i] = b.entry(n<<8 + rune(i))
	}
	t.pages[n].Store(entries)
	return entries
}

// textTable is the one table of the process: what it remembers follows from the code alone.
var textTable = sync.OnceValue(func() *runeTable { return new(runeTable) })

// markOptional lists the scripts whose combining marks are accents, vowel points or decoration.
var markOptional = []*unicode.RangeTable{
	unicode.Common, unicode.Inherited, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Arabic, unicode.Hebrew,
	unicode.Syriac, unicode.Armenian, unicode.Georgian, unicode.Coptic, unicode.Glagolitic, unicode.Gothic,
}

// withoutSpaces lists the scripts in which a phrase is found inside running text. Hangul is here although it has
// spaces, because particles are written onto the word.
var withoutSpaces = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Hangul, unicode.Yi, unicode.Tangut,
	unicode.Nushu, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tai_Le, unicode.New_Tai_Lue,
	unicode.Tai_Tham, unicode.Tai_Viet, unicode.Javanese, unicode.Balinese,
}

// latinCousins lists the scripts whose letters are mixed into Latin words to deceive.
var latinCousins = []*unicode.RangeTable{
	unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu,
}

var cursive = []*unicode.RangeTable{unicode.Arabic, unicode.Syriac, unicode.Nko, unicode.Mongolian}

// Derived code points of the property Default_Ignorable_Code_Point, by its definition in the Unicode character
// database: a list kept by hand misses thousands.
func isIgnorable(r rune) bool {
	if !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Cf, unicode.Variation_Selector) {
		return false
	}
	annotation := r >= 0xFFF9 && r <= 0xFFFB
	hieroglyphControl := r >= 0x13430 && r <= 0x1343F
	return !annotation && !hieroglyphControl && !unicode.In(r, unicode.White_Space, unicode.Prepended_Concatenation_Mark)
}

// isTatweel: a line that lengthens a word without being a letter of it (Arabic, N'Ko).
func isTatweel(r rune) bool { return r == 0x0640 || r == 0x07FA }

// fromRange tells whether no rune of a page needs an entry.
func fromRange(page rune) bool {
	switch {
	case page >= 0x34 && page <= 0x4C, page >= 0x4E && page <= 0x9F: // Han
	case page >= 0xAC && page <= 0xD6: // Hangul syllables
	case page >= 0xD8 && page <= 0xF8: // surrogates, private use
	case page >= 0x200 && page <= 0x2F7, page >= 0x2FB && page <= 0xDFF, page >= 0xE10: // Han, unassigned, private use
	default:
		return false
	}
	return true
}

func isHan(r rune) bool { return r >= 0x3400 && r <= 0x9FFF || r >= 0x20000 && r <= 0x3FFFD }

func isHangul(r rune) bool { return r >= 0xAC00 && r <= 0xD7A3 }

// jamo splits a precomposed Hangul syllable; trail is 0 for a syllable that ends in its vowel.
func jamo(r rune) (lead, vowel, trail rune) {
	const vowels, trails = 21, 28
	s := r - 0xAC00
	lead, vowel, trail = 0x1100+s/(vowels*trails), 0x1161+s/trails%vowels, 0
	if s%trails != 0 {
		trail = 0x11A7 + s%trails
	}
	return lead, vowel, trail
}

type tableBuilder struct{ caser cases.Caser }

// entry composes what a rune does from what the runes of its compatibility decomposition do.
func (b *tableBuilder) entry(r rune) runeEntry {
	if isIgnorable(r) || isTatweel(r) {
		// Before decomposing: the Hangul fillers decompose to letters that show.
		return runeEntry{kind: kindIgnorable}
	}
	parts := norm.NFKD.String(string(r))
	if len(parts) == utf8.RuneLen(r) && parts == string(r) {
		return b.leaf(r)
	}
	first, _ := utf8.DecodeRuneInString(parts)
	whole := b.leaf(first)
	for _, c := range parts[utf8.RuneLen(first):] {
		part := b.leaf(c)
		switch {
		case part.kind == kindMark:
		case part.kind == kindKeptMark && whole.bits&bitKeepsMarks == 0:
		case part.kind == kindSeparator && whole.kind == kindSeparator:
			whole.bits |= part.bits
		case part.kind == kindLetter && whole.kind == kindLetter,
			part.kind == kindKeptMark && (whole.kind == kindLetter || whole.kind == kindSyllable):
			whole.fold += part.fold
			whole.skel += part.skel
		default:
			return runeEntry{kind: kindSequence, fold: parts}
		}
	}
	if whole.kind == kindSeparator && whole.bits&bitTerminal != 0 {
		whole.bits |= bitFullStop
	}
	return whole
}

// leaf classifies a rune that does not decompose.
func (b *tableBuilder) leaf(r rune) runeEntry {
	switch {
	case isIgnorable(r), isTatweel(r):
		return runeEntry{kind: kindIgnorable}
	case unicode.Is(unicode.M, r):
		if isOptionalMark(r) {
			return runeEntry{kind: kindMark}
		}
		return runeEntry{kind: kindKeptMark, fold: string(r), skel: string(r)}
	}
	seen, alike := looksLike(r)
	switch {
	case unicode.In(r, unicode.L, unicode.N) && !isModifierQuote(r):
		return b.letter(r, seen, alike)
	case isBadgeLetter(r):
		return runeEntry{kind: kindLetter, fold: string(r), skel: seen}
	case alike && r >= utf8.RuneSelf:
		return runeEntry{kind: kindSymbol, fold: string(r), skel: seen}
	}
	return runeEntry{kind: kindSeparator, bits: separatorBits(r)}
}

func (b *tableBuilder) letter(r rune, seen string, alike bool) runeEntry {
	e := runeEntry{kind: kindLetter, fold: b.foldRune(r)}
	if e.skel = seen; seen == "" {
		e.skel = b.foldSkeleton(r, e.fold)
	}
	if unicode.IsLower(r) || unicode.Is(unicode.N, r) {
		e.bits |= bitLower
	}
	switch {
	case unicode.Is(unicode.Latin, r):
		e.bits |= bitLatin
	case unicode.In(r, latinCousins...):
		if e.bits |= bitCousin; alike {
			e.bits |= bitAlike
		}
	}
	if unicode.Is(unicode.Greek, r) {
		e.bits |= bitGreek
	}
	if unicode.In(r, cursive...) {
		e.bits |= bitCursive
	}
	if !unicode.In(r, markOptional...) {
		e.bits |= bitKeepsMarks
	}
	if unicode.In(r, withoutSpaces...) {
		e.kind = kindSyllable
		e.bits |= bitKeepsMarks
		if r >= 0x1160 && r <= 0x11FF || r >= 0xD7B0 && r <= 0xD7FF {
			e.kind = kindJoin
		}
	}
	return e
}

// foldRune is full case folding without marks. All four letters i of Turkish are one: which of them an upper-case I
// stands for depends on a language that nothing states.
func (b *tableBuilder) foldRune(r rune) string {
	if r == 'ı' {
		return "i"
	}
	return b.foldString(string(r))
}

func (b *tableBuilder) foldString(s string) string {
	return dropMarks(norm.NFKD.String(b.caser.String(s)))
}

// foldSkeleton is for letters that resemble no Latin one: the folded prototype, so that other scripts have their own
// lookalikes too.
func (b *tableBuilder) foldSkeleton(r rune, fold string) string {
	s := b.foldString(confusables.Skeleton(string(r)))
	for _, c := range s {
		if !unicode.In(c, unicode.L, unicode.N) {
			return fold
		}
	}
	if s == "" {
		return fold
	}
	return s
}

func dropMarks(s string) string {
	return strings.Map(func(r rune) rune {
		if isOptionalMark(r) {
			return -1
		}
		return r
	}, s)
}

func isOptionalMark(r rune) bool {
	kana := r == 0x3099 || r == 0x309A // the voicing marks, of no script by themselves
	return unicode.Is(unicode.M, r) && !kana && unicode.In(r, markOptional...)
}

// looksLike returns the skeleton of r if that is ASCII, and whether r itself, not only its capital, passes for one
// Latin letter. A letter whose lower case resembles nothing but whose capital does (Cyrillic ve) is taken for the
// capital's Latin letter: it is what fancy-text generators use it for.
func looksLike(r rune) (skel string, alike bool) {
	if r < utf8.RuneSelf {
		if r == ambiguousStroke {
			return string(ambiguousStroke), true
		}
		return strings.ToLower(string(r)), unicode.IsLetter(r)
	}
	if c := enclosedOrSmallCapital(r); c != 0 {
		return string(c), true
	}
	if s := asciiSkeleton(r); s != "" {
		return s, len(s) == 1 && !unicode.IsDigit(rune(s[0]))
	}
	if up := unicode.ToUpper(r); up != r {
		return asciiSkeleton(up), false
	}
	return "", false
}

func asciiSkeleton(r rune) string {
	s := strings.ReplaceAll(dropMarks(confusables.Skeleton(string(r))), "rn", "m")
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		switch c := s[i]; {
		case c == 'l' || c == 'I' || c == '1':
			out = append(out, ambiguousStroke)
		case c == '0':
			out = append(out, 'o')
		case c >= 'a' && c <= 'z' || c >= '2' && c <= '9':
			out = append(out, c)
		case c >= 'A' && c <= 'Z':
			out = append(out, c|0x20)
		default:
			return ""
		}
	}
	return string(out)
}

// isModifierQuote: letters by category that everybody reads, and TS 39 maps, as an apostrophe or another stop.
func isModifierQuote(r rune) bool {
	if !unicode.Is(unicode.Lm, r) {
		return false
	}
	s := confusables.Skeleton(string(r))
	return strings.Trim(s, "'`\".,:;-^~!") == ""
}

// isBadgeLetter: letters on a dark disc or square, which have no decomposition.
func isBadgeLetter(r rune) bool { return r >= 0x1F150 && r <= 0x1F169 || r >= 0x1F170 && r <= 0x1F189 }

// enclosedOrSmallCapital adds to TS 39 what text generators offer as fonts: badges, regional indicators and the
// phonetic small capitals that the standard's table leaves out.
func enclosedOrSmallCapital(r rune) rune {
	switch {
	case r >= 0x1F150 && r <= 0x1F169:
		return 'a' + r - 0x1F150
	case r >= 0x1F170 && r <= 0x1F189:
		return 'a' + r - 0x1F170
	case r >= 0x1F1E6 && r <= 0x1F1FF:
		return 'a' + r - 0x1F1E6
	}
	const capitals, latin = "ᴀʙᴅᴇꜰɢʜᴊᴋʟᴍɴᴘʀᴛ", "abdefghjklmnprt"
	n := 0
	for _, c := range capitals {
		if c == r {
			return rune(latin[n])
		}
		n++
	}
	return 0
}

func separatorBits(r rune) runeBits {
	var bits runeBits
	switch {
	case unicode.IsSpace(r):
		bits = bitSpace
	case unicode.Is(unicode.Sentence_Terminal, r):
		switch bits = bitTerminal; {
		case r == '.':
			bits |= bitDot
		case r >= utf8.RuneSelf:
			bits |= bitFullStop
		}
	case strings.ContainsRune(",;:、،؛", r):
		bits = bitClause
	}
	return bits
}
