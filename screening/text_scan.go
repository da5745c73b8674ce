package screening

import "slices"

// A token is a word of the text, or one syllable of a script without spaces, or a stop: a place no phrase may cross.
type textToken struct {
	hash         uint64 // of the folded form; 0 for a stop
	start, end   uint32 // bytes of the text
	unit         uint32 // first byte in textScan.units
	fold         uint32 // first byte in textScan.folds
	lookalikes   uint32 // list of the vocabulary's words with the same skeleton, see skeletonIndex; 0 if there is none
	units, folds uint16 // lengths; without folds the token is ASCII, and its folded form the text in lower case
}

const (
	// maxTextBytes keeps offsets in 32 bits. The wire stops texts long before.
	maxTextBytes = 1 << 30
	// maxTokenBytes: no phrase is longer, so a longer word can be no part of one and becomes a stop.
	maxTokenBytes = maxPhraseBytes
	// minAbbreviated: a dot after a shorter word may belong to an abbreviation and ends no sentence.
	minAbbreviated = 4
	// stopUnit stands in the skeletons for everything that spelled-out matching may not cross.
	stopUnit = 1
	// maxTrailingSymbols: a longer run of ! and | after a word is nothing but punctuation.
	maxTrailingSymbols = 4
	// Growth beyond maxGrowth times the text, plus a slack that keeps single ligatures out, is an expansion attack.
	maxGrowth, growthSlack = 4, 1024
)

// textScan cuts one text into tokens, block by block, so that scratch does not grow with the text.
//
// ASCII words take a short path (class table, lower case by one bit); everything else goes through the rune table.
// Both leave the same hashes for the same folded form.
type textScan struct {
	text    string
	pos     int
	toks    []textToken
	units   []byte // skeletons, token after token
	classes []byte // units by spelling class
	used    int    // bytes of units and classes in use
	folds   []byte // folded forms of the tokens that are not plain ASCII

	table   *runeTable
	ascii   *[256]runeEntry
	skels   *skeletonIndex // of the vocabulary; nil: leave skeletons out
	spelled bool           // fill units and classes (spelled-out matching needs them)
	symbols bool           // read symbols as the letters they stand for
	saw     int            // symbols met that could be read so
	run     symbolRun

	gap       runeBits // separators since the last token
	afterLong bool     // the last token is no abbreviation
	afterSyll bool     // the last token is a syllable

	word   wordBuilder
	hiding obfuscationBuilder
	grown  int
	tmp    []byte
}

func (s *textScan) setTable(t *runeTable) { s.table, s.ascii = t, t.page(0) }

func (s *textScan) reset(text string) {
	s.text, s.pos = text, 0
	s.toks, s.used, s.folds = s.toks[:0], 0, s.folds[:0]
	s.gap, s.afterLong, s.afterSyll, s.saw, s.grown = 0, false, false, 0, 0
	s.word, s.run = wordBuilder{}, symbolRun{}
	s.hiding.reset(len(text))
}

// seek goes on from another place of the text, where no word goes on, as if the text began there.
func (s *textScan) seek(pos int) {
	s.pos = pos
	s.toks, s.used, s.folds = s.toks[:0], 0, s.folds[:0]
	s.gap, s.afterLong, s.afterSyll = 0, false, false
}

// reach scans on until there is a token i, and reports whether there is one.
func (s *textScan) reach(i int) bool {
	if i >= len(s.toks) {
		s.fill(i + 1)
	}
	return i < len(s.toks)
}

// drop forgets the first n tokens.
func (s *textScan) drop(n int) {
	if n >= len(s.toks) {
		s.toks, s.used, s.folds = s.toks[:0], 0, s.folds[:0]
		return
	}
	unit, fold := s.toks[n].unit, s.toks[n].fold
	s.toks = s.toks[:copy(s.toks, s.toks[n:])]
	copy(s.units, s.units[unit:s.used])
	s.used = copy(s.classes, s.classes[unit:s.used])
	s.folds = s.folds[:copy(s.folds, s.folds[fold:])]
	for i := range s.toks {
		s.toks[i].unit -= unit
		s.toks[i].fold -= fold
	}
}

