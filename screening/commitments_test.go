package screening

import (
	"strings"
	"testing"
)

// TestCommitments goes through every combination of what a context supplies.
func TestCommitments(t *testing.T) {
	t.Parallel()
	const v, u, n = Violated, Upheld, NotCheckable
	for name, tt := range map[string]struct {
		first, second []string // the last is "not supplied"
		want          [3][3]State
	}{
		"acknowledge_uncertainty": {[]string{"alignment_score: 0.64", "alignment_score: 0.65", ""}, []string{"hedge_emitted: false", "hedge_emitted: true", ""},
			[3][3]State{{v, u, n}, {u, u, n}, {n, n, n}}},
		"defer_high_stakes_to_human_review": {[]string{"high_stakes_topic: true", "high_stakes_topic: false", ""}, []string{"recommended_human_review: false", "recommended_human_review: true", ""},
			[3][3]State{{v, u, n}, {u, u, u}, {n, n, n}}},
		"disclose_limitations": {[]string{"grounded_in_evidence: false", "grounded_in_evidence: true", ""}, []string{"disclosure_emitted: false", "disclosure_emitted: true", ""},
			[3][3]State{{v, u, n}, {u, u, u}, {n, n, n}}},
		"respect_user_autonomy": {[]string{"prescribed_single_answer: true", "prescribed_single_answer: false", ""}, []string{"presented_options_count: 1", "presented_options_count: 2", ""},
			[3][3]State{{v, u, n}, {u, u, u}, {n, n, n}}},
	} {
		for i, a := range tt.first {
			for j, b := range tt.second {
				context := strings.Trim(a+", "+b, ", ")
				f := findingOf(t, termText("x", Escalate, "predicate: "+name), parseSpec(t, "evidence: {context: {"+context+"}}"))
				if f.State != tt.want[i][j] || IsBlank(f.Reason) || f.State == v && len(f.Evidence) < 2 {
					t.Errorf("%s with {%s}: got %+v, want %s", name, context, f, tt.want[i][j])
				}
				wantOpen := 0
				if f.State == n {
					wantOpen = 2 - strings.Count(context, ":")
				}
				open := 0
				for _, s := range shortest(f.open) {
					open++
					if strings.Contains(context, strings.TrimPrefix(s.Pointer, contextPointer)) {
						t.Errorf("%s with {%s}: asks for %s", name, context, s.Pointer)
					}
				}
				if open != wantOpen {
					t.Errorf("%s with {%s}: %d statements missing, want %d", name, context, open, wantOpen)
				}
			}
		}
	}
	f := findingOf(t, termText("x", Escalate, "predicate: acknowledge_uncertainty"),
		parseSpec(t, "evidence: {context: {alignment_score: 0.7, hedge_threshold_soft: 0.8, hedge_emitted: false}}"))
	if f.State != Violated {
		t.Errorf("the supplied threshold is not used: %+v", f)
	}
}

// TestFactsBeatClaims: a claimed context does not make a declared purpose harmless.
func TestFactsBeatClaims(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		purposes, context string
		want              State
		pointer           string
	}{
		{"[research, healthcare]", "high_stakes_topic: false, recommended_human_review: false", Violated, "/objective/purposes/1"},
		{"[healthcare]", "recommended_human_review: false", Violated, "/objective/purposes/0"},
		{"[healthcare]", "high_stakes_topic: false, recommended_human_review: true", Upheld, ""},
		{"[healthcare]", "high_stakes_topic: false", NotCheckable, ""},
		{"[research]", "high_stakes_topic: false", Upheld, ""},
		{"[research]", "high_stakes_topic: true, recommended_human_review: false", Violated, "/evidence/context/high_stakes_topic"},
		{"[research]", "recommended_human_review: true", NotCheckable, ""},
	} {
		f := findingOf(t, termText("x", Escalate, "predicate: defer_high_stakes_to_human_review"),
			parseSpec(t, "objective: {kind: sft, purposes: "+tt.purposes+"}\nevidence: {context: {"+tt.context+"}}"))
		if f.State != tt.want || tt.pointer != "" && f.Evidence[0].Pointer != tt.pointer {
			t.Errorf("%s with {%s}: got %+v", tt.purposes, tt.context, f)
		}
	}
}
