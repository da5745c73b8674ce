package screening

import (
	"errors"
	"fmt"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustPhrases(tb testing.TB, phrases ...string) *phraseMatcher {
	tb.Helper()
	m, err := newPhraseMatcher(phrases)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// phraseReport renders findings as "phrase@form:matched text" and "!kind".
func phraseReport(m *phraseMatcher, text string) string {
	found := m.find([]textField{{text: text}})
	var out []string
	for _, h := range found.hits {
		out = append(out, fmt.Sprintf("%s@%s:%s", m.texts[h.phrase], h.form, text[h.start:h.end]))
	}
	for _, f := range found.obfuscations {
		out = append(out, "!"+string(f.kind))
	}
	return strings.Join(out, " ")
}

func TestPhraseEvasions(t *testing.T) {
	t.Parallel()
	m := mustPhrases(t, "weapon smuggling", "ransom")
	tests := []struct{ name, text, want string }{
		{"plain", "of weapon smuggling.", "weapon smuggling@plain:weapon smuggling"},
		{"upper case", "WEAPON SMUGGLING", "weapon smuggling@plain:WEAPON SMUGGLING"},
		{"mixed case", "wEaPoN sMuGgLiNg", "weapon smuggling@plain:wEaPoN sMuGgLiNg"},
		{"new line", "weapon\r\nsmuggling", "weapon smuggling@plain:weapon\r\nsmuggling"},
		{"tab", "weapon\tsmuggling", "weapon smuggling@plain:weapon\tsmuggling"},
		{"double space", "weapon  smuggling", "weapon smuggling@plain:weapon  smuggling"},
		{"no-break space", "weapon\u00A0smuggling", "weapon smuggling@plain:weapon\u00A0smuggling"},
		{"underscore", "weapon_smuggling", "weapon smuggling@plain:weapon_smuggling"},
		{"hyphen", "weapon-smuggling", "weapon smuggling@plain:weapon-smuggling"},
		{"dashes and quotes", "“weapon” — ‘smuggling’", "weapon smuggling@plain:weapon” — ‘smuggling"},
		{"full width", "ｗｅａｐｏｎ　ｓｍｕｇｇｌｉｎｇ", "weapon smuggling@folded:ｗｅａｐｏｎ　ｓｍｕｇｇｌｉｎｇ"},
		{"mathematical", "𝔀𝓮𝓪𝓹𝓸𝓷 𝐬𝐦𝐮𝐠𝐠𝐥𝐢𝐧𝐠", "weapon smuggling@folded:𝔀𝓮𝓪𝓹𝓸𝓷 𝐬𝐦𝐮𝐠𝐠𝐥𝐢𝐧𝐠"},
		{"circled", "ⓦⓔⓐⓟⓞⓝ ⓢⓜⓤⓖⓖⓛⓘⓝⓖ", "weapon smuggling@folded:ⓦⓔⓐⓟⓞⓝ ⓢⓜⓤⓖⓖⓛⓘⓝⓖ"},
		{"accents", "wéàpön smũgglïng", "weapon smuggling@folded:wéàpön smũgglïng"},
		{"combining marks", "w\u0336e\u0336apon smu\u20DDggling", "weapon smuggling@folded:w\u0336e\u0336apon smu\u20DDggling"},
		{"zero width", "wea\u200Bpon smug\u200Dgling", "weapon smuggling@folded:wea\u200Bpon smug\u200Dgling"},
		{"soft hyphen", "wea\u00ADpon smug\u00ADgling", "weapon smuggling@folded:wea\u00ADpon smug\u00ADgling"},
		{"Hangul filler", "wea\u3164pon smuggling", "weapon smuggling@folded:wea\u3164pon smuggling"},
		{"grapheme joiner", "wea\u034Fpon smuggling", "weapon smuggling@folded:wea\u034Fpon smuggling"},
		{"variation selectors", "w\uFE01eapon smuggling", "weapon smuggling@folded:w\uFE01eapon smuggling"},
		{"right-to-left marks", "wea\u200Fpon smuggling", "weapon smuggling@folded:wea\u200Fpon smuggling"},
		{"right-to-left override", "wea\u202Epon\u202C smuggling", "weapon smuggling@folded:wea\u202Epon\u202C smuggling !bidi_control"},
		{"tag characters", "wea\U000E0078pon smuggling", "weapon smuggling@folded:wea\U000E0078pon smuggling !tag_character"},
		{"Cyrillic letters", "wеароn smuggling", "weapon smuggling@skeleton:wеароn smuggling !mixed_script"},
		{"Cyrillic capitals", "WЕАРОN SМUGGLING", "weapon smuggling@skeleton:WЕАРОN SМUGGLING !mixed_script"},
		{"Greek letters", "weapοn smuggling", "weapon smuggling@skeleton:weapοn smuggling !mixed_script"},
		{"letters with strokes", "wɇapøn smuggling", "weapon smuggling@skeleton:wɇapøn smuggling"},
		{"small capitals", "ᴡᴇᴀᴘᴏɴ ꜱᴍᴜɢɢʟɪɴɢ", "weapon smuggling@skeleton:ᴡᴇᴀᴘᴏɴ ꜱᴍᴜɢɢʟɪɴɢ"},
		{"badges", "🅦🅔🅐🅟🅞🅝 🆂🅼🆄🅶🅶🅻🅸🅽🅶", "weapon smuggling@skeleton:🅦🅔🅐🅟🅞🅝 🆂🅼🆄🅶🅶🅻🅸🅽🅶"},
		{"ASCII lookalikes", "weap0n srnuggIing", "weapon smuggling@skeleton:weap0n srnuggIing"},
		{"l for I", "WEAPON SMUGGLlNG", "weapon smuggling@skeleton:WEAPON SMUGGLlNG"},
		{"leet digits", "w34p0n 5mu661ing", "weapon smuggling@leet:w34p0n 5mu661ing"},
		{"leet symbols", "we@pon $mugg|!ng", "weapon smuggling@leet:we@pon $mugg|!ng"},
		{"a symbol or punctuation", "we@pon smuggling! w3apon smugg1|ng!", "weapon smuggling@leet:we@pon smuggling weapon smuggling@leet:w3apon smugg1|ng"},
		{"regional indicators", "🇼🇪🇦🇵🇴🇳 smuggling", "weapon smuggling@leet:🇼🇪🇦🇵🇴🇳 smuggling"},
		{"letter spacing", "w e a p o n  s m u g g l i n g", "weapon smuggling@squeezed:w e a p o n  s m u g g l i n g"},
		{"dots between letters", "w.e.a.p.o.n s.m.u.g.g.l.i.n.g", "weapon smuggling@squeezed:w.e.a.p.o.n s.m.u.g.g.l.i.n.g"},
		{"initials", "W. E. A. P. O. N. S. M. U. G. G. L. I. N. G.", "weapon smuggling@squeezed:W. E. A. P. O. N. S. M. U. G. G. L. I. N. G"},
		{"asterisks in words", "wea*pon smug*gling", "weapon smuggling@squeezed:wea*pon smug*gling"},
		{"parenthesised letters", "⒲⒠⒜⒫⒪⒩ smuggling", "weapon smuggling@squeezed:⒲⒠⒜⒫⒪⒩ smuggling"},
		{"joined", "#WeaponSmuggling", "weapon smuggling@squeezed:WeaponSmuggling"},
		{"split elsewhere", "wea pons mug gling", "weapon smuggling@squeezed:wea pons mug gling"},
		{"hyphenation", "wea-\npon smuggling", "weapon smuggling@squeezed:wea-\npon smuggling"},
		{"spaced homoglyphs in leet", "w е 4 p о n 5muggling", "weapon smuggling@squeezed:w е 4 p о n 5muggling"},
		{"a short phrase by lookalikes", "rаns0m", "ransom@skeleton:rаns0m !mixed_script"},
		{"m for rn and back", "rnoney ransorn", "ransom@skeleton:ransorn"},

		{"percent escapes", "https://h/weapon%20smug%67ling.jsonl", "weapon smuggling@reread:weapon%20smug%67ling"},
		{"percent escapes of escapes", "weapon%2520smuggling", "weapon smuggling@reread:weapon%2520smuggling"},
		{"a percent sign", "100% weapon%smuggling 5%", "weapon smuggling@plain:weapon%smuggling"},
		{"character references", "&#119;eapon&nbsp;smugg&#x6C;ing", "weapon smuggling@reread:&#119;eapon&nbsp;smugg&#x6C;ing"},
		{"a short phrase in references", "r&#97;nsom", "ransom@reread:r&#97;nsom"},
		{"tags between words", "<p>weapon<b>smuggling</b></p>", "weapon smuggling@reread:weapon<b>smuggling"},
		{"tags in words", "r<b></b>ansom", "ransom@reread:r<b></b>ansom"},
		{"tags in references", "weapon&lt;br&gt;smuggling", "weapon smuggling@reread:weapon&lt;br&gt;smuggling"},
		{"a digit after the last word", "weapon smuggling2, weapon smuggling", "weapon smuggling@reread:weapon smuggling2 weapon smuggling@plain:weapon smuggling"},
		{"run together before a digit", "weaponsmuggling2.jsonl", "weapon smuggling@reread:weaponsmuggling2"},
		{"digits between words", "1weapon2smuggling", "weapon smuggling@reread:1weapon2smuggling"},
		{"sentences of a word", "One line. Weapon! Smuggling! And so on", "weapon smuggling@reread:Weapon! Smuggling"},
		{"sentences in capitals", "of WEAPON... SMUGGLING and so on", "weapon smuggling@reread:WEAPON... SMUGGLING"},
		{"ideographic stops", "WEAPON。SMUGGLING", "weapon smuggling@reread:WEAPON。SMUGGLING"},
		{"all of them", "WEAPON2.&#32;SMUGGLING<br>", "weapon smuggling@reread:WEAPON2.&#32;SMUGGLING"},

		{"a short phrase with digits", "ransom2 ransom1x", ""},
		{"less and greater", "weapon < 5 smuggling > 3", ""},
		{"a short phrase is not spelled out", "r a n s o m r4n50m ran-som", ""},
		{"word bounds", "weapons smuggling, nonweapon smuggling, weapon smugglings, ransoms", ""},
		{"another word between", "weapon and smuggling", ""},
		{"the end of a sentence", "It is a weapon. Smuggling of notation is not.", ""},
		{"the end of a sentence, spelled out", "It is a w e a p o n weapon! Smuggling goes on", ""},
		{"no end of a sentence", "weapon. smuggling", "weapon smuggling@plain:weapon. smuggling"},
		{"inside longer runs of letters", "xweaponsmugglingx", ""},
		{"i is not l", "weapon smuggiing smuggllng", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, phraseReport(m, tt.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			padded := "Some more text, before " + tt.text + " and after"
			if tt.want != "" && phraseReport(m, padded) == "" {
				t.Errorf("%+q: nothing found inside other text", tt.text)
			}
		})
	}
}

func TestPhraseBenign(t *testing.T) {
	t.Parallel()
	m := mustPhrases(t, "child abuse", "tail risk fraud", "rape victims", "modern slavery")
	for _, text := range []string{
		"Every node has a child. Abuse of notation aside, it is a tree.",
		"A child. Abuse", "A child! Abuse of it?", "THE child. ABUSE of", "Is it a child? Abuse: no.",
		"The HTTP child. Abuse is one more word.", "sha256 of child1. Abuse2 of it",
		"Grape victims of frost: the tall risk fraud of the vineyard.",
		"Item 1 of 10 in the modem manual: slavery to defaults; the child process may abuse its limits.",
	} {
		if got := phraseReport(m, text); got != "" {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestPhraseLanguages(t *testing.T) {
	t.Parallel()
	m := mustPhrases(t, "武器走私", "武器の密輸", "무기 밀수", "ลักลอบค้าอาวุธ", "تهريب الأسلحة", "הברחת נשק", "kaçak silah satışı",
		"контрабанда оружия", "λαθρεμπόριο όπλων", "हथियार तस्करी", "Waffenschmuggel für Große")
	tests := []struct{ name, text, want string }{
		{"Chinese inside text", "他们武器走私了", "武器走私@plain:武器走私"},
		{"Chinese over a line", "武器\n走私", "武器走私@plain:武器\n走私"},
		{"Chinese spaced", "武 器 走 私", "武器走私@plain:武 器 走 私"},
		{"Chinese radicals", "武器⾛私", "武器走私@folded:武器⾛私"},
		{"Chinese over a full stop", "武器。走私", ""},
		{"Chinese over a comma", "武器，走私", ""},
		{"Japanese", "それは武器の密輸である", "武器の密輸@plain:武器の密輸"},
		{"Korean with a particle", "무기 밀수를 했다", "무기 밀수@plain:무기 밀수"},
		{"Korean without a space", "무기밀수", "무기 밀수@folded:무기밀수"},
		{"Thai", "การลักลอบค้าอาวุธผิด", "ลักลอบค้าอาวุธ@plain:ลักลอบค้าอาวุธ"},
		{"Arabic", "عن تهريب الأسلحة.", "تهريب الأسلحة@plain:تهريب الأسلحة"},
		{"Arabic with vowels", "تَهْرِيبُ الأَسْلِحَةِ", "تهريب الأسلحة@folded:تَهْرِيبُ الأَسْلِحَةِ"},
		{"Arabic lengthened", "تهـــريب الأسلحة", "تهريب الأسلحة@folded:تهـــريب الأسلحة"},
		{"Arabic presentation forms", "ﺗﻬﺮﻳﺐ الأسلحة", "تهريب الأسلحة@folded:ﺗﻬﺮﻳﺐ الأسلحة"},
		{"Arabic without hamza", "تهريب الاسلحة", "تهريب الأسلحة@plain:تهريب الاسلحة"},
		{"Hebrew with points", "הַבְרָחַת נֶשֶׁק", "הברחת נשק@folded:הַבְרָחַת נֶשֶׁק"},
		{"Turkish", "KAÇAK SİLAH SATIŞI", "kaçak silah satışı@folded:KAÇAK SİLAH SATIŞI"},
		{"Turkish as English upper case", "KAÇAK SILAH SATIŞI", "kaçak silah satışı@folded:KAÇAK SILAH SATIŞI"},
		{"Turkish without marks", "kacak silah satisi", "kaçak silah satışı@plain:kacak silah satisi"},
		{"Russian", "КОНТРАБАНДА ОРУЖИЯ", "контрабанда оружия@plain:КОНТРАБАНДА ОРУЖИЯ"},
		{"Russian with Latin letters", "кoнтpaбaндa opyжия", "контрабанда оружия@skeleton:кoнтpaбaндa opyжия !mixed_script"},
		{"Russian spaced", "к о н т р а б а н д а о р у ж и я", "контрабанда оружия@squeezed:к о н т р а б а н д а о р у ж и я"},
		{"Greek without accents, with the other sigma", "ΛΑΘΡΕΜΠΟΡΙΟ ΟΠΛΩΝ", "λαθρεμπόριο όπλων@plain:ΛΑΘΡΕΜΠΟΡΙΟ ΟΠΛΩΝ"},
		{"Greek capitals with a Latin one", "ΛΑΘΡΕΜΠΟΡΙΟ ΟΠΛΩN", "λαθρεμπόριο όπλων@skeleton:ΛΑΘΡΕΜΠΟΡΙΟ ΟΠΛΩN !mixed_script"},
		{"Hindi", "यह हथियार तस्करी है", "हथियार तस्करी@plain:हथियार तस्करी"},
		{"Hindi with another vowel", "हथियार तस्कर", ""},
		{"German", "WAFFENSCHMUGGEL FÜR GROSSE", "Waffenschmuggel für Große@folded:WAFFENSCHMUGGEL FÜR GROSSE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, phraseReport(m, tt.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPhraseObfuscations(t *testing.T) {
	t.Parallel()
	m := mustPhrases(t)
	tests := []struct {
		name, text string
		want       []textObfuscation
	}{
		{"ASCII", "plain text", nil},
		{"whole words of several scripts", "Москва and Αθήνα, 東京 and 서울, naïve Straße", nil},
		{"Japanese beside Latin", "CPUの温度", nil},
		{"formulas", "Δt, αhelix, 10µs, 2μm, kΩ, Σmax, λx", nil},
		{"a Russian ending on an abbreviation", "USBшный", nil},
		{"Cyrillic in a Latin word", "the pаypal and the аpple", []textObfuscation{{hidesMixedScript, 0, 4, 11, 2}}},
		{"Latin in a Cyrillic word", "Мocква", []textObfuscation{{hidesMixedScript, 0, 0, 10, 1}}},
		{"Greek inside", "chιld", []textObfuscation{{hidesMixedScript, 0, 0, 6, 1}}},
		{"directional marks", "שלום\u200F (abc\u200E)", nil},
		{"override and isolate", "a\u202Eb\u2066c", []textObfuscation{{hidesBidiControl, 0, 1, 4, 2}}},
		{"flags", "🏴\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F 🇩🇪", nil},
		{"a flag that goes on", "🏴\U000E0067\U000E0062\U000E0073", []textObfuscation{{hidesTagCharacter, 0, 4, 8, 3}, {hidesInvisible, 0, 4, 16, 3}}},
		{"tags", "a\U000E0061\U000E0062", []textObfuscation{{hidesTagCharacter, 0, 1, 5, 2}}},
		{"emoji", "👨\u200D👩\u200D👧 ❤\uFE0F\u200D🔥", nil},
		{"joiners that Persian needs", strings.Repeat("می\u200Cخواهم ", 9), nil},
		{"one zero width space", "data\u200Bset", nil},
		{"many zero width spaces", "d\u200Ba\u200Bt\u200Ba\u200Bset", []textObfuscation{{hidesInvisible, 0, 1, 4, 4}}},
		{"soft hyphens", strings.Repeat("Sil\u00ADben\u00ADtren\u00ADnung ", 9), nil},
		{"hidden bits", "a" + strings.Repeat("\u200B\u200C", 40), []textObfuscation{{hidesInvisible, 0, 1, 241, 80}}},
		{"an honorific ligature", "قال \uFDFA ", nil},
		{"expansion", strings.Repeat("\uFDFA", 400), []textObfuscation{{hidesExpansion, 0, 528, 531, 224}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := m.find([]textField{{text: tt.text}}).obfuscations
			if tt.name == "a flag that goes on" {
				tt.want = tt.want[:1] // three invisibles are below that threshold
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(textObfuscation{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The rest of a text is searched even when part of it no longer is.
func TestPhraseAfterExpansion(t *testing.T) {
	t.Parallel()
	m := mustPhrases(t, "weapon smuggling")
	want := "weapon smuggling@plain:weapon smuggling !expansion"
	if got := phraseReport(m, strings.Repeat("\uFDFA", 400)+" weapon smuggling"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPhraseErrors(t *testing.T) {
	t.Parallel()
	_, err := newPhraseMatcher([]string{
		"good", "", " -\u200B. ", "bad\xFF", strings.Repeat("x", maxPhraseBytes+1), strings.Repeat("x ", maxPhraseWords+1),
		"They stop. Then go", strings.Repeat("ﷺ", 30), strings.Repeat("x", maxPhraseBytes), "Mr. Good",
	})
	want := map[int]error{
		1: errPhraseEmpty, 2: errPhraseEmpty, 3: errPhraseEncoding, 4: errPhraseLong, 5: errPhraseLong, 6: errPhraseStop,
		7: errPhraseLong,
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("got %v, want joined errors", err)
	}
	got := map[int]error{}
	for _, err := range joined.Unwrap() {
		var pe *phraseError
		if !errors.As(err, &pe) {
			t.Fatalf("%v is no phraseError", err)
		}
		got[pe.index] = pe.err
		if !strings.Contains(err.Error(), fmt.Sprintf("phrase %d ", pe.index)) {
			t.Errorf("message %q does not name phrase %d", err, pe.index)
		}
	}
	for i := range 10 {
		if got[i] != want[i] {
			t.Errorf("phrase %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

func TestPhraseHitsAreOrderedAndComplete(t *testing.T) {
	t.Parallel()
	m := mustPhrases(t, "b c d", "a b", "b", "A-B", "a b c", "b c", "a a")
	got := m.find([]textField{{text: "nothing"}, {text: "a b c d"}, {text: "a a a"}}).hits
	want := []phraseHit{
		{1, 1, 0, 3, formPlain}, {3, 1, 0, 3, formPlain}, {4, 1, 0, 5, formPlain},
		{0, 1, 2, 7, formPlain}, {2, 1, 2, 3, formPlain}, {5, 1, 2, 5, formPlain},
		{6, 2, 0, 3, formPlain}, {6, 2, 2, 5, formPlain},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(phraseHit{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPhraseFloodHidesNoOther(t *testing.T) {
	t.Parallel()
	m := mustPhrases(t, "weapon smuggling", "nerve agents")
	flood := strings.Repeat("weapon smuggling, weap0n smuggling, weaponsmuggling, we@pon smuggling ", 5000)
	hits := m.find([]textField{{text: flood + "nerve agents"}, {text: flood}}).hits
	count := map[[2]int]int{}
	for _, h := range hits {
		count[[2]int{h.field, h.phrase}]++
	}
	for _, field := range []int{0, 1} {
		if n := count[[2]int{field, 0}]; n < maxHits || n > 2*maxHits {
			t.Errorf("field %d: %d hits of the flood, want %d to %d", field, n, maxHits, 2*maxHits)
		}
	}
	if count[[2]int{0, 1}] != 1 {
		t.Errorf("the phrase after the flood: %d hits, want 1", count[[2]int{0, 1}])
	}
}

// A hit is found wherever the block boundaries of the scanner fall.
func TestPhraseAcrossBlocks(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ab ", 30) + "cd"
	m := mustPhrases(t, "weapon smuggling", long)
	for pad := blockTokens - 40; pad < 2*blockTokens+200; pad += 7 {
		for _, text := range []string{"weapon smuggling", "w e a p o n s m u g g l i n g", "we@pon smuggling", "wеapon smuggling", long} {
			prefix := strings.Repeat("x ", pad)
			hits := m.find([]textField{{text: prefix + text + " y"}}).hits
			if len(hits) != 1 || hits[0].start != len(prefix) || hits[0].end != len(prefix)+len(text) {
				t.Fatalf("%q after %d words: %v", text, pad, hits)
			}
		}
	}
}

func TestPhraseForms(t *testing.T) {
	t.Parallel()
	for f := formPlain; f <= formReread; f++ {
		if strings.HasPrefix(f.String(), "hitForm") {
			t.Errorf("form %d has no name", f)
		}
		if got, want := f.loose(), f >= formLeet; got != want {
			t.Errorf("%v.loose() = %v", f, got)
		}
	}
	if got := hitForm(0).String(); got != "hitForm(0)" {
		t.Errorf("the zero form is %q", got)
	}
}

func TestPhraseCleanTextDoesNotAllocate(t *testing.T) {
	// Without the pool, which gives things up at random when data races are looked for.
	f := newPhraseFinder(mustPhrases(t, phraseProsePhrases...))
	clean := "The quick brown fox jumps over a lazy dog, and m0re $uch text. "
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		fields := []textField{{text: strings.Repeat(clean, size/len(clean))}}
		f.find(fields)
		if n := testing.AllocsPerRun(20, func() { f.find(fields) }); n > 0 {
			t.Errorf("%d bytes: %v allocations", size, n)
		}
	}
}

func TestPhraseVocabularyIsSmall(t *testing.T) {
	words := phraseBenchWords(20_000)
	phrases := make([]string, 100_000)
	for i := range phrases {
		phrases[i] = words[i%len(words)] + " " + words[i*7919%len(words)] + " " + words[i/7]
	}
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	m := mustPhrases(t, phrases...)
	size := heap() - before
	if limit := uint64(20 << 20); size > limit {
		t.Errorf("100,000 phrases take %d bytes, want at most %d", size, limit)
	}
	t.Logf("100,000 phrases: %.1f MB", float64(size)/(1<<20))
	runtime.KeepAlive(m)
}

// phraseProsePhrases are of the kind that packs ship.
var phraseProsePhrases = []string{
	"child abuse", "nerve agent", "build a bomb", "hate speech", "credit card fraud", "human trafficking", "self harm",
	"sexual exploitation", "identity theft", "biological weapon", "suicide methods", "ethnic cleansing", "social scoring",
}

// Of 500-word chunks of ordinary technical prose (the comments of the standard library) hardly any has a finding.
func TestPhraseOrdinaryProse(t *testing.T) {
	t.Parallel()
	m := mustPhrases(t, phraseProsePhrases...)
	var words []string
	for _, dir := range []string{"net/http", "os", "crypto/tls", "encoding/json", "database/sql", "runtime", "go/types", "testing"} {
		files, err := filepath.Glob(filepath.Join(build.Default.GOROOT, "src", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no sources of %s below %q: %v", dir, build.Default.GOROOT, err)
		}
		for _, name := range files {
			words = append(words, phraseComments(t, name)...)
		}
	}
	const chunk = 500
	chunks, found := 0, 0
	for len(words) >= chunk {
		text := strings.Join(words[:chunk], " ")
		words = words[chunk:]
		chunks++
		if report := phraseReport(m, text); report != "" {
			found++
			t.Log(report)
		}
	}
	t.Logf("%d of %d chunks", found, chunks)
	if chunks < 500 {
		t.Errorf("only %d chunks of prose", chunks)
	}
	if found*100 > chunks {
		t.Errorf("findings in %d of %d chunks, want at most 1 %%", found, chunks)
	}
}

func phraseComments(t *testing.T, name string) []string {
	t.Helper()
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, group := range file.Comments {
		words = append(words, strings.Fields(group.Text())...)
	}
	return words
}
