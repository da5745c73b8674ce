package formats

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"weir/screening"
)

func imported(t testing.TB, name, text string) *Import {
	t.Helper()
	im, err := Read(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return im
}

const croissantHead = `"@context": {"@vocab": "https://schema.org/", "sc": "https://schema.org/", "cr": "http://mlcommons.org/croissant/",
	"rai": "http://mlcommons.org/croissant/RAI/", "dct": "http://purl.org/dc/terms/", "conformsTo": "dct:conformsTo"}, "@type": "sc:Dataset", "conformsTo": "http://mlcommons.org/croissant/1.1"`

func croissant(rest string) string { return "{" + croissantHead + ", " + rest + "}" }

func cardOf(head string) string { return "---\n" + head + "\n---\n# Card\n" }

func spdxDataset(rest string) string {
	return `{"@context": "https://spdx.org/rdf/3.0.1/spdx-context.jsonld", "@graph": [{"type": "dataset_DatasetPackage", "spdxId": "urn:d", "name": "d", ` + rest + `}]}`
}

func cycloneData(rest string) string {
	return `{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{"type": "data", "name": "d", "data": [{"type": "dataset", "name": "d", ` + rest + `}]}]}`
}

func dpsUse(rest string) string {
	return `{"source": {"title": "d", "version": "1.0.0"}, "provenance": {"date": "2025-01-01"}, "use": {` + rest + `, "intended-purpose": [{"code": "ai-training"}]}}`
}

func dpi(rest string) string {
	return `{"d": {"Unique Dataset Identifier": "d", "Dataset Name": "d", ` + rest + `}}`
}

// stated gives the states that a record states of a tag, as structured statements.
func stated(rec Record, tag string) (states []string) {
	for _, d := range rec.Disclosures {
		if d.Tag == tag && d.Basis == "structured" {
			states = append(states, d.State)
		}
	}
	return states
}

// TestAbsentIsNotNo: what a file says of a tag, and what it does not.
func TestAbsentIsNotNo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, text, tag, want string }{
		{"Croissant says nothing", "c.json", croissant(`"name": "faces of children"`), "minors", ""},
		{"Croissant, synthetic: no", "c.json", croissant(`"rai:hasSyntheticData": false`), "synthetic", "absent"},
		{"Croissant, synthetic: yes", "c.json", croissant(`"rai:hasSyntheticData": true`), "synthetic", "present"},
		{"Croissant, synthetic in words", "c.json", croissant(`"rai:hasSyntheticData": "No"`), "synthetic", ""},
		{"Croissant, synthetic: null", "c.json", croissant(`"rai:hasSyntheticData": null`), "synthetic", ""},
		{"Croissant, no personal data in prose", "c.json", croissant(`"rai:personalSensitiveInformation": "No personal data."`), "personal_data", ""},
		{"Croissant, biases in prose", "c.json", croissant(`"rai:dataBiases": "None known."`), "known_bias", ""},
		{"card says nothing", "c.md", cardOf("license: mit"), "gated_access", ""},
		{"card is gated", "c.md", cardOf("gated: auto"), "gated_access", "present"},
		{"card is not gated", "c.md", cardOf("gated: false"), "gated_access", "absent"},
		{"card is not gated and has a prompt", "c.md", cardOf("gated: false\nextra_gated_prompt: sign here"), "gated_access", "absent present"},
		{"card has fields to fill in", "c.md", cardOf("extra_gated_fields:\n  Name: text"), "gated_access", "present"},
		{"card, labels by a machine", "c.md", cardOf("annotations_creators: [machine-generated]"), "model_generated", "present"},
		{"card, labels by people", "c.md", cardOf("annotations_creators: [expert-generated]"), "model_generated", ""},
		{"card, a tag of the Hub's", "c.md", cardOf("tags: [not-for-all-audiences]"), "not_for_all_audiences", "present"},
		{"card, a tag of anybody's", "c.md", cardOf("tags: [medical]"), "health", ""},
		{"SPDX says nothing", "s.json", spdxDataset(`"description": "d"`), "sensitive_personal", ""},
		{"SPDX, no", "s.json", spdxDataset(`"dataset_hasSensitivePersonalInformation": "no"`), "sensitive_personal", "absent"},
		{"SPDX, no is not no to all personal data", "s.json", spdxDataset(`"dataset_hasSensitivePersonalInformation": "no"`), "personal_data", ""},
		{"SPDX, yes is yes to personal data", "s.json", spdxDataset(`"dataset_hasSensitivePersonalInformation": "yes"`), "personal_data", "present"},
		{"SPDX, no assertion", "s.json", spdxDataset(`"dataset_hasSensitivePersonalInformation": "noAssertion"`), "sensitive_personal", "unknown"},
		{"SPDX, another word", "s.json", spdxDataset(`"dataset_hasSensitivePersonalInformation": "NO"`), "sensitive_personal", "unknown"},
		{"SPDX, a method of anonymisation", "s.json", spdxDataset(`"dataset_anonymizationMethodUsed": ["k-anonymity"]`), "deidentified", ""},
		{"SPDX, known bias", "s.json", spdxDataset(`"dataset_knownBias": ["none"]`), "known_bias", ""},
		{"CycloneDX says nothing", "b.json", cycloneData(`"description": "d"`), "sensitive_personal", ""},
		{"CycloneDX, sensitive data", "b.json", cycloneData(`"sensitiveData": ["health of persons"]`), "sensitive_personal", "present"},
		{"CycloneDX, an empty list", "b.json", cycloneData(`"sensitiveData": []`), "sensitive_personal", ""},
		{"CycloneDX, to be filled in", "b.json", cycloneData(`"sensitiveData": ["TBD"]`), "sensitive_personal", "placeholder"},
		{"CycloneDX, public", "b.json", cycloneData(`"classification": "public"`), "confidentiality", ""},
		{"D&TA, looked", "d.json", dpsUse(`"classification": [{"regulation": {"code": "PII"}, "evaluated": true}]`), "personal_data", "unknown"},
		{"D&TA, did not look", "d.json", dpsUse(`"classification": [{"regulation": {"code": "PII"}, "evaluated": false}]`), "personal_data", "unknown"},
		{"D&TA, another regulation", "d.json", dpsUse(`"classification": [{"regulation": {"code": "other", "description": "GDPR Article 9"}, "evaluated": false}]`), "sensitive_personal", "unknown"},
		{"D&TA, a privacy tool", "d.json", dpsUse(`"privacy-enhancing": [{"tool-used": "x", "result": ["all gone"]}]`), "deidentified", ""},
		{"DPI, no model", "p.json", dpi(`"Model Generated": []`), "model_generated", ""},
		{"DPI, a model", "p.json", dpi(`"Model Generated": ["GPT"]`), "model_generated", "present"},
		{"DPI, no human annotation", "p.json", dpi(`"Human Annotation": "No"`), "human_subjects", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			im := imported(t, tt.file, tt.text)
			if got := strings.Join(stated(im.Records[0], tt.tag), " "); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.tag, got, tt.want)
			}
		})
	}
}

