package formats

import (
	"slices"
	"strings"

	"github.com/github/go-spdx/v2/spdxexp/spdxlicenses"

	"weir/screening"
)

// ExportCycloneDX writes a spec as a CycloneDX 1.6 BOM: the model that is to be
// trained as its subject, models as components with model cards, data as
// components of the type data. bom-refs are the ids of inputs.
func ExportCycloneDX(spec *screening.Spec, opts ExportOptions) (*Export, error) {
	return export("export.cdx.json", spec, func(spec *screening.Spec, lost []string) *object { return cycloneBOMOf(spec, opts, lost) })
}

// runRef names the model that is to be trained among the ids of inputs.
const runRef = "weir:run"

func cycloneBOMOf(spec *screening.Spec, opts ExportOptions, lost []string) *object {
	var trainedOn []any
	var ancestors []any
	for i := range spec.Inputs {
		switch in := &spec.Inputs[i]; {
		case in.Kind == "dataset":
			trainedOn = append(trainedOn, newObject("ref", in.ID))
		case in.ID == spec.BaseModel:
			ancestors = append(ancestors, newObject("type", "machine-learning-model", "name", in.ID))
		}
	}
	subject := newObject("type", "machine-learning-model", "bom-ref", runRef, "name", spec.RunRef,
		"pedigree", newObject("ancestors", ancestors),
		"modelCard", newObject("modelParameters", newObject("datasets", trainedOn)))
	var notes []any
	if opts.SpecSHA256 != "" {
		notes = append(notes, newObject("name", "weir:spec_sha256", "value", opts.SpecSHA256))
	}
	for _, pointer := range lost {
		notes = append(notes, newObject("name", "weir:not_held", "value", pointer))
	}
	var components []any
	for i := range spec.Inputs {
		components = append(components, cycloneComponent(spec, &spec.Inputs[i]))
	}
	return newObject("$schema", "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat", "CycloneDX", "specVersion", "1.6", "version", 1,
		"metadata", newObject("timestamp", opts.Created, "component", subject, "properties", notes),
		"components", components)
}

func cycloneComponent(spec *screening.Spec, in *screening.Input) *object {
	kind := map[string]string{"dataset": "data", "tokenizer": "file", "code": "library"}[in.Kind]
	if isModel(in) {
		kind = "machine-learning-model"
	}
	c := newObject("type", kind, "bom-ref", in.ID)
	var authors []any
	for _, p := range in.Creators {
		authors = append(authors, newObject("name", p.Name))
	}
	c.put("authors", authors)
	c.put("publisher", in.Publisher.Name)
	c.put("name", nameOf(in))
	c.put("version", in.Version)
	c.put("description", in.Description)
	var hashes []any
	for _, d := range in.Digests {
		if alg := cycloneAlgs[d.Alg]; alg != "" && validHex(d.Value, digestBytes[d.Alg]) {
			hashes = append(hashes, newObject("alg", alg, "content", d.Value))
		}
	}
	c.put("hashes", hashes)
	c.put("licenses", cycloneLicenses(&in.License))
	c.put("copyright", in.License.Copyright)
	var links []any
	for _, uri := range in.URIs {
		switch {
		case strings.HasPrefix(uri, "pkg:") && !hasMember(c, "purl"):
			c.put("purl", uri)
		default:
			links = append(links, newObject("type", "distribution", "url", uri))
		}
	}
	var parents, datasets []any
	if l := in.Lineage; l != nil {
		for _, refs := range [][]screening.LineageRef{l.BaseModels, l.DerivedFrom} {
			for _, ref := range refs {
				other := inputByID(spec, ref.Ref)
				if isModel(in) && other != nil && other.Kind == "dataset" {
					datasets = append(datasets, newObject("ref", ref.Ref))
					continue
				}
				kind := "data"
				if isModel(in) {
					kind = "machine-learning-model"
				}
				a := newObject("type", kind)
				if strings.HasPrefix(ref.Ref, "pkg:") {
					a.put("name", firstWords(ref.Label, ref.Ref))
					a.put("purl", ref.Ref)
				} else {
					a.put("name", firstWords(ref.Ref, ref.Label))
				}
				if hasMember(a, "name") { // a parent that nobody named cannot be one of a BOM
					parents = append(parents, a)
				}
			}
		}
	}
	c.put("pedigree", newObject("ancestors", parents))
	c.put("externalReferences", links)
	switch {
	case isModel(in):
		considerations := newObject("technicalLimitations", proseOf(in, "known_limits"))
		var ethics []any
		for _, text := range proseOf(in, "known_bias") {
			ethics = append(ethics, newObject("name", text))
		}
		considerations.put("ethicalConsiderations", ethics)
		c.put("modelCard", newObject("modelParameters", newObject("datasets", datasets), "considerations", considerations))
	case in.Kind == "dataset":
		d := newObject("type", "dataset", "name", nameOf(in))
		if tagState(in, "sensitive_personal") == "present" && tagState(in, "personal_data") == "present" {
			var sensitive []any
			for _, s := range in.Disclosures {
				if s.Tag == "sensitive_personal" && s.State == "present" && s.Basis == "structured" {
					sensitive = append(sensitive, firstWords(s.Detail, "sensitive personal data"))
				}
			}
			d.put("sensitiveData", sensitive)
		}
		c.put("data", []any{d})
	}
	return c
}

