package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/cmd/weir/api"
	"weir/review"
	"weir/screening"
	"weir/store"
	"weir/store/storetest"
)

// keysFunc stands in for the store where a test needs a hand in a request.
type keysFunc func(ctx context.Context) (review.Principal, error)

func (f keysFunc) Authenticate(ctx context.Context, _ string, _ screening.Digest256) (review.Principal, error) {
	return f(ctx)
}

// Until the gate is open it answers 503 to every question, from the first
// moment, stores nothing, and its first yes names the packs (KNOWN_FAULTS 1).
func TestNotReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	closed := api.New(api.Config{Metrics: api.NewMetrics()})
	check := func(when, detail string) {
		t.Helper()
		for _, r := range []struct{ method, path string }{{"POST", "/v1/screenings"}, {"POST", "/v1/screenings?gate=true"}, {"POST", "/v1/gate/check"},
			{"GET", "/v1/screenings"}, {"GET", "/v1/packs"}, {"GET", "/v1/nothing"}, {"GET", "/"}, {"DELETE", "/v1/screenings"}, {"GET", "/readyz"}} {
			a := w.on(closed, r.method, r.path, spec("r"))
			if n, err := strconv.Atoi(a.header.Get("Retry-After")); a.status != 503 || err != nil || n < 1 || n > 5 {
				t.Errorf("%s, %s %s: status %d, Retry-After %q", when, r.method, r.path, a.status, a.header.Get("Retry-After"))
			}
			if strings.Contains(string(a.body), "admit") {
				t.Errorf("%s, %s %s: %s", when, r.method, r.path, a.body)
			}
		}
		if a := w.on(closed, "GET", "/livez", nil); a.status != 200 {
			t.Errorf("%s: livez %d", when, a.status)
		}
		if a := w.on(closed, "GET", "/readyz", nil); !strings.Contains(string(a.body), detail) {
			t.Errorf("%s: readyz says %s", when, a.body)
		}
		if a := w.on(closed, "GET", "/metrics", nil); a.status != 200 || !strings.Contains(string(a.body), "weir_ready 0") {
			t.Errorf("%s: metrics %d", when, a.status)
		}
	}
	check("starting", "starting")
	w.nothingStored("while starting")
	closed.Open(w.gate)
	a := w.on(closed, "GET", "/readyz", nil)
	if packs, _ := a.get("packs").([]any); a.status != 200 || len(packs) != 2 || len(packs[0].(map[string]any)["sha256"].(string)) != 64 {
		t.Errorf("the first yes: status %d: %s", a.status, a.body)
	}
	if a := w.on(closed, "POST", "/v1/screenings", spec("r")); a.status != 201 {
		t.Errorf("open: status %d: %s", a.status, a.body)
	}
	closed.Drain()
	closed.Drain() // twice is once
	check("stopping", "stopping")
}

// on asks another server than the world's own.
func (w *world) on(s *api.Server, method, path string, body []byte) answer {
	w.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	web := s.HTTPServer()
	go func() { _ = web.Serve(listener) }()
	defer web.Close()
	own := w.url
	defer func() { w.url = own }()
	w.url = "http://" + listener.Addr().String()
	return w.do(method, path, "bo", body)
}

func TestReadinessIsAskedOncePerSecond(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	w := newWorld(t, func(_ *api.Config, g *api.Gate) {
		g.Ready = func(ctx context.Context) []string {
			asked.Add(1)
			if ctx.Err() != nil {
				return []string{"asked with a context that ended"}
			}
			return nil
		}
	})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	start := time.Now()
	// The first who asks has gone away before the answer; it is good for the others all the same.
	w.server.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/readyz", nil).WithContext(gone))
	for range 20 {
		if a := w.do("GET", "/readyz", "", nil); a.status != 200 {
			t.Errorf("status %d: %s", a.status, a.body)
		}
	}
	if most := 1 + int64(time.Since(start)/time.Second); asked.Load() > most {
		t.Errorf("asked %d times, want at most %d", asked.Load(), most)
	}
}

func TestNotReadySaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *api.Config, g *api.Gate) {
		g.Ready = func(context.Context) []string { return []string{"the database does not answer"} }
	})
	a := w.do("GET", "/readyz", "", nil)
	if a.status != 503 || a.header.Get("Retry-After") == "" || !strings.Contains(string(a.body), "the database does not answer") {
		t.Errorf("status %d: %s", a.status, a.body)
	}
}

// What happens inside stays inside: a 5xx carries a request id and nothing else,
// and the log has one event with the reason.
func TestFaultsInside(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		keys   keysFunc
		status int
		level  string
	}{
		"panic": {func(context.Context) (review.Principal, error) { panic("secret inside") }, 500, "ERROR"},
		"unknown error": {func(context.Context) (review.Principal, error) {
			return review.Principal{}, errors.New("secret inside")
		}, 500, "ERROR"},
		"store is away": {func(context.Context) (review.Principal, error) { return review.Principal{}, unavailable() }, 503, "WARN"},
		"store never ends": {func(ctx context.Context) (review.Principal, error) {
			<-ctx.Done()
			return review.Principal{}, unavailable()
		}, 503, "WARN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *api.Config, g *api.Gate) { c.Timeout, g.Keys = 50*time.Millisecond, tt.keys })
			a := w.do("POST", "/v1/screenings?gate=true", "bo", spec("r"))
			if a.status != tt.status || strings.Contains(string(a.body), "secret inside") {
				t.Errorf("status %d, want %d: %s", a.status, tt.status, a.body)
			}
			checkProblem(t, name, a)
			if (a.header.Get("Retry-After") != "") != (tt.status == 503) {
				t.Errorf("Retry-After %q with status %d", a.header.Get("Retry-After"), a.status)
			}
			events := w.events(a)
			if len(events) != 1 || events[0]["level"] != tt.level || !strings.Contains(fmt.Sprint(events[0]["error"]), "secret inside") {
				t.Errorf("log: %v", events)
			}
		})
	}
}

func unavailable() error { return fmt.Errorf("%w: secret inside", review.ErrUnavailable) }

// events waits for the log event of an answer, which is written after it.
func (w *world) events(a answer) []map[string]any {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if events := w.log.of(a.header.Get("X-Request-Id")); len(events) > 0 {
			return events
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.Fatal("no log event")
		}
	}
}

func TestOneLogEventPerRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := map[string]bool{}
	for _, r := range []struct {
		method, path, who, level string
		body                     []byte
	}{
		{"POST", "/v1/screenings", "bo", "INFO", spec("r")}, {"POST", "/v1/screenings", "bo", "INFO", []byte("{")}, {"POST", "/v1/gate/check", "bo", "INFO", spec("x")},
		{"GET", "/v1/nothing", "bo", "INFO", nil}, {"GET", "/v1/packs", "", "INFO", nil}, {"GET", "/livez", "", "DEBUG", nil}, {"GET", "/metrics", "", "DEBUG", nil},
		{"POST", "/v1/screenings", "mallory", "INFO", spec("r")},
	} {
		a := w.do(r.method, r.path, r.who, r.body, header("X-Request-Id", "chosen by the client"))
		if a.header.Get("X-Request-Id") == "chosen by the client" || ids[a.header.Get("X-Request-Id")] {
			t.Error("the request id is not the server's own")
		}
		ids[a.header.Get("X-Request-Id")] = true
		events := w.events(a)
		if len(events) != 1 {
			t.Errorf("%s %s: %d events: %v", r.method, r.path, len(events), events)
		}
		e := events[0]
		if e["level"] != r.level || e["status"] != float64(a.status) || r.who != "" && strings.HasPrefix(r.path, "/v1/s") && e["principal"] != r.who {
			t.Errorf("%s %s: %v", r.method, r.path, e)
		}
		if strings.Contains(fmt.Sprint(e), "weir_") {
			t.Errorf("%s %s: the event has the key: %v", r.method, r.path, e)
		}
	}
}

