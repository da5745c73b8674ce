package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"weir/cmd/weir/client"
)

// The faults of receivers, against the built binary: real processes on one
// database, real sockets, and receivers that do what a test says. Numbers are
// those of the list of fault tests.

// otherSecret is one that replaces, or is replaced by, secret.
const otherSecret = "whsec_dGhpcnR5LXR3byBieXRlcyBvZiBhIHRlc3Qgc2VjcmV0"

// scriptedHook is a receiver. answer is told how many requests came before, and what
// the message is.
type scriptedHook struct {
	*httptest.Server
	mu  sync.Mutex
	got []hooked
}

// hooked is a request as it came in.
type hooked struct {
	at     time.Time
	header http.Header
	body   []byte
}

func (h hooked) id() string { return h.header.Get("webhook-id") }

func (h hooked) typ() string {
	var m struct{ Type string }
	_ = json.Unmarshal(h.body, &m) // "" when it is none
	return m.Type
}

// verifies checks a v1 signature by the independent library.
func (h hooked) verifies(t testing.TB, secret string) bool {
	t.Helper()
	v, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	return v.Verify(h.body, h.header) == nil
}

func newHook(t testing.TB, answer func(n int, w http.ResponseWriter, r *http.Request)) *scriptedHook {
	t.Helper()
	h := &scriptedHook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		h.mu.Lock()
		n := len(h.got)
		h.got = append(h.got, hooked{time.Now(), r.Header.Clone(), body})
		h.mu.Unlock()
		answer(n, w, r)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *scriptedHook) requests() []hooked {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

// answering gives the n-th of the codes, and the last one ever after.
func answering(codes ...int) func(int, http.ResponseWriter, *http.Request) {
	return func(n int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(codes[min(n, len(codes)-1)]) }
}

// rawHook lets serve loose on every connection, once the request is read.
func rawHook(t testing.TB, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				if _, err := c.Read(make([]byte, 64<<10)); err == nil { // the request is smaller
					serve(c)
				}
			})
		}
	})
	t.Cleanup(conns.Wait) // each ends when the gate closes its side, at the latest with the gate
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// endpoint is the YAML of one on this machine.
func endpoint(id, url string, more ...string) string {
	keys := append([]string{"id: " + id, fmt.Sprintf("url: %q", url)}, more...)
	if !strings.Contains(strings.Join(more, " "), "secrets:") {
		keys = append(keys, "secret_file: hook.secret")
	}
	if strings.HasPrefix(url, "http:") {
		keys = append(keys, "allow_http: true")
	}
	return "{" + strings.Join(append(keys, "allow_private: true", "timeout: 1s"), ", ") + "}"
}

// writeEndpoints writes declarations in which every escalation is told to all
// endpoints, each given by its YAML.
func writeEndpoints(t testing.TB, dir string, endpoints ...string) {
	t.Helper()
	var ids []string
	for _, e := range endpoints {
		id, _, _ := strings.Cut(strings.TrimPrefix(e, "{id: "), ",")
		ids = append(ids, id)
	}
	writeFile(t, fmt.Appendf(nil, "policies: [{id: general, group: general, quorum: 1, due: 48h, endpoints: [%s]}]\ndefault: general\nendpoints: [%s]\n",
		strings.Join(ids, ", "), strings.Join(endpoints, ", ")), dir, "policies.yaml")
	writeFile(t, []byte(secret+"\n"), dir, "hook.secret")
}

func endpointsConfig(t testing.TB, endpoints ...string) (dir string) {
	t.Helper()
	dir = configFor(t, "")
	writeEndpoints(t, dir, endpoints...)
	return dir
}

// fleet is some replicas on one database.
type fleet struct {
	testDatabase
	testing.TB
	gates []*gate
	asked int // which replica is next
}

func startFleet(t testing.TB, n int, args ...string) *fleet {
	t.Helper()
	f := &fleet{testDatabase: newDatabase(t), TB: t}
	for range n {
		f.gates = append(f.gates, startGate(t, []string{f.env()}, args...))
	}
	for _, g := range f.gates {
		g.ready()
	}
	return f
}

// escalate submits a spec that people have to decide, to one replica after the other.
func (f *fleet) escalate(run string) reply {
	f.Helper()
	g := f.gates[f.asked%len(f.gates)]
	f.asked++
	r, err := post(f.Context(), g.url, f.token, run, spec(run, escalates))
	if err != nil || r.status != 202 {
		f.Fatalf("%s: status %d, %v: %s", run, r.status, err, r.body)
	}
	return r
}

// ask sends a request to the last replica, which no test kills.
func (f *fleet) ask(method, path string, body string) reply {
	f.Helper()
	r, err := send(f.Context(), method, f.gates[len(f.gates)-1].url+path, f.token, []byte(body), "Content-Type", "application/json")
	if err != nil {
		f.Fatal(err)
	}
	return r
}

type deliveryList struct {
	Deliveries []client.Delivery `json:"deliveries"`
}

// deliveries gives those to an endpoint, oldest first, each with its log.
func (f *fleet) deliveries(endpoint string) []client.Delivery {
	f.Helper()
	var list deliveryList
	r := f.ask("GET", "/v1/deliveries?limit=500&endpoint="+endpoint, "")
	if err := json.Unmarshal(r.body, &list); err != nil || r.status != 200 {
		f.Fatalf("status %d: %s", r.status, r.body)
	}
	slices.Reverse(list.Deliveries)
	for i, d := range list.Deliveries {
		if err := json.Unmarshal(f.ask("GET", "/v1/deliveries/"+d.ID, "").body, &list.Deliveries[i]); err != nil {
			f.Fatal(err)
		}
	}
	return list.Deliveries
}

func (f *fleet) endpoint(id string) (e client.Endpoint) {
	f.Helper()
	r := f.ask("GET", "/v1/endpoints/"+id, "")
	if err := json.Unmarshal(r.body, &e); err != nil || r.status != 200 {
		f.Fatalf("status %d: %s", r.status, r.body)
	}
	return e
}

func (f *fleet) await(what string, so func() bool) {
	f.Helper()
	f.gates[len(f.gates)-1].await(what, so)
}

// settled waits until every delivery to an endpoint is in one of the states.
func (f *fleet) settled(endpoint string, states ...string) (ds []client.Delivery) {
	f.Helper()
	f.await(endpoint+" "+strings.Join(states, " or "), func() bool {
		ds = f.deliveries(endpoint)
		return len(ds) > 0 && !slices.ContainsFunc(ds, func(d client.Delivery) bool { return !slices.Contains(states, d.State) })
	})
	return ds
}
