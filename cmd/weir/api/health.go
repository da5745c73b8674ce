package api

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"weir/screening"
	"weir/webhooks"
)

type (
	aliveAnswer struct {
		Status string `json:"status"`
	}
	readyAnswer struct {
		Status     string              `json:"status"`
		Packs      []screening.PackRef `json:"packs"`
		Warnings   []string            `json:"warnings"`
		Unratified bool                `json:"unratified"`
		AuditOnly  bool                `json:"audit_only"`
	}
	notReadyAnswer struct {
		Status  string   `json:"status"`
		Reasons []string `json:"reasons"`
	}
)

// livez says that the process runs. It never asks the database.
func (s *Server) livez(c echo.Context) error {
	return reply(c, http.StatusOK, aliveAnswer{"alive"})
}

// readyz says whether the gate can be trusted with a question right now.
func (s *Server) readyz(c echo.Context) error {
	g, reasons := s.whyNotReady(c.Request().Context())
	if len(reasons) > 0 {
		c.Response().Header().Set("Retry-After", strconv.Itoa(retryLater[errNotReady]))
		return reply(c, http.StatusServiceUnavailable, notReadyAnswer{"not ready", reasons})
	}
	v := g.Desk.Setup().Vocabulary
	warnings := []string{}
	if g.Warnings != nil {
		warnings = append(warnings, g.Warnings()...)
	}
	return reply(c, http.StatusOK, readyAnswer{"ready", v.Packs(), warnings, v.Config().Unratified, v.Config().AuditOnly})
}

// whyNotReady gives the gate and, unless it can be trusted right now, the reasons.
func (s *Server) whyNotReady(ctx context.Context) (g *Gate, reasons []string) {
	g = s.gate.Load()
	switch {
	case s.isStopping():
		reasons = []string{"stopping"}
	case g == nil:
		reasons = []string{"starting"}
	default:
		reasons = s.ready.ask(ctx, g)
	}
	s.cfg.Metrics.setReady(len(reasons) == 0)
	return g, reasons
}

// readiness keeps an answer for a second, so that probes cost nothing.
type readiness struct {
	mu      sync.Mutex
	at      time.Time
	reasons []string
}

func (r *readiness) ask(ctx context.Context, g *Gate) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) > time.Second {
		// The answer is for everybody who asks in the next second: not cut short
		// because one of them went away.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		r.reasons, r.at = g.Ready(ctx), time.Now()
	}
	return r.reasons
}

// Metrics counts what operators watch.
type Metrics struct {
	registry  *prometheus.Registry
	requests  *prometheus.HistogramVec
	decisions *prometheus.CounterVec
	attempts  *prometheus.CounterVec
	endpoints *prometheus.GaugeVec
	waiting   *prometheus.GaugeVec
	inFlight  *prometheus.GaugeVec
	ready     prometheus.Gauge
	mode      *prometheus.GaugeVec
	disagrees prometheus.Gauge
	hooks     *prometheus.HistogramVec
	recalls   *prometheus.CounterVec
	witnesses *prometheus.GaugeVec
}

