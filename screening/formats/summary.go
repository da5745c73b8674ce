package formats

import (
	"fmt"
	"slices"
	"strings"

	"weir/screening"
)

// Summary is a draft of the public summary of training content that Article
// 53(1)(d) of the EU AI Act asks of providers of general-purpose models, in the
// order of the Commission's template. It says what the spec states and nothing
// else: what is not stated is a gap, which a person fills in. In particular no
// question is answered with no because nothing was found.
type Summary struct {
	Notice     string           `json:"notice"`
	Template   string           `json:"template"`
	Created    string           `json:"created,omitzero"`
	SpecSHA256 string           `json:"spec_sha256,omitzero"`
	RunRef     string           `json:"run_ref"`
	Sections   []SummarySection `json:"sections"`
	Gaps       []SummaryGap     `json:"gaps"`
	NotHeld    []string         `json:"not_held"` // pointers to what the spec says and the template has no field for
}

// SummarySection is a numbered section of the template.
type SummarySection struct {
	Number string         `json:"number"`
	Title  string         `json:"title"`
	Fields []SummaryField `json:"fields"`
}

// SummaryField is something that the template asks for.
type SummaryField struct {
	ID     string         `json:"id"` // section/name
	Asks   string         `json:"asks"`
	State  SummaryState   `json:"state"`
	Answer []SummaryClaim `json:"answer"`
	Gap    string         `json:"gap,omitzero"` // what is missing, and why
}

// SummaryState tells how much of a field the spec states.
type SummaryState string

// The states of a field.
const (
	Provided       SummaryState = "provided"
	PartlyProvided SummaryState = "partly provided"
	NotProvided    SummaryState = "not provided"
)

// SummaryClaim is one statement, with the pointers into the spec that it stands on.
type SummaryClaim struct {
	Text string   `json:"text"`
	From []string `json:"from"`
}

// SummaryGap repeats what a field misses.
type SummaryGap struct {
	Field string `json:"field"`
	Gap   string `json:"gap"`
}

const (
	summaryNotice = "Draft made from submitted metadata; not a filing. It repeats what the submitter of the training run stated " +
		"and covers the data of this run only: for the models that it starts from, see their own summaries."
	summaryTemplate = "C(2025) 8311 final of 5 December 2025, first issued on 24 July 2025"
)

// Summarise drafts the training-content summary of a spec.
func Summarise(spec *screening.Spec, opts ExportOptions) (*Summary, error) {
	w := &summaryWriter{spec: spec, out: &Summary{Notice: summaryNotice, Template: summaryTemplate, Created: opts.Created,
		SpecSHA256: opts.SpecSHA256, RunRef: spec.RunRef, Gaps: []SummaryGap{}, NotHeld: []string{}}}
	for i := range spec.Inputs {
		if spec.Inputs[i].Kind == "dataset" {
			w.data = append(w.data, i)
		}
	}
	w.general()
	w.sources()
	w.processing()
	for _, s := range w.out.Sections {
		for _, f := range s.Fields {
			if f.Gap != "" {
				w.out.Gaps = append(w.out.Gaps, SummaryGap{f.ID, f.Gap})
			}
		}
	}
	tree, err := treeOf(spec)
	if err != nil {
		return nil, err
	}
	for i, key := range tree.keys {
		switch key {
		case "schema":
		case "inputs":
			for _, in := range tree.member(i).each() {
				for k, key := range in.keys {
					if key != "id" {
						w.notHeld(leavesOf(in.member(k)))
					}
				}
			}
		default:
			w.notHeld(leavesOf(tree.member(i)))
		}
	}
	return w.out, nil
}

// notHeld lists those of some pointers that no answer stands on.
func (w *summaryWriter) notHeld(leaves []string) {
	for _, leaf := range leaves {
		if !w.used(leaf) {
			w.out.NotHeld = append(w.out.NotHeld, leaf)
		}
	}
}

// summaryWriter fills a summary in, field by field.
type summaryWriter struct {
	spec *screening.Spec
	data []int // the inputs that are data
	out  *Summary
}

func (w *summaryWriter) section(number, title string) {
	w.out.Sections = append(w.out.Sections, SummarySection{Number: number, Title: title})
}

// field adds a field to the section that was begun last. A field without an
// answer always has a gap.
func (w *summaryWriter) field(name, asks, gap string, answer ...SummaryClaim) {
	s := &w.out.Sections[len(w.out.Sections)-1]
	f := SummaryField{ID: s.Number + "/" + name, Asks: asks, State: Provided, Answer: answer, Gap: gap}
	switch {
	case len(answer) == 0:
		f.State, f.Answer = NotProvided, []SummaryClaim{}
	case gap != "":
		f.State = PartlyProvided
	}
	s.Fields = append(s.Fields, f)
}

