package formats

import (
	"slices"
	"strings"

	"weir/screening"
)

// Data Provenance Standard 1.0.0 of the Data & Trust Alliance, and the OASIS draft
// that renames some of it. Codes are compared without case; the draft's have no
// "ai-" before them.
//
// https://dataandtrustalliance.org/work/data-provenance-standards and
// https://github.com/oasis-tcs/dps

func detectDPS(s *source) int {
	root := dpsRoot(s.docs[0])
	if s.card || root.kind != isMap {
		return 0
	}
	groups := 0
	for _, name := range []string{"source", "provenance", "use"} {
		if root.any(name).kind == isMap {
			groups++
		}
	}
	if groups < 2 {
		return 0
	}
	if root.any("provenance").any("generation-method", "origin-geography").given() || root.any("use").any("intended-purpose", "classification").given() {
		return certain
	}
	return likely
}

// dpsRoot looks into a wrapper with a single member, which tools put around.
func dpsRoot(v value) value {
	if v.kind == isMap && len(v.keys) == 1 && v.items[0].kind == isMap {
		return v.member(0)
	}
	return v
}

// dpsMethods are the codes of how data was made, as the kinds of source they come
// to. A code that is none of them is of unknown origin.
var dpsMethods = []struct{ part, kind string }{
	{"web-scraping", "web_crawl"}, {"crawling", "web_crawl"}, {"primary-user-source", "user_interactions"}, {"user-generated", "user_other_services"},
	{"social", "user_other_services"}, {"machine-generated", "synthetic"}, {"synthetic", "synthetic"}, {"sensor-and-iot", "sensor"}, {"sensor", "sensor"},
	{"data-feed", "private_third_party"}, {"feeds", "private_third_party"}, {"licensed", "licensed"}, {"human", "human_authored"}, {"manual", "human_authored"},
	{"survey", "human_authored"},
}

// dpsRegulations are the codes of confidential data. "evaluated" says that somebody
// looked, not what was found.
var dpsRegulations = map[string][]string{"pi": {"personal_data"}, "pii": {"personal_data"}, "spi": {"personal_data", "sensitive_personal"},
	"phi": {"personal_data", "health"}, "pci": {"confidentiality"}, "pfi": {"personal_data", "confidentiality"}}

func readDPS(r *reader) error {
	root := dpsRoot(r.source.docs[0])
	rec := r.add("dataset", root)
	src, prov, use := root.any("source"), root.any("provenance"), root.any("use")
	for _, group := range []struct {
		name string
		v    value
	}{{"source", src}, {"provenance", prov}, {"use", use}} {
		if group.v.kind != isMap {
			r.find(Missing, group.name, root.at, "the group is required by the standard and not given")
		}
	}
	r.Version = root.any("set").any("schema-version").words()
	if r.Version == "" {
		r.Version = src.any("version").words()
	}

	r.set(rec, &rec.Name, "/name", src.any("title", "name"))
	r.set(rec, &rec.Input.Version, "/version", src.any("data-version"))
	r.set(rec, &rec.Description, "/description", orJoined(src.any("description")))
	rec.identify(rec.Name)
	id := src.any("id", "uid")
	if id.kind == isMap {
		var parts files
		for _, h := range id.any("hashes").each() {
			good := r.digest(rec, h.any("algorithm", "alg").words(), h.any("value", "hash", "content"), "")
			parts.count(good, 1, h.at)
		}
		parts.settle(r, rec)
		id = id.any("uuid", "id", "value", "uri")
	}
	rec.identify(id.words())
	r.uri(rec, src.any("location"))
	for _, who := range src.any("issuer").each() {
		if rec.Issuer.Name == "" {
			*rec.Issuer, rec.From["/issuer"] = r.party(who, "issuer"), who.at
		}
		r.parties(rec, who, "creators")
	}
	r.dpsProvenance(rec, prov)
	r.dpsUse(rec, use)
	r.sweep(rec, root)
	return nil
}

func orJoined(v value) value {
	if v.kind == isMap {
		return joined(v)
	}
	return v
}

// code reads a coded value: a map with a code, or the code itself. words is all
// that is written beside it.
func (r *reader) code(v value) (code, words string) {
	if v.kind != isMap {
		return strings.ToLower(v.words()), ""
	}
	for _, key := range []string{"description", "long-description", "short-description", "text"} {
		if s := v.any(key).words(); s != "" && !strings.Contains(words, s) {
			words = strings.TrimSpace(words + " " + s)
		}
	}
	return strings.ToLower(joined(v.any("code")).words()), words // of several codes each is looked for
}

