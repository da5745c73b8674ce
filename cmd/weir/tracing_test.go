package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func TestTracingIsOffUntilAskedFor(t *testing.T) {
	t.Parallel()
	const endpoint, at = "OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"
	for name, tc := range map[string]struct {
		env  map[string]string
		want bool
		err  string
	}{
		"nothing":          {},
		"an endpoint":      {env: map[string]string{endpoint: at}, want: true},
		"for traces":       {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": at + "/v1/traces"}, want: true},
		"disabled":         {env: map[string]string{endpoint: at, "OTEL_SDK_DISABLED": "true"}},
		"none":             {env: map[string]string{endpoint: at, "OTEL_TRACES_EXPORTER": "none"}},
		"another exporter": {env: map[string]string{endpoint: at, "OTEL_TRACES_EXPORTER": "zipkin"}, err: "OTEL_TRACES_EXPORTER: weir has otlp and none"},
		"grpc":             {env: map[string]string{endpoint: at, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, err: "OTEL_EXPORTER_OTLP_PROTOCOL: weir speaks http/protobuf; collectors take it on port 4318"},
		"no address":       {env: map[string]string{endpoint: "collector:4318"}, err: "OTEL_EXPORTER_OTLP_ENDPOINT: must be an address like http://collector:4318"},
		"a sampler":        {env: map[string]string{endpoint: at, "OTEL_TRACES_SAMPLER": "parentbased_traceidratio"}, want: true},
		"another sampler":  {env: map[string]string{endpoint: at, "OTEL_TRACES_SAMPLER": "some"}, err: "OTEL_TRACES_SAMPLER: is not one that weir has, such as parentbased_traceidratio"},
	} {
		got, err := tracingWanted(func(name string) string { return tc.env[name] })
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != tc.want || text != tc.err {
			t.Errorf("%s: %t %q, want %t %q", name, got, text, tc.want, tc.err)
		}
	}
	off := &tracing{}
	next := http.NewServeMux()
	if off.provider != nil || off.handler("hook", next) != http.Handler(next) {
		t.Error("tracing that is off stands in the way")
	}
	if got := weirEnv(t, []string{endpoint + "=" + at, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, "serve", "--config", configFor(t, "")); got.code != exitUsage || !strings.Contains(got.stderr, "http/protobuf") {
		t.Errorf("weir serve exits %d: %s", got.code, got.stderr)
	}
}

// collector takes spans, as bytes.
type collector struct {
	*httptest.Server
	mu   sync.Mutex
	sent bytes.Buffer
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && r.URL.Path == "/v1/traces" {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.sent.Write(body)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) holds(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Contains(c.sent.Bytes(), []byte(text))
}

// What is left is sent at the end, and a delivery has a span whose id the log and
// the receiver have.
func TestTracesAreSent(t *testing.T) {
	t.Parallel()
	db, c := newDatabase(t), newCollector(t)
	arrived := make(chan string, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case arrived <- r.Header.Get("Traceparent"):
		default:
		}
	}))
	t.Cleanup(hook.Close)
	g := startGate(t, []string{db.env(), "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_BSP_SCHEDULE_DELAY=3600000"}, "--config", configFor(t, hook.URL)).ready()
	if a, err := post(t.Context(), g.url, db.token, "k", spec("team/kanarienvogel", escalates)); err != nil || a.status != http.StatusAccepted {
		t.Fatalf("%d %v %s", a.status, err, a.body)
	}
	parent := <-arrived
	g.await("the attempt is logged", func() bool { return g.log.event("webhook attempt") != nil })
	if event := g.log.event("webhook attempt"); len(parent) != 55 || event["trace_id"] != parent[3:35] || event["span_id"] != parent[36:52] {
		t.Errorf("traceparent %q, logged %v", parent, event)
	}
	if code := g.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d\n%s", code, g.log)
	}
	for _, want := range []string{"POST /v1/screenings", "webhook review.opened", "commit", "service.name"} {
		if !c.holds(want) {
			t.Errorf("the collector was not sent %q", want)
		}
	}
	for _, hidden := range []string{db.token, "kanarienvogel", secret} {
		if c.holds(hidden) {
			t.Errorf("the collector was sent %s", hidden)
		}
	}
}

// A collector that is away or hangs costs no request anything, and the stop little.
func TestTracesWithoutACollector(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(hanging.Close)
	t.Cleanup(func() { close(release) })
	for name, at := range map[string]string{"away": "http://127.0.0.1:1", "hanging": hanging.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := newDatabase(t)
			// A queue of one and a batch of one: all but the first spans have no room.
			g := startGate(t, []string{db.env(), "OTEL_EXPORTER_OTLP_ENDPOINT=" + at, "OTEL_BSP_MAX_QUEUE_SIZE=1", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=1"},
				"--config", configFor(t, "")).ready()
			for i := range 20 {
				key := string(rune('a' + i))
				if a, err := post(t.Context(), g.url, db.token, key, spec("team/"+key)); err != nil || a.status != http.StatusCreated {
					t.Fatalf("%d %v %s", a.status, err, a.body)
				}
			}
			if code := g.stop(syscall.SIGTERM); code != 0 {
				t.Errorf("exit %d\n%s", code, g.log)
			}
			if g.log.event("some spans were not sent") == nil && g.log.event("traces") == nil {
				t.Errorf("nobody is told that spans are lost\n%s", g.log)
			}
		})
	}
}

// The API server's trace goes on in the hook.
func TestHookIsTraced(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	traces := newTracing(spans, resource.Empty())
	var inside trace.SpanContext
	h := traces.handler("kubernetes hook", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		inside = trace.SpanContextFromContext(r.Context())
	}))
	r := httptest.NewRequest("POST", "/hooks/kubernetes/validate", nil)
	r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if err := traces.sdk.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := spans.GetSpans()
	if len(got) != 1 || got[0].SpanContext.SpanID() != inside.SpanID() || got[0].SpanContext.TraceID().String() != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("spans: %v", got)
	}
}
