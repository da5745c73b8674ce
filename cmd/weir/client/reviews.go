package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"weir/review"
	"weir/screening"
)

// Review is the human side of an escalation.
type Review struct {
	Said
	ID        string     `json:"id"`
	Kind      string     `json:"kind"`
	Origin    string     `json:"origin"`
	State     string     `json:"state"`
	Outcome   string     `json:"outcome"`
	Version   int        `json:"version"`
	OpenedAt  time.Time  `json:"opened_at"`
	DueAt     time.Time  `json:"due_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	Panels    []Panel    `json:"panels"`
	Notes     []Note     `json:"notes"`
	Waived    []Waived   `json:"waived"`
	Screening Screening  `json:"screening"`
}

func (r *Review) whole() bool { return r.ID != "" && r.State != "" }

// Panel is who decides the findings of one policy.
type Panel struct {
	Policy    string     `json:"policy"`
	Group     string     `json:"group"`
	Quorum    int        `json:"quorum"`
	Terms     []string   `json:"terms"`
	Begun     bool       `json:"begun"`
	DueAt     *time.Time `json:"due_at"`
	Then      string     `json:"then"`
	PassedAt  *time.Time `json:"passed_at"`
	ClaimedBy string     `json:"claimed_by"`
	Votes     []CastVote `json:"votes"`
}

// CastVote is a vote that counts.
type CastVote struct {
	Person string         `json:"person"`
	Vote   string         `json:"vote"`
	Reason string         `json:"reason"`
	Terms  []string       `json:"terms"`
	Facts  jsontext.Value `json:"facts"`
	Origin string         `json:"origin"` // of one that was carried over
}

// Note is what somebody said about a review.
type Note struct {
	Kind   string    `json:"kind"`
	Person string    `json:"person"`
	Text   string    `json:"text"`
	At     time.Time `json:"at"`
}

// Waived is a finding that a waiver takes away.
type Waived struct {
	Term  string    `json:"term"`
	Until time.Time `json:"until"`
}

// ReviewList is a page of reviews.
type ReviewList struct {
	Said
	Reviews []Review `json:"reviews"`
	Next    string   `json:"next"`
}

func (l *ReviewList) whole() bool { return l.Reviews != nil }

const aReview = "a review"

// Reviews lists what waits for people; with all, also what is closed.
func (c *Client) Reviews(ctx context.Context, all bool, limit int) (*ReviewList, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if all {
		query.Set("all", "true")
	}
	return fetch[ReviewList](ctx, c, "a list of reviews", get("/v1/reviews?"+query.Encode()))
}

// Review gives a review.
func (c *Client) Review(ctx context.Context, id string) (*Review, error) {
	return fetch[Review](ctx, c, aReview, get(at("/v1/reviews", id)))
}

// Vote is bound to what the voter has seen.
type Vote struct {
	ExpectedVersion int                 `json:"expected_version"`
	SpecSHA256      screening.Digest256 `json:"spec_sha256"`
	Vote            string              `json:"vote"`
	Reason          string              `json:"reason"`
	Terms           []string            `json:"terms"`
	Facts           []review.Fact       `json:"facts,omitempty"`
}

// Vote votes.
func (c *Client) Vote(ctx context.Context, review string, v Vote) (*Review, error) {
	return send[Review](ctx, c, aReview, at("/v1/reviews", review, "votes"), v)
}

// Claim shows for 30 minutes who looks at a review.
func (c *Client) Claim(ctx context.Context, review string) (*Review, error) {
	return sendSafe[Review](ctx, c, aReview, at("/v1/reviews", review, "claim"), struct{}{})
}

// Release gives a claim back.
func (c *Client) Release(ctx context.Context, review string) (*Review, error) {
	return send[Review](ctx, c, aReview, at("/v1/reviews", review, "release"), struct{}{})
}

// AskEvidence asks the submitter.
func (c *Client) AskEvidence(ctx context.Context, review, question string) (*Review, error) {
	return send[Review](ctx, c, aReview, at("/v1/reviews", review, "needs-evidence"), map[string]string{"note": question})
}

// Comment adds a remark.
func (c *Client) Comment(ctx context.Context, review, text string) (*Review, error) {
	return send[Review](ctx, c, aReview, at("/v1/reviews", review, "comments"), map[string]string{"text": text})
}

// Waiver takes a finding out of the fold, once it is confirmed.
type Waiver struct {
	Said
	ID          string     `json:"id"`
	Term        string     `json:"term"`
	ScreeningID string     `json:"screening_id"`
	RunPrefix   string     `json:"run_prefix"`
	Inputs      []string   `json:"inputs"`
	Reason      string     `json:"reason"`
	Ticket      string     `json:"ticket"`
	Author      string     `json:"author"`
	ExpiresAt   time.Time  `json:"expires_at"`
	ConfirmedBy string     `json:"confirmed_by"`
	ConfirmedAt *time.Time `json:"confirmed_at"`
	InForce     bool       `json:"in_force"`
}

func (w *Waiver) whole() bool { return w.ID != "" }

// WaiverList is a page of waivers.
type WaiverList struct {
	Said
	Waivers []Waiver `json:"waivers"`
}

func (l *WaiverList) whole() bool { return l.Waivers != nil }

// WaiverRequest asks for a waiver of one term; with RunPrefix and Inputs for runs
// beyond the spec.
type WaiverRequest struct {
	ScreeningID string   `json:"screening_id"`
	Term        string   `json:"term"`
	Reason      string   `json:"reason"`
	Ticket      string   `json:"ticket"`
	Days        int      `json:"days"`
	RunPrefix   string   `json:"run_prefix,omitzero"`
	Inputs      []string `json:"inputs,omitempty"`
}

const aWaiver = "a waiver"

// Waive asks for a waiver.
func (c *Client) Waive(ctx context.Context, r WaiverRequest) (*Waiver, error) {
	return send[Waiver](ctx, c, aWaiver, "/v1/waivers", r)
}

// ConfirmWaiver confirms another person's.
func (c *Client) ConfirmWaiver(ctx context.Context, id string) (*Waiver, error) {
	return send[Waiver](ctx, c, aWaiver, at("/v1/waivers", id, "confirm"), struct{}{})
}

// Waivers lists them, those of one screening or, with "", all.
func (c *Client) Waivers(ctx context.Context, screening string) (*WaiverList, error) {
	query := url.Values{}
	if screening != "" {
		query.Set("screening", screening)
	}
	return fetch[WaiverList](ctx, c, "a list of waivers", get("/v1/waivers?"+query.Encode()))
}

// Correction is a correction of a decision, with what the review gate said.
type Correction struct {
	Said
	ID      string                   `json:"id"`
	Outcome review.CorrectionOutcome `json:"outcome"`
	Rules   []string                 `json:"rules"`
	Status  review.EpistemicStatus   `json:"epistemic_status"`
	Hash    string                   `json:"review_hash"`
}

func (k *Correction) whole() bool { return k.ID != "" && k.Outcome != "" }

// CorrectionRequest corrects a screening, or what a review is about.
type CorrectionRequest struct {
	ScreeningID string              `json:"screening_id,omitzero"` // "" with CorrectReview
	Text        string              `json:"correction_text"`
	Expects     *review.Expectation `json:"expects,omitzero"`
}

const aCorrection = "a correction"

// Correct passes a correction through the review gate.
func (c *Client) Correct(ctx context.Context, r CorrectionRequest) (*Correction, error) {
	return sendSafe[Correction](ctx, c, aCorrection, "/v1/corrections", r)
}

// CorrectReview corrects the decision that a review is about.
func (c *Client) CorrectReview(ctx context.Context, review string, r CorrectionRequest) (*Correction, error) {
	return sendSafe[Correction](ctx, c, aCorrection, at("/v1/reviews", review, "corrections"), r)
}

// Judge gives a correction its epistemic status.
func (c *Client) Judge(ctx context.Context, correction, status, reason string) (*Correction, error) {
	return send[Correction](ctx, c, aCorrection, at("/v1/corrections", correction, "status"), map[string]string{"status": status, "reason": reason})
}
