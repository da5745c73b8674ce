package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-playground/validator/v10"
	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
)

// Keys authenticates API keys. The error is review.ErrUnauthenticated for
// anything but a live key.
type Keys interface {
	Authenticate(ctx context.Context, id string, secret screening.Digest256) (review.Principal, error)
}

// Gate is what the server serves once it is ready.
type Gate struct {
	Desk *review.Desk
	Keys Keys
	// Ready gives the reasons why the gate must not be used right now; nil = ready.
	Ready func(ctx context.Context) []string
}

// Config tunes a Server.
type Config struct {
	// Log gets one event per request. Default slog.Default().
	Log *slog.Logger
	// Metrics collects what is counted. Required.
	Metrics *Metrics
	// InFlight bounds the requests worked on at once; more wait a moment and
	// then get 503. Default 64.
	InFlight int
	// Timeout bounds a request that does not wait. Default 5 s.
	Timeout time.Duration
}

// Server answers HTTP. Until Open it answers 503 to everything but /livez.
type Server struct {
	echo     *echo.Echo
	cfg      Config
	gate     atomic.Pointer[Gate]
	stopping atomic.Bool
	slots    chan struct{}
	validate *validator.Validate
	ready    readiness
}

// New builds the server. Nothing is served before Open.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.InFlight == 0 {
		cfg.InFlight = 64
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	s := &Server{echo: echo.New(), cfg: cfg, slots: make(chan struct{}, cfg.InFlight), validate: newValidator()}
	e := s.echo
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = echo.ExtractIPDirect() // never trust a forwarded address by default
	e.HTTPErrorHandler = s.writeError
	e.Use(s.observe)
	for _, r := range s.routes() {
		e.Add(r.method, r.path, r.handler, s.guard(r))
	}
	return s
}

// route is one line of the interface. A caller needs one of the scopes; none
// means that anybody may ask.
type route struct {
	method, path string
	scopes       []review.Scope
	handler      echo.HandlerFunc
}

// routes is the whole interface, on one screen.
func (s *Server) routes() []route {
	var (
		anybody []review.Scope
		submit  = []review.Scope{review.ScopeSubmit}
		read    = []review.Scope{review.ScopeSubmit, review.ScopeReview, review.ScopeAudit}
		queue   = []review.Scope{review.ScopeReview, review.ScopeAudit}
		vote    = []review.Scope{review.ScopeReview}
		packs   = []review.Scope{review.ScopeSubmit, review.ScopeReview, review.ScopeAudit, review.ScopePolicy}
	)
	return []route{
		{http.MethodPost, "/v1/screenings", submit, s.submit},
		{http.MethodGet, "/v1/screenings", read, s.listScreenings},
		{http.MethodGet, "/v1/screenings/:id", read, s.getScreening},
		{http.MethodGet, "/v1/screenings/:id/spec", read, s.getSpec},
		{http.MethodPost, "/v1/gate/check", submit, s.checkGate},
		{http.MethodGet, "/v1/reviews", queue, s.listReviews},
		{http.MethodGet, "/v1/reviews/:id", queue, s.getReview},
		{http.MethodPost, "/v1/reviews/:id/votes", vote, s.vote},
		{http.MethodGet, "/v1/packs", packs, s.listPacks},
		{http.MethodGet, "/v1/packs/:id", packs, s.getPack},
		{http.MethodGet, "/livez", anybody, s.livez},
		{http.MethodGet, "/readyz", anybody, s.readyz},
		{http.MethodGet, "/metrics", anybody, s.metrics},
	}
}

// Open begins to serve a gate.
func (s *Server) Open(g Gate) { s.gate.Store(&g) }

// Drain makes /readyz say no, so that no new work is sent here.
func (s *Server) Drain() { s.stopping.Store(true) }

// Handler is the server as an http.Handler.
func (s *Server) Handler() http.Handler { return s.echo }

// HTTPServer wraps the handler with the time limits that keep slow clients from
// holding connections. The write limit leaves room for the longest wait.
func (s *Server) HTTPServer() *http.Server {
	return &http.Server{
		Handler:           s.echo,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      maxWait + 15*time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelWarn),
	}
}
