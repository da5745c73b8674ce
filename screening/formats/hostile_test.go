package formats

import (
	"errors"
	"strings"
	"testing"

	"weir/screening"
)

// spelling is one place of a format where a restriction can stand: with the clean
// value a run passes, with any of the others it must not.
type spelling struct {
	name, file string
	text       func(value string) string
	clean      string
	values     []string
}

// neverLost holds a table of them: a run on a record with one restriction does not
// pass, however it is spelled and even if it cannot be read.
func neverLost(t *testing.T, table []spelling) {
	v := vocabulary(t)
	for _, tt := range table {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			im := imported(t, tt.file, tt.text(tt.clean))
			if got := outcome(t, v, filled(t, im)); got != screening.OutcomeAdmit {
				t.Errorf("the clean one: %v; the test shows nothing\n%+v\n%+v", got, im.Records[0].Input, im.Findings)
			}
			for _, s := range tt.values {
				im, err := Read(tt.file, []byte(tt.text(s)))
				if refused := (*RefusedError)(nil); errors.As(err, &refused) && refused.Reason == NotJSON {
					t.Errorf("%.90s: %v; the test shows nothing", s, err)
				}
				if err != nil {
					continue // nothing was imported
				}
				if got := outcome(t, v, filled(t, im)); got == screening.OutcomeAdmit {
					t.Errorf("%.90s: admitted\n%+v\n%+v", s, im.Records[0].Input, im.Findings)
				}
			}
		})
	}
}

var goodSum = `"sha256": "` + strings.Repeat("a", 64) + `"`

func TestCroissantSpellings(t *testing.T) {
	t.Parallel()
	neverLost(t, []spelling{
		{"licence as a JSON-LD value", "c.json", func(s string) string { return croissant(`"license": ` + s) }, `{"@value": "MIT"}`,
			[]string{`{"@value": "cc-by-nc-4.0"}`, `{"@list": ["cc-by-nc-4.0"]}`, `{"@set": [{"@id": "https://creativecommons.org/licenses/by-nc/4.0/"}]}`,
				`{"sc:name": "CC BY-NC 4.0"}`, `{"@type": "sc:CreativeWork", "https://schema.org/url": "https://creativecommons.org/licenses/by-nc/4.0/"}`, `{"@type": "sc:CreativeWork"}`,
				`[{"@graph": [{"name": "house terms"}]}]`, `"MIT", "sc:LICENSE": "house terms"`, `"MIT", "licence": "house terms"`, `"MIT", "dct:rights": "house terms"`,
				`"MIT", "dct:accessRights": "https://x.example/terms"`, `"MIT", "license ": "house terms"`, `"MIT", "cc:license": {"@id": "https://x.example/terms"}`,
				`"MIT", "x:termsOfUse": ["house"]`}},
		{"context of its own", "c.json", func(s string) string {
			return `{"@context": {"@vocab": "https://x.example/", "sc": "https://schema.org/", "cc": "http://creativecommons.org/ns#", "terms": "sc:license", "kind": "@type"}, "@type": "sc:Dataset", "conformsTo": "http://mlcommons.org/croissant/1.1", ` + s + `}`
		}, `"license": "MIT"`, []string{`"license": "cc-by-nc-4.0"`, `"license": "MIT", "cc:license": {"@id": "https://x.example/house"}`, `"license": "MIT", "terms": "house"`, `"license": "MIT", "https://y.example/license": "house"`}},
		{"words in an address", "c.json", func(s string) string { return croissant(`"license": "MIT", "about": ` + s) }, `"https://x.example/by"`,
			[]string{`"https://creativecommons.org/licenses/by-nc/4.0/"`, `"see http://creativecommons.org/licenses/by-nd/4.0"`}},
		{"part", "c.json", func(s string) string {
			return croissant(`"license": "MIT", "distribution": [{"@type": "cr:FileObject", "name": "a", "contentUrl": "https://x.example/a", ` + goodSum + `}, {"@type": "cr:FileSet", "name": "b", "x": 1` + s + `}]`)
		}, "", []string{`, "license": "house"`, `, "sc:usageInfo": "http://purl.obolibrary.org/obo/DUO_0000018"`, `, "usageInfo": "house"`, `, "prov:wasDerivedFrom": {"@id": "https://x.example/p"}`,
			`, "isBasedOn": {"@id": "https://x.example/p", "license": "house"}`, `, "conditionsOfAccess": "sign here"`, `, "cr:containedIn": {"license": "house"}`}},
		{"record set", "c.json", func(s string) string {
			return croissant(`"license": "MIT", "recordSet": [{"@type": "cr:RecordSet", "field": [{"@type": "cr:Field", "name": "f"` + s + `}]}]`)
		}, "", []string{`, "sc:usageInfo": {"@id": "DUO:0000042"}`, `, "license": "house"`, `, "prov:wasDerivedFrom": {"@id": "https://x.example/p"}`}},
		{"keywords", "c.json", func(s string) string { return croissant(`"license": "MIT", "keywords": ` + s) }, `["cars", "region:us"]`,
			[]string{`["not-for-all-audiences"]`, `"cars, Not-For-All-Audiences"`, `[{"@value": "nsfw"}]`, `["license:cc-by-nc-4.0"]`, `["children-speech"]`, `[{"@type": "DefinedTerm", "name": "medical"}]`}},
		{"made by a program", "c.json", func(s string) string { return croissant(`"license": "MIT", "prov:wasGeneratedBy": ` + s) }, `[{"@type": "prov:Activity", "prov:label": "cleaning"}]`,
			[]string{`[{"@type": "prov:Activity", "prov:label": "x", "prov:wasAssociatedWith": {"@type": "prov:SoftwareAgent", "name": "GPT-4"}}]`}},
	})
}

