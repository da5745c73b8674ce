package screening

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// specReader reads a training spec from JSON in one pass: it checks what strict
// decoding checks, fills the structs, and notes where the canonical form differs
// from the document. It accepts only what the general decoder (document.go)
// accepts, with the same result; whatever is out of the ordinary it leaves to that
// one, which can also say what is wrong. Texts are not copied: they are parts of
// the document.
type specReader struct {
	text   string
	pos    int
	tokens int
	spaced int // how often white space was passed over

	form  piece      // canonical form of the value read last
	parts []readPart // of the objects and lists that are open
	canon []byte     // canonical forms that the document does not have as they are

	room specRoom
}

// piece is a piece of the document, or of canon.
type piece struct {
	start, end int32
	made       bool // it is in canon
}

// readPart is the canonical form of a member of an object or an item of a list.
type readPart struct {
	piece
	member uint8 // index in the plan
	named  bool  // the name stands in the document right before the value and is part of the piece
}

var specReaders = sync.Pool{New: func() any { return new(specReader) }}

// read takes the short way, if the document is as documents mostly are.
func (p *ParsedSpec) read() (ok bool) {
	r := specReaders.Get().(*specReader)
	*r = specReader{text: string(p.Raw), parts: r.parts[:0], canon: r.canon[:0]}
	r.space()
	ok = r.object(specPlan, p.Spec)
	r.space()
	if !ok || r.pos != len(r.text) || r.tokens > maxTokens {
		return false // what was read in part is dropped with the reader
	}
	p.doc = document{what: specWhat, json: p.Raw}
	p.SHA256 = Sum(p.Raw)
	switch f := r.form; {
	case f.made:
		p.CanonicalSHA256 = Sum(r.canon[f.start:f.end])
	case int(f.end-f.start) == len(p.Raw):
		p.CanonicalSHA256 = p.SHA256
	default:
		p.CanonicalSHA256 = Sum(p.Raw[f.start:f.end])
	}
	*r = specReader{parts: r.parts, canon: r.canon}
	specReaders.Put(r)
	return true
}

// readPlan says how an object is read into a struct.
type readPlan struct{ members []readMember } // in the order of the struct

// readMember is one member of an object.
type readMember struct {
	name   string
	quoted string // with the colon
	key    uint64 // of name, see nameKey
	index  int    // in the plan
	rank   int    // in canonical order
	read   func(r *specReader, of any) bool
}

func newReadPlan(members ...readMember) *readPlan {
	byName := make([]int, len(members))
	for i := range members {
		m := &members[i]
		m.index, m.quoted, m.key = i, strconv.Quote(m.name)+":", nameKey(m.name)
		byName[i] = i
	}
	slices.SortFunc(byName, func(a, b int) int { return cmp.Compare(members[a].name, members[b].name) })
	for rank, i := range byName {
		members[i].rank = rank
	}
	return &readPlan{members}
}

// nameKey tells names apart nearly always: their length and first letters. Of names
// below eight letters it is all.
func nameKey(name string) uint64 {
	var x uint64
	for i := range min(len(name), 8) {
		x |= uint64(name[i]) << (8 * i)
	}
	return x ^ uint64(len(name))<<56
}

func (r *specReader) space() {
	for r.pos < len(r.text) {
		switch r.text[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
			r.spaced++
		default:
			return
		}
	}
}

// take passes over white space and one character, if that is next.
func (r *specReader) take(c byte) bool {
	if r.pos < len(r.text) && r.text[r.pos] <= ' ' {
		r.space()
	}
	if r.pos < len(r.text) && r.text[r.pos] == c {
		r.pos++
		return true
	}
	return false
}

func (r *specReader) object(plan *readPlan, v any) bool {
	if !r.take('{') {
		return false
	}
	r.tokens += 2
	begin, spaced, open := r.pos-1, r.spaced, len(r.parts)
	asItIs, last := true, -1
	var seen uint64
	for next := 0; ; {
		if seen == 0 && r.take('}') {
			break
		}
		m, ok := r.name(plan, next)
		if !ok || seen&(1<<m.index) != 0 {
			return false
		}
		after := r.pos
		if !m.read(r, v) {
			return false
		}
		seen |= 1 << m.index
		p := readPart{piece: r.form, member: uint8(m.index)}
		if int(p.start) == after && !p.made && r.text[after-2] == '"' { // nothing around the colon
			p.start, p.named = int32(after-len(m.quoted)), true
		}
		r.parts = append(r.parts, p)
		asItIs, last = asItIs && p.named && m.rank > last, m.rank
		if next = m.index + 1; !r.take(',') {
			if !r.take('}') {
				return false
			}
			break
		}
	}
	if asItIs && r.spaced == spaced {
		r.form = r.asItIs(begin)
	} else {
		r.make('{', r.parts[open:], plan, '}')
	}
	r.parts = r.parts[:open]
	return true
}

// asItIs is what was read from begin on, madeFrom what was written.
func (r *specReader) asItIs(begin int) piece   { return piece{int32(begin), int32(r.pos), false} }
func (r *specReader) madeFrom(begin int) piece { return piece{int32(begin), int32(len(r.canon)), true} }

