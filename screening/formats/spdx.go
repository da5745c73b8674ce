package formats

import (
	"slices"
	"strings"
)

// SPDX 3.0.1 in JSON-LD: a flat graph of elements that refer to each other by id.
// It is read as plain JSON with the names of the published context.
//
// https://spdx.github.io/spdx-spec/v3.0.1/model/AI/AI/ and /Dataset/Dataset/

func detectSPDX(s *source) int {
	root := s.docs[0]
	if s.card || !root.is(isMap) {
		return 0
	}
	for _, c := range root.get("@context").each() {
		if strings.Contains(c.words(), "spdx.org/rdf") {
			return certain
		}
	}
	if root.get("spdxVersion").given() || root.get("SPDXID").given() {
		return certain
	}
	for _, e := range root.get("@graph").each() {
		if e.get("spdxId").given() || spdxKinds[classOf(e)] != "" {
			return certain
		}
	}
	return 0
}

// classOf gives the class of an element without its profile, in lower case. A type
// can be an address, and a list.
func classOf(e value) string {
	for _, t := range e.any("type", "@type").each() {
		if class := property(t.words()); class != "" {
			return class
		}
	}
	return ""
}

// property gives a name without the prefix of its profile or its address, in lower case.
func property(key string) string {
	key = localName(key)
	return strings.ToLower(key[strings.LastIndexByte(key, '_')+1:])
}

// props gives the values of a property of an element, under whichever spelling.
func props(e value, name string) (all []value) {
	if e.kind != isMap {
		return nil
	}
	for i, key := range e.keys {
		key = key[strings.LastIndexAny(key, ":/#_")+1:]
		if len(key) == len(name) && strings.EqualFold(key, name) {
			if m := e.member(i); m.given() {
				all = append(all, m)
			}
		}
	}
	return all
}

// prop gives the first of props.
func prop(e value, name string) value {
	for _, v := range props(e, name) {
		return v
	}
	return noValue
}

// isKey reports whether an element's key is of one of the profiles that are read.
func isKey(key, profile string) bool {
	if n := len(profile); len(key) > n && (key[n] == '_' || key[n] == ':') {
		return strings.EqualFold(key[:n], profile)
	}
	return strings.Contains(key, "://") && strings.Contains(strings.ToLower(key), "/terms/"+profile+"/")
}

// kindOf tells what an element describes: by its class, or by keys that only that class has.
func (r *reader) kindOf(e value) string {
	if kind := spdxKinds[classOf(e)]; kind != "" || e.kind != isMap {
		return kind
	}
	for _, key := range e.keys {
		switch {
		case isKey(key, "dataset"):
			return "dataset"
		case isKey(key, "ai"):
			return "base_model"
		}
	}
	return ""
}

// spdxGraph finds elements by id.
type spdxGraph struct {
	r        *reader
	elements map[string]value
	records  map[string]int    // element id → index in Records
	licenses map[string]bool   // elements that a record's licence was read from
	within   map[string]string // element id → id of the record that contains it
}

func readSPDX(r *reader) error {
	root := r.source.docs[0]
	if v := root.get("spdxVersion"); v.given() {
		r.Version = v.words()
		return r.refuse(UnknownVersion, "the file is SPDX 2, which has no AI and data set profiles; convert it to SPDX 3.0.1")
	}
	if !root.get("@context").given() {
		return r.refuse(NotThisFormat, "the file has a graph and no @context, so its names mean nothing; give the SPDX 3.0.1 context")
	}
	elements := append(root.any("@graph").each(), root.any("element").each()...)
	if len(elements) == 0 && root.get("spdxId").given() {
		elements = []value{root}
	}
	g := spdxGraph{r, map[string]value{}, map[string]int{}, map[string]bool{}, map[string]string{}}
	if err := g.index(elements); err != nil {
		return err
	}
	var packages, relations, others []value
	for _, e := range elements {
		switch kind := r.kindOf(e); {
		case kind != "":
			rec := r.add(kind, e)
			packages = append(packages, e)
			if rec.ref = idOf(e); rec.ref != "" {
				g.records[rec.ref] = len(r.Records) - 1
			}
			g.element(rec, e)
		case strings.HasSuffix(classOf(e), "relationship"):
			relations = append(relations, e)
			others = append(others, e)
		default:
			others = append(others, e)
		}
	}
	if r.many {
		return nil // refused anyway
	}
	if len(r.Records) == 0 {
		return r.refuse(NoRecord, "the file describes no data set and no model")
	}
	for _, e := range relations {
		g.contents(e)
	}
	for _, e := range relations {
		g.relation(e)
	}
	others = slices.DeleteFunc(others, func(e value) bool { return g.licenses[idOf(e)] })
	for i := range r.Records {
		rec := &r.Records[i]
		r.sweep(rec, packages[i])
		r.conclusion(rec)
		if len(rec.License.Declared) == 0 && rec.License.Concluded == "" {
			r.find(Missing, "license", rec.at, "no licence is declared or concluded")
		}
	}
	r.sweepShared(others...)
	return nil
}

