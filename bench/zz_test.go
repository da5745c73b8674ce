package main
import ("testing";"strings";"weir/screening")
func BenchmarkPhrases(b *testing.B) {
	text := must(englishProse(10 << 20))
	phrases := phrasesLike(text, 10_000)
	lower := []byte(strings.ToLower(text))
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				f()
			}
		})
	}
	m := must(screening.NewPhraseMatcher(phrases, screening.PhraseConfig{Plain: true, AllHits: true}))
	run("weir", func() { m.Find(text) })
	full := must(screening.NewPhraseMatcher(phrases, screening.PhraseConfig{AllHits: true}))
	run("weir-full", func() { full.Find(text) })
	ac := must(newCoregx(phrases))
	run("coregx", func() { ac.scan(lower) })
	if hs, err := newHyperscan(phrases); err == nil {
		run("hyperscan", func() { hs.scan(text) })
	}
}