// make writes the canonical form of an object or, without a plan, of a list.
func (r *specReader) make(begin byte, parts []readPart, plan *readPlan, end byte) {
	var order [64]uint8 // of the parts by rank
	var ranks uint64
	if plan != nil {
		for i := range parts {
			rank := plan.members[parts[i].member].rank
			order[rank%64] = uint8(i)
			ranks |= 1 << rank
		}
	}
	start := len(r.canon)
	r.canon = append(r.canon, begin)
	for i := range parts {
		p := &parts[i]
		if i > 0 {
			r.canon = append(r.canon, ',')
		}
		if plan != nil {
			p = &parts[order[bits.TrailingZeros64(ranks)%64]]
			ranks &= ranks - 1
			if !p.named {
				r.canon = append(r.canon, plan.members[p.member].quoted...)
			}
		}
		if p.made {
			r.canon = append(r.canon, r.canon[p.start:p.end]...)
		} else {
			r.canon = append(r.canon, r.text[p.start:p.end]...)
		}
	}
	r.canon = append(r.canon, end)
	r.form = r.madeFrom(start)
}

// name reads a key of the plan and the colon; next is the member that is likely.
func (r *specReader) name(plan *readPlan, next int) (*readMember, bool) {
	if next < len(plan.members) && strings.HasPrefix(r.text[r.pos:], plan.members[next].quoted) {
		m := &plan.members[next]
		r.pos += len(m.quoted)
		r.tokens++
		return m, true
	}
	if !r.take('"') {
		return nil, false
	}
	start, text := r.pos, r.text
	if start+8 > len(text) {
		return nil, false // no room for a key and a value
	}
	key, end := load8(text, start), start
	if quote := laneZero(key ^ '"'*lanes); quote != 0 {
		n := bits.TrailingZeros64(quote) / 8
		end, key = start+n, key&(1<<(8*n)-1)
	} else if n := strings.IndexByte(text[start+8:], '"'); n >= 0 {
		end = start + 8 + n
	} else {
		return nil, false // cut off within a key
	}
	key ^= uint64(end-start) << 56 // as nameKey does it
	for range plan.members {
		if next++; next >= len(plan.members) {
			next = 0
		}
		if m := &plan.members[next]; m.key == key && m.name == text[start:end] {
			r.pos = end + 1
			r.tokens++
			return m, r.take(':')
		}
	}
	return nil, false
}

// laneZero selects the lanes of x that are zero, and perhaps some above the first of them.
func laneZero(x uint64) uint64 { return (x - lanes) &^ x & highBits }

// list reads a list, calling item for each of its items.
func (r *specReader) list(item func() bool) bool {
	if !r.take('[') {
		return false
	}
	r.tokens += 2
	begin, spaced, open := r.pos-1, r.spaced, len(r.parts)
	asItIs := true
	for empty := r.take(']'); !empty; {
		if !item() {
			return false
		}
		r.parts = append(r.parts, readPart{piece: r.form})
		asItIs = asItIs && !r.form.made
		if !r.take(',') {
			if !r.take(']') {
				return false
			}
			break
		}
	}
	if asItIs && r.spaced == spaced {
		r.form = r.asItIs(begin)
	} else {
		r.make('[', r.parts[open:], nil, ']')
	}
	r.parts = r.parts[:open]
	return true
}

// string reads a text. One without escapes is its own canonical form.
func (r *specReader) string() (string, bool) {
	if !r.take('"') {
		return "", false
	}
	r.tokens++
	start, text := r.pos, r.text
	i := start
	for {
		if i+8 <= len(text) {
			stop := stringStops(load8(text, i))
			if stop == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(stop) / 8
		} else if i >= len(text) {
			return "", false
		} else if c := text[i]; c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		switch {
		case text[i] == '"':
			r.pos = i + 1
			r.form = r.asItIs(start - 1)
			return text[start:i], i-start <= maxStringBytes
		case text[i] == '\\':
			return r.escaped(start, i)
		}
		return "", false
	}
}

// stringStops selects the bytes that end the plain part of a text: quotes, backslashes,
// controls. The first is one; those above it may be others.
func stringStops(x uint64) uint64 {
	quote, slash := x^'"'*lanes, x^'\\'*lanes
	return ((quote - lanes) | (slash - lanes) | (x - ' '*lanes)) &^ x & highBits
}

// escaped reads a text with escapes; the first is at i.
func (r *specReader) escaped(start, i int) (string, bool) {
	for ; ; i++ {
		if i >= len(r.text) {
			return "", false
		}
		if c := r.text[i]; c == '"' {
			break
		} else if c == '\\' {
			i++
		}
	}
	plain, err := jsontext.AppendUnquote(nil, r.text[start-1:i+1])
	if err != nil || len(plain) > maxStringBytes || slices.Contains(plain, 0) {
		return "", false
	}
	from := len(r.canon)
	if r.canon, err = jsontext.AppendQuote(r.canon, plain); err != nil {
		return "", false
	}
	r.pos, r.form = i+1, r.madeFrom(from)
	return string(plain), true
}

// literal reads up to the end of a truth value or number.
func (r *specReader) literal() string {
	r.space()
	start := r.pos
	for r.pos < len(r.text) && strings.IndexByte(",]} \t\r\n", r.text[r.pos]) < 0 {
		r.pos++
	}
	r.tokens++
	r.form = r.asItIs(start)
	return r.text[start:r.pos]
}

func (r *specReader) truth() (value, ok bool) {
	text := r.literal()
	return text == "true", text == "true" || text == "false"
}

// count reads a whole number that is not negative.
func (r *specReader) count() (int64, bool) {
	text := r.literal()
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0 && n < maxExactInteger && text == strconv.FormatInt(n, 10)
}

func (r *specReader) number() (float64, bool) {
	text := r.literal()
	number := jsontext.Value(text)
	if number.Kind() != '0' || !number.IsValid() || !keptExactly(text) || number.Canonicalize() != nil {
		return 0, false
	}
	from := len(r.canon)
	r.canon = append(r.canon, number...)
	r.form = r.madeFrom(from)
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}
