package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"weir/screening"
)

// RecallRef is what a screening says of the recall that it falls under.
type RecallRef struct {
	ID       string     `json:"id"`
	SHA256   string     `json:"sha256,omitzero"`
	URI      string     `json:"uri,omitzero"`
	Reason   string     `json:"reason"`
	MadeAt   time.Time  `json:"made_at"`
	LiftedAt *time.Time `json:"lifted_at,omitzero"`
}

// RecallState is a recall with what it ended so far.
type RecallState struct {
	RecallRef
	Actor      string `json:"actor"`
	LiftedBy   string `json:"lifted_by,omitzero"`
	LiftReason string `json:"lift_reason,omitzero"`
	Settled    bool   `json:"settled"`
	Revoked    int    `json:"revoked"`
	Blocked    int    `json:"blocked"`
}

// Recall takes data out of use.
type Recall struct {
	Said
	RecallState
}

func (r *Recall) whole() bool { return r.ID != "" }

// RecallList is a page of recalls.
type RecallList struct {
	Said
	Recalls []RecallState `json:"recalls"`
	Next    string        `json:"next"`
}

func (l *RecallList) whole() bool { return l.Recalls != nil }

// RecallReport is a page of a recall with all that falls under it.
type RecallReport struct {
	Said
	RecallState
	InForce    bool        `json:"in_force"`
	Total      int         `json:"total"`
	Unknown    int         `json:"unknown_lineage,omitzero"`
	Screenings []RecallHit `json:"screenings"`
	Next       string      `json:"next,omitzero"`
}

func (r *RecallReport) whole() bool { return r.ID != "" && r.Screenings != nil }

// RecallHit is a screening that uses the data or comes from it.
type RecallHit struct {
	Screening  string       `json:"screening"`
	RunRef     string       `json:"run_ref"`
	Team       string       `json:"team,omitzero"`
	Submitter  string       `json:"submitter"`
	Owner      string       `json:"owner"`
	CreatedAt  time.Time    `json:"created_at"`
	SpecSHA256 string       `json:"spec_sha256"`
	Outcome    string       `json:"outcome"`
	Status     string       `json:"status"`
	Ended      bool         `json:"ended"`
	How        string       `json:"how"`
	Path       []RecallStep `json:"path"`
}

// RecallStep is one of the data between.
type RecallStep struct {
	Text        string `json:"text,omitzero"` // "" = erased
	Fingerprint string `json:"fingerprint"`
}

// RecallRequest names data by its digest or by its URI.
type RecallRequest struct {
	SHA256 screening.Digest256 `json:"sha256,omitzero"`
	URI    string              `json:"uri,omitzero"`
	Reason string              `json:"reason"`
}

const aRecall = "a recall"

// Recall takes data out of use.
func (c *Client) Recall(ctx context.Context, r RecallRequest) (*Recall, error) {
	return send[Recall](ctx, c, aRecall, "/v1/recalls", r)
}

// LiftRecall lets it be used again.
func (c *Client) LiftRecall(ctx context.Context, id, reason string) (*Recall, error) {
	return send[Recall](ctx, c, aRecall, at("/v1/recalls", id, "lift"), map[string]string{"reason": reason})
}

// Recalls lists them, newest first; with live, those in force.
func (c *Client) Recalls(ctx context.Context, live bool, cursor string, limit int) (*RecallList, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}, "live": {strconv.FormatBool(live)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return fetch[RecallList](ctx, c, "a list of recalls", get("/v1/recalls?"+query.Encode()))
}

// RecallReport gives a page of what falls under a recall.
func (c *Client) RecallReport(ctx context.Context, id, cursor string, limit int) (*RecallReport, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return fetch[RecallReport](ctx, c, aRecall, get(at("/v1/recalls", id)+"?"+query.Encode()))
}
