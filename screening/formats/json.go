package formats

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// sizeOfJSON goes over a document up to its end or first mistake, and says where
// and how it is too large; "" when it is not.
func sizeOfJSON(data []byte) (Reason, int64) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	for values := 0; ; {
		tok, err := dec.ReadToken()
		if err != nil {
			return "", 0
		}
		if dec.StackDepth() > maxDepth {
			return TooDeep, dec.InputOffset()
		}
		switch tok.Kind() {
		case '}', ']':
			continue
		case '"': // a name, if what it is in holds an odd number of names and values now
			if in, n := dec.StackIndex(dec.StackDepth()); in == '{' && n%2 == 1 {
				continue
			}
		}
		if values++; values > maxValues {
			return TooManyValues, dec.InputOffset()
		}
	}
}

// readJSON reads one JSON document strictly: every key once, valid UTF-8, no comments.
func readJSON(name string, data []byte) (*node, error) {
	refuse := func(reason Reason, offset int64, detail string) error {
		return &RefusedError{name, reason, 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n")), detail}
	}
	// Counted before anything is kept: what is refused for its size has cost nothing.
	if reason, at := sizeOfJSON(data); reason != "" {
		return nil, refuse(reason, at, map[Reason]string{TooManyValues: "the file has more than 500,000 values",
			TooDeep: "the file is nested deeper than 64 levels"}[reason])
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	var read func(n *node) error
	read = func(n *node) error {
		tok, err := dec.ReadToken()
		if err != nil {
			return err
		}
		switch tok.Kind() {
		case 't', 'f':
			n.kind, n.text = isBool, tok.String()
		case '0':
			n.kind, n.text = isNumber, tok.String()
		case '"':
			n.kind, n.text = isText, tok.String()
		case '{', '[':
			n.kind = isMap
			end := jsontext.Kind('}')
			if tok.Kind() == '[' {
				n.kind, end = isList, ']'
			}
			for dec.PeekKind() != end {
				if n.kind == isMap {
					key, err := dec.ReadToken()
					if err != nil {
						return err
					}
					n.keys = append(n.keys, key.String())
				}
				if len(n.items) == cap(n.items) { // a list of many grows by doubling
					n.items = slices.Grow(n.items, max(4, len(n.items)))
				}
				n.items = append(n.items, node{})
				if err := read(&n.items[len(n.items)-1]); err != nil {
					return err
				}
			}
			_, err = dec.ReadToken()
			return err
		}
		return nil
	}
	root := new(node)
	err := read(root)
	if err == nil {
		if _, err = dec.ReadToken(); errors.Is(err, io.EOF) {
			return root, nil
		} else if err == nil {
			return nil, refuse(NotJSON, dec.InputOffset(), "the file has more after the end of the document")
		}
	}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		errors.As(err, &syntax)
		return nil, refuse(DuplicateKey, syntax.ByteOffset, "a key is given twice, and readers differ in which one they take; keep one")
	case !errors.As(err, &syntax):
		return nil, refuse(NotJSON, dec.InputOffset(), "the file is cut off")
	case !utf8.Valid(data):
		return nil, refuse(NotUTF8, syntax.ByteOffset, "the file is not valid UTF-8")
	}
	if rest := bytes.TrimLeft(data[min(int(syntax.ByteOffset), len(data)):], " \t\r\n,"); bytes.HasPrefix(rest, []byte("//")) || bytes.HasPrefix(rest, []byte("/*")) {
		return nil, refuse(HasComments, syntax.ByteOffset, "the file is JSON with comments, which is no JSON; take them out")
	}
	return nil, refuse(NotJSON, syntax.ByteOffset, "the file is not well-formed JSON")
}
