package formats

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/screening"
)

// sourceClass is one of the template's kinds of sources.
type sourceClass struct {
	number, title string
	name, asks    string // of the question that opens the section
	kinds         []string
	beside        []string // kinds that leave open whether the data is of this class
}

var (
	publicData   = sourceClass{"2.1", "Publicly available datasets", "used", "Were publicly available datasets used", []string{"public_dataset"}, nil}
	licensedData = sourceClass{"2.2.1", "Private datasets licensed by rightsholders", "used", "Are there commercial licence agreements with rightsholders or their representatives", []string{"licensed"}, nil}
	thirdParty   = sourceClass{"2.2.2", "Private datasets of other third parties", "used", "Were private datasets of other third parties used", []string{"private_third_party"}, nil}
	crawledData  = sourceClass{"2.3", "Data crawled and scraped from online sources", "used", "Did the provider crawl, or somebody on its behalf", []string{"web_crawl"},
		[]string{"public_dataset", "licensed", "private_third_party"}}
	interactions = sourceClass{"2.4", "User data", "interactions", "Was data of interactions with the provider's models used", []string{"user_interactions"}, nil}
	services     = sourceClass{"2.4", "User data", "services", "Was data of users of the provider's other services used", []string{"user_other_services"}, nil}
	otherData    = sourceClass{"2.6", "Other sources", "used", "Was data of other sources used", []string{"sensor", "human_authored"}, nil}
)

// of gives the inputs that state a source of a class, with the claim that they
// do, and those of which it is open.
func (w *summaryWriter) of(c sourceClass) (inputs []int, claims []SummaryClaim, open []string) {
	for _, i := range w.data {
		in := &w.spec.Inputs[i]
		claim := SummaryClaim{Text: "Yes: " + shown(in)}
		beside := slices.ContainsFunc(in.Sources, func(s screening.Source) bool { return slices.Contains(c.beside, s.Kind) })
		for k, s := range in.Sources {
			if !slices.Contains(c.kinds, s.Kind) {
				continue
			}
			claim.From = append(claim.From, at(i, "sources", k))
			if c.number == otherData.number {
				claim.Text += ", " + s.Kind
			}
			if text := said(s.Detail); text != "" {
				claim.Text += " (" + text + ")"
			}
		}
		switch {
		case len(claim.From) == 0:
		case beside:
			open = append(open, shown(in))
		default:
			inputs, claims = append(inputs, i), append(claims, claim)
		}
	}
	return inputs, claims, open
}

// question writes the field that opens a section and gives the inputs that
// answer it with yes.
func (w *summaryWriter) question(c sourceClass) []int {
	inputs, claims, open := w.of(c)
	gap := ""
	switch {
	case len(open) > 0:
		gap = "crawled by somebody, but also of another kind of source; say who crawled: " + strings.Join(open, ", ")
	case len(inputs) == 0:
		gap = "no data set names such a source; that there is none is not stated"
	}
	w.field(c.name, c.asks, gap, claims...)
	return inputs
}

const ifYes = "asked for if the answer above is yes"

// then writes a field that is only asked for where inputs answered the question.
func (w *summaryWriter) then(inputs []int, name, asks, gap string, answer ...SummaryClaim) {
	if len(inputs) == 0 {
		w.field(name, asks, ifYes)
		return
	}
	w.field(name, asks, gap, answer...)
}

// modalities writes which modalities inputs have.
func (w *summaryWriter) modalities(inputs []int) {
	var answer []SummaryClaim
	var silent []string
	for _, i := range inputs {
		var claims []SummaryClaim
		if s := w.spec.Inputs[i].Shape; s != nil {
			claims = w.listed(i, "shape/modalities", s.Modalities)
		}
		if len(claims) == 0 {
			silent = append(silent, shown(&w.spec.Inputs[i]))
		}
		answer = append(answer, claims...)
	}
	gap := ""
	if len(silent) > 0 {
		gap = "modalities not stated for: " + strings.Join(silent, ", ")
	}
	w.then(inputs, "modalities", "Modalities of the content", gap, answer...)
}

// each gives the claims about inputs, and as a gap those of which there are none.
func (w *summaryWriter) each(inputs []int, what string, of func(i int) []SummaryClaim) (gap string, answer []SummaryClaim) {
	var silent []string
	for _, i := range inputs {
		claims := of(i)
		if len(claims) == 0 {
			silent = append(silent, shown(&w.spec.Inputs[i]))
		}
		answer = append(answer, claims...)
	}
	if len(silent) > 0 {
		gap = what + " not stated for: " + strings.Join(silent, ", ")
	}
	return gap, answer
}