func TestCardSpellings(t *testing.T) {
	t.Parallel()
	card := func(rest string) func(string) string {
		return func(s string) string { return cardOf("pretty_name: d\n" + rest + s) }
	}
	neverLost(t, []spelling{
		{"other, and which", "c.md", card("license: "), "mit", []string{"other\nlicense_name: mit", "{a: other, b: mit}\nlicense_name: mit", "[other]\nlicense_name: house", "Other\nlicense_link: https://x.example",
			"other\nlicense_name: mit\nlicense_details: house", "mit\nlicense-name: house", "mit\nlicense_details: house", "mit\nLicense Name: house", "mit\nlicence: house", "mit\nlicense_link: https://x.example/terms",
			"mit\nterms_of_use: house", "mit\nconfigs: [{config_name: a, license: house}]", "mit\ndataset_info: {license: house}", "mit\nrights: https://x.example", "mit\n\"license \": house", "!!str cc-by-nc-4.0", "!!null cc-by-nc-4.0", "!!binary bWl0", "!!float cc-by-nc-4.0", "&a cc-by-nc-4.0", "|\n  cc-by-nc-4.0", "\"cc-by\\u002dnc-4.0\"", "[[mit], [cc-by-nc-4.0]]"}},
		{"tags", "c.md", card("license: mit\ntags: "), "[cars]", []string{"not-for-all-audiences", "a, not-for-all-audiences", "[Not-For-All-Audiences]", "[not_for_all_audiences]", "[not for all audiences]", "{a: [not-for-all-audiences]}",
			"[license:cc-by-nc-4.0]", "[\"license: house\"]", "[medical-imaging]", "[children-speech]", "[hate_speech]", "[NSFW]", "[\"medical, cars\"]"}},
		{"tasks", "c.md", card("license: mit\ntask_ids: "), "[intent-classification]", []string{"[hate-speech-detection]"}},
		{"gate", "c.md", card("license: mit\n"), "gated: auto", []string{"extra-gated-prompt: agree", "EXTRA_GATED_PROMPT: agree", "extra_gated_eu_disallowed: yes", "Extra_Gated_EU_Disallowed: True",
			"extra-gated-eu-disallowed: true", "extra_gated:\n  eu_disallowed: true", "extra_gated_fields: {I agree to the house terms: checkbox}", "extra_gated_fields:\n- I agree: {type: checkbox}",
			"extra_gated_fields: {Date of birth: date_picker}", "extra_gated_fields: {Age: text}"}},
		{"made by machines", "c.md", card("license: mit\nannotations_creators: "), "[expert-generated]", []string{"machine-generated", "[Machine-Generated]", "[machine_generated]", "[model-generated]", "[llm generated]", "{a: [machine-generated]}", "[\"expert-generated, machine-generated\"]", "[GPT-4]"}},
		{"body", "c.md", func(s string) string { return cardOf("pretty_name: d\nlicense: mit") + s }, "Plain words.", []string{"license: cc-by-nc-4.0\n---\n", "extra_gated_eu_disallowed: true\n---\n", "This cannot be used for commercial purposes.",
			"Commercial use is not permitted.", "Commercial use is strictly prohibited", "It may not be used commercially.", "Only to be used for research.", "Strictly for academic purposes.", "For personal use only.",
			"CC BY‑NC 4.0", "NON‐COMMERCIAL", "non\u200bcommercial", "non\ncommercial", "**non**-commercial", "Users may not use the data to develop or train models.", "All rights for text and data mining are reserved.", "Data subjects who opted out are still inside.",
			"You must be 18 or older.",
			"[CC](https://creativecommons.org/licenses/by-nc/4.0/)", "BY-NC-SA", "Nicht kommerzielle Nutzung.", "非商用"}},
		{"two front matters", "c.md", func(s string) string { return "---\npretty_name: d\nlicense: mit\n---\n" + s }, "# Card\n", []string{"---\nlicense: other\n---\n", "# Card\n\n---\nlicense: house\n---\n", "\ufeff---\nlicense: house\n---\n"}},
	})
}

