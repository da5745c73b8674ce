package formats

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// hint is something that is told by words: a restriction, or a tag. Words decide
// nothing; they keep a licence or a tag from looking settled until a person has
// read them.
type hint struct {
	code       string // restriction, or
	tag, state string
	key        []string // one of them is in the text, or the pattern need not be tried
	pattern    *regexp.Regexp
}

var hints = []hint{
	{code: "nc", key: []string{"commercial", "by-nc", "by nc", "by_nc", "personal", "private", "kommerziell", "comercia", "商"}, pattern: regexp.MustCompile(
		`\bnon[\s_-]*commercial|\bcc[\s_-]*by[\s_-]*nc|\bby[\s_-]nc(?:\b|_)|\b(?:no|not|never|cannot|without|prohibit(?:s|ed)?|forbid(?:s|den)?)\b[^.;]{0,40}\bcommercial` +
			`|\bcommercial(?:ly)?\b[^.;]{0,30}\b(?:not|never|prohibited|forbidden|excluded|disallowed)\b|\b(?:personal|private)(?: and \S+)? (?:use|purposes?) only|\b(?:only|solely) for (?:personal|private)\b` +
			`|nicht[\s-]*kommerziell|\b(?:no|não|non)[\s-]comercia|\bsin fines comerciales|非商`)},
	{code: "nd", key: []string{"derivative", "by-nd", "by-nc-nd", "by nd", "nc nd"}, pattern: regexp.MustCompile(
		`\bno[\s-]?derivatives?\b|\bcc[\s_-]*by[\s_-](?:nc[\s_-])?nd|\bby[\s_-](?:nc[\s_-])?nd(?:\b|_)`)},
	{code: "research_only", key: []string{"research", "academic", "educational", "scientific", "forschung", "wissenschaft", "recherche", "研究"}, pattern: regexp.MustCompile(
		`\b(?:research|academic|educational|scientific)(?:[\s,]+(?:and|or|and/or|research|academic|educational|scientific))*(?:[\s-]+(?:use|uses|purpose|purposes))?[\s-]+only\b` +
			`|\b(?:only|solely|exclusively|strictly|limited to|restricted to)\b[^.;]{0,40}\b(?:research|academic|educational)|\bnur (?:für|zu) \S*(?:forschung|wissenschaft)|à des fins de recherche|仅.{0,8}研究`)},
	{code: "no_ml", key: []string{"train", "machine learning"}, pattern: regexp.MustCompile(
		`\bno[t]?\b[^.;]{0,40}\b(?:to|for) (?:train|training|machine learning)|\bno (?:ai|machine[\s-]learning|model)[\s-]training|\bprohibits? (?:\w+ ){0,3}training` +
			`|\b(?:not|never|cannot)\b[^.;]{0,20}\b(?:use|used|permitted|allowed)\b[^.;]{0,50}\b(?:train|training|machine[\s-]learning)\b`)},
	{code: "eu_disallowed", key: []string{"european union", "eu", "eea"}, pattern: regexp.MustCompile(
		`\b(?:not|excluding|except|outside)\b[^.;]{0,60}\b(?:european union|eu|eea)\b|\beu[_\s-]disallowed|eu_disallowed["']?\s*:\s*["']?(?:true|yes)|\b(?:european union|eu|eea)\b[^.;]{0,40}\b(?:not (?:permitted|allowed|licensed|available)|excluded|prohibited)`)},
	{tag: "gated_access", state: "present", key: []string{"agreement", "credential", "restricted", "request", "registration", "register", "sign", "dua"}, pattern: regexp.MustCompile(
		`\bdata (?:use|usage|access|transfer) agreement|\bcredentialed\b|\b(?:access is|restricted) (?:restricted|access)\b|\baccess (?:upon|on|by) request\b|\brequest access\b` +
			`|\bregistration (?:is )?(?:required|needed)|\brequires? (?:registration|signing|approval)|\bmust (?:first )?(?:register|sign|request)\b|\bdua\b`)},
	{tag: "tdm_reserved", state: "present", key: []string{"data mining", "tdm", "opt", "noai"}, pattern: regexp.MustCompile(
		`\b(?:text (?:and|&) data mining|tdm)\b[^.;]{0,60}\breserv|\breserv[^.;]{0,60}\b(?:text (?:and|&) data mining|tdm)\b|\bopt(?:ed|s)?[\s-]out\b|\bnoai\b`)},
	{tag: "consent", state: "absent", key: []string{"consent"}, pattern: regexp.MustCompile(
		`\b(?:without|no|not|withheld|withdr[ae]wn?|withdrew|revoked?|waive[dr]?)\b[^.;]{0,30}\bconsent|\bconsent\b[^.;]{0,30}\b(?:not|withheld|withdrawn|revoked|waived|missing)\b`)},
	{tag: "not_for_all_audiences", state: "present", key: []string{"18", "21", "adult"}, pattern: regexp.MustCompile(
		`(?:^|\s)(?:18|21)\+|\b(?:over|at least|above|be|are) (?:the age of )?(?:18|21)(?: years?\b| or (?:older|over)\b)|\badults? only\b`)},
}