// TestSilenceStaysSilence: fields whose empty form would be a statement.
func TestSilenceStaysSilence(t *testing.T) {
	t.Parallel()
	for file, text := range map[string]string{"c.json": croissant(`"name": "x"`), "c.md": cardOf("license: mit"), "s.json": spdxDataset(`"description": "d"`),
		"b.json": cycloneData(`"description": "d"`), "d.json": dpsUse(`"license": ["MIT"]`), "p.json": dpi(`"Licenses": []`),
		"a.yaml": "base_model: a/b\ndatasets: [{path: c/d}]", "m.md": cardOf("library_name: x\npipeline_tag: y")} {
		for _, rec := range imported(t, file, text).Records {
			if rec.Lineage != nil || rec.Residency.Excluded != nil || rec.TrustRemoteCode != nil || rec.Consent.Status != "" || rec.License.TDM != "" ||
				rec.Split != "" || len(rec.Shape.Modalities) != 0 || len(rec.Sources) != 0 || len(rec.License.Restrictions) != 0 {
				t.Errorf("%s: got %+v", file, rec.Input)
			}
		}
	}
	if rec := imported(t, "c.md", cardOf("source_datasets: [original]")).Records[0]; rec.Lineage == nil {
		t.Error("original is a statement: there are no parents")
	}
	for text, want := range map[string][]string{`"encodingFormat": "image/png"`: {"image", "unknown"}, `"encodingFormat": "text/csv"`: nil} {
		rec := imported(t, "c.json", croissant(`"distribution": [{"@type": "cr:FileObject", "contentUrl": "https://x.example/a", `+text+`}]`)).Records[0]
		if !slices.Equal(rec.Shape.Modalities, want) {
			t.Errorf("%s: got %v; one file does not tell what all hold", text, rec.Shape.Modalities)
		}
	}
}