const mitOfSPDX = `"x": 1}, {"type": "Relationship", "from": "urn:d", "relationshipType": "hasDeclaredLicense", "to": ["https://spdx.org/licenses/MIT"]`

func TestSPDXSpellings(t *testing.T) {
	t.Parallel()
	licence := func(s string) string {
		return spdxDataset(`"x": 1}, {"type": "Relationship", "spdxId": "urn:r", ` + s)
	}
	const term = "https://spdx.org/rdf/3.0.1/terms/"
	neverLost(t, []spelling{
		{"key", "s.json", func(s string) string { return spdxDataset(s + `, ` + mitOfSPDX) }, `"dataset_hasSensitivePersonalInformation": "no"`,
			[]string{`"Dataset_HasSensitivePersonalInformation": "yes"`, `"hasSensitivePersonalInformation": "yes"`, `"` + term + `Dataset/hasSensitivePersonalInformation": "yes"`, `"dataset:hasSensitivePersonalInformation": "yes"`,
				`"dataset_hasSensitivePersonalInformation": "https://spdx.org/rdf/3.0.1/terms/Core/PresenceType/yes"`, `"dataset_hasSensitivePersonalInformation": ["no", "yes"]`, `"dataset_hasSensitivePersonalInformation": {"@value": "yes"}`,
				`"dataset_hasSensitivePersonalInformation": "no", "dataset_HasSensitivePersonalInformation": "yes"`, `"dataset_contentWarning": "violence"`, `"dataset_license": "house"`}},
		{"class", "s.json", func(s string) string {
			return `{"@context": "https://spdx.org/rdf/3.0.1/spdx-context.jsonld", "@graph": [{"type": "dataset_DatasetPackage", "spdxId": "urn:d", "name": "m"}, {` + s + `, "name": "d", ` + mitOfSPDX + `}]}`
		}, `"type": "software_Package", "spdxId": "urn:p"`,
			[]string{`"type": "` + term + `Dataset/DatasetPackage", "spdxId": "urn:p", "dataset_hasSensitivePersonalInformation": "yes"`, `"type": ["dataset_DatasetPackage"], "spdxId": "urn:p", "dataset_hasSensitivePersonalInformation": "yes"`,
				`"@type": "DatasetPackage", "spdxId": "urn:p", "dataset_hasSensitivePersonalInformation": "yes"`, `"type": "Dataset_datasetpackage", "spdxId": "urn:p", "dataset_hasSensitivePersonalInformation": "yes"`,
				`"type": "software_Package", "spdxId": "urn:p", "dataset_hasSensitivePersonalInformation": "yes"`}},
		{"licence relationship", "s.json", licence, `"from": "urn:d", "relationshipType": "hasDeclaredLicense", "to": ["https://spdx.org/licenses/MIT"]`,
			[]string{`"from": "urn:d", "relationshipType": "` + term + `Core/RelationshipType/hasDeclaredLicense", "to": ["urn:house"]`, `"from": "urn:d", "relationshipType": "HasDeclaredLicense", "to": ["urn:house"]`,
				`"from": {"@id": "urn:d"}, "relationshipType": "hasDeclaredLicense", "to": ["urn:house"]`, `"from": ["urn:d"], "relationshipType": "hasDeclaredLicense", "to": ["urn:house"]`,
				`"from": "urn:d", "relationshipType": "hasDeclaredLicense", "to": [{"@id": "urn:house"}]`, `"from": "urn:d", "relationshipType": "hasDeclaredLicense", "to": {"spdxId": "urn:l", "simplelicensing_licenseExpression": "CC-BY-NC-4.0"}`,
				`"from": "urn:house", "relationshipType": "hasDeclaredLicense", "to": ["urn:d"]`, `"From": "urn:d", "RelationshipType": "hasDeclaredLicense", "To": ["urn:house"]`,
				`"from": "urn:d", "relationshipType": "hasDeclaredLicense", "to": [5]`, `"from": "urn:d", "relationshipType": "hasDeclaredLicense", "to": []`, `"from": "urn:d", "relationshipType": 5, "to": "urn:house"`}},
		{"licence element", "s.json", func(s string) string {
			return licence(`"from": "urn:d", "relationshipType": "hasDeclaredLicense", "to": ["urn:l"]}, {"spdxId": "urn:l", ` + s)
		}, `"type": "simplelicensing_LicenseExpression", "simplelicensing_licenseExpression": "MIT"`,
			[]string{`"type": "expandedlicensing_ConjunctiveLicenseSet", "expandedlicensing_member": ["https://spdx.org/licenses/MIT", "https://spdx.org/licenses/CC-BY-NC-4.0"]`,
				`"type": "expandedlicensing_DisjunctiveLicenseSet", "expandedlicensing_member": ["urn:house"]`, `"type": "simplelicensing_SimpleLicensingText", "name": "MIT", "simplelicensing_licenseText": "For non-commercial use."`,
				`"type": "expandedlicensing_CustomLicense", "name": "MIT", "simplelicensing_licenseText": "House terms."`, `"type": "simplelicensing_LicenseExpression"`, `"type": "simplelicensing_LicenseExpression", "simplelicensing_licenseExpression": ["MIT", "house"]`,
				`"type": "simplelicensing_LicenseExpression", "simplelicensing_licenseExpression": "MIT", "comment": "research use only"`}},
		{"licence of what is inside", "s.json", func(s string) string {
			return spdxDataset(`"y": 1, ` + mitOfSPDX + `}, {"type": "software_File", "spdxId": "urn:f", "name": "f"}, {"type": "Relationship", "from": "urn:d", "relationshipType": "contains", "to": ["urn:f"]},
				{"type": "Relationship", "from": "urn:f", "relationshipType": "hasDeclaredLicense", "to": ["` + s + `"]`)
		}, "https://spdx.org/licenses/MIT", []string{"urn:house", "https://spdx.org/licenses/CC-BY-NC-4.0"}},
		{"parents", "s.json", func(s string) string { return spdxDataset(mitOfSPDX + s) }, "", []string{
			`}, {"type": "Relationship", "from": "urn:p", "relationshipType": "ancestorOf", "to": ["urn:d"]`, `}, {"type": "Relationship", "from": "urn:d", "relationshipType": "descendantOf", "to": "urn:p"`,
			`}, {"type": "Relationship", "from": "urn:d", "relationshipType": "descendantOf", "to": [{"@id": "urn:p"}]`, `}, {"type": "LifecycleScopedRelationship", "from": "urn:d", "relationshipType": "hasInput", "to": ["urn:p"]`,
			`}, {"type": "Relationship", "from": "urn:p", "relationshipType": "copiedTo", "to": ["urn:d"]`, `}, {"type": "Relationship", "from": "urn:d", "relationshipType": "descendantOf", "completeness": "incomplete", "to": []`}},
		{"risk", "s.json", func(s string) string {
			return `{"@context": "https://spdx.org/rdf/3.0.1/spdx-context.jsonld", "@graph": [{"type": "ai_AIPackage", "spdxId": "urn:d", "name": "m", "ai_safetyRiskAssessment": ` + s + `, ` + mitOfSPDX + `},
				{"type": "dataset_DatasetPackage", "spdxId": "urn:e", "name": "d"}, {"type": "Relationship", "from": "urn:e", "relationshipType": "hasDeclaredLicense", "to": ["https://spdx.org/licenses/MIT"]}]}`
		}, `"low"`, []string{`"serious"`, `"high"`, `"HIGH"`, `"critical"`, `["high"]`, `"https://spdx.org/rdf/3.0.1/terms/AI/SafetyRiskAssessmentType/serious"`}},
	})
}