func (r *reader) dpsProvenance(rec *Record, prov value) {
	for _, parent := range prov.any("source", "source-metadata").each() {
		if parent.kind == isMap {
			parent = parent.any("location", "id", "uri", "url", "title", "name")
		}
		r.parent(rec, "derived_from", screening.LineageRef{Ref: r.text(parent, "lineage")}, parent.at)
	}
	if sub := prov.any("sub-provenance"); sub.given() {
		r.find(Unresolved, "lineage", sub.at, "holds the provenance of a part, which was not read; give the part as a record of its own")
		r.parent(rec, "derived_from", screening.LineageRef{Label: "a part with a provenance of its own"}, sub.at)
	}
	r.parties(rec, prov.any("origin"), "creators")
	r.list(rec, &rec.Collection.Geography, "/collection/geography", countries(prov.any("origin-geography")))
	r.set(rec, &rec.Dates.Issued, "/dates/issued", prov.any("date"))
	r.set(rec, &rec.Dates.Previous, "/dates/previous", prov.any("previous-date"))
	period := prov.any("generation-period")
	r.set(rec, &rec.Collection.Start, "/collection/start", period.any("start"))
	r.set(rec, &rec.Collection.End, "/collection/end", period.any("end"))
	r.list(rec, &rec.Collection.Methods, "/collection/methods", codesOf(prov.any("generation-method")))
	for _, m := range prov.any("generation-method").each() {
		code, words := r.code(m)
		kind := "unknown"
		for _, known := range dpsMethods {
			if strings.Contains(code, known.part) {
				kind = known.kind
				break
			}
		}
		rec.source(kind, strings.TrimSpace(code+" "+words), m.at)
		for _, known := range []struct{ part, tag string }{{"synthetic", "synthetic"}, {"generative", "model_generated"}, {"health", "health"},
			{"biometric", "biometric"}} {
			if strings.Contains(code, known.part) {
				rec.disclose(known.tag, "present", "structured", "generation-method: "+code, m.at)
			}
		}
		if kind == "user_interactions" || kind == "user_other_services" {
			rec.disclose("user_generated", "present", "structured", "generation-method: "+code, m.at)
		}
	}
	if !prov.any("generation-method").given() {
		r.find(Missing, "generation-method", prov.at, "is required by the standard and not given")
	}
	r.formats(rec, prov.any("format"))
}

// formats reads media types as far as they tell what is inside.
func (r *reader) formats(rec *Record, v value) {
	for _, f := range flatten(v) {
		major, _, _ := strings.Cut(strings.ToLower(f.words()), "/")
		if m := mediaModalities[major]; m != "" {
			rec.modality(m, f.at)
		}
	}
	rec.partly()
}

// codesOf gives the codes in a list of them, of maps with codes, or of lists.
func codesOf(v value) value { return placesIn(v, "code") }

// countries gives the places that a list names, each a text or a map.
func countries(v value) value { return placesIn(v, "country", "countries", "code", "name", "region") }

func placesIn(v value, keys ...string) value {
	out := &node{kind: isList}
	for _, item := range v.each() {
		if item.kind == isMap {
			item = item.any(keys...)
		}
		for _, one := range flatten(item) {
			if s := one.words(); s != "" {
				out.items = append(out.items, node{kind: isText, text: s})
			}
		}
	}
	return value{out, v.at}
}

func (r *reader) dpsUse(rec *Record, use value) {
	for _, c := range use.any("classification").each() {
		regulation, words := r.code(c.any("regulation"))
		tags := dpsRegulations[regulation]
		at := c.at
		switch {
		case tags == nil: // "other", "GDPR Article 9": the fact is in the words
			detail := strings.TrimSpace(regulation + " " + words)
			rec.disclose("sensitive_personal", "unknown", "structured", detail, at)
			rec.disclose("personal_data", "unknown", "structured", detail, at)
			r.find(Unresolved, "disclosures", at, "speaks of a regulation that no code stands for; read it and state what it means for the data")
		case c.any("evaluated").given():
			for _, tag := range tags { // true: somebody looked. Not what was found.
				rec.disclose(tag, "unknown", "structured", strings.TrimSpace(regulation+": evaluated "+c.any("evaluated").words()+" "+words), at)
			}
		default:
			for _, tag := range tags {
				rec.disclose(tag, "unknown", "structured", regulation, at)
			}
		}
	}
	r.consents(rec, use.any("consents", "consent"))
	for _, p := range use.any("privacy-enhancing", "data-risk-reducing").each() {
		r.prose(rec, joined(p), "deidentified") // that a tool was used is not that it worked
	}
	r.regions(rec, &rec.Residency.ProcessedIn, "/residency/processed_in", use.any("processing-included"), false)
	r.regions(rec, &rec.Residency.StoredIn, "/residency/stored_in", use.any("storage-allowed"), false)
	for _, key := range []string{"processing-excluded", "storage-forbidden"} {
		r.regions(rec, &rec.Residency.Excluded, "/residency/excluded", use.any(key), true)
	}
	for _, l := range use.any("license").each() {
		r.license(rec, l, "")
	}
	if len(rec.License.Declared) == 0 {
		r.find(Missing, "license", use.at, "is not given")
	}
	r.set(rec, &rec.License.Copyright, "/license/copyright", orJoined(use.any("copyright")))
	if v := use.any("copyright"); len(flatten(v)) > 0 {
		rec.disclose("copyright_material", "present", "inferred", "the record names a copyright", v.at)
	}
	for _, key := range []string{"patent", "trademark"} {
		for _, v := range use.all(key) {
			if s := strings.ToLower(joined(v).words()); len(flatten(v)) > 0 && s != "" && s != "no" && s != "none" && s != "false" {
				rec.restrict("unknown", v.at)
				r.find(Restriction, "license", v.at, "names a right that the licence may not cover; state what it restricts under license.restrictions")
			}
		}
	}
	r.purposes(rec, use)
}