// filled answers everything that an import leaves unsaid in the way that lets a
// run pass, so that what is left to stop it is what the file says.
func filled(t *testing.T, ims ...*Import) *screening.ParsedSpec {
	t.Helper()
	opts := Options{RunRef: "r", Owner: "ana"}
	for _, im := range ims {
		if im.Run && im.Objective == "" {
			opts.Objective = "sft"
		}
	}
	d, err := Merge(ims, opts)
	if err != nil {
		t.Fatal(err)
	}
	s := &d.Spec
	s.Objective = screening.Objective{Kind: "classifier", Purposes: []string{"commercial_product"}, Markets: []string{"EU"}}
	s.DisclosureStatement = "It can be wrong."
	no, hex40 := false, strings.Repeat("0a", 20)
	for i := range s.Inputs {
		in := &s.Inputs[i]
		in.Description, in.Creators = "Some words.", []screening.Party{{Name: "A lab"}}
		in.TrustRemoteCode, in.Revision = &no, hex40
		if in.Lineage == nil {
			in.Lineage = &screening.Lineage{}
		}
		if len(in.License.Declared) == 0 && in.License.Concluded == "" {
			in.License.Declared = []screening.DeclaredLicense{{SPDX: "MIT"}}
		}
		if len(in.Sources) == 0 {
			in.Sources = []screening.Source{{Kind: "licensed"}}
		}
		if in.Consent.Status == "" {
			in.Consent.Status = "not_applicable"
		}
		in.Split = "train"
		*in = whole(*in)
		if len(in.Shape.Modalities) == 0 {
			in.Shape.Modalities = []string{"text"}
		}
		in.Residency.StoredIn, in.Residency.ProcessedIn = []string{"DE"}, []string{"DE"}
		if in.Residency.Excluded == nil {
			in.Residency.Excluded = []string{}
		}
	}
	for _, tag := range screening.DisclosureTags() {
		state := "absent"
		if tag.Protective {
			state = "present"
		}
		s.Disclosures = append(s.Disclosures, screening.Disclosure{Tag: tag.Name, State: state, Basis: "structured"})
	}
	human, stakes := true, false
	s.Evidence.Context = screening.Context{HighStakesTopic: &stakes, RecommendedHumanReview: &human}
	raw, err := json.Marshal(s, json.FormatNilSliceAsNull(true))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func outcome(t *testing.T, v *screening.Vocabulary, spec *screening.ParsedSpec) screening.Outcome {
	t.Helper()
	d, err := screening.Classify(spec, v, "2026-06-01")
	if err != nil {
		t.Fatal(err)
	}
	return d.Outcome
}

// TestRestrictionsAreNeverLost: a run on a record with one restriction does not
// pass, however it is spelled and even if it cannot be read; without it, it does.
func TestRestrictionsAreNeverLost(t *testing.T) {
	t.Parallel()
	v := vocabulary(t)
	for _, tt := range []struct {
		name, file string
		text       func(value string) string
		clean      string // a value with which the run passes
		values     []string
	}{
		{"Croissant licence", "c.json", func(s string) string { return croissant(`"license": ` + s) }, `"https://creativecommons.org/licenses/by/4.0/"`,
			[]string{`"CC BY-NC 4.0"`, `["MIT", "cc-by-nc-4.0"]`, `{"@type": "CreativeWork", "name": "terms"}`, `"None"`, `5`, `true`, `[[1]]`, `{"a": {"b": "c"}}`, `"` + strings.Repeat("x", 40<<10) + `"`}},
		{"Croissant licence beside another", "c.json", func(s string) string { return croissant(`"license": "MIT", "sc:license": ` + s) }, `"MIT"`,
			[]string{`"CC BY-NC 4.0"`, `"TBD"`, `{}` + `, "http://schema.org/license": "research only"`}},
		{"Croissant use", "c.json", func(s string) string { return croissant(`"license": "MIT", "usageInfo": ` + s) }, "null",
			[]string{`"http://purl.obolibrary.org/obo/DUO_0000018"`, `{"@id": "DUO:0000042"}`, `{"odrl:prohibition": "x"}`, `"see the site"`, `7`}},
		{"Croissant prose", "c.json", func(s string) string { return croissant(`"license": "MIT", "description": ` + s) }, `"Plain words."`,
			[]string{`"For non-commercial use."`, `{"en": "for academic use only"}`, `"This may not be used to train models."`, `"Not available in the European Union."`}},
		{"Croissant part", "c.json", func(s string) string {
			return croissant(`"license": "MIT", "distribution": [{"@type": "cr:FileObject", "name": "a", "contentUrl": "https://x.example/a", "sha256": "` + strings.Repeat("a", 64) + `", "license": ` + s + `}]`)
		}, `"MIT"`, []string{`"cc-by-nc-4.0"`, `"other"`}},
		{"Croissant parent", "c.json", func(s string) string { return croissant(`"license": "MIT", "isBasedOn": ` + s) }, "null",
			[]string{`{"@id": "https://x.example/p", "license": "cc-by-nc-4.0"}`, `["x"]`, `5`, `{"a": 1}`}},
		{"unknown term of RAI", "c.json", func(s string) string { return croissant(`"license": "MIT", "rai:contentWarning": ` + s) }, "null", []string{`"violence"`, `5`}},
		{"card licence", "c.md", func(s string) string { return cardOf("license: " + s + "\nsource_datasets: [original]") }, "mit",
			[]string{"cc-by-nc-4.0", "CC BY-NC 4.0", "[mit, cc-by-nc-sa-4.0]", "{a: mit, b: cc-by-nc-4.0}", "other", "unknown", "no", "5", "[[1]]"}},
		{"card licence in another case", "c.md", func(s string) string { return cardOf("license: mit\nLICENSE: " + s + "\nsource_datasets: [original]") }, "mit", []string{"cc-by-nc-4.0", "other"}},
		{"card, EU", "c.md", func(s string) string { return cardOf("pretty_name: d\nlicense: mit\nextra_gated_eu_disallowed: " + s) }, "false", []string{"true", "yes", `"True"`, "1", "[a]"}},
		{"card, prompt", "c.md", func(s string) string { return cardOf("pretty_name: d\nlicense: mit\nextra_gated_prompt: " + s) }, "null", []string{"sign here", "5", "[a, b]"}},
		{"card, unknown key", "c.md", func(s string) string { return cardOf("pretty_name: d\nlicense: mit\nhouse_rules: " + s) }, "be kind", []string{"no commercial use", "[a, research use only]"}},
		{"card, body", "c.md", func(s string) string { return cardOf("pretty_name: d\nlicense: mit") + s }, "Plain words.", []string{"For non-commercial use.", "\xff"}},
		{"card, second front matter", "c.md", func(s string) string { return "---\npretty_name: d\nlicense: mit\n---\n" + s + "# Card\n" }, "---\n\nA ruler above and below.\n\n---\n",
			[]string{"---\nlicense: other\n---\n", "\n---\ntags: [a]\nlicense: x\n---\n"}},
		{"SPDX under element", "s.json", func(s string) string {
			return `{"@context": "https://spdx.org/rdf/3.0.1/spdx-context.jsonld", "element": [{"type": "dataset_DatasetPackage", "spdxId": "urn:d", "name": "d", "dataset_hasSensitivePersonalInformation": ` + s +
				`}, {"type": "Relationship", "from": "urn:d", "relationshipType": "hasDeclaredLicense", "to": "https://spdx.org/licenses/MIT"}]}`
		}, `"no"`, []string{`"yes"`}},
		{"SPDX sensitive", "s.json", func(s string) string {
			return spdxDataset(`"dataset_hasSensitivePersonalInformation": ` + s + `}, {"type": "Relationship", "from": "urn:d", "relationshipType": "hasDeclaredLicense", "to": ["https://spdx.org/licenses/MIT"]`)
		}, `"no"`, []string{`"yes"`, `"noAssertion"`, `"YES"`, `5`, `["yes"]`, `{"a": "yes"}`}},
		{"SPDX licence", "s.json", func(s string) string {
			return spdxDataset(`"x": 1}, {"type": "Relationship", "from": "urn:d", "relationshipType": "hasDeclaredLicense", "to": ` + s)
		}, `"https://spdx.org/licenses/MIT"`, []string{`["https://spdx.org/licenses/CC-BY-NC-4.0"]`, `"urn:nowhere"`, `["https://spdx.org/licenses/MIT", "urn:other"]`, `5`}},
		{"CycloneDX sensitive", "b.json", func(s string) string { return cycloneData(`"sensitiveData": ` + s) }, "[]", []string{`["health"]`, `"health"`, `5`, `[{"a": "b"}]`, `["TBD"]`}},
		{"CycloneDX words", "b.json", func(s string) string { return cycloneData(`"description": ` + s) }, `"Plain words."`, []string{`"For non-commercial use."`, `{"a": "research use only"}`}},
		{"CycloneDX licence", "b.json", func(s string) string {
			return `{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{"type": "data", "name": "d", "licenses": ` + s + `, "data": [{"type": "dataset"}]}]}`
		}, `[{"expression": "MIT"}]`, []string{`[{"expression": "CC-BY-NC-4.0"}]`, `[{"license": {"name": "House"}}]`, `[{"licence": 5}]`, `[{"license": {"id": "MIT"}}, {"license": {}}]`}},
		{"D&TA excluded", "d.json", func(s string) string { return dpsUse(`"license": ["MIT"], "storage-forbidden": ` + s) }, "[]",
			[]string{`[{"country": "DE"}]`, `[{"country": "Atlantis"}]`, `["DE"]`, `"Germany"`}},
		{"DPI licence", "p.json", func(s string) string { return dpi(`"Licenses": [` + s + `]`) }, `{"License": "MIT License", "License URL": ""}`,
			[]string{`{"License": "OpenAI", "License URL": ""}`, `{"License": "CC BY-NC 4.0"}`, `{"License": "MIT License"}, {"License": "Unspecified"}`, `5`, `"Various"`}},
		{"DPI other opinion", "p.json", func(s string) string {
			return dpi(`"Licenses": [{"License": "MIT License"}], "Inferred Metadata": {"HF Yaml License": ` + s + `}`)
		}, `"MIT License"`, []string{`"CC BY-NC 4.0"`, `"Custom terms"`}},
		{"Axolotl data", "a.yaml", func(s string) string { return "base_model: a/b\ndatasets: [{path: " + s + "}]" }, "c/d",
			[]string{"./data", "/data", "alpaca", `"${DATA}"`, "TBD", "[a]", "{a: b}", "data.jsonl"}},
		{"Axolotl program", "a.yaml", func(s string) string { return "base_model: a/b\ndatasets: [{path: c/d, type: " + s + "}]" }, "alpaca", []string{"rwd.transform"}},
		{"Axolotl base model", "a.yaml", func(s string) string { return "base_model: " + s + "\ndatasets: [{path: c/d}]" }, "a/b", []string{"./out", "/tmp/x", `"${MODEL}"`, "[a]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := outcome(t, v, filled(t, imported(t, tt.file, tt.text(tt.clean)))); got != screening.OutcomeAdmit {
				t.Errorf("the clean one: %v; the test shows nothing", got)
			}
			for _, s := range tt.values {
				im, err := Read(tt.file, []byte(tt.text(s)))
				if err != nil {
					continue // nothing was imported
				}
				if got := outcome(t, v, filled(t, im)); got == screening.OutcomeAdmit {
					t.Errorf("%.60s: admitted\n%+v\n%+v", s, im.Records[0].Input, im.Findings)
				}
			}
		})
	}
}

