package review

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"weir/screening"
)

// Candidate is a correction of an earlier decision, before it is reviewed. Its texts are UTF-8, as everything is that
// came in on the wire.
type Candidate struct {
	CorrectionText string
	PriorSurface   string // what the corrected decision said
	PriorTurn      int    // its place in the run, from 0
}

// ID identifies a candidate by its content, whoever sends it: the first 16 hex digits of a SHA-256.
func (c Candidate) ID() string {
	return hashFields(
		field{"correction_text", quoted(c.CorrectionText)},
		field{"prior_surface", quoted(c.PriorSurface)},
		field{"prior_turn", strconv.Itoa(c.PriorTurn)},
	)[:16]
}

// CorrectionOutcome is what the review gate says of a correction. Only the three below are valid.
type CorrectionOutcome string

const (
	CorrectionAccepted         CorrectionOutcome = "accepted"          // becomes a reviewed example
	CorrectionRejectedIdentity CorrectionOutcome = "rejected_identity" // tries to change who the model is
	CorrectionRejectedEmpty    CorrectionOutcome = "rejected_empty"    // says nothing
)

// EpistemicStatus is how far a reviewed example can be relied on. It is apart from the outcome: being accepted promotes
// nothing. The zero value is invalid and cannot be written.
type EpistemicStatus string

const (
	Speculative EpistemicStatus = "speculative" // nobody has judged it yet
	Coherent    EpistemicStatus = "coherent"    // a curator stands by it; new packs have to agree with it
	Contested   EpistemicStatus = "contested"   // curators disagree
	Falsified   EpistemicStatus = "falsified"   // it is wrong, and kept as such
)

var errEpistemicStatus = errors.New("must be one of speculative, coherent, contested, falsified")

// IsValid reports whether s is one of the four.
func (s EpistemicStatus) IsValid() bool {
	switch s {
	case Speculative, Coherent, Contested, Falsified:
		return true
	}
	return false
}

// MarshalText refuses what is not valid.
func (s EpistemicStatus) MarshalText() ([]byte, error) {
	if !s.IsValid() {
		return nil, fmt.Errorf("an epistemic status %w", errEpistemicStatus)
	}
	return []byte(s), nil
}

// UnmarshalText reads one of the four.
func (s *EpistemicStatus) UnmarshalText(text []byte) error {
	if !EpistemicStatus(text).IsValid() {
		return errEpistemicStatus
	}
	*s = EpistemicStatus(text)
	return nil
}

// ReviewOptions is what a correction is reviewed under.
type ReviewOptions struct {
	Ruleset  screening.Ruleset // zero: hardened
	Score    *IdentityScore    // nil: the geometry has no vote
	Manifold *IdentityManifold // nil: alignment has no threshold to be compared with
	Status   EpistemicStatus   // of the example; "": speculative
}

// ReviewedExample is a correction that has been through the gate, also one that was turned away.
type ReviewedExample struct {
	Candidate   Candidate
	CandidateID string
	Outcome     CorrectionOutcome
	Rules       []string // of the ruleset, that fired; see screening.TextVerdict
	ReviewHash  string   // the same for the same correction and outcome, in hex
	Status      EpistemicStatus
}

// ReviewCorrection is the review gate. Text and geometry vote independently, and either rejects. Only then is it asked
// whether there is a correction at all: an empty text along a trajectory that violates identity is the worse of the two.
func ReviewCorrection(c Candidate, opts ReviewOptions) ReviewedExample {
	e := ReviewedExample{Candidate: c, CandidateID: c.ID(), Outcome: CorrectionAccepted, Status: opts.Status}
	if e.Status == "" {
		e.Status = Speculative
	}
	text := screening.ScreenText(opts.Ruleset, c.CorrectionText)
	e.Rules = text.Rules
	switch {
	case text.IdentityOverride, violatesIdentity(opts.Score, opts.Manifold):
		e.Outcome = CorrectionRejectedIdentity
	case text.Empty:
		e.Outcome = CorrectionRejectedEmpty
	}
	e.ReviewHash = reviewHash(c, e.CandidateID, e.Outcome)
	return e
}

func reviewHash(c Candidate, id string, outcome CorrectionOutcome) string {
	return hashFields(
		field{"candidate_id", quoted(id)},
		field{"correction_text", quoted(c.CorrectionText)},
		field{"outcome", quoted(string(outcome))},
		field{"prior_surface", quoted(c.PriorSurface)},
		field{"prior_turn", strconv.Itoa(c.PriorTurn)},
	)
}

// field is a member of a JSON object, its value written out.
type field struct{ key, value string }

// hashFields hashes an object whose keys are in order. Its bytes are those of the gate's first implementation, by which
// stored hashes were made: ", " and ": " between the parts, and the escaping of quoted.
func hashFields(fields ...field) string {
	h := sha256.New()
	separator := "{"
	for _, f := range fields {
		h.Write([]byte(separator + quoted(f.key) + ": " + f.value))
		separator = ", "
	}
	h.Write([]byte("}"))
	return hex.EncodeToString(h.Sum(nil))
}

// quoted writes a JSON string that escapes nothing but what JSON requires. encoding/json escapes more: <, >, & and the
// line separators U+2028 and U+2029, and U+0008 and U+000C as \u00XX.
func quoted(s string) string {
	const hexDigits = "0123456789abcdef"
	b := make([]byte, 0, len(s)+2)
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\b':
			b = append(b, `\b`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\f':
			b = append(b, `\f`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c < ' ':
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&0xf])
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}
