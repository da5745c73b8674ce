package screening

import (
	"cmp"
	"slices"
	"strings"
)

// phraseHit is one occurrence of a phrase.
type phraseHit struct {
	phrase     int // index into the phrases of the matcher
	field      int // index into the fields
	start, end int // bytes of the field's original text, from the first to the last letter of the phrase
	form       hitForm
}

// textFindings are the hits in order of field, start, phrase, end, and the obfuscations in order of field and kind. Hits overlap where phrases do: nothing is resolved away, since each phrase belongs to terms of its own. One
// phrase at one place is reported once, in the first form of hitForm that fits. Of one phrase, each pass over a field
// reports the first maxHits hits.
type textFindings struct {
	hits         []phraseHit
	obfuscations []textObfuscation
}

// blockTokens is how many tokens are scanned before they are matched: few enough to stay in the first cache levels.
const blockTokens = 1024

// phraseFinder is the scratch of one call.
type phraseFinder struct {
	m       *phraseMatcher
	scan    textScan
	field   int
	hits    []phraseHit
	from    int      // first hit of the field
	counts  []uint32 // hits by phrase in this field
	fold    []byte
	skel    []byte
	look    gateLook
	scout   scout
	strokes [2][]byte

	todo     []textTodo // by field
	rereader rereader
}

func newPhraseFinder(m *phraseMatcher) *phraseFinder {
	f := &phraseFinder{m: m, counts: make([]uint32, len(m.entries))}
	f.scan.setTable(textTable())
	if !m.plain {
		f.scan.spelled = m.hasSpelled
		f.scan.skels = &m.skels
	}
	return f
}

// find searches all fields. Its cost grows with the text and hardly with the number of phrases; a text that is clean
// and plain ASCII costs no allocation.
func (m *phraseMatcher) find(fields []textField) textFindings {
	f := m.scratch.Get().(*phraseFinder)
	found := f.find(fields)
	m.scratch.Put(f)
	return found
}

func (f *phraseFinder) find(fields []textField) (found textFindings) {
	f.hits = f.hits[:0]
	size, any := f.gate(fields)
	for i, todo := range f.todo {
		if todo&toSearch != 0 {
			f.field, f.from = i, len(f.hits)
			f.search(fields[i].text)
			found.obfuscations = f.scan.hiding.appendTo(found.obfuscations, i)
			f.settle()
		}
	}
	if any&toReread != 0 && !f.m.plain && size <= MaxDocumentBytes { // no document has more
		found.obfuscations = f.reread(fields, found.obfuscations)
	}
	if len(f.hits) > 0 {
		found.hits = slices.Clone(f.hits)
	}
	f.scan.reset("") // do not keep the text alive
	return found
}

// gatedTogether is how many bytes of short texts are gated at once: many for what a look costs, few because all of them
// are searched if one is not turned away.
const gatedTogether = 256

// textTodo is what a text needs. One that the gate turned away needs no search and no marks trimmed, for it says nothing
// whatever stands between its words; but the gate takes digits for letters, and knows no escapes.
type textTodo uint8

const (
	toSearch textTodo = 1 << iota
	toTrimDigits
	toTrimMarks
	toResolve

	toReread = toTrimDigits | toTrimMarks | toResolve
)

// gate asks the gate about all texts. It gives their size together, and what any of them needs.
func (f *phraseFinder) gate(fields []textField) (size int, any textTodo) {
	f.todo = slices.Grow(f.todo[:0], len(fields))[:len(fields)]
	for from, to := 0, 0; from < len(fields); from = to {
		together := 0
		for ; to < len(fields) && (to == from || together+len(fields[to].text) < gatedTogether); to++ {
			together += len(fields[to].text) + 1
		}
		size += together - (to - from)
		any |= f.gateTogether(fields[from:to], f.todo[from:to], together)
	}
	return size, any
}

func (f *phraseFinder) gateTogether(fields []textField, todo []textTodo, size int) (any textTodo) {
	look := &f.look
	gated, away := f.m.gate != nil && size <= MaxDocumentBytes, false
	if gated {
		look.text = slices.Grow(look.text[:0], size+2*gateBlock)
		for i := range fields {
			look.text = append(append(look.text, fields[i].text...), 0)
		}
		away = look.turnsAwayPlain(f.m.gate)
	}
	at := 0
	for i := range fields {
		end := at + len(fields[i].text)
		todo[i] = 0
		odd := !gated || look.odd.touch(at, end)
		if odd || !away {
			todo[i] = toSearch | toTrimMarks
		}
		if odd || mayBeGlued(fields[i].text) && look.glued.touch(at, end) {
			todo[i] |= toTrimDigits
		}
		if !gated || look.escapes.touch(at, end) {
			todo[i] |= toResolve
		}
		any |= todo[i]
		at = end + 1
	}
	return any
}

// mayBeGlued: are digits beside the letters of an ASCII text more than its own way to name something?
func mayBeGlued(text string) bool {
	const most = 2                                                                     // letters that a byte stands for
	return len(text) >= minSpelledLetters/most && !isHex(text, 40) && !isHex(text, 64) // revisions, ids
}

