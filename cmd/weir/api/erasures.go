package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
)

type erasureBody struct {
	Screening  string               `json:"screening"`
	SpecSHA256 *screening.Digest256 `json:"spec_sha256"`
	Reason     string               `json:"reason" validate:"required,max=10000"`
}

type erasureAnswer struct {
	SpecSHA256 screening.Digest256 `json:"spec_sha256"`
	Screenings int                 `json:"screenings"`
	Erased     wireErased          `json:"erased"`
}

// erase erases the bytes of a spec and of all decisions of it. What is said about
// them stays.
func (s *Server) erase(c echo.Context) error {
	var body erasureBody
	if err := s.decode(c, "erasure", &body); err != nil {
		return err
	}
	r := review.ErasureRequest{ScreeningID: body.Screening, Reason: body.Reason}
	switch {
	case (body.Screening == "") == (body.SpecSHA256 == nil):
		return &screening.InvalidError{What: "erasure", Problems: []screening.Problem{
			{Pointer: "/screening", Detail: "give either a screening or spec_sha256"}}}
	case body.SpecSHA256 != nil:
		r.SpecSHA256 = *body.SpecSHA256
	case !isUUID(body.Screening):
		return review.ErrNotFound
	}
	e, err := gateOf(c).Desk.Erase(c.Request().Context(), principalOf(c), r)
	if err != nil {
		return err
	}
	return reply(c, http.StatusCreated, erasureAnswer{e.SpecSHA256, e.Screenings, *erasedJSON(&e.Erased)})
}
