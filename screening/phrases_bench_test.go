package screening

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// phraseBenchWords is a vocabulary of pronounceable words with the frequencies of a natural language.
func phraseBenchWords(n int) []string {
	onsets := strings.Fields("b br c ch d dr f fl g gr h j k l m n p pl pr qu r s sh sl st t th tr v w z")
	nuclei := strings.Fields("a e i o u ai ea ou io")
	codas := strings.Fields("n r l s t m d ck nd nt st ng rm x p")
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string) string { return from[rng.IntN(len(from))] }
	seen := map[string]bool{}
	var words []string
	for len(words) < n {
		w := ""
		for range 1 + rng.IntN(3) {
			w += pick(onsets) + pick(nuclei)
		}
		if rng.IntN(2) == 0 {
			w += pick(codas)
		}
		if !seen[w] {
			seen[w] = true
			words = append(words, w)
		}
	}
	return words
}

func phraseBenchText(rng *rand.Rand, words []string, size int) string {
	zipf := rand.NewZipf(rng, 1.1, 8, uint64(len(words)-1))
	var b strings.Builder
	for sentence := 0; b.Len() < size; {
		w := words[zipf.Uint64()]
		if sentence == 0 {
			w = strings.ToUpper(w[:1]) + w[1:]
			sentence = 8 + rng.IntN(16)
		}
		b.WriteString(w)
		switch sentence--; {
		case sentence == 0:
			b.WriteString(". ")
		case rng.IntN(12) == 0:
			b.WriteString(", ")
		case rng.IntN(10) == 0:
			b.WriteString("\n")
		default:
			b.WriteString(" ")
		}
	}
	return b.String()[:size]
}

// phraseBenchPhrases are two to four ordinary words; a fiftieth of them occurs in the text.
func phraseBenchPhrases(rng *rand.Rand, words []string, text string, n int) []string {
	zipf := rand.NewZipf(rng, 1.1, 30, uint64(len(words)-1))
	fields := strings.Fields(text)
	phrases := make([]string, n)
	for i := range phrases {
		k := 2 + rng.IntN(3)
		if i%50 == 0 {
			at := rng.IntN(len(fields) - k)
			if p := strings.ToLower(strings.Join(fields[at:at+k], " ")); !strings.ContainsAny(p, ".,") {
				phrases[i] = p
				continue
			}
		}
		pick := make([]string, k)
		for j := range pick {
			pick[j] = words[zipf.Uint64()]
		}
		phrases[i] = strings.Join(pick, " ")
	}
	return phrases
}

func phraseBenchSetup(tb testing.TB, phrases, size int) (*phraseMatcher, string) {
	tb.Helper()
	words := phraseBenchWords(20_000)
	rng := rand.New(rand.NewPCG(3, 4))
	text := phraseBenchText(rng, words, size)
	m, err := newPhraseMatcher(phraseBenchPhrases(rng, words, text, phrases))
	if err != nil {
		tb.Fatal(err)
	}
	return m, text
}

func BenchmarkPhrasesFind(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		m, text := phraseBenchSetup(b, n, 10<<20)
		fields := []textField{{text: text}}
		run := func(form string) {
			b.Run(fmt.Sprintf("%d/%s", n, form), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					m.find(fields)
				}
			})
		}
		run("all-forms")
		m.plain, m.hitLimit, m.scratch = true, math.MaxInt, sync.Pool{New: m.scratch.New}
		run("plain")
	}
}

func BenchmarkPhrasesMessages(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		m, text := phraseBenchSetup(b, n, 4<<20)
		var messages [][]textField
		for i := 0; i+600 <= len(text); i += 600 {
			messages = append(messages, []textField{{text: text[i : i+600]}})
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for _, fields := range messages {
					m.find(fields)
				}
			}
		})
	}
}

func BenchmarkPhrasesBuild(b *testing.B) {
	words := phraseBenchWords(20_000)
	rng := rand.New(rand.NewPCG(3, 4))
	text := phraseBenchText(rng, words, 10<<20)
	for _, n := range []int{100, 10_000, 100_000} {
		phrases := phraseBenchPhrases(rng, words, text, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := newPhraseMatcher(phrases); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
