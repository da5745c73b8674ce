package formats

import (
	"regexp"
	"strings"

	"weir/screening"
)

// section is a heading of a card or datasheet and the text below it.
type section struct {
	level int
	title string // in lower case
	text  string
}

// sectionsOf cuts Markdown at its headings.
func sectionsOf(body string) (all []section) {
	fenced := false
	var text strings.Builder
	end := func() {
		if len(all) > 0 {
			all[len(all)-1].text = strings.TrimSpace(text.String())
		}
		text.Reset()
	}
	for line := range strings.Lines(strings.ReplaceAll(body, "\r", "\n")) {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			fenced = !fenced
		}
		if title := strings.TrimLeft(trimmed, "#"); !fenced && title != trimmed && len(trimmed)-len(title) <= 6 && strings.HasPrefix(title, " ") {
			end()
			all = append(all, section{len(trimmed) - len(title), strings.ToLower(strings.Trim(title, " #*")), ""})
			continue
		}
		text.WriteString(line)
	}
	end()
	return all
}

// cardSections are headings of cards and datasheets, and where a reviewer looks
// for the tags of which they speak.
var cardSections = []struct {
	title string
	tags  []string
}{
	{"personal and sensitive information", []string{"personal_data", "sensitive_personal"}},
	{"personal information", []string{"personal_data"}},
	{"discussion of biases", []string{"known_bias"}},
	{"bias, risks, and limitations", []string{"known_bias", "known_limits"}},
	{"biases", []string{"known_bias"}},
	{"limitations", []string{"known_limits"}},
	{"other known limitations", []string{"known_limits"}},
	{"known limitations", []string{"known_limits"}},
}

const maxSectionText = 64 << 10

// sections reads the text of a card. Headings tell where to look; the text
// decides nothing.
func (r *reader) sections(rec *Record) {
	if r.source.body == "" {
		return
	}
	for _, s := range sectionsOf(r.source.body) {
		text, _ := clip(s.text, maxSectionText)
		v := value{&node{kind: isText, text: text}, "#" + anchor(s.title)}
		for _, known := range cardSections {
			if s.title == known.title && text != "" {
				r.prose(rec, v, known.tags...)
			}
		}
		switch s.title {
		case "dataset summary", "model description", "dataset description", "model details":
			if rec.Description == "" && text != "" {
				r.set(rec, &rec.Description, "/description", v)
			}
		case "licensing information", "license":
			if text != "" && len(rec.License.Declared) == 0 { // words name no licence
				r.find(Unresolved, "license", v.at, "is spoken of in words only; state it under license.declared")
			}
		}
	}
	r.licenseLines(rec)
	r.sweepText(rec, r.source.body, "#")
}

var licenseLine = regexp.MustCompile(`(?im)^[\s>*_#|"'-]*(?:data ?set |data |model )?licen[sc]es?(?:_name)?["']?[\s*_]*[:|][\s*_|]*(\S.*)$`)

var markdownLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

const maxLicenseLines = 20

// licenseLines compares lines such as "License: MIT" in the text with what the
// front matter declares: which of two holds is for a person.
func (r *reader) licenseLines(rec *Record) {
	body := r.source.body
	if len(body) > maxSwept {
		body = body[:maxSwept]
		r.find(Unreadable, "license", "#", "is longer than 1 MiB; what follows was not searched for licences")
	}
	for _, m := range licenseLine.FindAllStringSubmatch(body, maxLicenseLines) {
		said := strings.Trim(plainText.Replace(markdownLink.ReplaceAllString(m[1], "$1")), " \t\r.|\"'_")
		if said == "" || screening.IsPlaceholder(said) || rec.declares(said) {
			continue
		}
		rec.restrict("unknown", "#")
		r.find(Contradiction, "license", "#", "a line of the text names a licence that the front matter does not declare")
		return
	}
}

// anchor is a title as an address within a page: what stands in for a pointer in text.
func anchor(title string) string {
	return strings.Trim(strings.Map(func(c rune) rune {
		switch {
		case c == ' ', c == '-':
			return '-'
		case c == '_' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			return c
		}
		return -1
	}, title), "-")
}

// datasheetHeadings are the seven groups of questions of a datasheet for data sets
// (Gebru et al., 2018).
var datasheetHeadings = []string{"motivation", "composition", "collection process", "preprocessing", "uses", "distribution", "maintenance"}

func detectDatasheet(s *source) int {
	if !s.card || s.docs[0].node != noValue.node {
		return 0
	}
	found := map[string]bool{}
	for _, section := range sectionsOf(s.body) {
		for _, h := range datasheetHeadings {
			if strings.HasPrefix(section.title, h) || strings.HasPrefix(section.title, "the "+h) {
				found[h] = true
			}
		}
	}
	if len(found) >= 3 {
		return likely
	}
	return 0
}

// readDatasheet keeps a datasheet for the reviewer. It is all prose, so the
// record states nothing.
func readDatasheet(r *reader) error {
	rec := r.add("dataset", value{&node{}, ""})
	for _, s := range sectionsOf(r.source.body) {
		if s.level == 1 && rec.Name == "" {
			rec.Name = r.clean(strings.TrimSpace(strings.TrimPrefix(s.title, "datasheet for")), "name", "#"+anchor(s.title))
			rec.From["/name"] = "#" + anchor(s.title)
			rec.identify(rec.Name)
		}
	}
	r.find(Unresolved, "disclosures", "", "is a datasheet in words: nothing of it was read as a statement; state what it says")
	r.sections(rec)
	if screening.IsBlank(rec.Description) {
		r.find(Missing, "description", "", "has no summary")
	}
	return nil
}
