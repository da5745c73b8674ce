package console

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"weir/screening"
)

// specLine is one line of a spec as the gate read it: a key with a value, or the
// beginning or end of a list or object.
type specLine struct {
	Number  int // from 1
	Depth   int
	Key     string // "" in a list and at the top
	Named   bool   // has a key
	Text    string // of a string: its value, without escapes; else JSON
	Quoted  bool   // Text is a string's value
	Pointer string
	Spans   []screening.Span // marked places in Text, in order
	Flagged bool             // a finding speaks of this line
}

// harm reports whether the line is one that is held back until it is asked for:
// text in which something was found.
func (l *specLine) harm() bool { return len(l.Spans) > 0 }

// same reports whether two lines say the same, wherever they stand.
func (l *specLine) same(o *specLine) bool {
	return l.Depth == o.Depth && l.Key == o.Key && l.Quoted == o.Quoted && l.Text == o.Text
}

// readLines lays out a document of strict JSON, as a ParsedSpec has it.
func readLines(doc jsontext.Value) ([]specLine, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(doc))
	var lines []specLine
	key, named := "", false
	for {
		tok, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return lines, nil
		} else if err != nil {
			return nil, err
		}
		depth := dec.StackDepth()
		if kind, length := dec.StackIndex(depth); tok.Kind() == '"' && kind == '{' && length%2 == 1 { // a name
			key, named = tok.String(), true
			continue
		}
		line := specLine{Number: len(lines) + 1, Depth: depth, Key: key, Named: named, Pointer: string(dec.StackPointer())}
		switch tok.Kind() {
		case '{', '[':
			line.Depth, line.Text = depth-1, string(rune(tok.Kind()))
			// The pointer of what was opened, not of its first member.
		case '}', ']':
			line.Text = string(rune(tok.Kind()))
			if last := &lines[len(lines)-1]; last.Depth == depth && (last.Text == "{" || last.Text == "[") && !last.Quoted {
				last.Text += line.Text // empty
				key, named = "", false
				continue
			}
			line.Pointer = ""
		case '"':
			line.Text, line.Quoted = tok.String(), true
		default:
			line.Text = tok.String()
		}
		lines = append(lines, line)
		key, named = "", false
	}
}

// specView is a spec laid out, with what the findings of a decision speak of marked.
type specView struct {
	Lines   []specLine
	Flagged []int // numbers of the flagged lines
	Harm    int   // lines that are held back
	at      map[string]int
}

// newSpecView lays out a spec. Pointers that name nothing mark the nearest part around them.
func newSpecView(doc jsontext.Value, d *screening.Decision) (*specView, error) {
	lines, err := readLines(doc)
	if err != nil {
		return nil, err
	}
	v := &specView{Lines: lines, at: make(map[string]int, len(lines))}
	for i := range lines {
		if l := &lines[i]; l.Pointer != "" || i == 0 {
			v.at[l.Pointer] = i
		}
	}
	mark := func(f *screening.Finding) {
		for _, ev := range f.Evidence {
			if ev.Pointer == "" {
				continue
			}
			l := &v.Lines[v.line(ev.Pointer)-1]
			l.Flagged = true
			if ev.Span != nil && l.Quoted && l.Pointer == ev.Pointer && ev.Span.Start < ev.Span.End && ev.Span.End <= len(l.Text) {
				l.Spans = append(l.Spans, *ev.Span)
			}
		}
	}
	for _, f := range allFindings(d) {
		if f.State != screening.Upheld {
			mark(f)
		}
	}
	for i := range v.Lines {
		l := &v.Lines[i]
		if l.Flagged {
			v.Flagged = append(v.Flagged, l.Number)
		}
		if l.harm() {
			slices.SortFunc(l.Spans, func(a, b screening.Span) int { return a.Start - b.Start })
			v.Harm++
		}
	}
	return v, nil
}

// line gives the number of the line where a pointer's value begins, or the
// nearest part around it.
func (v *specView) line(pointer string) int {
	for {
		if i, ok := v.at[pointer]; ok {
			return i + 1
		}
		i := strings.LastIndexByte(pointer, '/')
		if i < 0 {
			return 1
		}
		pointer = pointer[:i]
	}
}

const (
	lineHead   = 400 // bytes of a long value that are shown at its start
	lineAround = 160 // and on each side of a mark
	lineMarks  = 8   // marks of one value that are shown
	pageBytes  = 28 << 10
)

// specPage is the part of a spec that fits a page.
type specPage struct {
	Lines      []template.HTML
	First      int // number of the first line
	Last       int
	Total      int
	Previous   int // line at which an earlier page begins, 0 = none
	Next       int
	Flagged    []int // numbers of flagged lines, a few
	MoreFlags  int
	Harm       int  // lines of the whole spec that are held back
	Revealed   bool // they are shown
	WholeFlags int
}

