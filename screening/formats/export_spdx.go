package formats

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/screening"
)

// ExportSPDX writes a spec as an SPDX 3.0.1 document: the model that is to be
// trained, and a package of the AI or Dataset profile per input. The profiles ask
// for more than a spec may know; what is not known is left out and never invented.
func ExportSPDX(spec *screening.Spec, opts ExportOptions) (*Export, error) {
	return export("export.spdx3.json", spec, func(spec *screening.Spec, lost []string) *object { return spdxDocumentOf(spec, opts, lost) })
}

// spdxWriter collects the elements of a graph.
type spdxWriter struct {
	base     string
	elements []any
	agents   map[screening.Party]string
	licenses map[string]string
	n        int
}

func (w *spdxWriter) id(local string) string { return w.base + "#" + local }

func (w *spdxWriter) element(class, local string, members ...any) *object {
	o := newObject(append([]any{"type", class, "spdxId", w.id(local), "creationInfo", "_:creation"}, members...)...)
	w.elements = append(w.elements, o)
	return o
}

// next gives an id that no input has: ids of inputs have no colon.
func (w *spdxWriter) next(prefix string) string {
	w.n++
	return prefix + ":" + strconv.Itoa(w.n)
}

func (w *spdxWriter) relate(from, kind, to string) {
	w.element("Relationship", w.next("relationship"), "from", from, "relationshipType", kind, "to", []any{to})
}

func (w *spdxWriter) agent(p screening.Party) string {
	if id, ok := w.agents[p]; ok {
		return id
	}
	class := "Agent" // whether it is a person is not reliable
	switch p.Type {
	case "Person", "Organization":
		class = p.Type
	}
	local := w.next("agent")
	w.element(class, local, "name", p.Name)
	w.agents[p] = w.id(local)
	return w.agents[p]
}

func (w *spdxWriter) license(expression, words string) string {
	key := expression + "\x00" + words
	if id, ok := w.licenses[key]; ok {
		return id
	}
	local := w.next("license")
	if expression != "" {
		w.element("simplelicensing_LicenseExpression", local, "simplelicensing_licenseExpression", expression)
	} else {
		w.element("simplelicensing_SimpleLicensingText", local, "name", words, "simplelicensing_licenseText", words)
	}
	w.licenses[key] = w.id(local)
	return w.licenses[key]
}

func spdxDocumentOf(spec *screening.Spec, opts ExportOptions, lost []string) *object {
	w := &spdxWriter{base: opts.Namespace, agents: map[screening.Party]string{}, licenses: map[string]string{}}
	tool := w.id("tool:weir")
	w.elements = append(w.elements, newObject("type", "CreationInfo", "@id", "_:creation", "specVersion", "3.0.1", "created", opts.Created, "createdBy", []any{tool}))
	w.element("SoftwareAgent", "tool:weir", "name", "weir")
	w.element("SpdxDocument", "document:1", "profileConformance", []any{"core", "software", "simpleLicensing", "ai", "dataset"}, "rootElement", []any{w.id(runRef)})
	w.element("ai_AIPackage", runRef, "name", spec.RunRef, "software_primaryPurpose", "model")
	for i := range spec.Inputs {
		in := &spec.Inputs[i]
		w.input(in)
		switch {
		case in.Kind == "dataset":
			w.relate(w.id(runRef), "trainedOn", w.id(in.ID))
		case in.ID == spec.BaseModel:
			w.relate(w.id(runRef), "descendantOf", w.id(in.ID))
		}
	}
	for i := range spec.Inputs {
		w.lineage(spec, &spec.Inputs[i])
	}
	note := func(statement string) {
		w.element("Annotation", w.next("annotation"), "annotationType", "other", "subject", w.id("document:1"), "statement", statement)
	}
	if opts.SpecSHA256 != "" {
		note("weir:spec_sha256 " + opts.SpecSHA256)
	}
	if len(lost) > 0 {
		note("weir:not_held " + strings.Join(lost, " "))
	}
	return newObject("@context", "https://spdx.org/rdf/3.0.1/spdx-context.jsonld", "@graph", w.elements)
}

// onlyDateTime passes on what is a time in the only form that SPDX takes.
func onlyDateTime(s string) string {
	if _, err := time.Parse("2006-01-02T15:04:05Z", s); err != nil {
		return ""
	}
	return s
}

