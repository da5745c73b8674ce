package formats

import (
	"regexp"
	"slices"
	"strings"

	"weir/screening"
)

// CycloneDX 1.5 to 1.7: models are components with a model card, data sets are
// data of the type dataset, inline or referred to.
//
// https://cyclonedx.org/capabilities/mlbom/

func detectCycloneDX(s *source) int {
	root := s.docs[0]
	if s.card || !root.is(isMap) {
		return 0
	}
	if root.get("bomFormat").given() || strings.Contains(root.get("$schema").words(), "cyclonedx.org") {
		return certain
	}
	return 0
}

var cycloneTypes = strings.Fields(`application framework library container platform operating-system device device-driver firmware file
	machine-learning-model data cryptographic-asset`)

type cycloneBOM struct {
	r    *reader
	refs map[string]value // components and data by bom-ref
	at   map[string]int   // bom-ref → index in Records
	made map[string]bool  // pointers of data that have a record
	of   map[string]int   // pointer of a component → index in Records
}

func readCycloneDX(r *reader) error {
	root := r.source.docs[0]
	if root.get("bomFormat").words() != "CycloneDX" {
		return r.refuse(NotThisFormat, "bomFormat is not CycloneDX, so the file is something that only looks like it")
	}
	r.Version = root.get("specVersion").words()
	if !slices.Contains([]string{"1.5", "1.6", "1.7"}, r.Version) {
		return r.refuse(UnknownVersion, "the file is of a CycloneDX version other than 1.5, 1.6 and 1.7")
	}
	b := &cycloneBOM{r, map[string]value{}, map[string]int{}, map[string]bool{}, map[string]int{}}
	var components []value
	var collect func(v value)
	collect = func(v value) {
		for _, c := range v.each() {
			if c.kind != isMap {
				r.find(Unreadable, "components", c.at, "is no component")
				continue
			}
			components = append(components, c)
			b.index(c)
			for _, d := range c.any("data").each() {
				b.index(d)
			}
			collect(c.any("components"))
		}
	}
	metadata := root.any("metadata")
	collect(metadata.any("component"))
	collect(root.any("components"))
	for _, c := range components {
		b.component(c)
	}
	if len(r.Records) == 0 {
		return r.refuse(NoRecord, "the file describes no model and no data set")
	}
	b.parents(components)
	for _, d := range root.any("dependencies").each() {
		if d.kind == isMap && !d.any("ref").given() {
			r.find(Malformed, "dependencies", d.at, "is a dependency of nothing")
		}
	}
	constraints := metadata.any("distributionConstraints")
	b.distribution(constraints)
	r.sweepShared(root.any("annotations"), root.any("properties"), root.any("declarations"), root.any("definitions"), root.any("externalReferences"),
		root.any("services"), root.any("formulation"), root.any("citations"),
		constraints, metadata.any("properties"), joined(metadata.any("licenses"))) // the last is of the BOM itself: only its words count
	return nil
}

// distribution reads to whom a BOM may be given. What it describes is hardly for more people.
func (b *cycloneBOM) distribution(v value) {
	if !v.given() {
		return
	}
	marks := flatten(v)
	if len(marks) == 1 && strings.EqualFold(marks[0].words(), "clear") {
		return
	}
	for i := range b.r.Records {
		b.r.Records[i].disclose("confidentiality", "present", "inferred", "the BOM has constraints on its distribution", v.at)
	}
}

func (b *cycloneBOM) index(c value) {
	ref := c.any("bom-ref").words()
	if ref == "" {
		return
	}
	if _, doubled := b.refs[ref]; doubled {
		b.r.find(Contradiction, "components", c.at, "has the bom-ref of another")
		return
	}
	b.refs[ref] = c
}

