package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
)

// reviewList is a page of them.
type reviewList struct {
	Reviews []wireReview `json:"reviews"`
	Next    string       `json:"next,omitzero"`
}

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
	out := reviewList{Reviews: make([]wireReview, len(list))}
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
	Facts           []review.Fact       `json:"facts" validate:"max=50"`
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
		Reason: body.Reason, Terms: body.Terms, Facts: body.Facts})
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, reviewJSON(r, false))
}

type versionBody struct {
	ExpectedVersion int `json:"expected_version" validate:"min=0"`
}

// claiming is claim and release.
func (s *Server) claiming(do func(*review.Desk, context.Context, review.Principal, string, int) (*review.Review, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := pathID(c)
		if err != nil {
			return err
		}
		var body versionBody
		if err := s.decodeIfAny(c, "claim", &body); err != nil {
			return err
		}
		r, err := do(gateOf(c).Desk, c.Request().Context(), principalOf(c), id, body.ExpectedVersion)
		if err != nil {
			return err
		}
		return reply(c, http.StatusOK, reviewJSON(r, false))
	}
}

type askBody struct {
	ExpectedVersion int    `json:"expected_version" validate:"min=0"`
	Note            string `json:"note" validate:"required,max=10000"`
}

func (s *Server) ask(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	var body askBody
	if err := s.decode(c, "question", &body); err != nil {
		return err
	}
	r, err := gateOf(c).Desk.Ask(c.Request().Context(), principalOf(c), id, body.ExpectedVersion, body.Note)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, reviewJSON(r, false))
}

type commentBody struct {
	ExpectedVersion int    `json:"expected_version" validate:"min=0"`
	Text            string `json:"text" validate:"required,max=10000"`
}

func (s *Server) comment(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	var body commentBody
	if err := s.decode(c, "comment", &body); err != nil {
		return err
	}
	r, err := gateOf(c).Desk.Comment(c.Request().Context(), principalOf(c), id, body.ExpectedVersion, body.Text)
	if err != nil {
		return err
	}
	return reply(c, http.StatusCreated, reviewJSON(r, false))
}

type reviewCorrectionBody struct {
	CorrectionText string              `json:"correction_text"` // an empty one is for the gate to reject
	Expects        *review.Expectation `json:"expects"`
	Identity       *identityBody       `json:"identity"`
}

// correctReview sends a correction of the screening that a review is about.
func (s *Server) correctReview(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	var body reviewCorrectionBody
	if err := s.decode(c, "correction", &body); err != nil {
		return err
	}
	score, manifold, err := body.Identity.geometry()
	if err != nil {
		return err
	}
	kept, existing, err := gateOf(c).Desk.CorrectReview(c.Request().Context(), principalOf(c), id, review.CorrectionRequest{
		Text: body.CorrectionText, Expects: body.Expects, Score: score, Manifold: manifold})
	if err != nil {
		return err
	}
	return correctionReply(c, kept, existing)
}
