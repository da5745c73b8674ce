package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"weir/review"
	"weir/screening"
	"weir/webhooks"
)

// Deliveries is the log of webhooks and what people may do to it. Errors:
// review.ErrNotFound, webhooks.ErrUnderWay, webhooks.ErrDisabled.
type Deliveries interface {
	Deliveries(ctx context.Context, project string, q webhooks.RecordQuery) ([]webhooks.Record, error)
	Delivery(ctx context.Context, project, id string) (*webhooks.Record, error)
	Redeliver(ctx context.Context, id string, by webhooks.Order) (request string, err error)
	RedeliverFailed(ctx context.Context, endpoint string, since time.Time, by webhooks.Order) (request string, n int, err error)
	Endpoints(ctx context.Context, project string) ([]webhooks.EndpointStatus, error)
	Endpoint(ctx context.Context, project, id string) (*webhooks.EndpointStatus, error)
	EnableEndpoint(ctx context.Context, id string, by webhooks.Order) error
	DisableEndpoint(ctx context.Context, id string, by webhooks.Order) error
	PingEndpoint(ctx context.Context, id string, by webhooks.Order) (delivery string, err error)
}

// wireDelivery is a delivery as clients see it.
type wireDelivery struct {
	ID          string        `json:"id"`
	Endpoint    string        `json:"endpoint"`
	MessageID   string        `json:"message_id"`
	Type        string        `json:"type"`
	ScreeningID string        `json:"screening_id,omitzero"`
	ReviewID    string        `json:"review_id,omitzero"`
	State       string        `json:"state"`
	Attempts    int           `json:"attempts"`
	CreatedAt   time.Time     `json:"created_at"`
	DueAt       *time.Time    `json:"due_at,omitzero"` // while it is pending
	FinishedAt  *time.Time    `json:"finished_at,omitzero"`
	Last        *wireAttempt  `json:"last_attempt,omitzero"`
	Log         []wireAttempt `json:"log,omitzero"`
	Body        string        `json:"body,omitzero"` // the bytes that are sent
}

type wireAttempt struct {
	Number     int            `json:"attempt"`
	Request    string         `json:"request,omitzero"`
	StartedAt  time.Time      `json:"started_at"`
	DurationMS int64          `json:"duration_ms"`
	Address    string         `json:"address"`
	Status     int            `json:"status,omitzero"`
	Class      webhooks.Class `json:"class,omitzero"`
	Detail     string         `json:"detail,omitzero"`
}

func deliveryJSON(r *webhooks.Record) wireDelivery {
	w := wireDelivery{ID: r.ID, Endpoint: r.EndpointID, MessageID: r.MessageID, Type: r.Type, ScreeningID: r.ScreeningID, ReviewID: r.ReviewID,
		State: r.State, Attempts: r.Attempts, CreatedAt: r.CreatedAt, FinishedAt: r.FinishedAt, Body: string(r.Body)}
	if r.State == "pending" {
		w.DueAt = &r.DueAt
	}
	if r.Last != nil {
		last := attemptJSON(*r.Last)
		w.Last = &last
	}
	for _, l := range r.Log {
		w.Log = append(w.Log, attemptJSON(l))
	}
	return w
}

func attemptJSON(l webhooks.Logged) wireAttempt {
	return wireAttempt{Number: l.Number, Request: l.Request, StartedAt: l.StartedAt, DurationMS: l.Duration.Milliseconds(), Address: l.Address,
		Status: l.Status, Class: l.Class, Detail: l.Detail}
}

// wireEndpoint is an endpoint as clients see it: of its URL only the host, of its
// secrets nothing.
type wireEndpoint struct {
	ID           string              `json:"id"`
	State        string              `json:"state"`
	Host         string              `json:"host"`
	Format       webhooks.Format     `json:"format"`
	Types        []string            `json:"types,omitzero"`
	Disabled     *wireDisabled       `json:"disabled,omitzero"`
	Failures     int                 `json:"failures_in_a_row"`
	FailingSince *time.Time          `json:"failing_since,omitzero"`
	CoolingUntil *time.Time          `json:"cooling_until,omitzero"`
	Waiting      int                 `json:"waiting"`
	Held         int                 `json:"held"`
	Dead         int                 `json:"dead"`
	Events       []wireEndpointEvent `json:"events,omitzero"`
}

