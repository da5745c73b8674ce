package main

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"weir/screening"
)

// region is where a phrase stands in the source: 1-based lines and columns, in
// code points, the end after the last one. The text is as the source has it.
type region struct {
	startLine, startColumn, endLine, endColumn int
	text                                       string
}

// snippet is the text, line by line printable.
func (r *region) snippet() string {
	lines := strings.Split(r.text, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// regions gives the lookup of the region of a span of the text at a pointer, nil
// where the source does not show it as it is: escaped, or not told apart from the
// same words elsewhere. A region is shown only where it is right.
func (s sourceSpec) regions(raw []byte, above int) func(at reportedPlace) *region {
	var doc any
	if s.ParsedSpec != nil {
		_ = json.Unmarshal(s.JSON(), &doc) // it was parsed before
	}
	return func(at reportedPlace) *region {
		text, ok := textAt(doc, at.Pointer)
		if !ok || at.Line == 0 || at.Span == nil || at.Span.Start < 0 || at.Span.End > len(text) || at.Span.Start >= at.Span.End {
			return nil
		}
		r := regionOf(string(raw), at.Line-above, text, *at.Span)
		if r != nil {
			r.startLine, r.endLine = r.startLine+above, r.endLine+above
		}
		return r
	}
}

// textAt walks a JSON pointer.
func textAt(doc any, pointer string) (text string, ok bool) {
	for _, name := range strings.Split(pointer, "/")[1:] {
		switch v := doc.(type) {
		case map[string]any:
			doc = v[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return "", false
			}
			doc = v[i]
		default:
			return "", false
		}
	}
	text, ok = doc.(string)
	return text, ok
}

// regionOf finds a span of a text in the lines that hold it: the line of its key
// and those below that are indented deeper. The words of the span have to be there
// as often as in the text, so that the right ones are known.
func regionOf(raw string, line int, text string, span screening.Span) *region {
	lines := strings.SplitAfter(raw, "\n")
	if line > len(lines) {
		return nil
	}
	from := len(strings.Join(lines[:line-1], ""))
	to := from + len(lines[line-1])
	for depth, i := indent(lines[line-1]), line; i < len(lines) && (strings.TrimSpace(lines[i]) == "" || indent(lines[i]) > depth); i++ {
		to += len(lines[i])
	}
	words := strings.Fields(text[span.Start:span.End])
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	phrase, err := regexp.Compile(strings.Join(words, `\s+`)) // a folded text breaks lines anywhere
	if err != nil || len(words) == 0 {
		return nil
	}
	there, said := phrase.FindAllStringIndex(raw[from:to], -1), phrase.FindAllStringIndex(text, -1)
	if len(there) != len(said) {
		return nil
	}
	for i, s := range said {
		if s[0] == span.Start && s[1] == span.End {
			start, end := from+there[i][0], from+there[i][1]
			r := region{text: raw[start:end]}
			r.startLine, r.startColumn = position(raw, start)
			r.endLine, r.endColumn = position(raw, end)
			return &r
		}
	}
	return nil
}

// indent is where the text of a line begins, behind the dashes of a list.
func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " -")) }

func position(raw string, offset int) (line, column int) {
	before := raw[:offset]
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}