func (w *summaryWriter) names(inputs []int) (claims []SummaryClaim) {
	for _, i := range inputs {
		claims = append(claims, w.named(i))
	}
	return claims
}

// text makes a claim of one text of an input, or none.
func (w *summaryWriter) text(i int, key, text string) []SummaryClaim {
	if text = said(text); text == "" {
		return nil
	}
	return []SummaryClaim{{shown(&w.spec.Inputs[i]) + ": " + text, []string{at(i, key)}}}
}

func (w *summaryWriter) described(inputs []int) (gap string, answer []SummaryClaim) {
	return w.each(inputs, "description", func(i int) []SummaryClaim { return w.text(i, "description", w.spec.Inputs[i].Description) })
}

func (w *summaryWriter) sources() {
	w.section(publicData.number, publicData.title)
	public := w.question(publicData)
	w.modalities(public)
	w.then(public, "list", "Large publicly available datasets, with links", "these are all that the spec names; say which are large by the template's share of the modality", w.names(public)...)
	w.then(public, "others", "Description of those that are not listed", "say what applies to those that are not large")

	w.section(licensedData.number, licensedData.title)
	licensed := w.question(licensedData)
	w.modalities(licensed)

	w.section(thirdParty.number, thirdParty.title)
	private := w.question(thirdParty)
	w.modalities(private)
	w.then(private, "list", "Those that are publicly known, with links", "these are all that the spec names; say which are publicly known", w.names(private)...)
	gap, answer := w.described(private)
	w.then(private, "others", "Description of those that are not publicly known", gap, answer...)

	w.section(crawledData.number, crawledData.title)
	w.crawled(w.question(crawledData))

	w.section(interactions.number, interactions.title)
	users := append(w.question(interactions), w.question(services)...)
	slices.Sort(users)
	users = slices.Compact(users)
	gap, answer = w.described(users)
	w.then(users, "services_used", "The services and products that the data is from", gap, answer...)
	w.modalities(users)

	w.section("2.5", "Synthetic data")
	w.synthetic()

	w.section(otherData.number, otherData.title)
	other := w.question(otherData)
	gap, answer = w.described(other)
	w.then(other, "description", "Description of these sources and their data", gap, answer...)
	w.placed()
}

// placed tells of which data it is not stated where it is from: that makes every
// list above one that may lack something.
func (w *summaryWriter) placed() {
	var open []string
	for _, i := range w.data {
		in := &w.spec.Inputs[i]
		if len(in.Sources) == 0 || slices.ContainsFunc(in.Sources, func(s screening.Source) bool { return s.Kind == "unknown" }) {
			open = append(open, shown(in))
		}
	}
	gap, answer := "", []SummaryClaim{}
	switch {
	case len(w.data) == 0:
		gap = noData
	case len(open) > 0:
		gap = "where the data is from is not stated, so that the lists above may lack it: " + strings.Join(open, ", ")
	default:
		answer = []SummaryClaim{{Text: "None: every data set of the spec names its sources."}}
		for _, i := range w.data {
			answer[0].From = append(answer[0].From, at(i, "sources"))
		}
	}
	w.field("open", "Data whose source is not known", gap, answer...)
}

func (w *summaryWriter) crawled(inputs []int) {
	collection := func(of func(i int, c *screening.Collection) []SummaryClaim) func(i int) []SummaryClaim {
		return func(i int) []SummaryClaim {
			if c := w.spec.Inputs[i].Collection; c != nil {
				return of(i, c)
			}
			return nil
		}
	}
	gap, answer := w.each(inputs, "crawler", collection(func(i int, c *screening.Collection) []SummaryClaim { return w.text(i, "collection/crawler", c.Crawler) }))
	w.then(inputs, "crawlers", "Names of the crawlers", gap, answer...)
	w.then(inputs, "purposes", "Purposes of the crawlers", notInSpec)
	w.then(inputs, "behaviour", "Behaviour of the crawlers: robots.txt, paywalls, captchas", notInSpec)
	gap, answer = w.each(inputs, "first day", collection(func(i int, c *screening.Collection) []SummaryClaim { return w.text(i, "collection/start", c.Start) }))
	last, ends := w.each(inputs, "last day", collection(func(i int, c *screening.Collection) []SummaryClaim { return w.text(i, "collection/end", c.End) }))
	gap, answer = strings.TrimPrefix(strings.TrimSuffix(gap+"; "+last, "; "), "; "), append(answer, ends...)
	w.then(inputs, "period", "Period of the collection, first and last day", gap, answer...)
	gap, answer = w.each(inputs, "description", func(i int) (claims []SummaryClaim) {
		in := &w.spec.Inputs[i]
		claims = w.text(i, "description", in.Description)
		if in.Collection != nil {
			claims = append(claims, w.text(i, "collection/description", in.Collection.Description)...)
		}
		return claims
	})
	w.then(inputs, "content", "Types of content and of sites", gap, answer...)
	w.modalities(inputs)
	w.then(inputs, "domains", "The most relevant domains", "a spec holds no list of domains; the template says how many are to be named")
}

