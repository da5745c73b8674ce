package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"weir/screening"
)

// ErrTooLarge: a gate does not take such a body.
var ErrTooLarge = errors.New("the request is larger than the 1 MiB that a gate takes")

// Config tunes a Client.
type Config struct {
	// Transport carries the requests. Default http.DefaultTransport.
	Transport http.RoundTripper
}

// Client asks one gate with one key. It may be used by several goroutines.
type Client struct {
	server, key string
	http        *http.Client
}

// New makes a client of the gate at an address like https://weir.example. The key is
// an API key, or a token that the gate takes.
func New(server, key string, cfg Config) (*Client, error) {
	u, err := url.Parse(server)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, errors.New("the server must be an address like https://weir.example")
	}
	return &Client{server: strings.TrimSuffix(server, "/"), key: key, http: &http.Client{Transport: cfg.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// Server is the address of the gate.
func (c *Client) Server() string { return c.server }

// Ready asks, once, whether the gate can be trusted with a question; nil = it can.
func (c *Client) Ready(ctx context.Context) error {
	resp, _, err := c.begin(ctx, get("/readyz"))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var said struct {
		Status  string   `json:"status"`
		Reasons []string `json:"reasons"`
	}
	err = json.UnmarshalRead(io.LimitReader(resp.Body, 1<<20), &said)
	switch {
	case err == nil && resp.StatusCode == http.StatusOK && said.Status == "ready":
		return nil
	case err == nil && len(said.Reasons) > 0:
		return noAnswer(fmt.Errorf("it is not ready: %s", strings.Join(said.Reasons, "; ")))
	}
	return noAnswer(fmt.Errorf("it does not say that it is ready (status %d)", resp.StatusCode))
}

// Said is the answer as it came, for whoever passes it on.
type Said struct {
	Raw jsontext.Value `json:"-"`
}

// Bytes gives it.
func (s *Said) Bytes() jsontext.Value { return s.Raw }

func (s *Said) keep(raw jsontext.Value) { s.Raw = raw }

// answer is what a request can be answered with. whole reports whether it is what
// was asked for: strange JSON leaves every field empty.
type answer[T any] interface {
	*T
	keep(jsontext.Value)
	whole() bool
}

type request struct {
	method, path string
	header       http.Header
	body         []byte
	// safe: a second time changes nothing, and is answered like the first.
	safe bool
	once bool // even then there is no second time
}

func get(path string) request { return request{method: http.MethodGet, path: path, safe: true} }

func post(path string, body any) (request, error) {
	r := request{method: http.MethodPost, path: path}
	if body == nil {
		return r, nil
	}
	var err error
	if r.body, err = json.Marshal(body, json.Deterministic(true)); err != nil {
		return r, err
	}
	if len(r.body) > screening.MaxDocumentBytes {
		return r, ErrTooLarge
	}
	r.header = http.Header{"Content-Type": {"application/json"}}
	return r, nil
}

// fetch asks for a T; what names it.
func fetch[T any, P answer[T]](ctx context.Context, c *Client, what string, r request) (*T, error) {
	data, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	return read[T, P](what, data)
}

// send is fetch with a body in JSON, nil for none.
func send[T any, P answer[T]](ctx context.Context, c *Client, what, path string, body any) (*T, error) {
	r, err := post(path, body)
	if err != nil {
		return nil, err
	}
	return fetch[T, P](ctx, c, what, r)
}

// sendSafe is send of what may be repeated.
func sendSafe[T any, P answer[T]](ctx context.Context, c *Client, what, path string, body any) (*T, error) {
	r, err := post(path, body)
	if err != nil {
		return nil, err
	}
	r.safe = true
	return fetch[T, P](ctx, c, what, r)
}

func read[T any, P answer[T]](what string, data []byte) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil || !P(v).whole() {
		return nil, noAnswer(fmt.Errorf("the answer was not %s", what))
	}
	P(v).keep(data)
	return v, nil
}

// again says when a request that failed may be repeated.
type again int

const (
	never    again = iota
	ifSafe         // nobody knows what the gate did
	anything       // the gate did nothing
)

// do repeats a request while the gate is unavailable.
func (c *Client) do(ctx context.Context, r request) ([]byte, error) {
	for pause := 200 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		data, when, err := c.try(ctx, r)
		switch {
		case err == nil, when == never, r.once:
			return data, err
		case when == ifSafe && !r.safe:
			return nil, noAnswer(fmt.Errorf("%w; it may have done it all the same: look before you ask again", err))
		}
		select {
		case <-ctx.Done():
			return nil, noAnswer(err)
		case <-time.After(pause):
		}
	}
}

func (c *Client) try(ctx context.Context, r request) (data []byte, when again, err error) {
	resp, when, err := c.begin(ctx, r)
	if err != nil {
		return nil, when, err
	}
	defer resp.Body.Close()
	const most = 8 << 20
	data, err = io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, never, noAnswer(err)
	case err != nil:
		return nil, ifSafe, noAnswer(err)
	case len(data) > most:
		return nil, never, noAnswer(errors.New("the answer does not end"))
	case resp.StatusCode/100 != 2:
		when, err = refusal(resp.StatusCode, data)
		return nil, when, err
	}
	return data, never, nil
}

// begin sends a request and gives the beginning of an answer of whatever status.
func (c *Client) begin(ctx context.Context, r request) (*http.Response, again, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, c.server+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, never, err
	}
	if r.header != nil {
		req.Header = r.header.Clone()
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err == nil {
		return resp, never, nil
	}
	when := ifSafe
	var untrusted *tls.CertificateVerificationError
	var network *net.OpError
	switch {
	case ctx.Err() != nil, errors.As(err, &untrusted): // and it stays so
		when = never
	case errors.As(err, &network) && network.Op == "dial":
		when = anything
	}
	return nil, when, noAnswer(err)
}

// open asks for something long: within is the time for the answer to begin.
func (c *Client) open(ctx context.Context, within time.Duration, path string) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(within, func() { cancel(fmt.Errorf("no answer within %v", within)) })
	resp, _, err := c.begin(ctx, get(path))
	if !late.Stop() {
		if err == nil {
			resp.Body.Close()
		}
		return nil, noAnswer(context.Cause(ctx))
	}
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, noAnswer(err)
	}
	_, err = refusal(resp.StatusCode, body)
	return nil, err
}

// at is a path with an id in it.
func at(collection, id string, rest ...string) string {
	return strings.Join(append([]string{collection, url.PathEscape(id)}, rest...), "/")
}