func (w *spdxWriter) input(in *screening.Input) {
	class, purpose := "software_Package", ""
	switch {
	case in.Kind == "dataset":
		class, purpose = "dataset_DatasetPackage", "data"
	case isModel(in):
		class, purpose = "ai_AIPackage", "model"
	}
	var creators, digests []any
	for _, p := range in.Creators {
		creators = append(creators, w.agent(p))
	}
	publisher := ""
	if in.Publisher.Name != "" {
		publisher = w.agent(*in.Publisher)
	}
	for _, d := range in.Digests {
		if validHex(d.Value, digestBytes[d.Alg]) {
			digests = append(digests, newObject("type", "Hash", "algorithm", d.Alg, "hashValue", d.Value))
		}
	}
	e := w.element(class, in.ID, "name", nameOf(in), "description", in.Description, "software_packageVersion", in.Version,
		"software_primaryPurpose", purpose, "software_copyrightText", in.License.Copyright, "builtTime", onlyDateTime(in.Dates.Created),
		"releaseTime", onlyDateTime(in.Dates.Released), "originatedBy", creators, "suppliedBy", publisher, "verifiedUsing", digests)
	for i, uri := range in.URIs {
		if key := []string{"software_downloadLocation", "software_homePage"}; i < len(key) {
			e.put(key[i], uri)
		}
	}
	switch {
	case in.Kind == "dataset":
		w.dataset(e, in)
	case isModel(in):
		e.put("ai_useSensitivePersonalInformation", spdxPresence(in))
		e.put("ai_limitation", firstProse(in, "known_limits"))
		e.put("ai_informationAboutTraining", in.Collection.Description)
	}
	for _, d := range in.License.Declared {
		expression := d.SPDX
		if expression == "" && understood(d.Name()) {
			expression = d.Name()
		}
		if words := firstWords(d.Raw, d.URL); expression != "" || words != "" {
			w.relate(w.id(in.ID), "hasDeclaredLicense", w.license(expression, words))
		}
		for _, words := range besideExpression(d) {
			w.relate(w.id(in.ID), "hasDeclaredLicense", w.license("", words))
		}
	}
	if in.License.Concluded != "" {
		w.relate(w.id(in.ID), "hasConcludedLicense", w.license(in.License.Concluded, ""))
	}
}

// spdxPresence answers yes or no only where the spec does, in a coded way.
func spdxPresence(in *screening.Input) string {
	switch tagState(in, "sensitive_personal") {
	case "present":
		return "yes"
	case "absent":
		return "no"
	}
	return "noAssertion"
}

func firstProse(in *screening.Input, tag string) string {
	if texts := proseOf(in, tag); len(texts) > 0 {
		return texts[0].(string)
	}
	return ""
}

var spdxTypes = map[string]string{"text": "text", "image": "image", "audio": "audio", "video": "video", "graph": "graph", "sensor": "sensor",
	"time_series": "timeseries", "tabular": "structured", "unknown": "noAssertion"}

func (w *spdxWriter) dataset(e *object, in *screening.Input) {
	var types, methods []any
	for _, m := range in.Shape.Modalities {
		t := spdxTypes[m]
		if t == "" {
			t = "other"
		}
		types = append(types, t)
	}
	if len(types) == 0 {
		types = []any{"noAssertion"} // the profile asks for one
	}
	for _, m := range in.Collection.Methods {
		methods = append(methods, m)
	}
	e.put("dataset_datasetType", types)
	e.put("dataset_dataCollectionProcess", in.Collection.Description)
	e.put("dataset_dataPreprocessing", methods)
	if n, err := strconv.Atoi(in.Shape.SizeRaw); err == nil && n >= 0 {
		e.put("dataset_datasetSize", n)
	}
	e.put("dataset_hasSensitivePersonalInformation", spdxPresence(in))
	e.put("dataset_knownBias", proseOf(in, "known_bias"))
	e.put("dataset_anonymizationMethodUsed", proseOf(in, "deidentified"))
	e.put("dataset_datasetNoise", firstProse(in, "known_limits"))
	for _, d := range in.Disclosures {
		codes := map[string]string{"gated_access": "dataset_datasetAvailability", "confidentiality": "dataset_confidentialityLevel"}
		key := codes[d.Tag]
		ok := d.Basis == "structured" && (d.State == "present" && slices.Contains([]string{"clickthrough", "registration", "query", "red", "amber", "green"}, d.Detail) ||
			d.State == "absent" && slices.Contains([]string{"directDownload", "clear"}, d.Detail))
		if key != "" && ok && !hasMember(e, key) && tagState(in, d.Tag) == d.State {
			e.put(key, d.Detail)
		}
	}
}

// lineage writes what came from what, as far as both are in the spec.
func (w *spdxWriter) lineage(spec *screening.Spec, in *screening.Input) {
	l := in.Lineage
	if l == nil {
		return
	}
	for _, ref := range l.DerivedFrom {
		if other := inputByID(spec, ref.Ref); other != nil {
			kind := "descendantOf"
			if isModel(in) && other.Kind == "dataset" {
				kind = "trainedOn"
			}
			w.relate(w.id(in.ID), kind, w.id(ref.Ref))
		}
	}
	for _, ref := range l.BaseModels {
		if inputByID(spec, ref.Ref) != nil {
			w.relate(w.id(in.ID), "descendantOf", w.id(ref.Ref))
		}
	}
	for _, ref := range l.GeneratedByModels {
		if other := inputByID(spec, ref.Ref); other != nil && isModel(other) {
			w.relate(w.id(ref.Ref), "generates", w.id(in.ID))
		}
	}
}