type wireDisabled struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason"`
}

type wireEndpointEvent struct {
	ID     string    `json:"id"`
	Type   string    `json:"type"`
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

func endpointJSON(e *webhooks.EndpointStatus) wireEndpoint {
	w := wireEndpoint{ID: e.ID, State: e.State(), Host: e.Host, Format: e.Format, Types: e.Types, Failures: e.Failures, FailingSince: e.FailingSince,
		CoolingUntil: e.OpenUntil, Waiting: e.Waiting, Held: e.Held, Dead: e.Dead}
	if e.DisabledAt != nil {
		w.Disabled = &wireDisabled{*e.DisabledAt, e.DisabledBy, e.DisabledWhy}
	}
	for _, ev := range e.Events {
		w.Events = append(w.Events, wireEndpointEvent(ev))
	}
	return w
}

// deliveryList is a page of them.
type deliveryList struct {
	Deliveries []wireDelivery `json:"deliveries"`
	Next       string         `json:"next,omitzero"`
}

func (s *Server) listDeliveries(c echo.Context) error {
	limit, after, err := page(c)
	if err != nil {
		return err
	}
	q := webhooks.RecordQuery{EndpointID: c.QueryParam("endpoint"), State: c.QueryParam("state"), Type: c.QueryParam("type"),
		ReviewID: c.QueryParam("review"), Limit: limit}
	switch {
	case q.EndpointID != "" && !screening.IsID(q.EndpointID):
		return fmt.Errorf("%w: endpoint must be an endpoint's id", errBadParam)
	case q.State != "" && !slices.Contains(webhooks.States(), q.State):
		return fmt.Errorf("%w: state must be one of %v", errBadParam, webhooks.States())
	case q.Type != "" && q.Type != webhooks.TypePing && !slices.Contains(webhooks.Types(), q.Type):
		return fmt.Errorf("%w: type must be %s or one of %v", errBadParam, webhooks.TypePing, webhooks.Types())
	case q.ReviewID != "" && !isUUID(q.ReviewID):
		return fmt.Errorf("%w: review must be a review's id", errBadParam)
	}
	if after != nil {
		q.After = &webhooks.RecordCursor{At: after.At, ID: after.ID}
	}
	list, err := gateOf(c).Deliveries.Deliveries(c.Request().Context(), principalOf(c).Project, q)
	if err != nil {
		return err
	}
	out := deliveryList{Deliveries: make([]wireDelivery, len(list))}
	for i := range list {
		out.Deliveries[i] = deliveryJSON(&list[i])
	}
	if len(list) == limit {
		last := list[len(list)-1]
		out.Next = cursor(last.CreatedAt, last.ID)
	}
	return reply(c, http.StatusOK, out)
}

func (s *Server) getDelivery(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	r, err := gateOf(c).Deliveries.Delivery(c.Request().Context(), principalOf(c).Project, id)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, deliveryJSON(r))
}

// What was ordered. What came of it is in the log of each delivery, under the request.
type (
	redeliveryAnswer struct {
		Request  string `json:"request"`
		Delivery string `json:"delivery"`
	}
	redeliveriesAnswer struct {
		Request    string `json:"request"`
		Deliveries int    `json:"deliveries"`
	}
	pingAnswer struct {
		Delivery string `json:"delivery"`
	}
)

