package console

import (
	"fmt"
	"html/template"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible gives text as HTML in which nothing can hide: it is escaped, and what
// has no shape of its own, reorders a line or controls it is spelled out. Line
// breaks and tabs stay.
func visible(text string) template.HTML {
	var b strings.Builder
	writeVisible(&b, text)
	return template.HTML(b.String()) //nolint:gosec // every part is escaped or ours
}

func writeVisible(b *strings.Builder, text string) { spellOut(b, text, true) }

// spellOut writes text; named adds what kind of thing each hidden character is,
// which takes more room.
func spellOut(b *strings.Builder, text string, named bool) {
	plain := 0 // start of what is written as it is
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !hides(r, size, text[:i]) {
			i += size
			continue
		}
		template.HTMLEscape(b, []byte(text[plain:i]))
		n := 0
		for unit := text[i : i+size]; strings.HasPrefix(text[i:], unit); i += size {
			n++
		}
		plain = i
		b.WriteString(`<b class="ch"`)
		if named {
			b.WriteString(` title="` + hiddenName(r) + `"`)
		}
		b.WriteString(">")
		if size == 1 && r == utf8.RuneError {
			b.WriteString("bad byte")
		} else {
			fmt.Fprintf(b, "U+%04X", r)
		}
		if n > 1 {
			fmt.Fprintf(b, " ×%d", n)
		}
		b.WriteString("</b>")
	}
	template.HTMLEscape(b, []byte(text[plain:]))
}

// hides reports whether a rune must be spelled out, after what stands before it.
func hides(r rune, size int, before string) bool {
	switch {
	case r == '\n' || r == '\t' || r == ' ':
		return false
	case r < 0x7f:
		return r < ' '
	case r == utf8.RuneError && size == 1, r == 0x2800, // braille without dots
		!unicode.IsPrint(r), // controls, bidi, formats, tags, separators, unassigned
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return true
	case unicode.In(r, unicode.Mn, unicode.Me): // a mark sits on a letter; a heap of them covers its neighbours
		return marksBefore(before) >= 3
	}
	return false
}

func marksBefore(text string) (n int) {
	for n < 3 {
		r, size := utf8.DecodeLastRuneInString(text)
		if size == 0 || !unicode.In(r, unicode.Mn, unicode.Me) {
			return n
		}
		text = text[:len(text)-size]
		n++
	}
	return n
}

// hiddenName says what kind of thing is spelled out.
func hiddenName(r rune) string {
	switch {
	case r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c:
		return "changes the direction of the text"
	case r >= 0xe0000 && r <= 0xe007f:
		return "tag character, invisible"
	case unicode.IsControl(r):
		return "control character"
	case unicode.IsSpace(r):
		return "unusual space"
	case unicode.In(r, unicode.Mn, unicode.Me) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return "heaped combining marks"
	}
	return "invisible character"
}

// cut shortens text to at most n runes, at their borders, and says so.
func cut(n int, text string) string {
	if len(text) <= n {
		return text
	}
	for i := range text {
		if n == 0 {
			return text[:i] + "…"
		}
		n--
	}
	return text
}
