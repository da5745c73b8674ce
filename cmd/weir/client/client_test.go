package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir/cmd/weir/client"
	"weir/screening"
)

// carrier answers requests without a network.
type carrier func(*http.Request) (*http.Response, error)

func (f carrier) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answering(status int, body string) (*http.Response, error) {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func refusing(status int, name string) (*http.Response, error) {
	return answering(status, fmt.Sprintf(`{"type": "urn:weir:problem:%s", "title": "No", "status": %d, "request_id": "R"}`, name, status))
}

func newClient(t *testing.T, f carrier) *client.Client {
	t.Helper()
	c, err := client.New("http://gate.example/", "weir_key", client.Config{Transport: f})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	whole     = `{"id": "s", "status": "admitted", "decision": {"outcome": "admit"}}`
	oneReview = `{"id": "r", "state": "open"}`
)

// What is not whole, not from a gate or not final is no answer, and no guess.
func TestNothingButAnAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		body   string
		says   string // "" = it is an answer
	}{
		{"an answer", 200, whole, ""},
		{"a final one", 201, whole, ""},
		{"erased", 200, `{"id": "s", "status": "blocked", "outcome": "block", "erased": {"actor": "ana"}}`, ""},
		{"no body", 200, ``, "not a screening"},
		{"no JSON", 200, `<html>login</html>`, "not a screening"},
		{"half", 200, whole[:len(whole)-3], "not a screening"},
		{"other JSON", 200, `{"ok": true}`, "not a screening"},
		{"null", 200, `null`, "not a screening"},
		{"no decision", 200, `{"id": "s", "status": "admitted"}`, "not a screening"},
		{"no status", 200, `{"id": "s", "decision": {"outcome": "admit"}}`, "not a screening"},
		{"no id", 200, `{"status": "admitted", "decision": {"outcome": "admit"}}`, "not a screening"},
		{"an outcome that is none", 200, `{"id": "s", "status": "admitted", "decision": {"outcome": "fine"}}`, "not a screening"},
		{"a redirect", 302, ``, "not from a weir"},
		{"another's page", 404, `not found`, "not from a weir"},
		{"another's problem", 403, `{"type": "about:blank", "title": "Forbidden"}`, "not from a weir"},
		{"an inner fault", 500, `{"type": "urn:weir:problem:internal", "title": "Internal error", "request_id": "R"}`, "request R"},
		{"endless", 200, strings.Repeat(" ", 9<<20) + whole, "does not end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			c := newClient(t, func(*http.Request) (*http.Response, error) { asked++; return answering(tt.status, tt.body) })
			s, err := c.Submit(t.Context(), "k", []byte("x"))
			if tt.says == "" {
				if err != nil || s.Decision == nil || string(s.Bytes()) != tt.body {
					t.Errorf("%+v %v", s, err)
				}
				return
			}
			if s != nil || !errors.Is(err, client.ErrNoAnswer) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%+v %v, want no answer: %s", s, err, tt.says)
			}
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// A refusal has its problem; one about the document has what is wrong with it.
func TestProblems(t *testing.T) {
	t.Parallel()
	c := newClient(t, func(*http.Request) (*http.Response, error) {
		return answering(409, `{"type": "urn:weir:problem:conflict", "title": "The review changed", "status": 200, "detail": "read it again", "request_id": "R"}`)
	})
	_, err := c.Comment(t.Context(), "r", "hm")
	var p *client.Problem
	if !errors.As(err, &p) || p.Name() != "conflict" || p.Status != 409 || p.RequestID != "R" || errors.Is(err, client.ErrNoAnswer) ||
		err.Error() != "the gate answered 409: The review changed: read it again" {
		t.Errorf("%v", err)
	}
	c = newClient(t, func(*http.Request) (*http.Response, error) {
		return answering(422, `{"type": "urn:weir:problem:invalid", "title": "The spec is not valid", "errors": [{"pointer": "/owner", "detail": "is nobody"}]}`)
	})
	_, err = c.Submit(t.Context(), "k", []byte("x"))
	var invalid *screening.InvalidError
	if !errors.As(err, &invalid) || invalid.What != "spec" || len(invalid.Problems) != 1 || errors.Is(err, client.ErrNoAnswer) {
		t.Errorf("%v", err)
	}
	if _, err := client.New("gate.example", "k", client.Config{}); err == nil {
		t.Error("an address without a scheme was taken")
	}
}

// What may be done twice is asked again; what may not, only if it was not done.
func TestRepeats(t *testing.T) {
	t.Parallel()
	lost := func() (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
	half := func() (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(io.MultiReader(strings.NewReader("{"), broken{}))}, nil
	}
	down := func() (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	problem := func(status int, name string) func() (*http.Response, error) {
		return func() (*http.Response, error) { return refusing(status, name) }
	}
	for _, tt := range []struct {
		name         string
		first        func() (*http.Response, error)
		safe, unsafe bool // whether it is asked again
	}{
		{"nobody there", down, true, true},
		{"lost on the way", lost, true, false},
		{"cut off", half, true, false},
		{"not ready", problem(503, "not-ready"), true, true},
		{"busy", problem(503, "busy"), true, true},
		{"issuer away", problem(503, "issuer-away"), true, true},
		{"too many", problem(429, "rate"), true, true},
		{"store away", problem(503, "unavailable"), true, false},
		{"in flight", problem(409, "in-flight"), true, false},
		{"a proxy", func() (*http.Response, error) { return answering(502, "bad gateway") }, true, false},
		{"a fault", problem(500, "internal"), false, false},
		{"a refusal", problem(409, "conflict"), false, false},
		{"a page", func() (*http.Response, error) { return answering(404, "") }, false, false},
	} {
		calls := map[string]struct {
			again bool
			body  string
			do    func(context.Context, *client.Client) error
		}{
			"submit": {tt.safe, whole, func(ctx context.Context, c *client.Client) error {
				_, err := c.Submit(ctx, "k", []byte("x"))
				return err
			}},
			"read":    {tt.safe, oneReview, func(ctx context.Context, c *client.Client) error { _, err := c.Review(ctx, "r"); return err }},
			"claim":   {tt.safe, oneReview, func(ctx context.Context, c *client.Client) error { _, err := c.Claim(ctx, "r"); return err }},
			"comment": {tt.unsafe, oneReview, func(ctx context.Context, c *client.Client) error { _, err := c.Comment(ctx, "r", "hm"); return err }},
			"vote": {tt.unsafe, oneReview, func(ctx context.Context, c *client.Client) error {
				_, err := c.Vote(ctx, "r", client.Vote{})
				return err
			}},
			"report": {false, `{"id": "b"}`, func(ctx context.Context, c *client.Client) error {
				_, err := c.ReportBypass(ctx, []byte("{}"))
				return err
			}},
			"ready": {false, `{}`, func(ctx context.Context, c *client.Client) error { return c.Ready(ctx) }},
		}
		for name, call := range calls {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var keys []string
					c := newClient(t, func(r *http.Request) (*http.Response, error) {
						if keys = append(keys, r.Header.Get("Idempotency-Key")); len(keys) == 1 {
							return tt.first()
						}
						return answering(200, call.body)
					})
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					err := call.do(ctx, c)
					if again := len(keys) > 1; again != call.again || again != (err == nil) {
						t.Errorf("asked %d times, %v", len(keys), err)
					}
					if name == "submit" && strings.Join(keys, "") != strings.Repeat("k", len(keys)) {
						t.Errorf("keys %q", keys)
					}
					if tt.safe && !tt.unsafe && !call.again && name == "comment" && !strings.Contains(err.Error(), "look before you ask again") {
						t.Errorf("it does not say that it may have been done: %v", err)
					}
				})
			})
		}
	}
}

