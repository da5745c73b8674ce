package screening

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

// searched is what a matcher finds in a text when every word is searched, without gate and scout.
func searched(m *phraseMatcher, text string) []phraseHit {
	f := newPhraseFinder(m)
	if m.plain {
		f.scan.spelled, f.scan.skels = false, nil
	}
	f.pass(text)
	if f.scan.saw > 0 && f.scan.spelled {
		f.clearCounts()
		f.scan.symbols = true
		f.pass(text)
	}
	f.settle()
	return f.hits
}

// TestScoutFindsWhatTheSearchFinds: looking where the scout points finds what looking everywhere does, in every form.
func TestScoutFindsWhatTheSearchFinds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		phrases := drawGatePhrases(t)
		m := compiled(t, phrases)
		m.gate, m.plain, m.hitLimit = nil, rapid.Bool().Draw(t, "plain"), math.MaxInt
		var b strings.Builder
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			part := drawGateText(t, phrases, rapid.Bool().Draw(t, "symbols"))
			b.WriteString(strings.Repeat(part, rapid.SampledFrom([]int{1, 1, 3, 90}).Draw(t, "times")))
			b.WriteString(strings.Repeat(rapid.SampledFrom([]string{" ", "a", "and other text ", "!", "@", "m "}).Draw(t, "between"),
				rapid.SampledFrom([]int{0, 1, 30, 500, 5000}).Draw(t, "between times")))
		}
		b.WriteString(rapid.SampledFrom([]string{"", phrases[0], "ü " + phrases[0]}).Draw(t, "end"))
		text := b.String()
		want, got := searched(m, text), m.find([]textField{{text: text}}).hits
		got = slices.DeleteFunc(got, func(h phraseHit) bool { return h.form == formReread }) // by another way, see phrase_reread.go
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(phraseHit{})); diff != "" && len(want)+len(got) > 0 {
			t.Fatalf("%q in %q: (-search +scout)\n%s", phrases, text, diff)
		}
	})
}

// TestScoutKnowsItsLimits: a phrase that can be written in too many ways is searched for everywhere.
func TestScoutKnowsItsLimits(t *testing.T) {
	t.Parallel()
	m := mustPhrases(t, "mmmmmmmm mmmmmmmm", strings.Repeat("m", 200)+" x")
	if m.scouts != nil {
		t.Error("the scout takes words that can be written in more ways than can be told")
	}
	if got := phraseReport(m, "a mrnmmmrnmm mmmmmmmrn"); !strings.Contains(got, "@skeleton:mrnmmmrnmm mmmmmmmrn") {
		t.Errorf("found %q", got)
	}
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

// TestGateOfManyTexts: texts that the gate turns away one beside others that it
// cannot judge say the same as when all of them are searched, in every reading.
func TestGateOfManyTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		phrases := drawGatePhrases(t)
		texts := make([]string, rapid.IntRange(1, 6).Draw(t, "texts"))
		for i := range texts {
			if rapid.IntRange(0, 2).Draw(t, "clean") > 0 {
				texts[i] = rapid.SampledFrom([]string{"", "nlp/x@2026-11", "d1", "of course. Normal. Information2 for all", "a b. C. D", "x2y3", "&amp; more",
					strings.Repeat("and other text. ", 9), "ünder", "WEAPON. SMUGGLING", "1weapon smuggling2", "weapon%20smuggling", "child<b>soldiers"}).Draw(t, "text")
				continue
			}
			texts[i] = drawGateText(t, phrases, rapid.Bool().Draw(t, "symbols"))
		}
		want := foundWith(phrases, func(m *phraseMatcher) { m.gate = nil }, texts...)
		got := foundWith(phrases, func(*phraseMatcher) {}, texts...)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(textFindings{}, phraseHit{}, textObfuscation{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%q in %q: (-without gate +with)\n%s", phrases, texts, diff)
		}
	})
}

// TestTooMuchToUndo: what has more escapes, tags or broken words than are undone
// is an obfuscation, costs no more than up to there, and is still read up to there.
func TestTooMuchToUndo(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{"tags": "a<b>c</b> ", "escapes": "%6e ", "references": "&#97; ", "glued digits": "abc1 def ", "marks": "a! B! "} {
		for _, tt := range []struct {
			n    int
			want bool
		}{{100, false}, {maxTrimmedDigits + 1, true}} {
			found := foundWith([]string{"weapon smuggling"}, func(*phraseMatcher) {}, "first", strings.Repeat(unit, tt.n), "last")
			got := slices.ContainsFunc(found.obfuscations, func(o textObfuscation) bool { return o.kind == hidesEscapes && o.field == 1 })
			if got != tt.want {
				t.Errorf("%d %s: obfuscation %t, want %t", tt.n, name, got, tt.want)
			}
			found = foundWith([]string{"weapon smuggling"}, func(*phraseMatcher) {}, "1weapon&#9smuggling2. "+strings.Repeat(unit, tt.n))
			if !slices.ContainsFunc(found.hits, func(h phraseHit) bool { return h.start == 0 && h.form == formReread }) {
				t.Errorf("%d %s: the phrase before them is not found: %v", tt.n, name, found.hits)
			}
		}
	}
}