// TestOpenPointsEscalate: whatever code keeps a point open, a term of the vocabulary
// acts on it; what is only told does nothing.
func TestOpenPointsEscalate(t *testing.T) {
	t.Parallel()
	v := vocabulary(t)
	for _, code := range []Code{Unresolved, Contradiction, Restriction, Unreadable, Checksum, Missing, UnknownKey, Placeholder, Malformed, Note} {
		im := imported(t, "c.md", cardOf("pretty_name: d\nlicense: mit\nsource_datasets: [original]"))
		im.Findings = append(im.Findings, Finding{code, "dataset", "", "is so"})
		want := screening.OutcomeAdmit
		if slices.Contains(openCodes, code) {
			want = screening.OutcomeEscalate
		}
		if got := outcome(t, v, filled(t, im)); got != want {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
	}
}

// TestOtherOpinions: each opinion of a licence counts with what it restricts.
func TestOtherOpinions(t *testing.T) {
	t.Parallel()
	rec := imported(t, "p.json", dpi(`"Licenses": [{"License": "MIT License"}], "Inferred Metadata": {"HF Yaml License": "CC BY-NC 4.0"}`)).Records[0]
	if codes, _ := rec.License.Stated(); !slices.Contains(codes, "nc") {
		t.Errorf("got %v", codes)
	}
}

// TestWordsNameNoLicence: what a card says of its licence in a section is for a person.
func TestWordsNameNoLicence(t *testing.T) {
	t.Parallel()
	im := imported(t, "c.md", "---\npretty_name: d\n---\n# Card\n\n## Licensing Information\n\nMIT\n")
	if rec := im.Records[0]; len(rec.License.Declared) != 0 || !slices.ContainsFunc(im.Findings, func(f Finding) bool { return f.Code == Unresolved && f.Field == "license" }) {
		t.Errorf("got %+v, %+v", rec.License, im.Findings)
	}
}

// TestElementsWithoutIDs: what cannot be referred to is a record all the same.
func TestElementsWithoutIDs(t *testing.T) {
	t.Parallel()
	im := imported(t, "s.json", `{"@context": "https://spdx.org/rdf/3.0.1/spdx-context.jsonld", "@graph": [
		{"type": "dataset_DatasetPackage", "name": "a", "comment": "research use only"}, {"type": "dataset_DatasetPackage", "name": "b"},
		{"type": "Relationship", "relationshipType": "hasDeclaredLicense", "to": ["https://spdx.org/licenses/MIT"]}]}`)
	if len(im.Records) != 2 || !slices.Equal(im.Records[0].License.Restrictions, []string{"unknown"}) || len(im.Records[1].License.Restrictions) != 0 {
		t.Errorf("got %+v", im.Records)
	}
	for _, rec := range im.Records {
		if len(rec.License.Declared) != 0 {
			t.Errorf("a relationship from nowhere gives a licence: %+v", rec.License)
		}
	}
}

// TestForeignConclusions: what the author of a BOM concluded settles nothing here
// by itself, and is taken over all the same.
func TestForeignConclusions(t *testing.T) {
	t.Parallel()
	v := vocabulary(t)
	concluded := func(declared string) string {
		return spdxDataset(`"x": 1}, {"type": "simplelicensing_SimpleLicensingText", "spdxId": "urn:l", "name": "` + declared + `"},
			{"type": "Relationship", "from": "urn:d", "relationshipType": "hasDeclaredLicense", "to": ["urn:l"]},
			{"type": "Relationship", "from": "urn:d", "relationshipType": "hasConcludedLicense", "to": ["https://spdx.org/licenses/MIT"]`)
	}
	for declared, want := range map[string]screening.Outcome{"MIT": screening.OutcomeAdmit, "house terms": screening.OutcomeEscalate} {
		im := imported(t, "s.json", concluded(declared))
		if got := outcome(t, v, filled(t, im)); got != want || im.Records[0].License.Concluded != "MIT" {
			t.Errorf("%s: got %v, %+v", declared, got, im.Records[0].License)
		}
	}
}

// TestCredentialsAreNotKept: a run file with one stays out of the spec.
func TestCredentialsAreNotKept(t *testing.T) {
	t.Parallel()
	const run = "base_model: lab/base\ndatasets: [{path: lab/talk}]\n"
	for text, secret := range map[string]bool{
		run: false, run + "hub_token: abcdef": true, run + "wandb_api_key: x1": true, run + "hf_use_auth_token: true": false, run + "add_bos_token: x": false,
		run + "special_tokens: {pad_token: <pad>}": false, run + "hub_token: ${HF_TOKEN}": false, run + "note: hf_abcdefghijklmnopqrstuvwxyz": true,
		run + "env: [{name: HF_TOKEN, value: zzz}]": true, run + "env: [{name: STORAGE_URI, value: zzz}]": false, run + "password: TBD": false,
		"base_model: lab/base\ndatasets: [{path: \"https://ana:zzz@data.example/d\"}]\n": true,
	} {
		im := imported(t, "a.yaml", text)
		d := merged(t, Options{}, im)
		if kept := len(d.Spec.Sources[0].Bytes) > 0; kept == secret || d.Spec.Sources[0].SHA256 != im.SHA256.String() {
			t.Errorf("%q: kept %t", text, kept)
		}
		if raw, err := d.YAML(); err != nil || secret && strings.Contains(string(raw), "zzz") {
			t.Errorf("%q: %v\n%s", text, err, raw)
		}
	}
}
