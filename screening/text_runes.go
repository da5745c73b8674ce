package screening

import "unicode/utf8"

// The rune path of textScan: everything that is not plain ASCII.

// wordBuilder is the open token of the rune path.
type wordBuilder struct {
	open, syllable  bool
	bits            runeBits // of the last letter
	start, end      int
	unit, fold      int
	letters         int
	latin, cousin   int // letters by script
	alike           int
	switches        int      // between Latin and its cousins
	script          runeBits // of the last letter of either
	lower, overlong bool
}

// runes scans from i to the first separator, through the rune table, and returns where it stopped.
func (s *textScan) runes(i int) int {
	text := s.text
	for i < len(text) {
		if c := text[i]; c < utf8.RuneSelf {
			e := &s.ascii[c]
			if class := asciiClass[c]; class == classSymbol && s.symbols && s.role(i) == symbolsInWord {
				s.letter(text[i:i+1], text[i:i+1], 0, i, i+1)
			} else if class != classWord {
				break
			} else {
				s.put(e, i, i+1)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		if s.rune(r, i, i+n) {
			i += n
			if r == blackFlag {
				i += emojiTags(text[i:])
			}
			return i
		}
		i += n
	}
	s.flush()
	return i
}

// rune adds one rune outside ASCII and reports whether it was a separator.
func (s *textScan) rune(r rune, start, end int) bool {
	if page := s.table.page(r >> 8); page != nil {
		e := &page[r&0xff]
		switch e.kind {
		case kindSequence:
			return s.sequence(e, start, end)
		case kindIgnorable:
			s.hiding.invisible(r, start, end)
			return false
		}
		return s.put(e, start, end)
	}
	switch {
	case isHan(r):
		c := s.text[start:end]
		return s.put(&runeEntry{kind: kindSyllable, bits: bitKeepsMarks, fold: c, skel: c}, start, end)
	case isHangul(r):
		lead, vowel, trail := jamo(r)
		hangul := s.table.page(0x11)
		s.put(&hangul[lead&0xff], start, end)
		s.put(&hangul[vowel&0xff], start, end)
		if trail != 0 {
			s.put(&hangul[trail&0xff], start, end)
		}
		return false
	}
	return s.put(&runeEntry{}, start, end)
}

// sequence adds a rune that decomposes to words and separators, unless the text has grown past the cap: then each
// such rune is one separator, and the rest of the text is still searched.
func (s *textScan) sequence(e *runeEntry, start, end int) bool {
	s.grown += len(e.fold)
	if s.grown > maxGrowth*len(s.text)+growthSlack {
		s.hiding.note(hidesExpansion, start, end)
		return s.put(&runeEntry{}, start, end)
	}
	for _, r := range e.fold {
		if page := s.table.page(r >> 8); page != nil {
			s.put(&page[r&0xff], start, end)
		} else {
			s.rune(r, start, end)
		}
	}
	return false
}

func (s *textScan) put(e *runeEntry, start, end int) (separated bool) {
	w := &s.word
	switch e.kind {
	case kindLetter:
		s.letter(e.fold, e.skel, e.bits, start, end)
	case kindSyllable:
		s.flush()
		s.open(start, false, true)
		s.add(e.fold, e.skel, e.bits, end)
	case kindJoin:
		if !w.open || !w.syllable {
			s.flush()
			s.open(start, false, true)
		}
		s.add(e.fold, e.skel, e.bits, end)
	case kindMark:
		w.end = end // shown with the letter
	case kindKeptMark:
		if w.open && w.bits&bitKeepsMarks != 0 {
			s.add(e.fold, e.skel, w.bits, end)
		}
	case kindSymbol:
		if s.symbols {
			s.letter(e.fold, e.skel, 0, start, end)
			return false
		}
		s.saw++
		fallthrough
	case kindSeparator:
		s.flush()
		s.separate(e.bits)
		return true
	}
	return false
}

func (s *textScan) letter(fold, skel string, bits runeBits, start, end int) {
	w := &s.word
	if w.open && w.syllable {
		s.flush()
	}
	first := !w.open
	if first {
		s.open(start, bits&bitLower != 0, false)
	}
	if script := bits & (bitLatin | bitCousin); script != 0 {
		if script == bitLatin {
			w.latin++
		} else {
			w.cousin++
		}
		if w.script|script == bitLatin|bitCousin && w.script != script {
			w.switches++
		}
		w.script = script
	}
	// A Greek letter in front is how formulas are named (αhelix is a typing habit, chιld is not).
	if bits&bitAlike != 0 && !(first && bits&bitGreek != 0 && bits&bitLower != 0) {
		w.alike++
	}
	s.hiding.letter(first, bits, start)
	w.letters++
	s.add(fold, skel, bits, end)
}

func (s *textScan) open(start int, lower, syllable bool) {
	s.begin(start, lower, syllable)
	s.word = wordBuilder{
		open: true, syllable: syllable, start: start, lower: lower, unit: s.used, fold: len(s.folds),
	}
}

func (s *textScan) add(fold, skel string, bits runeBits, end int) {
	w := &s.word
	w.end, w.bits = end, bits
	if len(s.folds)-w.fold+len(fold) > maxTokenBytes || s.used-w.unit+len(skel) > maxTokenBytes {
		w.overlong = true
		return
	}
	s.folds = append(s.folds, fold...)
	s.room(s.used + len(skel))
	s.used += copy(s.units[s.used:], skel)
}

// flush ends the open token.
func (s *textScan) flush() {
	w := &s.word
	if !w.open {
		return
	}
	w.open = false
	s.afterSyll, s.afterLong = w.syllable, w.syllable || w.letters >= minAbbreviated
	if w.latin > 0 && w.latin+w.cousin > 2 && (w.alike > 0 || w.switches > 1) {
		s.hiding.note(hidesMixedScript, w.start, w.end)
	}
	if w.overlong {
		s.used, s.folds = w.unit, s.folds[:w.fold]
		s.stop(w.start)
		return
	}
	units, classes := s.units[w.unit:s.used], s.classes[w.unit:s.used]
	letters := false
	for i, c := range units {
		letters = letters || c > '9'
		class := spellingClass[c]
		if w.syllable {
			class = stopUnit
		}
		classes[i] = class
	}
	// Here capitals are gone from the units, except the ambiguous stroke; the text still has them.
	if w.latin > 0 && innerCapital(s.text[w.start:w.end]) {
		markStrokes(units)
	}
	var t *textToken
	s.toks, t = nextToken(s.toks)
	t.hash, t.start, t.end = hashBytes(s.folds[w.fold:]), uint32(w.start), uint32(w.end)
	t.unit, t.units = uint32(w.unit), uint16(len(units))
	t.fold, t.folds = uint32(w.fold), uint16(len(s.folds)-w.fold)
	if s.skels != nil && letters && (w.end-w.start > 1 || s.skels.anyOf(1)) {
		t.lookalikes = s.lookalikes(w.unit, len(units), t.hash)
	}
}

func innerCapital(word string) bool {
	for i := 1; i < len(word); i++ {
		if asciiShape[word[i]]&shapeUpper != 0 {
			return true
		}
	}
	return false
}