// redeliver sends one message again. 202: it is on its way, whatever comes of it.
func (s *Server) redeliver(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	by, err := order(c, "asked for one delivery") // which: its own log says; this is an event of the deployment, which every project reads
	if err != nil {
		return err
	}
	request, err := gateOf(c).Deliveries.Redeliver(c.Request().Context(), id, by)
	if err != nil {
		return err
	}
	return reply(c, http.StatusAccepted, redeliveryAnswer{request, id})
}

// endpointList is all of them.
type endpointList struct {
	Endpoints []wireEndpoint `json:"endpoints"`
}

func (s *Server) listEndpoints(c echo.Context) error {
	list, err := gateOf(c).Deliveries.Endpoints(c.Request().Context(), principalOf(c).Project)
	if err != nil {
		return err
	}
	out := endpointList{Endpoints: make([]wireEndpoint, len(list))}
	for i := range list {
		out.Endpoints[i] = endpointJSON(&list[i])
	}
	return reply(c, http.StatusOK, out)
}

func (s *Server) getEndpoint(c echo.Context) error {
	id, err := endpointID(c)
	if err != nil {
		return err
	}
	return s.answerEndpoint(c, id)
}

func (s *Server) answerEndpoint(c echo.Context, id string) error {
	e, err := gateOf(c).Deliveries.Endpoint(c.Request().Context(), principalOf(c).Project, id)
	if err != nil {
		return err
	}
	return reply(c, http.StatusOK, endpointJSON(e))
}

func (s *Server) enableEndpoint(c echo.Context) error {
	return s.changeEndpoint(c, gateOf(c).Deliveries.EnableEndpoint)
}

func (s *Server) disableEndpoint(c echo.Context) error {
	return s.changeEndpoint(c, gateOf(c).Deliveries.DisableEndpoint)
}

func (s *Server) changeEndpoint(c echo.Context, change func(ctx context.Context, id string, by webhooks.Order) error) error {
	id, err := endpointID(c)
	if err != nil {
		return err
	}
	var body reasonBody
	if err := s.decode(c, "change", &body); err != nil {
		return err
	}
	by, err := order(c, body.Reason)
	if err != nil {
		return err
	}
	if err := change(c.Request().Context(), id, by); err != nil {
		return err
	}
	return s.answerEndpoint(c, id)
}

// pingEndpoint sends a test message. 202 with its delivery, which tells what came of it.
func (s *Server) pingEndpoint(c echo.Context) error {
	id, err := endpointID(c)
	if err != nil {
		return err
	}
	by, err := order(c, "asked for a test message")
	if err != nil {
		return err
	}
	delivery, err := gateOf(c).Deliveries.PingEndpoint(c.Request().Context(), id, by)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", "/v1/deliveries/"+delivery)
	return reply(c, http.StatusAccepted, pingAnswer{delivery})
}

type sinceBody struct {
	Since time.Time `json:"since" validate:"required"`
}

// redeliverFailed sends again what failed at an endpoint since a time.
func (s *Server) redeliverFailed(c echo.Context) error {
	id, err := endpointID(c)
	if err != nil {
		return err
	}
	var body sinceBody
	if err := s.decode(c, "request", &body); err != nil {
		return err
	}
	by, err := order(c, "asked for all that failed since "+body.Since.UTC().Format(time.RFC3339))
	if err != nil {
		return err
	}
	request, n, err := gateOf(c).Deliveries.RedeliverFailed(c.Request().Context(), id, body.Since, by)
	if err != nil {
		return err
	}
	return reply(c, http.StatusAccepted, redeliveriesAnswer{request, n})
}

// order is what the caller asks for, under the caller's declared name.
func order(c echo.Context, reason string) (webhooks.Order, error) {
	p, err := gateOf(c).Desk.Operator(principalOf(c))
	return webhooks.Order{Actor: p.Subject, Project: p.Project, Reason: reason}, err
}

// endpointID reads the id of the path. What is no id names nothing.
func endpointID(c echo.Context) (string, error) {
	id := c.Param("id")
	if !screening.IsID(id) {
		return "", review.ErrNotFound
	}
	return id, nil
}