// search scans a text once, and once more with symbols read as letters if it has such symbols.
func (f *phraseFinder) search(text string) {
	over := len(text) > maxTextBytes
	if over {
		text = text[:maxTextBytes]
	}
	f.scan.symbols = false
	f.scan.reset(text)
	// To go over a text twice for one letter outside ASCII is worth no more than the short way of plain forms.
	if f.m.scouts == nil || !f.m.plain && !isASCII(text) || !f.scoutPart(text, 0, len(text)) {
		f.clearCounts()
		f.hits = f.hits[:f.from]
		f.pass(text)
		if f.scan.saw > 0 && f.scan.spelled {
			hiding := f.scan.hiding
			f.clearCounts()
			f.scan.symbols = true
			f.pass(text)
			f.scan.hiding = hiding
		}
	} else if f.scan.spelled {
		f.clearCounts()
		f.scan.symbols = true
		f.scoutSymbols(text)
	}
	if over {
		f.scan.hiding.note(hidesExpansion, maxTextBytes, maxTextBytes)
	}
}

func (f *phraseFinder) pass(text string) {
	s := &f.scan
	s.reset(text)
	for {
		done := s.fill(blockTokens + f.m.reach)
		n := len(s.toks)
		if !done {
			// A hit that begins further on may need tokens that are not there yet.
			n -= f.m.reach
		}
		f.match(n)
		if done {
			return
		}
		s.drop(n)
	}
}

// scoutSymbols looks for hits that begin close enough to a symbol to take it in: all others were found before. The text
// is ASCII.
func (f *phraseFinder) scoutSymbols(text string) {
	const apart = 64 // symbols closer than this are looked at together
	passed := 0
	for at := nextSymbol(text, 0); at < len(text); {
		from, to := at, at
		for at < len(text) && at-to < apart {
			for to = min(at+apart, len(text)); to < len(text) && asciiClass[text[to]] >= classSymbol; to++ {
			}
			at = nextSymbol(text, to)
		}
		for letters := 0; from > passed; from-- { // back to a word that begins too many letters before
			if asciiClass[text[from-1]] >= classSymbol {
				letters++
			} else if letters > f.m.reach {
				break
			}
		}
		if !f.scoutPart(text, from, to) {
			f.pass(text)
			return
		}
		passed = to
	}
}

// match looks for hits that begin at the first n tokens.
func (f *phraseFinder) match(n int) {
	m, toks, classes := f.m, f.scan.toks, f.scan.classes[:f.scan.used]
	if !f.scan.symbols { // else words were matched in the first pass
		pairs := m.pairs
		for i := range n {
			t := &toks[i]
			alike := t.lookalikes
			if i+1 < len(toks) {
				next := &toks[i+1]
				alike |= next.lookalikes
				if pairs.has(nextNode(firstNode(t.hash), next.hash)) {
					alike = 1
				}
			}
			if alike != 0 || m.hasSingle && m.single.has(firstNode(t.hash)) {
				f.sequences(i)
			}
		}
	}
	if !f.scan.spelled {
		return
	}
	heads := m.headKnown
	for i := range n {
		at := int(toks[i].unit)
		if at+headLetters > len(classes) {
			return
		}
		if head := headHash(classes[at:]); heads.has(head) {
			f.spelledFrom(i, head)
		}
	}
}

// sequences reports the phrases whose words begin at token i, in every reading of the words.
func (f *phraseFinder) sequences(i int) {
	f.eachReading(i, func(word uint64) {
		node := firstNode(word)
		if f.m.hasSingle && f.m.single.has(node) {
			f.report(f.m.trie.get(node)>>1, i, i)
		}
		f.follow(i, i+1, node)
	})
}

// follow goes on from a node of the trie with token at.
func (f *phraseFinder) follow(first, at int, node uint64) {
	if !f.scan.reach(at) {
		return
	}
	f.eachReading(at, func(word uint64) {
		next := nextNode(node, word)
		if at == first+1 && !f.m.pairs.has(next) {
			return
		}
		v := f.m.trie.get(next)
		f.report(v>>1, first, at)
		if v&trieMore != 0 {
			f.follow(first, at+1, next)
		}
	})
}

// eachReading calls read with the hash of a token and of the words it looks like.
func (f *phraseFinder) eachReading(i int, read func(word uint64)) {
	t := &f.scan.toks[i]
	read(t.hash)
	for at := t.lookalikes; at != 0; {
		e := f.m.skels.list[at-1]
		if h := f.m.words[e.word].hash; h != t.hash {
			read(h)
		}
		at = e.next
	}
}

// report confirms the phrases of a list of twins at the tokens first to last.
func (f *phraseFinder) report(list uint32, first, last int) {
	for ; list != 0; list = f.m.twins[list-1] {
		p := int(list - 1)
		if int(f.counts[p]) >= f.m.hitLimit {
			continue
		}
		if form := f.confirm(p, first, last); form != 0 {
			f.hit(p, first, last, form)
		}
	}
}

