package formats

import (
	"slices"
	"strings"

	"weir/screening"
)

// Data Provenance Initiative: one map from the name of a data set to its record.
//
// https://github.com/Data-Provenance-Initiative/Data-Provenance-Collection

func detectDPI(s *source) int {
	root := s.docs[0]
	if s.card || !root.is(isMap) || len(root.keys) == 0 {
		return 0
	}
	for i := range root.keys {
		rec := root.member(i)
		if rec.kind != isMap || !(rec.any("Unique Dataset Identifier").given() || rec.any("Licenses").given() && rec.any("Dataset Name").given()) {
			return 0
		}
	}
	return certain
}

func readDPI(r *reader) error {
	root := r.source.docs[0]
	for i := range root.keys {
		r.dpiRecord(root.member(i), root.keys[i])
	}
	return nil
}

var dpiSources = map[string]string{"crowdsourced": "human_authored", "crowd-sourcing": "human_authored", "human": "human_authored", "web": "web_crawl",
	"crawled": "web_crawl", "commoncrawl": "web_crawl", "common crawl": "web_crawl", "model": "synthetic", "synthetic": "synthetic"}

func (r *reader) dpiRecord(v value, name string) {
	rec := r.add("dataset", v)
	rec.ref = name
	r.set(rec, &rec.Name, "/name", v.any("Dataset Name"))
	rec.identify(name, rec.Name, v.any("Unique Dataset Identifier").words(), v.any("Inferred Metadata").any("HF Dataset").words())
	for _, key := range []string{"Hugging Face URL", "Dataset URL", "GitHub URL", "Website URL"} {
		for _, url := range v.any(key).each() {
			r.uri(rec, url)
		}
	}
	for _, l := range v.all("Licenses") {
		r.license(rec, l, "")
	}
	if len(rec.License.Declared) == 0 {
		r.find(Missing, "license", v.at, "is not given")
	}
	r.otherOpinions(rec, v.any("Inferred Metadata"))
	for i, key := range v.keys {
		if m := v.member(i); strings.Contains(strings.ToLower(key), "licen") && !sameKey(key, "Licenses") && !sameKey(key, "License Verified By") && r.text(m, "license") != "" {
			rec.restrict("unknown", m.at)
			r.find(Restriction, "license", m.at, "says more of the licence in words; read it and state what it restricts under license.restrictions")
			r.take(m)
		}
	}
	r.parties(rec, v.any("Creators"), "creators")
	for _, key := range []string{"Text Sources", "Source Category", "Source"} {
		for _, s := range v.any(key).each() {
			text := r.text(s, "sources")
			kind, ok := dpiSources[strings.ToLower(text)]
			if !ok {
				kind = "unknown"
			}
			rec.source(kind, strings.ToLower(key)+": "+text, s.at)
		}
	}
	for _, m := range v.any("Model Generated").each() {
		if s := r.text(m, "model_generated"); s != "" {
			rec.disclose("model_generated", "present", "structured", s, m.at)
			r.generated(rec, s, m.at)
		}
	}
	for _, p := range v.any("Derived from Datasets").each() {
		r.parent(rec, "derived_from", screening.LineageRef{Ref: r.text(p, "lineage")}, p.at)
	}
	if rec.Lineage != nil && len(rec.Lineage.DerivedFrom) == 0 {
		// Models are named and parents are not: a lineage would say that there are none.
		r.parent(rec, "derived_from", screening.LineageRef{Label: "not stated"}, v.at)
	}
	languages := v.any("Languages (ISO)")
	if !languages.given() {
		languages = v.any("Languages")
	}
	r.list(rec, &rec.Shape.Languages, "/shape/languages", languages)
	if v.any("Hours").given() || v.any("Speakers").given() {
		rec.modality("audio", v.at)
		rec.partly()
		rec.disclose("biometric", "present", "inferred", "recorded voices", v.at)
	}
	r.list(rec, &rec.Collection.Methods, "/collection/methods", v.any("Process Description"))
	r.list(rec, &rec.Collection.Geography, "/collection/geography", v.any("Location"))
	r.set(rec, &rec.Dates.Released, "/dates/released", v.any("Year Released"))
	if down := v.any("Taken Down"); down.given() && !slices.Contains([]string{"", "false", "no"}, strings.ToLower(down.words())) {
		r.find(Unresolved, "dataset", down.at, "says that the data set was taken down")
	}
	for _, key := range []string{"Dataset Name", "Collection", "Text Topics", "Topics", "Text Domains", "Task Categories", "Tasks"} {
		for _, item := range v.any(key).each() {
			r.topic(rec, item, strings.ToLower(key))
		}
	}
	r.sweep(rec, v)
}

// generated names a model that wrote data.
func (r *reader) generated(rec *Record, name, at string) {
	r.parent(rec, "generated_by_models", screening.LineageRef{Ref: name, Label: name}, at)
}

// otherOpinions compares the licence with what was found elsewhere: each
// restriction counts, and a difference is for a person.
func (r *reader) otherOpinions(rec *Record, inferred value) {
	stated, _ := rec.License.Stated()
	identified := false // by its name; the address beside it need not be one that is known
	for _, d := range rec.License.Declared {
		named := screening.License{Declared: []screening.DeclaredLicense{{Raw: firstWords(d.SPDX, d.Raw)}}}
		_, ok := named.Stated()
		identified = identified || ok
	}
	for i, key := range inferred.keys {
		if lower := strings.ToLower(key); !strings.Contains(lower, "licen") || strings.Contains(lower, "url") {
			continue
		}
		v := inferred.member(i)
		s := r.text(v, "license")
		if s == "" || screening.IsPlaceholder(s) {
			continue
		}
		other := screening.License{Declared: []screening.DeclaredLicense{{Raw: s}}}
		codes, ok := other.Stated()
		if ok && identified && slices.Equal(codes, stated) {
			continue
		}
		for _, code := range codes {
			rec.restrict(code, v.at)
		}
		r.find(Contradiction, "license", v.at, "is another opinion of the licence than the one declared")
	}
}
