package screening

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// phraseLetterForms are the ways to write one ASCII letter of a word; all keep the word firm.
var phraseLetterForms = map[string]func(c rune) string{
	"as is": func(c rune) string { return string(c) },
	"homoglyph": func(c rune) string {
		const ascii, alike = "aceopxyijsABCEHIKMOPTXYS", "асеорхуіјѕАВСЕНІКМОРТХҮЅ"
		if i := strings.IndexRune(ascii, c); i >= 0 {
			return string([]rune(alike)[i])
		}
		return string(c)
	},
	"full width":    func(c rune) string { return string(c - '!' + '！') },
	"bold":          func(c rune) string { return string(unicode.ToLower(c) - 'a' + '𝐚') },
	"circled":       func(c rune) string { return string(unicode.ToLower(c) - 'a' + 'ⓐ') },
	"badge":         func(c rune) string { return string(unicode.ToLower(c) - 'a' + 0x1F170) },
	"accent":        func(c rune) string { return string(c) + "\u0301" },
	"overlay":       func(c rune) string { return string(c) + "\u0336\u20E0" },
	"zero width":    func(c rune) string { return string(c) + "\u200B" },
	"soft hyphen":   func(c rune) string { return string(c) + "\u00AD" },
	"tag":           func(c rune) string { return string(c) + string(0xE0000+c) },
	"right to left": func(c rune) string { return "\u200F" + string(c) + "\u061C" },
	"override":      func(c rune) string { return "\u202E" + string(c) + "\u202C" },
	"filler":        func(c rune) string { return string(c) + "\u3164" },
}

func phraseLeet(word string) string {
	return strings.NewReplacer("a", "4", "b", "8", "e", "3", "g", "9", "i", "!", "l", "1", "o", "0", "s", "$", "t", "7", "z", "2").Replace(word)
}

// phraseSurfaces are the ways to write a whole phrase.
var phraseSurfaces = []struct {
	name  string
	firm  bool
	write func(t *rapid.T, words []string) string
}{
	{"case", true, func(t *rapid.T, words []string) string {
		return strings.Map(func(r rune) rune {
			if rapid.Bool().Draw(t, "upper") {
				return unicode.ToUpper(r)
			}
			return r
		}, strings.Join(words, " "))
	}},
	{"separators", true, func(t *rapid.T, words []string) string {
		seps := []string{"\n", "\r\n", "\t", "  ", "\u00A0", "\u3000", "_", "-", "\u2014", ", ", " / ", "\u200B ", "(", "\u2028", "…", " \u202E"}
		text := words[0]
		for _, w := range words[1:] {
			text += rapid.SampledFrom(seps).Draw(t, "sep") + w
		}
		return text
	}},
	{"letters", true, func(t *rapid.T, words []string) string {
		text := strings.Join(words, " ")
		if rapid.Bool().Draw(t, "upper") {
			text = strings.ToUpper(text)
		}
		var b strings.Builder
		for _, c := range text {
			if c == ' ' {
				b.WriteRune(c)
				continue
			}
			form := rapid.SampledFrom(slices.Sorted(mapsKeys(phraseLetterForms))).Draw(t, "form")
			b.WriteString(phraseLetterForms[form](c))
		}
		return b.String()
	}},
	{"one form throughout", true, func(t *rapid.T, words []string) string {
		form := rapid.SampledFrom(slices.Sorted(mapsKeys(phraseLetterForms))).Draw(t, "form")
		var b strings.Builder
		for _, c := range strings.Join(words, " ") {
			if c == ' ' {
				b.WriteRune(c)
			} else {
				b.WriteString(phraseLetterForms[form](c))
			}
		}
		return b.String()
	}},
	{"leet", false, func(_ *rapid.T, words []string) string { return phraseLeet(strings.Join(words, " ")) }},
	{"spaced", false, func(t *rapid.T, words []string) string {
		sep := rapid.SampledFrom([]string{" ", ".", "-", "*", "\n", "\u00A0", "_", " . ", "\u200B \u200B"}).Draw(t, "sep")
		return strings.Join(strings.Split(strings.Join(words, ""), ""), sep)
	}},
	{"joined", false, func(_ *rapid.T, words []string) string { return strings.Join(words, "") }},
	{"split", false, func(t *rapid.T, words []string) string {
		var b strings.Builder
		for i, c := range strings.Join(words, "") {
			if i > 0 && rapid.IntRange(0, 3).Draw(t, "gap") == 0 {
				b.WriteString(rapid.SampledFrom([]string{" ", "-", "  ", "."}).Draw(t, "sep"))
			}
			b.WriteRune(c)
		}
		return b.String()
	}},
	{"percent escapes", false, func(t *rapid.T, words []string) string {
		var b strings.Builder
		for _, c := range strings.Join(words, " ") {
			if c == ' ' || rapid.Bool().Draw(t, "escape") {
				fmt.Fprintf(&b, rapid.SampledFrom([]string{"%%%02x", "%%%02X", "%%25%02x"}).Draw(t, "as"), c)
			} else {
				b.WriteRune(c)
			}
		}
		return b.String()
	}},
	{"character references", false, func(t *rapid.T, words []string) string {
		var b strings.Builder
		for _, c := range strings.Join(words, " ") {
			fmt.Fprintf(&b, rapid.SampledFrom([]string{"%c", "&#%d;", "&#x%x;", "&#%04d", "&amp;#%d;", "%c&shy;", "%c&#8203;"}).Draw(t, "as"), c)
			if strings.HasSuffix(b.String(), strconv.Itoa(int(c))) {
				b.WriteString("&ZeroWidthSpace;") // ends the number
			}
		}
		return b.String()
	}},
	{"tags between words", false, func(t *rapid.T, words []string) string {
		return strings.Join(words, rapid.SampledFrom([]string{"<b>", "</i> <i>", "<br/>", `<a href="x.html">`, "<!-- note -->"}).Draw(t, "tag"))
	}},
	{"tags in words", false, func(t *rapid.T, words []string) string {
		return strings.Join(strings.Split(strings.Join(words, " "), ""), rapid.SampledFrom([]string{"<b></b>", "<wbr>", "<!---->"}).Draw(t, "tag"))
	}},
	{"digits after words", false, func(t *rapid.T, words []string) string {
		sep := rapid.SampledFrom([]string{"2", "1 ", "77-", " "}).Draw(t, "sep")
		return strings.Join(words, sep) + rapid.SampledFrom([]string{"1", "20", "007"}).Draw(t, "digits")
	}},
	{"digits, run together", false, func(t *rapid.T, words []string) string { return "4" + strings.Join(words, "") + "2.jsonl" }},
	{"sentences of a word", false, func(t *rapid.T, words []string) string {
		mark := rapid.SampledFrom([]string{". ", "! ", "? ", "... ", "?! ", ".\n", "。", "!\" \""}).Draw(t, "mark")
		var out []string
		for _, w := range words {
			out = append(out, strings.ToUpper(w[:1])+w[1:])
		}
		return strings.Join(out, mark) + mark
	}},
	{"sentences in capitals", false, func(t *rapid.T, words []string) string {
		mark := rapid.SampledFrom([]string{". ", "! ", "? ", "... ", "?! ", ".\n", "。", ". . ", "。 "}).Draw(t, "mark")
		return strings.ToUpper(strings.Join(words, mark))
	}},
	{"leet, spaced", false, func(_ *rapid.T, words []string) string {
		return strings.Join(strings.Split(strings.NewReplacer("e", "3", "o", "0", "a", "4").Replace(strings.Join(words, "")), ""), " ")
	}},
}