func TestCycloneDXSpellings(t *testing.T) {
	t.Parallel()
	component := func(s string) string {
		return `{"bomFormat": "CycloneDX", "specVersion": "1.7", "components": [{"type": "data", "bom-ref": "d", "name": "d", ` + s + `}]}`
	}
	const set = `"data": [{"type": "dataset", "name": "d"}], `
	neverLost(t, []spelling{
		{"data key", "b.json", func(s string) string {
			return component(`"licenses": [{"expression": "MIT"}], "data": [{"type": "dataset", ` + s + `}]`)
		}, `"sensitiveData": []`,
			[]string{`"SensitiveData": ["health"]`, `"sensitive_data": ["health"]`, `"contentWarning": "x", "license": "house"`, `"sensitiveData": {"a": ["health"]}`, `"sensitiveData": true`}},
		{"licences", "b.json", func(s string) string { return component(set + s) }, `"licenses": [{"license": {"id": "MIT"}}]`,
			[]string{`"Licenses": [{"license": {"id": "CC-BY-NC-4.0"}}]`, `"license": "house"`, `"licenses": {"license": {"name": "house"}}`, `"licenses": ["house"]`, `"licenses": [{"License": {"id": "CC-BY-NC-4.0"}}]`, `"licenses": [{"license": "house"}]`,
				`"licenses": [{"license": {"id": "MIT", "licensing": {"licenseTypes": ["academic"]}}}]`, `"licenses": [{"expression": "MIT", "licensing": {"licenseTypes": ["evaluation"]}}]`, `"licenses": [{"expression": "MIT", "acknowledgement": "concluded"}]`,
				`"licenses": [{"license": {"id": "LicenseRef-llama2", "acknowledgement": "concluded"}}, {"license": {"id": "MIT", "acknowledgement": "concluded"}}, {"license": {"id": "MIT"}}]`,
				`"licenses": [{"license": {"id": "MIT", "text": {"content": "For non-commercial use."}}}]`, `"licenses": [{"license": {"id": "MIT"}}], "evidence": {"licenses": [{"license": {"name": "house"}}]}`,
				`"licenses": [{"license": {"id": "MIT"}}], "patentAssertions": [{"assertionType": "ownership", "asserter": {"name": "x"}}]`,
				`"licenses": [{"expression": "MIT"}, {"expression": "CC-BY-NC-4.0"}]`, `"licenses": [{"license": {"id": "MIT"}, "expression": "CC-BY-NC-4.0"}]`, `"licenses": [{"license": {"id": "MIT", "text": {"encoding": "base64", "content": "aG91c2U="}}}]`,
				`"licenses": [{"license": {"id": "MIT"}}], "properties": [{"name": "hf:license", "value": "house"}]`, `"licenses": [{"license": {"id": "MIT"}}], "pedigree": {"ancestors": [{"type": "data", "name": "p", "licenses": [{"license": {"name": "house"}}]}]}`,
				`"licenses": [{"license": {"id": "MIT"}}], "externalReferences": [{"type": "license", "url": "https://x.example/terms"}]`, `"licenses": [{"license": {"id": "MIT"}}], "externalReferences": [{"type": "License", "url": "https://x.example/terms"}]`}},
		{"kinds", "b.json", func(s string) string {
			return `{"bomFormat": "CycloneDX", "specVersion": "1.7", "components": [{"type": "data", "name": "d", "licenses": [{"expression": "MIT"}], "data": [{"type": "dataset"}]}, {` + s + `, "licenses": [{"expression": "CC-BY-NC-4.0"}]}]}`
		}, `"type": "library", "name": "torch"`,
			[]string{`"type": "dataset", "name": "d"`, `"type": "Data", "name": "d", "data": [{"type": "dataset"}]`, `"type": "data", "name": "d", "data": [{"type": "Dataset"}]`, `"type": "DATA", "name": "d"`, `"type": "data", "name": "d"`, `"type": "ai-model", "name": "x"`,
				`"type": "Machine-Learning-Model", "name": "x"`, `"type": "library", "name": "x", "purl": "pkg:huggingface/a/b"`, `"type": "library", "name": "x", "ModelCard": {"a": 1}`, `"type": "application", "name": "x", "components": [{"type": "dataset", "name": "d"}]`,
				`"type": "file", "name": "x", "data": [{"type": "dataset", "sensitiveData": ["health"]}]`, `"name": "d"`}},
		{"training data of a model", "b.json", func(s string) string {
			return `{"bomFormat": "CycloneDX", "specVersion": "1.5", "components": [{"type": "machine-learning-model", "bom-ref": "m", "name": "m", "licenses": [{"expression": "MIT"}], "modelCard": {"modelParameters": {` + s + `}}},
				{"type": "data", "bom-ref": "d", "name": "d", "licenses": [{"expression": "MIT"}], "data": [{"type": "dataset"}]}]}`
		}, `"datasets": [{"ref": "d"}]`,
			[]string{`"datasets": [{"ref": "gone"}]`, `"datasets": {"ref": "gone"}`, `"datasets": ["gone"]`, `"Datasets": [{"ref": "gone"}]`, `"datasets": [{"type": "dataset", "name": "x", "sensitiveData": ["health"]}]`, `"datasets": [5]`}},
		{"distribution", "b.json", func(s string) string {
			return `{"bomFormat": "CycloneDX", "specVersion": "1.7", "metadata": {"distributionConstraints": ` + s + `}, "components": [{"type": "data", "name": "d", "licenses": [{"expression": "MIT"}], "data": [{"type": "dataset"}]}]}`
		}, `{"tlp": "CLEAR"}`, []string{`{"tlp": "RED"}`, `{"TLP": "AMBER_AND_STRICT"}`, `{"tlp": ["AMBER"]}`, `"RED"`, `{"tlp": "green"}`}},
		{"classification", "b.json", func(s string) string {
			return component(`"licenses": [{"expression": "MIT"}], "data": [{"type": "dataset", "classification": ` + s + `}]`)
		}, `"public"`, []string{`"Restricted"`, `"TBD"`, `["public", "PII"]`, `{"a": "secret"}`, `"not public"`, `5`}},
	})
}

