package formats

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/screening"
)

// Croissant is JSON-LD, of which this reads what real files use: keys are
// expanded with the context that stands in the file, else with the prefixes
// everybody uses, and compared by their local name. A context that is elsewhere
// is not fetched.
//
// https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html and -rai-spec.html

func detectCroissant(s *source) int {
	root := s.docs[0]
	if s.card || !root.is(isMap) || root.get("@graph").given() {
		return 0
	}
	o := linked{root, readTerms(root)}
	if !o.isA("dataset") {
		return 0
	}
	if len(o.all("conformsto", "distribution", "recordset", "recordsets")) > 0 {
		return certain
	}
	return likely
}

// croissantKeys are the keys of a data set that are read or known to say nothing
// that a record needs.
var croissantKeys = strings.Fields(`conformsto description license name url creator creators datepublished keywords publisher version
	datecreated datemodified sameas sdlicense inlanguage distribution recordset recordsets islivedataset citeas citation sdversion identifier
	alternatename usageinfo copyrightnotice copyrightholder copyrightyear spatialcoverage temporalcoverage isbasedon wasderivedfrom
	wasgeneratedby wasattributedto wasassociatedwith isassociatedwith funder contributor contributors maintainer author includedindatacatalog
	isaccessibleforfree conditionsofaccess contentsize size image thumbnailurl genre about subjectof  ispartof haspart headline
	editor provider sourceorganization datasettimeinterval measurementtechnique variablemeasured equivalentproperty locatedat atlocation label
	credittext mainentityofpage sdpublisher sddatepublished abstract`)

// raiKeys are the terms of the RAI vocabulary with the ways they are spelled, and
// the tags that a reviewer looks there for.
var raiKeys = map[string][]string{
	"personalsensitiveinformation": {"personal_data", "sensitive_personal"},
	"databiases":                   {"known_bias"}, "datalimitations": {"known_limits"}, "datasocialimpact": {"known_limits"},
	"datamanipulationprotocol": {"deidentified"}, "annotatordemographics": {"human_subjects"},
}

// raiProse are RAI terms that go into the description of how the data was made.
var raiProse = strings.Fields(`datacollection datacollectionmissingdata datacollectionraw datacollectionrawdata dataimputationprotocol
	datapreprocessingprotocol dataannotationprotocol dataannotationplatform dataannotationanalysis datareleasemaintenanceplan
	datareleasemaintenance annotationsperitem machineannotationtools datausecases usecases`)

var collectionTypes = map[string]string{
	"web scraping": "web_crawl", "web crawling": "web_crawl", "web api": "web_crawl", "surveys": "human_authored", "interviews": "human_authored",
	"focus group": "human_authored", "focus groups": "human_authored", "crowdsourcing": "human_authored", "manual human curator": "human_authored",
	"direct measurement": "sensor", "physical data collection": "sensor", "synthetic": "synthetic", "synthetic data": "synthetic",
}

