package console

import (
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"

	"weir/review"
)

const screeningsPage = 25

type screeningsData struct {
	List     []*review.Screening
	Status   review.Status
	RunRef   string
	Statuses []review.Status
	Next     string
}

func (c *Console) screenings(w http.ResponseWriter, r *http.Request, v *visit) error {
	q := r.URL.Query()
	d := screeningsData{Status: review.Status(q.Get("status")), RunRef: q.Get("run_ref"), Statuses: review.Statuses()}
	if d.Status != "" && !slices.Contains(d.Statuses, d.Status) || !textual(q) {
		return errAddress
	}
	after, err := cursorOf(q.Get("after"))
	if err != nil {
		return err
	}
	query := review.ListQuery{Status: d.Status, RunRef: d.RunRef, After: after, Limit: screeningsPage + 1}
	if d.List, err = c.desk.Screenings(r.Context(), v.Principal, query); err != nil {
		return err
	}
	if len(d.List) > screeningsPage {
		d.List = d.List[:screeningsPage]
		last := d.List[screeningsPage-1]
		q.Set("after", cursor(last.CreatedAt, last.ID))
		d.Next = "/console/screenings?" + q.Encode()
	}
	return c.render(w, r, v, http.StatusOK, "screenings", "Screenings", d)
}

type screeningData struct {
	*subject
	standing
	Events  []event
	MoreLog bool
	Action  string
	Here    string
}

func (c *Console) screening(w http.ResponseWriter, r *http.Request, v *visit) error {
	return c.showScreening(w, r, v, http.StatusOK, standingForm{}, false)
}

func (c *Console) screeningExcerpts(w http.ResponseWriter, r *http.Request, v *visit) error {
	return c.showScreening(w, r, v, http.StatusOK, standingForm{}, true)
}

func (c *Console) showScreening(w http.ResponseWriter, r *http.Request, v *visit, status int, form standingForm, reveal bool) error {
	s, err := c.screeningOf(r, v)
	if err != nil {
		return err
	}
	from, err := number(r, "from")
	if err != nil {
		return err
	}
	x, err := c.lay(r, v, s, from, reveal)
	if err == nil {
		err = c.explain(r, v, x)
	}
	if err != nil {
		return err
	}
	if reveal {
		if err := c.openExcerpts(r, v, x); err != nil {
			return err
		}
	}
	d := screeningData{subject: x, Here: "/console/screenings/" + s.ID, Action: "/console/screenings/" + s.ID + "/excerpts"}
	if d.standing, err = c.standingOf(r, v, x, form); err != nil {
		return err
	}
	d.Notice = standingNotices[r.URL.Query().Get("done")]
	if d.Events, d.MoreLog, err = c.events(r, v, s.ID, 0, 12); err != nil {
		return err
	}
	return c.render(w, r, v, status, "screening", "Screening of "+cut(60, s.RunRef), d)
}

func (c *Console) screeningOf(r *http.Request, v *visit) (*review.Screening, error) {
	id := r.PathValue("id")
	if !isID(id) {
		return nil, review.ErrNotFound
	}
	return c.desk.Screening(r.Context(), v.Principal, id)
}

type receivedData struct {
	S        *review.Screening
	Chunk    chunk
	Held     int // values that are held back; then Chunk is empty
	Bytes    int
	Exposure review.Exposure
	ByForm   bool // pages are turned by form, as each is counted
}

// received shows the bytes as they came, a piece at a time.
func (c *Console) received(w http.ResponseWriter, r *http.Request, v *visit) error {
	return c.showReceived(w, r, v, false)
}

func (c *Console) receivedExcerpts(w http.ResponseWriter, r *http.Request, v *visit) error {
	return c.showReceived(w, r, v, true)
}

func (c *Console) showReceived(w http.ResponseWriter, r *http.Request, v *visit, reveal bool) error {
	s, err := c.screeningOf(r, v)
	if err != nil {
		return err
	}
	page, err := number(r, "page")
	if err != nil {
		return err
	}
	x, err := c.lay(r, v, s, 0, false)
	if err != nil {
		return err
	}
	d := receivedData{S: s, Bytes: len(x.Spec.Raw), Exposure: x.Exposure, ByForm: x.View.Harm > 0}
	if x.View.Harm > 0 && !reveal {
		d.Held = x.View.Harm
	} else {
		if reveal {
			if err := c.openExcerpts(r, v, x); err != nil {
				return err
			}
			d.Exposure = x.Exposure
		}
		d.Chunk = chunkOf(string(x.Spec.Raw), page)
	}
	return c.render(w, r, v, http.StatusOK, "received", "Spec as received", d)
}