// NewMetrics makes the metrics on a registry of their own.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "weir_request_seconds",
			Help: "Time to answer a request.", Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}},
			[]string{"method", "route", "status"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_decisions_total",
			Help: "Decisions kept, by outcome."}, []string{"outcome"}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_webhook_attempts_total",
			Help: "Webhook attempts, by endpoint and failure class; delivered has class none."}, []string{"endpoint", "class"}),
		endpoints: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_webhook_endpoint",
			Help: "1 for the state that a webhook endpoint is in: enabled, cooling or disabled."}, []string{"endpoint", "state"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_webhook_deliveries",
			Help: "Deliveries that did not arrive yet: waiting, held while the endpoint is disabled, or dead."}, []string{"endpoint", "state"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_requests_in_flight",
			Help: "Requests under way: working, batching, exporting or replaying, or waiting for a decision (long polls)."}, []string{"kind"}),
		disagrees: prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_example_disagreements",
			Help: "Coherent reviewed examples that the packs in force disagree with."}),
		hooks: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "weir_hook_seconds",
			Help: "Time to answer the Kubernetes API server, by kind of object and result.", Buckets: []float64{.005, .025, .1, .5, 1, 2.5, 5, 10}},
			[]string{"kind", "result"}),
		recalls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "weir_recalls_total",
			Help: "Recalls of data, made and lifted."}, []string{"act"}),
		witnesses: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_witness_behind_entries",
			Help: "Entries of the log that a witness did not cosign when it was asked last."}, []string{"witness"}),
		ready: prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_ready", Help: "1 when /readyz would say yes."}),
		mode: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_mode",
			Help: "1 for each special mode in use: unratified, audit_only."}, []string{"mode"}),
	}
	m.registry.MustRegister(m.requests, m.decisions, m.attempts, m.endpoints, m.waiting, m.inFlight, m.disagrees, m.ready, m.mode, m.hooks, m.recalls, m.witnesses,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, o := range []screening.Outcome{screening.OutcomeAdmit, screening.OutcomeEscalate, screening.OutcomeBlock} {
		m.decisions.WithLabelValues(o.String())
	}
	for _, act := range []string{recallMade, recallLifted} {
		m.recalls.WithLabelValues(act)
	}
	m.SetMode(false, false)
	return m
}

// SetMode shows the modes that weaken the gate.
func (m *Metrics) SetMode(unratified, auditOnly bool) {
	set := func(mode string, on bool) {
		v := 0.0
		if on {
			v = 1
		}
		m.mode.WithLabelValues(mode).Set(v)
	}
	set("unratified", unratified)
	set("audit_only", auditOnly)
}

// Attempt counts one webhook attempt; class is empty when it was delivered.
func (m *Metrics) Attempt(endpoint, class string) {
	if class == "" {
		class = "none"
	}
	m.attempts.WithLabelValues(endpoint, class).Inc()
}

// SetEndpoints shows in which state each webhook endpoint is, and what has not arrived there.
func (m *Metrics) SetEndpoints(list []webhooks.EndpointStatus) {
	m.endpoints.Reset()
	m.waiting.Reset()
	for _, e := range list {
		for state, n := range map[string]int{"waiting": e.Waiting, "held": e.Held, "dead": e.Dead} {
			m.waiting.WithLabelValues(e.ID, state).Set(float64(n))
		}
		for _, state := range []string{"enabled", "cooling", "disabled"} {
			v := 0.0
			if e.State() == state {
				v = 1
			}
			m.endpoints.WithLabelValues(e.ID, state).Set(v)
		}
	}
}

func (m *Metrics) request(method, route string, status int, took time.Duration) {
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
}

func (m *Metrics) decided(o screening.Outcome) { m.decisions.WithLabelValues(o.String()).Inc() }

// SetDisagreements shows how many coherent examples the packs disagree with.
func (m *Metrics) SetDisagreements(n int) { m.disagrees.Set(float64(n)) }

// SetWitness shows how many entries of the log a witness is behind.
func (m *Metrics) SetWitness(name string, behind int64) {
	m.witnesses.WithLabelValues(name).Set(float64(behind))
}

// Hook counts one answer to the Kubernetes API server.
func (m *Metrics) Hook(kind, result string, took time.Duration) {
	m.hooks.WithLabelValues(kind, result).Observe(took.Seconds())
}

func (m *Metrics) setReady(ready bool) {
	if ready {
		m.ready.Set(1)
	} else {
		m.ready.Set(0)
	}
}

func (s *Server) metrics(c echo.Context) error {
	s.whyNotReady(c.Request().Context()) // sets weir_ready: whoever scrapes need not probe too
	promhttp.HandlerFor(s.cfg.Metrics.registry, promhttp.HandlerOpts{}).ServeHTTP(c.Response(), c.Request())
	return nil
}
