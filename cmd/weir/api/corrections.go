package api

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
)

// wireCorrection is a correction as clients see it.
type wireCorrection struct {
	ID             string                   `json:"id"`
	ScreeningID    string                   `json:"screening_id"`
	CandidateID    string                   `json:"candidate_id"`
	Author         string                   `json:"author"`
	CorrectionText string                   `json:"correction_text"`
	PriorSurface   string                   `json:"prior_surface"`
	PriorTurn      int                      `json:"prior_turn"`
	Ruleset        screening.Ruleset        `json:"ruleset"`
	Rules          []string                 `json:"rules"`
	Outcome        review.CorrectionOutcome `json:"outcome"`
	ReviewHash     string                   `json:"review_hash"`
	IdentityScore  jsontext.Value           `json:"identity_score,omitzero"`
	Expects        *review.Expectation      `json:"expects,omitzero"`
	Status         review.EpistemicStatus   `json:"epistemic_status"`
	CreatedAt      time.Time                `json:"created_at"`
	History        []wireJudgement          `json:"history"`
}

type wireJudgement struct {
	Status  review.EpistemicStatus `json:"epistemic_status"`
	Curator string                 `json:"curator"`
	Reason  string                 `json:"reason"`
	At      time.Time              `json:"at"`
}

func correctionJSON(c *review.Correction) wireCorrection {
	w := wireCorrection{ID: review.CorrectionID{Screening: c.ScreeningID, Candidate: c.CandidateID}.String(),
		ScreeningID: c.ScreeningID, CandidateID: c.CandidateID, Author: c.Author, CorrectionText: c.Text, PriorSurface: c.PriorSurface,
		PriorTurn: c.PriorTurn, Ruleset: c.Ruleset, Rules: c.Rules, Outcome: c.Outcome, ReviewHash: c.ReviewHash, IdentityScore: c.IdentityScore, Expects: c.Expects,
		Status: c.Status, CreatedAt: c.CreatedAt, History: make([]wireJudgement, len(c.History))}
	for i, h := range c.History {
		w.History[i] = wireJudgement{h.Status, h.Curator, h.Reason, h.At}
	}
	return w
}

type correctionBody struct {
	ScreeningID    string              `json:"screening_id" validate:"required"`
	CorrectionText string              `json:"correction_text"` // an empty one is for the gate to reject
	Expects        *review.Expectation `json:"expects"`
	Identity       *identityBody       `json:"identity"`
}

// identityBody is the geometry's evidence: a score, or a trajectory to compute
// one from; a manifold to compare it with.
type identityBody struct {
	Manifold *struct {
		Axes               []review.IdentityAxis `json:"axes"`
		AlignmentThreshold float64               `json:"alignment_threshold"`
		BoundaryIDs        []string              `json:"boundary_ids"`
	} `json:"manifold"`
	Score      *review.IdentityScore `json:"score"`
	Trajectory []float64             `json:"trajectory"`
}

// geometry turns the body into what the review gate takes.
func (b *identityBody) geometry() (score *review.IdentityScore, manifold *review.IdentityManifold, err error) {
	if b == nil {
		return nil, nil, nil
	}
	bad := func(pointer string, err error) error {
		return &screening.InvalidError{What: "correction", Problems: []screening.Problem{{Pointer: "/identity" + pointer, Detail: err.Error()}}}
	}
	if m := b.Manifold; m != nil {
		if manifold, err = review.NewIdentityManifold(m.Axes, m.AlignmentThreshold, m.BoundaryIDs); err != nil {
			return nil, nil, bad("/manifold", err)
		}
	}
	switch {
	case b.Score != nil && b.Trajectory != nil:
		return nil, nil, bad("", fmt.Errorf("has a score and a trajectory; give one of them"))
	case b.Trajectory != nil && manifold == nil:
		return nil, nil, bad("/trajectory", fmt.Errorf("needs a manifold to be compared with"))
	case b.Trajectory != nil:
		if score, err = manifold.Score(b.Trajectory); err != nil {
			return nil, nil, bad("/trajectory", err)
		}
	case b.Score != nil:
		score = b.Score
		if manifold != nil {
			if err := manifold.Check(score); err != nil {
				return nil, nil, bad("/score", err)
			}
		}
	default:
		return nil, nil, bad("", fmt.Errorf("needs a score or a trajectory"))
	}
	return score, manifold, nil
}