// index finds the elements by their ids, and refuses a graph of another kind.
func (g *spdxGraph) index(elements []value) error {
	r, classes := g.r, 0
	for _, e := range elements {
		for _, t := range e.any("type", "@type").each() {
			if class := t.words(); class != "" && (!strings.Contains(class, ":") || strings.Contains(class, "spdx")) {
				classes++
			}
		}
		if classOf(e) == "creationinfo" {
			r.Version = prop(e, "specversion").words()
		}
		if id := idOf(e); id != "" {
			if _, doubled := g.elements[id]; doubled {
				r.find(Contradiction, "graph", e.at, "has the id of another element")
				continue
			}
			g.elements[id] = e
		}
	}
	if classes == 0 {
		return r.refuse(NotThisFormat, "no element of the graph has a type that SPDX knows")
	}
	if r.Version != "" && !strings.HasPrefix(r.Version, "3.0") {
		return r.refuse(UnknownVersion, "the file is of an SPDX version other than 3.0")
	}
	return nil
}

func idOf(e value) string { return e.any("spdxId", "@id").words() }

// refs gives what a property of a relationship refers to, by id. An element that
// stands there itself gets an id of the file.
func (g *spdxGraph) refs(e value, name string) (all []reference) {
	for _, v := range props(e, name) {
		for _, item := range v.each() {
			ref := reference{item.words(), item.at}
			if item.kind == isMap {
				if ref.id = idOf(item); ref.id == "" {
					ref.id = "\x00" + item.at
				}
				if _, known := g.elements[ref.id]; !known && len(item.keys) > 1 {
					g.elements[ref.id] = item
				}
			}
			if ref.id == "" {
				g.r.find(Unreadable, "graph", item.at, "refers to nothing that can be read")
				continue
			}
			all = append(all, ref)
		}
	}
	return all
}

type reference struct{ id, at string }

// visible is an id as others may see it.
func visible(id string) string {
	if strings.HasPrefix(id, "\x00") {
		return ""
	}
	return id
}

var spdxKinds = map[string]string{"aipackage": "base_model", "datasetpackage": "dataset"}

// spdxKeys are the properties of the two profiles; what else is said to be of
// them could be a disclosure.
var spdxKeys = strings.Fields(`anonymizationmethodused confidentialitylevel datacollectionprocess datapreprocessing datasetavailability datasetnoise
	datasetsize datasettype datasetupdatemechanism hassensitivepersonalinformation intendeduse knownbias sensor
	autonomytype domain energyconsumption hyperparameter informationaboutapplication informationabouttraining limitation metric
	metricdecisionthreshold modeldatapreprocessing modelexplainability safetyriskassessment standardcompliance typeofmodel
	usesensitivepersonalinformation`)

var spdxRequired = map[string][]string{
	"dataset":    {"builtTime", "originatedBy", "releaseTime", "software_downloadLocation", "software_primaryPurpose"},
	"base_model": {"releaseTime", "suppliedBy", "software_downloadLocation", "software_packageVersion", "software_primaryPurpose"},
}

func (g *spdxGraph) element(rec *Record, e value) {
	r := g.r
	for _, key := range spdxRequired[rec.Kind] {
		if !prop(e, property(key)).given() {
			r.find(Missing, key, e.at, "is required by the profile and not given")
		}
	}
	if spdxKinds[classOf(e)] == "" {
		r.find(Malformed, "type", e.at, "is of another class and has keys of a "+strings.ReplaceAll(rec.Kind, "_", " ")+"; it is taken for one")
	}
	for i, key := range e.keys {
		if (isKey(key, "dataset") || isKey(key, "ai")) && !slices.Contains(spdxKeys, property(key)) && e.items[i].kind != isNull {
			r.find(Unreadable, "disclosures", e.member(i).at, "is no property of the profile it is said to be of; what it discloses was not read")
		}
	}
	for _, text := range []struct {
		name string
		to   *string
		at   string
	}{{"name", &rec.Name, "/name"}, {"packageversion", &rec.Input.Version, "/version"}, {"releasetime", &rec.Dates.Released, "/dates/released"},
		{"builttime", &rec.Dates.Created, "/dates/created"}, {"copyrighttext", &rec.License.Copyright, "/license/copyright"}} {
		for _, v := range props(e, text.name) {
			r.set(rec, text.to, text.at, v)
		}
	}
	for _, key := range []string{"description", "summary", "comment"} {
		if v := prop(e, key); v.given() && rec.Description == "" {
			r.set(rec, &rec.Description, "/description", v)
		}
	}
	for _, key := range []string{"downloadlocation", "packageurl", "homepage"} {
		for _, list := range props(e, key) {
			for _, v := range list.each() {
				r.uri(rec, v)
			}
		}
	}
	rec.identify(rec.Name, rec.ref)
	for _, list := range props(e, "originatedby") {
		for _, v := range list.each() {
			r.parties(rec, g.named(v), "creators")
		}
	}
	if v := firstOf(prop(e, "suppliedby")); v.given() {
		*rec.Publisher, rec.From["/publisher"] = r.party(g.named(v), "publisher"), v.at
	}
	var parts files
	for _, h := range prop(e, "verifiedusing").each() {
		good := r.digest(rec, localName(prop(h, "algorithm").words()), prop(h, "hashvalue"), "")
		parts.count(good, 1, h.at)
	}
	parts.settle(r, rec)
	switch rec.Kind {
	case "dataset":
		g.dataset(rec, e)
	case "base_model":
		g.yesNo(rec, props(e, "usesensitivepersonalinformation"), "sensitive_personal", "personal_data")
		for _, v := range props(e, "limitation") {
			r.prose(rec, v, "known_limits")
		}
		r.set(rec, &rec.Collection.Description, "/collection/description", prop(e, "informationabouttraining"))
		for _, risk := range props(e, "safetyriskassessment") {
			if s := strings.ToLower(localName(risk.words())); s != "low" && s != "medium" {
				r.find(Unresolved, "risk", risk.at, "assesses the safety risk as serious or high, or in a word that SPDX has not; look whether the run may build on it")
			}
		}
	}
}