func readCroissant(r *reader) error {
	o := linked{r.source.docs[0], readTerms(r.source.docs[0])}
	rec := r.add("dataset", o.value)
	r.Version = croissantVersion(r, o)
	r.croissantKeys(o)

	for _, key := range []struct {
		name string
		to   *string
		at   string
	}{{"name", &rec.Name, "/name"}, {"description", &rec.Description, "/description"}, {"version", &rec.Input.Version, "/version"},
		{"datepublished", &rec.Dates.Issued, "/dates/issued"}, {"datecreated", &rec.Dates.Created, "/dates/created"},
		{"datemodified", &rec.Dates.Modified, "/dates/modified"}, {"copyrightnotice", &rec.License.Copyright, "/license/copyright"}} {
		for _, v := range o.all(key.name) {
			r.set(rec, key.to, key.at, v)
		}
	}
	for _, key := range []string{"license", "name", "description", "url", "creator", "datePublished"} {
		if !o.any(strings.ToLower(key)).given() && !(key == "creator" && o.any("creators").given()) {
			r.find(Missing, key, "", "is required by Croissant and not given")
		}
	}
	for _, v := range o.all("url", "sameas", "identifier") {
		for _, item := range v.each() {
			if item.kind == isMap {
				item = item.any("@id", "url", "value")
			}
			r.uri(rec, item)
		}
	}
	for _, v := range o.all("alternatename") {
		for _, item := range v.each() {
			rec.identify(item.words())
		}
	}
	rec.identify(rec.Name)
	for _, v := range o.all("license") { // not sdLicense, which is of the description itself
		r.license(rec, v, "")
	}
	for _, v := range o.all("creator", "creators", "author") {
		r.parties(rec, v, "creators")
	}
	if v := o.any("publisher"); v.given() {
		*rec.Publisher = r.party(firstOf(v), "publisher")
		rec.From["/publisher"] = v.at
	}
	r.list(rec, &rec.Shape.Languages, "/shape/languages", o.any("inlanguage"))
	r.set(rec, &rec.Shape.SizeRaw, "/shape/size_raw", o.any("contentsize", "size"))
	for _, v := range o.all("spatialcoverage") {
		r.list(rec, &rec.Collection.Geography, "/collection/geography", placeNames(v))
	}
	for _, v := range o.all("temporalcoverage", "datacollectiontimeframe", "datacollectiontimeframestart", "datacollectiontimeframeend") {
		r.interval(rec, v, o.t.expand(lastKey(v.at)).name)
	}
	for _, v := range o.all("keywords") {
		for _, item := range v.each() {
			if item.kind == isMap {
				item = item.any("@value", "name", "sc:name")
			}
			words := item.words()
			if len(words) > maxText {
				r.find(Unreadable, "disclosures", item.at, "is too long for keywords and was not read")
				continue
			}
			for s := range strings.SplitSeq(words, ",") {
				r.keyword(rec, value{&node{kind: isText, text: strings.TrimSpace(s)}, item.at})
			}
		}
	}
	for _, v := range o.all("isaccessibleforfree") {
		if strings.EqualFold(r.text(v, "gated_access"), "false") {
			rec.disclose("gated_access", "present", "inferred", "is not accessible for free", v.at)
		}
	}
	for _, v := range o.all("usageinfo", "conditionsofaccess") {
		r.usage(rec, v)
	}
	r.rai(rec, o)
	for _, v := range o.all("wasderivedfrom", "isbasedon") {
		r.derived(rec, v, o.t)
	}
	r.activities(rec, o)
	r.distribution(rec, o)
	r.parts(rec, o)
	r.sweep(rec, o.value)
	return nil
}

func lastKey(pointer string) string {
	key := pointer[strings.LastIndexByte(pointer, '/')+1:]
	return strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
}

func firstOf(v value) value {
	if all := v.each(); len(all) > 0 {
		return all[0]
	}
	return v
}

func croissantVersion(r *reader, o linked) string {
	marks := o.all("conformsto")
	for _, v := range marks {
		for _, item := range v.each() {
			s := item.words()
			if item.kind == isMap {
				s = item.get("@id").words()
			}
			if _, version, ok := strings.Cut(s, "mlcommons.org/croissant/"); ok && version != "" && version[0] != 'R' {
				return version
			}
		}
	}
	r.find(Missing, "conformsTo", "", "does not say to which version of Croissant it conforms")
	for _, item := range o.get("@context").each() {
		if strings.Contains(item.get("ml").words(), "mlcommons.org/schema") {
			return "0.8"
		}
	}
	return ""
}

// croissantKeys reports keys that nobody knows. One of the RAI or PROV
// vocabulary could be a disclosure, so it stays open.
func (r *reader) croissantKeys(o linked) {
	for i, key := range o.keys {
		if strings.HasPrefix(key, "@") || o.items[i].kind == isNull {
			continue
		}
		x := o.t.expand(key)
		_, isTag := raiKeys[x.name]
		known := isTag || slices.Contains(croissantKeys, x.name) || slices.Contains(raiProse, x.name) ||
			slices.Contains([]string{"datacollectiontype", "datacollectiontimeframe", "datacollectiontimeframestart", "datacollectiontimeframeend", "hassyntheticdata"}, x.name)
		switch {
		case known:
		case x.space == "rai" || x.space == "prov":
			r.find(Unreadable, "disclosures", o.member(i).at, "is no term of the vocabulary it is said to be of; what it discloses was not read")
		default:
			r.find(UnknownKey, "", o.member(i).at, "is no key of Croissant")
		}
	}
}

func placeNames(v value) value {
	out := node{kind: isList}
	for _, item := range v.each() {
		if item.kind == isMap {
			item = item.any("name", "@id", "address")
		}
		if s, ok := item.scalar(); ok {
			out.items = append(out.items, node{kind: isText, text: s})
		}
	}
	return value{&out, v.at}
}

