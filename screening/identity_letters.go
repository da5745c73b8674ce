package screening

// letterRun is a run of letters written apart.
type letterRun struct {
	letters [maxLetterRun]byte
	gaps    [maxLetterRun]idGap // before each letter
	n       int
}

const (
	maxLetterRun = 192
	// minLetterRun letters in a row are a word written apart; fewer are initials or variables.
	minLetterRun = 4
)

// short adds a word of one letter, or one behind an apostrophe.
func (s *idScan) short(word string) {
	if len(word) > 1 || s.gap.apostrophe && s.run.n == 0 {
		var id uint16
		if s.gap.apostrophe {
			id = s.patterns.lex.suffixes.get(packWord(word, 0, len(word)))
		}
		if id == 0 {
			id = s.patterns.lex.id(word)
		}
		s.token(id, word)
		return
	}
	r := &s.run
	if r.n == maxLetterRun {
		s.endRun()
	}
	r.letters[r.n], r.gaps[r.n] = word[0]|0x20, s.gap
	r.n++
	s.gap = idGap{}
}

// endRun adds the letters of the run as words: if the gaps differ, the wider ones are between words, else the words of
// the lexicon are found that take up most of it.
func (s *idScan) endRun() {
	r := &s.run
	n := r.n
	if n == 0 {
		return
	}
	r.n = 0
	after := s.gap
	defer func() { s.gap = after }()
	if n < minLetterRun {
		for i := range n {
			s.gap = r.gaps[i]
			id := s.patterns.lex.id(string(r.letters[i : i+1]))
			if (s.gap.clause || s.gap.joined) && s.patterns.lex.classes[id]&(clsYou|clsBe) != 0 {
				id = 0 // "u" and "r" are words of a chat, and variables of a formula
			}
			s.add(id, "")
		}
		return
	}
	narrow := r.gaps[1].width()
	for i := 2; i < n; i++ {
		narrow = min(narrow, r.gaps[i].width())
	}
	wordsApart := false
	for i := 1; i < n; i++ {
		g := &r.gaps[i]
		wordsApart = wordsApart || g.width() > narrow && !g.quote && !g.clause && g.terminal == 0
	}
	for start := 0; start < n; {
		end := start + 1
		for end < n && r.gaps[end].width() == narrow {
			end++
		}
		s.gap = r.gaps[start]
		if start > 0 && s.gap.quote && s.gap.bytes <= 3 {
			start += s.spelledSuffix(r.letters[start:end])
		}
		if start < end {
			s.spelled(r.letters[start:end], wordsApart)
		}
		start = end
	}
}

// width tells gaps within words from gaps between words: by length, and white space is wider than anything else.
func (g *idGap) width() int {
	if g.spaces > 0 {
		return g.bytes + maxLetterRun
	}
	return g.bytes
}

// spelledSuffix adds what begins letters if it can follow an apostrophe, and returns its length.
func (s *idScan) spelledSuffix(letters []byte) int {
	for n := min(len(letters), 2); n > 0; n-- {
		if id := s.patterns.lex.suffixes.get(packBytes(letters[:n])); id != 0 {
			s.gap = idGap{}
			s.add(id, "")
			return n
		}
	}
	return 0
}

// spelled adds letters that belong together: one word, or several if nothing shows where words begin.
func (s *idScan) spelled(letters []byte, word bool) {
	lex := s.patterns.lex
	if len(letters) <= maxPackedWord {
		id := lex.ids.get(packBytes(letters))
		if id == 0 && len(letters) > 1 {
			id = s.lookAlike(string(letters), false)
		}
		if id != 0 || word {
			s.add(id, string(letters))
			return
		}
	}
	// Long words are worth more than the same letters in short ones, letters in no word nothing.
	var worth [maxLetterRun + 1]int
	var size [maxLetterRun + 1]uint8
	for end := 1; end <= len(letters); end++ {
		worth[end], size[end] = worth[end-1], 0
		for n := 1; n <= min(end, maxPackedWord); n++ {
			if w := worth[end-n] + n*n; w > worth[end] && lex.isPiece(letters[end-n:end]) {
				worth[end], size[end] = w, uint8(n)
			}
		}
	}
	var bounds [maxLetterRun]uint8 // ends of the pieces, last first
	k := 0
	for at := len(letters); at > 0; k++ {
		bounds[k] = uint8(at)
		if size[at] > 0 {
			at -= int(size[at])
			continue
		}
		for at > 0 && size[at] == 0 {
			at--
		}
	}
	start := 0
	for k--; k >= 0; k-- {
		piece := letters[start:bounds[k]]
		var id uint16
		if len(piece) <= maxPackedWord {
			id = lex.ids.get(packBytes(piece))
		}
		s.add(id, string(piece))
		start = int(bounds[k])
	}
}

// isPiece reports whether letters are a word to look for among letters that nothing separates. Words of one or two
// letters are in many longer ones ("air"): of these only such as connect others count.
func (l *lexicon) isPiece(letters []byte) bool {
	id := l.ids.get(packBytes(letters))
	switch {
	case id == 0, len(letters) == 1 && l.classes[id]&clsFunc == 0, len(letters) == 2 && l.classes[id]&(clsBot|clsYou) != 0:
		return false
	}
	return true
}
