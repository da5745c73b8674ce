package main

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"weir/screening"
)

// TestMatchersAgree: on the text and the phrases that speed is measured with, all matchers report the same places, as
// far as the notion of a phrase is the same.
func TestMatchersAgree(t *testing.T) {
	t.Parallel()
	text := must(englishProse(2 << 20))
	for _, n := range []int{100, 10_000} {
		phrases := phrasesLike(text, n)
		want := inOrder(literal(text, must(newCoregx(phrases)).find(text)))
		if len(want) < n/10 {
			t.Errorf("%d phrases: only %d hits", n, len(want))
		}
		m := must(screening.NewPhraseMatcher(phrases, screening.PhraseConfig{Plain: true, AllHits: true}))
		got := inOrder(literal(text, weirHits(m.Find(text))))
		if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(hit{})); diff != "" {
			t.Errorf("%d phrases: weir: %.2000s", n, diff)
		}
		hs, err := newHyperscan(phrases)
		if err != nil {
			t.Logf("Hyperscan is not compared: %v", err)
			continue
		}
		if diff := gocmp.Diff(want, inOrder(literal(text, hs.find(text))), gocmp.AllowUnexported(hit{})); diff != "" {
			t.Errorf("%d phrases: hyperscan: %.2000s", n, diff)
		}
	}
}

func inOrder(hits []hit) []hit {
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.phrase, b.phrase))
	})
	return hits
}

func TestLiteral(t *testing.T) {
	t.Parallel()
	const text = "a cat, a  cat. a cats"
	all := []hit{{0, 0, 5}, {0, 7, 13}, {0, 15, 20}, {1, 2, 8}}
	if got := literal(text, slices.Clone(all)); len(got) != 1 || text[got[0].start:got[0].end] != "a cat" || strings.Contains(text, "dog") {
		t.Errorf("kept %v", got)
	}
}

func TestAppendLower(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for c := range 128 {
		text.WriteString(strings.Repeat("x", c%9) + string(rune(c)))
	}
	if got := string(appendLower(nil, text.String())); got != strings.ToLower(text.String()) {
		t.Errorf("%q", got)
	}
}
