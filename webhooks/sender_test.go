package webhooks

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestSendOnTheWire(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "thanks\n") })
	e := loopback("legal", r.URL+"/in?team=nlp")
	e.Secrets = append(e.Secrets, Secret{Key: otherSecret, ExpiresAt: time.Now().Add(time.Hour)})
	d := message("legal")
	d.Attempt, d.Request = 3, "req-1"
	at := time.Now()
	a := newTestSender(t, e, Config{Now: func() time.Time { return at },
		Checkpoint: func(context.Context) []byte { return []byte("log\n7\nroot\n\n— log sig\n") }}).send(t.Context(), d)

	if !a.Delivered() || a.Status != 200 || a.Class != "" || a.Number != 3 || a.Request != "req-1" || a.Answer != `thanks\n` || a.Truncated {
		t.Errorf("attempt: %+v", a)
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	if a.IP != netip.MustParseAddr("127.0.0.1") || a.Host != u.Host || a.StartedAt != at {
		t.Errorf("attempt: IP %v, host %q, started %v", a.IP, a.Host, a.StartedAt)
	}
	got := r.requests()
	if len(got) != 1 {
		t.Fatalf("%d requests", len(got))
	}
	if got[0].err != nil {
		t.Errorf("verification: %v", got[0].err)
	}
	if !bytes.Equal(got[0].body, d.Body) {
		t.Errorf("body %q, want %q", got[0].body, d.Body)
	}
	for name, want := range map[string]string{
		"webhook-id":        d.MessageID,
		"webhook-timestamp": strconv.FormatInt(at.Unix(), 10),
		"content-type":      "application/json",
		"accept-encoding":   "identity",
		"user-agent":        DefaultUserAgent,
		"weir-redelivery":   "manual",
		"weir-checkpoint":   base64.StdEncoding.EncodeToString([]byte("log\n7\nroot\n\n— log sig\n")),
	} {
		if h := got[0].header.Get(name); h != want {
			t.Errorf("%s: %q, want %q", name, h, want)
		}
	}
	if n := len(strings.Fields(got[0].header.Get("webhook-signature"))); n != 2 {
		t.Errorf("%d signatures, want one for each secret", n)
	}
}

func TestSendUsesNoProxy(t *testing.T) {
	t.Parallel()
	if newTestSender(t, loopback("legal", "http://127.0.0.1:1/"), Config{}).transport.Proxy != nil {
		t.Error("with a proxy the guard sees only the proxy")
	}
}

func TestSendStatus(t *testing.T) {
	t.Parallel()
	elsewhere := newReceiver(t, status(200))
	location := func(code int, to string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(code)
		}
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		status  int
		class   Class
	}{
		{"200", status(200), 200, ""},
		{"201", status(201), 201, ""},
		{"204", status(204), 204, ""},
		{"299", status(299), 299, ""},
		{"301", location(301, elsewhere.URL), 301, ClassRedirect},
		{"302 to metadata", location(302, "http://169.254.169.254/"), 302, ClassRedirect},
		{"307", location(307, elsewhere.URL), 307, ClassRedirect},
		{"308", location(308, elsewhere.URL), 308, ClassRedirect},
		{"302 without location", status(302), 302, ClassRedirect},
		{"302 to nonsense", location(302, "http://%zz/"), 302, ClassRedirect},
		{"304", status(304), 304, ClassRedirect},
		{"400", status(400), 400, ClassHTTPStatus},
		{"404", status(404), 404, ClassHTTPStatus},
		{"410", status(410), 410, ClassHTTPStatus},
		{"500", status(500), 500, ClassHTTPStatus},
		{"503", status(503), 503, ClassHTTPStatus},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, tt.handler)
			a := newTestSender(t, loopback("legal", r.URL), Config{}).send(t.Context(), message("legal"))
			if a.Status != tt.status || a.Class != tt.class || a.Delivered() != (tt.class == "") {
				t.Errorf("status %d, class %q, delivered %t", a.Status, a.Class, a.Delivered())
			}
			if len(elsewhere.requests()) != 0 {
				t.Error("a redirect was followed")
			}
		})
	}
}

// After a 101 the connection belongs to whoever reads the body, and the
// attempt's deadline no longer ends a read: so there must be none.
func TestSendSwitchingProtocols(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	addr := rawServer(t, func(c net.Conn) {
		defer close(closed)
		r := bufio.NewReader(c)
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
		io.Copy(io.Discard, c) // until the other side closes
	})
	a := newTestSender(t, loopback("legal", "http://"+addr), Config{}).send(t.Context(), message("legal"))
	if a.Class != ClassHTTPStatus || a.Status != 101 {
		t.Errorf("class %q, status %d", a.Class, a.Status)
	}
	<-closed
}

