package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"weir/review"
	"weir/screening"
)

// errNoAnswer: the gate gave no answer that can be relied on. It is closed.
var errNoAnswer = errors.New("no answer from the gate; treat it as closed")

// client asks a running gate.
type client struct {
	base, key string
	http      *http.Client
}

// clientFlags are how a command reaches a gate.
type clientFlags struct {
	server, keyFile string
	timeout         time.Duration
}

func (f *clientFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.server, "server", "", "address of the gate (default $WEIR_SERVER, else http://127.0.0.1:8080)")
	cmd.Flags().StringVar(&f.keyFile, "key-file", "", "file with the API key (default: the key itself in $WEIR_KEY)")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Second, "give up after this long, with exit code 20")
}

func (f *clientFlags) client() (*client, error) {
	base := f.server
	if base == "" {
		base = os.Getenv("WEIR_SERVER")
	}
	if base == "" {
		base = "http://127.0.0.1:8080"
	}
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, exitWith(exitUsage, fmt.Errorf("the server must be an address like https://weir.example"))
	}
	key := os.Getenv("WEIR_KEY")
	if f.keyFile != "" {
		data, err := os.ReadFile(f.keyFile)
		if err != nil {
			return nil, exitWith(exitUsage, fmt.Errorf("API key: %w", err))
		}
		key = strings.TrimSpace(string(data))
	}
	if key == "" {
		return nil, exitWith(exitUsage, errors.New("no API key: set WEIR_KEY or give --key-file; weir key create makes one"))
	}
	return &client{base: strings.TrimSuffix(base, "/"), key: key, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// screeningAnswer is the gate's JSON of a screening, as far as the CLI uses it.
type screeningAnswer struct {
	ID            string              `json:"id"`
	Status        review.Status       `json:"status"`
	RunRef        string              `json:"run_ref"`
	DecidedBy     string              `json:"decided_by"`
	AdmittedUntil *time.Time          `json:"admitted_until"`
	Review        *reviewAnswer       `json:"review"`
	Decision      *screening.Decision `json:"decision"`

	raw jsontext.Value
}

type reviewAnswer struct {
	ID    string    `json:"id"`
	DueAt time.Time `json:"due_at"`
}

// problemAnswer is the gate's problem+json.
type problemAnswer struct {
	Type      string              `json:"type"`
	Title     string              `json:"title"`
	Detail    string              `json:"detail"`
	RequestID string              `json:"request_id"`
	Errors    []screening.Problem `json:"errors"`
}

// submit screens bytes. It repeats the request under one idempotency key until
// the gate answers or ctx ends, so a lost answer cannot make two screenings.
func (c *client) submit(ctx context.Context, raw []byte) (*screeningAnswer, error) {
	media := "application/yaml"
	if t := bytes.TrimLeft(raw, " \t\r\n"); len(t) > 0 && t[0] == '{' {
		media = "application/json"
	}
	header := http.Header{"Content-Type": {media}, "Idempotency-Key": {rand.Text()}}
	return c.screening(ctx, http.MethodPost, "/v1/screenings", header, raw)
}

func (c *client) get(ctx context.Context, id string, wait time.Duration) (*screeningAnswer, error) {
	return c.screening(ctx, http.MethodGet, "/v1/screenings/"+url.PathEscape(id)+"?wait="+wait.String(), nil, nil)
}

func (c *client) screening(ctx context.Context, method, path string, header http.Header, body []byte) (*screeningAnswer, error) {
	data, err := c.ask(ctx, method, path, header, body)
	if err != nil {
		return nil, err
	}
	var s screeningAnswer
	if err := json.Unmarshal(data, &s); err != nil || s.Status == "" || s.Decision == nil {
		return nil, exitWith(exitNoAnswer, fmt.Errorf("%w: the answer was not a screening", errNoAnswer))
	}
	s.raw = data
	return &s, nil
}

// ask repeats a request while the gate is unavailable.
func (c *client) ask(ctx context.Context, method, path string, header http.Header, body []byte) ([]byte, error) {
	for pause := 200 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		data, again, err := c.once(ctx, method, path, header, body)
		if !again {
			return data, err
		}
		select {
		case <-ctx.Done():
			return nil, exitWith(exitNoAnswer, fmt.Errorf("%w: %w", errNoAnswer, err))
		case <-time.After(pause):
		}
	}
}

func (c *client) once(ctx context.Context, method, path string, header http.Header, body []byte) (data []byte, again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, false, exitWith(exitUsage, err)
	}
	if header != nil {
		req.Header = header.Clone()
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, ctx.Err() == nil, exitWith(exitNoAnswer, fmt.Errorf("%w: %w", errNoAnswer, err))
	}
	defer resp.Body.Close()
	const most = 8 << 20
	data, err = io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return nil, ctx.Err() == nil, exitWith(exitNoAnswer, fmt.Errorf("%w: %w", errNoAnswer, err))
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return data, false, nil
	}
	again, err = refusal(resp.StatusCode, data)
	return nil, again, err
}

// refusal turns an answer that is not a 2xx into the error with its exit code,
// and tells whether to ask again.
func refusal(status int, body []byte) (again bool, err error) {
	const prefix = "urn:weir:problem:"
	var p problemAnswer
	kind, weirs := "", false
	if json.Unmarshal(body, &p) == nil {
		kind, weirs = strings.CutPrefix(p.Type, prefix)
	}
	if !weirs { // something between us and the gate answered, or no gate is there
		return status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests || status == http.StatusBadGateway || status == http.StatusGatewayTimeout,
			exitWith(exitNoAnswer, fmt.Errorf("%w: status %d, not from a weir", errNoAnswer, status))
	}
	if len(p.Errors) > 0 {
		return false, exitWith(exitUsage, &screening.InvalidError{What: "training spec", Problems: p.Errors})
	}
	said := fmt.Errorf("the gate answered %d: %s", status, p.Title)
	if p.Detail != "" {
		said = fmt.Errorf("%w: %s", said, p.Detail)
	}
	switch {
	case kind == "in-flight", status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests:
		return true, exitWith(exitNoAnswer, said)
	case status >= 500:
		return false, exitWith(exitNoAnswer, fmt.Errorf("%w (request %s)", said, p.RequestID))
	case kind == "review-expired":
		return false, exitWith(exitEnded, said)
	default:
		return false, exitWith(exitUsage, said)
	}
}

// exitCode is what a status means to a pipeline.
func exitCode(s review.Status) int {
	switch s {
	case review.StatusAdmitted:
		return exitAdmit
	case review.StatusBlocked:
		return exitBlock
	case review.StatusPending:
		return exitPending
	case review.StatusExpired, review.StatusSuperseded, review.StatusWithdrawn:
		return exitEnded
	}
	return exitNoAnswer // a word this program does not know opens nothing
}