func (b *cycloneBOM) component(c value) {
	r := b.r
	kind, card, purl := strings.ToLower(c.any("type").words()), c.any("modelCard"), strings.ToLower(c.any("purl").words())
	var sets []value
	for _, d := range c.any("data").each() {
		if strings.EqualFold(d.any("type").words(), "dataset") {
			sets = append(sets, d)
		}
	}
	switch {
	case kind == "machine-learning-model" || card.given() || len(sets) == 0 && kind != "data" && modelPurl.MatchString(purl):
		if kind != "machine-learning-model" {
			r.find(Malformed, "type", c.at, "is not said to be a model, and has a model card or the address of one; it is taken for one")
		}
		b.model(c, card)
	case len(sets) > 0:
		if kind != "data" {
			r.find(Malformed, "type", c.at, "has a data set and is not said to be data; it is taken for it")
		}
		b.datasets(c, sets)
	case kind == "data":
		r.find(Unresolved, "dataset", c.at, "is data of a kind that is not said: a data set, weights or settings; it was not taken over")
	case !slices.Contains(cycloneTypes, kind):
		r.find(Unresolved, "type", c.at, "is of a type that CycloneDX has not, so it may be data or a model; it was not taken over")
	}
}

var modelPurl = regexp.MustCompile(`^pkg:(?:huggingface|mlflow)/`)

// datasets makes records of the data sets of one component, which share what the
// component says.
func (b *cycloneBOM) datasets(c value, sets []value) {
	if len(sets) > maxInputs {
		b.r.many = true
		return
	}
	shared := Record{Input: whole(screening.Input{Kind: "dataset"}), From: map[string]string{"": c.at}, at: c.at}
	b.common(&shared, c)
	b.r.sweep(&shared, without(c, "components", "data"))
	for _, d := range sets {
		b.dataset(&shared, c, d)
	}
}

// common reads what every component has.
func (b *cycloneBOM) common(rec *Record, c value) {
	r := b.r
	name := r.text(c.any("name"), "name")
	if group := r.text(c.any("group"), "name"); group != "" && !strings.Contains(name, "/") {
		rec.identify(group + "/" + name)
	}
	r.set(rec, &rec.Name, "/name", c.any("name"))
	rec.identify(name)
	r.set(rec, &rec.Description, "/description", c.any("description"))
	r.set(rec, &rec.Input.Version, "/version", c.any("version"))
	r.set(rec, &rec.License.Copyright, "/license/copyright", c.any("copyright"))
	r.uri(rec, orText(c.any("purl")))
	if _, revision, ok := strings.Cut(c.any("purl").words(), "@"); ok {
		revision, _, _ = strings.Cut(revision, "#")
		revision, _, _ = strings.Cut(revision, "?")
		rec.Revision, rec.From["/revision"] = revision, c.any("purl").at
	}
	for _, x := range c.any("externalReferences").each() {
		switch kind := strings.ToLower(x.any("type").words()); kind {
		case "distribution", "distribution-intake", "website", "vcs", "model-card":
			r.contentURL(rec, x.any("url"))
			if kind == "distribution" {
				rec.identify(x.any("url").words())
			}
		case "license":
			r.license(rec, x.any("url"), "")
		}
	}
	for _, list := range c.all("licenses") {
		r.take(list)
		for _, l := range list.each() {
			b.license(rec, l)
		}
	}
	if len(rec.License.Declared) == 0 {
		r.find(Missing, "license", c.at, "is not given")
	}
	r.conclusion(rec)
	if v := c.any("patentAssertions"); len(flatten(v)) > 0 {
		rec.restrict("unknown", v.at)
		r.find(Restriction, "license", v.at, "names patents that the licence may not cover; state what they restrict under license.restrictions")
	}
	b.ancestors(rec, c)
	var parts files
	for _, h := range c.any("hashes").each() {
		good := r.digest(rec, h.any("alg").words(), h.any("content"), "")
		parts.count(good, 1, h.at)
	}
	parts.settle(r, rec)
	for _, key := range []string{"authors", "author"} {
		for _, v := range c.all(key) {
			r.parties(rec, v, "creators")
		}
	}
	for _, key := range []string{"publisher", "manufacturer", "supplier"} {
		if v := c.any(key); v.given() && rec.Publisher.Name == "" {
			*rec.Publisher, rec.From["/publisher"] = r.party(v, "publisher"), v.at
		}
	}
	for _, p := range c.any("properties").each() {
		if strings.HasSuffix(p.any("name").words(), "confidence") && p.any("value").words() == "inferred" {
			r.find(Unresolved, rec.Kind, p.at, "says that the component was inferred, not declared by anybody")
		}
	}
}