func TestDataProvenanceSpellings(t *testing.T) {
	t.Parallel()
	use := func(rest string) func(string) string {
		return func(s string) string {
			return `{"source": {"title": "d", "version": "1.0.0"}, "provenance": {"date": "2025-01-01"}, "use": {"intended-purpose": [{"code": "ai-training"}], ` + rest + s + `}}`
		}
	}
	neverLost(t, []spelling{
		{"excluded places", "d.json", use(`"license": ["MIT"], `), `"storage-forbidden": []`, []string{`"storage_forbidden": ["DE"]`, `"Storage-Forbidden": ["DE"]`, `"storageForbidden": ["DE"]`, `"processing-excluded": {"country": ["DE", "FR"]}`,
			`"processing-excluded": {"countries": [{"code": "DE"}]}`, `"processing-excluded": [["DE"]]`, `"processing-excluded": true`}},
		{"regulations", "d.json", use(`"license": ["MIT"], `), `"classification": []`, []string{`"Classification": [{"Regulation": {"Code": "PHI"}}]`, `"classification": [{"regulation": ["pii", "phi"]}]`, `"classification": "PII"`, `"classification": [{"regulation": "phi"}]`, `"classification": [{"a": 1}]`}},
		{"licence", "d.json", use(""), `"license": "MIT"`, []string{`"License": "house"`, `"license": {"location": "https://x.example/terms"}`, `"licence": "house"`, `"license": [{"code": "other", "description": "house"}]`, `"license": "MIT", "license-terms": "house", "terms-of-use": "house"`}},
		{"purpose", "d.json", func(s string) string {
			return `{"source": {"title": "d", "version": "1.0.0"}, "provenance": {"date": "2025-01-01"}, "use": {"license": "MIT", "intended-purpose": ` + s + `}}`
		}, `[{"code": "ai-training"}]`, []string{`[{"code": "non-ai"}]`, `["ai-evaluation"]`, `[{"code": "Evaluation"}, {"code": "AI-testing"}]`}},
		{"rights", "d.json", use(`"license": "MIT", `), `"patent": "none"`, []string{`"patent": "EP1234"`, `"trademark": [{"name": "x"}]`}},
		{"method", "d.json", func(s string) string {
			return `{"source": {"title": "d", "version": "1.0.0"}, "provenance": {"date": "2025-01-01", ` + s + `}, "use": {"license": "MIT", "intended-purpose": ["ai-training"]}}`
		}, `"generation-method": [{"code": "licensed"}]`, []string{`"generation_method": [{"code": "machine-generated-mlops-generative"}]`, `"generationMethod": "machine-generated-mlops-generative"`, `"generation-method": {"code": ["sensor-and-iot-output-health"]}`,
			`"sub-provenance": {"source": "x"}`, `"Source": ["x"]`}},
	})
}

