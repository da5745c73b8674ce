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
	"go.opentelemetry.io/otel/trace"

	"weir/cmd/weir/openapi"
	"weir/review"
	"weir/screening"
	"weir/store/ledger"
)

// Keys authenticates API keys. The error is review.ErrUnauthenticated for
// anything but a live key.
type Keys interface {
	Authenticate(ctx context.Context, id string, secret screening.Digest256) (review.Principal, error)
}

// Tokens authenticates bearer tokens that somebody else issued. Errors:
// review.ErrUnauthenticated, review.ErrIssuerAway, and review.ErrNotAllowed for a
// good token of somebody who is not declared.
type Tokens interface {
	Authenticate(ctx context.Context, token string) (review.Principal, error)
}

// Gate is what the server serves once it is ready.
type Gate struct {
	Desk *review.Desk
	Keys Keys
	// Tokens are taken beside keys. May be nil: then only keys are.
	Tokens Tokens
	// Deliveries is the outbox, as operators see it.
	Deliveries Deliveries
	// Record is the log.
	Record Record
	// SigningKeys sign exports. Empty: nothing is signed, and nothing exported.
	SigningKeys []ledger.Signer
	// Ready gives the reasons why the gate must not be used right now; nil = ready.
	Ready func(ctx context.Context) []string
	// Warnings gives what should be looked at although the gate works. May be nil.
	Warnings func() []string
	// Console serves the reviewers' pages at and below /console. It says itself who
	// may see them; keys of the API mean nothing to it. May be nil.
	Console http.Handler
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
	// Rate is how many requests a second one person or service may send on average;
	// ten seconds' worth may come at once, more get 429. 0 = as many as they like.
	Rate int
	// Now is the clock of Rate. Default time.Now.
	Now func() time.Time
	// Timeout bounds a request that does not wait. Default 5 s.
	Timeout time.Duration
	// Tracing makes a span of each request. Nil: none.
	Tracing trace.TracerProvider
	// Beside are routes of other listeners, for the OpenAPI document. May be nil.
	Beside []openapi.Route
}

// Server answers HTTP. Until Open, and after Drain, it answers 503 to everything
// but /livez and /metrics.
type Server struct {
	echo     *echo.Echo
	cfg      Config
	tracer   trace.Tracer // nil: none
	gate     atomic.Pointer[Gate]
	stopping chan struct{} // closed by Drain
	drain    sync.Once
	pace     *pace
	slots    chan struct{} // requests being worked on
	waiting  chan struct{} // long polls
	replays  chan struct{} // the page of a replay
	exports  chan struct{}
	batches  chan struct{}
	validate *validator.Validate
	ready    readiness

	described, describedPage func() ([]byte, error) // the OpenAPI document, made when somebody asks
}

