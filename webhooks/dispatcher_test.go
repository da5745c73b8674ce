package webhooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// at once: no delay between attempts, and no waiting for a poll.
func quick(c Config) Config {
	c.Poll = 5 * time.Millisecond
	if c.Schedule == nil {
		c.Schedule = Schedule{0, 0, 0, 0}
	}
	return c
}

// Fault test 23.
func TestRetryUntilDelivered(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(500), status(500), status(200))
	o := newOutbox(pending("legal", 1)...)
	// Every look at the clock is a second later, so that timestamps differ
	// without anybody waiting.
	var ticks atomic.Int64
	began := time.Now()
	now := func() time.Time { return began.Add(time.Duration(ticks.Add(1)) * time.Second) }
	var observed atomic.Int64
	cfg := quick(Config{Now: now, Observe: func(Attempt) { observed.Add(1) }})
	stop := start(t, newTestDispatcher(t, o, cfg, loopback("legal", r.URL)))
	o.wait(t, "delivery", allIn("delivered"))
	stop()

	got := r.requests()
	if len(got) != 3 || observed.Load() != 3 {
		t.Fatalf("%d requests, %d observed; want 3", len(got), observed.Load())
	}
	stamps := map[string]bool{}
	for i, req := range got {
		if req.err != nil {
			t.Errorf("request %d: %v", i+1, req.err)
		}
		if id := req.header.Get("webhook-id"); id != o.rows[0].MessageID {
			t.Errorf("request %d: webhook-id %q", i+1, id)
		}
		if !bytes.Equal(req.body, o.rows[0].Body) {
			t.Errorf("request %d: body %q", i+1, req.body)
		}
		stamps[req.header.Get("webhook-timestamp")] = true
	}
	if len(stamps) != 3 {
		t.Errorf("%d different timestamps, want 3", len(stamps))
	}
	for i, a := range o.rows[0].attempts {
		if want := []int{500, 500, 200}[i]; a.Number != i+1 || a.Status != want {
			t.Errorf("attempt row %d: number %d, status %d; want status %d", i+1, a.Number, a.Status, want)
		}
	}
}

func TestDeadWhenTheScheduleIsUsedUp(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(500))
	o := newOutbox(pending("legal", 1)...)
	stop := start(t, newTestDispatcher(t, o, quick(Config{}), loopback("legal", r.URL)))
	o.wait(t, "death", allIn("dead"))
	stop()
	if n := len(r.requests()); n != 4 {
		t.Errorf("%d requests, want one for each entry of the schedule", n)
	}
}

// Fault test 24, its other half: receivers that hang hold their own slots only.
func TestHangingReceiverStarvesNobody(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var open, most atomic.Int64
	slow := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		n := open.Add(1)
		defer open.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-release
	})
	fast := newReceiver(t, status(200))
	// The slow ones are first in line.
	o := newOutbox(append(pending("slow", 40), pending("fast", 20)...)...)
	d := newTestDispatcher(t, o, quick(Config{}), loopback("slow", slow.URL), loopback("fast", fast.URL))
	stop := start(t, d)
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free) // before the server's own, which waits for its handlers

	o.wait(t, "everything for the fast receiver", func(rows []*row) bool { return allIn("delivered")(rows[40:]) })
	o.wait(t, "both slots of the slow one taken", func(rows []*row) bool { return len(slow.requests()) == 2 })
	if m := most.Load(); m != DefaultMaxInFlight {
		t.Errorf("%d requests open at the slow receiver, want %d", m, DefaultMaxInFlight)
	}
	free()
	o.wait(t, "the slow receiver's backlog", allIn("delivered"))
	stop()
	if m := most.Load(); m > DefaultMaxInFlight {
		t.Errorf("%d requests were open at the slow receiver", m)
	}
}

// Fault test 27.
func TestGone(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(410))
	other := newReceiver(t, status(200))
	e := loopback("legal", r.URL)
	e.MaxInFlight = 1
	o := newOutbox(append(pending("legal", 3), pending("lead", 1)...)...)
	stop := start(t, newTestDispatcher(t, o, quick(Config{}), e, loopback("lead", other.URL)))
	o.wait(t, "410 and the other delivery", func(rows []*row) bool {
		return rows[0].state == "held" && rows[3].state == "delivered"
	})
	stop()
	if n := len(r.requests()); n != 1 {
		t.Errorf("%d requests, want no more after the 410", n)
	}
	if !o.disabled["legal"] || o.rows[0].outcomes[0].Disable == "" {
		t.Errorf("outcome %+v does not disable", o.rows[0].outcomes[0])
	}
	if o.disabled["lead"] {
		t.Error("another endpoint was disabled")
	}
}

