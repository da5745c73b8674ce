package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"weir/review"
	"weir/screening"
	"weir/webhooks"
)

// Deliveries is the log of webhooks. Errors: review.ErrNotFound,
// webhooks.ErrUnderWay, webhooks.ErrDisabled.
type Deliveries interface {
	Deliveries(ctx context.Context, project string, q webhooks.RecordQuery) ([]webhooks.Record, error)
	Delivery(ctx context.Context, project, id string) (*webhooks.Record, error)
	Redeliver(ctx context.Context, id string, by webhooks.Order) (request string, err error)
	Endpoints(ctx context.Context, project string) ([]webhooks.EndpointStatus, error)
}

const deliveriesPage = 25

type deliveriesData struct {
	List            []webhooks.Record
	Endpoints       []webhooks.EndpointStatus
	State, Endpoint string
	States          []string
	Next            string
}

// deliveries lists what was sent, and how the endpoints do.
func (c *Console) deliveries(w http.ResponseWriter, r *http.Request, v *visit) error {
	if err := mayReadDeliveries(v); err != nil {
		return err
	}
	q := r.URL.Query()
	d := deliveriesData{State: q.Get("state"), Endpoint: q.Get("endpoint"), States: webhooks.States()}
	if d.State != "" && !slices.Contains(d.States, d.State) || d.Endpoint != "" && !screening.IsID(d.Endpoint) || !textual(q) {
		return errAddress
	}
	after, err := cursorOf(q.Get("after"))
	if err != nil {
		return err
	}
	query := webhooks.RecordQuery{State: d.State, EndpointID: d.Endpoint, Limit: deliveriesPage + 1}
	if after != nil {
		query.After = &webhooks.RecordCursor{At: after.At, ID: after.ID}
	}
	if d.List, err = c.log.Deliveries(r.Context(), v.Project, query); err != nil {
		return err
	}
	if d.Endpoints, err = c.log.Endpoints(r.Context(), v.Project); err != nil {
		return err
	}
	if len(d.List) > deliveriesPage {
		d.List = d.List[:deliveriesPage]
		last := d.List[deliveriesPage-1]
		with := url.Values{"after": {cursor(last.CreatedAt, last.ID)}}
		for _, name := range []string{"state", "endpoint"} {
			if q.Get(name) != "" {
				with.Set(name, q.Get(name))
			}
		}
		d.Next = "/console/deliveries?" + with.Encode()
	}
	return c.render(w, r, v, http.StatusOK, "deliveries", "Deliveries", d)
}

func mayReadDeliveries(v *visit) error {
	if !v.May(review.ScopePolicy) && !v.May(review.ScopeAudit) {
		return errNoDeliveries
	}
	return nil
}

type deliveryData struct {
	webhooks.Record
	Text    string // of the body
	Newest  []webhooks.Logged
	More    int
	MayAsk  bool
	Notice  string
	Problem string
}

func (c *Console) delivery(w http.ResponseWriter, r *http.Request, v *visit) error {
	d := deliveryData{}
	if r.URL.Query().Get("done") == "asked" {
		d.Notice = "It is sent again, under the same id."
	}
	return c.showDelivery(w, r, v, http.StatusOK, d)
}

func (c *Console) showDelivery(w http.ResponseWriter, r *http.Request, v *visit, status int, d deliveryData) error {
	if err := mayReadDeliveries(v); err != nil {
		return err
	}
	if !isID(r.PathValue("id")) {
		return review.ErrNotFound
	}
	record, err := c.log.Delivery(r.Context(), v.Project, r.PathValue("id"))
	if err != nil {
		return err
	}
	d.Record, d.MayAsk, d.Text = *record, v.May(review.ScopePolicy), cut(8000, string(record.Body))
	const most = 30
	d.Newest = slices.Clone(record.Log)
	slices.Reverse(d.Newest)
	if d.More = len(d.Newest) - most; d.More > 0 {
		d.Newest = d.Newest[:most]
	}
	return c.render(w, r, v, status, "delivery", "Delivery", d)
}

// deliveryWords say why something is not sent again, "" for what is no such reason.
func deliveryWords(err error) string {
	for _, known := range []error{webhooks.ErrUnderWay, webhooks.ErrDisabled} {
		if errors.Is(err, known) {
			return sentence(known.Error())
		}
	}
	return ""
}

func (c *Console) redeliver(w http.ResponseWriter, r *http.Request, v *visit) error {
	if !v.May(review.ScopePolicy) {
		return errNoDeliveries
	}
	id := r.PathValue("id")
	if !isID(id) {
		return review.ErrNotFound
	}
	_, err := c.log.Redeliver(r.Context(), id, webhooks.Order{Actor: v.person, Project: v.Project, Reason: "from the console"})
	if say := deliveryWords(err); say != "" {
		return c.showDelivery(w, r, v, http.StatusConflict, deliveryData{Problem: say})
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, "/console/deliveries/"+id+"?done=asked")
}
