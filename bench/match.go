package main

import (
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"weir/screening"
)

const proseBytes = 10 << 20

// compareMatchers measures phrase matching: speed against peers, the price of normalisation and of many phrases, and
// building.
func compareMatchers(rep *report) error {
	text, err := englishProse(proseBytes)
	if err != nil {
		return err
	}
	lower := []byte(strings.ToLower(text))
	plainOf := map[int]float64{}
	for _, n := range []int{100, 10_000, 100_000} {
		phrases := phrasesLike(text, n)
		plain, err := screening.NewPhraseMatcher(phrases, screening.PhraseConfig{Plain: true, AllHits: true})
		if err != nil {
			return err
		}
		full, err := screening.NewPhraseMatcher(phrases, screening.PhraseConfig{AllHits: true})
		if err != nil {
			return err
		}
		ac, err := newCoregx(phrases)
		if err != nil {
			return err
		}
		entrants := []entrant{
			{"weir, normalisation off", func(int) { plain.Find(text) }},
			{"weir, full normalisation", func(int) { full.Find(text) }},
			{"coregx/ahocorasick FindAllOverlapping, whole words in any case", func(int) { ac.scanWords(text) }},
			{"the same, text in lower case, hits within words kept", func(int) { ac.scan(lower) }},
		}
		hs, err := newHyperscan(phrases)
		if err != nil {
			rep.note("Hyperscan: absent (%v).", err)
		} else {
			entrants = append(entrants, entrant{"Hyperscan " + hyperscanVersion() + " (C, through cgo)", func(int) { hs.scan(text) }})
		}
		results := compare(1, entrants...)
		rep.speeds(fmt.Sprintf("%d phrases on %d MB of English, hits kept", n, proseBytes>>20), len(text), results)
		plainOf[n] = float64(results[0].perRun)
		if n == 10_000 {
			rep.goal("coregx, whole words in any case / weir, 10,000 phrases", 4, results[2].ratio)
			if hs != nil {
				rep.goal("Hyperscan / weir, 10,000 phrases", 2, results[4].ratio)
			}
			rep.atMost("full normalisation / none, English", 5, results[1].ratio)
		}
	}
	rep.atMost("100,000 phrases / 100, per byte", 8, plainOf[100_000]/plainOf[100])
	measureBuild(rep, text)
	return measureScripts(rep)
}

func measureBuild(rep *report, text string) {
	phrases := phrasesLike(text, 100_000)
	var times []float64
	var kept uint64
	for range 5 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		began := processorTime()
		m := must(screening.NewPhraseMatcher(phrases, screening.PhraseConfig{}))
		times = append(times, float64(processorTime()-began))
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(m)
		kept = after.HeapAlloc - before.HeapAlloc
	}
	rep.atMost("building 100,000 phrases, seconds", 0.5, median(times)/1e9)
	rep.atMost("memory of 100,000 phrases, MB", 20, float64(kept)/1e6)
}

// measureScripts compares full normalisation with none on text of many scripts, and on each hard kind of text with what
// x/text takes to normalise and fold it.
func measureScripts(rep *report) error {
	phrases, err := shippedPhrases()
	if err != nil {
		return err
	}
	full := must(screening.NewPhraseMatcher(phrases, screening.PhraseConfig{}))
	plain := must(screening.NewPhraseMatcher(phrases, screening.PhraseConfig{Plain: true}))
	var mixed strings.Builder
	for mixed.Len() < 1<<20 {
		for _, name := range []string{"english", "russian", "greek", "chinese", "japanese", "korean", "arabic", "hindi", "thai", "english curly"} {
			mixed.WriteString(strings.Repeat(hardTexts[name], 4))
		}
	}
	english := strings.Repeat(hardTexts["english"], mixed.Len()/len(hardTexts["english"]))
	results := compare(1, entrant{"weir, normalisation off, English", func(int) { plain.Find(english) }},
		entrant{"weir, full normalisation, English", func(int) { full.Find(english) }},
		entrant{"weir, full normalisation, ten scripts", func(int) { full.Find(mixed.String()) }})
	rep.speeds("1 MiB, the phrases of the shipped packs", mixed.Len(), results)
	rep.atMost("full normalisation of ten scripts / none of English", 15, results[2].ratio)

	fold := cases.Fold()
	worst, worstName := 0.0, ""
	for _, name := range sorted(hardTexts) {
		text := strings.Repeat(hardTexts[name], 1<<20/len(hardTexts[name]))
		r := compare(1, entrant{"x/text NFKC and fold", func(int) { fold.String(norm.NFKC.String(text)) }},
			entrant{name, func(int) { full.Find(text) }})
		rep.cost(name, r[1])
		if r[1].ratio > worst {
			worst, worstName = r[1].ratio, name
		}
	}
	rep.atMost("weir / NFKC and fold, worst kind of text ("+worstName+")", 2, worst)
	return nil
}
