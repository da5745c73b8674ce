package review

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"weir/screening"
)

// CorrectionID names a stored correction: the screening it corrects and the
// identity of its content.
type CorrectionID struct{ Screening, Candidate string }

// String is the form used in paths and messages: <screening>.<candidate>.
func (id CorrectionID) String() string { return id.Screening + "." + id.Candidate }

var correctionID = regexp.MustCompile(`^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.([0-9a-f]{16})$`)

// ParseCorrectionID reads what String writes. ErrNotFound for anything else.
func ParseCorrectionID(s string) (CorrectionID, error) {
	if m := correctionID.FindStringSubmatch(s); m != nil {
		return CorrectionID{m[1], m[2]}, nil
	}
	return CorrectionID{}, ErrNotFound
}

// Correction is a correction of an earlier decision with the review gate's
// answer. An accepted one is a reviewed example.
type Correction struct {
	ScreeningID   string
	CandidateID   string
	Project       string
	Author        string
	Text          string
	PriorSurface  string
	PriorTurn     int
	Ruleset       screening.Ruleset
	Rules         []string // that fired
	Outcome       CorrectionOutcome
	ReviewHash    string
	IdentityScore []byte // as supplied, JSON; nil when none was
	Expects       *Expectation
	Status        EpistemicStatus
	CreatedAt     time.Time
	History       []StatusChange
}

// Expectation says what a term should find on the spec of the corrected screening.
type Expectation struct {
	Term    string          `json:"term"` // id without layer
	Finding screening.State `json:"finding"`
}

// StatusChange is one judgement of a curator.
type StatusChange struct {
	Status  EpistemicStatus
	Curator string
	Reason  string
	At      time.Time
}

// CorrectionQuery selects corrections. Zero fields do not restrict.
type CorrectionQuery struct {
	Status EpistemicStatus
	After  *CorrectionCursor
	Limit  int
}

// CorrectionCursor is the place after which a page goes on.
type CorrectionCursor struct {
	At time.Time
	ID CorrectionID
}

// CorrectionRequest is a correction as it is sent.
type CorrectionRequest struct {
	ScreeningID string
	Text        string
	Expects     *Expectation
	Score       *IdentityScore
	Manifold    *IdentityManifold
}

// Correct passes a correction through the review gate and keeps it with the
// gate's answer, whatever that is. existing tells that it was kept before.
func (d *Desk) Correct(ctx context.Context, p Principal, req CorrectionRequest) (c *Correction, existing bool, err error) {
	if !p.May(ScopeReview) && !p.May(ScopeCurate) {
		return nil, false, ErrNotAllowed
	}
	setup := d.Setup()
	author, ok := setup.People.Person(p.Subject)
	if !ok {
		return nil, false, fmt.Errorf("%w: only a declared person can correct", ErrNotAllowed)
	}
	if err := req.check(setup.Vocabulary); err != nil {
		return nil, false, err
	}
	s, err := d.store.Screening(ctx, p.Project, req.ScreeningID)
	if err != nil {
		return nil, false, err
	}
	turn, err := d.store.Turn(ctx, p.Project, s.ID)
	if err != nil {
		return nil, false, err
	}
	surface, err := d.surface(ctx, s)
	if err != nil {
		return nil, false, err
	}
	reviewed := ReviewCorrection(Candidate{CorrectionText: req.Text, PriorSurface: surface, PriorTurn: turn},
		ReviewOptions{Ruleset: screening.RulesetHardened, Score: req.Score, Manifold: req.Manifold})
	c = &Correction{ScreeningID: s.ID, CandidateID: reviewed.CandidateID, Project: p.Project, Author: author, Text: req.Text,
		PriorSurface: surface, PriorTurn: turn, Ruleset: screening.RulesetHardened, Rules: reviewed.Rules, Outcome: reviewed.Outcome,
		ReviewHash: reviewed.ReviewHash, Expects: req.Expects}
	if c.Outcome == CorrectionRejectedIdentity && len(c.Rules) == 0 {
		c.Rules = []string{"geometry"} // the text was clean
	}
	if req.Score != nil {
		if c.IdentityScore, err = json.Marshal(req.Score); err != nil {
			return nil, false, err
		}
	}
	if existing, err = d.store.KeepCorrection(ctx, c); err != nil {
		return nil, false, err
	}
	kept, err := d.store.Correction(ctx, p.Project, CorrectionID{c.ScreeningID, c.CandidateID})
	if err == nil && existing && c.differs(kept) {
		return nil, false, fmt.Errorf("%w: a correction of this screening with the same text was kept before, by %s, with another outcome, "+
			"expectation or score; say it in other words", ErrConflict, kept.Author)
	}
	return kept, existing, err
}

