package screening

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
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

// phraseHardTexts are the inputs that cost most, beside ordinary ones of several scripts.
func phraseHardTexts() map[string]string {
	return map[string]string{
		"english":       "The quick brown fox jumps over a lazy dog, and then some more of them. ",
		"english curly": "The fox’s “quick” jump — naïve as ever — went over a dog, and then more. ",
		"russian":       "Съешь же ещё этих мягких французских булок, да выпей чаю. ",
		"greek":         "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, και ύστερα πάλι. ",
		"chinese":       "天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。",
		"japanese":      "いろはにほへと ちりぬるを ガギグゲゴ わかよたれそ。",
		"korean":        "다람쥐 헌 쳇바퀴에 타고파, 동틀녘 햇빛. ",
		"arabic":        "نَصٌّ حَكِيمٌ لَهُ سِرٌّ قَاطِعٌ وَذُو شَأْنٍ عَظِيمٍ. ",
		"hindi":         "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा। ",
		"thai":          "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า ",
		"spaced":        "a b c d e f g h i j k l m n o p ",
		"spaced curly":  "а b с d е f ’ ",
		"spaced m":      "m m m m ",
		"spaced stroke": "Il Il ",
		"at":            "@a @a ",
		"shouting":      "a! b! ",
		"shouting more": "ab! cd! ",
		"dashed":        "a-b-c-d-",
		"initials":      "A. B. C. ",
		"commas":        "a,b;c:d\n\ne",
		"digits":        "1 2 10 c4 h1 ",
		"near":          "child abusf nerve agenu bomb makinh ",
		"heads":         "childabuschildabusnerveagent ",
		"suspicious":    "rnodern m1ll10n IlIlI moon ",
		"symbols":       "p@ss $one !wow a|b ",
		"marks":         "e\u0301\u0302\u0303\u0304\u0305\u0306",
		"invisible":     "a\u200bb\u200c\u200d\u2060",
		"expanding":     "\uFDFA",
		"ligatures":     "ﬃ㎏①⒜½№℀ ",
		"fullwidth":     "ｃｈｉｌｄ　ｂｏｏｋ　",
		"mathematical":  "𝐜𝐡𝐢𝐥𝐝 𝓫𝓸𝓸𝓴 ",
		"homoglyphs":    "сhіld bооk ",
		"jamo":          "\u1103\u1161\u1105\u1161\u11b7 ",
		"stops":         "Abcd. Abcd. ",
		"one word":      "abcdefghij",
		"emoji":         "👨\u200d👩\u200d👧 🇩🇪 ",
	}
}

// BenchmarkPhrasesHard reports each text's cost as a ratio to normalising and folding the same bytes.
func BenchmarkPhrasesHard(b *testing.B) {
	m, err := newPhraseMatcher(phraseProsePhrases)
	if err != nil {
		b.Fatal(err)
	}
	for name, unit := range phraseHardTexts() {
		text := strings.Repeat(unit, 1<<20/len(unit))
		fields := []textField{{text: text}}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m.find(fields)
			}
			b.ReportMetric(phraseCostRatio(m, text), "x-of-nfkc+fold")
		})
	}
}

// phraseCostRatio measures both sides in turn and takes the best of each, so that a busy machine disturbs it little.
func phraseCostRatio(m *phraseMatcher, text string) float64 {
	fold := cases.Fold()
	fields := []textField{{text: text}}
	best := [2]time.Duration{time.Hour, time.Hour}
	for range 12 {
		began := time.Now()
		m.find(fields)
		found := time.Now()
		fold.String(norm.NFKC.String(text))
		best[0] = min(best[0], found.Sub(began))
		best[1] = min(best[1], time.Since(found))
	}
	return float64(best[0]) / float64(best[1])
}
