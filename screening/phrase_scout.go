package screening

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// The scout goes over ASCII text ahead of the search. It cuts the text into words eight bytes at a time and only asks
// whether a phrase can begin with a word, in any form; the search proper looks at those places alone. It takes letters
// by their spelling class, so that lookalikes are one to it; it does not see where sentences end. Both only make it send
// the search to places for nothing.

// scoutIndex tells whether a phrase may begin with a word, or with two or three. It takes two words by the last letters
// of the one and the first of the other, a third by its first: that is no more than a guess, but costs less than a hash
// of them all.
type scoutIndex struct {
	pairs   hashFilter // by roughMasks
	starts  hashTable  // of the first two words and of the first three → scoutEnds, scoutGoesOn
	singles hashFilter
}

const (
	scoutEnds   = 1 << iota // a phrase of these words, or of more than three
	scoutGoesOn             // a phrase of three words or more
)

// maxLooks is in how many ways a phrase can begin before the scout cannot be told them all.
const maxLooks = 256

// newScoutIndex gives nil if some phrase can begin in too many ways.
func newScoutIndex(m *phraseMatcher) *scoutIndex {
	words := make([]scoutLooks, len(m.words))
	looks := func(w uint32) *scoutLooks {
		if words[w].whole == nil {
			words[w] = newScoutLooks(m.fold(w))
		}
		return &words[w]
	}
	var singles, rough, pairs, triples []uint64
	var values []uint32 // of pairs
	for p := range m.entries {
		ids := m.phraseWords(p)
		first := looks(ids[0])
		if first.tooMany {
			return nil
		}
		if len(ids) == 1 {
			singles = append(singles, first.whole...)
			continue
		}
		second, third, value := looks(ids[1]), &scoutLooks{}, uint32(scoutEnds)
		if len(ids) > 2 {
			third, value = looks(ids[2]), scoutGoesOn
		}
		if second.tooMany || third.tooMany || len(first.tails)*len(second.heads)*(1+len(third.heads)) > maxLooks {
			return nil
		}
		for _, tail := range first.tails {
			for _, head := range second.heads {
				pair := scoutPair(tail, head)
				pairs, values = append(pairs, pair), append(values, value)
				rough = append(rough, scoutPair(tail&roughBits, head&roughBits))
				for _, head := range third.heads {
					triples = append(triples, scoutPair(pair, head))
				}
			}
		}
	}
	x := &scoutIndex{newHashFilter(len(pairs)), newHashTable(len(pairs) + len(triples)), newHashFilter(len(singles))}
	for i, key := range pairs {
		x.pairs.add(rough[i])
		*x.starts.slot(key) |= values[i]
	}
	for _, key := range triples {
		*x.starts.slot(key) |= scoutEnds
	}
	for _, key := range singles {
		x.singles.add(key)
	}
	return x
}

// scoutLooks are the ways in which a word of a phrase can be written in ASCII.
type scoutLooks struct {
	heads, tails []uint64 // first and last eight letters, none twice
	whole        []uint64 // keys of the whole word
	tooMany      bool
}

func newScoutLooks(fold string) (l scoutLooks) {
	l.whole = []uint64{}
	for _, upper := range [...]bool{false, true} {
		if upper && isASCII(fold) {
			break // letters of ASCII are themselves in both
		}
		if skel := string(appendSkeleton(nil, fold, upper)); isASCII(skel) {
			l.write(nil, strings.ReplaceAll(skel, "m", "rn"))
		}
	}
	return l
}

// write enters the ways in which the rest of a word can go on: rn is also written m.
func (l *scoutLooks) write(classes []byte, rest string) {
	for i := range len(rest) {
		if l.tooMany {
			return // or it would go on for as many
		}
		if strings.HasPrefix(rest[i:], "rn") {
			l.write(append(classes[:len(classes):len(classes)], 'm'), rest[i+2:])
		}
		classes = append(classes, spellingClass[rest[i]])
	}
	n := len(classes)
	if l.tooMany = l.tooMany || len(l.whole) == maxLooks; n == 0 || l.tooMany {
		return
	}
	padded := make([]byte, n+2*scoutPad)
	copy(padded[scoutPad:], classes)
	mask := &scoutMasks[min(n, 8)]
	head, tail := load8(padded, scoutPad)&mask.head, load8(padded, n)&mask.tail
	l.heads, l.tails = appendNew(l.heads, head), appendNew(l.tails, tail)
	l.whole = append(l.whole, scoutPair(tail, head))
}

func appendNew(all []uint64, x uint64) []uint64 {
	for _, y := range all {
		if x == y {
			return all
		}
	}
	return append(all, x)
}

