package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
)

func (s *Server) listReviews(c echo.Context) error {
	limit, after, err := page(c)
	if err != nil {
		return err
	}
	all, err := boolParam(c, "all")
	if err != nil {
		return err
	}
	list, err := gateOf(c).Desk.Reviews(c.Request().Context(), principalOf(c), review.ReviewQuery{OpenOnly: !all, After: after, Limit: limit})
	if err != nil {
		return err
	}
	out := struct {
		Reviews []wireReview `json:"reviews"`
		Next    string       `json:"next,omitzero"`
	}{Reviews: make([]wireReview, len(list))}
	for i, r := range list {
		out.Reviews[i] = reviewJSON(r, false)
	}
	if len(list) == limit {
		last := list[len(list)-1]
		at := last.DueAt
		if all {
			at = last.OpenedAt
		}
		out.Next = cursor(at, last.ID)
	}
	return reply(c, http.StatusOK, out)
}

func (s *Server) getReview(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	r, err := gateOf(c).Desk.Review(c.Request().Context(), principalOf(c), id)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, reviewJSON(r, true))
}

type voteBody struct {
	ExpectedVersion int                 `json:"expected_version" validate:"min=1"`
	SpecSHA256      screening.Digest256 `json:"spec_sha256" validate:"required"`
	Vote            string              `json:"vote" validate:"oneof=admit block"`
	Reason          string              `json:"reason" validate:"required,max=10000"`
	Terms           []string            `json:"terms" validate:"max=500"`
}

func (s *Server) vote(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	var body voteBody
	if err := s.decode(c, "vote", &body); err != nil {
		return err
	}
	r, err := gateOf(c).Desk.Vote(c.Request().Context(), principalOf(c), id, review.VoteRequest{
		ExpectedVersion: body.ExpectedVersion, SpecSHA256: body.SpecSHA256, Choice: review.Choice(body.Vote),
		Reason: body.Reason, Terms: body.Terms})
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, reviewJSON(r, false))
}
