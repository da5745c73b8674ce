package screening

import (
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// specReader reads a training spec from JSON in one pass: it checks what strict
// decoding checks, fills the structs, and writes the canonical form beside. It
// accepts only what the general decoder (document.go) accepts, with the same
// result; whatever is out of the ordinary it leaves to that one, which can also
// say what is wrong. Texts are not copied: they are parts of the document.
type specReader struct {
	text   string
	pos    int
	tokens int

	canon   []byte   // canonical form of what was read
	members []member // of the objects that are open
	swap    []byte
}

// member is one member of an object in canon.
type member struct {
	rank       int // of its key in canonical order
	start, end int
}

var specReaders = sync.Pool{New: func() any { return new(specReader) }}

// readSpec reads a document that is valid UTF-8. ok: spec and the digest of its canonical form are complete.
func readSpec(text string, spec *Spec) (canonical Digest256, ok bool) {
	r := specReaders.Get().(*specReader)
	*r = specReader{text: text, canon: r.canon[:0], members: r.members[:0], swap: r.swap}
	r.space()
	ok = r.object(specPlan(), reflect.ValueOf(spec).Elem())
	r.space()
	ok = ok && r.pos == len(text) && r.tokens <= maxTokens
	if ok {
		canonical = Sum(r.canon)
	}
	r.text = ""
	specReaders.Put(r)
	return canonical, ok
}

// readPlan says how an object is read into a struct.
type readPlan struct {
	fields []readField
	large  bool // copying it costs more than room that stays empty
}

// room is how many more to make room for in a list that has n.
func (p *readPlan) room(n int) int {
	if p.large && n == 0 {
		return 8
	}
	return max(1, 3*n)
}

type readField struct {
	name  string
	key   uint64 // of name, see nameKey
	index int    // in the struct
	rank  int    // in canonical order
	kind  readKind
	plan  *readPlan // of the struct or the list's structs
}

type readKind uint8

const (
	readText readKind = iota
	readTexts
	readStruct
	readStructs
	readStructPointer
	readOther // numbers and truth values, by the general decoder's rules
)

var specPlan = sync.OnceValue(func() *readPlan {
	return newReadPlan(reflect.TypeFor[Spec](), map[reflect.Type]*readPlan{})
})

func newReadPlan(t reflect.Type, known map[reflect.Type]*readPlan) *readPlan {
	if p := known[t]; p != nil {
		return p
	}
	p := &readPlan{large: t.Size() > 256}
	known[t] = p
	var names []string
	for i := range t.NumField() {
		f := readField{name: t.Field(i).Tag.Get("json"), index: i, kind: readOther}
		f.key = nameKey(f.name, 0, len(f.name))
		switch of := t.Field(i).Type; {
		case of.Kind() == reflect.String:
			f.kind = readText
		case of == reflect.TypeFor[[]string]():
			f.kind = readTexts
		case of.Kind() == reflect.Struct:
			f.kind, f.plan = readStruct, newReadPlan(of, known)
		case of.Kind() == reflect.Slice:
			f.kind, f.plan = readStructs, newReadPlan(of.Elem(), known)
		case of.Kind() == reflect.Pointer && of.Elem().Kind() == reflect.Struct:
			f.kind, f.plan = readStructPointer, newReadPlan(of.Elem(), known)
		}
		p.fields = append(p.fields, f)
		names = append(names, f.name)
	}
	slices.Sort(names)
	for i := range p.fields {
		p.fields[i].rank = slices.Index(names, p.fields[i].name)
	}
	return p
}

// nameKey tells names apart nearly always: their length and first letters.
func nameKey(text string, start, end int) uint64 {
	n := end - start
	if start+8 <= len(text) {
		x := load8(text, start)
		if n < 8 {
			x &= 1<<(8*n) - 1
		}
		return x ^ uint64(n)<<56
	}
	var x uint64
	for i := range min(n, 8) {
		x |= uint64(text[start+i]) << (8 * i)
	}
	return x ^ uint64(n)<<56
}

func (r *specReader) space() {
	for r.pos < len(r.text) {
		switch r.text[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
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

func (r *specReader) object(plan *readPlan, v reflect.Value) bool {
	if !r.take('{') {
		return false
	}
	r.tokens += 2
	r.canon = append(r.canon, '{')
	open := len(r.members)
	var seen uint64
	sorted, last := true, -1
	for next := 0; ; {
		if len(r.members) == open && r.take('}') {
			break
		}
		start := len(r.canon)
		f, ok := r.name(plan, next)
		if !ok || seen&(1<<f.index) != 0 || !r.value(f, v.Field(f.index)) {
			return false
		}
		seen |= 1 << f.index
		next = f.index + 1
		sorted, last = sorted && f.rank > last, f.rank
		r.canon = append(r.canon, ',')
		r.members = append(r.members, member{f.rank, start, len(r.canon)})
		if !r.take(',') {
			if !r.take('}') {
				return false
			}
			break
		}
	}
	if !sorted {
		r.sort(r.members[open:])
	}
	if len(r.members) > open { // the last comma
		r.canon = r.canon[:len(r.canon)-1]
	}
	r.members = r.members[:open]
	r.canon = append(r.canon, '}')
	return true
}

// sort puts the members of an object, which are the end of canon, in canonical order.
func (r *specReader) sort(members []member) {
	var at [64]int8
	var ranks uint64
	for i, m := range members {
		at[m.rank] = int8(i)
		ranks |= 1 << m.rank
	}
	r.swap = r.swap[:0]
	for ; ranks != 0; ranks &= ranks - 1 {
		m := &members[at[bits.TrailingZeros64(ranks)]]
		r.swap = append(r.swap, r.canon[m.start:m.end]...)
	}
	copy(r.canon[members[0].start:], r.swap)
}

// name reads a key of the plan and the colon; next is the field that is likely.
func (r *specReader) name(plan *readPlan, next int) (*readField, bool) {
	if !r.take('"') {
		return nil, false
	}
	start, text := r.pos, r.text
	end := start
	for end < len(text) && text[end] != '"' {
		end++
	}
	if end == len(text) {
		return nil, false // cut off within a key
	}
	key := nameKey(text, start, end)
	for range plan.fields {
		if next == len(plan.fields) {
			next = 0
		}
		f := &plan.fields[next]
		if f.key != key || f.name != text[start:end] {
			next++
			continue
		}
		r.pos = end + 1
		r.tokens++
		if r.pos < len(text) && text[r.pos] == ':' {
			r.pos++
			r.canon = append(r.canon, text[start-1:r.pos]...)
			return f, true
		}
		r.canon = append(append(r.canon, text[start-1:r.pos]...), ':')
		return f, r.take(':')
	}
	return nil, false
}

func (r *specReader) value(f *readField, v reflect.Value) bool {
	switch f.kind {
	case readText:
		s, ok := r.string()
		if ok {
			v.SetString(s)
		}
		return ok
	case readTexts:
		return r.texts(v.Addr().Interface().(*[]string))
	case readStruct:
		return r.object(f.plan, v)
	case readStructs:
		return r.structs(f.plan, v)
	case readStructPointer:
		v.Set(reflect.New(v.Type().Elem()))
		return r.object(f.plan, v.Elem())
	}
	return r.other(v)
}

// list reads a list, calling item for each of its items.
func (r *specReader) list(item func(i int) bool) bool {
	if !r.take('[') {
		return false
	}
	r.tokens += 2
	r.canon = append(r.canon, '[')
	if r.take(']') {
		r.canon = append(r.canon, ']')
		return true
	}
	for i := 0; ; i++ {
		if i > 0 {
			r.canon = append(r.canon, ',')
		}
		if !item(i) {
			return false
		}
		if !r.take(',') {
			r.canon = append(r.canon, ']')
			return r.take(']')
		}
	}
}

func (r *specReader) texts(all *[]string) bool {
	*all = []string{}
	return r.list(func(int) bool {
		s, ok := r.string()
		*all = append(*all, s)
		return ok
	})
}

func (r *specReader) structs(plan *readPlan, v reflect.Value) bool {
	n := 0
	ok := r.list(func(i int) bool {
		if i == v.Cap() {
			v.Grow(plan.room(i))
		}
		n = i + 1
		v.SetLen(n)
		return r.object(plan, v.Index(i))
	})
	if ok && n == 0 { // an empty list is not a missing one
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	}
	return ok
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
			if stop := stringStops(load8(text, i)); stop == 0 {
				i += 8
				continue
			} else {
				i += bits.TrailingZeros64(stop) / 8
			}
		} else if i >= len(text) {
			return "", false
		} else if c := text[i]; c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		switch {
		case text[i] == '"':
			r.pos = i + 1
			r.canon = append(r.canon, text[start-1:i+1]...)
			return text[start:i], i-start <= maxStringBytes
		case text[i] == '\\':
			return r.escaped(start, i)
		}
		return "", false
	}
}

// stringStops selects the bytes that end the plain part of a text: quotes, backslashes, controls.
func stringStops(x uint64) uint64 {
	plain := x &^ highBits
	quote, slash := plain^'"'*lanes, plain^'\\'*lanes
	// The high bit of a lane survives the sums unless the lane is zero, or below 0x20.
	return ^((quote + 0x7F*lanes) & (slash + 0x7F*lanes) & (plain + 0x60*lanes)) &^ x & highBits
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
	if r.canon, err = jsontext.AppendQuote(r.canon, plain); err != nil {
		return "", false
	}
	r.pos = i + 1
	return string(plain), true
}

// other reads truth values and numbers.
func (r *specReader) other(v reflect.Value) bool {
	r.space()
	start := r.pos
	for r.pos < len(r.text) && strings.IndexByte(",]} \t\r\n", r.text[r.pos]) < 0 {
		r.pos++
	}
	r.tokens++
	text := r.text[start:r.pos]
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(text == "true")
		r.canon = append(r.canon, text...)
		return text == "true" || text == "false"
	case reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		v.SetInt(n)
		r.canon = append(r.canon, text...)
		return err == nil && n >= 0 && n < maxExactInteger && text == strconv.FormatInt(n, 10)
	case reflect.Float64:
		number := jsontext.Value(text)
		if number.Kind() != '0' || !number.IsValid() || !keptExactly(text) || number.Canonicalize() != nil {
			return false
		}
		f, err := strconv.ParseFloat(text, 64)
		v.SetFloat(f)
		r.canon = append(r.canon, number...)
		return err == nil
	}
	return false
}
