package screening

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// textWords returns the folded words of a text, a stop as "|".
func textWords(text string) []string {
	var s textScan
	s.setTable(textTable())
	s.reset(text)
	s.fill(len(text) + 1)
	var words []string
	for i := range s.toks {
		if t := &s.toks[i]; t.hash == 0 {
			words = append(words, "|")
		} else {
			words = append(words, string(s.appendFold(nil, t)))
		}
	}
	return words
}

// textReference is the normalisation as whole-string transforms, the way it is usually written down.
func textReference(text string) string {
	strip := func(r rune) rune {
		if isIgnorable(r) || isTatweel(r) {
			return -1
		}
		return r
	}
	text = norm.NFKC.String(strings.Map(strip, text))
	text = norm.NFKC.String(cases.Fold().String(text))
	// Presentation forms of marks carry a tatweel, which shows up only here.
	return strings.Map(strip, strings.ReplaceAll(dropMarks(norm.NFD.String(text)), "ı", "i"))
}

func TestTextIgnorables(t *testing.T) {
	t.Parallel()
	n := 0
	for r := range rune(unicode.MaxRune + 1) {
		if isIgnorable(r) {
			n++
		}
	}
	// The size of Default_Ignorable_Code_Point in the Unicode version of the tables.
	if want := map[string]int{"15.0.0": 4174}[unicode.Version]; n != want {
		t.Errorf("Unicode %s: %d ignorable code points, want %d (a new Unicode version needs its own count)", unicode.Version, n, want)
	}
}

// Every letter, alone, folds to what the whole-string transforms give.
func TestTextFoldOfEveryLetter(t *testing.T) {
	t.Parallel()
	bad := 0
	for r := range rune(unicode.MaxRune + 1) {
		if !unicode.In(r, unicode.L, unicode.Nd) || isModifierQuote(r) || isTatweel(r) || isIgnorable(r) {
			continue
		}
		want := textReference(string(r))
		parts := []rune(norm.NFKD.String(string(r)))
		if unicode.Is(unicode.M, parts[0]) || strings.ContainsFunc(string(parts), func(r rune) bool {
			return !unicode.In(r, unicode.L, unicode.N, unicode.M) || isModifierQuote(r)
		}) {
			continue // a mark without its letter, or several words
		}
		// The iota subscript is a mark here, though case folding makes it a letter: it can be put under any letter.
		iota := slices.Contains(parts, 0x0345)
		got := strings.Join(textWords(string(r)), "")
		if got != want && !(iota && got+"ι" == want) {
			if bad++; bad < 10 {
				t.Errorf("%U %q folds to %q, want %q", r, r, got, want)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d letters", bad)
	}
}

func TestTextWordsAgreeWithWholeStringTransforms(t *testing.T) {
	t.Parallel()
	pieces := []string{
		"a", "B", "z", "I", "0", "é", "E\u0301\u0323", "ﬁ", "ß", "ẞ", "Ｗ", "ｘ", "𝐛", "ⓒ", "ñ", "Å", "ø", "İ", "ı", "ſ",
		"σ", "Σ", "ς", "ώ", "Ж", "й", "ё", "И\u0306", "ا", "لله", "ﻻ", "ة\u064B", "ش", "א\u05B7", "ք", "ჰ",
		"\u200B", "\u00AD", "\u2060", "\uFE0F", "\U000E0061", "\u3164", "\u0640", "\u034F", " ", "\u3000", "-", "_", ",", "—", "’",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "pieces"), "")
		want := strings.FieldsFunc(textReference(text), func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N) })
		if diff := cmp.Diff(want, textWords(text), cmp.Transformer("nil", func(s []string) string { return strings.Join(s, " ") })); diff != "" {
			t.Fatalf("%+q (-want +got):\n%s", text, diff)
		}
	})
}