func TestSendNoConnection(t *testing.T) {
	t.Parallel()
	plain := newReceiver(t, status(200))
	secure := httptest.NewUnstartedServer(status(200))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshakes that fail here
	secure.StartTLS()
	t.Cleanup(secure.Close)
	silent := rawServer(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	nowhere := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server")
	}}

	tests := []struct {
		name    string
		url     string
		timeout time.Duration
		cfg     Config
		want    Class
	}{
		{"trusted certificate", secure.URL, patience, Config{RootCAs: roots}, ""},
		{"unknown certificate", secure.URL, patience, Config{}, ClassTLS},
		{"no TLS there", "https" + strings.TrimPrefix(plain.URL, "http"), patience, Config{}, ClassTLS},
		{"handshake never ends", "https://" + silent, MinTimeout, Config{}, ClassTLS},
		{"refused", "http://" + closed.Addr().String(), patience, Config{}, ClassConnect},
		{"no such name", "http://receiver.test", patience, Config{Resolver: nowhere}, ClassDNS},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := loopback("legal", tt.url)
			e.Timeout = tt.timeout
			a := newTestSender(t, e, tt.cfg).send(t.Context(), message("legal"))
			if a.Class != tt.want || (a.Detail == "") != (tt.want == "") {
				t.Errorf("class %q (%s), want %q", a.Class, a.Detail, tt.want)
			}
		})
	}
}

// A receiver that knows its callers: by certificate, and by a bearer token.
func TestSendIdentity(t *testing.T) {
	t.Parallel()
	ours := selfSigned(t)
	known := x509.NewCertPool()
	known.AddCert(ours.Leaf)
	got := make(chan string, 10)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Authorization") + " " + r.TLS.PeerCertificates[0].Subject.CommonName
	}))
	secure.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known}
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	theirs := x509.NewCertPool()
	theirs.AddCert(secure.Certificate())

	e := loopback("legal", secure.URL)
	e.RootCAs, e.Certificate, e.Bearer = theirs, &ours, Secret{Key: "t0ken"}
	if a := newTestSender(t, e, Config{}).send(t.Context(), message("legal")); !a.Delivered() {
		t.Fatalf("class %q (%s)", a.Class, a.Detail)
	}
	if s := <-got; s != "Bearer t0ken weir" {
		t.Errorf("the receiver saw %q", s)
	}
	e.Certificate = nil
	if a := newTestSender(t, e, Config{}).send(t.Context(), message("legal")); a.Delivered() {
		t.Error("delivered without a certificate")
	}
	if len(got) != 0 {
		t.Error("the receiver took a caller without a certificate")
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "weir"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, pub, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestSendRefusesToSign(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(200))
	d := message("legal")
	d.MessageID = "msg_1.2"
	a := newTestSender(t, loopback("legal", r.URL), Config{}).send(t.Context(), d)
	if a.Class != ClassInternal || len(r.requests()) != 0 {
		t.Errorf("class %q, %d requests", a.Class, len(r.requests()))
	}
}

// Fault test 28, the whole way from the answer to the delay.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const base = 10 * time.Second
	now := time.Now().Truncate(time.Second)
	tests := []struct {
		code  int
		value string
		want  time.Duration
	}{
		{429, "3", base},
		{429, "15", 15 * time.Second},
		{503, "999999999", 2 * base},
		{503, now.Add(15 * time.Second).UTC().Format(http.TimeFormat), 15 * time.Second},
		{302, "15", 15 * time.Second},
		{429, "-1", base},
		{429, "abc", base},
		{429, "", base},
	}
	for _, tt := range tests {
		t.Run(tt.value, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", tt.value)
				w.WriteHeader(tt.code)
			})
			cfg := Config{Now: func() time.Time { return now }, Jitter: fixed(0.5), Schedule: Schedule{0, base}}
			d := newTestDispatcher(t, newOutbox(), cfg, loopback("legal", r.URL))
			a := d.lanes["legal"].send(t.Context(), message("legal"))
			o := (&run{Dispatcher: d}).outcome(message("legal"), a)
			if o.State != StateRetry || o.RetryIn != tt.want {
				t.Errorf("outcome %+v, want a retry in %v", o, tt.want)
			}
		})
	}
}
