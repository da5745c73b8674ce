package screening

import (
	"unicode"
	"unicode/utf8"
)

// idWord is a word that is put together rune by rune: with letters outside ASCII, or with digits and symbols read as
// letters.
type idWord struct {
	buf    [maxPackedWord]byte
	n      int // letters, also beyond what buf holds
	digits bool
	alike  bool // holds a stroke that may be an i or an l
	other  bool // holds a letter that is nothing in ASCII
}

// leetLetters are the letters that digits and symbols stand for. A stroke is read as i; see shapeOfWord.
var leetLetters = [128]byte{
	'0': 'o', '1': 'i', '2': 'z', '3': 'e', '4': 'a', '5': 's', '6': 'g', '7': 't', '8': 'b', '9': 'g',
	'@': 'a', '$': 's', '!': 'i', '|': 'i', '+': 't',
}

// runes scans from i, where a word or a rune outside ASCII begins, to the end of the word or behind the separator, and
// returns where it stopped.
func (s *idScan) runes(i int) int {
	text := s.text
	for i < len(text) {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(text[i:])
			i += n
			if s.rune(r) {
				s.endWord()
				s.separateRune(r)
				return i
			}
			continue
		}
		kind := idBytes[c]
		switch {
		case kind&byteLetter != 0:
			s.letter(c | 0x20)
		case kind&byteDigit != 0:
			s.digit(c)
		case s.leet && kind&byteSymbol != 0 && s.symbol(i):
			s.letter(leetLetters[c])
			s.word.alike = true
		default:
			s.endWord()
			return i
		}
		i++
	}
	s.endWord()
	return i
}

// rune adds a rune to the word, and reports whether it is a separator instead. Scripts without spaces between words are:
// an English word among them ends where they begin.
func (s *idScan) rune(r rune) bool {
	page := s.table.page(r >> 8)
	if page == nil {
		return true
	}
	switch e := &page[r&0xff]; e.kind {
	case kindIgnorable, kindMark:
	case kindSymbol:
		if !s.leet {
			s.disguised = true
			return true
		}
		s.letters(e.skel)
	case kindLetter:
		switch lower := unicode.ToLower(r); {
		case isASCII(e.fold):
			s.letters(e.fold)
		case isASCII(e.skel), lower == r:
			s.letters(e.skel)
		default: // a capital of which only the small letter is like a Latin one
			return s.rune(lower)
		}
	case kindSequence:
		// Letters with separators, like the parenthesised ones. No part decomposes again.
		for _, part := range e.fold {
			if s.rune(part) {
				s.endWord()
				s.separateRune(part)
			}
		}
	case kindKeptMark: // is part of a letter of its script, and nothing on a Latin one
		if s.word.other {
			s.letter(notASCII)
		}
	default:
		return true
	}
	return false
}

// letters adds what a rune stands for.
func (s *idScan) letters(as string) {
	for i := range len(as) {
		switch c := as[i]; {
		case c == ambiguousStroke:
			s.word.alike = true
			s.letter('i')
		case '0' <= c && c <= '9':
			s.digit(c)
		default:
			s.letter(c)
		}
	}
}

func (s *idScan) digit(c byte) {
	s.word.digits = true
	if s.leet {
		s.word.alike = true
		c = leetLetters[c]
	}
	s.letter(c)
}

func (s *idScan) letter(c byte) {
	w := &s.word
	w.other = w.other || c >= utf8.RuneSelf
	if w.n < len(w.buf) {
		w.buf[w.n] = c
	}
	w.n++
}

// endWord adds the word that is open, if one is.
func (s *idScan) endWord() {
	w := s.word
	if w.n == 0 {
		return
	}
	s.word = idWord{}
	if w.other || w.n > len(w.buf) {
		s.token(0, "")
		return
	}
	text := w.buf[:w.n]
	if w.n == 1 || s.gap.apostrophe {
		s.short(string(text))
		return
	}
	lex := s.patterns.lex
	id := lex.ids.get(packBytes(text))
	if id == 0 && (w.n > 2 || w.alike) {
		id = s.lookAlike(string(text), w.digits && !s.leet)
	}
	s.token(id, string(text))
}

func packBytes(b []byte) (w packedWord) {
	for i := len(b) - 1; i >= 0; i-- {
		w.tail = w.tail<<8 | w.head>>56
		w.head = w.head<<8 | uint64(b[i])
	}
	return w
}

// separateRune adds a separator as the one of ASCII that does the same.
func (s *idScan) separateRune(r rune) {
	c := byte(',')
	switch bits := separatorBits(r); {
	case r < utf8.RuneSelf:
		c = byte(r)
	case isApostrophe(r):
		c = '\''
	case bits&bitSpace != 0:
		c = ' '
	case bits&bitTerminal != 0:
		c = '.'
	}
	s.separate(c, idBytes[c])
}

func isApostrophe(r rune) bool {
	return r == '‘' || r == '’' || r == 'ʼ' || r == '′' || r == '＇' || r == '´' || r == 'ʹ' || r == '‛'
}

// lookAlike finds the word that a word not in the lexicon is taken for by eye. With digits in it the word counts only
// when digits are being read as letters; else it is a sign that they should be.
func (s *idScan) lookAlike(word string, digits bool) uint16 {
	var plain, shape [maxPackedWord]byte
	for i := range len(word) {
		c := word[i]
		if digits && '0' <= c && c <= '9' {
			c = leetLetters[c]
		}
		plain[i] = c | 0x20
	}
	n := shapeOfWord(shape[:], string(plain[:len(word)]))
	id := s.patterns.lex.shapes.get(packBytes(shape[:n]))
	if digits {
		s.disguised = s.disguised || id != 0
		return 0
	}
	return id
}

// symbol reports whether the symbol at i is part of a word when symbols are read as letters. Before they are, it only
// takes note of words that make sense so.
func (s *idScan) symbol(i int) bool {
	text := s.text
	start, end := i, i+1
	for start > 0 && i-start < maxPackedWord && isLeetByte(text[start-1]) {
		start--
	}
	for end < len(text) && end-i < maxPackedWord && isLeetByte(text[end]) {
		end++
	}
	for end > i+1 && text[end-1] == '!' {
		end--
	}
	if text[i] == '!' && end == i+1 || end-start > maxPackedWord {
		return false
	}
	if s.leet {
		return end-start > 1 || text[i] == '@' || text[i] == '|' // "a" and "I"
	}
	if end-start > 2 && !s.disguised {
		var word [maxPackedWord]byte
		for k := start; k < end; k++ {
			if word[k-start] = text[k] | 0x20; leetLetters[text[k]] != 0 {
				word[k-start] = leetLetters[text[k]]
			}
		}
		s.disguised = s.lookAlike(string(word[:end-start]), false) != 0
	}
	return false
}

func isLeetByte(c byte) bool {
	return c < utf8.RuneSelf && idBytes[c]&(byteLetter|byteDigit|byteSymbol) != 0
}
