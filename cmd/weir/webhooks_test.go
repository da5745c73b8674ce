package main

import (
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/cmd/weir/client"
	"weir/webhooks"
)

// 23: failures, then success. One id, new timestamps, both kinds of signature.
func TestWebhookRetries(t *testing.T) {
	t.Parallel()
	private, public, err := webhooks.NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	h := newHook(t, answering(500, 500, 200))
	config := endpointsConfig(t, endpoint("hook", h.URL, "secrets: [{file: hook.secret}, {file: hook.key}]"))
	writeFile(t, []byte(private), config, "hook.key")
	f := startFleet(t, 3, "--config", config, "--webhook-schedule", "0s,1500ms,1500ms,1500ms")
	f.escalate("r")
	d := f.settled("hook", "delivered")[0]

	got := h.requests()
	if len(got) != 3 || len(d.Log) != 3 || d.Attempts != 3 {
		t.Fatalf("%d requests, %d attempts logged, %d counted; want 3", len(got), len(d.Log), d.Attempts)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(public, "whpk_"))
	if err != nil {
		t.Fatal(err)
	}
	stamps := map[string]bool{}
	for i, r := range got {
		stamp := r.header.Get("webhook-timestamp")
		stamps[stamp] = true
		if r.id() != got[0].id() || r.id() != d.MessageID || !bytes.Equal(r.body, got[0].body) || string(r.body) != d.Body {
			t.Errorf("request %d differs: id %s, body %s", i+1, r.id(), r.body)
		}
		if !r.verifies(t, secret) {
			t.Errorf("request %d: v1 does not verify", i+1)
		}
		_, v1a, _ := strings.Cut(r.header.Get("webhook-signature"), "v1a,")
		sig, err := base64.StdEncoding.DecodeString(v1a)
		if err != nil || !ed25519.Verify(key, fmt.Appendf(nil, "%s.%s.%s", r.id(), stamp, r.body), sig) {
			t.Errorf("request %d: v1a does not verify: %s", i+1, r.header.Get("webhook-signature"))
		}
		if want := []int{500, 500, 200}[i]; d.Log[i].Status != want || (d.Log[i].Class == "") != (want == 200) {
			t.Errorf("attempt %d: %+v", i+1, d.Log[i])
		}
	}
	if len(stamps) != 3 {
		t.Errorf("timestamps %v, want a new one each", slices.Collect(maps.Keys(stamps)))
	}
}

// drip sends a byte a time for ever.
func drip(c net.Conn, head string) {
	_, err := io.WriteString(c, head)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for err == nil {
		<-tick.C
		_, err = c.Write([]byte{'x'})
	}
}

func hang(c net.Conn) { _, _ = io.Copy(io.Discard, c) } // until the other side gives up