// Fault test 36: an answer acknowledges, it never decides.
func TestAnswerIsNotRead(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"decision":"approve","state":"dead","retry_in":1}`)
	})
	o := newOutbox(pending("legal", 1)...)
	stop := start(t, newTestDispatcher(t, o, quick(Config{}), loopback("legal", r.URL)))
	o.wait(t, "delivery", allIn("delivered"))
	stop()
	if got, want := o.rows[0].outcomes[0], (Outcome{State: StateDelivered}); got != want {
		t.Errorf("outcome %+v, want %+v whatever the answer says", got, want)
	}
}

// Another replica, with a newer policies.yaml, may have the endpoint.
func TestUndeclaredEndpointIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(200))
	o := newOutbox(append(pending("newer", 3), pending("legal", 1)...)...)
	stop := start(t, newTestDispatcher(t, o, quick(Config{}), loopback("legal", r.URL)))
	o.wait(t, "what is ours", func(rows []*row) bool { return rows[3].state == "delivered" })
	stop()
	for _, r := range o.rows[:3] {
		if r.state != "pending" || r.Attempt != 0 {
			t.Errorf("%s: %s, attempt %d", r.ID, r.state, r.Attempt)
		}
	}
}

// A stop lets requests end, cuts off those that do not, and leaves no row
// leased to a process that is gone.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	ending := newReceiver(t, func(http.ResponseWriter, *http.Request) { <-release })
	hanging := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	t.Cleanup(free)
	o := newOutbox(append(pending("ending", 1), pending("hanging", 3)...)...)
	cfg := quick(Config{StopTimeout: time.Second})
	stop := start(t, newTestDispatcher(t, o, cfg, loopback("ending", ending.URL), loopback("hanging", hanging.URL)))
	o.wait(t, "requests open", func([]*row) bool { return len(ending.requests()) == 1 && len(hanging.requests()) == 2 })

	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	free()
	<-stopped

	if got := o.rows[0].state; got != "delivered" {
		t.Errorf("the request that could end: %s", got)
	}
	for _, r := range o.rows[1:] {
		if r.state != "pending" || r.Attempt != 0 || len(r.attempts) != 0 {
			t.Errorf("%s: %s, attempt %d, %d recorded; want it as it was", r.ID, r.state, r.Attempt, len(r.attempts))
		}
	}
	if o.released != 2 || len(hanging.requests()) != 2 {
		t.Errorf("%d released, %d sent; want the 2 that were cut off, and no new one", o.released, len(hanging.requests()))
	}
}

// What is logged can be shown to anybody: no secret, no signature, no word of
// the receiver, and no path or query, which may be a credential.
func TestLogsAreClean(t *testing.T) {
	t.Parallel()
	const word = "sesame"
	answer := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://"+word+".test/")
			w.WriteHeader(code)
			io.WriteString(w, word)
		}
	}
	r := newReceiver(t, answer(500), answer(302), answer(200))
	var mu sync.Mutex
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(lockedWriter{&mu, &out}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o := newOutbox(append(pending("legal", 1), pending("closed", 1)...)...)
	cfg := quick(Config{Logger: logger})
	stop := start(t, newTestDispatcher(t, o, cfg, loopback("legal", r.URL+"/hook/"+word+"?key="+word), loopback("closed", "http://127.0.0.1:1/"+word)))
	o.wait(t, "the end of both", allIn("delivered", "dead"))
	stop()

	forbidden := []string{word, strings.TrimPrefix(testSecret, "whsec_")}
	for _, req := range r.requests() {
		forbidden = append(forbidden, strings.TrimPrefix(req.header.Get("webhook-signature"), "v1,"))
	}
	for _, f := range forbidden {
		if strings.Contains(out.String(), f) {
			t.Errorf("the log holds %q", f)
		}
	}
	if n := strings.Count(out.String(), `msg="webhook attempt"`); n != 3+4 {
		t.Errorf("%d attempts logged, want 7:\n%s", n, out.String())
	}
	// The record of an attempt is held to the same, but for the answer.
	for _, row := range o.rows {
		for _, a := range row.attempts {
			a.Answer = ""
			if s := fmt.Sprintf("%+v", a); strings.Contains(s, word) {
				t.Errorf("the attempt holds it: %s", s)
			}
		}
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func TestNewComplains(t *testing.T) {
	t.Parallel()
	slow := loopback("legal", "http://127.0.0.1:1/")
	slow.Timeout = 20 * time.Second
	tests := []struct {
		name      string
		endpoints []Endpoint
		cfg       Config
		want      string
	}{
		{"lease too short", []Endpoint{slow}, Config{Lease: 39 * time.Second}, "at least 40s"},
		{"declared twice", []Endpoint{slow, slow}, Config{}, "declared twice"},
		{"bad endpoint", []Endpoint{{ID: "legal"}}, Config{}, "no secret"},
		{"negative delay", nil, Config{Schedule: Schedule{0, -1}}, "entry 2 is negative"},
		{"negative poll", nil, Config{Poll: -1}, "poll is negative"},
		{"negative stop timeout", nil, Config{StopTimeout: -1}, "stop timeout is negative"},
		{"negative write timeout", nil, Config{WriteTimeout: -1}, "write timeout is negative"},
		{"negative total", nil, Config{MaxTotal: -1}, "max total is negative"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := New(newOutbox(), tt.endpoints, tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want a complaint about %q", err, tt.want)
			}
		})
	}
	d := newTestDispatcher(t, newOutbox(), Config{}, slow)
	if d.cfg.Lease != 40*time.Second {
		t.Errorf("default lease %v, want twice the longest timeout", d.cfg.Lease)
	}
}

func TestRunTwice(t *testing.T) {
	t.Parallel()
	o := newOutbox()
	d := newTestDispatcher(t, o, Config{}, loopback("legal", "http://127.0.0.1:1/"))
	start(t, d)
	o.wait(t, "the first claim", func([]*row) bool { return o.claims > 0 })
	if err := d.Run(context.Background()); !errors.Is(err, ErrRunning) {
		t.Errorf("second Run: %v", err)
	}
}