// used reports whether an answer stands on what a pointer names. Answers that
// stand on anything of an input name it.
func (w *summaryWriter) used(leaf string) bool {
	input, isName := strings.CutSuffix(leaf, "/name")
	if isName = isName && strings.Count(input, "/") == 2; isName {
		leaf = input
	}
	for _, s := range w.out.Sections {
		for _, f := range s.Fields {
			for _, c := range f.Answer {
				if slices.ContainsFunc(c.From, func(p string) bool {
					return leaf == p || strings.HasPrefix(leaf, p+"/") || isName && strings.HasPrefix(p, leaf+"/")
				}) {
					return true
				}
			}
		}
	}
	return false
}

const notInSpec = "a spec does not hold this; the provider fills it in"

func (w *summaryWriter) general() {
	w.section("1.1", "Provider")
	w.field("name", "Name and contact details of the provider", notInSpec)
	w.field("representative", "Name and contact details of the authorised representative", notInSpec)
	w.field("version", "Version and last update of the summary, links to earlier ones", notInSpec)

	w.section("1.2", "Model")
	w.field("name", "Versioned names of the model", "this is the name of the training run; give the names under which the model is published",
		SummaryClaim{said(w.spec.RunRef), []string{"/run_ref"}})
	gap := "the spec names no base model"
	var models []SummaryClaim
	if in := inputByID(w.spec, w.spec.BaseModel); in != nil {
		i := slices.IndexFunc(w.spec.Inputs, func(other screening.Input) bool { return other.ID == in.ID })
		claim := w.named(i)
		claim.From = append(claim.From, "/base_model", at(i, "kind"))
		models, gap = append(models, claim), "give the link to the summary of each"
	}
	w.field("dependencies", "Models that it was made from, with links to their summaries", gap, models...)
	w.field("market_date", "Date of placing on the Union market", notInSpec)

	w.section("1.3", "Modalities, size and characteristics of the data")
	for _, m := range summaryModalities {
		w.modality(m)
	}
	w.acquired()
	w.fromEach("languages", "Languages of the data", "languages", func(i int) (claims []SummaryClaim) {
		if s := w.spec.Inputs[i].Shape; s != nil {
			claims = w.listed(i, "shape/languages", s.Languages)
		}
		return claims
	})
	w.fromEach("characteristics", "Other characteristics: the places that the data is from", "places", func(i int) (claims []SummaryClaim) {
		if c := w.spec.Inputs[i].Collection; c != nil {
			claims = w.listed(i, "collection/geography", c.Geography)
		}
		return claims
	})
}

// summaryModality is a modality of the template, with the codes of a spec that
// belong to it and the sizes to choose from.
type summaryModality struct {
	name, title, bands string
	codes              []string
}

var summaryModalities = []summaryModality{
	{"text", "Text", "less than 1 billion, 1 billion to 10 trillion, or more than 10 trillion tokens", []string{"text", "code"}},
	{"image", "Image", "less than 1 million, 1 million to 1 billion, or more than 1 billion images", []string{"image"}},
	{"audio", "Audio", "less than 10,000, 10,000 to 1 million, or more than 1 million hours", []string{"audio"}},
	{"video", "Video", "less than 10,000, 10,000 to 1 million, or more than 1 million hours", []string{"video"}},
	{"other_modality", "Other", "say how it is measured", []string{"tabular", "time_series", "graph", "sensor", "three_d"}},
}

// modality writes the size and the content of the data of one modality.
func (w *summaryWriter) modality(m summaryModality) {
	var sizes, contents []SummaryClaim
	var silent []string // of which it is not stated what they are
	for _, i := range w.data {
		in := &w.spec.Inputs[i]
		if in.Shape == nil || len(w.listed(i, "shape/modalities", in.Shape.Modalities)) == 0 {
			silent = append(silent, shown(in))
			continue
		}
		var codes, from []string
		for k, code := range in.Shape.Modalities {
			if slices.Contains(m.codes, code) {
				codes, from = append(codes, code), append(from, at(i, "shape/modalities", k))
			}
		}
		if len(codes) == 0 {
			continue
		}
		size := SummaryClaim{shown(in) + ": " + strings.Join(codes, ", "), from}
		for _, s := range []struct{ key, word, text string }{{"size_raw", "size", in.Shape.SizeRaw}, {"size_band", "size band", in.Shape.SizeBand},
			{"records", "records", in.Shape.Records}} {
			if text := said(s.text); text != "" {
				size.Text += "; " + s.word + " " + text
				size.From = append(size.From, at(i, "shape", s.key))
			}
		}
		sizes = append(sizes, size)
		contents = append(contents, w.text(i, "description", in.Description)...)
	}
	var gaps []string
	if len(silent) > 0 {
		gaps = []string{"it is not stated which modalities are in: " + strings.Join(silent, ", ")}
	}
	content := gaps
	switch {
	case len(sizes) == 0:
		gaps = append([]string{"no data set states this modality; that there is none is not stated"}, gaps...)
		content = gaps
	case len(contents) < len(sizes):
		content = append([]string{"not every data set of this modality is described"}, content...)
		fallthrough
	default:
		gaps = append([]string{"choose the size of all together: " + m.bands}, gaps...)
	}
	w.field(m.name, m.title+": is it in the data, and how much", strings.Join(gaps, "; "), sizes...)
	w.field(m.name+"_content", m.title+": types of content", strings.Join(content, "; "), contents...)
}