// scoutMask selects, of the first eight bytes of a word and of the eight that end with it, those of the word.
type scoutMask struct{ head, tail uint64 }

// scoutMasks are the masks by number of letters; what is longer than eight is taken for eight.
var scoutMasks = func() (masks [9]scoutMask) {
	for n := 1; n < len(masks); n++ {
		masks[n] = scoutMask{math.MaxUint64 >> (64 - 8*n), math.MaxUint64 << (64 - 8*n)}
	}
	return masks
}()

// roughMasks also take the bits in which a letter differs from its capital, and i from l. That makes other letters one,
// but costs nothing where most words are turned away.
var roughMasks = func() (masks [9]scoutMask) {
	for n, m := range scoutMasks {
		masks[n] = scoutMask{m.head & roughBits, m.tail & roughBits}
	}
	return masks
}()

const roughBits = ^uint64((('a' ^ 'A') | ('i' ^ 'l')) * lanes)

func scoutPair(tail, head uint64) uint64 { return mixHash(tail, head) }

// toClasses puts the spelling classes of letters for eight letters in any case.
func toClasses(x uint64) uint64 {
	lower := x | 0x20*lanes
	l := laneEqual(lower&^highBits, 'l')
	return lower ^ (l>>7 | l>>5) // an i
}

const (
	// scoutChunk is how much text is cut into words before they are looked at.
	scoutChunk = 2048
	// scoutPad is room for letters before and after a chunk to be read in eights.
	scoutPad = 8
	// scoutPlaces is the size of the arrays over the places of a chunk: a power of two, so that masked places need no
	// check of bounds.
	scoutPlaces = 2 * scoutChunk
)

// scout is the room for a chunk of text.
type scout struct {
	chunk [scoutPlaces + scoutPad]byte     // from scoutPad on, with letters for digits, and for symbols that are read so
	marks [2*scoutPlaces + 2*scoutPad]byte // places in chunk where words begin and end, in turn, two bytes each
	n     int                              // marks in use
	base  int                              // place in the text of chunk[0]
	found [scoutPlaces / 2]uint16          // marks of words with which a phrase may go on

	last               uint64 // the eight bytes that end the word before the chunk
	lastFrom, lastSize int    // and its place and size

	letters []byte // of words not looked at yet, one after the other, for spelled-out forms
	used    int
	words   []scoutWord
}

// scoutWord is a word of the text and its first place in letters.
type scoutWord struct{ start, end, unit uint32 }

// scoutPart searches a text for hits that begin from one place, where no word goes on, up to another. It reports
// whether that was possible; it is not where the text is not ASCII.
func (f *phraseFinder) scoutPart(text string, from, to int) bool {
	w, spelled := &f.scout, f.scan.spelled
	w.lastFrom, w.used, w.words = -1, 0, w.words[:0]
	beyond := 2 * f.m.reach // likely to be needed after the part
	for at, ended := from, false; !ended; {
		limit := min(len(text), at+scoutChunk, max(at, to)+beyond)
		if !w.cut(text[at:limit], f.scan.symbols) {
			return false
		}
		w.base = at - scoutPad
		next := limit
		if w.n > 0 && limit < len(text) {
			if start, end := w.word(w.n - 2); end == scoutPad+limit-at {
				w.n, next = w.n-2, w.base+start // the last word may go on
			}
		}
		if next == at && limit > at {
			if limit-at < scoutChunk {
				beyond = scoutChunk
				continue
			}
			// Nothing can be said of a word longer than a chunk but that it is in no phrase.
			if f.scan.symbols {
				return false // a part of it may be
			}
			for next = limit; next < len(text) && asciiClass[text[next]] == classWord; next++ {
			}
		}
		at = next
		ended = at >= len(text)
		if !f.scan.symbols {
			f.scoutWords()
		}
		if spelled {
			w.gather(text, f.scan.symbols)
			ended = f.scoutSpelled(to, ended)
		} else {
			ended = ended || at >= to
		}
	}
	return true
}