// More than fit wait a moment and are then told to come back; long polls are not
// among those who work.
func TestInFlightLimit(t *testing.T) {
	t.Parallel()
	block, entered := make(chan struct{}), make(chan struct{}, 100)
	var real api.Keys
	var blocking atomic.Bool
	w := newWorld(t, func(c *api.Config, g *api.Gate) {
		c.InFlight, c.Waiting, c.Timeout = 2, 1, 30*time.Second
		real = g.Keys
		g.Keys = hooked{real, func() {
			if blocking.Load() {
				entered <- struct{}{}
				<-block
			}
		}}
	})
	s := w.do("POST", "/v1/screenings", "bo", spec("r", personal))
	path := "/v1/screenings/" + s.text("id")
	var polls sync.WaitGroup
	poll := func(ended chan<- answer) {
		polls.Go(func() {
			a, err := w.try("GET", path+"?wait=60s", "bo", nil)
			if err != nil {
				t.Error(err)
			}
			ended <- a
		})
	}
	ended := make(chan answer, 2)
	poll(ended)
	poll(ended)
	if a := <-ended; a.status != 503 || a.header.Get("Retry-After") == "" { // one of the two finds no place to sleep
		t.Errorf("a poll too many: status %d: %s", a.status, a.body)
	}
	for range 5 { // the other sleeps and holds nobody up
		if a := w.do("GET", path, "bo", nil); a.status != 200 {
			t.Errorf("beside a long poll: status %d: %s", a.status, a.body)
		}
	}

	blocking.Store(true)
	var work sync.WaitGroup
	for range 2 {
		work.Go(func() {
			if a, err := w.try("GET", path, "bo", nil); err != nil || a.status != 200 {
				t.Errorf("within the limit: status %d, %v", a.status, err)
			}
		})
		<-entered
	}
	a := w.do("POST", "/v1/screenings", "bo", spec("more"))
	if n, err := strconv.Atoi(a.header.Get("Retry-After")); a.status != 503 || err != nil || n < 1 || n > 5 || a.text("type") != "urn:weir:problem:busy" {
		t.Errorf("over the limit: status %d, Retry-After %q: %s", a.status, a.header.Get("Retry-After"), a.body)
	}
	if a := w.do("GET", "/livez", "", nil); a.status != 200 {
		t.Errorf("livez over the limit: status %d", a.status)
	}
	blocking.Store(false)
	close(block)
	work.Wait()
	if a := w.do("POST", "/v1/screenings", "bo", spec("more")); a.status != 201 {
		t.Errorf("afterwards: status %d: %s", a.status, a.body)
	}
	w.server.Drain() // ends the poll that sleeps with what it would have read
	if a := <-ended; a.status != 200 || a.text("status") != "pending" {
		t.Errorf("a poll when the gate stops: status %d: %s", a.status, a.body)
	}
	polls.Wait()
}

type hooked struct {
	api.Keys
	before func()
}

func (h hooked) Authenticate(ctx context.Context, id string, secret screening.Digest256) (review.Principal, error) {
	h.before()
	return h.Keys.Authenticate(ctx, id, secret)
}

// Those that were refused together are not told to come again together.
func TestBusyIsSpread(t *testing.T) {
	t.Parallel()
	told := map[int]int{}
	for range 300 {
		told[api.BusyRetry()]++
	}
	if len(told) != 3 || told[1]*told[2]*told[3] == 0 {
		t.Errorf("seconds that are told, and how often: %v", told)
	}
}

// A client that dribbles its body is cut off at the time limit of a request,
// and a poll outlives the connection's limit for reading.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *api.Config, _ *api.Gate) { c.Timeout = 2 * time.Second })
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/screenings HTTP/1.1\r\nHost: weir\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
		w.key("bo", review.ScopeSubmit))
	start := time.Now()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestTimeout || time.Since(start) > 10*time.Second {
		t.Errorf("status %d after %s, want 408 at once", resp.StatusCode, time.Since(start))
	}
	w.nothingStored("from half a body")
}

func TestPollOutlivesTheReadLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.do("POST", "/v1/screenings", "bo", spec("r", personal))
	web := w.server.HTTPServer()
	web.ReadTimeout = 100 * time.Millisecond
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = web.Serve(listener) }()
	defer web.Close()
	w.url = "http://" + listener.Addr().String()
	a := w.do("GET", "/v1/screenings/"+s.text("id")+"?wait=300ms", "bo", nil)
	if a.status != 200 || a.text("status") != "pending" {
		t.Errorf("status %d: %s", a.status, a.body)
	}
}

// A database that goes away in the middle is 503 and never 500, and what waits says so too.
func TestDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	dsn := storetest.DSN(t)
	st, err := store.Open(t.Context(), dsn, store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	desk, err := review.NewDesk(st, setup(t), review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(_ *api.Config, g *api.Gate) { g.Desk = desk })
	st.Close()
	for _, r := range []struct{ method, path string }{{"POST", "/v1/screenings"}, {"POST", "/v1/screenings?gate=true"}, {"POST", "/v1/screenings?dry_run=true"},
		{"POST", "/v1/gate/check"}, {"GET", "/v1/screenings"}, {"GET", "/v1/screenings/018f0000-0000-7000-8000-000000000000"},
		{"GET", "/v1/screenings/018f0000-0000-7000-8000-000000000000?wait=30s"}, {"GET", "/v1/reviews"}} {
		a := w.do(r.method, r.path, "bo", spec("r"))
		if n, err := strconv.Atoi(a.header.Get("Retry-After")); a.status != 503 || err != nil || n < 1 || n > 5 {
			t.Errorf("%s %s: status %d, Retry-After %q: %s", r.method, r.path, a.status, a.header.Get("Retry-After"), a.body)
		}
		checkProblem(t, r.path, a)
	}
	w.nothingStored("without a database")
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do("POST", "/v1/screenings", "bo", spec("a"))
	w.do("POST", "/v1/screenings", "bo", spec("b", personal))
	w.do("POST", "/v1/screenings", "bo", spec("b", personal)) // answered by the open review: not counted again
	w.do("POST", "/v1/screenings?dry_run=true", "bo", spec("c"))
	w.do("POST", "/v1/screenings", "bo", []byte("{"))
	w.do("GET", "/v1/screenings/018f0000-0000-7000-8000-000000000000", "bo", nil)
	w.do("GET", "/"+marker, "bo", nil)
	for i := range 5 {
		w.do(fmt.Sprintf("METHOD%d", i), "/v1/screenings", "bo", nil)
	}
	w.do("GET", "/readyz", "", nil)
	text := string(w.do("GET", "/metrics", "", nil).body)
	for _, want := range []string{
		`weir_decisions_total{outcome="admit"} 1`, `weir_decisions_total{outcome="escalate"} 1`, `weir_decisions_total{outcome="block"} 0`,
		`weir_request_seconds_count{method="POST",route="/v1/screenings",status="400"} 1`,
		`weir_request_seconds_count{method="POST",route="/v1/screenings",status="202"} 2`,
		`weir_request_seconds_count{method="GET",route="/v1/screenings/:id",status="404"} 1`,
		`weir_request_seconds_count{method="GET",route="unknown",status="404"} 1`,
		`weir_request_seconds_count{method="other",route="/v1/screenings",status="405"} 5`,
		`weir_requests_in_flight{kind="working"} 0`, `weir_example_disagreements 0`, `weir_ready 1`, `weir_mode{mode="unratified"} 0`, `weir_mode{mode="audit_only"} 0`,
		`go_goroutines`, `process_resident_memory_bytes`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(text, marker) || strings.Contains(text, "METHOD") {
		t.Error("a client chose a label")
	}
}