func TestInitiativeSpellings(t *testing.T) {
	t.Parallel()
	neverLost(t, []spelling{
		{"licences", "p.json", dpi, `"Licenses": [{"License": "MIT License"}]`, []string{`"licenses": [{"License": "CC BY-NC 4.0"}]`, `"Licenses": {"License": "house"}`, `"License": "house"`, `"Licenses": [{"license": "house"}]`, `"Licenses": [{"Licence": "house"}]`,
			`"Licenses": [{"License": "MIT License"}], "License Notes": "Partly written by a model whose makers forbid it."`, `"Licenses": [{"License": "MIT License"}], "Taken Down": "2024"`, `"Licenses": [{"License": "MIT License"}], "taken down": true`,
			`"Licenses": [{"License": "MIT License"}], "Inferred Metadata": {"GitHub License": "house"}`, `"Licenses": [{"License": "MIT License"}], "inferred metadata": {"HF YAML License": "house"}`,
			`"Licenses": [{"License": "MIT License"}], "License Use (DataProvenance)": "academic-only"`}},
		{"models", "p.json", func(s string) string { return dpi(`"Licenses": [{"License": "MIT License"}], ` + s) }, `"Model Generated": []`, []string{`"Model Generated": "GPT-4"`, `"model generated": ["GPT-4"]`, `"Model Generated": [{"name": "GPT-4"}]`}},
		{"topics", "p.json", func(s string) string { return dpi(`"Licenses": [{"License": "MIT License"}], ` + s) }, `"Topics": ["cars"]`, []string{`"Text Topics": ["Children"]`, `"Topics": ["Health"]`, `"Task Categories": ["Hate Speech Detection"]`}},
	})
}

