package console

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/screening"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	hidden := func(name, code string) string { return `<b class="ch" title="` + name + `">` + code + `</b>` }
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"plain, naïve, 日本語, שלום\n\tend", "plain, naïve, 日本語, שלום\n\tend"},
		{`<a href="x">&'`, "&lt;a href=&#34;x&#34;&gt;&amp;&#39;"},
		{"a\u202eb", "a" + hidden("changes the direction of the text", "U+202E") + "b"},
		{"\u2066x\u2069", hidden("changes the direction of the text", "U+2066") + "x" + hidden("changes the direction of the text", "U+2069")},
		{"a\u200b\u200b\u200bb", "a" + hidden("invisible character", "U+200B ×3") + "b"},
		{"a\u00adb\ufeff", "a" + hidden("invisible character", "U+00AD") + "b" + hidden("invisible character", "U+FEFF")},
		{"\u3164\u115f\ufe0f", hidden("invisible character", "U+3164") + hidden("invisible character", "U+115F") + hidden("invisible character", "U+FE0F")},
		{"a\u00a0b", "a" + hidden("unusual space", "U+00A0") + "b"},
		{"\x1b[31m\r\x00\x7f", hidden("control character", "U+001B") + "[31m" + hidden("control character", "U+000D") + hidden("control character", "U+0000") + hidden("control character", "U+007F")},
		{"\U000e0041", hidden("tag character, invisible", "U+E0041")},
		{"e\u0301\u0302\u0303\u0304\u0304", "e\u0301\u0302\u0303" + hidden("heaped combining marks", "U+0304 ×2")},
		{"a\xffb", "a" + hidden("invisible character", "bad byte") + "b"},
		{"\ufffd", "\ufffd"},
	} {
		if got := string(visible(c.text)); got != c.want {
			t.Errorf("%q: %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n          int
		text, want string
	}{{3, "abc", "abc"}, {3, "abcd", "abc…"}, {2, "éàü", "éà…"}, {3, "éàü", "éàü"}, {0, "a", "…"}} {
		if got := cut(c.n, c.text); got != c.want {
			t.Errorf("%d of %q: %q, want %q", c.n, c.text, got, c.want)
		}
	}
}

// A document is laid out line by line, each with the pointer that findings use.
func TestReadLines(t *testing.T) {
	t.Parallel()
	lines, err := readLines([]byte(`{"a":[1,{"b/c":"x\ny"},[],{}],"d":null}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lines {
		got = append(got, fmt.Sprintf("%d %d %s|%s|%s", l.Number, l.Depth, l.Key, l.Text, l.Pointer))
	}
	want := []string{"1 0 |{|", "2 1 a|[|/a", "3 2 |1|/a/0", "4 2 |{|/a/1", "5 3 b/c|x\ny|/a/1/b~1c", "6 2 |}|", "7 2 |[]|/a/2", "8 2 |{}|/a/3", "9 1 |]|",
		"10 1 d|null|/d", "11 0 |}|"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// What is marked is what the span names, and a pointer to nothing marks what is around it.
func TestMarks(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1000) + "<bad>" + strings.Repeat("ü", 1000)
	d := &screening.Decision{Ethics: []screening.EthicsVerdict{{Findings: []*screening.Finding{{State: screening.Violated, Evidence: []screening.Evidence{
		{Name: "phrase", Pointer: "/a/b", Span: &screening.Span{Start: 2000, End: 2005}}, {Name: "tag.x", Pointer: "/a/c/7/license"}}}}}}}
	v, err := newSpecView([]byte(`{"a":{"b":"`+long+`","c":[]}}`), d)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int{3, 4}, v.Flagged); d != "" {
		t.Errorf("flagged lines (-want +got)\n%s", d)
	}
	shown := string(v.Lines[2].html(true))
	if !strings.Contains(shown, "<mark>&lt;bad&gt;</mark>") || !strings.Contains(shown, "characters more") {
		t.Errorf("shown: %s", shown)
	}
	if held := string(v.Lines[2].html(false)); strings.Contains(held, "bad") || !strings.Contains(held, "2,005 characters, 1 marked place") {
		t.Errorf("held back: %s", held)
	}
}

func lines(text string) (list []specLine) {
	for i, r := range text {
		list = append(list, specLine{Number: i + 1, Text: string(r)})
	}
	return list
}

// A diff turns one into the other, and is as short as the longest common
// subsequence allows.
func TestDiffLines(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, random.IntN(12))
		for i := range b {
			b[i] = "abc"[random.IntN(3)]
		}
		return string(b)
	}
	for range 2000 {
		from, to := word(), word()
		edits, ok := diffLines(lines(from), lines(to))
		if !ok {
			t.Fatalf("%q to %q: too many", from, to)
		}
		var was, is strings.Builder
		n := 0
		for _, e := range edits {
			if e.kind != '+' {
				was.WriteString(e.line.Text)
			}
			if e.kind != '-' {
				is.WriteString(e.line.Text)
			}
			if e.kind != ' ' {
				n++
			}
		}
		if was.String() != from || is.String() != to || n != len(from)+len(to)-2*common(from, to) {
			t.Fatalf("%q to %q: from %q to %q in %d", from, to, &was, &is, n)
		}
	}
	if _, ok := diffLines(lines(strings.Repeat("a", 2*mostEdits)), lines(strings.Repeat("b", 2*mostEdits))); ok {
		t.Error("specs with nothing in common are compared to the end")
	}
}

// common is the length of the longest common subsequence.
func common(a, b string) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
	}
	for i := range a {
		for j := range b {
			if a[i] == b[j] {
				table[i+1][j+1] = table[i][j] + 1
			} else {
				table[i+1][j+1] = max(table[i][j+1], table[i+1][j])
			}
		}
	}
	return table[len(a)][len(b)]
}

// The picture ends whatever the lineage is, and shows inputs with findings first.
func TestGraph(t *testing.T) {
	t.Parallel()
	ref := func(ids ...string) *screening.Lineage {
		l := &screening.Lineage{}
		for _, id := range ids {
			l.DerivedFrom = append(l.DerivedFrom, screening.LineageRef{Ref: id})
		}
		return l
	}
	shown := func(string) bool { return false }
	circle := newGraph(&screening.Spec{RunRef: "r", Inputs: []screening.Input{{ID: "a", Lineage: ref("b")}, {ID: "b", Lineage: ref("a", "b")}}}, nil, shown)
	if len(circle.Nodes) != 3 || circle.Width > 3000 {
		t.Errorf("%d nodes, %d wide", len(circle.Nodes), circle.Width)
	}
	chain := newGraph(&screening.Spec{RunRef: "r", Inputs: []screening.Input{{ID: "a", Lineage: ref("b")}, {ID: "b", Lineage: ref("https://x")}}}, nil, shown)
	at := map[string]int{}
	for _, n := range chain.Nodes {
		at[n.ID] = n.X
	}
	if !(at["outside https://x"] < at["input b"] && at["input b"] < at["input a"] && at["input a"] < at[runNode]) {
		t.Errorf("columns %v", at)
	}
	var many []screening.Input
	for i := range 100 {
		many = append(many, screening.Input{ID: fmt.Sprint("i", i)})
	}
	g := newGraph(&screening.Spec{RunRef: "r", Inputs: many}, map[string]screening.State{"i99": screening.Violated}, shown)
	if len(g.Nodes) != mostNodes || g.Left != 100-mostNodes+1 || g.Nodes[1].Class != "bad" {
		t.Errorf("%d nodes, %d left out, the first is %+v", len(g.Nodes), g.Left, g.Nodes[1])
	}
}
