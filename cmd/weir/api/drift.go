package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
)

// driftAnswer is a page of what the packs in force make of live admissions.
type driftAnswer struct {
	Packs   []screening.PackRef `json:"packs"` // in force
	Project string              `json:"project"`
	Engine  string              `json:"engine"`
	review.DriftPage
	Next string `json:"next,omitzero"`
}

// drift decides live admissions that other packs gave once more, a page at a time,
// and stands back as a replay does. It keeps nothing and ends nothing.
func (s *Server) drift(c echo.Context) error {
	limit, after, err := page(c)
	if err != nil {
		return err
	}
	place := &slot{from: s.replays, gauge: s.cfg.Metrics.inFlight.WithLabelValues("replaying")}
	if !place.take(c.Request().Context()) {
		return errBusy
	}
	defer place.free()
	start := time.Now()
	desk, p := gateOf(c).Desk, principalOf(c)
	found, err := desk.Drift(c.Request().Context(), p, after, func(page *review.DriftPage) bool {
		return page.Other >= limit || time.Since(start) > replayTime || len(s.slots)-1 > cap(s.slots)/2
	})
	if err != nil {
		return err
	}
	out := driftAnswer{Packs: desk.Setup().Vocabulary.Packs(), Project: p.Project, Engine: screening.EngineVersion, DriftPage: *found}
	if found.Next != nil {
		out.Next = cursor(found.Next.At, found.Next.ID)
	}
	return reply(c, http.StatusOK, out)
}
