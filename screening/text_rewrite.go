package screening

import (
	"html"
	"math/bits"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// edit says that bytes of a rewritten text stand for others of the text it was made from.
type edit struct {
	at, size uint32 // in the rewritten text
	from, to uint32 // in its source
}

// sourceOf gives the place in the source of a part of the rewritten text that is not empty.
func sourceOf(edits []edit, start, end int) (from, to int) {
	from, to = start, end
	if n := sort.Search(len(edits), func(i int) bool { return int(edits[i].at) > start }); n > 0 {
		if e := edits[n-1]; start < int(e.at+e.size) {
			from = int(e.from)
		} else {
			from = int(e.to) + start - int(e.at+e.size)
		}
	}
	if n := sort.Search(len(edits), func(i int) bool { return int(edits[i].at) >= end }); n > 0 {
		if e := edits[n-1]; end <= int(e.at+e.size) {
			to = int(e.to)
		} else {
			to = int(e.to) + end - int(e.at+e.size)
		}
	}
	return from, to
}

// rewriter builds a rewritten text. It costs nothing until the first edit.
type rewriter struct {
	source string
	done   int // bytes of the source taken over
	out    strings.Builder
	edits  []edit
}

func (w *rewriter) replace(from, to int, with string) {
	w.out.WriteString(w.source[w.done:from])
	w.edits = append(w.edits, edit{uint32(w.out.Len()), uint32(len(with)), uint32(from), uint32(to)})
	w.out.WriteString(with)
	w.done = to
}

// end gives the rewritten text and its edits, nil if it is the source.
func (w *rewriter) end() (string, []edit) {
	if w.edits == nil {
		return w.source, nil
	}
	w.out.WriteString(w.source[w.done:])
	return w.out.String(), w.edits
}

// maxResolves is how often an escape may be escaped.
const maxResolves = 3

// resolveEscapes puts characters for the percent escapes of URIs and for the character references of HTML, and for
// those that come out of it again. What follows once there are too many is left out.
func resolveEscapes(text string, most *budget) (resolved string, all [][]edit) {
	for range maxResolves {
		w := rewriter{source: text}
		for i := 0; i < len(w.source); {
			if c := text[i]; c != '%' && c != '&' {
				i++
			} else if n, with := escapeAt(text[i:]); n == 0 {
				i++
			} else if !most.take() {
				w.source = w.source[:i]
			} else {
				w.replace(i, i+n, with)
				i += n
			}
		}
		var edits []edit
		if text, edits = w.end(); edits == nil {
			break
		}
		all = append(all, edits)
	}
	return text, all
}

// maxEntity is more than the longest name of a character, with & and semicolon.
const maxEntity = 40

// escapeAt reads an escape at the start of a text: its length, 0 if there is none, and what it stands for.
func escapeAt(text string) (n int, with string) {
	if text[0] == '%' {
		if len(text) < 3 || !isHexDigit(text[1]) || !isHexDigit(text[2]) {
			return 0, ""
		}
		return 3, string([]byte{hexValue(text[1])<<4 | hexValue(text[2])})
	}
	n = 1
	if len(text) > 2 && text[1] == '#' {
		digit := isDigit
		if n = 2; text[2]|0x20 == 'x' {
			digit, n = isHexDigit, 3
		}
		first := n
		for ; n < len(text) && digit(text[n]); n++ {
		}
		if n == first {
			return 0, ""
		}
		if n < len(text) && text[n] == ';' {
			n++
		}
	} else {
		for ; n < min(len(text), maxEntity) && asciiClass[text[n]] == classWord; n++ {
		}
		if n == 1 || n >= len(text) || text[n] != ';' {
			return 0, ""
		}
		n++
	}
	whole := text[:n]
	if text[n-1] != ';' {
		whole += ";"
	}
	if with = html.UnescapeString(whole); with == whole {
		return 0, ""
	}
	return n, with
}

// resolveTags puts gap for each HTML tag and comment. What follows once there are too many is left out.
func resolveTags(text, gap string, most *budget) (string, []edit) {
	w := rewriter{source: text}
	for i := 0; ; {
		if i == len(text) || text[i] != '<' {
			next := strings.IndexByte(text[i:], '<')
			if next < 0 {
				return w.end()
			}
			i += next
		}
		i++
		if i == len(text) || !isLower(text[i]|0x20) && text[i] != '/' && text[i] != '!' && text[i] != '?' {
			continue
		}
		end := i
		for ; end < len(text) && text[end] != '<' && text[end] != '>'; end++ {
		}
		if end < len(text) && text[end] == '>' {
			if !most.take() {
				w.source = w.source[:i-1]
				return w.end()
			}
			w.replace(i-1, end+1, gap)
			end++
		}
		i = end
	}
}

func isDigit(c byte) bool    { return c >= '0' && c <= '9' }
func isHexDigit(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func hexValue(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// appendTrimmed appends the text with blanks for the digits that are glued to a word and for the sentence marks that
// set words apart which are no sentences; nothing if there are none. What follows once there are too many is left out.
// See gluedDigits and noSentenceEnd.
func appendTrimmed(dst []byte, text string, what textTodo, most *trimBudget) []byte {
	from := len(dst)
	blank := func(start, end int, most *budget) {
		if start == end {
			return
		}
		if !most.take() {
			dst = dst[:min(len(dst), from+start)]
			return
		}
		if len(dst) == from {
			dst = append(dst, text...)
		}
		for i := start; i < end; i++ {
			dst[from+i] = ' '
		}
	}
	blankDigits := func(start, end int) { blank(start, end, &most.digits) }
	var padded [8]byte
	word := 0 // end of the last one with glued digits
	for at := 0; at < len(text) && !most.over(); at += 8 {
		var x uint64
		if at+8 <= len(text) {
			x = load8(text, at)
		} else {
			padded = [8]byte{}
			copy(padded[:], text[at:])
			x = load8(padded[:], 0)
		}
		high := x & highBits
		x &^= highBits
		if high == 0 && laneRange(x, '!', '?') == 0 {
			continue // letters and spaces, as most often
		}
		glued := laneRange(x, '0', '9') &^ high
		if glued != 0 {
			letters := laneRange(x|0x20*lanes, 'a', 'z') | high
			beside := letters<<8 | letters>>8
			if at > 0 && isLetterByte(text[at-1]) {
				beside |= 0x80
			}
			if at+8 < len(text) && isLetterByte(text[at+8]) {
				beside |= 0x80 << 56
			}
			glued &= beside
		}
		var marks uint64
		if what&toTrimMarks != 0 {
			marks = (laneEqual(x, '.') | laneEqual(x, '!') | laneEqual(x, '?')) &^ high
		}
		if high != 0 && what&toTrimMarks != 0 {
			marks |= (laneEqual(x, 0xE3&0x7F) | laneEqual(x, 0xEF&0x7F)) & high // of the full-width marks
		}
		for ; glued != 0; glued &= glued - 1 {
			if i := at + bits.TrailingZeros64(glued)/8; i >= word {
				word = gluedDigits(text, i, blankDigits)
			}
		}
		for ; marks != 0; marks &= marks - 1 {
			start, end := noSentenceEnd(text, at+bits.TrailingZeros64(marks)/8)
			blank(start, end, &most.marks)
		}
	}
	return dst
}

// minGluedWord: digits between shorter parts of a word stand for letters rather than between words.
const minGluedWord = 3

// gluedDigits blanks the digits of the word around i that may be left out: those at either end of it, and those between
// parts that may be words. It gives the end of the word.
func gluedDigits(text string, i int, blank func(start, end int)) (end int) {
	for ; i > 0 && (isDigit(text[i-1]) || isLetterByte(text[i-1])); i-- {
	}
	for before, after := 0, 0; ; before = after { // letters beside the digits
		start := i
		for ; i < len(text) && isDigit(text[i]); i++ {
		}
		end = i
		for ; i < len(text) && isLetterByte(text[i]); i++ {
		}
		if i == start {
			return end
		}
		after = i - end
		if few := min(before, after); max(before, after) > 0 && (few == 0 || few >= minGluedWord) {
			blank(start, end)
		}
	}
}

func isLetterByte(c byte) bool { return isLower(c|0x20) || c >= utf8.RuneSelf }

// sentenceMark gives the length of a mark that can end a sentence at the start of a text, 0 if there is none.
func sentenceMark(text string) int {
	switch {
	case text == "":
		return 0
	case text[0] < utf8.RuneSelf:
		if isSentenceMark(text[0]) {
			return 1
		}
	case len(text) >= 3 && (text[:3] == "。" || text[:3] == "！" || text[:3] == "？" || text[:3] == "．"):
		return 3
	}
	return 0
}

// markBefore is sentenceMark for the end of a text.
func markBefore(text string) int {
	switch n := len(text); {
	case n == 0:
		return 0
	case text[n-1] < utf8.RuneSelf:
		return sentenceMark(text[n-1:])
	case n >= 3 && sentenceMark(text[n-3:]) == 3:
		return 3
	}
	return 0
}

func isSentenceMark(c byte) bool { return c == '.' || c == '!' || c == '?' }

// noSentenceEnd gives the place between two words with the sentence mark at i, the first one there, if no sentence ends
// though a capital follows: where the word before or after stands alone between such marks, or where both are in
// capitals. "A child. Abuse of" ends one.
func noSentenceEnd(text string, i int) (start, end int) {
	if i+2 < len(text) && text[i+1] == ' ' && isLower(text[i+2]) {
		return 0, 0 // most often, without a look at what is before
	}
	if i > 1 && (isSentenceMark(text[i-1]) || text[i-1] == ' ' && isSentenceMark(text[i-2])) {
		return 0, 0 // nor at all that is before
	}
	size := sentenceMark(text[i:])
	if size == 0 || size == 1 && i+1 < len(text) && asciiClass[text[i+1]] == classWord {
		return 0, 0
	}
	wordEnd, marked := separatorsBefore(text, i)
	if marked {
		return 0, 0 // else a long run of marks would be gone over for each
	}
	next := i
	for n := 1; n > 0 && next < len(text); next += n {
		if n = sentenceMark(text[next:]); n == 0 && asciiClass[text[next]] < classWord {
			n = 1
		}
	}
	if next == len(text) || isLower(text[next]) {
		return 0, 0
	}
	word, nextEnd := wordEnd, next
	for word > 0 && wordBefore(text, word) {
		word--
	}
	for nextEnd < len(text) && asciiClass[text[nextEnd]] >= classWord && (text[nextEnd] < utf8.RuneSelf || sentenceMark(text[nextEnd:]) == 0) {
		nextEnd++
	}
	after := nextEnd
	for after < len(text) && asciiClass[text[after]] < classWord && sentenceMark(text[after:]) == 0 {
		after++
	}
	before, marked := separatorsBefore(text, word)
	alone := word < wordEnd && (before == 0 || marked) || sentenceMark(text[after:]) > 0
	if alone || inCapitals(text[word:wordEnd]) && inCapitals(text[next:nextEnd]) {
		return i, next
	}
	return 0, 0
}

// separatorsBefore gives the start of the separators before i, and whether a sentence mark ends them there.
func separatorsBefore(text string, i int) (start int, marked bool) {
	for ; i > 0; i-- {
		if markBefore(text[:i]) > 0 {
			return i, true
		}
		if asciiClass[text[i-1]] >= classWord {
			break
		}
	}
	return i, false
}

// wordBefore: is the byte before i part of a word?
func wordBefore(text string, i int) bool {
	c := text[i-1]
	return asciiClass[c] == classWord || c >= utf8.RuneSelf && markBefore(text[:i]) == 0
}

// inCapitals: two letters or more, and none of them small.
func inCapitals(word string) bool {
	return len(word) > 1 && !strings.ContainsFunc(word, unicode.IsLower) && strings.ContainsFunc(word, unicode.IsUpper)
}
