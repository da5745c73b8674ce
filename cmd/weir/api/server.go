package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
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
	// Warnings gives what should be looked at although the gate works. May be nil.
	Warnings func() []string
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
	// Waiting bounds the long polls beside them, which mostly sleep. Default 512.
	Waiting int
	// Timeout bounds a request that does not wait. Default 5 s.
	Timeout time.Duration
}

// Server answers HTTP. Until Open, and after Drain, it answers 503 to everything
// but /livez and /metrics.
type Server struct {
	echo     *echo.Echo
	cfg      Config
	gate     atomic.Pointer[Gate]
	stopping chan struct{} // closed by Drain
	drain    sync.Once
	slots    chan struct{} // requests being worked on
	waiting  chan struct{} // long polls
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
	if cfg.Waiting == 0 {
		cfg.Waiting = 512
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	s := &Server{echo: echo.New(), cfg: cfg, stopping: make(chan struct{}), slots: make(chan struct{}, cfg.InFlight),
		waiting: make(chan struct{}, cfg.Waiting), validate: newValidator()}
	e := s.echo
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = echo.ExtractIPDirect() // never trust a forwarded address by default
	e.HTTPErrorHandler = s.writeError
	e.Use(s.observe, s.whenOpen)
	for _, r := range s.routes() {
		e.Add(r.method, r.path, r.handler, s.guard(r))
	}
	return s
}

// route is one line of the interface. A caller needs one of the scopes; none
// means that anybody may ask. Query parameters beside query are refused. A route
// that waits is not bound by the time limit of the others.
type route struct {
	method, path string
	scopes       []review.Scope
	handler      echo.HandlerFunc
	query        []string
	waits        bool
}

// routes is the whole interface, on one screen.
func (s *Server) routes() []route {
	var (
		anybody []review.Scope
		submit  = []review.Scope{review.ScopeSubmit}
		read    = []review.Scope{review.ScopeSubmit, review.ScopeReview, review.ScopeAudit}
		queue   = []review.Scope{review.ScopeReview, review.ScopeAudit}
		vote    = []review.Scope{review.ScopeReview}
		correct = []review.Scope{review.ScopeReview, review.ScopeCurate}
		curate  = []review.Scope{review.ScopeCurate}
		example = []review.Scope{review.ScopeReview, review.ScopeAudit, review.ScopeCurate}
		packs   = []review.Scope{review.ScopeSubmit, review.ScopeReview, review.ScopeAudit, review.ScopePolicy}
	)
	return []route{
		{method: http.MethodPost, path: "/v1/screenings", scopes: submit, handler: s.submit, query: []string{"dry_run", "gate"}},
		{method: http.MethodGet, path: "/v1/screenings", scopes: read, handler: s.listScreenings, query: []string{"status", "run_ref", "limit", "cursor"}},
		{method: http.MethodGet, path: "/v1/screenings/:id", scopes: read, handler: s.getScreening, query: []string{"wait"}, waits: true},
		{method: http.MethodGet, path: "/v1/screenings/:id/spec", scopes: read, handler: s.getSpec},
		{method: http.MethodPost, path: "/v1/gate/check", scopes: submit, handler: s.checkGate},
		{method: http.MethodGet, path: "/v1/reviews", scopes: queue, handler: s.listReviews, query: []string{"all", "limit", "cursor"}},
		{method: http.MethodGet, path: "/v1/reviews/:id", scopes: queue, handler: s.getReview},
		{method: http.MethodPost, path: "/v1/reviews/:id/votes", scopes: vote, handler: s.vote},
		{method: http.MethodPost, path: "/v1/corrections", scopes: correct, handler: s.correct},
		{method: http.MethodGet, path: "/v1/corrections", scopes: example, handler: s.listCorrections, query: []string{"status", "limit", "cursor"}},
		{method: http.MethodGet, path: "/v1/corrections/:id", scopes: example, handler: s.getCorrection},
		{method: http.MethodPost, path: "/v1/corrections/:id/status", scopes: curate, handler: s.judgeCorrection},
		{method: http.MethodGet, path: "/v1/packs", scopes: packs, handler: s.listPacks},
		{method: http.MethodGet, path: "/v1/packs/:id", scopes: packs, handler: s.getPack},
		{method: http.MethodGet, path: "/livez", scopes: anybody, handler: s.livez},
		{method: http.MethodGet, path: "/readyz", scopes: anybody, handler: s.readyz},
		{method: http.MethodGet, path: "/metrics", scopes: anybody, handler: s.metrics},
	}
}

// Open begins to serve a gate.
func (s *Server) Open(g Gate) { s.gate.Store(&g) }

// Drain makes /readyz say no, so that no new work is sent here, and answers the
// long polls with what they would have read.
func (s *Server) Drain() { s.drain.Do(func() { close(s.stopping) }) }

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

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
