package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
)

// wireWaiver is a waiver as clients see it.
type wireWaiver struct {
	ID            string               `json:"id"`
	ScreeningID   string               `json:"screening_id"`
	Term          string               `json:"term"`
	FindingSHA256 screening.Digest256  `json:"finding_sha256"`
	SpecSHA256    *screening.Digest256 `json:"spec_sha256,omitzero"` // for one spec, or
	RunPrefix     string               `json:"run_prefix,omitzero"`  // for runs with
	Inputs        []string             `json:"inputs,omitempty"`     // these inputs
	Policy        string               `json:"policy"`
	Reason        string               `json:"reason"`
	Ticket        string               `json:"ticket"`
	Author        string               `json:"author"`
	CreatedAt     time.Time            `json:"created_at"`
	ExpiresAt     time.Time            `json:"expires_at"`
	ConfirmedBy   string               `json:"confirmed_by,omitzero"`
	ConfirmedAt   *time.Time           `json:"confirmed_at,omitzero"`
	InForce       bool                 `json:"in_force"`
}

func waiverJSON(w *review.Waiver) wireWaiver {
	out := wireWaiver{ID: w.ID, ScreeningID: w.ScreeningID, Term: w.Term, FindingSHA256: w.FindingSHA256, RunPrefix: w.RunPrefix, Inputs: w.Inputs,
		Policy: w.Policy, Reason: w.Reason, Ticket: w.Ticket, Author: w.Author, CreatedAt: w.CreatedAt, ExpiresAt: w.ExpiresAt,
		ConfirmedBy: w.ConfirmedBy, ConfirmedAt: w.ConfirmedAt, InForce: w.InForce}
	if w.RunPrefix == "" {
		out.SpecSHA256 = &w.SpecSHA256
	}
	return out
}

type waiverBody struct {
	ScreeningID string   `json:"screening_id" validate:"required"`
	Term        string   `json:"term" validate:"required,max=300"`
	Reason      string   `json:"reason" validate:"required,max=10000"`
	Ticket      string   `json:"ticket" validate:"required,max=500"`
	Days        int      `json:"days" validate:"min=1,max=30"`
	RunPrefix   string   `json:"run_prefix"`
	Inputs      []string `json:"inputs" validate:"max=1000"`
}

// waive asks for a waiver. 201; it is not in force before a second person confirms it.
func (s *Server) waive(c echo.Context) error {
	var body waiverBody
	if err := s.decode(c, "waiver", &body); err != nil {
		return err
	}
	if !isUUID(body.ScreeningID) {
		return review.ErrNotFound
	}
	w, err := gateOf(c).Desk.Waive(c.Request().Context(), principalOf(c), review.WaiverRequest{ScreeningID: strings.ToLower(body.ScreeningID),
		Term: body.Term, Reason: body.Reason, Ticket: body.Ticket, Days: body.Days, RunPrefix: body.RunPrefix, Inputs: body.Inputs})
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", "/v1/waivers/"+w.ID)
	return reply(c, http.StatusCreated, waiverJSON(w))
}

func (s *Server) confirmWaiver(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	if err := s.decodeIfAny(c, "confirmation", &struct{}{}); err != nil {
		return err
	}
	w, err := gateOf(c).Desk.ConfirmWaiver(c.Request().Context(), principalOf(c), id)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, waiverJSON(w))
}

func (s *Server) getWaiver(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	w, err := gateOf(c).Desk.Waiver(c.Request().Context(), principalOf(c), id)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, waiverJSON(w))
}

// waiverList is a page of them.
type waiverList struct {
	Waivers []wireWaiver `json:"waivers"`
	Next    string       `json:"next,omitzero"`
}

func (s *Server) listWaivers(c echo.Context) error {
	limit, after, err := page(c)
	if err != nil {
		return err
	}
	list, err := gateOf(c).Desk.Waivers(c.Request().Context(), principalOf(c),
		review.WaiverQuery{ScreeningID: c.QueryParam("screening"), After: after, Limit: limit})
	if err != nil {
		return err
	}
	out := waiverList{Waivers: make([]wireWaiver, len(list))}
	for i, w := range list {
		out.Waivers[i] = waiverJSON(w)
	}
	if len(list) == limit {
		last := list[len(list)-1]
		out.Next = cursor(last.CreatedAt, last.ID)
	}
	return reply(c, http.StatusOK, out)
}
