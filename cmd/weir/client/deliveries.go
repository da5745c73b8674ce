package client

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

// Delivery is a message to an endpoint.
type Delivery struct {
	Said
	ID         string     `json:"id"`
	Endpoint   string     `json:"endpoint"`
	MessageID  string     `json:"message_id"`
	Type       string     `json:"type"`
	ReviewID   string     `json:"review_id"`
	State      string     `json:"state"`
	Attempts   int        `json:"attempts"`
	CreatedAt  time.Time  `json:"created_at"`
	DueAt      *time.Time `json:"due_at"`
	FinishedAt *time.Time `json:"finished_at"`
	Last       *Attempt   `json:"last_attempt"`
	Log        []Attempt  `json:"log"`
	Body       string     `json:"body"`
}

func (d *Delivery) whole() bool { return d.ID != "" && d.State != "" }

// Attempt is one try to deliver.
type Attempt struct {
	Number     int       `json:"attempt"`
	Request    string    `json:"request"`
	StartedAt  time.Time `json:"started_at"`
	DurationMS int64     `json:"duration_ms"`
	Address    string    `json:"address"`
	Status     int       `json:"status"`
	Class      string    `json:"class"` // "" = delivered
	Detail     string    `json:"detail"`
}

// DeliveryList is a page of deliveries.
type DeliveryList struct {
	Said
	Deliveries []Delivery `json:"deliveries"`
	Next       string     `json:"next"`
}

func (l *DeliveryList) whole() bool { return l.Deliveries != nil }

// DeliveryQuery chooses deliveries; "" is any.
type DeliveryQuery struct {
	Endpoint, State, Type, Review string
	Cursor                        string // the Next of an earlier page
	Limit                         int
}

// Deliveries lists them, newest first.
func (c *Client) Deliveries(ctx context.Context, q DeliveryQuery) (*DeliveryList, error) {
	query := url.Values{"limit": {strconv.Itoa(q.Limit)}}
	for name, value := range map[string]string{"endpoint": q.Endpoint, "state": q.State, "type": q.Type, "review": q.Review, "cursor": q.Cursor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return fetch[DeliveryList](ctx, c, "a list of deliveries", get("/v1/deliveries?"+query.Encode()))
}

// Delivery gives one with every attempt.
func (c *Client) Delivery(ctx context.Context, id string) (*Delivery, error) {
	return fetch[Delivery](ctx, c, "a delivery", get(at("/v1/deliveries", id)))
}

// Redelivery is an order to send again.
type Redelivery struct {
	Said
	Request string `json:"request"`
}

func (r *Redelivery) whole() bool { return r.Request != "" }

// Redeliveries is an order to send several again.
type Redeliveries struct {
	Said
	Request    string `json:"request"`
	Deliveries int    `json:"deliveries"`
}

func (r *Redeliveries) whole() bool { return r.Request != "" }

// Redeliver sends one message again.
func (c *Client) Redeliver(ctx context.Context, delivery string) (*Redelivery, error) {
	return send[Redelivery](ctx, c, "a redelivery", at("/v1/deliveries", delivery, "redeliver"), nil)
}

// RedeliverFailed sends again what failed at an endpoint since a time.
func (c *Client) RedeliverFailed(ctx context.Context, endpoint string, since time.Time) (*Redeliveries, error) {
	return send[Redeliveries](ctx, c, "a redelivery", at("/v1/endpoints", endpoint, "redeliver"), map[string]time.Time{"since": since.UTC()})
}

// Endpoint is who is told of reviews.
type Endpoint struct {
	Said
	ID           string          `json:"id"`
	State        string          `json:"state"`
	Host         string          `json:"host"`
	Format       string          `json:"format"`
	Types        []string        `json:"types"`
	Disabled     *Disabled       `json:"disabled"`
	Failures     int             `json:"failures_in_a_row"`
	FailingSince *time.Time      `json:"failing_since"`
	CoolingUntil *time.Time      `json:"cooling_until"`
	Waiting      int             `json:"waiting"`
	Held         int             `json:"held"`
	Dead         int             `json:"dead"`
	Events       []EndpointEvent `json:"events"`
}

func (e *Endpoint) whole() bool { return e.ID != "" && e.State != "" }

// Disabled says since when, by whom and why an endpoint gets nothing.
type Disabled struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
}

// EndpointEvent is what was done to an endpoint.
type EndpointEvent struct {
	Type   string    `json:"type"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// EndpointList is all of them.
type EndpointList struct {
	Said
	Endpoints []Endpoint `json:"endpoints"`
}

func (l *EndpointList) whole() bool { return l.Endpoints != nil }

const anEndpoint = "an endpoint"

// Endpoints lists them.
func (c *Client) Endpoints(ctx context.Context) (*EndpointList, error) {
	return fetch[EndpointList](ctx, c, "a list of endpoints", get("/v1/endpoints"))
}

// Endpoint gives one with what was done to it.
func (c *Client) Endpoint(ctx context.Context, id string) (*Endpoint, error) {
	return fetch[Endpoint](ctx, c, anEndpoint, get(at("/v1/endpoints", id)))
}

// EnableEndpoint sends to it again, also what was held.
func (c *Client) EnableEndpoint(ctx context.Context, id, reason string) (*Endpoint, error) {
	return send[Endpoint](ctx, c, anEndpoint, at("/v1/endpoints", id, "enable"), map[string]string{"reason": reason})
}

// DisableEndpoint holds what is for it.
func (c *Client) DisableEndpoint(ctx context.Context, id, reason string) (*Endpoint, error) {
	return send[Endpoint](ctx, c, anEndpoint, at("/v1/endpoints", id, "disable"), map[string]string{"reason": reason})
}

// Ping is a test message that is on its way.
type Ping struct {
	Said
	Delivery string `json:"delivery"`
}

func (p *Ping) whole() bool { return p.Delivery != "" }

// PingEndpoint sends a test message.
func (c *Client) PingEndpoint(ctx context.Context, id string) (*Ping, error) {
	return send[Ping](ctx, c, "a delivery", at("/v1/endpoints", id, "ping"), nil)
}
