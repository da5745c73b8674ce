package screening

import (
	"fmt"
	"strings"
	"testing"
)

// Faults that public systems of this kind had, each as a test of its whole kind.

// Nothing was checked, and that was green: a pack that does not apply, or no pack.
func TestNothingCheckedIsNotGreen(t *testing.T) {
	t.Parallel()
	if _, err := LoadPack("p.yaml", []byte(strings.TrimSuffix(packText("pledge", Ethics), "\n")+" []\n"), NewRegistry()); err == nil ||
		!strings.Contains(err.Error(), "/terms: must not be empty") {
		t.Errorf("an empty pack loads: %v", err)
	}
	for name, terms := range map[string][]string{
		"no ethics pack":                   nil,
		"terms about inputs there are not": {termText("x", Escalate, "over: [teacher], unchecked: observe, violated_if: {fact: split, has: test}")},
		"terms without a predicate":        {termText("x", Hedge, "unchecked: observe")},
		"structural terms":                 {termText("x", Hedge, "structural: enforced elsewhere")},
		"terms that only observe":          {termText("x", Observe, "violated_if: {fact: objective.kind, has: sft}")},
		"terms that cannot see":            {termText("x", Escalate, "unchecked: observe, violated_if: {tag: {minors: present}}")},
	} {
		packs := []*Pack{testFloor(t)}
		if terms != nil {
			packs = append(packs, ethicsPack(t, terms...))
		}
		d := classify(t, vocabulary(t, VocabularyConfig{}, packs...), parseSpec(t, ""))
		checked := 0
		if len(d.Ethics) > 0 && d.Ethics[0].Findings[0].Term != "" {
			checked = d.Ethics[0].RuntimeCheckable
		}
		if d.Outcome != OutcomeEscalate || !d.NoPolicyMatched || checked != 0 && name != "terms that only observe" {
			t.Errorf("%s: got %s, no_policy_matched %t, %d checked", name, d.Outcome, d.NoPolicyMatched, checked)
		}
	}
}

// A type error made the rule disappear: a wrong value is refused, or it is not
// checkable and escalates; it never admits. TestWrongTypes has the other half.
func TestWrongValuesNeverAdmit(t *testing.T) {
	t.Parallel()
	v := vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t,
		termText("kids", Escalate, "over: [dataset], violated_if: {tag: {minors: present}}"),
		termText("licence", Escalate, "over: [dataset], violated_if: {fact: license.restrictions, has: nc}"),
		termText("code", Escalate, `over: [dataset], violated_if: {cel: "input.trust_remote_code == 'yes'"}`)))
	const good = `disclosures: [{tag: minors, state: absent, basis: structured}]
inputs: [{id: a, kind: dataset, license: {declared: [{spdx: MIT}]}, trust_remote_code: false}]`
	if d := classify(t, v, parseSpec(t, good)); d.Outcome != OutcomeAdmit {
		t.Fatalf("the good spec is not admitted: %+v", d.Causes)
	}
	for _, value := range []string{"null", "1", "-1.5", "true", `""`, `"x"`, `"true"`, "[]", "[null]", "{}", `{"a": 1}`, "[[]]", `["x", 1]`} {
		for _, field := range []string{"[{tag: minors, state: absent, basis: structured}]", "minors", "absent", "structured",
			"[{id: a, kind: dataset, license: {declared: [{spdx: MIT}]}, trust_remote_code: false}]", "{declared: [{spdx: MIT}]}", "[{spdx: MIT}]", "MIT", "false"} {
			doc := strings.Replace(good, field, value, 1)
			p, err := ParseSpec([]byte(specText(doc)))
			if err != nil {
				problemsOf(t, err)
				continue
			}
			if d := classify(t, v, p); d.Outcome == OutcomeAdmit {
				t.Errorf("admitted:\n%s", doc)
			}
		}
	}
}

// A missing licence slipped through an allow-list: what is not known is not allowed.
func TestUnknownLicenceIsNotAllowed(t *testing.T) {
	t.Parallel()
	v := vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t,
		termText("known", Escalate, "over: [dataset], violated_if: {fact: license.status, has: unidentified}"),
		termText("commercial", Block, "over: [dataset], violated_if: {fact: license.restrictions, any_of: [nc, research_only]}")))
	for license, want := range map[string]Outcome{
		"": OutcomeEscalate, "license: null": OutcomeEscalate, "license: {}": OutcomeEscalate, "license: {declared: []}": OutcomeEscalate, "license: {declared: null}": OutcomeEscalate,
		`""`: OutcomeEscalate, "unknown": OutcomeEscalate, "NOASSERTION": OutcomeEscalate, "other": OutcomeEscalate, "proprietary": OutcomeEscalate, "mitt": OutcomeEscalate,
		"MIT": OutcomeAdmit, `"mIt "`: OutcomeAdmit, "MIT OR GPL-3.0-only": OutcomeAdmit, "CC-BY-NC-4.0 OR MIT": OutcomeAdmit, "MIT AND ISC": OutcomeAdmit,
		"MIT AND CC-BY-NC-4.0": OutcomeBlock, "cc-by-nc-4.0": OutcomeBlock, "GPL-3.0-only WITH GCC-exception-3.1": OutcomeAdmit,
		"MIT AND LicenseRef-x": OutcomeEscalate, "MIT OR LicenseRef-x": OutcomeAdmit,
	} {
		doc := license
		if license != "" && !strings.HasPrefix(license, "license:") {
			doc = "license: {declared: [{raw: " + license + "}]}"
		}
		p := parseSpec(t, fmt.Sprintf("inputs:\n- {id: a, kind: dataset, %s}\n- {id: b, kind: dataset, license: {declared: [{spdx: MIT}]}}", doc))
		if d := classify(t, v, p); d.Outcome != want {
			t.Errorf("%s: got %s, want %s", license, d.Outcome, want)
		}
	}
}

// Go's JSON takes Dist for dist and lets the last one win: there is never a
// decision that ignores a statement. TestStrictDecoding has every form.
func TestNoStatementIsIgnored(t *testing.T) {
	t.Parallel()
	const statement = `[{"tag":"minors","state":"present","basis":"structured"}]`
	for _, members := range []string{
		`"disclosures":` + statement + `,"Disclosures":[]`, `"Disclosures":` + statement + `,"disclosures":[]`, `"disclosures":` + statement + `,"disclosures":[]`,
		`"disclosures":[],"disclosures":` + statement, `"DISCLOSURES":` + statement, `"disclosureſ":` + statement, `"disclosures ":` + statement,
		`"disclosures\u0000":` + statement, `"disclosures":[]}{"disclosures":` + statement, `"evidence":{"context":{"alignment_score":0.1,"alignment_score":0.9}}`,
	} {
		if _, err := ParseSpec([]byte(jsonHead + "," + members + "}")); err == nil {
			t.Errorf("%s was read", members)
		}
	}
}
