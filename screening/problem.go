package screening

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong with a document, and where it stands.
type Problem struct {
	Pointer string `json:"pointer"`       // RFC 6901 pointer into the document; "" is the whole
	Detail  string `json:"detail"`        // what is wrong and what to do; never echoes a submitted value
	Line    int    `json:"line,omitzero"` // 1-based line in the source, 0 when not known
}

// InvalidError says that a document was refused. It is the only error the
// loaders of this package give for bad input.
type InvalidError struct {
	What     string // kind of document: "training spec", "pack", ...
	Name     string // file name or id, may be empty
	Syntax   bool   // the bytes are not one well-formed document
	TooLarge bool   // the bytes exceed the size limit
	Problems []Problem
}

func (e *InvalidError) Error() string {
	var b strings.Builder
	b.WriteString(e.What)
	if e.Name != "" {
		b.WriteString(" " + e.Name)
	}
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteString(";")
		} else {
			b.WriteString(":")
		}
		if p.Line > 0 {
			fmt.Fprintf(&b, " line %d:", p.Line)
		}
		if p.Pointer != "" {
			b.WriteString(" " + p.Pointer + ":")
		}
		b.WriteString(" " + p.Detail)
	}
	return b.String()
}

// problems collects what is wrong while a document is checked.
type problems []Problem

func (ps *problems) add(pointer, format string, args ...any) {
	*ps = append(*ps, Problem{Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
}

// addAt is add for a place in a spec.
func (ps *problems) addAt(at place, format string, args ...any) {
	ps.add(at.String(), format, args...)
}

// invalid turns the collection into an error, nil when it is empty. d may be
// nil; it locates the pointers in the source.
func (ps problems) invalid(what, name string, d *document) error {
	if len(ps) == 0 {
		return nil
	}
	const most = 50 // a reader fixes the first few; an attacker must not get megabytes back
	out := slices.Clone(ps[:min(len(ps), most)])
	line := func(string) int { return 0 }
	if d != nil {
		line = d.locate()
	}
	for i := range out {
		if out[i].Line == 0 {
			out[i].Line = line(out[i].Pointer)
		}
		out[i].Pointer = shortPointer(out[i].Pointer)
	}
	return &InvalidError{What: what, Name: name, Problems: out}
}

// oneOf lists the accepted codes for a message.
func oneOf[T ~string](codes []T) string {
	s := make([]string, len(codes))
	for i, c := range codes {
		s[i] = string(c)
	}
	return strings.Join(s, ", ")
}
