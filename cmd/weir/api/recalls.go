package api

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
)

// reportTimeout bounds the report of a recall, which follows lineage to its ends.
const reportTimeout = time.Minute

// What weir_recalls_total counts.
const (
	recallMade   = "made"
	recallLifted = "lifted"
)

// wireRecall is a recall as clients see it.
type wireRecall struct {
	ID         string               `json:"id"`
	SHA256     *screening.Digest256 `json:"sha256,omitzero"` // of the data, or
	URI        string               `json:"uri,omitzero"`    // where it is, as compared
	Reason     string               `json:"reason"`
	Actor      string               `json:"actor"`
	MadeAt     time.Time            `json:"made_at"`
	LiftedAt   *time.Time           `json:"lifted_at,omitzero"`
	LiftedBy   string               `json:"lifted_by,omitzero"`
	LiftReason string               `json:"lift_reason,omitzero"`
	InForce    bool                 `json:"in_force"`
	Settled    bool                 `json:"settled"` // all that fell under it so far is ended and told
	Revoked    int                  `json:"revoked"`
	Blocked    int                  `json:"blocked"`
}

// wireRecallRef is what a screening says of a recall.
type wireRecallRef struct {
	ID       string               `json:"id"`
	SHA256   *screening.Digest256 `json:"sha256,omitzero"`
	URI      string               `json:"uri,omitzero"`
	Reason   string               `json:"reason"`
	MadeAt   time.Time            `json:"made_at"`
	LiftedAt *time.Time           `json:"lifted_at,omitzero"`
}

// wireRecallHit is a screening that falls under a recall.
type wireRecallHit struct {
	Screening  string              `json:"screening"`
	RunRef     string              `json:"run_ref"`
	Team       string              `json:"team,omitzero"`
	Submitter  string              `json:"submitter"`
	Owner      string              `json:"owner"`
	CreatedAt  time.Time           `json:"created_at"`
	SpecSHA256 screening.Digest256 `json:"spec_sha256"`
	Outcome    screening.Outcome   `json:"outcome"`
	Status     review.Status       `json:"status"`
	Ended      bool                `json:"ended"` // by this recall
	How        string              `json:"how"`   // uses, derives
	Path       []wireRecallStep    `json:"path"`  // names from the data to an input of the spec
}

// wireRecallStep is a name; Text is empty when every spec that writes it was erased.
type wireRecallStep struct {
	Text        string `json:"text,omitzero"`
	Fingerprint string `json:"fingerprint"`
}

func sha256JSON(d review.RecalledData) *screening.Digest256 {
	if d.URI != "" {
		return nil
	}
	return &d.SHA256
}

func recallJSON(r *review.Recall) wireRecall {
	return wireRecall{ID: r.ID, SHA256: sha256JSON(r.Data), URI: r.Data.URI, Reason: r.Reason, Actor: r.Actor, MadeAt: r.MadeAt, LiftedAt: r.LiftedAt,
		LiftedBy: r.LiftedBy, LiftReason: r.LiftReason, InForce: r.LiftedAt == nil, Settled: r.Settled, Revoked: r.Revoked, Blocked: r.Blocked}
}

func recallRefJSON(r *review.RecallRef) *wireRecallRef {
	if r == nil {
		return nil
	}
	return &wireRecallRef{ID: r.ID, SHA256: sha256JSON(r.Data), URI: r.Data.URI, Reason: r.Reason, MadeAt: r.MadeAt, LiftedAt: r.LiftedAt}
}

func recallHitJSON(h *review.RecallHit) wireRecallHit {
	out := wireRecallHit{Screening: h.Screening, RunRef: h.RunRef, Team: h.Team, Submitter: h.Submitter, Owner: h.Owner, CreatedAt: h.CreatedAt,
		SpecSHA256: h.Spec, Outcome: h.Outcome, Status: h.Status, Ended: h.ByRecall, How: "derives", Path: make([]wireRecallStep, len(h.Path))}
	if h.Uses {
		out.How = "uses"
	}
	for i, step := range h.Path {
		out.Path[i] = wireRecallStep{step.Words, step.Point.String()}
	}
	return out
}

type recallBody struct {
	SHA256 *screening.Digest256 `json:"sha256"`
	URI    string               `json:"uri" validate:"max=10000"`
	Reason string               `json:"reason" validate:"required,max=10000"`
}

// recall takes data out of use. 201: it is in force; settled tells whether
// everything that it ends is written down and told.
func (s *Server) recall(c echo.Context) error {
	var body recallBody
	if err := s.decode(c, "recall", &body); err != nil {
		return err
	}
	data := review.RecalledData{URI: body.URI}
	if body.SHA256 != nil {
		data.SHA256 = *body.SHA256
	}
	r, err := gateOf(c).Desk.Recall(c.Request().Context(), principalOf(c), data, body.Reason)
	if err != nil {
		return err
	}
	s.cfg.Metrics.recalls.WithLabelValues(recallMade).Inc()
	c.Response().Header().Set("Location", "/v1/recalls/"+r.ID)
	return reply(c, http.StatusCreated, recallJSON(r))
}

func (s *Server) liftRecall(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	var body reasonBody
	if err := s.decode(c, "recall", &body); err != nil {
		return err
	}
	r, err := gateOf(c).Desk.LiftRecall(c.Request().Context(), principalOf(c), id, body.Reason)
	if err != nil {
		return err
	}
	s.cfg.Metrics.recalls.WithLabelValues(recallLifted).Inc()
	return reply(c, http.StatusOK, recallJSON(r))
}

// recallList is a page of them.
type recallList struct {
	Recalls []wireRecall `json:"recalls"`
	Next    string       `json:"next,omitzero"`
}

func (s *Server) listRecalls(c echo.Context) error {
	limit, after, err := page(c)
	if err != nil {
		return err
	}
	live, err := boolParam(c, "live")
	if err != nil {
		return err
	}
	list, err := gateOf(c).Desk.Recalls(c.Request().Context(), principalOf(c), review.RecallQuery{Live: live, After: after, Limit: limit})
	if err != nil {
		return err
	}
	out := recallList{Recalls: make([]wireRecall, len(list))}
	for i, r := range list {
		out.Recalls[i] = recallJSON(r)
	}
	if len(list) == limit {
		last := list[len(list)-1]
		out.Next = cursor(last.MadeAt, last.ID)
	}
	return reply(c, http.StatusOK, out)
}

// recallReport is a recall with a page of what falls under it.
type recallReport struct {
	wireRecall
	Total      int             `json:"total"`                    // screenings on all pages
	Unknown    int             `json:"unknown_lineage,omitzero"` // specs that were erased before their lineage was kept
	Screenings []wireRecallHit `json:"screenings"`
	Next       string          `json:"next,omitzero"`
}

// getRecall gives a recall with a page of what falls under it.
func (s *Server) getRecall(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	limit, after, err := page(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), reportTimeout)
	defer cancel()
	r, hits, err := gateOf(c).Desk.RecallReport(ctx, principalOf(c), id, after, limit)
	if err != nil {
		return err
	}
	out := recallReport{wireRecall: recallJSON(r), Total: hits.Total, Unknown: hits.Unknown, Screenings: make([]wireRecallHit, len(hits.Hits))}
	for i := range hits.Hits {
		out.Screenings[i] = recallHitJSON(&hits.Hits[i])
	}
	if len(hits.Hits) == limit {
		last := hits.Hits[len(hits.Hits)-1]
		out.Next = cursor(last.CreatedAt, last.Screening)
	}
	return reply(c, http.StatusOK, out)
}
