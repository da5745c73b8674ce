package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"weir/review"
	"weir/screening"
)

// ErrNoAnswer: the gate gave no answer that can be relied on. It is closed.
var ErrNoAnswer = errors.New("no answer from the gate; treat it as closed")

func noAnswer(err error) error {
	if errors.Is(err, ErrNoAnswer) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNoAnswer, err)
}

const problemPrefix = "urn:weir:problem:"

// Problem is what a gate says when it refuses (RFC 9457). One about the document
// that was sent unwraps to a *screening.InvalidError; one that leaves open whether
// the gate is closed is within an ErrNoAnswer.
type Problem struct {
	Type      string              `json:"type"`
	Title     string              `json:"title"`
	Status    int                 `json:"status"`
	Detail    string              `json:"detail"`
	RequestID string              `json:"request_id"`
	Errors    []screening.Problem `json:"errors"`
	Screening string              `json:"screening"` // with the gate's own refusals: whose answer it is
	Gate      review.Status       `json:"gate"`
}

// Name is the type without its prefix, like conflict.
func (p *Problem) Name() string { return strings.TrimPrefix(p.Type, problemPrefix) }

func (p *Problem) Error() string {
	text := fmt.Sprintf("the gate answered %d: %s", p.Status, p.Title)
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	if p.Status >= 500 && p.RequestID != "" {
		text += " (request " + p.RequestID + ")"
	}
	return text
}

func (p *Problem) Unwrap() error {
	if len(p.Errors) == 0 {
		return nil
	}
	what := strings.TrimSuffix(strings.TrimPrefix(p.Title, "The "), " is not valid")
	return &screening.InvalidError{What: what, Problems: p.Errors}
}

// refusal turns an answer that is not a 2xx into its error, and tells when to ask
// again.
func refusal(status int, body []byte) (again, error) {
	p := &Problem{}
	if json.Unmarshal(body, p) != nil || !strings.HasPrefix(p.Type, problemPrefix) {
		// Something between us and the gate answered, or no gate is there.
		when := never
		switch status {
		case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusGatewayTimeout:
			when = ifSafe
		}
		return when, noAnswer(fmt.Errorf("status %d, not from a weir", status))
	}
	p.Status = status
	switch {
	case len(p.Errors) > 0:
		return never, p
	case p.Name() == "not-ready", p.Name() == "busy", p.Name() == "issuer-away", status == http.StatusTooManyRequests: // it did not begin
		return anything, noAnswer(p)
	case p.Name() == "in-flight", status == http.StatusServiceUnavailable:
		return ifSafe, noAnswer(p)
	case status >= 500:
		return never, noAnswer(p)
	}
	return never, p
}