// correct passes a correction through the review gate. 201 kept, whatever the
// outcome; 200 when the same correction was kept before.
func (s *Server) correct(c echo.Context) error {
	var body correctionBody
	if err := s.decode(c, "correction", &body); err != nil {
		return err
	}
	if !isUUID(body.ScreeningID) {
		return review.ErrNotFound
	}
	score, manifold, err := body.Identity.geometry()
	if err != nil {
		return err
	}
	kept, existing, err := gateOf(c).Desk.Correct(c.Request().Context(), principalOf(c), review.CorrectionRequest{
		ScreeningID: strings.ToLower(body.ScreeningID), Text: body.CorrectionText, Expects: body.Expects, Score: score, Manifold: manifold})
	if err != nil {
		return err
	}
	return correctionReply(c, kept, existing)
}

func correctionReply(c echo.Context, kept *review.Correction, existing bool) error {
	w := correctionJSON(kept)
	c.Response().Header().Set("Location", "/v1/corrections/"+w.ID)
	if existing {
		return reply(c, http.StatusOK, w)
	}
	return reply(c, http.StatusCreated, w)
}

// correctionList is a page of them.
type correctionList struct {
	Corrections []wireCorrection `json:"corrections"`
	Next        string           `json:"next,omitzero"`
}

func (s *Server) listCorrections(c echo.Context) error {
	limit, after, err := pageOf(c, func(id string) bool { _, err := review.ParseCorrectionID(id); return err == nil })
	if err != nil {
		return err
	}
	q := review.CorrectionQuery{Limit: limit, Status: review.EpistemicStatus(c.QueryParam("status"))}
	if q.Status != "" && !q.Status.IsValid() {
		return fmt.Errorf("%w: status must be speculative, coherent, contested or falsified", errBadParam)
	}
	if after != nil {
		id, err := review.ParseCorrectionID(after.ID)
		if err != nil {
			return err
		}
		q.After = &review.CorrectionCursor{At: after.At, ID: id}
	}
	list, err := gateOf(c).Desk.Corrections(c.Request().Context(), principalOf(c), q)
	if err != nil {
		return err
	}
	out := correctionList{Corrections: make([]wireCorrection, len(list))}
	for i, k := range list {
		out.Corrections[i] = correctionJSON(k)
	}
	if len(list) == limit {
		last := list[len(list)-1]
		out.Next = cursor(last.CreatedAt, out.Corrections[limit-1].ID)
	}
	return reply(c, http.StatusOK, out)
}

func (s *Server) getCorrection(c echo.Context) error {
	id, err := review.ParseCorrectionID(c.Param("id"))
	if err != nil {
		return err
	}
	kept, err := gateOf(c).Desk.Correction(c.Request().Context(), principalOf(c), id)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, correctionJSON(kept))
}

type judgementBody struct {
	Status string `json:"status" validate:"oneof=speculative coherent contested falsified"`
	Reason string `json:"reason" validate:"required,max=10000"`
}

// judgeCorrection gives a reviewed example its epistemic status.
func (s *Server) judgeCorrection(c echo.Context) error {
	id, err := review.ParseCorrectionID(c.Param("id"))
	if err != nil {
		return err
	}
	var body judgementBody
	if err := s.decode(c, "judgement", &body); err != nil {
		return err
	}
	kept, err := gateOf(c).Desk.Judge(c.Request().Context(), principalOf(c), id, review.EpistemicStatus(body.Status), body.Reason)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, correctionJSON(kept))
}
