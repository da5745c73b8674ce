package api

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"weir/review"
)

const (
	requestIDHeader = "X-Request-Id"
	gateKey         = "weir.gate"
	principalKey    = "weir.principal"
	errorKey        = "weir.error"
	slotWait        = 100 * time.Millisecond
)

// guard stands before every handler: it lets nothing through before the gate is
// open, nobody through without a key and scope, and no more at once than fit.
func (s *Server) guard(r route) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if r.scopes == nil {
				return next(c)
			}
			g := s.gate.Load()
			if g == nil || s.stopping.Load() {
				return errNotReady
			}
			if !s.takeSlot(c.Request().Context()) {
				return errBusy
			}
			defer func() { <-s.slots }()
			ctx, cancel := context.WithTimeout(c.Request().Context(), s.cfg.Timeout)
			defer cancel()
			p, err := authenticate(ctx, g.Keys, c.Request())
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(r.scopes, p.May) {
				return review.ErrNotAllowed
			}
			c.Set(gateKey, g)
			c.Set(principalKey, p)
			if c.QueryParam("wait") == "" {
				c.SetRequest(c.Request().WithContext(ctx))
			}
			return next(c)
		}
	}
}

// takeSlot is asked before a body is read: work that does not fit is refused
// while it is still cheap.
func (s *Server) takeSlot(ctx context.Context) bool {
	select {
	case s.slots <- struct{}{}:
		return true
	default:
	}
	wait := time.NewTimer(slotWait)
	defer wait.Stop()
	select {
	case s.slots <- struct{}{}:
		return true
	case <-wait.C:
	case <-ctx.Done():
	}
	return false
}

func authenticate(ctx context.Context, keys Keys, r *http.Request) (review.Principal, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return review.Principal{}, errNoKey
	}
	key, err := review.ParseAPIKey(strings.TrimSpace(token))
	if err != nil {
		return review.Principal{}, err
	}
	return keys.Authenticate(ctx, key.ID, key.SecretSHA256)
}

func gateOf(c echo.Context) *Gate                 { return c.Get(gateKey).(*Gate) }
func principalOf(c echo.Context) review.Principal { return c.Get(principalKey).(review.Principal) }

// observe gives every request an id, turns panics into errors, and writes one
// log event and the metrics when it is done.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		start, id := time.Now(), rand.Text()
		c.Response().Header().Set(requestIDHeader, id)
		c.Response().Header().Set("X-Content-Type-Options", "nosniff")
		defer func() {
			if r := recover(); r != nil {
				if r == http.ErrAbortHandler { //nolint:errorlint // a sentinel that is compared, as net/http does
					panic(r)
				}
				s.cfg.Log.ErrorContext(c.Request().Context(), "handler panicked", slog.Any("panic", r), slog.String("request_id", id))
				err = errInternal
			}
			if err != nil {
				s.writeError(err, c)
			}
			s.finish(c, id, start, err)
			err = nil // written above
		}()
		return next(c)
	}
}

func (s *Server) finish(c echo.Context, id string, start time.Time, err error) {
	status, took := c.Response().Status, time.Since(start)
	path := c.Path()
	if path == "" {
		path = "unknown"
	}
	s.cfg.Metrics.request(c.Request().Method, path, status, took)
	attrs := []slog.Attr{
		slog.String("method", c.Request().Method), slog.String("route", path), slog.Int("status", status),
		slog.Duration("took", took), slog.String("request_id", id), slog.String("client", c.RealIP()),
	}
	if p, ok := c.Get(principalKey).(review.Principal); ok {
		attrs = append(attrs, slog.String("principal", p.Subject), slog.String("project", p.Project))
	}
	level := slog.LevelInfo
	switch {
	case status >= 500 && err != nil && !errors.Is(err, errNotReady):
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", err.Error()))
	case path == "/livez" || path == "/readyz" || path == "/metrics":
		level = slog.LevelDebug
	}
	s.cfg.Log.LogAttrs(c.Request().Context(), level, "request", attrs...)
}