// cut finds the words of a chunk. It reports whether the chunk is ASCII.
func (w *scout) cut(chunk string, symbols bool) (ascii bool) {
	n := copy(w.chunk[scoutPad:scoutPad+scoutChunk], chunk)
	end := scoutPad + (n/8+1)*8 // at least one zero, to end the last word
	clear(w.chunk[scoutPad+n : end+scoutPad])
	if symbols {
		putLetters(w.chunk[scoutPad:end])
	}
	var high, inWord uint64
	base := uint64(scoutPad) * everySixteen
	found := 0
	for block := w.chunk[scoutPad:end]; len(block) >= 8; block = block[8:] {
		x := binary.LittleEndian.Uint64(block)
		high |= x
		digits := laneRange(x, '0', '9')
		word := laneRange(x|0x20*lanes, 'a', 'z') | digits
		if digits != 0 {
			for i := range 8 {
				block[i] = spellingClass[block[i]]
			}
		}
		in := word >> 7 * 0x0102040810204080 >> 56
		turns := uint8(in ^ (in<<1 | inWord))
		inWord = in >> 7
		at, t := 2*found&(2*scoutPlaces-1), &turnTable[turns]
		binary.LittleEndian.PutUint64(w.marks[at:at+8], t.low+base)
		binary.LittleEndian.PutUint64(w.marks[at+8:at+16], t.high+base) // also if there are no more than four
		found += bits.OnesCount8(turns)
		base += 8 * everySixteen
	}
	w.n = found
	return high&highBits == 0
}

// putLetters puts letters for symbols.
func putLetters(text []byte) {
	for ; len(text) >= 8; text = text[8:] {
		if symbolLanes(binary.LittleEndian.Uint64(text)) != 0 {
			for i := range 8 {
				text[i] = spellingClass[text[i]]
			}
		}
	}
}

const everySixteen = 0x0001000100010001

// turns are the places of the bits of a byte, sixteen bits each.
type turns struct{ low, high uint64 }

var turnTable = func() (table [256]turns) {
	for b := range table {
		t, n := &table[b], 0
		for i := range uint64(8) {
			if b>>i&1 == 0 {
				continue
			}
			if n < 4 {
				t.low |= i << (16 * n)
			} else {
				t.high |= i << (16 * (n - 4))
			}
			n++
		}
	}
	return table
}()

// word gives the places in the chunk of the word from a mark on.
func (w *scout) word(mark int) (start, end int) {
	at := 2 * mark & (2*scoutPlaces - 1)
	v := binary.LittleEndian.Uint32(w.marks[at : at+4])
	return int(v & (scoutPlaces - 1)), int(v >> 16 & (scoutPlaces - 1))
}

// from gives eight bytes of the chunk.
func (w *scout) from(place int) uint64 { return binary.LittleEndian.Uint64(w.chunk[place : place+8]) }

// scoutWords looks where a phrase may begin in the words of the chunk.
func (f *phraseFinder) scoutWords() {
	w, n, found := &f.scout, f.scout.n, 0
	if n == 0 {
		return
	}
	filter, tail := f.m.scouts.pairs, w.last&roughMasks[min(w.lastSize, 8)].tail
	for k := 0; k < n; k += 2 {
		start, end := w.word(k)
		mask := &roughMasks[min(uint(end-start), 8)]
		if filter.has(scoutPair(tail, w.from(start)&mask.head)) {
			w.found[found&(len(w.found)-1)] = uint16(k)
			found++
		}
		tail = w.from(max(end, 8)-8) & mask.tail
	}
	for _, k := range w.found[:found] {
		f.scoutPair(int(k))
	}
	if f.m.hasSingle {
		f.scoutSingles()
	}
	start, end := w.word(n - 2)
	w.last, w.lastFrom, w.lastSize = w.from(max(end, 8)-8), w.base+start, end-start
}

// scoutPair looks closer at a word with which a phrase may go on.
func (f *phraseFinder) scoutPair(mark int) {
	w, starts := &f.scout, &f.m.scouts.starts
	from, letters, size := w.lastFrom, w.last, w.lastSize
	if mark > 0 {
		start, end := w.word(mark - 2)
		from, letters, size = w.base+start, w.from(max(end, 8)-8), end-start
	}
	if from < 0 {
		return
	}
	head := func(mark int) uint64 {
		start, end := w.word(mark)
		return toClasses(w.from(start)) & scoutMasks[min(end-start, 8)].head
	}
	key := scoutPair(toClasses(letters)&scoutMasks[min(size, 8)].tail, head(mark))
	v := starts.get(key)
	if v == scoutGoesOn && mark+2 < w.n {
		v = starts.get(scoutPair(key, head(mark+2)))
	}
	if v != 0 {
		f.wordsAt(from)
	}
}

func (f *phraseFinder) scoutSingles() {
	w, singles := &f.scout, &f.m.scouts.singles
	for k := 0; k < w.n; k += 2 {
		start, end := w.word(k)
		mask := &scoutMasks[min(uint(end-start), 8)]
		if singles.has(scoutPair(toClasses(w.from(max(end, 8)-8))&mask.tail, toClasses(w.from(start))&mask.head)) {
			f.wordsAt(w.base + start)
		}
	}
}