// ancestors reads what a component was made from, and on which terms.
func (b *cycloneBOM) ancestors(rec *Record, c value) {
	list := "base_models"
	if rec.Kind == "dataset" {
		list = "derived_from"
	}
	for _, a := range c.any("pedigree").any("ancestors").each() {
		ref := screening.LineageRef{Ref: firstWords(a.any("purl").words(), a.any("name").words()), Label: a.any("name").words()}
		parent := Record{From: map[string]string{}}
		for _, l := range a.any("licenses").each() {
			b.license(&parent, l)
		}
		b.r.take(a.any("licenses"))
		ref.License = allOf(&parent.License)
		b.r.parent(rec, list, ref, a.at)
	}
}

func orText(v value) value {
	if v.kind == isText {
		return v
	}
	return noValue
}

// license reads one entry of a list of licences.
func (b *cycloneBOM) license(rec *Record, l value) {
	r := b.r
	b.licensing(rec, l.any("licensing"))
	expression, one := l.any("expression"), l.any("license")
	if expression.given() {
		switch s := r.text(expression, "license"); {
		case strings.EqualFold(l.any("acknowledgement").words(), "concluded"):
			r.conclude(rec, s, expression.at)
		default:
			r.declare(rec, screening.DeclaredLicense{SPDX: s}, expression.at)
		}
		if !one.given() {
			return
		}
	}
	b.licensing(rec, one.any("licensing"))
	d := screening.DeclaredLicense{SPDX: r.text(one.any("id"), "license"), Raw: r.text(one.any("name"), "license"), URL: r.text(one.any("url"), "license")}
	if one.kind == isText { // as nobody should write it
		d.Raw = r.text(one, "license")
	}
	if d == (screening.DeclaredLicense{}) {
		r.find(Unreadable, "license", l.at, "names no licence")
		d.Raw = "unknown"
	}
	if text := one.any("text"); strings.EqualFold(text.any("encoding").words(), "base64") {
		rec.restrict("unknown", text.at)
		r.find(Restriction, "license", text.at, "comes with a text that is not read; read it and state what it restricts under license.restrictions")
	}
	if strings.EqualFold(one.any("acknowledgement").words(), "concluded") && d.SPDX != "" {
		r.conclude(rec, d.SPDX, one.at)
		return
	}
	r.declare(rec, d, l.at)
}

// licensing reads the terms on which a licence was bought. They are codes of which
// some restrict; what else is agreed to is not in the file.
func (b *cycloneBOM) licensing(rec *Record, v value) {
	if !v.given() {
		return
	}
	for _, t := range v.any("licenseTypes").each() {
		if strings.EqualFold(t.words(), "academic") {
			rec.restrict("research_only", t.at)
		}
	}
	rec.restrict("unknown", v.at)
	b.r.find(Restriction, "license", v.at, "is a licence on terms of its own (licensing); read them and state what they restrict under license.restrictions")
}

func (b *cycloneBOM) model(c, card value) {
	r := b.r
	rec := r.add("base_model", c)
	rec.ref = c.any("bom-ref").words()
	b.of[c.at] = len(r.Records) - 1
	if rec.ref != "" {
		b.at[rec.ref] = len(r.Records) - 1
	}
	b.common(rec, c)
	if !card.any("modelParameters").given() {
		r.find(Missing, "modelParameters", c.at, "the model card does not say what the model was trained on")
	}
	considerations := card.any("considerations")
	r.prose(rec, considerations.any("technicalLimitations"), "known_limits")
	for _, key := range []string{"fairnessAssessments", "ethicalConsiderations"} {
		for _, item := range considerations.any(key).each() {
			r.prose(rec, joined(item), "known_bias")
		}
	}
	r.sweep(rec, without(c, "components", "data"))
}

// without gives a map without some of its members.
func without(v value, keys ...string) value {
	out := &node{kind: isMap}
	for i, k := range v.keys {
		if !slices.Contains(keys, k) {
			out.keys, out.items = append(out.keys, k), append(out.items, v.items[i])
		}
	}
	return value{out, v.at}
}