// synthetic writes what models made of the data: it is so where a data set says
// it by its source, by its lineage or by a coded tag, or where there is a teacher.
func (w *summaryWriter) synthetic() {
	var inputs []int
	var claims, models []SummaryClaim
	var unnamed []string
	absent := len(w.data) > 0
	for _, i := range w.data {
		in := &w.spec.Inputs[i]
		claim := SummaryClaim{Text: "Yes: " + shown(in)}
		for k, s := range in.Sources {
			if s.Kind == "synthetic" {
				claim.From = append(claim.From, at(i, "sources", k))
				if text := said(s.Detail); text != "" {
					claim.Text += " (" + text + ")"
				}
			}
		}
		for k, d := range in.Disclosures {
			if isSynthetic(d, "present") {
				claim.From = append(claim.From, at(i, "disclosures", k))
			}
		}
		named := false
		if l := in.Lineage; l != nil {
			for k, ref := range l.GeneratedByModels {
				from := at(i, "lineage/generated_by_models", k)
				claim.From = append(claim.From, from)
				if model := w.referred(ref, from); model.Text != "" {
					models, named = append(models, model), true
				}
			}
		}
		if len(claim.From) == 0 {
			absent = absent && w.saysAbsent(in, "synthetic") && w.saysAbsent(in, "model_generated")
			continue
		}
		inputs, claims = append(inputs, i), append(claims, claim)
		if !named {
			unnamed = append(unnamed, shown(in))
		}
	}
	for i := range w.spec.Inputs {
		if in := &w.spec.Inputs[i]; in.Kind == "teacher" {
			c := w.named(i)
			models = append(models, c)
			claims = append(claims, SummaryClaim{"Yes: output of the teacher " + shown(in), []string{at(i, "kind")}})
			inputs = append(inputs, i)
		}
	}
	for k, d := range w.spec.Disclosures {
		if isSynthetic(d, "present") {
			claims = append(claims, SummaryClaim{"Yes: stated for the whole run", []string{"/disclosures/" + strconv.Itoa(k)}})
		}
	}
	gap := ""
	switch {
	case len(claims) > 0:
	case absent:
		claims = []SummaryClaim{{"No: every data set states that it holds none", w.absences()}}
	default:
		gap = "no data set says that models made it, and not every one says that none did"
	}
	w.field("used", "Was data used that the provider's or other models made for it", gap, claims...)
	if len(claims) > 0 && len(inputs) == 0 && !absent { // stated for the run alone
		w.field("modalities", "Modalities of the content", "stated for the whole run, not for a data set")
		w.field("models", "Models that made it, with links", "stated for the whole run, not for a data set")
		return
	}
	data := slices.DeleteFunc(slices.Clone(inputs), func(i int) bool { return w.spec.Inputs[i].Kind != "dataset" })
	if len(data) == 0 && len(inputs) > 0 {
		w.field("modalities", "Modalities of the content", "the data that the teacher makes is no input of the spec")
	} else {
		w.modalities(data)
	}
	gap = "say which of them are general-purpose models on the Union market"
	if len(unnamed) > 0 {
		gap += "; models not named for: " + strings.Join(unnamed, ", ")
	}
	w.then(inputs, "models", "Models that made it, with links", gap, models...)
}

// referred is a model that a reference names: an input, or what it says itself.
func (w *summaryWriter) referred(ref screening.LineageRef, from string) SummaryClaim {
	for i := range w.spec.Inputs {
		if w.spec.Inputs[i].ID == ref.Ref {
			c := w.named(i)
			c.From = append(c.From, from)
			return c
		}
	}
	words := slices.DeleteFunc([]string{said(ref.Label), said(ref.Ref)}, func(s string) bool { return s == "" })
	return SummaryClaim{strings.Join(words, ", "), []string{from}}
}