// purposes reads what data is meant for. Data that is meant for something else than
// training is not free to be trained on.
func (r *reader) purposes(rec *Record, use value) {
	purposes := use.any("intended-purpose")
	training, others := false, false
	for _, p := range purposes.each() {
		code, _ := r.code(p)
		switch short := strings.TrimPrefix(code, "ai-"); {
		case short == "synthetic":
			rec.disclose("synthetic", "present", "structured", "intended-purpose: "+code, p.at)
		case slices.Contains([]string{"evaluation", "validation", "testing", "test"}, short):
			others = true
			r.find(Note, "split", p.at, "is meant for evaluation; training on it spoils that")
		case strings.HasPrefix(short, "non-"):
			others = true
		default:
			training = true
		}
	}
	switch {
	case !purposes.given():
		r.find(Missing, "intended-purpose", use.at, "is required by the standard and not given")
	case others && !training:
		rec.restrict("unknown", purposes.at)
		r.find(Restriction, "license", purposes.at, "is meant for other purposes than training; look whether it may be trained on")
	}
}

// consents reads where consent is documented. An address claims that it is there;
// words or anything else decide nothing.
func (r *reader) consents(rec *Record, v value) {
	claimed, open := "", "" // where it says so
	for _, item := range v.each() {
		c, more := item, item.kind == isMap && len(item.keys) > 1 // a state, a scope, a day: not read
		if item.kind == isMap {
			c = firstOf(item.any("location", "url", "uri", "id"))
		}
		s := r.text(c, "consent")
		switch {
		case absolute.MatchString(s) && !more:
			claimed = firstWords(claimed, c.at)
		case item.given():
			open = firstWords(open, item.at)
			if !screening.IsPlaceholder(s) {
				r.find(Unresolved, "consent", item.at, "speaks of consent in another way than by the address of a document; read it and state it under consent")
			}
		}
		if s != "" && len(rec.Consent.Docs) < maxList {
			rec.Consent.Docs = append(rec.Consent.Docs, s)
		}
	}
	switch {
	case open != "":
		rec.Consent.Status, rec.From["/consent"] = "unknown", open
	case claimed != "":
		rec.Consent.Status, rec.From["/consent"] = "claimed", claimed
	}
}

// regions reads where data may be or must not be. "May be" is permission, not the
// place where it is, so it is told and not taken over.
func (r *reader) regions(rec *Record, to *[]string, pointer string, v value, excluded bool) {
	if !excluded {
		if len(flatten(v)) > 0 {
			rec.restrict("geo", v.at)
			rec.disclose("geo_restriction", "present", "structured", lastKey(v.at), v.at)
			r.find(Note, "residency", v.at, "says where the data may be, not where it is; state that under residency")
		}
		return
	}
	places := countries(v).each()
	if len(places) == 0 && len(flatten(v)) > 0 {
		r.find(Restriction, "residency", v.at, "excludes places in a way that is not understood; state them under residency.excluded")
	}
	for _, item := range places {
		if code := region(item.words()); code == "" {
			r.find(Restriction, "residency", v.at, "excludes a place that is not understood; state it under residency.excluded")
		} else if !slices.Contains(*to, code) {
			rec.From[pointer] = v.at
			*to = append(*to, code)
		}
	}
	if len(flatten(v)) > 0 {
		rec.restrict("geo", v.at)
		rec.disclose("geo_restriction", "present", "structured", lastKey(v.at), v.at)
	}
}
