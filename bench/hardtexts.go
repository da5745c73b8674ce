package main

import (
	"io/fs"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"weir/screening/packs"
)

func sorted(texts map[string]string) []string { return slices.Sorted(maps.Keys(texts)) }

// shippedPhrases are all phrases of the packs that weir ships.
func shippedPhrases() ([]string, error) {
	names, err := fs.Glob(packs.FS, "*.yaml")
	if err != nil {
		return nil, err
	}
	var phrases []string
	for _, name := range names {
		if strings.HasSuffix(name, ".cases.yaml") {
			continue
		}
		data, err := fs.ReadFile(packs.FS, name)
		if err != nil {
			return nil, err
		}
		var doc any
		if err := yaml.Unmarshal(data, &doc); err != nil {
			return nil, err
		}
		phrases = appendPhrases(phrases, doc)
	}
	return phrases, nil
}

// appendPhrases collects the lists under the key phrases.
func appendPhrases(all []string, doc any) []string {
	switch doc := doc.(type) {
	case []any:
		for _, v := range doc {
			all = appendPhrases(all, v)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(doc)) {
			if k != "phrases" {
				all = appendPhrases(all, doc[k])
				continue
			}
			for _, p := range doc[k].([]any) {
				all = append(all, p.(string))
			}
		}
	}
	return all
}

// hardTexts are the inputs that cost the matcher most, beside ordinary ones of several scripts: each is repeated to a MiB.
var hardTexts = map[string]string{
	"english":        "The quick brown fox jumps over a lazy dog, and then some more of them. ",
	"english curly":  "The fox’s “quick” jump — naïve as ever — went over a dog, and then more. ",
	"russian":        "Съешь же ещё этих мягких французских булок, да выпей чаю. ",
	"greek":          "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, και ύστερα πάλι. ",
	"chinese":        "天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。",
	"japanese":       "いろはにほへと ちりぬるを ガギグゲゴ わかよたれそ。",
	"korean":         "다람쥐 헌 쳇바퀴에 타고파, 동틀녘 햇빛. ",
	"arabic":         "نَصٌّ حَكِيمٌ لَهُ سِرٌّ قَاطِعٌ وَذُو شَأْنٍ عَظِيمٍ. ",
	"hindi":          "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा। ",
	"thai":           "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า ",
	"spaced":         "a b c d e f g h i j k l m n o p ",
	"spaced curly":   "а b с d е f ’ ",
	"spaced é":       strings.Repeat("a b c d ", 8192) + "é ",
	"spaced m":       "m m m m ",
	"spaced stroke":  "Il Il ",
	"at":             "@a @a ",
	"shouting":       "a! b! ",
	"shouting more":  "ab! cd! ",
	"dashed":         "a-b-c-d-",
	"initials":       "A. B. C. ",
	"commas":         "a,b;c:d\n\ne",
	"digits":         "1 2 10 c4 h1 ",
	"near":           "child abusf nerve agenu bomb makinh ",
	"heads":          "childabuschildabusnerveagent ",
	"suspicious":     "rnodern m1ll10n IlIlI moon ",
	"symbols":        "p@ss $one !wow a|b ",
	"marks":          "e\u0301\u0302\u0303\u0304\u0305\u0306",
	"invisible":      "a\u200bb\u200c\u200d\u2060",
	"expanding":      "\uFDFA",
	"ligatures":      "ﬃ㎏①⒜½№℀ ",
	"fullwidth":      "ｃｈｉｌｄ　ｂｏｏｋ　",
	"mathematical":   "𝐜𝐡𝐢𝐥𝐝 𝓫𝓸𝓸𝓴 ",
	"homoglyphs":     "сhіld bооk ",
	"jamo":           "\u1103\u1161\u1105\u1161\u11b7 ",
	"stops":          "Abcd. Abcd. ",
	"escapes":        "%6e%65rve&#32;agent%2520",
	"references":     "&#97;&amp;amp;",
	"open reference": "&#1",
	"tags":           "a<b>nerve</b> ",
	"open tags":      "<a",
	"marks apart":    ". . ! ",
	"full stops":     "。A",
	"capitals":       "AB. CD. ",
	"glued":          "abc1cde2 ",
	"glued bytes":    "a1",
	"one word":       "abcdefghij",
	"emoji":          "👨\u200d👩\u200d👧 🇩🇪 ",
}
