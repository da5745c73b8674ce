package screening

import (
	"fmt"
	"testing"
)

func TestExamplesClause(t *testing.T) {
	t.Parallel()
	const digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	term := termText("override", Escalate, "violated_if: {examples: {max_hit_share: 0.01}}, unchecked: observe")
	tests := []struct {
		name      string
		evidence  string
		want      State
		evidence0 string
	}{
		{"not screened", "", NotCheckable, ""},
		{"nothing screened", fmt.Sprintf("evidence: {examples: {sha256: %s, count: 0, hits: 0}}", digest), NotCheckable, ""},
		{"at the share", fmt.Sprintf("evidence: {examples: {sha256: %s, count: 100, hits: 1}}", digest), Upheld, "1"},
		{"above the share", fmt.Sprintf("evidence: {examples: {sha256: %s, count: 100, hits: 2}}", digest), Violated, "2"},
	}
	for _, tt := range tests {
		f := findingOf(t, term, parseSpec(t, tt.evidence))
		if f.State != tt.want || f.Reason == "" {
			t.Errorf("%s: %s (%s), want %s", tt.name, f.State, f.Reason, tt.want)
		}
		if tt.evidence0 != "" && (len(f.Evidence) == 0 || f.Evidence[0].Value != tt.evidence0) {
			t.Errorf("%s: evidence %v; the hits belong in the record either way", tt.name, f.Evidence)
		}
	}
}

func TestExamplesClauseLoadErrors(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"violated_if: {examples: {max_hit_share: 1}}",
		"violated_if: {examples: {max_hit_share: -0.1}}",
		"over: [dataset], violated_if: {examples: {}}",
	} {
		if _, err := LoadPack("p", []byte(packText("pledge", Ethics, termText("override", Escalate, body))), NewRegistry()); err == nil {
			t.Errorf("%s: loaded", body)
		}
	}
}