// fill scans until there are limit tokens or the text ends, and reports whether it ended.
func (s *textScan) fill(limit int) bool {
	text, i := s.text, s.pos
	for i < len(text) && len(s.toks) < limit {
		switch asciiClass[text[i]] {
		case classWord:
			i = s.asciiWord(i, limit)
		case classSymbol:
			role := s.role(i)
			if role != symbolsApart {
				s.saw++
			}
			if s.symbols && role == symbolsInWord {
				i = s.asciiWord(i, limit)
				continue
			}
			if s.symbols && role == symbolsAfterWord {
				s.trailingSymbols(i)
			}
			for ; i < s.run.end; i++ {
				s.separate(s.ascii[text[i]].bits)
			}
		case classOther:
			i = s.runes(i)
		default:
			s.separate(s.ascii[text[i]].bits)
			i++
		}
	}
	s.pos = i
	return i >= len(text)
}

// asciiWord appends at least the word that begins at i with an ASCII character, and returns where it stopped.
func (s *textScan) asciiWord(i, limit int) int {
	if s.gap > bitSpace {
		s.begin(i, asciiShape[s.text[i]]&shapeUpper == 0, false)
	}
	if s.symbols {
		return s.symbolWord(i)
	}
	if next := s.asciiRun(i, limit); next > i {
		return next
	}
	end := i + 1
	for end < len(s.text) && asciiClass[s.text[end]] == classWord {
		end++
	}
	if end < len(s.text) && asciiClass[s.text[end]] == classOther {
		return s.runes(i)
	}
	s.asciiToken(i, end)
	return end
}

// symbolWord is asciiWord where symbols are letters.
func (s *textScan) symbolWord(start int) int {
	text, at := s.text, s.used
	s.room(at + maxTokenBytes)
	i := start
	for ; i < len(text); i++ {
		c := text[i]
		if class := asciiClass[c]; class == classOther {
			return s.runes(start)
		} else if class != classWord && (class != classSymbol || s.role(i) != symbolsInWord) {
			break
		}
		if n := i - start; n < maxTokenBytes {
			s.units[at+n], s.classes[at+n] = asciiUnit[c], spellingClass[c]
		}
	}
	if i-start > maxTokenBytes {
		s.stop(start)
	} else {
		s.asciiWordToken(start, i)
	}
	return i
}

// trailingSymbols makes tokens of the run at i, so that a phrase can end at each place where letters may turn into
// punctuation: after the last @ or $, and after the first ! or | from there.
func (s *textScan) trailingSymbols(i int) {
	if s.run.end == i+1 { // as nearly always
		s.spell(i, i+1)
		s.asciiWordToken(i, i+1)
		return
	}
	cut := s.run.end
	for cut > i && s.text[cut-1] != '@' && s.text[cut-1] != '$' {
		cut--
	}
	for _, end := range [...]int{cut, min(cut+1, s.run.end), s.run.end} {
		if end > i {
			s.spell(i, end)
			s.asciiWordToken(i, end)
			i = end
		}
	}
}

func (s *textScan) separate(bits runeBits) {
	if bits&bitSpace != 0 && s.gap&bitTerminal != 0 {
		bits |= bitFullStop
	}
	s.gap |= bits
}

// symbolRun is a run of symbols and what it may be.
type symbolRun struct {
	start, end int
	role       symbolRole
}

type symbolRole uint8

const (
	symbolsApart     symbolRole = iota // touch no word
	symbolsInWord                      // before a word: part of it
	symbolsAfterWord                   // letters or punctuation: see trailingSymbols
)

// role looks at what the run that begins at i touches, once for all its symbols. What is not ASCII is taken for a word
// character, which is settled when the word is read.
func (s *textScan) role(i int) symbolRole {
	if i < s.run.start || i >= s.run.end {
		s.findRun(i)
	}
	return s.run.role
}

func (s *textScan) findRun(i int) {
	text, end, role := s.text, i+1, symbolsApart
	for end < len(text) && asciiClass[text[end]] == classSymbol {
		end++
	}
	switch {
	case end < len(text) && asciiClass[text[end]] >= classWord:
		role = symbolsInWord
	case end-i > maxTrailingSymbols:
	case i > 0 && asciiClass[text[i-1]] >= classWord && (end > i+1 || i > 1 && asciiClass[text[i-2]] >= classSymbol):
		role = symbolsAfterWord
	}
	s.run = symbolRun{i, end, role}
}

