package screening

import (
	"strings"
	"unicode"
)

// withoutWords is the one form that loses something: where words begin. One attack in twenty may be missed in it.
const withoutWords = "letter-spacing throughout"

// surfaceForms are disguises: each writes a text so that a reader takes it for the same.
var surfaceForms = []struct {
	name  string
	write func(text string) string
}{
	{"plain", func(s string) string { return s }},
	{"upper case", strings.ToUpper},
	{"newlines", replaceSpaces("\n")},
	{"windows newlines", replaceSpaces("\r\n")},
	{"tabs", replaceSpaces("\t")},
	{"no-break spaces", replaceSpaces("\u00a0")},
	{"ideographic spaces", replaceSpaces("\u3000")},
	{"double spaces", replaceSpaces("  ")},
	{"underscores", replaceSpaces("_")},
	{"homoglyphs", mapLetters(homoglyphs)},
	{"greek capitals", func(s string) string { return mapLetters(greekCapitals)(strings.ToUpper(s)) }},
	{"full width", mapRunes(func(r rune) rune {
		if r > ' ' && r < 0x7f {
			return r + 0xFEE0
		}
		return r
	})},
	{"full width and spaces", func(s string) string {
		return replaceSpaces("\u3000")(mapRunes(func(r rune) rune {
			if r > ' ' && r < 0x7f {
				return r + 0xFEE0
			}
			return r
		})(s))
	}},
	{"mathematical", mapRunes(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return 0x1D41A + r - 'a'
		case 'A' <= r && r <= 'Z':
			return 0x1D400 + r - 'A'
		}
		return r
	})},
	{"zero width", insideWords("\u200b")},
	{"zero width joiners", insideWords("\u200d\u2060")},
	{"soft hyphens", insideWords("\u00ad")},
	{"accents", mapLetters(accents)},
	{"combining accents", insideWords("\u0301")},
	{"many combining accents", insideWords("\u0336\u0321\u0302")},
	{"leet", mapLetters(leet)},
	{"leet with symbols", mapLetters(leetSymbols)},
	{"letter-spacing", spaceLetters(" ", "  ")},
	{"wide letter-spacing", spaceLetters(" ", "   ")},
	{withoutWords, spaceLetters(" ", " ")},
	{"dotted letters", spaceLetters(".", " ")},
	{"hyphenated letters", spaceLetters("-", "  ")},
	{"underscored letters", spaceLetters("_", "__")},
	{"upper-case letter-spacing", func(s string) string { return spaceLetters(" ", "  ")(strings.ToUpper(s)) }},
	{"homoglyphs and zero width", func(s string) string { return insideWords("\u200b")(mapLetters(homoglyphs)(s)) }},
	{"full-width leet", func(s string) string {
		return mapRunes(func(r rune) rune {
			if r > ' ' && r < 0x7f {
				return r + 0xFEE0
			}
			return r
		})(mapLetters(leet)(s))
	}},
	{"curly quotes", func(s string) string { return strings.ReplaceAll(s, "'", "’") }},
}

func replaceSpaces(with string) func(string) string {
	return func(s string) string { return strings.ReplaceAll(s, " ", with) }
}

func mapRunes(f func(rune) rune) func(string) string {
	return func(s string) string { return strings.Map(f, s) }
}

// mapLetters replaces the letters that m has.
func mapLetters(m map[rune]string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for _, r := range s {
			if to, ok := m[r]; ok {
				b.WriteString(to)
			} else {
				b.WriteRune(r)
			}
		}
		return b.String()
	}
}

// insideWords puts something between every two letters of a word.
func insideWords(what string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		before := ' '
		for _, r := range s {
			if unicode.IsLetter(before) && unicode.IsLetter(r) {
				b.WriteString(what)
			}
			b.WriteRune(r)
			before = r
		}
		return b.String()
	}
}

// spaceLetters writes the letters of a word apart.
func spaceLetters(between, words string) func(string) string {
	return func(s string) string {
		apart := strings.Fields(s)
		for i, word := range apart {
			apart[i] = strings.Join(strings.Split(word, ""), between)
		}
		return strings.Join(apart, words)
	}
}

var (
	homoglyphs = map[rune]string{
		'a': "а", 'c': "с", 'e': "е", 'i': "і", 'j': "ј", 'o': "о", 'p': "р", 's': "ѕ", 'x': "х", 'y': "у", 'd': "ԁ",
		'h': "һ", 'g': "ɡ", 'v': "ѵ", 'w': "ԝ", 'q': "ԛ", 'l': "ⅼ", 'A': "А", 'B': "В", 'C': "С", 'E': "Е", 'H': "Н",
		'I': "І", 'K': "К", 'M': "М", 'O': "О", 'P': "Р", 'S': "Ѕ", 'T': "Т", 'X': "Х", 'Y': "У",
	}
	greekCapitals = map[rune]string{
		'A': "Α", 'B': "Β", 'E': "Ε", 'H': "Η", 'I': "Ι", 'K': "Κ", 'M': "Μ", 'N': "Ν", 'O': "Ο", 'P': "Ρ", 'T': "Τ",
		'X': "Χ", 'Y': "Υ", 'Z': "Ζ",
	}
	accents = map[rune]string{
		'a': "á", 'c': "ç", 'e': "ê", 'i': "ï", 'n': "ñ", 'o': "ø", 's': "š", 'u': "ů", 'y': "ÿ", 'r': "ř", 'd': "ď",
		'l': "ł", 'A': "Å", 'E': "É", 'I': "Í", 'O': "Õ", 'U': "Ü", 'Y': "Ý",
	}
	leet = map[rune]string{
		'a': "4", 'e': "3", 'i': "1", 'o': "0", 's': "5", 't': "7", 'A': "4", 'E': "3", 'I': "1", 'O': "0", 'S': "5",
		'T': "7",
	}
	leetSymbols = map[rune]string{
		'a': "@", 'e': "3", 'i': "!", 'o': "0", 's': "$", 'l': "1", 'b': "8", 'A': "@", 'E': "3", 'I': "|", 'O': "0",
		'S': "$",
	}
)
