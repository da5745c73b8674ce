package screening

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func compiled(t *rapid.T, phrases []string) *phraseMatcher {
	m, err := newPhraseMatcher(phrases)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// drawGateText is ASCII text made to look like phrases: their letters, with others for them, torn apart and run together.
func drawGateText(t *rapid.T, phrases []string, symbols bool) string {
	var b strings.Builder
	separators := []string{" ", "", "  ", ", ", "-", ". ", "\n", "_", "; "}
	swaps := map[rune][]string{'i': {"i", "I", "1", "l"}, 'l': {"l", "1", "I"}, 'o': {"o", "0", "O"}, 'e': {"e", "3"}, 'a': {"a", "4", "A"}, 's': {"s", "5"}, 'm': {"m", "rn", "M"}}
	if symbols {
		separators = append(separators, "!", "! ", "|", "@", " $ ")
		swaps['i'], swaps['a'], swaps['s'] = append(swaps['i'], "!", "|"), append(swaps['a'], "@"), append(swaps['s'], "$")
	}
	for range rapid.IntRange(1, 12).Draw(t, "pieces") {
		if rapid.Bool().Draw(t, "filler") {
			b.WriteString(rapid.SampledFrom([]string{"the", "a", "xy", "normal", "information", "m", "rn", "0", "of course"}).Draw(t, "word"))
		} else {
			for _, c := range rapid.SampledFrom(phrases).Draw(t, "phrase") {
				switch ways := swaps[c]; {
				case c == ' ':
					b.WriteString(rapid.SampledFrom(separators).Draw(t, "gap"))
				case len(ways) > 0 && rapid.IntRange(0, 3).Draw(t, "swap") == 0:
					b.WriteString(rapid.SampledFrom(ways).Draw(t, "letter"))
				default:
					b.WriteRune(c)
				}
				if rapid.IntRange(0, 15).Draw(t, "tear") == 0 {
					b.WriteString(rapid.SampledFrom(separators).Draw(t, "tear with"))
				}
			}
		}
		b.WriteString(rapid.SampledFrom(separators).Draw(t, "separator"))
	}
	return b.String()
}

func drawGatePhrases(t *rapid.T) []string {
	pool := []string{"weapon smuggling", "modern slavery", "corner him", "illegal arms deals", "cp", "kernel", "m", "child soldiers", "1984 camp",
		"сор", "bücher stehlen", "a i", "how to make it", "mm", "rn", "make a bomb at home without being noticed"}
	return rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 1, 6, rapid.ID).Draw(t, "phrases")
}

// foundWith is what a matcher of which some part was changed finds in texts.
func foundWith(phrases []string, change func(*phraseMatcher), texts ...string) textFindings {
	m, err := newPhraseMatcher(phrases)
	if err != nil {
		panic(err)
	}
	change(m)
	fields := make([]textField, len(texts))
	for i, text := range texts {
		fields[i].text = text
	}
	return m.find(fields)
}

// TestGateTurnsNothingAway: what the gate turns away has no hit, in any form.
func TestGateTurnsNothingAway(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		phrases := drawGatePhrases(t)
		filler := strings.Repeat("quite ordinary text about nothing. ", rapid.IntRange(0, 5).Draw(t, "filler"))
		texts := []string{filler + drawGateText(t, phrases, false), drawGateText(t, phrases, false), filler}
		want := foundWith(phrases, func(m *phraseMatcher) { m.gate = nil }, texts...)
		got := foundWith(phrases, func(*phraseMatcher) {}, texts...)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(textFindings{}, phraseHit{}, textObfuscation{})); diff != "" {
			t.Fatalf("%q in %q: (-without the gate +with it)\n%s", phrases, texts, diff)
		}
	})
	m := mustPhrases(t, "weapon smuggling", "modern slavery")
	for _, text := range []string{"", "x", strings.Repeat("An ordinary sentence, with nothing in it. ", 100), "weapon", "smuggling weapons"} {
		if !(&gateLook{text: []byte(text)}).turnsAway(m.gate) {
			t.Errorf("%.50q is searched for nothing", text)
		}
	}
	for _, text := range []string{"weapon smuggling", strings.Repeat("w ", 300) + "e a p o n s", "modem slavery", "ünder", "a@b"} {
		if (&gateLook{text: []byte(text)}).turnsAway(m.gate) {
			t.Errorf("%.50q is turned away", text)
		}
	}
}

// TestScoutFindsWhatTheSearchFinds: in plain form, looking where the scout points finds what looking everywhere does.
func TestScoutFindsWhatTheSearchFinds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		phrases := drawGatePhrases(t)
		text := drawGateText(t, phrases, true)
		text = strings.Repeat(text, rapid.SampledFrom([]int{1, 1, 3, 90}).Draw(t, "times")) + rapid.SampledFrom([]string{"", phrases[0], "ü " + phrases[0]}).Draw(t, "end")
		m := compiled(t, phrases)
		f := newPhraseFinder(m)
		f.scan.spelled, f.scan.skels = false, nil
		f.pass(text)
		f.settle()
		want := f.hits
		got := foundWith(phrases, func(m *phraseMatcher) { m.plain = true }, text).hits
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(phraseHit{})); diff != "" && len(want)+len(got) > 0 {
			t.Fatalf("%q in %q: (-search +scout)\n%s", phrases, text, diff)
		}
	})
}

// TestSymbolsInParts: looking around symbols alone finds what reading all of them as letters finds.
func TestSymbolsInParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		phrases := drawGatePhrases(t)
		m := compiled(t, phrases)
		if !m.hasSpelled {
			return
		}
		var text string
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			text += drawGateText(t, phrases, true) + strings.Repeat(" and quite a bit of other text", rapid.SampledFrom([]int{0, 1, 30}).Draw(t, "between"))
		}
		both := func(pass func(f *phraseFinder)) []phraseHit {
			f := newPhraseFinder(m)
			f.pass(text)
			f.clearCounts()
			f.scan.symbols = true
			pass(f)
			f.settle()
			return f.hits
		}
		want, got := both(func(f *phraseFinder) { f.pass(text) }), both(func(f *phraseFinder) { f.passSymbols(text) })
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(phraseHit{})); diff != "" {
			t.Fatalf("%q in %q: (-all +around symbols)\n%s", phrases, text, diff)
		}
	})
}

// TestStrokelessLanes: eight letters at a time give what they give one by one.
func TestStrokelessLanes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.SliceOfN(rapid.SampledFrom([]byte("abmrnilIzM0")), 1, 8).Draw(t, "units")
		var x uint64
		for i, c := range units {
			x |= uint64(c) << (64 - 8*len(units) + 8*i)
		}
		if s, ok := strokelessLanes(x); ok && mixHash(0, s) != hashBytes(appendStrokeless(nil, units)) {
			t.Fatalf("%q", units)
		}
	})
}