// page gives the lines from one on, as many as fit.
func (v *specView) page(from int, reveal bool) specPage {
	from = min(max(from, 1), len(v.Lines))
	p := specPage{First: from, Total: len(v.Lines), Harm: v.Harm, Revealed: reveal, WholeFlags: len(v.Flagged)}
	const most = 12
	p.Flagged = v.Flagged[:min(most, len(v.Flagged))]
	p.MoreFlags = len(v.Flagged) - len(p.Flagged)
	size := 0
	for i := from - 1; i < len(v.Lines) && (size < pageBytes && len(p.Lines) < 200 || i == from-1); i++ {
		html := v.Lines[i].html(reveal)
		if size+len(html) > pageBytes+(12<<10) && i > from-1 {
			break
		}
		size += len(html)
		p.Lines = append(p.Lines, html)
	}
	p.Last = from + len(p.Lines) - 1
	if p.Last < p.Total {
		p.Next = p.Last + 1
	}
	if from > 1 {
		p.Previous = max(from-100, 1)
	}
	return p
}

// code is the line without its number: key and value.
func (l *specLine) code(reveal bool) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<code class="d%d">`, min(l.Depth, 8))
	if l.Named {
		b.WriteString(`<span class="k">`)
		writeVisible(&b, cut(120, l.Key))
		b.WriteString(`</span>: `)
	}
	l.write(&b, reveal)
	b.WriteString(`</code>`)
	return template.HTML(b.String()) //nolint:gosec // every part is escaped or ours
}

// html is a line with its marks. What is held back is replaced by what can be
// said about it.
func (l *specLine) html(reveal bool) template.HTML {
	class, note := "", ""
	if l.Flagged {
		class, note = ` class="hit"`, `<span class="sr"> (flagged)</span>`
	}
	html := fmt.Sprintf(`<li id="L%d"%s value="%d">%s%s</li>`, l.Number, class, l.Number, l.code(reveal), note)
	return template.HTML(html) //nolint:gosec // every part is escaped or ours
}

// Value is the line's value alone.
func (l *specLine) Value(reveal bool) template.HTML {
	var b strings.Builder
	l.write(&b, reveal)
	return template.HTML(b.String()) //nolint:gosec // every part is escaped or ours
}

func (l *specLine) write(b *strings.Builder, reveal bool) {
	switch {
	case !l.Quoted:
		writeVisible(b, cut(200, l.Text))
	case l.harm() && !reveal:
		fmt.Fprintf(b, `<span class="veil"><span class="blur" aria-hidden="true">lorem ipsum dolor sit amet</span> held back: %s, %s</span>`,
			count(utf8.RuneCountInString(l.Text), "character", "characters"), count(len(l.Spans), "marked place", "marked places"))
	default:
		b.WriteString(`<span class="v">`)
		l.writeValue(b)
		b.WriteString(`</span>`)
	}
}

// writeValue shows the beginning of a text and the surroundings of its marks.
func (l *specLine) writeValue(b *strings.Builder) {
	text, shown := l.Text, 0
	show := func(from, to int) { // what is skipped is said
		from, to = runeStart(text, max(from, shown)), runeStart(text, min(to, len(text)))
		if from > shown {
			fmt.Fprintf(b, `<span class="gap"> … %s more … </span>`, count(utf8.RuneCountInString(text[shown:from]), "character", "characters"))
		}
		if to > from {
			writeVisible(b, text[from:to])
		}
		shown = max(from, to)
	}
	head := lineHead
	if len(text) <= 2*lineHead {
		head = len(text)
	}
	marks := l.Spans[:min(len(l.Spans), lineMarks)]
	if len(marks) == 0 {
		show(0, head)
	} else {
		show(0, min(head, marks[0].Start))
	}
	for i, m := range marks {
		if m.Start < shown {
			continue // within the mark before
		}
		show(m.Start-lineAround, m.Start)
		end := min(m.End, m.Start+2*lineHead)
		b.WriteString("<mark>")
		show(m.Start, end)
		b.WriteString("</mark>")
		next := len(text)
		if i+1 < len(marks) {
			next = marks[i+1].Start
		}
		show(shown, min(max(shown+lineAround, head), max(next, shown)))
	}
	if rest := len(text) - shown; rest > 0 {
		fmt.Fprintf(b, `<span class="gap"> … %s more</span>`, count(utf8.RuneCountInString(text[shown:]), "character", "characters"))
	}
	if more := len(l.Spans) - len(marks); more > 0 {
		fmt.Fprintf(b, `<span class="gap"> and %s</span>`, count(more, "more mark", "more marks"))
	}
}

// runeStart moves an index back to where a rune begins.
func runeStart(text string, i int) int {
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}

func allFindings(d *screening.Decision) (all []*screening.Finding) {
	for i := range d.Safety {
		all = append(all, d.Safety[i].Findings...)
	}
	for i := range d.Ethics {
		all = append(all, d.Ethics[i].Findings...)
	}
	return all
}

// chunk is a piece of text as it was received.
type chunk struct {
	Text        template.HTML
	Page, Pages int
}

const chunkBytes = 8 << 10

// chunkOf gives the nth piece of the bytes, from 1.
func chunkOf(raw string, page int) chunk {
	pages := max(1, (len(raw)+chunkBytes-1)/chunkBytes)
	page = min(max(page, 1), pages)
	from, to := runeStart(raw, (page-1)*chunkBytes), runeStart(raw, min(page*chunkBytes, len(raw)))
	var b strings.Builder
	spellOut(&b, raw[from:to], false)
	return chunk{template.HTML(b.String()), page, pages} //nolint:gosec // escaped by spellOut
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// grouped writes a number in groups of three digits.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
