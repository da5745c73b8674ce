package screening

import (
	"bytes"
	"encoding"
	"errors"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits of every document that weir reads: specs, packs, cases, policies and
// people files. They bound memory and time before any value is looked at.
const (
	MaxDocumentBytes = 1 << 20
	maxDepth         = 32
	maxTokens        = 20_000
	maxStringBytes   = 64 << 10
	maxNumberBytes   = 40
	maxExponent      = 308
	maxExactInteger  = 1 << 53
)

// Decode parses data strictly into v: one UTF-8 JSON or YAML document with no
// duplicate, case-variant or unknown keys, no NUL, no lone surrogates, no
// aliases, no numbers that lose digits. Keys that start with "x-" are notes for
// people and are left out. what and name ("pack", "rights.yaml") head the error,
// which is always an [*InvalidError] with pointers and, where known, lines.
func Decode(what, name string, data []byte, v any) error {
	d, err := parseDocument(what, name, data)
	if err != nil {
		return err
	}
	return d.decodeNotes(v)
}

// document is one strictly parsed document: its JSON form and how to find the
// source line of a pointer.
type document struct {
	what, name string
	json       jsontext.Value
	lines      map[string]int // pointer → line of a YAML source; nil for JSON, which is searched on demand
}

func parseDocument(what, name string, data []byte) (*document, error) {
	d := &document{what: what, name: name}
	refuse := func(p Problem) error {
		p.Pointer = shortPointer(p.Pointer)
		return &InvalidError{What: what, Name: name, Syntax: true, TooLarge: len(data) > MaxDocumentBytes, Problems: []Problem{p}}
	}
	if p := bytesProblem(data); p != nil {
		return nil, refuse(*p)
	}
	if looksLikeJSON(data) {
		d.json = data
	} else {
		var p *Problem
		if d.json, d.lines, p = yamlToJSON(data); p != nil {
			return nil, refuse(*p)
		}
	}
	if p := scanJSON(d.json); p != nil {
		if d.lines != nil {
			p.Line = d.locate()(p.Pointer)
		}
		return nil, refuse(*p)
	}
	return d, nil
}

// bytesProblem says why bytes are no document whatever they say.
func bytesProblem(data []byte) *Problem {
	switch {
	case len(data) > MaxDocumentBytes:
		return &Problem{Detail: "is larger than 1 MiB; split it or move bulk text out of it"}
	case bytes.HasPrefix(data, []byte("\ufeff")):
		return &Problem{Line: 1, Detail: "starts with a byte order mark; save it as UTF-8 without one"}
	case !utf8.Valid(data):
		return &Problem{Line: lineAt(data, validPrefix(data)), Detail: "is not valid UTF-8"}
	case len(bytes.TrimSpace(data)) == 0:
		return &Problem{Detail: "is empty"}
	}
	return nil
}

// looksLikeJSON tells JSON from YAML by the first byte alone, so that the same
// bytes are read the same way wherever they come from: never by trial.
func looksLikeJSON(data []byte) bool {
	t := bytes.TrimLeft(data, " \t\r\n")
	return len(t) > 0 && (t[0] == '{' || t[0] == '[')
}

// validPrefix is the length of the part of data that is valid UTF-8.
func validPrefix(data []byte) int {
	n := 0
	for n < len(data) {
		r, size := utf8.DecodeRune(data[n:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		n += size
	}
	return n
}

func lineAt(data []byte, offset int) int { return 1 + bytes.Count(data[:offset], []byte("\n")) }

// scanJSON checks what decoding into structs would not: depth, size of parts,
// NUL, holes in lists, and numbers that would not survive as they are.
// Well-formedness, UTF-8, surrogates and duplicate keys are the tokenizer's.
func scanJSON(data []byte) *Problem {
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	found := func(detail string) *Problem {
		return &Problem{Pointer: string(dec.StackPointer()), Detail: detail, Line: lineAt(data, int(dec.InputOffset()))}
	}
	checkStrings := len(data) > maxStringBytes || bytes.Contains(data, []byte(`\u0000`))
	for n := 0; ; n++ {
		ended := n > 0 && dec.StackDepth() == 0
		tok, err := dec.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ended:
			return &Problem{Detail: "has more after its end; send one document", Line: lineAt(data, int(dec.InputOffset()))}
		case err != nil:
			return syntaxProblem(data, err)
		case n >= maxTokens:
			return found("has more than 20,000 values and keys")
		}
		switch tok.Kind() {
		case '{', '[':
			if dec.StackDepth() > maxDepth {
				return found("is nested deeper than 32 levels")
			}
		case '"':
			if !checkStrings {
				continue
			}
			if s := tok.String(); len(s) > maxStringBytes {
				return found("is longer than 64 KiB")
			} else if strings.ContainsRune(s, 0) {
				return found("holds a NUL character")
			}
		case '0':
			if !keptExactly(tok.String()) {
				return found("is a number that would not be kept exactly; write it as text in quotes")
			}
		case 'n':
			if kind, _ := dec.StackIndex(dec.StackDepth()); kind == '[' {
				return found("is null inside a list; leave it out")
			}
		}
	}
}

// keptExactly reports whether a JSON number means the same after it was a
// double. Canonical JSON (RFC 8785) writes numbers as doubles, so
// 9007199254740993 would become another number.
func keptExactly(text string) bool {
	if len(text) > maxNumberBytes {
		return false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f == math.Trunc(f) && math.Abs(f) > maxExactInteger {
		return false
	}
	digits, exponent := decimal(text)
	keptDigits, keptExponent := decimal(strconv.FormatFloat(f, 'e', -1, 64))
	return digits == keptDigits && exponent == keptExponent && exponent > -maxExponent
}

// decimal gives the significant digits of a number and the power of ten that
// they are a fraction of: 0.0120 is 12 with -1.
func decimal(text string) (digits string, exponent int) {
	mantissa, exp, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(text, "-")), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	digits = strings.TrimLeft(all, "0")
	exponent, _ = strconv.Atoi(exp) // absent: 0; too large for an int: ParseFloat refused or flushed it already
	exponent += len(whole) - (len(all) - len(digits))
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		return "", 0
	}
	return digits, exponent
}

func syntaxProblem(data []byte, err error) *Problem {
	p := &Problem{Detail: "is not well-formed JSON"}
	var syn *jsontext.SyntacticError
	if !errors.As(err, &syn) {
		return p
	}
	p.Pointer, p.Line = string(syn.JSONPointer), lineAt(data, min(int(syn.ByteOffset), len(data)))
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		p.Detail = "is given twice; keep one"
	case errors.Is(err, io.ErrUnexpectedEOF):
		p.Detail = "ends in the middle; the document is cut off"
	case errors.Is(err, jsontext.ErrNonStringName):
		p.Detail = "has a key that is not text in double quotes"
	}
	return p
}