// named gives the element that a reference stands for, or the reference.
func (g *spdxGraph) named(v value) value {
	id := v.words()
	if v.kind == isMap {
		id = idOf(v)
	}
	if e, ok := g.elements[id]; ok && prop(e, "name").given() {
		return e
	}
	return v
}

var spdxModalities = map[string]string{"audio": "audio", "image": "image", "text": "text", "video": "video", "graph": "graph", "sensor": "sensor",
	"timeseries": "time_series", "timestamp": "time_series", "numeric": "tabular", "categorical": "tabular", "structured": "tabular", "syntactic": "text"}

func (g *spdxGraph) dataset(rec *Record, e value) {
	r := g.r
	g.yesNo(rec, props(e, "hassensitivepersonalinformation"), "sensitive_personal", "personal_data")
	r.set(rec, &rec.Collection.Description, "/collection/description", prop(e, "datacollectionprocess"))
	r.list(rec, &rec.Collection.Methods, "/collection/methods", prop(e, "datapreprocessing"))
	r.set(rec, &rec.Shape.SizeRaw, "/shape/size_raw", prop(e, "datasetsize"))
	for _, words := range []struct{ name, tag string }{{"knownbias", "known_bias"}, {"datasetnoise", "known_limits"}, {"anonymizationmethodused", "deidentified"}} {
		for _, v := range props(e, words.name) {
			r.prose(rec, v, words.tag)
		}
	}
	for _, v := range prop(e, "datasettype").each() {
		m := spdxModalities[strings.ToLower(localName(v.words()))]
		if m == "" {
			m = "unknown"
		}
		rec.modality(m, v.at)
	}
	for _, v := range props(e, "datasetavailability") {
		switch code := localName(v.words()); code {
		case "clickthrough", "registration", "query":
			rec.disclose("gated_access", "present", "structured", code, v.at)
		case "directDownload":
			rec.disclose("gated_access", "absent", "structured", code, v.at)
		case "scrapingScript":
			rec.source("web_crawl", "given as a script that scrapes it", v.at)
		default:
			r.find(Unreadable, "gated_access", v.at, "is no code of SPDX")
			rec.disclose("gated_access", "unknown", "structured", "", v.at)
		}
	}
	for _, v := range props(e, "confidentialitylevel") {
		switch code := localName(v.words()); code {
		case "red", "amber", "green":
			rec.disclose("confidentiality", "present", "structured", code, v.at)
		case "clear":
			rec.disclose("confidentiality", "absent", "structured", code, v.at)
		default:
			r.find(Unreadable, "confidentiality", v.at, "is no code of SPDX")
			rec.disclose("confidentiality", "unknown", "structured", "", v.at)
		}
	}
}

// yesNo reads SPDX's answer to "does it hold sensitive personal information". Yes
// is also yes to personal data; no says nothing of personal data that is not
// sensitive.
func (g *spdxGraph) yesNo(rec *Record, answers []value, tag, implied string) {
	for _, v := range answers {
		switch localName(v.words()) {
		case "yes":
			rec.disclose(tag, "present", "structured", "", v.at)
			rec.disclose(implied, "present", "structured", "", v.at)
		case "no":
			rec.disclose(tag, "absent", "structured", "", v.at)
		case "noAssertion":
			rec.disclose(tag, "unknown", "structured", "", v.at)
		default:
			g.r.find(Unreadable, tag, v.at, "is no code of SPDX")
			rec.disclose(tag, "unknown", "structured", "", v.at)
		}
	}
}
