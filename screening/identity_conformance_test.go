package screening

import "testing"

func TestConformanceReviewText(t *testing.T) {
	t.Parallel()
	type row struct {
		ID               string
		Text             string
		IdentityOverride bool `json:"identity_override"`
		Empty            bool
	}
	for _, r := range conformance[row](t, "review_text.jsonl") {
		got := ScreenText(RulesetReference, r.Text)
		if got.IdentityOverride != r.IdentityOverride || got.Empty != r.Empty {
			t.Errorf("%s: %q: override %t, empty %t; want %t, %t", r.ID, r.Text,
				got.IdentityOverride, got.Empty, r.IdentityOverride, r.Empty)
		}
		if got.IdentityOverride != (len(got.Rules) > 0) {
			t.Errorf("%s: override %t by rules %v", r.ID, got.IdentityOverride, got.Rules)
		}
	}
}