// decode unmarshals the document with unknown keys refused.
func (d *document) decode(v any) error { return d.unmarshal(d.json, v) }

// decodeNotes is decode for documents in which "x-" keys are notes.
func (d *document) decodeNotes(v any) error {
	stripped, err := stripNotes(d.json)
	if err != nil {
		return err
	}
	return d.unmarshal(stripped, v)
}

// peek reads the keys of v and passes over all others.
func (d *document) peek(v any) error { return json.Unmarshal(d.json, v) }

func (d *document) unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	p := Problem{Detail: "cannot be read"}
	var sem *json.SemanticError
	if errors.As(err, &sem) {
		var own *valueError
		p.Pointer = string(sem.JSONPointer)
		switch {
		case errors.Is(err, json.ErrUnknownName):
			p.Detail = "is not a known key; remove it or correct its spelling (keys are case-sensitive)"
		case errors.As(err, &own):
			p.Detail = own.detail
		default:
			p.Detail = "has the wrong type: " + typeWords(sem)
		}
	}
	return problems{p}.invalid(d.what, d.name, d)
}

// valueError lets an unmarshal method say what is wrong in plain words.
type valueError struct{ detail string }

func (e *valueError) Error() string { return e.detail }

// typeWords names the JSON type found and the one wanted, without Go's names.
func typeWords(e *json.SemanticError) string {
	found := map[jsontext.Kind]string{'n': "null", 't': "true or false", 'f': "true or false", '"': "text",
		'0': "a number", '{': "an object", '[': "a list"}[e.JSONKind]
	if found == "" {
		found = "a value of another type"
	}
	want := "another type"
	if e.GoType != nil {
		t := e.GoType
		if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
			t = reflect.TypeFor[string]()
		}
		switch t.Kind() {
		case reflect.String:
			want = "text (in YAML, put it in quotes)"
		case reflect.Bool:
			want = "true or false"
		case reflect.Slice:
			want = "a list"
		case reflect.Struct, reflect.Map, reflect.Pointer:
			want = "an object"
		case reflect.Int, reflect.Int64:
			want = "a whole number"
		case reflect.Float64:
			want = "a number"
		}
	}
	return "found " + found + ", expected " + want
}

// locate gives a function from a pointer to the 1-based source line of its
// value, or of the nearest ancestor that has one. Only error paths pay for it.
func (d *document) locate() func(pointer string) int {
	lines := d.lines
	if lines == nil {
		lines = jsonLines(d.json)
	}
	return func(pointer string) int {
		for {
			if line, ok := lines[pointer]; ok {
				return line
			}
			i := strings.LastIndexByte(pointer, '/')
			if i < 0 {
				return 0
			}
			pointer = pointer[:i]
		}
	}
}

// jsonLines finds the line of every value; of a member, the line of its key.
func jsonLines(data []byte) map[string]int {
	lines := map[string]int{}
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	line, counted := 1, 0
	for {
		if _, err := dec.ReadToken(); err != nil {
			return lines
		}
		offset := int(dec.InputOffset())
		line += bytes.Count(data[counted:offset], []byte("\n"))
		counted = offset
		pointer := string(dec.StackPointer())
		if _, known := lines[pointer]; !known {
			lines[pointer] = line
		}
	}
}

// shortPointer keeps a hostile key out of an error: a pointer too long to be
// read becomes that of the nearest ancestor short enough.
func shortPointer(pointer string) string {
	const most = 256
	for len(pointer) > most {
		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}
	return pointer
}

// stripNotes copies a JSON document without the members whose key starts with "x-".
func stripNotes(data []byte) ([]byte, error) {
	if !bytes.Contains(data, []byte(`"x-`)) && !bytes.Contains(data, []byte(`\u`)) {
		return data, nil
	}
	var out bytes.Buffer
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	enc := jsontext.NewEncoder(&out)
	for {
		kind, n := dec.StackIndex(dec.StackDepth())
		isName := kind == '{' && n%2 == 0
		tok, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		if isName && tok.Kind() == '"' && strings.HasPrefix(tok.String(), "x-") {
			if err := dec.SkipValue(); err != nil {
				return nil, err
			}
			continue
		}
		if err := enc.WriteToken(tok); err != nil {
			return nil, err
		}
	}
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(token string) string { return pointerEscapes.Replace(token) }

// Locate gives the 1-based source line of what a pointer names in a document that
// [Decode] took, or of what holds it; 0 when it is not known. It is for those who
// find faults in what they decoded.
func Locate(data []byte, pointer string) int {
	d, err := parseDocument("", "", data)
	if err != nil {
		return 0
	}
	return d.locate()(pointer)
}