// dataset makes a record of one data set: of the component c, with what is shared
// by all of it, or of a model's own list, without them.
func (b *cycloneBOM) dataset(shared *Record, c, d value) *Record {
	r := b.r
	b.made[d.at] = true
	rec := r.add("dataset", d)
	if shared != nil {
		*rec = shared.clone()
		rec.at, rec.From[""] = d.at, d.at
		b.of[c.at] = len(r.Records) - 1
	}
	for _, ref := range []string{d.any("bom-ref").words(), c.any("bom-ref").words()} {
		if ref == "" {
			continue
		}
		if rec.ref == "" {
			rec.ref = ref
		}
		if _, ok := b.at[ref]; !ok {
			b.at[ref] = len(r.Records) - 1
		}
	}
	if name := d.any("name"); name.given() && (rec.Name == "" || len(c.any("data").each()) > 1) {
		rec.Name = ""
		r.set(rec, &rec.Name, "/name", name)
		rec.identify(rec.Name)
	}
	if rec.Description == "" {
		r.set(rec, &rec.Description, "/description", d.any("description"))
	}
	r.uri(rec, d.any("contents").any("url"))
	for _, key := range []string{"owners", "stewards", "custodians"} {
		for _, who := range d.any("governance").any(key).each() {
			for _, w := range []value{who.any("organization"), who.any("contact")} {
				if w.given() {
					r.parties(rec, w, "creators")
				}
			}
		}
	}
	if v := d.any("classification"); v.given() {
		b.classification(rec, v)
	}
	for _, v := range d.any("sensitiveData").each() {
		s := r.text(v, "sensitive_personal")
		if s == "" {
			continue
		}
		if screening.IsPlaceholder(s) {
			r.find(Placeholder, "sensitive_personal", v.at, "is a placeholder")
			rec.disclose("sensitive_personal", "placeholder", "structured", s, v.at)
			continue
		}
		// The key says that there is such data, the words only which.
		rec.disclose("sensitive_personal", "present", "structured", s, v.at)
		rec.disclose("personal_data", "present", "structured", s, v.at)
	}
	r.sweep(rec, d)
	return rec
}

// classification is free text; some words of it are used everywhere.
func (b *cycloneBOM) classification(rec *Record, v value) {
	s := strings.ToLower(b.r.text(v, "confidentiality"))
	switch {
	case s == "public":
		rec.disclose("confidentiality", "absent", "inferred", "classification: public", v.at)
	case screening.IsPlaceholder(s):
		rec.disclose("confidentiality", "placeholder", "structured", s, v.at)
	default:
		rec.disclose("confidentiality", "present", "inferred", "classification: "+s, v.at)
	}
	for _, known := range []struct{ word, tag string }{{"pii", "personal_data"}, {"personal", "personal_data"}, {"phi", "health"},
		{"health", "health"}, {"biometric", "biometric"}} {
		if strings.Contains(s, known.word) {
			rec.disclose(known.tag, "present", "inferred", "classification: "+s, v.at)
		}
	}
}

// parents reads what models were trained on and came from.
func (b *cycloneBOM) parents(components []value) {
	for _, c := range components {
		i, ok := b.of[c.at]
		if !ok {
			continue
		}
		for _, d := range c.any("modelCard").any("modelParameters").any("datasets").each() {
			b.trainedOn(i, d)
		}
	}
}

func (b *cycloneBOM) trainedOn(model int, d value) {
	r := b.r
	ref := d.any("ref").words()
	if d.kind != isMap || ref != "" {
		if d.kind != isMap {
			ref = d.words()
		}
		if i, ok := b.at[ref]; ok {
			r.parent(&r.Records[model], "derived_from", screening.LineageRef{Ref: ref, Label: r.Records[i].Name}, d.at)
			return
		}
		r.find(Unresolved, "dataset", d.at, "refers to a data set that is not in the file")
		r.parent(&r.Records[model], "derived_from", screening.LineageRef{Ref: ref}, d.at)
		return
	}
	if b.made[d.at] {
		return
	}
	rec := b.dataset(nil, noValue, d)
	if rec.ref == "" {
		rec.ref = d.at
	}
	r.parent(&r.Records[model], "derived_from", screening.LineageRef{Ref: rec.ref, Label: rec.Name}, d.at)
}