// New builds the server. Nothing is served before Open.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	cfg.Log = slog.New(LogHandler(cfg.Log.Handler()))
	if cfg.InFlight == 0 {
		cfg.InFlight = 64
	}
	if cfg.Waiting == 0 {
		cfg.Waiting = 512
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{echo: echo.New(), cfg: cfg, stopping: make(chan struct{}), pace: newPace(cfg.Rate, cfg.Now), slots: make(chan struct{}, cfg.InFlight),
		waiting: make(chan struct{}, cfg.Waiting), replays: make(chan struct{}, 1), exports: make(chan struct{}, 2), batches: make(chan struct{}, 2), validate: newValidator()}
	if cfg.Tracing != nil {
		s.tracer = cfg.Tracing.Tracer("weir/api")
	}
	e := s.echo
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = echo.ExtractIPDirect() // never trust a forwarded address by default
	e.HTTPErrorHandler = s.writeError
	e.Use(s.observe, s.whenOpen)
	for _, r := range s.routes() {
		e.Add(r.method, r.path, r.handler, s.guard(r))
	}
	s.described = sync.OnceValues(func() ([]byte, error) { return s.document().JSON() })
	s.describedPage = sync.OnceValues(func() ([]byte, error) { return s.document().Page() })
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
		reopen  = []review.Scope{review.ScopeSubmit, review.ScopeReview}
		correct = []review.Scope{review.ScopeReview, review.ScopeCurate}
		curate  = []review.Scope{review.ScopeCurate}
		example = []review.Scope{review.ScopeReview, review.ScopeAudit, review.ScopeCurate}
		packs   = []review.Scope{review.ScopeSubmit, review.ScopeReview, review.ScopeAudit, review.ScopePolicy}
		audit   = []review.Scope{review.ScopeAudit}
		replay  = []review.Scope{review.ScopeAudit, review.ScopePolicy}
		policy  = []review.Scope{review.ScopePolicy}
		recalls = []review.Scope{review.ScopePolicy, review.ScopeReview, review.ScopeAudit}
		admin   = []review.Scope{review.ScopeAdmin}
	)
	return []route{
		{method: http.MethodPost, path: "/v1/screenings", scopes: submit, handler: s.submit, query: []string{"dry_run", "gate", "explain"}},
		{method: http.MethodPost, path: "/v1/screenings/batch", scopes: submit, handler: s.submitBatch, query: []string{"dry_run"}, waits: true},
		{method: http.MethodGet, path: "/v1/screenings", scopes: read, handler: s.listScreenings, query: []string{"status", "run_ref", "limit", "cursor"}},
		{method: http.MethodGet, path: "/v1/screenings/:id", scopes: read, handler: s.getScreening, query: []string{"wait", "explain"}, waits: true},
		{method: http.MethodGet, path: "/v1/screenings/:id/admission", scopes: read, handler: s.admission},
		{method: http.MethodGet, path: "/v1/admissions/revoked", scopes: read, handler: s.revocations},
		{method: http.MethodGet, path: "/v1/admissions/drift", scopes: replay, handler: s.drift, query: []string{"limit", "cursor"}},
		{method: http.MethodGet, path: "/v1/screenings/:id/spec", scopes: read, handler: s.getSpec},
		{method: http.MethodPost, path: "/v1/screenings/:id/answer", scopes: submit, handler: s.answer},
		{method: http.MethodPost, path: "/v1/screenings/:id/withdraw", scopes: submit, handler: s.withReason((*review.Desk).Withdraw)},
		{method: http.MethodPost, path: "/v1/screenings/:id/appeal", scopes: submit, handler: s.withReason((*review.Desk).Appeal)},
		{method: http.MethodPost, path: "/v1/screenings/:id/reopen", scopes: reopen, handler: s.withReason((*review.Desk).Reopen)},
		{method: http.MethodPost, path: "/v1/gate/check", scopes: submit, handler: s.checkGate},
		{method: http.MethodPost, path: "/v1/bypasses", scopes: submit, handler: s.reportBypass},
		{method: http.MethodGet, path: "/v1/bypasses", scopes: queue, handler: s.listBypasses, query: []string{"limit", "cursor"}},
		{method: http.MethodGet, path: "/v1/reviews", scopes: queue, handler: s.listReviews, query: []string{"all", "limit", "cursor"}},
		{method: http.MethodGet, path: "/v1/reviews/:id", scopes: queue, handler: s.getReview},
		{method: http.MethodPost, path: "/v1/reviews/:id/votes", scopes: vote, handler: s.vote},
		{method: http.MethodPost, path: "/v1/reviews/:id/claim", scopes: vote, handler: s.claiming((*review.Desk).Claim)},
		{method: http.MethodPost, path: "/v1/reviews/:id/release", scopes: vote, handler: s.claiming((*review.Desk).Release)},
		{method: http.MethodPost, path: "/v1/reviews/:id/needs-evidence", scopes: vote, handler: s.ask},
		{method: http.MethodPost, path: "/v1/reviews/:id/comments", scopes: vote, handler: s.comment},
		{method: http.MethodPost, path: "/v1/reviews/:id/corrections", scopes: vote, handler: s.correctReview},
		{method: http.MethodPost, path: "/v1/waivers", scopes: vote, handler: s.waive},
		{method: http.MethodGet, path: "/v1/waivers", scopes: queue, handler: s.listWaivers, query: []string{"screening", "limit", "cursor"}},
		{method: http.MethodGet, path: "/v1/waivers/:id", scopes: queue, handler: s.getWaiver},
		{method: http.MethodPost, path: "/v1/waivers/:id/confirm", scopes: vote, handler: s.confirmWaiver},
		{method: http.MethodPost, path: "/v1/corrections", scopes: correct, handler: s.correct},
		{method: http.MethodGet, path: "/v1/corrections", scopes: example, handler: s.listCorrections, query: []string{"status", "limit", "cursor"}},
		{method: http.MethodGet, path: "/v1/corrections/:id", scopes: example, handler: s.getCorrection},
		{method: http.MethodPost, path: "/v1/corrections/:id/status", scopes: curate, handler: s.judgeCorrection},
		{method: http.MethodGet, path: "/v1/packs", scopes: packs, handler: s.listPacks},
		{method: http.MethodGet, path: "/v1/packs/:id", scopes: packs, handler: s.getPack},
		{method: http.MethodPost, path: "/v1/packs/replay", scopes: replay, handler: s.replayPacks},
		{method: http.MethodGet, path: "/v1/audit/checkpoint", scopes: read, handler: s.checkpoint, query: []string{"cosigned"}},
		{method: http.MethodGet, path: "/v1/audit/entries", scopes: audit, handler: s.logEntries, query: []string{"from", "limit"}},
		{method: http.MethodGet, path: "/v1/audit/proof", scopes: read, handler: s.logProof, query: []string{"screening", "seq", "size", "old"}},
		{method: http.MethodGet, path: "/v1/exports", scopes: audit, handler: s.export, waits: true,
			query: []string{"from", "to", "size", "since", "run_ref", "outcome", "payloads", "skip", "format", "after"}},
		{method: http.MethodPost, path: "/v1/recalls", scopes: policy, handler: s.recall},
		{method: http.MethodGet, path: "/v1/recalls", scopes: recalls, handler: s.listRecalls, query: []string{"live", "limit", "cursor"}},
		{method: http.MethodGet, path: "/v1/recalls/:id", scopes: recalls, handler: s.getRecall, query: []string{"limit", "cursor"}, waits: true},
		{method: http.MethodPost, path: "/v1/recalls/:id/lift", scopes: policy, handler: s.liftRecall},
		{method: http.MethodPost, path: "/v1/erasures", scopes: admin, handler: s.erase},
		{method: http.MethodGet, path: "/v1/endpoints", scopes: policy, handler: s.listEndpoints},
		{method: http.MethodGet, path: "/v1/endpoints/:id", scopes: policy, handler: s.getEndpoint},
		{method: http.MethodPost, path: "/v1/endpoints/:id/enable", scopes: policy, handler: s.enableEndpoint},
		{method: http.MethodPost, path: "/v1/endpoints/:id/disable", scopes: policy, handler: s.disableEndpoint},
		{method: http.MethodPost, path: "/v1/endpoints/:id/ping", scopes: policy, handler: s.pingEndpoint},
		{method: http.MethodPost, path: "/v1/endpoints/:id/redeliver", scopes: policy, handler: s.redeliverFailed},
		{method: http.MethodGet, path: "/v1/deliveries", scopes: policy, handler: s.listDeliveries, query: []string{"endpoint", "state", "type", "review", "limit", "cursor"}},
		{method: http.MethodGet, path: "/v1/deliveries/:id", scopes: policy, handler: s.getDelivery},
		{method: http.MethodPost, path: "/v1/deliveries/:id/redeliver", scopes: policy, handler: s.redeliver},
		{method: http.MethodGet, path: "/console", scopes: anybody, handler: s.console},
		{method: http.MethodGet, path: "/console/*", scopes: anybody, handler: s.console},
		{method: http.MethodPost, path: "/console/*", scopes: anybody, handler: s.console},
		{method: http.MethodGet, path: "/schemas/:name", scopes: anybody, handler: s.schema},
		{method: http.MethodGet, path: "/openapi.json", scopes: anybody, handler: s.openapi},
		{method: http.MethodGet, path: "/openapi", scopes: anybody, handler: s.openapiPage},
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
