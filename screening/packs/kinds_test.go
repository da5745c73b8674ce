package packs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/screening"
)

// A hazard that is stated counts on every kind of input, whether or not the
// terms ask for a statement there.
func TestStatedHazardCountsOnEveryKind(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(specDir, "admitted.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	v := everything(t)
	with := func(input string) *screening.Decision {
		return classify(t, v, []byte(strings.Replace(string(data), "\ninputs:\n", "\ninputs:\n"+input, 1)))
	}
	const record = `  - id: added
    kind: %s
    name: Added
    description: Added by the test.
    creators: [{name: Somebody}]
    revision: 0123456789abcdef0123456789abcdef01234567
    sources: [{kind: human_authored}]
    license: {declared: [{spdx: MIT}], tdm: not_reserved}
    consent: {status: not_applicable}
    lineage: {}
    shape: {modalities: [text]}
    residency: {stored_in: [DE], processed_in: [DE], excluded: []}
    split: train
    trust_remote_code: false
%s`
	kinds := []string{"dataset", "base_model", "teacher", "reward_model", "tokenizer", "code"}
	tags := []string{"biometric", "confidentiality", "copyright_material", "dual_use_cbrn", "dual_use_cyber", "hate", "health",
		"minors", "not_for_all_audiences", "personal_data", "self_harm", "sensitive_personal", "sexual_content", "tdm_reserved", "violent"}
	for _, kind := range kinds {
		if d := with(fmt.Sprintf(record, kind, "")); d.Outcome != screening.OutcomeAdmit {
			t.Fatalf("a clean %s: %s, %v", kind, d.Outcome, d.Causes)
		}
		for _, tag := range tags {
			for _, how := range []string{"present, basis: structured", "unknown, basis: structured", "present, basis: prose"} {
				d := with(fmt.Sprintf(record, kind, fmt.Sprintf("    disclosures: [{tag: %s, state: %s}]\n", tag, how)))
				if d.Outcome == screening.OutcomeAdmit {
					t.Errorf("%s on a %s, %s: admitted", tag, kind, how)
				}
			}
		}
		d := with(fmt.Sprintf(record, kind, "    disclosures: [{tag: minors, state: present, basis: structured}, {tag: sexual_content, state: present, basis: structured}]\n"))
		if d.Outcome != screening.OutcomeBlock || !slices.Contains(violated(d), "sexualised_minors") {
			t.Errorf("sexualised minors in a %s: %s", kind, d.Outcome)
		}
		if d := with(strings.Replace(fmt.Sprintf(record, kind, ""), "Added by the test.", "A collection of child pornography.", 1)); d.Outcome == screening.OutcomeAdmit {
			t.Errorf("a phrase in the description of a %s: admitted", kind)
		}
		// What clears a part leaves the rest open.
		if d := with(fmt.Sprintf(record, kind, "    disclosures: [{tag: minors, state: absent, basis: structured, scope: only the French part}]\n")); d.Outcome == screening.OutcomeAdmit {
			t.Errorf("minors absent from a part of a %s: admitted", kind)
		}
		if d := with(strings.Replace(fmt.Sprintf(record, kind, ""), "lineage: {}", "lineage: {derived_from: [{ref: packing-code, license: cc-by-nc-4.0}]}", 1)); d.Outcome == screening.OutcomeAdmit {
			t.Errorf("a %s made from what forbids commercial use: admitted", kind)
		}
	}
}

func violated(d *screening.Decision) (terms []string) {
	for _, v := range d.Safety {
		terms = append(terms, v.Violated...)
	}
	return terms
}