func mapsKeys[K cmp.Ordered, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// Phrases that are long enough are found in every surface form, and what is found is the phrase.
func TestPhraseSurfacesAreFound(t *testing.T) {
	t.Parallel()
	for _, surface := range phraseSurfaces {
		t.Run(surface.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				words := rapid.SliceOfN(rapid.StringMatching(`[a-z]{4,9}`), 2, 4).Draw(t, "words")
				if len(strings.Join(words, "")) < minSpelledLetters {
					words = append(words, "xyzzy")
				}
				phrase := strings.Join(words, " ")
				others := rapid.SliceOfN(rapid.StringMatching(`[a-z]{3,5} [a-z]{3,8}`), 0, 5).Draw(t, "others")
				m, err := newPhraseMatcher(append(others, phrase))
				if err != nil {
					t.Fatal(err)
				}
				before := rapid.SampledFrom([]string{"", "text ", "Ende. ", "“", "текст ", "天地", "x@y "}).Draw(t, "before")
				after := rapid.SampledFrom([]string{"", " text", ".", "!", "” — ", " текст", "天地"}).Draw(t, "after")
				text := before + surface.write(t, words)
				if after != "!" || !strings.HasSuffix(text, "!") { // how many of several are letters is not found out
					text += after
				}
				found := m.find([]textField{{text: text}})
				i := slices.IndexFunc(found.hits, func(h phraseHit) bool { return h.phrase == len(others) })
				if i < 0 {
					t.Fatalf("%q not found in %+q", phrase, text)
				}
				hit := found.hits[i]
				if surface.firm && hit.form.loose() {
					t.Errorf("%q in %+q is only %v", phrase, text, hit.form)
				}
				phraseCheckSpan(t, m, text, hit)
			})
		})
	}
}

type phraseFataler interface {
	Helper()
	Errorf(format string, args ...any)
}

