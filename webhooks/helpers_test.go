package webhooks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	testSecret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	otherSecret = "whsec_dGhpcnR5LXR3byBieXRlcyBvZiBhIHRlc3Qgc2VjcmV0"
	// patience is for a machine that is busy with everything else.
	patience = 60 * time.Second
)

// loopback declares a receiver of this test.
func loopback(id, url string) Endpoint {
	return Endpoint{
		ID: id, URL: url, Secrets: []Secret{{Key: testSecret}}, Timeout: patience,
		AllowPrivate: true, AllowHTTP: true,
	}
}

// message is a claimed delivery; its body is no JSON, to show that nothing here
// reads it.
func message(endpoint string) Delivery {
	return Delivery{
		ID: "d1", EndpointID: endpoint, MessageID: "msg_0123456789abcdef", Type: "review.opened",
		Body: []byte("{\"b\" :1,\r\n \"a\":\t\"\xc3\xa9\"} "), Attempt: 1, Claim: "c1",
	}
}

func newTestSender(t *testing.T, e Endpoint, cfg Config) *sender {
	t.Helper()
	e, err := e.Normalise()
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSender(e, cfg.withDefaults(e.Timeout))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// received is a request as it came in, verified on its raw bytes.
type received struct {
	header http.Header
	body   []byte
	err    error // of the verification
}

// receiver answers with the i-th of its handlers, and with the last one ever after.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []received
}

func newReceiver(t *testing.T, handlers ...http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	verifier, err := standardwebhooks.NewWebhook(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err == nil {
			err = verifier.Verify(body, req.Header)
		}
		r.mu.Lock()
		r.got = append(r.got, received{header: req.Header.Clone(), body: body, err: err})
		i := min(len(r.got), len(handlers)) - 1
		r.mu.Unlock()
		handlers[i](w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) requests() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// rawServer hands accepted connections to serve, which may do with them what no
// HTTP server would. Connections are closed when serve returns, and at the end
// of the test.
func rawServer(t *testing.T, serve func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}

// row is a delivery in the memory outbox.
type row struct {
	Delivery
	state    string // pending, delivering, or a State
	due      time.Time
	lease    time.Time
	attempts []Attempt
	outcomes []Outcome
}

// memoryOutbox keeps the promises of Outbox in memory, by the process clock.
type memoryOutbox struct {
	mu       sync.Mutex
	rows     []*row
	disabled map[string]bool
	declared [][]Declared
	changed  chan struct{}
	claims   int
	released int

	// claimFault and finishFault, if set, answer in place of the outbox.
	claimFault  func(n int) error
	finishFault func(n int) error
	finishes    int
}

func newOutbox(ds ...Delivery) *memoryOutbox {
	o := &memoryOutbox{disabled: map[string]bool{}, changed: make(chan struct{})}
	for _, d := range ds {
		o.add(d)
	}
	return o
}

// pending returns n deliveries to one endpoint.
func pending(endpoint string, n int) (ds []Delivery) {
	for i := range n {
		d := message(endpoint)
		d.ID, d.Attempt, d.Claim = fmt.Sprintf("%s-%d", endpoint, i), 0, ""
		ds = append(ds, d)
	}
	return ds
}

func (o *memoryOutbox) add(d Delivery) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rows = append(o.rows, &row{Delivery: d, state: "pending", due: time.Now()})
	o.notify()
}

func (o *memoryOutbox) notify() {
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *memoryOutbox) Declare(_ context.Context, endpoints []Declared) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.declared = append(o.declared, endpoints)
	o.notify()
	return nil
}

func (o *memoryOutbox) Claim(_ context.Context, limit int, lease time.Duration, endpoints []string) (ds []Delivery, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claims++
	defer o.notify()
	if o.claimFault != nil {
		if err := o.claimFault(o.claims); err != nil {
			return nil, err
		}
	}
	now := time.Now()
	for _, r := range o.rows {
		due := r.state == "pending" && !now.Before(r.due) || r.state == "delivering" && !now.Before(r.lease)
		if !due || len(ds) == limit || !slices.Contains(endpoints, r.EndpointID) || o.disabled[r.EndpointID] {
			continue
		}
		r.state, r.lease = "delivering", now.Add(lease)
		r.Attempt++
		r.Delivery.Claim = fmt.Sprintf("claim-%d", o.claims)
		ds = append(ds, r.Delivery)
	}
	return ds, nil
}

// held finds the row of a claim that is still good.
func (o *memoryOutbox) held(d Delivery) *row {
	for _, r := range o.rows {
		if r.ID == d.ID && r.state == "delivering" && r.Delivery.Claim == d.Claim {
			return r
		}
	}
	return nil
}

func (o *memoryOutbox) Finish(_ context.Context, d Delivery, a Attempt, out Outcome) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finishes++
	defer o.notify()
	if o.finishFault != nil {
		if err := o.finishFault(o.finishes); err != nil {
			return err
		}
	}
	r := o.held(d)
	if r == nil {
		return ErrClaimLost
	}
	if a.Number > 0 {
		r.attempts = append(r.attempts, a)
	}
	r.outcomes = append(r.outcomes, out)
	r.state = string(out.State)
	if out.State == StateRetry {
		r.state, r.due = "pending", time.Now().Add(out.RetryIn)
	}
	if out.Disable != "" {
		o.disabled[d.EndpointID] = true
	}
	return nil
}

func (o *memoryOutbox) Release(_ context.Context, ds []Delivery) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, d := range ds {
		if r := o.held(d); r != nil {
			r.state, r.due = "pending", time.Now()
			r.Attempt--
			o.released++
		}
	}
	o.notify()
	return nil
}

// wait blocks until the rows satisfy ok, checking after each change.
func (o *memoryOutbox) wait(t *testing.T, what string, ok func([]*row) bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		o.mu.Lock()
		good, changed := ok(o.rows), o.changed
		o.mu.Unlock()
		if good {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

func allIn(states ...string) func([]*row) bool {
	return func(rows []*row) bool {
		return !slices.ContainsFunc(rows, func(r *row) bool { return !slices.Contains(states, r.state) })
	}
}

// start runs a dispatcher for the length of the test and returns it with a
// function that stops it and waits.
func start(t *testing.T, d *Dispatcher) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func newTestDispatcher(t *testing.T, o Outbox, cfg Config, endpoints ...Endpoint) *Dispatcher {
	t.Helper()
	d, err := New(o, endpoints, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var errOutbox = errors.New("the database is away")
