package formats

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a file, before anything of it is looked at. A Croissant file names
// every file of a data set and can be large; YAML is written by hand.
const (
	MaxFileBytes = 8 << 20
	maxYAMLBytes = 1 << 20
	maxDepth     = 64
	maxValues    = 500_000
	maxYAMLNodes = 200_000
	maxDocuments = 32
)

// Reason says why a file was refused.
type Reason string

// The reasons.
const (
	TooLarge       Reason = "too_large"
	TooDeep        Reason = "too_deep"
	TooManyValues  Reason = "too_many_values"
	Empty          Reason = "empty"
	NotUTF8        Reason = "not_utf8"
	NotJSON        Reason = "not_json"
	HasComments    Reason = "comments_in_json"
	NotYAML        Reason = "not_yaml"
	DuplicateKey   Reason = "duplicate_key"
	HasAlias       Reason = "yaml_alias"
	NotAMap        Reason = "not_a_map"
	NoFrontMatter  Reason = "no_front_matter"
	UnknownFormat  Reason = "unknown_format"
	NotThisFormat  Reason = "not_this_format" // it says it is one thing and is another
	UnknownVersion Reason = "unknown_version"
	NoRecord       Reason = "no_record" // well-formed, and about nothing that goes into training
)

// RefusedError says that a file was not imported. Nothing of it was used.
type RefusedError struct {
	Name   string // of the file
	Reason Reason
	Line   int    // 1-based, 0 when not known
	Detail string // what is wrong and what to do; echoes nothing of the file
}

func (e *RefusedError) Error() string {
	where := e.Name
	if e.Line > 0 {
		where += ":" + strconv.Itoa(e.Line)
	}
	return fmt.Sprintf("%s: %s (%s)", where, e.Detail, e.Reason)
}

// source is a file cut into its documents.
type source struct {
	name string
	data []byte
	docs []value // at least one
	card bool    // Markdown: docs[0] is the front matter
	body string  // of a card, "" if it could not be read

	bom, badBody, second bool
}

// open cuts a file into documents without knowing what they are about.
func open(name string, data []byte) (*source, error) {
	s := &source{name: name, data: data}
	refuse := func(reason Reason, line int, detail string) error { return &RefusedError{name, reason, line, detail} }
	if len(data) > MaxFileBytes {
		return nil, refuse(TooLarge, 0, "the file is larger than 8 MiB; import a part of it, or its summary")
	}
	text, bom := bytes.CutPrefix(data, []byte("\ufeff"))
	s.bom = bom
	trimmed := bytes.TrimLeft(text, " \t\r\n")
	if len(trimmed) == 0 {
		return nil, refuse(Empty, 0, "the file is empty")
	}
	switch ext := strings.ToLower(path.Ext(name)); {
	case ext == ".md", ext == ".markdown", ext == ".mdx":
		return s, s.openCard(text)
	case trimmed[0] == '{', trimmed[0] == '[', ext == ".json", ext == ".jsonld", ext == ".jsonc":
		doc, err := readJSON(name, text)
		s.docs = []value{{node: doc}}
		return s, err
	case ext == ".yaml", ext == ".yml":
	case looksLikeCard(trimmed):
		return s, s.openCard(text)
	}
	return s, s.openYAML(text)
}

var (
	frontMatter = regexp.MustCompile(`^\s*---[ \t]*(?:\r\n|\r|\n)((?s:.*?)(?:\r\n|\r|\n))??---[ \t]*(?:\r\n|\r|\n|$)`)
	keyAtLine   = regexp.MustCompile(`(?m)^[A-Za-z_][\w -]*:`)
	heading     = regexp.MustCompile(`(?m)^#{1,6}[ \t]+\S`)
)

// looksLikeCard tells a card without a telling name from a stream of YAML
// documents: after its front matter comes Markdown, which is no map.
func looksLikeCard(text []byte) bool {
	if m := frontMatter.FindIndex(text); m != nil {
		first := bytes.TrimLeft(text[m[1]:], " \t\r\n")
		return len(first) > 0 && heading.Match(first[:min(len(first), 200)]) && !bytes.Contains(first[:min(len(first), 4096)], []byte("\napiVersion:"))
	}
	return heading.Match(text[:min(len(text), 200)]) && !bytes.Contains(text, []byte(": "))
}

func (s *source) openCard(text []byte) error {
	s.card = true
	m := frontMatter.FindSubmatchIndex(text)
	head, body := []byte(nil), text
	if m != nil {
		body = text[m[1]:]
		if m[2] >= 0 {
			head = text[m[2]:m[3]]
		}
	}
	if s.badBody = !utf8.Valid(body); !s.badBody {
		s.body = string(body)
	}
	if again := frontMatter.FindSubmatch(body); m != nil && again != nil {
		s.second = keyAtLine.Match(again[1]) // else it is two rulers
	}
	switch {
	case m == nil && s.badBody:
		return &RefusedError{s.name, NotUTF8, 0, "the file is not valid UTF-8"}
	case m == nil: // a datasheet, if anything
		s.docs = []value{noValue}
		return nil
	}
	root, err := readYAML(s.name, head, 1+bytes.Count(text[:max(m[2], 0)], []byte("\n")))
	if err != nil {
		return err
	}
	if len(root) == 0 {
		return &RefusedError{s.name, NotAMap, 1, "the front matter is empty; the card says nothing that can be read"}
	}
	if len(root) > 1 || root[0].kind != isMap {
		return &RefusedError{s.name, NotAMap, 1, "the front matter is not a map of keys and values"}
	}
	s.docs = []value{{node: &root[0]}}
	return nil
}

func (s *source) openYAML(text []byte) error {
	roots, err := readYAML(s.name, text, 1)
	if err != nil {
		return err
	}
	if len(roots) == 0 {
		return &RefusedError{s.name, Empty, 0, "the file holds no document"}
	}
	for i := range roots {
		at := ""
		if len(roots) > 1 {
			at = "/" + strconv.Itoa(i) // documents are pointed into as if they were a list
		}
		s.docs = append(s.docs, value{&roots[i], at})
	}
	return nil
}
