package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
)

// bypassBody is the report of a run that started although the gate could not be
// asked. spec is the text that trained, byte for byte.
type bypassBody struct {
	ID     string    `json:"id" validate:"required"`
	At     time.Time `json:"at" validate:"required"`
	Reason string    `json:"reason" validate:"required"`
	Spec   string    `json:"spec" validate:"required"`
}

// wireBypass is a report as readers see it.
type wireBypass struct {
	ID          string              `json:"id"`
	At          time.Time           `json:"at"`
	Reason      string              `json:"reason"`
	Submitter   string              `json:"submitter"`
	SpecSHA256  screening.Digest256 `json:"spec_sha256"`
	RunRef      string              `json:"run_ref,omitzero"`
	Outcome     screening.Outcome   `json:"outcome,omitzero"`
	ScreeningID string              `json:"screening,omitzero"`
	ReportedAt  time.Time           `json:"reported_at"`
}

func bypassJSON(b *review.Bypass) wireBypass {
	return wireBypass{b.ID, b.At, b.Reason, b.Submitter, b.SpecSHA256, b.RunRef, b.Outcome, b.ScreeningID, b.ReportedAt}
}

// reportBypass keeps the report. 201 kept, 200 when it was kept before.
func (s *Server) reportBypass(c echo.Context) error {
	var body bypassBody
	if err := s.decode(c, "bypass", &body); err != nil {
		return err
	}
	if !isUUID(body.ID) {
		return &screening.InvalidError{What: "bypass", Problems: []screening.Problem{{Pointer: "/id", Detail: "must be a UUID"}}}
	}
	kept, existing, err := gateOf(c).Desk.ReportBypass(c.Request().Context(), principalOf(c),
		review.Bypass{ID: strings.ToLower(body.ID), At: body.At, Reason: body.Reason, Spec: []byte(body.Spec)})
	if err != nil {
		return err
	}
	if existing {
		return reply(c, http.StatusOK, bypassJSON(kept))
	}
	return reply(c, http.StatusCreated, bypassJSON(kept))
}

// bypassList is a page of them.
type bypassList struct {
	Bypasses []wireBypass `json:"bypasses"`
	Next     string       `json:"next,omitzero"`
}

func (s *Server) listBypasses(c echo.Context) error {
	limit, after, err := page(c)
	if err != nil {
		return err
	}
	list, err := gateOf(c).Desk.Bypasses(c.Request().Context(), principalOf(c), limit, after)
	if err != nil {
		return err
	}
	out := bypassList{Bypasses: make([]wireBypass, len(list))}
	for i, b := range list {
		out.Bypasses[i] = bypassJSON(b)
	}
	if len(list) == limit {
		last := list[len(list)-1]
		out.Next = cursor(last.ReportedAt, last.ID)
	}
	return reply(c, http.StatusOK, out)
}
