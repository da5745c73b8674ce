package formats

import (
	"slices"
	"testing"

	"weir/screening"
)

// TestTagsAreKept: what a file says of a tag in a code is stated; what only its words
// speak of is a hint, which nothing clears. Whatever the spelling, neither is lost.
func TestTagsAreKept(t *testing.T) {
	t.Parallel()
	const hint = "inferred"
	card := func(s string) string { return cardOf("pretty_name: d\nlicense: mit\n" + s) }
	body := func(s string) string { return cardOf("pretty_name: d\nlicense: mit") + s }
	for _, tt := range []struct{ file, text, tag, state, basis string }{
		{"c.md", card("Gated: auto"), "gated_access", "present", "structured"},
		{"c.md", card("gated: [manual]"), "gated_access", "present", "structured"},
		{"c.md", card("gated: {type: manual}"), "gated_access", "present", "structured"},
		{"c.md", card("extra-gated-fields: {Name: text}"), "gated_access", "present", "structured"},
		{"c.md", card("extra_gated_eu_disallowed: on"), "geo_restriction", "present", "structured"},
		{"c.md", card("tags: [Not For All Audiences]"), "not_for_all_audiences", "present", "structured"},
		{"c.md", card("tags: synthetic, cars"), "synthetic", "present", "structured"},
		{"c.md", card("tags: [kids-drawings]"), "minors", "present", hint},
		{"c.md", card("tags: [face_recognition]"), "biometric", "present", hint},
		{"c.md", card("extra_gated_fields: {Birthday: date_picker}"), "not_for_all_audiences", "present", hint},
		{"c.md", card("annotations-creators: Machine_Generated"), "model_generated", "present", "structured"},
		{"c.md", card("annotations_creators: [annotated by ChatGPT]"), "model_generated", "present", hint},
		{"c.md", body("Registration is required."), "gated_access", "present", hint},
		{"c.md", body("Access requires signing a DUA."), "gated_access", "present", hint},
		{"c.md", body("Participants did not give consent."), "consent", "absent", hint},
		{"c.md", body("Collected without informed consent."), "consent", "absent", hint},
		{"c.md", body("Consent was later withdrawn by some."), "consent", "absent", hint},
		{"c.md", body("The ethics board waived consent."), "consent", "absent", hint},
		{"c.md", body("Rights for text and data mining are reserved."), "tdm_reserved", "present", hint},
		{"c.md", body("Authors who opted out are inside."), "tdm_reserved", "present", hint},
		{"c.md", body("Users must be 18 or older."), "not_for_all_audiences", "present", hint},
		{"c.json", croissant(`"isAccessibleForFree": false`), "gated_access", "present", hint},
		{"c.json", croissant(`"isAccessibleForFree": "False"`), "gated_access", "present", hint},
		{"c.json", croissant(`"keywords": "cars, not-for-all-audiences"`), "not_for_all_audiences", "present", hint},
		{"c.json", croissant(`"keywords": [{"@value": "child speech"}]`), "minors", "present", hint},
		{"c.json", croissant(`"recordSet": [{"@type": "cr:RecordSet", "rai:hasSyntheticData": true}]`), "synthetic", "present", "structured"},
		{"c.json", croissant(`"prov:wasGeneratedBy": {"prov:label": "x", "prov:wasAssociatedWith": [{"name": "ChatGPT"}]}`), "model_generated", "present", hint},
		{"s.json", spdxDataset(`"Dataset_DatasetAvailability": "registration"`), "gated_access", "present", "structured"},
		{"s.json", spdxDataset(`"dataset_datasetAvailability": "https://spdx.org/rdf/3.0.1/terms/Dataset/DatasetAvailabilityType/clickthrough"`), "gated_access", "present", "structured"},
		{"s.json", spdxDataset(`"dataset_datasetAvailability": ["directDownload"]`), "gated_access", "unknown", "structured"},
		{"s.json", spdxDataset(`"dataset_confidentialityLevel": "RED"`), "confidentiality", "unknown", "structured"},
		{"s.json", spdxDataset(`"hasSensitivePersonalInformation": "noAssertion"`), "sensitive_personal", "unknown", "structured"},
		{"b.json", cycloneData(`"Sensitive-Data": "health"`), "sensitive_personal", "present", "structured"},
		{"b.json", cycloneData(`"Classification": "PII"`), "personal_data", "present", hint},
		{"d.json", dpsUse(`"classification": [{"regulation": ["pii", "phi"]}]`), "personal_data", "unknown", "structured"},
		{"d.json", dpsUse(`"Classification": {"Regulation": {"Code": "PHI"}}`), "health", "unknown", "structured"},
		{"d.json", dpsUse(`"processing_excluded": {"countries": ["CN", "RU"]}`), "geo_restriction", "present", "structured"},
		{"p.json", dpi(`"model generated": "GPT-4"`), "model_generated", "present", "structured"},
		{"p.json", dpi(`"Text Topics": ["Children"]`), "minors", "present", hint},
	} {
		rec := imported(t, tt.file, tt.text).Records[0]
		if !slices.ContainsFunc(rec.Disclosures, func(d screening.Disclosure) bool {
			return d.Tag == tt.tag && d.State == tt.state && d.Basis == tt.basis
		}) {
			t.Errorf("%s: %s is not %s (%s): %+v", tt.text, tt.tag, tt.state, tt.basis, rec.Disclosures)
		}
	}
}

// TestPlainTextHintsAtNothing: what cards say all the time. Hints that come with
// everything would not be looked at.
func TestPlainTextHintsAtNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Licensed for commercial and private use.", "The train split has no overlap with the test split.", "There are 18 classes and 21 languages.",
		"We do not require an account.", "Informed consent was obtained from all.", "Data was collected in the European Union.", "This model was trained on research papers.", "Signals are sampled at 16 kHz.",
		"Options are listed below.", "Not all records are used.", "Adults and teenagers were asked.", "The software is provided without restriction, including without limitation the rights to use, copy, modify.",
		"license: mit", "- **License:** [MIT](https://opensource.org/licenses/MIT)", "License: [More Information Needed]", "| License | MIT License |", "## License\n\nSee below.", "The model can be used by everybody, commercially too."} {
		im := imported(t, "c.md", cardOf("pretty_name: d\nlicense: mit")+text+"\n")
		if rec := im.Records[0]; len(rec.Disclosures) > 0 || len(rec.License.Restrictions) > 0 || len(im.Findings) > 0 {
			t.Errorf("%s\n%+v\n%+v", text, rec.Disclosures, im.Findings)
		}
	}
}

// TestConsentIsClaimedByDocumentsOnly: an address claims consent; no word does.
func TestConsentIsClaimedByDocumentsOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`"https://x.example/consent"`: "claimed", `["https://x.example/consent"]`: "claimed", `{"location": "https://x.example/consent"}`: "claimed",
		`"not obtained"`: "unknown", `false`: "unknown", `"withdrawn"`: "unknown", `["https://x.example/consent", "withheld"]`: "unknown", `{"location": "https://x.example/consent", "status": "withdrawn"}`: "unknown",
		`"TBD"`: "unknown", `{"a": "b"}`: "unknown", `[]`: "", `null`: "", `[null]`: "", `[{}]`: "unknown"} {
		im := imported(t, "d.json", dpsUse(`"consents": `+text))
		if got := im.Records[0].Consent.Status; got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
		if open := slices.ContainsFunc(im.Findings, func(f Finding) bool { return f.Field == "consent" && f.Open() }); open != (want == "unknown" && text != `"TBD"`) {
			t.Errorf("%s: open %t", text, open)
		}
	}
}
