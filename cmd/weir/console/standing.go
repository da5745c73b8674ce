package console

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"weir/review"
	"weir/screening"
)

// mostWaivers bounds the waivers that a page lists.
const mostWaivers = 10

// standing is what reviewers can do about a screening beside voting on it: waive
// a finding, confirm a waiver, go on with a review that expired.
type standing struct {
	Waivers  []*review.Waiver
	Terms    []string // that a waiver could be asked for
	Confirms map[string]bool
	Reopens  bool
	Form     standingForm
	Notice   string
}

// standingForm is what was typed, kept over an error.
type standingForm struct {
	About, Term, Reason, Ticket, Days string
	Errors                            []formError
}

// Offers reports whether there is something to do or to see.
func (s standing) Offers() bool {
	return len(s.Waivers) > 0 || len(s.Terms) > 0 || s.Reopens || len(s.Form.Errors) > 0
}

// standingOf says what the reader could do; the Desk asks again when they do it.
func (c *Console) standingOf(r *http.Request, v *visit, x *subject, form standingForm) (s standing, err error) {
	s = standing{Form: form, Confirms: map[string]bool{}}
	if s.Waivers, err = c.desk.Waivers(r.Context(), v.Principal, review.WaiverQuery{ScreeningID: x.S.ID, Limit: mostWaivers}); err != nil {
		return s, err
	}
	if !v.May(review.ScopeReview) {
		return s, nil
	}
	for _, w := range s.Waivers {
		author, _ := c.desk.Setup().People.Person(w.Author)
		s.Confirms[w.ID] = w.ConfirmedBy == "" && author != v.person
	}
	s.Reopens = x.S.Status == review.StatusExpired && x.S.Review != nil && x.S.Review.State == review.Expired
	if (x.S.Status == review.StatusPending || x.S.Status == review.StatusBlocked) && x.S.DecidedBy == review.ByPacks && !x.S.FloorViolated {
		for _, e := range x.D.Causes {
			if e.Effect >= screening.Escalate && strings.HasPrefix(e.Term, string(screening.Ethics)+":") && len(s.Terms) < 2*mostFindings {
				s.Terms = append(s.Terms, e.Term)
			}
		}
	}
	return s, nil
}

// stand takes the forms of a screening's page.
func (c *Console) stand(w http.ResponseWriter, r *http.Request, v *visit) error {
	s, err := c.screeningOf(r, v)
	if err != nil {
		return err
	}
	if err := r.ParseForm(); err != nil {
		return errForm
	}
	form := standingForm{About: r.PathValue("act"), Term: r.PostForm.Get("term"), Ticket: r.PostForm.Get("ticket"), Days: r.PostForm.Get("days"),
		Reason: strings.ReplaceAll(r.PostForm.Get("reason"), "\r\n", "\n")}
	to := "/console/screenings/" + s.ID + "?done=" + form.About
	switch form.About {
	case "waive":
		days, _ := strconv.Atoi(form.Days) // what is no number is too few
		_, err = c.desk.Waive(r.Context(), v.Principal, review.WaiverRequest{ScreeningID: s.ID, Term: form.Term, Reason: form.Reason,
			Ticket: form.Ticket, Days: days})
	case "confirm":
		id := r.PostForm.Get("waiver")
		if !isID(id) {
			return errForm
		}
		_, err = c.desk.ConfirmWaiver(r.Context(), v.Principal, id)
	case "reopen":
		if s, err = c.desk.Reopen(r.Context(), v.Principal, s.ID, form.Reason); err == nil && s.Review != nil {
			to = "/console/reviews/" + s.Review.ID
		}
	default:
		return review.ErrNotFound
	}
	var invalid *screening.InvalidError
	var refused *review.VoteError
	status := http.StatusConflict
	switch {
	case err == nil:
		return seeOther(w, r, to)
	case errors.As(err, &invalid):
		status = http.StatusUnprocessableEntity
		for _, p := range invalid.Problems {
			field := strings.TrimPrefix(p.Pointer, "/")
			form.Errors = append(form.Errors, formError{field, "The " + strings.ReplaceAll(field, "_", " ") + " " + p.Detail + "."})
		}
	case errors.As(err, &refused):
		if errors.Is(err, review.ErrNotAllowed) {
			status = http.StatusForbidden
		}
		form.Errors = []formError{{"", sentence(refused.Reason)}}
	default:
		return err
	}
	return c.showScreening(w, r, v, status, form, false)
}

// standingNotices say what was kept, after a form.
var standingNotices = map[string]string{"waive": "The waiver is asked for. It is not in force before a second person of the panel confirms it.",
	"confirm": "The waiver is confirmed and in force."}