// differs reports whether keeping other in place of c would lose something that
// c says: the same text with other evidence is not the same correction.
func (c *Correction) differs(other *Correction) bool {
	return c.Outcome != other.Outcome ||
		c.Expects != nil && (other.Expects == nil || *c.Expects != *other.Expects) ||
		c.IdentityScore != nil && !bytes.Equal(c.IdentityScore, other.IdentityScore)
}

func (r *CorrectionRequest) check(v *screening.Vocabulary) error {
	var found []screening.Problem
	if r.Expects != nil {
		if !slices.ContainsFunc([]screening.Layer{screening.Safety, screening.Ethics}, func(l screening.Layer) bool {
			_, ok := v.Term(string(l) + ":" + r.Expects.Term)
			return ok
		}) {
			found = append(found, screening.Problem{Pointer: "/expects/term", Detail: "is not a term of the packs in force"})
		}
		switch r.Expects.Finding {
		case screening.Violated, screening.Upheld, screening.NotCheckable:
		default:
			found = append(found, screening.Problem{Pointer: "/expects/finding", Detail: "must be violated, upheld or not_checkable"})
		}
	}
	if len(r.Text) > 64<<10 {
		found = append(found, screening.Problem{Pointer: "/correction_text", Detail: "is longer than 64 KiB"})
	} else if !isText(r.Text) {
		found = append(found, screening.Problem{Pointer: "/correction_text", Detail: "must be text without a NUL in it"})
	}
	if found != nil {
		return &screening.InvalidError{What: "correction", Problems: found}
	}
	return nil
}

// surface is the text of a decision that a correction answers: the refusal, the
// escalated terms, or the statement as it was sent.
func (d *Desk) surface(ctx context.Context, s *Screening) (string, error) {
	if s.Erased != nil {
		return "", &ErasedError{*s.Erased}
	}
	var decision screening.Decision
	if err := json.Unmarshal(s.Decision, &decision); err != nil {
		return "", fmt.Errorf("decision of screening %s: %w", s.ID, err)
	}
	switch decision.Outcome {
	case screening.OutcomeBlock:
		return decision.Refusal, nil
	case screening.OutcomeEscalate:
		var terms []string
		for _, c := range decision.Causes {
			if c.Effect == screening.Escalate {
				terms = append(terms, c.Term)
			}
		}
		if len(terms) == 0 {
			terms = []string{"no_policy_matched"}
		}
		slices.Sort(terms)
		return "Escalated: " + strings.Join(terms, ", "), nil
	}
	raw, err := d.store.SpecBytes(ctx, s.Project, s.SpecSHA256)
	if err != nil {
		return "", err
	}
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		return "", fmt.Errorf("stored spec of screening %s: %w", s.ID, err)
	}
	return spec.DisclosureStatement, nil
}

// Correction reads one with its history.
func (d *Desk) Correction(ctx context.Context, p Principal, id CorrectionID) (*Correction, error) {
	if !p.mayReadAll() && !p.May(ScopeCurate) {
		return nil, ErrNotAllowed
	}
	return d.store.Correction(ctx, p.Project, id)
}

// Corrections lists the newest first.
func (d *Desk) Corrections(ctx context.Context, p Principal, q CorrectionQuery) ([]*Correction, error) {
	if !p.mayReadAll() && !p.May(ScopeCurate) {
		return nil, ErrNotAllowed
	}
	return d.store.Corrections(ctx, p.Project, q)
}

// Judge gives a reviewed example its epistemic status. Only a curator may, and
// never the author: acceptance by the gate does not promote. Every judgement can
// be revised; none is forgotten.
func (d *Desk) Judge(ctx context.Context, p Principal, id CorrectionID, status EpistemicStatus, reason string) (*Correction, error) {
	if !p.May(ScopeCurate) {
		return nil, ErrNotAllowed
	}
	people := d.Setup().People
	curator, ok := people.Person(p.Subject)
	if !ok {
		return nil, fmt.Errorf("%w: only a declared person can judge", ErrNotAllowed)
	}
	if screening.IsBlank(reason) || len(reason) > maxText || !isText(reason) {
		return nil, &screening.InvalidError{What: "judgement", Problems: []screening.Problem{
			{Pointer: "/reason", Detail: "must say why, in at most 10,000 bytes that can be read"}}}
	}
	err := d.store.ChangeCorrection(ctx, p.Project, id, func(c *Correction) (StatusChange, error) {
		switch {
		case people.now(c.Author) == curator:
			return StatusChange{}, fmt.Errorf("%w: the author cannot judge their own correction", ErrNotAllowed)
		case c.Status == status:
			return StatusChange{}, fmt.Errorf("%w: the correction has this status already", ErrConflict)
		case status == Coherent && c.Outcome != CorrectionAccepted:
			return StatusChange{}, fmt.Errorf("%w: the review gate rejected this correction; it can never be an example", ErrConflict)
		}
		return StatusChange{Status: status, Curator: curator, Reason: reason}, nil
	})
	if err != nil {
		return nil, err
	}
	return d.store.Correction(ctx, p.Project, id)
}