// phraseCheckSpan: the span of a hit is, by itself, the phrase.
func phraseCheckSpan(t phraseFataler, m *phraseMatcher, text string, h phraseHit) {
	t.Helper()
	if h.start < 0 || h.end > len(text) || h.start >= h.end {
		t.Errorf("span %d:%d of %d bytes", h.start, h.end, len(text))
		return
	}
	if h.form.loose() && strings.ContainsAny(text[h.start:h.end], "@$!|") {
		return // whether symbols are letters depends on what they touch
	}
	alone := text[h.start:h.end]
	if h.form == formReread {
		alone += "." // that its last word is a sentence is not in the span
	}
	hits := m.find([]textField{{text: alone}}).hits
	if !slices.ContainsFunc(hits, func(a phraseHit) bool {
		return a.phrase == h.phrase && a.start == 0 && a.end == h.end-h.start &&
			(a.form == h.form || h.form == formReread || a.form.loose() && h.form.loose()) // an escape may be beside it
	}) {
		t.Errorf("%v in %+q: its span %+q alone gives %v", h, text, alone, hits)
	}
}

// Against brute force, over vocabularies so small that everything overlaps.
func TestPhraseBruteForce(t *testing.T) {
	t.Parallel()
	words := []string{"a", "b", "ab", "ba", "abc", "mimi", "rnlrnl"}
	rapid.Check(t, func(t *rapid.T) {
		phrases := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(words), 1, 5), 1, 12).Draw(t, "phrases")
		text := rapid.SliceOfN(rapid.SampledFrom(words), 0, 60).Draw(t, "text")
		seps := rapid.SliceOfN(rapid.SampledFrom([]string{" ", "  ", "\n", "-", ", ", "; (", "_"}), len(text), len(text)).Draw(t, "seps")
		var b strings.Builder
		starts, ends := make([]int, len(text)), make([]int, len(text))
		for i, w := range text {
			starts[i] = b.Len()
			b.WriteString(w)
			ends[i] = b.Len()
			b.WriteString(seps[i])
		}
		var want []phraseHit
		sources := make([]string, len(phrases))
		for p, phrase := range phrases {
			sources[p] = strings.Join(phrase, " ")
			for i := 0; i+len(phrase) <= len(text); i++ {
				if slices.Equal(text[i:i+len(phrase)], phrase) {
					want = append(want, phraseHit{p, 0, starts[i], ends[i+len(phrase)-1], formPlain})
				}
			}
		}
		slices.SortFunc(want, func(a, b phraseHit) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.phrase, b.phrase))
		})
		m, err := newPhraseMatcher(sources)
		if err != nil {
			t.Fatal(err)
		}
		m.hitLimit = math.MaxInt
		got := slices.DeleteFunc(m.find([]textField{{text: b.String()}}).hits, func(h phraseHit) bool { return h.form != formPlain })
		if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(phraseHit{}), gocmp.Transformer("nil", func(s []phraseHit) string { return fmt.Sprint(s) })); diff != "" {
			t.Fatalf("%q in %q (-want +got):\n%s", sources, b.String(), diff)
		}
	})
}

func FuzzPhraseMatcher(f *testing.F) {
	f.Add("weapon smuggling", "武器走私", "of weapon smuggling, 武器走私 and wеap0n $muggl|ng")
	f.Add("детское насилие", "a", "ДЕТСКОЕ\u200B НАСИЛИЕ a\U000E0061 \uFDFA\uFDFA")
	f.Add("kaçak silah", "무기 밀수", "KAÇAK SİLAH \u1106\u116e\u1100\u1175 밀수 \xff\xed\xa0\x80")
	f.Add("nerve agents", "modern slavery", "N. E. R. V. E. agents. Modern rnodern slavery! 🏴\U000E0067\U000E007F ⒩erve")
	f.Fuzz(func(t *testing.T, one, two, text string) {
		m, err := newPhraseMatcher([]string{one, two, "nerve agents", "武器"})
		if err != nil {
			m, _ = newPhraseMatcher([]string{"nerve agents", "武器"})
		}
		fields := []textField{{text: text}, {text: one}, {text: text + one + text}}
		found := m.find(fields)
		if again := m.find(fields); !slices.Equal(found.hits, again.hits) || !slices.Equal(found.obfuscations, again.obfuscations) {
			t.Fatalf("%+v: two runs differ: %v and %v", fields, found, again)
		}
		for i, h := range found.hits {
			if i > 0 && cmp.Or(cmp.Compare(found.hits[i-1].field, h.field), cmp.Compare(found.hits[i-1].start, h.start)) > 0 {
				t.Errorf("hits out of order: %v", found.hits)
			}
			phraseCheckSpan(t, m, fields[h.field].text, h)
		}
		for _, o := range found.obfuscations {
			if o.start < 0 || o.start >= o.end || o.end > len(fields[o.field].text) || o.count < 1 {
				t.Errorf("%+q: %+v", fields[o.field].text, o)
			}
		}
		if err == nil && len(one) < 200 && !strings.ContainsAny(one, "@$!|") {
			if hits := m.find([]textField{{text: one}}).hits; !slices.ContainsFunc(hits, func(h phraseHit) bool { return h.phrase == 0 }) {
				t.Errorf("phrase %+q is not found in itself", one)
			}
		}
	})
}
