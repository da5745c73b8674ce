package webhooks

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.opentelemetry.io/otel/propagation"
)

// Limits of one attempt, all inside the endpoint's own timeout.
const (
	dialTimeout      = 3 * time.Second // name lookup included
	tlsTimeout       = 5 * time.Second
	headerTimeout    = 10 * time.Second
	maxHeaderBytes   = 16 << 10
	maxBodyBytes     = 16 << 10
	maxAnswerBytes   = 4 << 10
	maxDetailBytes   = 512
	redeliveryHeader = "weir-redelivery"
	checkpointHeader = "weir-checkpoint"
)

// sender makes single attempts at one endpoint.
type sender struct {
	endpoint   Endpoint
	url        *url.URL
	signer     signer
	transport  *http.Transport
	userAgent  string
	now        func() time.Time
	checkpoint func(context.Context) []byte
}

// NewTransport reaches outsiders as webhooks do: it dials only where the egress
// guard lets it, by the resolver, refused ranges, own addresses and authorities of
// a config, and its round trips follow no redirect.
func NewTransport(allowPrivate bool, cfg Config) *http.Transport {
	dialer := &net.Dialer{
		Timeout:        dialTimeout,
		KeepAlive:      -1, // a connection lives for one request
		Resolver:       cfg.Resolver,
		ControlContext: guard{allowPrivate: allowPrivate, refuse: cfg.Refuse, own: cfg.Own}.control,
	}
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &http.Transport{
		Proxy:       nil, // the guard would see the proxy's address only
		DialContext: dialer.DialContext,
		// Every attempt dials, so every attempt is checked, follows the
		// name to where it points now, and cannot fail on a connection the
		// receiver closed in between. At this volume the handshake is free.
		DisableKeepAlives:      true,
		DisableCompression:     true, // an answer is never inflated here
		Protocols:              &http1,
		TLSClientConfig:        &tls.Config{RootCAs: cfg.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    tlsTimeout,
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// newSender takes a normalised endpoint and a complete config.
func newSender(e Endpoint, cfg Config) (*sender, error) {
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil, err
	}
	keys, err := newSigner(e.Secrets)
	if err != nil {
		return nil, err
	}
	transport := NewTransport(e.AllowPrivate, cfg)
	if e.RootCAs != nil {
		transport.TLSClientConfig.RootCAs = e.RootCAs
	}
	if e.Certificate != nil {
		// Not Certificates, of which one is sent only if the receiver's list of
		// authorities has its issuer: an operator who declared one means it.
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return e.Certificate, nil }
	}
	return &sender{
		endpoint:   e,
		url:        u,
		signer:     keys,
		transport:  transport,
		userAgent:  cfg.UserAgent,
		now:        cfg.Now,
		checkpoint: cfg.Checkpoint,
	}, nil
}

// send makes one attempt and never fails otherwise than in its result.
func (s *sender) send(ctx context.Context, d Delivery) Attempt {
	a := newAttempt(d, s.now())
	a.Host = s.url.Host
	var p progress
	s.exchange(ctx, d, &a, &p)
	a.IP = p.addr()
	a.Duration = s.now().Sub(a.StartedAt)
	return a
}

func newAttempt(d Delivery, at time.Time) Attempt {
	return Attempt{
		DeliveryID: d.ID, EndpointID: d.EndpointID, MessageID: d.MessageID,
		Number: max(d.Attempt, 1), Request: d.Request, StartedAt: at,
	}
}

func (s *sender) exchange(ctx context.Context, d Delivery, a *Attempt, p *progress) {
	signature, err := s.signer.sign(d.MessageID, a.StartedAt, d.Body)
	if err != nil {
		a.Class, a.Detail = ClassInternal, err.Error()
		return
	}
	limited, cancel := context.WithTimeout(ctx, s.endpoint.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(limited, p.trace()),
		http.MethodPost, s.url.String(), bytes.NewReader(d.Body))
	if err != nil {
		a.Class, a.Detail = ClassInternal, "the request cannot be built"
		return
	}
	h := req.Header
	h.Set("Content-Type", mediaType(d.Body))
	h.Set("Accept-Encoding", "identity")
	h.Set("User-Agent", s.userAgent)
	h.Set(standardwebhooks.HeaderWebhookID, d.MessageID)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(a.StartedAt.Unix(), 10))
	h.Set(standardwebhooks.HeaderWebhookSignature, signature)
	if note := s.checkpoint(limited); len(note) > 0 {
		h.Set(checkpointHeader, base64.StdEncoding.EncodeToString(note))
	}
	if d.Request != "" && d.Type != TypePing {
		h.Set(redeliveryHeader, "manual")
	}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h)) // nothing without a span
	if s.endpoint.Bearer.Key != "" {
		h.Set("Authorization", "Bearer "+s.endpoint.Bearer.Key)
	}

	// RoundTrip, not Client.Do: it cannot follow a redirect, and its errors do
	// not quote the URL.
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		a.aborted = ctx.Err() != nil
		a.Class, a.Detail = p.classify(err)
		return
	}
	defer resp.Body.Close() // without draining: what is left is not wanted
	a.Status = resp.StatusCode
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// The body is now the raw connection, which no timeout ends.
		a.Class, a.Detail = ClassHTTPStatus, "answered 101"
		return
	}
	body, readErr := io.ReadAll(io.LimitReader(resp.Body, maxBodyBytes))
	a.Answer, a.Truncated = excerpt(body, maxAnswerBytes)
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode <= 299:
		if readErr != nil {
			a.aborted = ctx.Err() != nil
			a.Class, a.Detail = p.classify(readErr)
		}
	case resp.StatusCode >= 300 && resp.StatusCode <= 399:
		a.Class, a.Detail = ClassRedirect, "answered "+strconv.Itoa(resp.StatusCode)+", redirects are not followed"
	default:
		a.Class, a.Detail = ClassHTTPStatus, "answered "+strconv.Itoa(resp.StatusCode)
	}
	if a.Class != "" {
		a.RetryAfter = parseRetryAfter(resp.Header.Get("Retry-After"), s.now())
	}
}