// broken ends in an error.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A gate is ready when it says so.
func TestReady(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status     int
		body, says string
	}{
		{200, `{"status": "ready", "packs": []}`, ""},
		{200, `{"status": "not ready"}`, "status 200"},
		{200, `<html>`, "status 200"},
		{503, `{"status": "not ready", "reasons": ["the database does not answer"]}`, "it is not ready: the database does not answer"},
		{404, `{"status": "ready"}`, "status 404"},
	} {
		c := newClient(t, func(*http.Request) (*http.Response, error) { return answering(tt.status, tt.body) })
		err := c.Ready(t.Context())
		if (err == nil) != (tt.says == "") || err != nil && (!errors.Is(err, client.ErrNoAnswer) || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%d %s: %v", tt.status, tt.body, err)
		}
	}
}

// A gate that stays away ends the wait when the context ends, closed.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c := newClient(t, func(*http.Request) (*http.Response, error) { asked++; return refusing(503, "not-ready") })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begun := time.Now()
		s, err := c.Submit(ctx, "k", []byte("x"))
		if s != nil || !errors.Is(err, client.ErrNoAnswer) || time.Since(begun) != 10*time.Second || asked < 5 || asked > 10 {
			t.Errorf("%v after %v, asked %d times", err, time.Since(begun), asked)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() })
		if _, err := c.Export(t.Context(), time.Second, nil); !errors.Is(err, client.ErrNoAnswer) || !strings.Contains(err.Error(), "no answer within 1s") {
			t.Errorf("%v", err)
		}
	})
}

// The key goes with every request but the one that needs none, and an export is read
// as it comes.
func TestExport(t *testing.T) {
	t.Parallel()
	c := newClient(t, func(r *http.Request) (*http.Response, error) {
		if r.Header.Get("Authorization") != "Bearer weir_key" || r.URL.String() != "http://gate.example/v1/exports?format=csv" {
			t.Errorf("%v %v", r.URL, r.Header)
		}
		resp, err := answering(200, "log_index\n")
		resp.Header.Set("Weir-Export-Size", "7")
		return resp, err
	})
	e, err := c.Export(t.Context(), time.Minute, map[string][]string{"format": {"csv"}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if text, err := io.ReadAll(e); err != nil || string(text) != "log_index\n" || e.Size != 7 {
		t.Errorf("%q %v %d", text, err, e.Size)
	}
	c = newClient(t, func(*http.Request) (*http.Response, error) { return refusing(404, "nothing-to-export") })
	var p *client.Problem
	if _, err := c.Export(t.Context(), time.Minute, nil); !errors.As(err, &p) || p.Name() != "nothing-to-export" {
		t.Errorf("%v", err)
	}
	if _, err := c.Replay(t.Context(), client.ReplayRequest{Packs: []any{strings.Repeat("x", screening.MaxDocumentBytes)}}); !errors.Is(err, client.ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if _, err := client.ReadScreening([]byte(whole)); err != nil {
		t.Error(err)
	}
}
