package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"weir/review"
	"weir/screening"
)

// PackList is what is in use.
type PackList struct {
	Said
	Packs  []screening.PackRef `json:"packs"`
	Engine string              `json:"engine"` // which decides by them
}

func (l *PackList) whole() bool { return len(l.Packs) > 0 }

// Packs lists the packs in use.
func (c *Client) Packs(ctx context.Context) (*PackList, error) {
	return fetch[PackList](ctx, c, "a list of packs", get("/v1/packs"))
}

// ReplayRequest asks for a page of a replay. With a cursor only Packs and Limit
// stand beside it.
type ReplayRequest struct {
	Packs  []any     `json:"packs"` // a pack in JSON, or the id of one in force
	Limit  int       `json:"limit"`
	Cursor string    `json:"cursor,omitzero"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"`
	AsOf   string    `json:"as_of,omitzero"`
}

// ReplayPage is a page of what other packs would have decided.
type ReplayPage struct {
	Said
	Packs      []screening.PackRef `json:"packs"`
	Unratified bool                `json:"unratified"`
	AuditOnly  bool                `json:"audit_only"`
	Project    string              `json:"project"`
	Engine     string              `json:"engine"`
	Since      time.Time           `json:"since"`
	Until      time.Time           `json:"until"`
	AsOf       string              `json:"as_of"`
	review.ReplayPage
	Reached time.Time `json:"reached,omitzero"` // everything before is done; absent at the end
	Next    string    `json:"next,omitzero"`
}

func (p *ReplayPage) whole() bool { return len(p.Packs) > 0 }

// Replay gives a page. Nothing is stored. ErrTooLarge, if the packs are.
func (c *Client) Replay(ctx context.Context, r ReplayRequest) (*ReplayPage, error) {
	return sendSafe[ReplayPage](ctx, c, "a page of a replay", "/v1/packs/replay", r)
}

// DriftPage is a page of live admissions that the packs in force would not give now.
type DriftPage struct {
	Said
	Packs   []screening.PackRef `json:"packs"`
	Project string              `json:"project"`
	Engine  string              `json:"engine"`
	review.DriftPage
	Next string `json:"next,omitzero"`
}

func (p *DriftPage) whole() bool { return len(p.Packs) > 0 }

// Drift gives a page; cursor is the Next of the one before, "" at the beginning.
func (c *Client) Drift(ctx context.Context, cursor string, limit int) (*DriftPage, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return fetch[DriftPage](ctx, c, "a page of drift", get("/v1/admissions/drift?"+query.Encode()))
}
