package screening

import (
	"cmp"
	"slices"
)

// A text that is written with escapes or tags, or with digits and sentence marks beside its words, is searched again in
// readings without them. What only a reading says has formReread: it may be an accident, so it is a hint.
//
// Readings are made one after the other in one buffer and turned away together, as texts are; most texts have none.
// What a text has too much of is not undone: it is an obfuscation.

// The bounds hold over all texts together.
const (
	maxResolved      = 1 << 14 // escapes and tags that are undone
	maxTrimmedMarks  = 1 << 14 // sentence marks, which are dear to judge
	maxTrimmedDigits = 1 << 16 // digits beside letters, which ids in number have
)

// rereading is one more way to read a text.
type rereading struct {
	field    int
	from, to int      // in rereader.buf
	resolved [][]edit // how the escapes and tags of the text were resolved, first to last
	base     int      // index of the reading that was trimmed, -1 for the text itself
	trimmed  bool     // digits and sentence marks beside words are blank, so that its places are those of its base
}

type rereader struct {
	buf      []byte
	readings []rereading
	resolves budget
	trims    trimBudget
}

// budget is how many more edits are made.
type budget struct {
	left int
	over bool // one more was asked for
}

// trimBudget is how many more places are trimmed.
type trimBudget struct{ digits, marks budget }

func (b *trimBudget) over() bool { return b.digits.over || b.marks.over }

func (b *budget) take() bool {
	b.over = b.over || b.left == 0
	b.left = max(b.left-1, 0)
	return !b.over
}

// readingsOf gathers the readings of all texts, and gives the first text that has too many edits, -1 for none.
func (r *rereader) readingsOf(fields []textField, todo []textTodo) (over int) {
	r.buf, r.readings = r.buf[:0], r.readings[:0]
	r.resolves = budget{left: maxResolved}
	r.trims = trimBudget{digits: budget{left: maxTrimmedDigits}, marks: budget{left: maxTrimmedMarks}}
	for i := range fields {
		if todo[i]&toReread == 0 {
			continue
		}
		text := fields[i].text
		if len(text) > maxTextBytes {
			text = text[:maxTextBytes]
		}
		r.trim(i, text, -1, nil, todo[i])
		if todo[i]&toResolve != 0 {
			r.resolve(i, text)
		}
		if r.resolves.over || r.trims.over() {
			return i
		}
	}
	return -1
}

// resolve adds the readings of a text without its escapes and tags, if it has any.
func (r *rereader) resolve(field int, text string) {
	decoded, resolved := resolveEscapes(text, &r.resolves)
	for _, gap := range [...]string{" ", ""} { // a tag parts words, or it does not
		read, edits := resolveTags(decoded, gap, &r.resolves)
		if edits == nil && (gap == "" || resolved == nil) {
			return
		}
		all := resolved
		if edits != nil {
			all = append(slices.Clone(resolved), edits)
		}
		from := len(r.buf)
		r.buf = append(r.buf, read...)
		r.add(rereading{field: field, from: from, resolved: all, base: -1})
		r.trim(field, read, len(r.readings)-1, all, toReread)
		if edits == nil {
			return
		}
	}
}

func (r *rereader) trim(field int, text string, base int, resolved [][]edit, what textTodo) {
	from := len(r.buf)
	if r.buf = appendTrimmed(r.buf, text, what, &r.trims); len(r.buf) > from {
		r.add(rereading{field: field, from: from, resolved: resolved, base: base, trimmed: true})
	}
}

// add ends the reading that was appended to the buffer.
func (r *rereader) add(read rereading) {
	read.to = len(r.buf)
	r.buf = append(r.buf, 0)
	r.readings = append(r.readings, read)
}

// source gives the place in the text of a hit in a reading.
func (r *rereader) source(read *rereading, fields []textField, start, end int) (from, to int) {
	if read.trimmed { // with the digits left out around it
		blank := func(i int) bool {
			if i < 0 || i >= read.to-read.from || r.buf[read.from+i] != ' ' {
				return false
			}
			if read.base < 0 {
				return isDigit(fields[read.field].text[i])
			}
			return isDigit(r.buf[r.readings[read.base].from+i])
		}
		for ; blank(start - 1); start-- {
		}
		for ; blank(end); end++ {
		}
	}
	for _, edits := range slices.Backward(read.resolved) {
		start, end = sourceOf(edits, start, end)
	}
	return start, end
}

// reread searches the readings of the texts and adds what only they say to the hits, and to the obfuscations what has
// too much to undo.
func (f *phraseFinder) reread(fields []textField, obfuscations []textObfuscation) []textObfuscation {
	if over := f.rereader.readingsOf(fields, f.todo); over >= 0 {
		obfuscations = append(obfuscations, textObfuscation{kind: hidesEscapes, field: over, end: len(fields[over].text), count: 1})
	}
	f.searchReadings(fields)
	return obfuscations
}

func (f *phraseFinder) searchReadings(fields []textField) {
	r := &f.rereader
	if len(r.readings) == 0 {
		return
	}
	if f.m.gate != nil && len(r.buf) <= MaxDocumentBytes {
		f.look.text = append(slices.Grow(f.look.text[:0], len(r.buf)+2*gateBlock), r.buf...)
		if f.look.turnsAway(f.m.gate) {
			return
		}
	}
	defer clear(r.readings) // do not keep the edits alive
	before := len(f.hits)
	for i := range r.readings {
		read := &r.readings[i]
		f.field, f.from = read.field, len(f.hits)
		f.search(string(r.buf[read.from:read.to]))
		f.settle()
		kept := f.hits[:f.from]
		for _, h := range f.hits[f.from:] {
			if read.trimmed && !f.m.isSpelled(h.phrase) {
				continue // as short as that, it is an accident
			}
			h.start, h.end = r.source(read, fields, h.start, h.end)
			h.form = formReread
			kept = append(kept, h)
		}
		f.hits = kept
	}
	if len(f.hits) == before {
		return
	}
	slices.SortFunc(f.hits, func(a, b phraseHit) int {
		return cmp.Or(cmp.Compare(a.field, b.field), cmp.Compare(a.start, b.start), cmp.Compare(a.phrase, b.phrase),
			cmp.Compare(a.end, b.end), cmp.Compare(a.form, b.form))
	})
	f.hits = slices.CompactFunc(f.hits, func(a, b phraseHit) bool {
		return a.field == b.field && a.phrase == b.phrase && a.start == b.start && a.end == b.end
	})
}
