package screening

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// shippedPhrases are the phrases of all packs in the tree.
func shippedPhrases(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("packs/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var phrases []string
	var gather func(n *clauseNode)
	gather = func(n *clauseNode) {
		phrases = append(phrases, n.Phrases...)
		for _, list := range [][]clauseNode{n.All, n.Any} {
			for i := range list {
				gather(&list[i])
			}
		}
		if n.Not != nil {
			gather(n.Not)
		}
	}
	for _, name := range files {
		if strings.HasSuffix(name, ".cases.yaml") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pack, err := LoadPack(name, data, NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		for i := range pack.Terms {
			if n := pack.Terms[i].ViolatedIf; n != nil {
				gather(n)
			}
		}
	}
	if len(phrases) < 100 {
		t.Fatalf("only %d phrases in %v", len(phrases), files)
	}
	slices.Sort(phrases)
	return slices.Compact(phrases)
}

// writeRunes writes each letter of a phrase as a format says.
func writeRunes(phrase, format string) string {
	var b strings.Builder
	for _, r := range phrase {
		fmt.Fprintf(&b, format, r)
	}
	return b.String()
}

// TestShippedPhrasesAreReread: each phrase of the packs is found in each form that is read once more, and its span is
// all of it. Forms that happen by accident are for the phrases that spelled-out matching takes.
func TestShippedPhrasesAreReread(t *testing.T) {
	t.Parallel()
	phrases := shippedPhrases(t)
	m := mustPhrases(t, phrases...)
	capitals := func(words []string) (out []string) {
		for _, w := range words {
			_, n := utf8.DecodeRuneInString(w)
			out = append(out, strings.ToUpper(w[:n])+w[n:])
		}
		return out
	}
	forms := []struct {
		name    string
		spelled bool
		write   func(words []string) string
	}{
		{"percent escapes for spaces", false, func(w []string) string { return strings.Join(w, "%20") }},
		{"percent escapes", false, func(w []string) string {
			var b strings.Builder
			for _, c := range []byte(strings.Join(w, " ")) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
			return b.String()
		}},
		{"character references", false, func(w []string) string { return writeRunes(strings.Join(w, " "), "&#%d;") }},
		{"hexadecimal references", false, func(w []string) string { return writeRunes(strings.Join(w, " "), "&#x%X;") }},
		{"no-break spaces", false, func(w []string) string { return strings.Join(w, "&nbsp;") }},
		{"tags between words", false, func(w []string) string { return strings.Join(w, "<b>") }},
		{"tags in words", false, func(w []string) string {
			var letters []string
			for _, r := range strings.Join(w, " ") {
				letters = append(letters, string(r))
			}
			return strings.Join(letters, "<i></i>")
		}},
		{"a digit at the end", true, func(w []string) string { return strings.Join(w, " ") + "2" }},
		{"a digit after each word", true, func(w []string) string { return strings.Join(w, "1 ") + "1" }},
		{"run together before a digit", true, func(w []string) string { return strings.Join(w, "") + "2" }},
		{"sentences of a word", true, func(w []string) string { return strings.Join(capitals(w), ". ") }},
		{"calls", true, func(w []string) string { return strings.Join(capitals(w), "! ") }},
		{"sentences in capitals", true, func(w []string) string { return strings.ToUpper(strings.Join(w, "... ")) }},
		{"full-width stops", true, func(w []string) string { return strings.ToUpper(strings.Join(w, "。")) }},
	}
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			t.Parallel()
			tried := 0
			for p, phrase := range phrases {
				if form.spelled && !m.isSpelled(p) {
					continue
				}
				tried++
				written := form.write(strings.Fields(phrase))
				before, after := "One line per code. See ", ". More"
				text := before + written + after
				if strings.HasSuffix(form.name, "of a word") || form.name == "calls" {
					text = before[:len(before)-len(" See")] + written + after
					before = before[:len(before)-len(" See")]
				}
				found := m.find([]textField{{text: text}}).hits
				if !slices.ContainsFunc(found, func(h phraseHit) bool {
					return h.phrase == p && h.start == len(before) && h.end == len(before)+len(written)
				}) {
					t.Errorf("%q is not found in %q: %v", phrase, text, found)
				}
			}
			t.Logf("%d phrases", tried)
		})
	}
}

// TestSourceOf: a part of a rewritten text comes from all of what it was written as, and of nothing more.
func TestSourceOf(t *testing.T) {
	t.Parallel()
	text := "a%2520b&amp;lt;i>c&#100;e%41"
	resolved, all := resolveEscapes(text, &budget{left: 1000})
	read, edits := resolveTags(resolved, "", &budget{left: 1000})
	if want := "a b" + "c" + "deA"; read != want {
		t.Fatalf("read %q, want %q", read, want)
	}
	all = append(all, edits)
	for part, want := range map[string]string{"a": "a", "a b": "a%2520b", "b": "b", "bc": "b&amp;lt;i>c", "d": "&#100;", "eA": "e%41", read: text} {
		start := strings.Index(read, part)
		end := start + len(part)
		for _, e := range slices.Backward(all) {
			start, end = sourceOf(e, start, end)
		}
		if got := text[start:end]; got != want {
			t.Errorf("%q comes from %q, want %q", part, got, want)
		}
	}
}