// acquired writes the latest day on which data was collected or fetched.
func (w *summaryWriter) acquired() {
	var latest SummaryClaim
	var day, asWritten string
	var silent, unread []string
	for _, i := range w.data {
		in := &w.spec.Inputs[i]
		stated := false
		for _, d := range []struct{ key, text string }{{"collection/end", endOf(in.Collection)}, {"dates/retrieved", retrieved(in.Dates)}} {
			text := said(d.text)
			if text == "" {
				continue
			}
			stated = true
			this, ok := dayOf(text)
			if !ok {
				unread = append(unread, shown(in)+" ("+text+")")
				continue
			}
			// Of one month written with and without a day, the one with it says more.
			if this > day {
				day, asWritten = this, text
				latest = SummaryClaim{asWritten + ", of " + shown(in), []string{at(i, d.key)}}
			}
		}
		if !stated {
			silent = append(silent, shown(in))
		}
	}
	var gaps []string
	if len(silent) > 0 {
		gaps = append(gaps, "no date of collection for: "+strings.Join(silent, ", "))
	}
	if len(unread) > 0 {
		gaps = append(gaps, "dates that cannot be compared: "+strings.Join(unread, ", "))
	}
	if len(w.data) == 0 {
		gaps = append(gaps, noData)
	}
	var answer []SummaryClaim
	if day != "" {
		answer = []SummaryClaim{latest}
	}
	w.field("acquired", "Latest date of acquisition or collection of data", strings.Join(gaps, "; "), answer...)
}

const noData = "the spec names no data set"

// fromEach writes a field that every data set is to say something of.
func (w *summaryWriter) fromEach(name, asks, what string, of func(i int) []SummaryClaim) {
	gap, answer := w.each(w.data, what, of)
	if len(w.data) == 0 {
		gap = noData
	}
	w.field(name, asks, gap, answer...)
}

// listed makes one claim of a list of texts of an input; placeholders are none.
func (w *summaryWriter) listed(i int, key string, texts []string) []SummaryClaim {
	var words, from []string
	for k, text := range texts {
		if text = said(text); text != "" {
			words, from = append(words, text), append(from, at(i, key, k))
		}
	}
	if len(words) == 0 {
		return nil
	}
	return []SummaryClaim{{shown(&w.spec.Inputs[i]) + ": " + strings.Join(words, ", "), from}}
}

// named is an input with its version and addresses.
func (w *summaryWriter) named(i int) SummaryClaim {
	in := &w.spec.Inputs[i]
	c := SummaryClaim{Text: shown(in), From: []string{at(i, "id")}}
	for _, v := range []struct{ key, word, text string }{{"version", "version", in.Version}, {"revision", "revision", in.Revision}} {
		if text := said(v.text); text != "" {
			c.Text += ", " + v.word + " " + text
			c.From = append(c.From, at(i, v.key))
		}
	}
	for k, uri := range in.URIs {
		if text := said(uri); text != "" {
			c.Text += ", " + text
			c.From = append(c.From, at(i, "uris", k))
		}
	}
	return c
}

// at is the pointer to a part of an input.
func at(i int, path ...any) string {
	p := fmt.Sprintf("/inputs/%d", i)
	for _, part := range path {
		p += fmt.Sprintf("/%v", part)
	}
	return p
}

// said is a text on one line, nothing if it only stands for one that is to come.
func said(s string) string {
	if screening.IsPlaceholder(s) {
		return ""
	}
	return strings.Join(strings.Fields(s), " ")
}

// shown is what an input is called in a summary.
func shown(in *screening.Input) string {
	if name := said(in.Name); name != "" {
		return name
	}
	return in.ID
}

func endOf(c *screening.Collection) string {
	if c == nil {
		return ""
	}
	return c.End
}

func retrieved(d *screening.Dates) string {
	if d == nil {
		return ""
	}
	return d.Retrieved
}