// 24: whatever receivers do with their time, an attempt ends when it should, and
// nobody else waits for it.
func TestHostileReceivers(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	good := newHook(t, answering(200))
	redirecting := newHook(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", good.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	type hostile struct {
		url, class string
		timesOut   bool
	}
	all := map[string]hostile{
		"hangs":   {"http://" + rawHook(t, hang), "timeout", true},
		"drips":   {"http://" + rawHook(t, func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n") }), "timeout", true},
		"resets":  {"http://" + rawHook(t, func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }), "reset", false},
		"refuses": {"http://" + closed.Addr().String(), "connect", false},
		"no-tls":  {"https://" + rawHook(t, hang), "tls", true},
		"sends":   {redirecting.URL, "redirect", false}, // to the good one, which would get each message twice
	}
	endpoints := []string{endpoint("good", good.URL)}
	for id, h := range all {
		endpoints = append(endpoints, endpoint(id, h.url))
	}
	f := startFleet(t, 3, "--config", endpointsConfig(t, endpoints...), "--webhook-schedule", "0s,1h")
	const n = 6
	for i := range n {
		f.escalate(fmt.Sprintf("r%d", i))
		answered := time.Now()
		f.await("the good receiver", func() bool { return len(good.requests()) == i+1 })
		if took := good.requests()[i].at.Sub(answered); took > time.Second {
			t.Errorf("message %d came to the good receiver after %s", i, took)
		}
	}
	if n := len(good.requests()); n != 6 {
		t.Errorf("%d requests at the good receiver, want 6", n)
	}
	for id, h := range all {
		var ds []client.Delivery
		f.await("the first attempts to "+id, func() bool {
			ds = f.deliveries(id)
			return len(ds) == n && !slices.ContainsFunc(ds, func(d client.Delivery) bool { return len(d.Log) == 0 })
		})
		for _, d := range ds {
			a := d.Log[0]
			if a.Class != h.class || d.State != "pending" {
				t.Errorf("%s: %s, %s (%s); want pending, %s", id, d.State, a.Class, a.Detail, h.class)
			}
			if took := time.Duration(a.DurationMS) * time.Millisecond; h.timesOut && (took < 900*time.Millisecond || took > 2*time.Second) {
				t.Errorf("%s: ended after %s, want 1s", id, took)
			}
		}
	}
}

// 25: an answer of any size costs a few kilobytes.
func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(make([]byte, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	flood := func(head string, chunk []byte) func(net.Conn) {
		return func(c net.Conn) {
			_, err := io.WriteString(c, head)
			for err == nil {
				_, err = c.Write(chunk)
			}
		}
	}
	all := map[string]struct {
		serve func(net.Conn)
		class string
	}{
		"endless": {flood("HTTP/1.1 200 OK\r\n\r\n", bytes.Repeat([]byte("\x00\u202e7"), 2000)), ""},
		"bomb":    {flood("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", bomb.Bytes()), ""},
		"headers": {flood("HTTP/1.1 200 OK\r\n", []byte("X-Pad: "+strings.Repeat("p", 1000)+"\r\n")), "body_limit"},
	}
	var endpoints []string
	for id, h := range all {
		endpoints = append(endpoints, endpoint(id, "http://"+rawHook(t, h.serve)))
	}
	f := startFleet(t, 1, "--config", endpointsConfig(t, endpoints...), "--webhook-schedule", "0s,1h")
	// From here on the peak is counted anew: that of the start would hide what
	// comes. Where the system does not allow that, the start's stays in.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", f.gates[0].cmd.Process.Pid), []byte("5"), 0)
	before := peakMemory(t, f.gates[0])
	const n = 5
	for i := range n {
		f.escalate(fmt.Sprintf("r%d", i))
	}
	for id, h := range all {
		f.await("the attempts to "+id, func() bool {
			ds := f.deliveries(id)
			return len(ds) == n && !slices.ContainsFunc(ds, func(d client.Delivery) bool { return len(d.Log) == 0 || d.Log[0].Class != h.class })
		})
	}
	grown := peakMemory(t, f.gates[0]) - before
	t.Logf("the gate grew by %d KiB", grown>>10)
	if grown > 20<<20 {
		t.Errorf("the gate grew by %d MiB", grown>>20)
	}
	var longest, cut int
	if err := connect(t, f.dsn).QueryRow(t.Context(), `select max(length(convert_to(answer, 'UTF8'))), count(*) filter (where truncated) from delivery_attempt`).
		Scan(&longest, &cut); err != nil {
		t.Fatal(err)
	}
	if longest > 4096 || longest < 4000 || cut < 2*n {
		t.Errorf("%d bytes of an answer kept, %d marked as cut; want 4 KiB, and %d", longest, cut, 2*n)
	}
}

// peakMemory is the most that a process had in memory; 0 where that cannot be read.
func peakMemory(t testing.TB, g *gate) (bytes int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	return 0
}

// 27: 410 ends it. Who else listens is told, what comes later is held, and
// enabling releases all of it.
func TestGoneReceiver(t *testing.T) {
	t.Parallel()
	gone := true
	var mu sync.Mutex
	h := newHook(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if gone {
			w.WriteHeader(http.StatusGone)
		}
	})
	other := newHook(t, answering(200))
	f := startFleet(t, 3, "--config", endpointsConfig(t, endpoint("hook", h.URL), endpoint("other", other.URL)), "--webhook-schedule", "0s,100ms,100ms")
	f.escalate("r0")
	f.await("disabled", func() bool { return f.endpoint("hook").State == "disabled" })
	for i := range 3 {
		f.escalate(fmt.Sprintf("r%d", i+1))
	}
	f.settled("hook", "held")
	f.settled("other", "delivered")
	if n := len(h.requests()); n != 1 {
		t.Errorf("%d requests, want none after the 410", n)
	}
	told := slices.ContainsFunc(other.requests(), func(r hooked) bool { return r.typ() == "endpoint.disabled" && r.verifies(t, secret) })
	e := f.endpoint("hook")
	if !told || e.Disabled == nil || e.Disabled.By != "weir" || !strings.Contains(e.Disabled.Reason, "410") || e.Held != 4 {
		t.Errorf("the other endpoint was told: %t; %+v", told, e)
	}
	to := asking(t, f.gates[0].url, f.token)
	if r := weir(t, append([]string{"endpoint", "ping", "hook"}, to...)...); r.code != exitFailed || !strings.Contains(r.stdout, "410") {
		t.Errorf("ping: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	mu.Lock()
	gone = false
	mu.Unlock()
	if r := weir(t, append([]string{"endpoint", "ping", "hook"}, to...)...); r.code != 0 || !strings.Contains(r.stdout, "delivered, status 200") {
		t.Errorf("ping: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := weir(t, append([]string{"endpoint", "enable", "hook", "--reason", "they are back"}, to...)...); r.code != 0 || !strings.Contains(r.stdout, "hook  enabled") {
		t.Fatalf("enable: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	f.await("what was held arrives", func() bool {
		opened := 0
		for _, d := range f.deliveries("hook") {
			if d.Type == "review.opened" && d.State == "delivered" {
				opened++
			}
		}
		return opened == 4
	})
	if ev := f.endpoint("hook").Events[0]; ev.Type != "enabled" || ev.Actor != "bo" || ev.Reason != "they are back" {
		t.Errorf("recorded: %+v", ev)
	}
}

// An endpoint that is not declared any more ends what waits for it, and no
// replica that starts with the new file touches it before.
func TestDeletedEndpoint(t *testing.T) {
	t.Parallel()
	failing, good := newHook(t, answering(500)), newHook(t, answering(200))
	both := endpointsConfig(t, endpoint("old", failing.URL), endpoint("hook", good.URL))
	f := startFleet(t, 1, "--config", both, "--webhook-schedule", "0s,1h")
	f.escalate("r")
	f.await("a failure", func() bool { return f.endpoint("old").Failures == 1 })
	start := func() {
		t.Helper()
		f.gates = append(f.gates, startGate(t, []string{f.env()}, "--config", endpointsConfig(t, endpoint("hook", good.URL))).ready())
	}
	start()
	if d := f.deliveries("old")[0]; d.State != "pending" {
		t.Errorf("beside a replica that still has it: %s", d.State)
	}
	conn := connect(t, f.dsn)
	if _, err := conn.Exec(t.Context(), `update endpoint set seen_at = now() - interval '11 minutes' where id = 'old'`); err != nil {
		t.Fatal(err)
	}
	start()
	if d := f.deliveries("old")[0]; d.State != "cancelled" || d.FinishedAt == nil {
		t.Errorf("eleven minutes after the last replica had it: %s", d.State)
	}
	if r := f.ask("GET", "/v1/endpoints/old", ""); r.status != 404 {
		t.Errorf("status %d: %s", r.status, r.body)
	}
}

// 28: a wish for patience is heard within bounds, and nonsense is none.
func TestRetryAfterOfReceivers(t *testing.T) {
	t.Parallel()
	const base = 2 * time.Second
	tests := map[string]struct {
		value     func() string
		low, high time.Duration
	}{
		"seconds":  {func() string { return "3" }, 3 * time.Second, 3 * time.Second},
		"short":    {func() string { return "1" }, base, base},
		"date":     {func() string { return time.Now().Add(3 * time.Second).UTC().Format(http.TimeFormat) }, base, 3 * time.Second},
		"negative": {func() string { return "-1" }, base * 8 / 10, base * 12 / 10},
		"huge":     {func() string { return "999999999" }, 2 * base, 2 * base},
		"words":    {func() string { return "abc" }, base * 8 / 10, base * 12 / 10},
	}
	var endpoints []string
	for id, tt := range tests {
		h := newHook(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 0 {
				w.Header().Set("Retry-After", tt.value())
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})
		endpoints = append(endpoints, endpoint(id, h.URL))
	}
	f := startFleet(t, 3, "--config", endpointsConfig(t, endpoints...), "--webhook-schedule", "0s,2s,2s")
	f.escalate("r")
	for id, tt := range tests {
		var d client.Delivery
		f.await("the first attempt to "+id, func() bool { d = f.deliveries(id)[0]; return len(d.Log) > 0 })
		if d.State == "pending" { // else it is too late to see the due time; the gap below tells
			end := d.Log[0].StartedAt.Add(time.Duration(d.Log[0].DurationMS) * time.Millisecond)
			if in := d.DueAt.Sub(end); in < tt.low-50*time.Millisecond || in > tt.high+2*time.Second {
				t.Errorf("%s: tried again %s after the failure, want %s to %s", id, in, tt.low, tt.high)
			}
		}
		d = f.settled(id, "delivered")[0]
		if gap := d.Log[1].StartedAt.Sub(d.Log[0].StartedAt); gap < tt.low-50*time.Millisecond {
			t.Errorf("%s: the second attempt came after %s, want at least %s", id, gap, tt.low)
		}
	}
}

// 29: kill -9 of the replica that has a delivery under way: another takes it when
// the lease ends, with the same id, and it counts once.
func TestReplicaDiesDuringDelivery(t *testing.T) {
	t.Parallel()
	holding, dropped := make(chan struct{}), make(chan struct{})
	h := newHook(t, func(n int, _ http.ResponseWriter, r *http.Request) {
		if n == 0 {
			close(holding)
			<-r.Context().Done() // until the gate is dead
			close(dropped)
		}
	})
	const leaseTime = 4 * time.Second
	args := []string{"--config", endpointsConfig(t, strings.Replace(endpoint("hook", h.URL), "timeout: 1s", "timeout: 2s", 1)),
		"--webhook-lease", leaseTime.String(), "--webhook-schedule", "0s,1h"}
	f := startFleet(t, 3, args...)
	f.escalate("r")
	<-holding
	// The replica that took the spec is woken first, but any may have claimed it.
	var killed time.Time
	for alive := true; alive && len(f.gates) > 0; f.gates = f.gates[1:] {
		killed = time.Now()
		f.gates[0].kill()
		select {
		case <-dropped:
			alive = false
		case <-time.After(200 * time.Millisecond):
		}
	}
	if len(f.gates) == 0 {
		f.gates = append(f.gates, startGate(t, []string{f.env()}, args...).ready())
	}
	f.await("it comes again", func() bool { return len(h.requests()) > 1 })
	got := h.requests()
	took := got[1].at.Sub(killed)
	t.Logf("delivered again %s after the kill", took.Round(time.Millisecond))
	if took > leaseTime+2*time.Second {
		t.Errorf("delivered again after %s, want at most lease + 2s", took)
	}
	d := f.settled("hook", "delivered")[0]
	if len(got) != 2 || got[0].id() != got[1].id() || !bytes.Equal(got[0].body, got[1].body) || d.Attempts != 2 || len(d.Log) != 1 {
		t.Errorf("%d requests, attempt %d, %d logged", len(got), d.Attempts, len(d.Log))
	}
}

// 31: while a secret is being replaced both verify, and then the new one only.
// No secret and no signature is in a log, an answer or a row.
func TestSecretRotation(t *testing.T) {
	t.Parallel()
	private, _, err := webhooks.NewKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	h := newHook(t, answering(500, 200))
	config := configFor(t, "")
	writeFile(t, []byte(otherSecret), config, "old.secret")
	writeFile(t, []byte(private), config, "hook.key")
	declare := func(until time.Time) {
		writeEndpoints(t, config, endpoint("hook", h.URL,
			"secrets: [{file: hook.secret}, {file: hook.key}, {file: old.secret, until: "+until.UTC().Format(time.RFC3339)+"}]"))
	}
	declare(time.Now().Add(time.Hour))
	f := startFleet(t, 1, "--config", config, "--webhook-schedule", "0s,0s,0s", "--verbose")
	f.escalate("during")
	f.settled("hook", "delivered")
	for i, r := range h.requests() {
		if !r.verifies(t, secret) || !r.verifies(t, otherSecret) {
			t.Errorf("during the overlap, request %d: new %t, old %t; want both", i+1, r.verifies(t, secret), r.verifies(t, otherSecret))
		}
	}
	f.gates[0].stop(os.Interrupt)
	logs := f.gates[0].log.String()

	// Now it expires while the gate runs.
	until := time.Now().Add(8 * time.Second).Truncate(time.Second)
	declare(until)
	f.gates[0] = startGate(t, []string{f.env()}, "--config", config, "--webhook-schedule", "0s,0s,0s", "--verbose").ready()
	for i := 0; ; i++ {
		before := len(h.requests())
		f.escalate(fmt.Sprintf("later%d", i))
		f.await("it arrives", func() bool { return len(h.requests()) > before })
		r := h.requests()[before]
		if !r.verifies(t, secret) {
			t.Fatal("the new secret does not verify")
		}
		stamp, err := strconv.ParseInt(r.header.Get("webhook-timestamp"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		expired := stamp >= until.Unix()
		if r.verifies(t, otherSecret) == expired {
			t.Fatalf("the old secret verifies: %t, at %d, expiry %d", !expired, stamp, until.Unix())
		}
		if expired {
			break
		}
		f.await("the expiry comes nearer", func() bool { return time.Since(r.at) > 500*time.Millisecond || time.Now().After(until) })
	}

	everything := logs + f.gates[0].log.String()
	for _, path := range []string{"/v1/deliveries?limit=500", "/v1/endpoints", "/v1/endpoints/hook", "/metrics", "/readyz"} {
		everything += string(f.ask("GET", path, "").body)
	}
	for _, d := range f.deliveries("hook") {
		everything += string(f.ask("GET", "/v1/deliveries/"+d.ID, "").body)
	}
	var rows string
	if err := connect(t, f.dsn).QueryRow(t.Context(), `select (select string_agg(a::text, '') from delivery_attempt a) ||
		(select string_agg(d::text || convert_from(d.body, 'UTF8'), '') from delivery d) || (select string_agg(e::text, '') from endpoint e) ||
		(select string_agg(e::text, '') from endpoint_event e)`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	everything += rows
	hidden := []string{strings.TrimPrefix(secret, "whsec_"), strings.TrimPrefix(otherSecret, "whsec_"), strings.TrimPrefix(private, "whsk_"), "whsec_", "whsk_"}
	for _, r := range h.requests() {
		for s := range strings.FieldsSeq(r.header.Get("webhook-signature")) {
			_, sig, _ := strings.Cut(s, ",")
			hidden = append(hidden, sig)
		}
	}
	for _, s := range hidden {
		if strings.Contains(everything, s) {
			t.Errorf("%.12s… shows", s)
		}
	}
	if !strings.Contains(everything, `"class":"http_status"`) {
		t.Error("the failed attempt is nowhere: what was searched is not what it should be")
	}
}

// 35: ten failures in a row open the breaker, on all replicas and over a
// restart. After the pause one probe goes out, and no other beside it.
func TestBreakerOfAnEndpoint(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	probing, letGo := make(chan struct{}), make(chan struct{})
	good := false
	h := newHook(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 10 {
			close(probing)
			<-letGo
		}
		mu.Lock()
		defer mu.Unlock()
		if !good {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	free := sync.OnceFunc(func() { close(letGo) })
	t.Cleanup(free) // before the receiver's own, which waits for its handlers
	other := newHook(t, answering(200))
	const cooldown = 3 * time.Second
	args := []string{"--config", endpointsConfig(t, strings.Replace(endpoint("hook", h.URL), "timeout: 1s", "timeout: 30s", 1), endpoint("other", other.URL)),
		"--webhook-schedule", "0s,1h", "--webhook-cooldown", cooldown.String()}
	f := startFleet(t, 3, args...)
	for i := range 10 {
		f.escalate(fmt.Sprintf("r%d", i))
	}
	f.await("the breaker opens", func() bool { return f.endpoint("hook").State == "cooling" })
	opened := *f.endpoint("hook").CoolingUntil
	f.escalate("waits")
	for _, g := range f.gates {
		g.kill()
	}
	f.gates = f.gates[:0]
	for range 3 {
		f.gates = append(f.gates, startGate(t, []string{f.env()}, args...))
	}
	for _, g := range f.gates {
		g.ready()
	}
	if e := f.endpoint("hook"); e.State != "cooling" || e.Failures != 10 {
		t.Errorf("after a restart: %+v", e)
	}
	<-probing
	if at := h.requests()[10].at; at.Before(opened.Add(-50 * time.Millisecond)) {
		t.Errorf("the probe came %s before the pause was over", opened.Sub(at))
	}
	n := len(other.requests())
	for i := range 3 { // every replica looks into the outbox while the probe is out
		f.escalate(fmt.Sprintf("beside%d", i))
	}
	f.await("the other endpoint", func() bool { return len(other.requests()) >= n+3 })
	if n := len(h.requests()); n != 11 {
		t.Errorf("%d requests while the probe was out, want the ten and the probe", n)
	}
	free()
	probed := time.Now()
	f.await("a longer pause", func() bool {
		e := f.endpoint("hook")
		return e.Failures == 11 && e.CoolingUntil.Sub(probed) > 2*cooldown-time.Second
	})
	mu.Lock()
	good = true
	mu.Unlock()
	f.await("it works again, and what waited arrives", func() bool {
		delivered := 0
		for _, d := range f.deliveries("hook") {
			if d.State == "delivered" {
				delivered++
			}
		}
		return delivered == 3 && f.endpoint("hook").State == "enabled"
	})
}

// 36: no answer of a receiver is a decision.
func TestAnswerIsNoDecision(t *testing.T) {
	t.Parallel()
	h := newHook(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"decision": "approve", "vote": "admit", "outcome": "admit", "state": "decided"}`)
	})
	f := startFleet(t, 3, "--config", endpointsConfig(t, endpoint("hook", h.URL)))
	s := f.escalate("r")
	d := f.settled("hook", "delivered")[0]
	if r := f.ask("GET", "/v1/reviews/"+s.text("review", "id"), ""); r.text("state") != "open" {
		t.Errorf("the review is %q: %s", r.text("state"), r.body)
	}
	r, err := send(t.Context(), "POST", f.gates[0].url+"/v1/gate/check", f.token, spec("r", escalates))
	if err != nil || r.status != 409 {
		t.Errorf("gate/check: status %d, %v", r.status, err)
	}
	if all := string(f.ask("GET", "/v1/deliveries/"+d.ID, "").body); strings.Contains(all, "approve") {
		t.Errorf("the answer is shown to whoever may see deliveries: %s", all)
	}
}

// A retry can be recognised, however the attempt before it ended, and so can what
// a person sends again (KNOWN_FAULTS 19).
func TestRetriesAreRecognisable(t *testing.T) {
	t.Parallel()
	h := newHook(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch n {
		case 0:
			w.WriteHeader(http.StatusInternalServerError)
		case 1:
			<-r.Context().Done() // has read it all, and says nothing
		}
	})
	f := startFleet(t, 3, "--config", endpointsConfig(t, endpoint("hook", h.URL)), "--webhook-schedule", "0s,10ms,10ms")
	f.escalate("r")
	d := f.settled("hook", "delivered")[0]
	for i := range 2 {
		if r := f.ask("POST", "/v1/deliveries/"+d.ID+"/redeliver", ""); r.status != 202 {
			t.Fatalf("status %d: %s", r.status, r.body)
		}
		f.await("sent again", func() bool { return len(h.requests()) == 4+i })
		f.settled("hook", "delivered")
	}
	first := h.requests()[0]
	for i, r := range h.requests() {
		if r.id() != d.MessageID || !bytes.Equal(r.body, first.body) || !r.verifies(t, secret) {
			t.Errorf("request %d: id %s, body %s", i+1, r.id(), r.body)
		}
		if marked := r.header.Get("weir-redelivery") != ""; marked != (i >= 3) {
			t.Errorf("request %d is marked as asked for: %t", i+1, marked)
		}
	}
}

// A receiver that asks for a client certificate and a bearer token, declared by
// files, with an authority of its own.
func TestReceiverThatKnowsItsCallers(t *testing.T) {
	t.Parallel()
	config := configFor(t, "")
	ours := writeKeyPair(t, config, "weir")
	known := x509.NewCertPool()
	known.AddCert(ours)
	h := newHook(t, answering(200))
	secure := httptest.NewUnstartedServer(h.Config.Handler)
	secure.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known}
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	writeFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), config, "theirs.crt")
	writeFile(t, []byte("t0ken\n"), config, "hook.token")
	good := endpoint("hook", secure.URL, "cert_file: weir.crt", "key_file: weir.key", "ca_file: theirs.crt", "bearer_file: hook.token")
	writeEndpoints(t, config, good, endpoint("stranger", secure.URL, "ca_file: theirs.crt"))
	f := startFleet(t, 1, "--config", config, "--webhook-schedule", "0s")
	f.escalate("r")
	f.settled("hook", "delivered")
	f.settled("stranger", "dead")
	if got := h.requests(); len(got) != 1 || got[0].header.Get("Authorization") != "Bearer t0ken" {
		t.Errorf("%d requests", len(got))
	}
	if all := f.gates[0].log.String() + string(f.ask("GET", "/v1/endpoints/hook", "").body) + f.deliveries("hook")[0].Body; strings.Contains(all, "t0ken") {
		t.Error("the token shows")
	}
	for change, want := range map[string]string{
		"weir.crt → none.crt":    "cert_file and key_file: open",
		"weir.key → hook.token":  "cert_file and key_file: tls:",
		"theirs.crt → none.crt":  "ca_file: open",
		"theirs.crt → weir.key":  "weir.key holds no certificate in PEM",
		"hook.token → none":      "bearer_file: open",
		"hook.token → empty":     "bearer_file: is empty",
		"hook.secret → none":     "secret_file: open",
		"bearer_file → bearer_e": "not a known key",
	} {
		old, new, _ := strings.Cut(change, " → ")
		writeFile(t, nil, config, "empty")
		writeEndpoints(t, config, strings.Replace(good, old, new, 1))
		if _, err := loadDeployment(config, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "t0ken") {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
}

// writeKeyPair writes a certificate of its own and its key.
func writeKeyPair(t testing.TB, dir, name string) *x509.Certificate {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, pub, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), dir, name+".crt")
	writeFile(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), dir, name+".key")
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