// progress follows a request through its stages. The transport may still call
// the hooks of an abandoned dial after it has returned, hence the lock.
type progress struct {
	mu    sync.Mutex
	stage Class // what a failure now would be; empty once connected
	ip    netip.Addr
}

func (p *progress) addr() netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ip
}

func (p *progress) enter(stage Class, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage = stage
	if ap, err := netip.ParseAddrPort(address); err == nil {
		p.ip = ap.Addr().Unmap()
	}
}

func (p *progress) trace() *httptrace.ClientTrace {
	p.stage = ClassConnect
	return &httptrace.ClientTrace{
		DNSStart:          func(httptrace.DNSStartInfo) { p.enter(ClassDNS, "") },
		ConnectStart:      func(_, address string) { p.enter(ClassConnect, address) },
		TLSHandshakeStart: func() { p.enter(ClassTLS, "") },
		GotConn:           func(i httptrace.GotConnInfo) { p.enter("", i.Conn.RemoteAddr().String()) },
	}
}

// classify names a failure. The stage decides until there is a connection:
// errors of name lookup, dial and TLS have dozens of types, and any of them can
// also be a timeout. Details after that are fixed text, since the library's
// errors can quote the answer.
func (p *progress) classify(err error) (Class, string) {
	p.mu.Lock()
	stage := p.stage
	p.mu.Unlock()

	var netErr net.Error
	timedOut := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &netErr) && netErr.Timeout()
	switch {
	case errors.Is(err, ErrBlockedAddress):
		stage = ClassSSRFBlocked
	case stage != "":
	case timedOut:
		return ClassTimeout, "no whole answer in time"
	case strings.Contains(err.Error(), "response headers exceeded"):
		// The library gives this error no type; a test pins the wording.
		return ClassBodyLimit, "the answer's headers are too long"
	default:
		return ClassReset, "the connection broke, or the answer is not HTTP"
	}
	detail, _ := excerpt([]byte(err.Error()), maxDetailBytes)
	return stage, detail
}