// event is a line of the record, in words.
type event struct {
	review.HistoryEvent
	What  string
	Facts []fact
}

type fact struct{ Name, Value string }

// eventWords say the types of events; others are shown as they are.
var eventWords = map[string]string{
	"screening.decided": "Screened", "screening.superseded": "Superseded", "review.opened": "Review opened",
	"review.vote": "Voted", "review.voted": "Voted", "review.decide": "Decided", "review.decided": "Decided", "review.expired": "Review expired",
	"review.ask": "Asked for evidence", "review.answer": "Answered", "review.comment": "Commented", "review.withdrawn": "Withdrawn",
	"review.pass": "Passed to the next panel", "review.reminded": "Reminded", "review.votes_carried": "Votes carried over",
	"waiver.requested": "Waiver requested", "waiver.confirmed": "Waiver confirmed", "correction.reviewed": "Correction reviewed",
	"correction.status": "Correction judged", "screening.recalled": "Data recalled",
}

// events gives the events of a screening after one, as many as limit.
func (c *Console) events(r *http.Request, v *visit, screeningID string, after, limit int) (list []event, more bool, err error) {
	read, err := c.desk.History(r.Context(), v.Principal, screeningID, after, limit+1)
	if err != nil {
		return nil, false, err
	}
	if more = len(read) > limit; more {
		read = read[:limit]
	}
	for _, e := range read {
		one := event{HistoryEvent: e, What: eventWords[e.Type]}
		if one.What == "" {
			one.What = e.Type
		}
		var body map[string]any
		if err := json.Unmarshal(e.Body, &body); err != nil {
			return nil, false, err
		}
		one.Facts = facts(body)
		list = append(list, one)
	}
	return list, more, nil
}

// shownFacts are the parts of an event that a reader looks for, in this order.
var shownFacts = []struct{ key, name string }{
	{"outcome", "outcome"}, {"causes", "because of"}, {"votes", ""}, {"superseded_by", "by screening"}, {"reason", "reason"}, {"text", "text"},
	{"note", "note"}, {"run_ref", "run"}, {"spec_sha256", "spec"},
}

func facts(body map[string]any) (out []fact) {
	for _, f := range shownFacts {
		switch value := body[f.key].(type) {
		case string:
			if value != "" {
				out = append(out, fact{f.name, cut(600, value)})
			}
		case []any:
			out = append(out, listFacts(f.name, value)...)
		}
	}
	return out
}

func listFacts(name string, list []any) (out []fact) {
	const most = 8
	words := ""
	for i, item := range list {
		if i == most {
			words += ", and " + count(len(list)-most, "more", "more")
			break
		}
		switch item := item.(type) {
		case string:
			if words != "" {
				words += ", "
			}
			words += cut(120, item)
		case map[string]any: // a vote
			text := func(key string) string { s, _ := item[key].(string); return s }
			out = append(out, fact{text("person") + ", " + text("policy"), text("choice") + ": " + cut(600, text("reason"))})
		}
	}
	if words != "" {
		out = append(out, fact{name, words})
	}
	return out
}

type historyData struct {
	S      *review.Screening
	Events []event
	Next   int // the event after which another page goes on, 0 = none
}

func (c *Console) history(w http.ResponseWriter, r *http.Request, v *visit) error {
	s, err := c.screeningOf(r, v)
	if err != nil {
		return err
	}
	after, err := number(r, "after")
	if err != nil {
		return err
	}
	d := historyData{S: s}
	var more bool
	if d.Events, more, err = c.events(r, v, s.ID, after, 25); err != nil {
		return err
	}
	if more {
		d.Next = d.Events[len(d.Events)-1].Seq
	}
	return c.render(w, r, v, http.StatusOK, "history", "History", d)
}