// interval reads a time or a span: "a/b", two of them, or one open end.
func (r *reader) interval(rec *Record, v value, name string) {
	var ends []string
	for _, item := range v.each() {
		s := r.text(item, "collection")
		if from, to, ok := strings.Cut(s, "/"); ok && from != "" {
			ends = append(ends, from, to)
		} else {
			ends = append(ends, s)
		}
	}
	if len(ends) == 0 {
		return
	}
	if !strings.HasSuffix(name, "end") && rec.Collection.Start == "" {
		rec.Collection.Start, rec.From["/collection/start"] = ends[0], v.at
	}
	if last := ends[len(ends)-1]; (len(ends) > 1 || strings.HasSuffix(name, "end")) && last != ".." && rec.Collection.End == "" {
		rec.Collection.End, rec.From["/collection/end"] = last, v.at
	}
}

// duo are the codes of the Data Use Ontology that restrict use.
var duo = map[string]string{
	"0000006": "research_only", "0000007": "research_only", "0000011": "research_only", "0000012": "research_only", "0000015": "research_only",
	"0000016": "research_only", "0000018": "nc", "0000022": "geo", "0000042": "research_only", "0000045": "nc", "0000046": "nc",
	"0000004": "", "0000019": "", "0000020": "", "0000021": "", "0000026": "", "0000029": "",
}

var duoCode = regexp.MustCompile(`(?i)DUO[_:](\d{7})`)

// usage reads sc:usageInfo: Data Use Ontology codes are understood; anything
// else (an ODRL offer, an address, words) leaves the restrictions open.
func (r *reader) usage(rec *Record, v value) {
	r.take(v)
	for _, item := range v.each() {
		text := item.words()
		if item.kind == isMap {
			text = item.any("@id").words() + " " + item.any("url").words() + " " + item.any("identifier").words()
		}
		codes := duoCode.FindAllStringSubmatch(text, -1)
		understood := len(codes) > 0 && len(item.items) <= 3
		for _, code := range codes {
			restriction, known := duo[code[1]]
			if known && restriction != "" {
				rec.restrict(restriction, item.at)
			}
			understood = understood && known
		}
		if !understood {
			rec.restrict("unknown", item.at)
			r.find(Restriction, "license", item.at, "states terms of use that are not read; read them and state them under license.restrictions")
		}
	}
}

// keyword reads one of the words that describe a data set. Exports of the Hub give
// its tags there.
func (r *reader) keyword(rec *Record, item value) {
	if s := item.words(); strings.HasPrefix(strings.ToLower(s), "license:") {
		r.license(rec, value{&node{kind: isText, text: strings.TrimSpace(s[len("license:"):])}, item.at}, "")
		return
	}
	r.topic(rec, item, "keyword")
}

// rai reads what the RAI vocabulary has. All of it is text but one yes or no.
func (r *reader) rai(rec *Record, o linked) {
	for i, key := range o.keys {
		if v := o.member(i); v.given() {
			r.raiTerm(rec, o.t.expand(key).name, v)
		}
	}
}

func (r *reader) raiTerm(rec *Record, name string, v value) {
	switch tags := raiKeys[name]; {
	case tags != nil:
		r.prose(rec, v, tags...)
	case name == "datacollectiontype":
		for _, item := range flatten(v) {
			s := r.text(item, "sources")
			kind, ok := collectionTypes[strings.ToLower(s)]
			if !ok {
				kind = "unknown"
			}
			rec.source(kind, s, item.at)
		}
		r.list(rec, &rec.Collection.Methods, "/collection/methods", v)
	case name == "datacollection":
		r.set(rec, &rec.Collection.Description, "/collection/description", v)
	case name == "hassyntheticdata":
		switch {
		case v.kind == isBool && v.text == "true":
			rec.disclose("synthetic", "present", "structured", "", v.at)
		case v.kind == isBool:
			rec.disclose("synthetic", "absent", "structured", "", v.at)
		default:
			r.find(Unreadable, "synthetic", v.at, "is neither true nor false")
			r.prose(rec, v, "synthetic")
		}
	case slices.Contains(raiProse, name):
		r.list(rec, &rec.Collection.Methods, "/collection/methods", v)
	}
}

// source adds where data came from.
func (rec *Record) source(kind, detail, at string) {
	detail, _ = clip(detail, maxProse)
	s := screening.Source{Kind: kind, Detail: detail}
	full := len(rec.Sources) >= maxList && slices.ContainsFunc(rec.Sources, func(o screening.Source) bool { return o.Kind == kind })
	if !full && !slices.Contains(rec.Sources, s) {
		rec.From["/sources/"+strconv.Itoa(len(rec.Sources))] = at
		rec.Sources = append(rec.Sources, s)
	}
}