func (f *phraseFinder) hit(p, first, last int, form hitForm) {
	f.counts[p]++
	start, end := f.span(first, last)
	f.hits = append(f.hits, phraseHit{p, f.field, start, end, form})
}

func (f *phraseFinder) span(first, last int) (start, end int) {
	return int(f.scan.toks[first].start), int(f.scan.toks[last].end)
}

// confirm compares the words of a phrase with tokens letter by letter and returns the weakest form among them, or 0.
func (f *phraseFinder) confirm(p, first, last int) hitForm {
	words := f.m.phraseWords(p)
	if len(words) != last-first+1 {
		return 0
	}
	form := formPlain
	for i, w := range words {
		is := f.confirmWord(w, &f.scan.toks[first+i])
		if is == 0 {
			return 0
		}
		form = max(form, is)
	}
	if start, end := f.span(first, last); form == formFolded && strings.EqualFold(f.scan.text[start:end], f.m.texts[p]) {
		return formPlain
	}
	return form
}

func (f *phraseFinder) confirmWord(w uint32, t *textToken) hitForm {
	want := f.m.fold(w)
	f.fold = f.scan.appendFold(f.fold[:0], t)
	if string(f.fold) == want {
		if t.folds == 0 || strings.EqualFold(f.scan.text[t.start:t.end], want) {
			return formPlain
		}
		return formFolded
	}
	if t.lookalikes == 0 {
		return 0
	}
	f.strokes[0] = appendStrokes(f.strokes[0][:0], f.scan.units[t.unit:t.unit+uint32(t.units)])
	for _, upper := range [...]bool{false, true} {
		f.skel = appendSkeleton(f.skel[:0], want, upper)
		f.strokes[1] = appendStrokes(f.strokes[1][:0], f.skel)
		if sameSkeleton(f.strokes[0], f.strokes[1]) {
			return formSkeleton
		}
	}
	return 0
}

// appendFold appends the folded form of a token.
func (s *textScan) appendFold(dst []byte, t *textToken) []byte {
	if t.folds > 0 {
		return append(dst, s.folds[t.fold:t.fold+uint32(t.folds)]...)
	}
	for _, c := range []byte(s.text[t.start:t.end]) {
		dst = append(dst, c|0x20)
	}
	return dst
}

// spelledFrom reports the phrases whose letters begin at token i, wherever words end in between.
func (f *phraseFinder) spelledFrom(i int, head uint64) {
	m, s := f.m, &f.scan
	longest := m.heads.get(head)
	from := s.toks[i].unit
	var h uint64
	for j := i; s.reach(j); j++ {
		t := &s.toks[j]
		end := t.unit + uint32(t.units)
		if end-from > longest {
			return
		}
		for _, c := range s.classes[t.unit:end] {
			if c == stopUnit {
				return
			}
			h = spellingStep(h, c)
		}
		if end-from < headLetters {
			continue
		}
		for p := m.spellings.get(spellingDone(h)); p != 0; p = m.speltTwins[p-1] {
			f.reportSpelled(int(p-1), i, j)
		}
	}
}

func (f *phraseFinder) reportSpelled(p, first, last int) {
	if int(f.counts[p]) >= f.m.hitLimit {
		return
	}
	s := &f.scan
	toks := s.toks[first : last+1]
	units := s.units[toks[0].unit : toks[len(toks)-1].unit+uint32(toks[len(toks)-1].units)]
	// Words of the phrase against words of the text: whole words that differ in letters only are leet.
	f.skel = f.skel[:0]
	intact := len(toks) == int(f.m.entries[p].words)
	for i, w := range f.m.phraseWords(p) {
		at := len(f.skel)
		f.skel = appendSkeleton(f.skel, f.m.fold(w), false)
		intact = intact && len(f.skel)-at == int(toks[i].units)
	}
	if len(f.skel) != len(units) {
		return
	}
	for i, c := range units {
		if !sameSpelling(c, f.skel[i]) {
			return
		}
	}
	form := formSqueezed
	if intact {
		if !s.symbols && f.confirm(p, first, last) != 0 {
			return // found as words
		}
		form = formLeet
	}
	f.hit(p, first, last, form)
}

func (f *phraseFinder) clearCounts() {
	for _, h := range f.hits[f.from:] {
		f.counts[h.phrase] = 0
	}
}

// settle ends the field: hits in order, none twice.
func (f *phraseFinder) settle() {
	f.clearCounts()
	hits := f.hits[f.from:]
	slices.SortFunc(hits, func(a, b phraseHit) int {
		if a.start != b.start { // as nearly always
			return cmp.Compare(a.start, b.start)
		}
		return cmp.Or(cmp.Compare(a.phrase, b.phrase), cmp.Compare(a.end, b.end), cmp.Compare(a.form, b.form))
	})
	hits = slices.CompactFunc(hits, func(a, b phraseHit) bool {
		return a.phrase == b.phrase && a.start == b.start && a.end == b.end
	})
	f.hits = f.hits[:f.from+len(hits)]
}