// begin puts a stop before a token that starts a sentence, and between syllables that a comma parts.
func (s *textScan) begin(start int, lower, syllable bool) {
	if s.gap&(bitFullStop|bitClause) != 0 {
		sentence := s.gap&bitFullStop != 0 && (s.afterLong || s.gap&bitDot == 0) && !lower
		clause := s.gap&bitClause != 0 && s.afterSyll && syllable
		if sentence || clause {
			s.stop(start)
		}
	}
	s.gap = 0
}

func (s *textScan) stop(at int) {
	s.toks = append(s.toks, textToken{
		start: uint32(at), end: uint32(at),
		unit: uint32(s.used), units: 1, fold: uint32(len(s.folds)),
	})
	s.room(s.used + 1)
	s.units[s.used], s.classes[s.used] = stopUnit, stopUnit
	s.used++
}

func (s *textScan) asciiToken(start, end int) {
	n := end - start
	if n > maxTokenBytes {
		s.gap, s.afterSyll, s.afterLong = 0, false, true
		s.stop(start)
		return
	}
	s.spell(start, end)
	t := s.asciiWordToken(start, end)
	t.hash = hashASCII(s.text, start, end)
	if s.skels == nil {
		return
	}
	shape := asciiShape[s.text[start]] &^ shapeInner
	for k := start + 1; k < end; k++ {
		shape |= asciiShape[s.text[k]]
	}
	if shape&(shapeUpper|shapeLower) != 0 && s.skels.anyOf(n) || n > 1 && suspicious(shape) {
		t.lookalikes = s.asciiLookalikes(int(t.unit), n, shape&shapeInner != 0, t.hash)
	}
}

// spell writes the units of ASCII characters, for asciiWordToken to take.
func (s *textScan) spell(start, end int) {
	s.room(s.used + end - start)
	units, classes := s.units[s.used:], s.classes[s.used:]
	for k := start; k < end; k++ {
		c := s.text[k]
		units[k-start], classes[k-start] = asciiUnit[c], spellingClass[c]
	}
}

func (s *textScan) asciiWordToken(start, end int) *textToken {
	n := end - start
	s.gap, s.afterSyll, s.afterLong = 0, false, n >= minAbbreviated
	var t *textToken
	s.toks, t = nextToken(s.toks)
	t.start, t.end, t.unit, t.units, t.fold = uint32(start), uint32(end), uint32(s.used), uint16(n), uint32(len(s.folds))
	s.used += n
	return t
}

// suspicious: can the skeleton of an ASCII word differ from its folded form in a way that makes it another word?
func suspicious(shape uint8) bool {
	return shape&shapeM != 0 ||
		shape&shapeRN == shapeRN ||
		shape&shapeDigit01 != 0 && shape&(shapeUpper|shapeLower) != 0 ||
		shape&shapeUpper != 0 && shape&shapeStroke != 0
}

// asciiLookalikes is lookalikes after marking strokes: a lower-case l amid capitals may stand for a capital I.
func (s *textScan) asciiLookalikes(at, n int, innerCapital bool, word uint64) uint32 {
	if innerCapital {
		markStrokes(s.units[at : at+n])
	}
	return s.lookalikes(at, n, word)
}

func markStrokes(units []byte) {
	for i, c := range units {
		if c == 'l' {
			units[i] = ambiguousStroke
		}
	}
}

// lookalikes looks up the skeleton in n units, for words other than the one with the hash.
func (s *textScan) lookalikes(at, n int, word uint64) uint32 {
	if n > 0 && n <= 8 && at+8 <= len(s.units) {
		if x, ok := strokelessLanes(load8(s.units, at) << (64 - 8*n)); ok {
			return s.skels.find(mixHash(0, x), word)
		}
	}
	s.tmp = appendStrokeless(s.tmp[:0], s.units[at:at+n])
	return s.skels.find(hashBytes(s.tmp), word)
}

// nextToken makes room for one more token, for the caller to fill in place: copying one built elsewhere would wait for
// its fields to arrive in memory, which takes longer than all the rest of a short word.
func nextToken(toks []textToken) ([]textToken, *textToken) {
	if len(toks) == cap(toks) {
		toks = slices.Grow(toks, blockTokens)
	}
	toks = toks[:len(toks)+1]
	t := &toks[len(toks)-1]
	*t = textToken{}
	return toks, t
}

// room makes sure that n units fit altogether.
func (s *textScan) room(n int) {
	if missing := n - len(s.units); missing > 0 {
		missing += len(s.units) + 1024
		s.units = append(s.units, make([]byte, missing)...)
		s.classes = append(s.classes, make([]byte, missing)...)
	}
}
