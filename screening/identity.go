package screening

import "fmt"

// Ruleset names a version of the text rules that look for identity overrides: texts that tell a model to be something
// else than it is, or to drop what binds it.
type Ruleset uint8

const (
	// RulesetHardened is what a live service uses, and the zero value. What it finds and what it misses is told in
	// identity_hardened.go.
	RulesetHardened Ruleset = iota
	// RulesetReference is the review gate's original rules, to the letter, for comparing with records made under them. It
	// matches words wherever they stand, so it flags most longer texts about software, and any disguise gets past it.
	RulesetReference
)

var rulesetNames = [...]string{RulesetHardened: "hardened", RulesetReference: "reference"}

// ParseRuleset reads hardened or reference.
func ParseRuleset(name string) (Ruleset, error) {
	for i, known := range rulesetNames {
		if name == known {
			return Ruleset(i), nil
		}
	}
	return 0, fmt.Errorf("unknown ruleset: must be one of hardened, reference")
}

func (r Ruleset) String() string {
	if int(r) < len(rulesetNames) {
		return rulesetNames[r]
	}
	return fmt.Sprintf("invalid ruleset %d", uint8(r))
}

// MarshalText refuses values that have no name.
func (r Ruleset) MarshalText() ([]byte, error) {
	if int(r) < len(rulesetNames) {
		return []byte(rulesetNames[r]), nil
	}
	return nil, fmt.Errorf("ruleset %d is not valid and cannot be written", uint8(r))
}

// UnmarshalText reads hardened or reference.
func (r *Ruleset) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRuleset(string(text))
	return err
}

// TextVerdict is what a ruleset says of one text.
type TextVerdict struct {
	IdentityOverride bool
	Empty            bool // there is nothing to read
	// Rules names the rules that fired, in a fixed order. Under RulesetReference: "a" a marker phrase, "b" a redirecting verb
	// and a role frame, "c" a qualifier near a role frame, "d" a qualifier near a redirecting verb. Under
	// RulesetHardened the names of hardenedRules. The slice is shared between verdicts: read it, do not write to it.
	Rules []string
}

// ScreenText applies a ruleset to one text. It does not allocate for texts in ASCII that are not flagged, never fails,
// and takes time in proportion to the text, whatever the text is. A ruleset without a name screens as RulesetHardened.
func ScreenText(ruleset Ruleset, text string) TextVerdict {
	if ruleset == RulesetReference {
		return screenReference(text)
	}
	return screenHardened(text)
}