var cycloneAlgs = map[string]string{"sha256": "SHA-256", "sha384": "SHA-384", "sha512": "SHA-512", "blake3": "BLAKE3", "md5": "MD5", "sha1": "SHA-1"}

func hasMember(o *object, key string) bool {
	for _, m := range o.members {
		if m.key == key {
			return true
		}
	}
	return false
}

func firstWords(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func validHex(s string, bytes int) bool {
	return len(s) == 2*bytes && strings.Trim(strings.ToLower(s), "0123456789abcdef") == ""
}

// understood reports whether a text is an expression of licences that are known.
func understood(expression string) bool {
	l := screening.License{Declared: []screening.DeclaredLicense{{SPDX: expression}}}
	_, known := l.Stated()
	return known
}

// besideExpression gives the words and the address of an entry that stand beside
// what can be read of it and cannot be read themselves: without them the entry
// would come back as one that is understood.
func besideExpression(d screening.DeclaredLicense) (unread []string) {
	texts := slices.DeleteFunc([]string{d.SPDX, d.Raw, d.URL}, func(s string) bool { return s == "" || screening.IsPlaceholder(s) })
	if !slices.ContainsFunc(texts, understood) {
		return nil
	}
	return slices.DeleteFunc(texts, understood)
}

// cycloneLicenses writes each licence in its own words, as an id, or, if it is the
// only one, as an expression.
func cycloneLicenses(l *screening.License) (all []any) {
	if len(l.Declared) == 1 && strings.Contains(l.Declared[0].SPDX, " ") && l.Concluded == "" && len(besideExpression(l.Declared[0])) == 0 {
		return []any{newObject("expression", l.Declared[0].SPDX)}
	}
	for _, d := range l.Declared {
		if d == (screening.DeclaredLicense{Scope: d.Scope}) {
			continue
		}
		one := &object{}
		if id := spdxID(d.SPDX); id != "" {
			one.put("id", id)
		} else {
			one.put("name", firstWords(d.SPDX, d.Raw, d.URL))
		}
		one.put("url", d.URL)
		all = append(all, newObject("license", one))
		for _, words := range besideExpression(d) {
			all = append(all, newObject("license", newObject("name", words)))
		}
	}
	if id := spdxID(l.Concluded); id != "" {
		all = append(all, newObject("license", newObject("id", id, "acknowledgement", "concluded")))
	}
	return all
}

// spdxID gives the id of SPDX's list in its own spelling, which is the only one
// that the schema takes; empty for what is none, such as an id with a plus.
func spdxID(text string) string {
	for _, lookUp := range []func(string) (bool, string){spdxlicenses.IsActiveLicense, spdxlicenses.IsDeprecatedLicense} {
		if known, id := lookUp(text); known {
			return id
		}
	}
	return ""
}