var restrictionWords = map[string]string{"nc": "non-commercial", "nd": "no derivatives", "research_only": "research only",
	"no_ml": "not for training", "eu_disallowed": "not in the EU"}

// sweep looks through all the words of a part of a file for restrictions that
// its licence does not already state, whichever key they stand under, and through
// its keys for terms of use that no importer reads there.
func (r *reader) sweep(rec *Record, v value) { r.sweepIn(rec, v, true) }

func (r *reader) sweepIn(rec *Record, v value, watch bool) {
	if v.kind == isText {
		r.sweepText(rec, v.text, v.at)
	}
	if v.kind == isMap && watch {
		r.twice(v)
		if name := v.get("name"); name.kind == isText && r.form(name.text).terms { // a property of that name
			r.unreadTerms(rec, v.get("value"))
		}
	}
	for i := range v.items {
		item := &v.items[i]
		if v.kind != isMap {
			if carriesWords(item) {
				r.sweepIn(rec, value{item, v.at + "/" + strconv.Itoa(i)}, watch)
			}
			continue
		}
		r.sweepText(rec, v.keys[i], v.at)
		below := watch && v.keys[i] != "@context" // names of keys, not keys
		if below && r.form(v.keys[i]).terms {
			if m := v.member(i); r.taken[m.at] {
				below = false
			} else {
				r.unreadTerms(rec, m)
			}
		}
		if carriesWords(item) { // not most of a large file
			r.sweepIn(rec, v.member(i), below)
		}
	}
}

// keyForm is what is known of a key by its name.
type keyForm struct {
	same  string // equal for keys that people take for one
	terms bool   // terms of use stand under it
}

var termsKeys = strings.Fields(`license licence licenses licences licensing licensename licenselink licensedetails licenseterms licenseurl
	rights accessrights usagerights termsofuse termsofservice termsandconditions useterms usageterms usageinfo conditionsofaccess
	accessconditions useconditions conditionsofuse userestrictions usagerestrictions accessrestrictions restrictions acceptableuse datauseagreement useagreement`)

// maxFormed bounds the keys that are remembered.
const maxFormed = 10_000

func (r *reader) form(key string) keyForm {
	if f, ok := r.forms[key]; ok {
		return f
	}
	same := strings.Map(func(c rune) rune {
		if c < 0x80 && betweenWords(byte(c)) {
			return -1
		}
		return c
	}, strings.ToLower(key))
	f := keyForm{same, slices.Contains(termsKeys, same[strings.LastIndexAny(same, ":/#.")+1:])}
	if r.forms == nil {
		r.forms = map[string]keyForm{}
	}
	if len(r.forms) < maxFormed {
		r.forms[key] = f
	}
	return f
}

// twice reports keys of a map that people take for one, and that say different things.
func (r *reader) twice(v value) {
	if len(v.keys) > 64 { // written by a program
		return
	}
	var forms [64]string
	for i := range v.keys {
		forms[i] = r.form(v.keys[i]).same
		for k := range i {
			if forms[k] != forms[i] {
				continue
			}
			if a, b := &v.items[i], &v.items[k]; a.kind != b.kind || len(a.items)+len(b.items) > 0 || a.text != b.text {
				r.find(Contradiction, "", v.member(i).at, "is a second spelling of a key beside it, and readers differ in which one they take; keep one")
			}
		}
	}
}

// unreadHint stands among the codes of hints for terms that were not read.
const unreadHint = "terms"

// unreadTerms keeps a licence from looking settled when terms of use stand where
// they were not read, unless they say what is declared anyway.
func (r *reader) unreadTerms(rec *Record, v value) {
	for _, item := range flatten(v) {
		s := item.words()
		if s == "" || s == "false" || strings.EqualFold(s, "no") || rec.declares(s) {
			continue
		}
		if !slices.Contains(rec.hinted, unreadHint) {
			rec.hinted = append(rec.hinted, unreadHint)
		}
		rec.restrict("unknown", item.at)
		r.find(Restriction, "license", item.at, "states terms of use in a place where they are not read; read them and state them under license")
		return
	}
}

