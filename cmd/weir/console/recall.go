package console

import (
	"net/http"

	"weir/review"
)

const recallPage = 25

type recallData struct {
	R    *review.Recall
	Hits *review.RecallHits
	Next string
}

// recall shows what was recalled, and what uses it or comes from it.
func (c *Console) recall(w http.ResponseWriter, r *http.Request, v *visit) error {
	id := r.PathValue("id")
	if !isID(id) {
		return review.ErrNotFound
	}
	after, err := cursorOf(r.URL.Query().Get("after"))
	if err != nil {
		return err
	}
	d := recallData{}
	if d.R, d.Hits, err = c.desk.RecallReport(r.Context(), v.Principal, id, after, recallPage+1); err != nil {
		return err
	}
	if len(d.Hits.Hits) > recallPage {
		d.Hits.Hits = d.Hits.Hits[:recallPage]
		last := d.Hits.Hits[recallPage-1]
		d.Next = "/console/recalls/" + id + "?after=" + cursor(last.CreatedAt, last.Screening)
	}
	return c.render(w, r, v, http.StatusOK, "recall", "Recall", d)
}

// mostSteps bounds the steps of a way that a page shows.
const mostSteps = 8

// way is a way from recalled data, as a page shows it.
func way(path []review.RecallStep) (words []string) {
	for i, step := range path {
		if i == mostSteps && len(path) > mostSteps+1 {
			return append(words, count(len(path)-mostSteps, "more step", "more steps"))
		}
		if step.Words == "" {
			words = append(words, "erased, "+step.Point.String()[:12])
			continue
		}
		words = append(words, cut(160, step.Words))
	}
	return words
}