// wordsAt looks for phrases in words that begin at a place of the text.
func (f *phraseFinder) wordsAt(start int) {
	f.scan.seek(start)
	if f.scan.reach(0) {
		f.sequences(0)
	}
}

// gather takes over the letters of the chunk. Where symbols are letters, those before or in a word are part of it, few
// after it may be, and hits may begin and end with each of them.
func (w *scout) gather(text string, symbols bool) {
	if missing := w.used + scoutChunk + 2*scoutPad - len(w.letters); missing > 0 {
		w.letters = append(w.letters, make([]byte, missing+scoutChunk)...)
	}
	words, used, letters := slices.Grow(w.words, w.n), w.used, w.letters
	for k := 0; k < w.n; k += 2 {
		start, end := w.word(k)
		words = append(words, scoutWord{uint32(w.base + start), uint32(w.base + end), uint32(used)})
		binary.LittleEndian.PutUint64(letters[used:], toClasses(w.from(start)))
		for from := start + 8; from < end; from += 8 {
			binary.LittleEndian.PutUint64(letters[used+from-start:], toClasses(w.from(from&(scoutPlaces-1))))
		}
		used += end - start
		if symbols && asciiClass[text[w.base+end-1]] == classSymbol {
			words, used = symbolsAfter(text, words, used)
		}
	}
	w.words, w.used = words, used
}

// symbolsAfter puts right the last word gathered, which ends in symbols, and the number of letters.
func symbolsAfter(text string, words []scoutWord, used int) ([]scoutWord, int) {
	last := words[len(words)-1]
	end := last.end
	for end > last.start && asciiClass[text[end-1]] == classSymbol {
		end--
	}
	after := int(last.end - end)
	switch {
	case end == last.start: // no word at all
		return words[:len(words)-1], used - after
	case after > maxTrailingSymbols, after == 1 && end-last.start == 1:
		return words, used - after
	}
	for i := used - after; i < used; i++ {
		words = append(words, scoutWord{last.start, last.end, uint32(i)})
	}
	return words, used
}

// scoutSpelled looks for phrases that are spelled out in the letters gathered. It keeps those for which the letters
// after them may be missing, and reports whether the part is done with.
func (f *phraseFinder) scoutSpelled(to int, ended bool) (done bool) {
	w, m := &f.scout, f.m
	heads := m.headKnown
	ready := w.used - m.reach
	if ended {
		ready = w.used
	}
	next := 0
	for ; next < len(w.words); next++ {
		word := w.words[next]
		if int(word.start) >= to {
			return true
		}
		if int(word.unit) > ready {
			break
		}
		if int(word.unit)+headLetters > w.used {
			continue
		}
		if head := headHash(w.letters[word.unit:]); heads.has(head) && f.spellsPhrase(next, head) {
			f.spelledIn(int(word.start), int(word.end))
		}
	}
	if next == len(w.words) {
		w.used, w.words = 0, w.words[:0]
		return ended
	}
	unit := w.words[next].unit
	w.used = copy(w.letters, w.letters[unit:w.used])
	w.words = w.words[:copy(w.words, w.words[next:])]
	for i := range w.words {
		w.words[i].unit -= unit
	}
	return ended
}

// spellsPhrase reports whether a phrase is spelled out from a gathered word on, but for what the search finds out, and
// is still to be reported.
func (f *phraseFinder) spellsPhrase(i int, head uint64) bool {
	w, m := &f.scout, f.m
	from, longest := w.words[i].unit, m.heads.get(head)
	var h uint64
	for at := from; i < len(w.words); i++ {
		end := uint32(w.used)
		if i+1 < len(w.words) {
			end = w.words[i+1].unit
		}
		if end-from > longest {
			return false
		}
		for ; at < end; at++ {
			h = spellingStep(h, w.letters[at])
		}
		if end-from < headLetters {
			continue
		}
		for p := m.spellings.get(spellingDone(h)); p != 0; p = m.speltTwins[p-1] {
			if int(f.counts[p-1]) < m.hitLimit {
				return true
			}
		}
	}
	return false
}

// spelledIn looks for phrases spelled out from the tokens that begin in a part of the text.
func (f *phraseFinder) spelledIn(from, to int) {
	s := &f.scan
	s.seek(from)
	for i := 0; s.reach(i) && int(s.toks[i].start) < to; i++ {
		at := int(s.toks[i].unit)
		for j := i + 1; s.used < at+headLetters && s.reach(j); j++ {
		}
		if s.used < at+headLetters {
			return
		}
		if head := headHash(s.classes[at:]); f.m.headKnown.has(head) {
			f.spelledFrom(i, head)
		}
	}
}