// declares reports whether a text names a licence that is declared, in whichever spelling.
func (rec *Record) declares(text string) bool {
	for i := rec.readTo; i < len(rec.License.Declared); i++ {
		if rec.declared == nil {
			rec.declared = map[string]bool{}
		}
		rec.declared[rec.License.Declared[i].Name()] = true
		rec.readTo = i + 1
	}
	said := licenseIn(text, "")
	return rec.declared[said.Name()]
}

// sweepShared looks through what belongs to no record of the file in particular,
// and so to all.
func (r *reader) sweepShared(parts ...value) {
	shared := Record{From: map[string]string{}}
	for _, v := range parts {
		r.sweep(&shared, v)
	}
	for i := range r.Records {
		r.inherit(&r.Records[i], &shared)
	}
}

// inherit gives a record what a sweep of something that it shares with others found.
func (r *reader) inherit(rec, shared *Record) {
	stated, _ := rec.License.Stated()
	for _, code := range shared.hinted {
		if !slices.Contains(stated, code) && !slices.Contains(rec.hinted, code) {
			rec.hinted = append(rec.hinted, code)
			rec.restrict("unknown", shared.From["/license/restrictions/0"])
		}
	}
	for k, d := range shared.Disclosures {
		rec.disclose(d.Tag, d.State, d.Basis, d.Detail, shared.From["/disclosures/"+strconv.Itoa(k)])
	}
}

// sweptOnce sweeps something to which many records may refer.
func (r *reader) sweptOnce(v value) *Record {
	if shared, ok := r.shared[v.at]; ok {
		return shared
	}
	shared := &Record{From: map[string]string{}}
	r.sweep(shared, v)
	if r.shared == nil {
		r.shared = map[string]*Record{}
	}
	r.shared[v.at] = shared
	return shared
}

// maxSwept bounds the search: patterns are slow on text that was made for it.
const maxSwept = 1 << 20

// shortest is the length of the shortest text that can hint at anything.
const shortest = len("非商")

func carriesWords(n *node) bool {
	return len(n.items) > 0 || n.kind == isText && len(n.text) >= shortest
}

// plainText takes away what stands between words or within them without being
// seen or read: marks of Markdown, other dashes and spaces, invisible characters.
var plainText = strings.NewReplacer("*", "", "`", "", "\u2010", "-", "\u2011", "-", "\u2012", "-", "\u2013", "-", "\u2014", "-", "\u2212", "-",
	"\u00a0", " ", "\u202f", " ", "\u2009", " ", "\u00ad", "", "\u200b", "", "\u200c", "", "\u200d", "", "\u2060", "", "\ufeff", "")

func (r *reader) sweepText(rec *Record, text, at string) {
	if len(text) < shortest {
		return
	}
	if text = strings.ToLower(text); strings.IndexFunc(text, func(c rune) bool { return c >= 0x80 || c == '*' || c == '`' }) >= 0 {
		text = plainText.Replace(text)
	}
	for _, h := range hints {
		if !slices.ContainsFunc(h.key, func(k string) bool { return strings.Contains(text, k) }) {
			continue
		}
		if r.swept += len(text); r.swept > maxSwept {
			if r.swept -= len(text); !slices.Contains(rec.hinted, "") {
				rec.hinted = append(rec.hinted, "")
				rec.restrict("unknown", at)
				r.find(Unreadable, "license", at, "is too much text to be searched for terms of use; read it")
			}
			return
		}
		if !h.pattern.MatchString(text) {
			continue
		}
		if h.tag != "" {
			rec.disclose(h.tag, h.state, "inferred", wordsOf[h.tag], rec.firstHint(h.tag, at))
			continue
		}
		stated, _ := rec.License.Stated()
		if slices.Contains(stated, h.code) || slices.Contains(rec.hinted, h.code) {
			continue
		}
		rec.hinted = append(rec.hinted, h.code)
		rec.restrict("unknown", at)
		r.find(Restriction, "license", at, "speaks of terms of use in words (%s); read it and state them under license.restrictions", restrictionWords[h.code])
	}
}

var wordsOf = map[string]string{"gated_access": "access is spoken of in words", "tdm_reserved": "a reservation or opting out is spoken of in words",
	"consent": "consent that was not given is spoken of in words", "not_for_all_audiences": "an age is spoken of in words"}

// firstHint keeps the place of the first statement about a tag.
func (rec *Record) firstHint(tag, at string) string {
	for i, d := range rec.Disclosures {
		if d.Tag == tag && d.Basis == "inferred" {
			return rec.From["/disclosures/"+strconv.Itoa(i)]
		}
	}
	return at
}
