package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"weir/cmd/weir/api"
	"weir/store"
)

// spanLog keeps the spans that ended. It takes them while they end, so that none
// is on its way.
type spanLog struct {
	mu    sync.Mutex
	spans tracetest.SpanStubs
	more  chan struct{} // closed when there are more
}

func (l *spanLog) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spans = append(l.spans, tracetest.SpanStubsFromReadOnlySpans(spans)...)
	close(l.more)
	l.more = make(chan struct{})
	return nil
}

func (l *spanLog) Shutdown(context.Context) error { return nil }

// trace gives the spans of a trace when its root, which ends last, has ended.
func (l *spanLog) trace(t *testing.T, id string) tracetest.SpanStubs {
	t.Helper()
	limit := time.After(30 * time.Second)
	for {
		l.mu.Lock()
		all, more := slices.Clone(l.spans), l.more
		l.mu.Unlock()
		of := slices.DeleteFunc(all, func(s tracetest.SpanStub) bool { return s.SpanContext.TraceID().String() != id })
		if slices.ContainsFunc(of, func(s tracetest.SpanStub) bool { return s.SpanKind == trace.SpanKindServer }) {
			return of
		}
		select {
		case <-more:
		case <-limit:
			t.Fatalf("the request's span never ended; there are %d of its trace", len(of))
		}
	}
}

func newTracedWorld(t *testing.T) (*world, *spanLog) {
	t.Helper()
	spans := &spanLog{more: make(chan struct{})}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	w := newWorldOn(t, store.Config{Tracing: provider}, func(c *api.Config, _ *api.Gate) { c.Tracing = provider })
	return w, spans
}

// One request is one trace, the caller's, and its statements are in it.
func TestOneRequestIsOneTrace(t *testing.T) {
	t.Parallel()
	w, spans := newTracedWorld(t)
	const id, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	a := w.do("POST", "/v1/screenings", "bo", spec("team/run", "\"owner\": \"ana\" → \"owner\": \"ana\", \"on_behalf_of\": \"ana\""),
		header("Traceparent", "00-"+id+"-"+parent+"-01"))
	if a.status != 201 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	of := spans.trace(t, id)
	byID := map[trace.SpanID]tracetest.SpanStub{}
	var root tracetest.SpanStub
	names := map[string]int{}
	for _, s := range of {
		byID[s.SpanContext.SpanID()] = s
		names[s.Name]++
		if s.SpanKind == trace.SpanKindServer {
			root = s
		}
	}
	if root.Name != "POST /v1/screenings" || root.Parent.SpanID().String() != parent {
		t.Errorf("root %q below %s", root.Name, root.Parent.SpanID())
	}
	if names["commit"] != 1 || names["insert"]+names["INSERT"]+names["WITH"]+names["with"]+names["SELECT"]+names["select"] < 2 {
		t.Errorf("spans: %v", names)
	}
	for _, s := range of {
		for up := s; up.SpanContext.SpanID() != root.SpanContext.SpanID(); up = byID[up.Parent.SpanID()] {
			if _, ok := byID[up.Parent.SpanID()]; !ok {
				t.Errorf("%s does not belong to the request", s.Name)
				break
			}
		}
	}
	events := w.log.of(a.header.Get("X-Request-Id"))
	if len(events) != 1 || events[0]["trace_id"] != id || events[0]["span_id"] != root.SpanContext.SpanID().String() {
		t.Errorf("logged: %v", events)
	}
	// Whoever watches is not traced.
	w.do("GET", "/livez", "", nil, header("Traceparent", "00-"+strings.Repeat("a", 32)+"-"+parent+"-01"))
	w.do("GET", "/v1/packs", "bo", nil, header("Traceparent", "00-"+strings.Repeat("b", 32)+"-"+parent+"-01"))
	spans.trace(t, strings.Repeat("b", 32))
	spans.mu.Lock()
	defer spans.mu.Unlock()
	for _, s := range spans.spans {
		if s.SpanContext.TraceID().String() == strings.Repeat("a", 32) {
			t.Errorf("a probe has a span: %s", s.Name)
		}
	}
}

// An answer that is cut off has a span as others have.
func TestAnAnswerCutOffHasASpan(t *testing.T) {
	t.Parallel()
	spans := &spanLog{more: make(chan struct{})}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	w := newWorldOn(t, store.Config{}, func(c *api.Config, g *api.Gate) {
		c.Tracing = provider
		g.Console = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	})
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/console", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Traceparent", "00-"+id+"-00f067aa0ba902b7-01")
	if resp, err := w.client.Do(r); err == nil {
		resp.Body.Close()
		t.Fatalf("answered with %d", resp.StatusCode)
	}
	spans.trace(t, id)
}

// Nothing that was submitted, and no key, is in any span: not in names,
// attributes, events or what is said of an error.
func TestSpansHoldNothingSubmitted(t *testing.T) {
	t.Parallel()
	w, spans := newTracedWorld(t)
	const canary = "kanarienvogel"
	key := w.key("bo", "submit", "review")
	for i, r := range []struct {
		method, path string
		body         []byte
		status       int
	}{
		{"POST", "/v1/screenings", spec("team/"+canary, "\"kind\": \"sft\" → \"kind\": \"sft\", \"purpose\": \""+canary+"\""), 201},
		{"POST", "/v1/screenings", spec("team/"+canary+"2", personal), 202},
		{"POST", "/v1/screenings?" + canary + "=1", spec("r"), 400},
		{"POST", "/v1/screenings", []byte(`{"` + canary + `": 1}`), 422},
		{"GET", "/v1/screenings/" + canary, nil, 404}, // the database refuses it as an id, quoting it
		{"GET", "/v1/screenings?run_ref=" + canary, nil, 200},
		{"GET", "/" + canary, nil, 404},
		{canary, "/v1/screenings", nil, 405},
	} {
		id := fmt.Sprintf("%032x", i+1)
		a := w.do(r.method, r.path, "bo", r.body, header("Traceparent", "00-"+id+"-00f067aa0ba902b7-01"),
			header("Idempotency-Key", canary+fmt.Sprint(i)), header("Tracestate", "x="+canary))
		if a.status != r.status {
			t.Errorf("%s %s: %d %s", r.method, r.path, a.status, a.body)
		}
		for _, s := range spans.trace(t, id) {
			s.SpanContext = s.SpanContext.WithTraceState(trace.TraceState{}) // the caller's own, handed back as it came
			s.Parent = s.Parent.WithTraceState(trace.TraceState{})
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			for _, hidden := range []string{canary, key, key[len(key)-12:]} {
				if strings.Contains(string(text), hidden) || strings.Contains(fmt.Sprint(s.Name, s.Attributes, s.Events, s.Status), hidden) {
					t.Errorf("%s %s: span %s holds %s: %s", r.method, r.path, s.Name, hidden, text)
				}
			}
		}
	}
}
