package api

import (
	"context"

	"github.com/labstack/echo/v4"
)

// console hands a request to the reviewers' pages, within the same bounds as the
// others: so many at once, and so long.
func (s *Server) console(c echo.Context) error {
	g := s.gate.Load()
	if g == nil || g.Console == nil {
		return echo.ErrNotFound
	}
	slot := &slot{from: s.slots, gauge: s.cfg.Metrics.inFlight.WithLabelValues("working")}
	if !slot.take(c.Request().Context()) {
		return errBusy
	}
	defer slot.free()
	ctx, cancel := context.WithTimeout(c.Request().Context(), s.cfg.Timeout)
	defer cancel()
	g.Console.ServeHTTP(c.Response(), c.Request().WithContext(ctx))
	return nil
}
