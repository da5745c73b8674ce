package client

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"weir/review"
	"weir/screening"
)

// Screening is a submission with its decision and how it stands now.
type Screening struct {
	Said
	ID            string              `json:"id"`
	Status        review.Status       `json:"status"`
	Outcome       screening.Outcome   `json:"outcome"`
	AsOf          screening.Day       `json:"as_of"`
	SpecSHA256    screening.Digest256 `json:"spec_sha256"`
	RunRef        string              `json:"run_ref"`
	Submitter     string              `json:"submitter"`
	Owner         string              `json:"owner"`
	OnBehalfOf    string              `json:"on_behalf_of"`
	DecidedBy     review.Decider      `json:"decided_by"`
	AdmittedUntil *time.Time          `json:"admitted_until"`
	Review        *ReviewState        `json:"review"`
	Decision      *screening.Decision `json:"decision"`
	Would         string              `json:"would"` // in report mode: what it would be stopped as
	ReportUntil   screening.Day       `json:"report_until"`
	Explanation   *Explanation        `json:"explanation"`
	Recall        *RecallRef          `json:"recall"`
	Erased        *Erased             `json:"erased"` // the decision is then one without findings
}

// whole: where the decision was erased, what is left of it is what the screening
// itself says.
func (s *Screening) whole() bool {
	if s.Decision == nil && s.Erased != nil {
		s.Decision = &screening.Decision{Outcome: s.Outcome, AsOf: s.AsOf, SpecSHA256: s.SpecSHA256}
	}
	return s.ID != "" && s.Status != "" && s.Decision != nil
}

// ReviewState is the review that a screening waits for.
type ReviewState struct {
	ID    string    `json:"id"`
	DueAt time.Time `json:"due_at"`
}

// Explanation is what would change the findings, unless the gate cannot say.
type Explanation struct {
	screening.Explanation
	Unavailable string `json:"unavailable"`
}

// Erased says when, by whom and why the bytes of spec and decision went.
type Erased struct {
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
}

const aScreening = "a screening"

// ReadScreening reads a gate's answer that was kept.
func ReadScreening(raw []byte) (*Screening, error) { return read[Screening](aScreening, raw) }

// Submit screens a spec, in JSON or YAML. It is repeated under the idempotency key,
// so that a lost answer cannot make two screenings; the same key later gives the same
// screening. Errors: ErrNoAnswer, *Problem.
func (c *Client) Submit(ctx context.Context, key string, spec []byte) (*Screening, error) {
	media := "application/yaml"
	if t := bytes.TrimLeft(spec, " \t\r\n"); len(t) > 0 && t[0] == '{' {
		media = "application/json"
	}
	return fetch[Screening](ctx, c, aScreening, request{method: http.MethodPost, path: "/v1/screenings", body: spec, safe: true,
		header: http.Header{"Content-Type": {media}, "Idempotency-Key": {key}}})
}

// Screening gives a screening, after at most wait as soon as its status is final.
func (c *Client) Screening(ctx context.Context, id string, wait time.Duration) (*Screening, error) {
	return fetch[Screening](ctx, c, aScreening, get(at("/v1/screenings", id)+"?wait="+wait.String()))
}

// Explained gives a screening with what would change its findings.
func (c *Client) Explained(ctx context.Context, id string) (*Screening, error) {
	return fetch[Screening](ctx, c, aScreening, get(at("/v1/screenings", id)+"?explain=true"))
}

// Spec gives the bytes of a spec as the gate received them.
func (c *Client) Spec(ctx context.Context, screening string) ([]byte, error) {
	return c.do(ctx, get(at("/v1/screenings", screening, "spec")))
}

// Admission gives the signed statement that a screening's bytes may train.
func (c *Client) Admission(ctx context.Context, screening string) ([]byte, error) {
	return c.do(ctx, get(at("/v1/screenings", screening, "admission")))
}

// Answer answers the reviewers' question.
func (c *Client) Answer(ctx context.Context, screening, note string) (*Screening, error) {
	return send[Screening](ctx, c, aScreening, at("/v1/screenings", screening, "answer"), map[string]string{"note": note})
}

// Withdraw takes a screening back from review.
func (c *Client) Withdraw(ctx context.Context, screening, reason string) (*Screening, error) {
	return send[Screening](ctx, c, aScreening, at("/v1/screenings", screening, "withdraw"), map[string]string{"reason": reason})
}

// Appeal asks other people to look at a block again.
func (c *Client) Appeal(ctx context.Context, screening, reason string) (*Screening, error) {
	return send[Screening](ctx, c, aScreening, at("/v1/screenings", screening, "appeal"), map[string]string{"reason": reason})
}

// Reopen goes on with a review that expired.
func (c *Client) Reopen(ctx context.Context, screening, reason string) (*Screening, error) {
	return send[Screening](ctx, c, aScreening, at("/v1/screenings", screening, "reopen"), map[string]string{"reason": reason})
}

// Bypass is a run that started without an answer.
type Bypass struct {
	Said
	ID string `json:"id"`
}

func (b *Bypass) whole() bool { return b.ID != "" }

// ReportBypass reports one, as it was recorded. It asks once: the record is there
// to be sent again.
func (c *Client) ReportBypass(ctx context.Context, record []byte) (*Bypass, error) {
	return fetch[Bypass](ctx, c, "a bypass", request{method: http.MethodPost, path: "/v1/bypasses", body: record, once: true,
		header: http.Header{"Content-Type": {"application/json"}}})
}

// ErasureRequest names a screening or the digest of a spec.
type ErasureRequest struct {
	Screening  string              `json:"screening,omitzero"`
	SpecSHA256 screening.Digest256 `json:"spec_sha256,omitzero"`
	Reason     string              `json:"reason"`
}

// Erasure is what was erased.
type Erasure struct {
	Said
	SpecSHA256 string  `json:"spec_sha256"`
	Screenings int     `json:"screenings"`
	Erased     *Erased `json:"erased"`
}

func (e *Erasure) whole() bool { return e.Erased != nil }

// Erase erases the bytes of a spec and of all decisions of it.
func (c *Client) Erase(ctx context.Context, r ErasureRequest) (*Erasure, error) {
	return send[Erasure](ctx, c, "an erasure", "/v1/erasures", r)
}

// Export is an export that is being read.
type Export struct {
	io.ReadCloser
	Size int64 // of the log that a bundle is of, 0 for other formats
}

// Export begins one, as GET /v1/exports takes its query. within is the time for the
// answer to begin; reading it is bounded by ctx alone.
func (c *Client) Export(ctx context.Context, within time.Duration, query url.Values) (*Export, error) {
	resp, err := c.open(ctx, within, "/v1/exports?"+query.Encode())
	if err != nil {
		return nil, err
	}
	size, _ := strconv.ParseInt(resp.Header.Get("Weir-Export-Size"), 10, 64) // absent or strange: none
	return &Export{resp.Body, size}, nil
}
