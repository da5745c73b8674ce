package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"weir/review"
)

const (
	requestIDHeader = "X-Request-Id"
	gateKey         = "weir.gate"
	principalKey    = "weir.principal"
	slotKey         = "weir.slot"
	slotWait        = 100 * time.Millisecond
)

// whenOpen refuses everything while the gate is not open, also what there is no
// route for: a 404 of a gate that starts must not be taken for its answer.
func (s *Server) whenOpen(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if isProbe(c.Path()) { // they say themselves how it is
			return next(c)
		}
		if s.gate.Load() == nil || s.isStopping() {
			return errNotReady
		}
		return next(c)
	}
}

// guard stands before every handler: it lets nobody through without a key and
// scope, no more at once than fit, and no question that would be misread.
func (s *Server) guard(r route) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		if r.scopes == nil {
			return next
		}
		return func(c echo.Context) error {
			g := s.gate.Load()
			slot := &slot{from: s.slots, gauge: s.cfg.Metrics.inFlight.WithLabelValues("working")}
			if !slot.take(c.Request().Context()) {
				return errBusy
			}
			defer slot.free()
			ctx, cancel := context.WithTimeout(c.Request().Context(), s.cfg.Timeout)
			defer cancel()
			p, err := authenticate(ctx, g, c.Request())
			if err != nil {
				return err
			}
			c.Set(gateKey, g)
			c.Set(principalKey, p)
			c.Set(slotKey, slot)
			if !s.pace.allows(g.Desk.Setup().People, p) {
				return errTooFast
			}
			if !slices.ContainsFunc(r.scopes, p.May) {
				return review.ErrNotAllowed
			}
			if err := checkQuery(c.Request().URL.RawQuery, r.query); err != nil {
				return err
			}
			if !r.waits { // what waits sets its own limit
				c.SetRequest(c.Request().WithContext(ctx))
			}
			return next(c)
		}
	}
}

// slot is a request's place among those that are worked on at once.
type slot struct {
	from  chan struct{}
	gauge prometheus.Gauge
	held  bool
}

// take is asked before a body is read: work that does not fit is refused while
// it is still cheap.
func (s *slot) take(ctx context.Context) bool {
	wait := time.NewTimer(slotWait)
	defer wait.Stop()
	select {
	case s.from <- struct{}{}:
		s.held = true
		s.gauge.Inc()
	case <-wait.C:
	case <-ctx.Done():
	}
	return s.held
}

func (s *slot) free() {
	if s.held {
		<-s.from
		s.held = false
		s.gauge.Dec()
	}
}

// checkQuery refuses parameters that the handler would overlook: a misspelt
// ?gate=true must not turn a closed gate into a 2xx.
func checkQuery(raw string, known []string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return fmt.Errorf("%w: the query cannot be read", errBadParam)
	}
	for name, values := range query {
		switch {
		case !slices.Contains(known, name):
			return fmt.Errorf("%w: one is not known here; known are: %s", errBadParam, cmp.Or(strings.Join(known, ", "), "none"))
		case len(values) > 1:
			return fmt.Errorf("%w: %s is given more than once", errBadParam, name)
		case !utf8.ValidString(values[0]) || strings.ContainsRune(values[0], 0):
			return fmt.Errorf("%w: %s is not text", errBadParam, name)
		}
	}
	return nil
}

// authenticate gives who sent a request: by a key of ours, or by a token of an
// issuer that is declared.
func authenticate(ctx context.Context, g *Gate, r *http.Request) (review.Principal, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return review.Principal{}, errNoKey
	}
	token = strings.TrimSpace(token)
	if g.Tokens != nil && !review.IsAPIKey(token) {
		return g.Tokens.Authenticate(ctx, token)
	}
	key, err := review.ParseAPIKey(token)
	if err != nil {
		return review.Principal{}, err
	}
	return g.Keys.Authenticate(ctx, key.ID, key.SecretSHA256)
}

func gateOf(c echo.Context) *Gate                 { return c.Get(gateKey).(*Gate) }
func principalOf(c echo.Context) review.Principal { return c.Get(principalKey).(review.Principal) }

// isProbe reports whether a route is asked again and again by machines that watch.
func isProbe(path string) bool { return path == "/livez" || path == "/readyz" || path == "/metrics" }

// observe gives every request an id, turns panics into errors, and writes one
// log event and the metrics when it is done.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		start, id := time.Now(), rand.Text()
		c.Response().Header().Set(requestIDHeader, id)
		c.Response().Header().Set("X-Content-Type-Options", "nosniff")
		span := s.follow(c, id)
		defer func() { endSpan(span, c) }() // also of an answer that is cut off below
		defer func() {
			if r := recover(); r != nil {
				if r == http.ErrAbortHandler { //nolint:errorlint // a sentinel that is compared, as net/http does
					panic(r)
				}
				err = fmt.Errorf("%w: panic: %v\n%s", errInternal, r, debug.Stack())
			}
			if err != nil {
				s.writeError(err, c)
			}
			s.finish(c, start, err)
			err = nil // written above
		}()
		return next(c)
	}
}

// routeOf is the pattern that a request came in by.
func routeOf(c echo.Context) string { return cmp.Or(c.Path(), "unknown") }

// knownMethod: clients choose methods, and the labels of a metric must stay few.
func knownMethod(method string) string {
	if method != http.MethodGet && method != http.MethodPost {
		return "other"
	}
	return method
}

func (s *Server) finish(c echo.Context, start time.Time, err error) {
	status, took := c.Response().Status, time.Since(start)
	path := routeOf(c)
	s.cfg.Metrics.request(knownMethod(c.Request().Method), path, status, took)
	attrs := []slog.Attr{
		slog.String("method", c.Request().Method), slog.String("route", path), slog.Int("status", status),
		slog.Duration("took", took), slog.String("client", c.RealIP()),
	}
	if p, ok := c.Get(principalKey).(review.Principal); ok {
		attrs = append(attrs, slog.String("principal", p.Subject), slog.String("project", p.Project))
	}
	level := slog.LevelInfo
	switch {
	case status == http.StatusUnauthorized && err != nil: // the caller is not told more than that
		attrs = append(attrs, slog.String("error", err.Error()))
	case isProbe(path):
		level = slog.LevelDebug
	case status >= 500 && err != nil:
		attrs = append(attrs, slog.String("error", err.Error()))
		switch {
		case errors.Is(err, context.Canceled): // the client went away
		case status == http.StatusServiceUnavailable:
			level = slog.LevelWarn
		default:
			level = slog.LevelError
		}
	}
	s.cfg.Log.LogAttrs(c.Request().Context(), level, "request", attrs...)
}