func isSynthetic(d screening.Disclosure, state string) bool {
	return (d.Tag == "synthetic" || d.Tag == "model_generated") && d.Basis == "structured" && d.State == state
}

// saysAbsent reports whether it is stated in a coded way that something is not
// there, of the whole of an input, and nothing else is said of it.
func (w *summaryWriter) saysAbsent(in *screening.Input, tag string) bool {
	said := false
	for _, d := range slices.Concat(in.Disclosures, w.spec.Disclosures) {
		switch {
		case d.Tag != tag || d.State == "not_assessed":
		case d.State != "absent":
			return false
		case d.Basis == "structured" && d.Scope == "":
			said = true
		}
	}
	return said
}

// absences points to the statements that there is no synthetic data.
func (w *summaryWriter) absences() (from []string) {
	for _, i := range w.data {
		for k, d := range w.spec.Inputs[i].Disclosures {
			if isSynthetic(d, "absent") {
				from = append(from, at(i, "disclosures", k))
			}
		}
	}
	for k, d := range w.spec.Disclosures {
		if isSynthetic(d, "absent") {
			from = append(from, "/disclosures/"+strconv.Itoa(k))
		}
	}
	return from
}

func (w *summaryWriter) processing() {
	w.section("3.1", "Respect of reservations of rights from text and data mining")
	w.field("code_of_practice", "Has the provider signed the Code of Practice", notInSpec)
	reservation := map[string]string{"reserved": "rights are reserved", "not_reserved": "no reservation was found", "unknown": "not known whether rights are reserved",
		"present": "rights are reserved", "absent": "no reservation was found"}
	var found []SummaryClaim
	for _, i := range w.data {
		in := &w.spec.Inputs[i]
		if text := reservation[in.License.TDM]; text != "" {
			found = append(found, SummaryClaim{shown(in) + ": " + text, []string{at(i, "license/tdm")}})
		}
	}
	w.eachDisclosure("tdm_reserved", func(who, pointer string, d screening.Disclosure) {
		if text := reservation[d.State]; d.Basis == "structured" && text != "" {
			found = append(found, SummaryClaim{who + ": " + text, []string{pointer}})
		}
	})
	w.field("measures", "Measures before and during collection to respect reservations", "the measures are not in a spec; this is what it states of reservations, if anything", found...)

	w.section("3.2", "Removal of illegal content")
	w.field("measures", "Measures to avoid or remove illegal content", notInSpec)

	w.section("3.3", "Other information")
	var other []SummaryClaim
	w.eachDisclosure("deidentified", func(who, pointer string, d screening.Disclosure) {
		text := ""
		if d.Basis == "structured" {
			text = map[string]string{"present": "identifying details were removed", "absent": "identifying details were not removed"}[d.State]
		}
		if detail := said(d.Detail); detail != "" {
			text = strings.TrimPrefix(text+"; "+detail, "; ")
		}
		if text != "" {
			other = append(other, SummaryClaim{who + ": " + text, []string{pointer}})
		}
	})
	w.field("processing", "Other relevant processing (optional)", "the spec may not name all of it", other...)
}

// eachDisclosure goes through what is disclosed of a tag, of each data set and of
// the whole run.
func (w *summaryWriter) eachDisclosure(tag string, do func(who, pointer string, d screening.Disclosure)) {
	for _, i := range w.data {
		for k, d := range w.spec.Inputs[i].Disclosures {
			if d.Tag == tag {
				do(shown(&w.spec.Inputs[i]), at(i, "disclosures", k), d)
			}
		}
	}
	for k, d := range w.spec.Disclosures {
		if d.Tag == tag {
			do("The whole run", "/disclosures/"+strconv.Itoa(k), d)
		}
	}
}

// dayOf reads a date as written by its source, as far as it can be compared:
// 2025, 2025-08, 2025-08-31, or the last with a time.
func dayOf(s string) (string, bool) {
	for _, layout := range []string{"2006", "2006-01", time.DateOnly, time.RFC3339} {
		if _, err := time.Parse(layout, s); err == nil {
			return s[:min(len(s), len(time.DateOnly))], true
		}
	}
	return "", false
}