// The short path for ASCII and the path through the rune table must not differ.
func TestTextASCIIPathsAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("aAbBiIlLmMrRnN01345zZ  \n._-,;@$!|'(x"))).Draw(t, "text")
		scan := func(text string, symbols bool) (s textScan) {
			index := newSkeletonIndex(0)
			s.setTable(textTable())
			s.skels, s.spelled, s.symbols = &index, true, symbols
			s.reset(text)
			s.fill(len(text) + 1)
			return s
		}
		// An ignorable after every character shows nothing and sends every word through the table.
		var hidden strings.Builder
		for _, c := range text {
			hidden.WriteRune(c)
			if asciiClass[byte(c)] == classWord {
				hidden.WriteRune('\u2060')
			}
		}
		short, long := scan(text, false), scan(hidden.String(), false)
		if len(short.toks) != len(long.toks) {
			t.Fatalf("%q: %d tokens, %d through the table", text, len(short.toks), len(long.toks))
		}
		for i := range short.toks {
			if short.toks[i].hash != long.toks[i].hash {
				t.Errorf("%q: token %d has different hashes", text, i)
			}
		}
		if a, b := short.classes[:short.used], long.classes[:long.used]; string(a) != string(b) {
			t.Errorf("%q: classes %q, through the table %q", text, a, b)
		}
		if a, b := short.units[:short.used], long.units[:long.used]; string(a) != string(b) {
			t.Logf("%q: units %q, through the table %q", text, a, b)
		}
	})
}

func TestTextWords(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       string // words joined by blanks
	}{
		{"empty", "", ""},
		{"no words", " .,-\u2014 ", ""},
		{"separators", "a-b_c\td\r\ne\u00A0f\u3000g", "a b c d e f g"},
		{"apostrophes of any kind separate", "don't don\u2019t don\u02BCt", "don t don t don t"},
		{"sentences", "They stop. Then go! Why? Because", "they stop | then go | why | because"},
		{"a sentence needs white space", "file.Name stop.Then", "file name stop then"},
		{"a sentence begins with a capital", "they stop. then", "they stop then"},
		{"short words may be abbreviations", "see Mr. Smith vs. Jones", "see mr smith vs jones"},
		{"closing quotes belong to the sentence", "\u201CThey stop.\u201D Then", "they stop | then"},
		{"ideographic full stop", "天地。玄黄", "天 地 | 玄 黄"},
		{"ideographic comma", "天地，玄黄", "天 地 | 玄 黄"},
		{"comma between words", "天地, then, 玄黄", "天 地 then 玄 黄"},
		{"Arabic full stop", "نص حكيم؟ نص", "نص حكيم | نص"},
		{"scripts change", "AI生成test", "ai 生 成 test"},
		{"Hangul", "다람쥐", "\u1103\u1161 \u1105\u1161\u11b7 \u110c\u1171"},
		{"Hangul from jamo", norm.NFD.String("다람쥐"), "\u1103\u1161 \u1105\u1161\u11b7 \u110c\u1171"},
		{"voiced kana stay apart", "が か", "か\u3099 か"},
		{"half-width voiced kana", "ｶﾞ", "カ\u3099"},
		{"Thai vowels stay", "กี กุ", "กี กุ"},
		{"Devanagari vowels stay", "कि कु", "कि कु"},
		{"Arabic vowel points go", "شَكْل", "شكل"},
		{"tatweel goes", "شـــكل", "شكل"},
		{"Turkish letters i", "Iİıi", "iiii"},
		{"a stray mark", "\u0301a \u0301 b", "a b"},
		{"an Indic vowel on a Latin letter", "a\u093Fb", "ab"},
		{"a decomposition of several words", "⒜⒝ ½", "a b 1 2"},
		{"invalid UTF-8", "a\xFFb", "a b"},
		{"private use and unassigned", "a\uE000b\U000E1000c", "a b c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, strings.Join(textWords(tt.text), " ")); diff != "" {
				t.Errorf("%+q (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestTextTableIsSharedSafely(t *testing.T) {
	t.Parallel()
	table := new(runeTable)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for r := rune(0); r < 0x2000; r += 17 {
				if e := table.page(r >> 8)[r&0xff]; e.kind == kindLetter && !utf8.ValidString(e.fold+e.skel) {
					t.Errorf("%U: bad entry", r)
				}
			}
		})
	}
	wg.Wait()
}
