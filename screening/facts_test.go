package screening

import (
	"slices"
	"strings"
	"testing"
)

// TestFacts gives every fact of the table in its states: not stated, known, left open.
func TestFacts(t *testing.T) {
	t.Parallel()
	const silence, left = "not stated", "open"
	hex40 := strings.Repeat("0aF", 13) + "0"
	for _, tt := range []struct{ fact, input, want, pointer string }{
		{"kind", "", "dataset", "/kind"},
		{"sources.kind", "", silence, "/sources"},
		{"sources.kind", "sources: []", silence, "/sources"},
		{"sources.kind", "sources: [{kind: licensed}, {kind: synthetic}]", "licensed,synthetic", "/sources"},
		{"sources.kind", "sources: [{kind: licensed}, {kind: unknown}]", "licensed,unknown " + left, "/sources"},
		{"collection.geography", "", silence, "/collection/geography"},
		{"collection.geography", "collection: {geography: [DE, TBD, \"\"]}", "DE " + left, "/collection/geography"},
		{"license.status", "", silence, "/license"},
		{"license.status", "license: {declared: [{spdx: MIT}]}", "identified", "/license"},
		{"license.status", "license: {declared: [{raw: mine}]}", "unidentified", "/license/declared/0"},
		{"license.restrictions", "", silence, "/license"},
		{"license.restrictions", "license: {declared: [{spdx: MIT}]}", "", "/license"},
		{"license.restrictions", "license: {declared: [{spdx: CC-BY-NC-4.0}]}", "nc", "/license"},
		{"license.restrictions", "license: {declared: [{raw: mine}]}", left, "/license"},
		{"license.tdm", "", silence, "/license/tdm"},
		{"license.tdm", "license: {tdm: reserved}", "reserved", "/license/tdm"},
		{"license.tdm", "license: {tdm: unknown}", "unknown " + left, "/license/tdm"},
		{"consent.status", "", silence, "/consent/status"},
		{"consent.status", "consent: {docs: [x]}", silence, "/consent/status"},
		{"consent.status", "consent: {status: not_applicable}", "not_applicable", "/consent/status"},
		{"consent.status", "consent: {status: unknown}", "unknown " + left, "/consent/status"},
		{"integrity", "", "loose", "/digests"},
		{"integrity", "digests: [{alg: sha256, value: main}]", "loose", "/digests"},
		{"integrity", "digests: [{alg: md5, value: TBD}, {alg: sha1, value: " + hex40 + "}]", "pinned", "/digests/1"},
		{"integrity", "digests: [{alg: sha256, value: " + hex40 + "}]", "loose", "/digests"},
		{"integrity", "revision: " + hex40, "pinned", "/revision"},
		{"integrity", "revision: main", "loose", "/digests"},
		{"integrity", `revision: "\x10` + hex40[1:] + `"`, "loose", "/digests"},
		{"integrity", `revision: "é` + hex40[2:] + `"`, "loose", "/digests"},
		{"integrity", "revision: g" + hex40[1:], "loose", "/digests"},
		{"lineage.parents", "", silence, "/lineage"},
		{"lineage.parents", "lineage: {}", "none", "/lineage"},
		{"lineage.parents", "lineage: {derived_from: [{ref: d2}], base_models: [{ref: m1}]}", "recorded", "/lineage"},
		{"lineage.parents", "lineage: {derived_from: [{ref: d2}, {ref: elsewhere}]}", "unrecorded", "/lineage/derived_from/1"},
		{"lineage.parents", "lineage: {base_models: [{ref: \"\"}]}", "unrecorded", "/lineage/base_models/0"},
		{"lineage.parents", "lineage: {generated_by_models: [{ref: m1}]}", "recorded", "/lineage"},
		{"lineage.parents", "lineage: {derived_from: [{ref: d2}], generated_by_models: [{ref: m1}, {ref: vendor/model}]}", "unrecorded", "/lineage/generated_by_models/1"},
		{"lineage.parents", "lineage: {generated_by_models: [{ref: vendor/model, license: MIT}]}", "unrecorded", "/lineage/generated_by_models/0"},
		{"lineage.parents", "lineage: {derived_from: [{ref: d1}]}", "unrecorded", "/lineage/derived_from/0"},
		{"lineage.parents", "lineage: {activities: [{ref: elsewhere}]}", "none", "/lineage"},
		{"lineage.generators", "", silence, "/lineage/generated_by_models"},
		{"lineage.generators", "lineage: {}", "none", "/lineage/generated_by_models"},
		{"lineage.generators", "lineage: {generated_by_models: [{ref: m1}]}", "named", "/lineage/generated_by_models"},
		{"lineage.generators", "lineage: {generated_by_models: [{ref: TBD}]}", left, "/lineage/generated_by_models"},
		{"lineage.generators", "lineage: {generated_by_models: [{ref: TBD}, {ref: m1}]}", "named " + left, "/lineage/generated_by_models"},
		{"shape.modalities", "", silence, "/shape/modalities"},
		{"shape.modalities", "shape: {modalities: [text, unknown]}", "text,unknown " + left, "/shape/modalities"},
		{"shape.languages", "", silence, "/shape/languages"},
		{"shape.languages", "shape: {languages: [en]}", "en", "/shape/languages"},
		{"shape.languages", "shape: {languages: [various]}", left, "/shape/languages"},
		{"residency.allowed", "", silence, "/residency"},
		{"residency.allowed", "residency: {stored_in: [DE], processed_in: [FR], excluded: []}", "yes", "/residency"},
		{"residency.allowed", "residency: {stored_in: [DE], processed_in: [FR], excluded: [US]}", "yes", "/residency"},
		{"residency.allowed", "residency: {stored_in: [DE], processed_in: [FR]}", left, "/residency"},
		{"residency.allowed", "residency: {stored_in: [DE], excluded: [US]}", left, "/residency"},
		{"residency.allowed", "residency: {stored_in: [US], excluded: [US]}", "no", "/residency/stored_in/0"},
		{"residency.allowed", "residency: {stored_in: [DE], processed_in: [US], excluded: [US]}", "no", "/residency/processed_in/0"},
		{"residency.allowed", "residency: {stored_in: [DE], processed_in: [DE], excluded: [EU]}", "no", "/residency/stored_in/0"},
		{"residency.allowed", "residency: {stored_in: [EU], processed_in: [FR], excluded: [DE]}", left, "/residency"},
		{"residency.allowed", "residency: {stored_in: [worldwide], processed_in: [FR], excluded: [DE]}", "no", "/residency/stored_in/0"},
		{"residency.allowed", "residency: {stored_in: [worldwide], processed_in: [FR], excluded: []}", "yes", "/residency"},
		{"residency.allowed", "residency: {stored_in: [CH], processed_in: [CH], excluded: [EU]}", "yes", "/residency"},
		{"residency.allowed", "residency: {stored_in: [CH], processed_in: [CH], excluded: [worldwide]}", "no", "/residency/stored_in/0"},
		{"split", "", silence, "/split"},
		{"split", "split: all", "all", "/split"},
		{"split", "split: custom", "custom " + left, "/split"},
		{"trust_remote_code", "", silence, "/trust_remote_code"},
		{"trust_remote_code", "trust_remote_code: false", "no", "/trust_remote_code"},
		{"trust_remote_code", "trust_remote_code: true", "yes", "/trust_remote_code"},
		{"documentation", "", "missing", "/description"},
		{"documentation", "description: A set., creators: [{name: Ana}]", "present", "/description"},
		{"documentation", "description: A set., publisher: {name: Lab}", "present", "/description"},
		{"documentation", "description: TODO, creators: [{name: Ana}]", "missing", "/description"},
		{"documentation", "description: A set., creators: [{name: unknown}]", "missing", "/creators"},
		{"documentation", "description: \"\\u200b\", creators: [{name: Ana}]", "missing", "/description"},
		{"spec.objective.kind", "", "other", "/objective/kind"},
		{"spec.objective.purposes", "", "research", "/objective/purposes"},
		{"spec.objective.markets", "", silence, "/objective/markets"},
		{"spec.base_model.stated", "", "yes", "/base_model"},
	} {
		t.Run(tt.fact+" "+tt.input, func(t *testing.T) {
			t.Parallel()
			doc := "objective: {kind: other, purposes: [research]}\nbase_model: m1\ninputs:\n- {id: d1, kind: dataset, " + tt.input +
				"}\n- {id: d2, kind: dataset}\n- {id: m1, kind: base_model}"
			col, ok := resolveFact(tt.fact, false)
			if !ok {
				t.Fatal("no such fact")
			}
			all := newFacts(parseSpec(t, doc).Spec, nil)
			f, at := all.get(col, 0), all.pointer(col, 0)
			values := all.values(col, 0)
			if !factDefs[col].perSpec && all.inputs[0].coded[col] != f.coded() {
				t.Errorf("coded as %+v, but it is %+v", all.inputs[0].coded[col], f)
			}
			got := strings.Join(values, ",")
			switch {
			case !f.stated:
				got = silence
			case f.unknown:
				got = strings.TrimSpace(got + " " + left)
			}
			pointer := tt.pointer
			if !factDefs[col].perSpec {
				pointer = "/inputs/0" + pointer
			}
			if got != tt.want || at != pointer {
				t.Errorf("got %q at %s, want %q at %s", got, at, tt.want, pointer)
			}
			for _, v := range values {
				if codes := factDefs[col].codes; codes != nil && !slices.Contains(codes, v) {
					t.Errorf("%s is not a code of the fact", v)
				}
			}
		})
	}
}

func TestFactTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for col, d := range factDefs {
		if d.perSpec != (col >= numInputFacts) || !d.perSpec && len(d.codes) > 16 {
			t.Errorf("%s: is not where or what codedFact takes it to be", d.name)
		}
		if seen[d.name] || d.say == "" || d.get == nil {
			t.Errorf("%s: doubled or incomplete", d.name)
		}
		seen[d.name] = true
	}
	for _, tt := range []struct {
		name    string
		perSpec bool
		want    bool
	}{
		{"kind", false, true}, {"kind", true, false}, {"spec.kind", false, false}, {"objective.kind", true, true},
		{"objective.kind", false, false}, {"spec.objective.kind", false, true}, {"spec.objective.kind", true, true}, {"", false, false}, {"spec.", true, false},
	} {
		if _, ok := resolveFact(tt.name, tt.perSpec); ok != tt.want {
			t.Errorf("%q at the spec %t: got %t", tt.name, tt.perSpec, ok)
		}
	}
}

func TestFactClause(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		input, clause string
		want          State
	}{
		{"", "{fact: license.tdm, has: reserved}", NotCheckable},
		{"license: {tdm: unknown}", "{fact: license.tdm, has: reserved}", NotCheckable},
		{"license: {tdm: unknown}", "{fact: license.tdm, has: unknown}", Violated},
		{"license: {tdm: not_reserved}", "{fact: license.tdm, has: reserved}", Upheld},
		{"license: {tdm: reserved}", "{fact: license.tdm, any_of: [reserved, unknown]}", Violated},
		{"license: {declared: [{spdx: CC-BY-NC-4.0}, {raw: mine}]}", "{fact: license.restrictions, has: nc}", Violated},
		{"license: {declared: [{spdx: CC-BY-NC-4.0}, {raw: mine}]}", "{fact: license.restrictions, has: nd}", NotCheckable},
		{"license: {declared: [{spdx: MIT}]}", "{fact: license.restrictions, has: nd}", Upheld},
		{"license: {declared: [{spdx: MIT}]}", "{not: {fact: license.restrictions, has: nd}}", Violated},
		{"split: custom", "{fact: split, any_of: [test, validation]}", NotCheckable},
		{"split: train", "{fact: split, any_of: [test, validation]}", Upheld},
		{"", "{fact: spec.objective.kind, has: sft}", Violated},
		{"", "{fact: spec.objective.purposes, has: research}", NotCheckable},
	} {
		f := findingOf(t, termText("x", Escalate, "over: [dataset], violated_if: "+tt.clause), parseSpec(t, "inputs:\n- {id: d1, kind: dataset, "+tt.input+"}"))
		if f.State != tt.want || IsBlank(f.Reason) || f.State == Violated && len(f.Evidence) == 0 {
			t.Errorf("%s on %q: got %+v, want %s", tt.clause, tt.input, f, tt.want)
		}
	}
}