// TestLicencesOfParents: what a file says of the licence of a parent is kept, all of it.
func TestLicencesOfParents(t *testing.T) {
	t.Parallel()
	parent := func(s string) string {
		return croissant(`"license": "MIT", "isBasedOn": {"@id": "https://x.example/p", "license": ` + s + `}`)
	}
	for text, want := range map[string]string{parent(`"MIT"`): "MIT", parent(`["llama2", "MIT"]`): "llama2 AND MIT", parent(`{"@value": "house"}`): "house", parent(`5`): "5",
		parent(`{"@id": "https://creativecommons.org/licenses/by-nc/4.0/"}`): "https://creativecommons.org/licenses/by-nc/4.0/", parent(`[{"url": "https://x.example/terms"}, {"name": "a"}]`): "https://x.example/terms AND a"} {
		if got := imported(t, "c.json", text).Records[0].Lineage.DerivedFrom[0].License; got != want {
			t.Errorf("%s: got %q", text, got)
		}
	}
	bom := imported(t, "b.json", `{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{"type": "data", "name": "d", "licenses": [{"expression": "MIT"}], "data": [{"type": "dataset"}, {"type": "dataset", "name": "e"}],
		"pedigree": {"ancestors": [{"type": "data", "name": "p", "licenses": [{"license": {"name": "house"}}, {"expression": "MIT"}]}]}}]}`)
	if len(bom.Records) != 2 {
		t.Fatalf("%d records", len(bom.Records))
	}
	for _, rec := range bom.Records {
		if rec.Lineage == nil || len(rec.Lineage.DerivedFrom) != 1 || rec.Lineage.DerivedFrom[0].License != "house AND MIT" {
			t.Errorf("got %+v", rec.Lineage)
		}
	}
}
