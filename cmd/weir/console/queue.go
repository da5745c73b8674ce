package console

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/review"
)

const queuePage = 25

func (c *Console) home(w http.ResponseWriter, r *http.Request, _ *visit) error {
	return seeOther(w, r, "/console/reviews")
}

type queueData struct {
	Items                       []*review.QueueItem
	View                        review.QueueView
	Views                       []choice
	Group, Term, Severity, Team string
	Groups, Terms               []string
	Severities                  []string
	Filtered                    bool
	Next                        string
}

// choice is one of several links, of which one is current.
type choice struct {
	Name, URL string
	Here      bool
}

var viewNames = map[review.QueueView]string{review.QueueMine: "Waiting for me", review.QueueOpen: "All open",
	review.QueueOverdue: "Overdue", review.QueueClosed: "Closed"}

func (c *Console) queue(w http.ResponseWriter, r *http.Request, v *visit) error {
	q := r.URL.Query()
	d := queueData{View: review.QueueView(q.Get("view")), Group: q.Get("group"), Term: q.Get("term"), Severity: q.Get("severity"),
		Team: q.Get("team"), Severities: []string{"critical", "high", "medium", "low"}}
	setup := c.desk.Setup()
	if d.View == "" {
		d.View = review.QueueOpen
		if v.May(review.ScopeReview) && len(setup.People.GroupsOf(v.person)) > 0 {
			d.View = review.QueueMine
		}
	}
	if !slices.Contains(review.QueueViews, d.View) || d.Severity != "" && !slices.Contains(d.Severities, d.Severity) || !textual(q) {
		return errAddress
	}
	d.Groups = setup.People.Groups()
	for _, ref := range setup.Vocabulary.Packs() {
		p, _ := setup.Vocabulary.Pack(ref.ID)
		for _, t := range p.Terms {
			d.Terms = append(d.Terms, string(ref.Layer)+":"+t.ID)
		}
	}
	slices.Sort(d.Terms)
	after, err := cursorOf(q.Get("after"))
	if err != nil {
		return err
	}
	query := review.QueueQuery{View: d.View, Term: d.Term, Severity: d.Severity, Team: d.Team, After: after, Limit: queuePage + 1}
	if d.Group != "" {
		query.Groups = []string{d.Group}
	}
	if d.Items, err = c.desk.Queue(r.Context(), v.Principal, query); err != nil {
		return err
	}
	keep := url.Values{}
	for _, name := range []string{"group", "term", "severity", "team"} {
		if q.Get(name) != "" {
			keep.Set(name, q.Get(name))
			d.Filtered = true
		}
	}
	at := func(view review.QueueView, after string) string {
		with := url.Values{"view": {string(view)}}
		for name, values := range keep {
			with[name] = values
		}
		if after != "" {
			with.Set("after", after)
		}
		return "/console/reviews?" + with.Encode()
	}
	for _, view := range review.QueueViews {
		d.Views = append(d.Views, choice{viewNames[view], at(view, ""), view == d.View})
	}
	if len(d.Items) > queuePage {
		d.Items = d.Items[:queuePage]
		last := d.Items[queuePage-1]
		t := last.DueAt
		if d.View.Newest() {
			t = last.OpenedAt
		}
		d.Next = at(d.View, cursor(t, last.ID))
	}
	return c.render(w, r, v, http.StatusOK, "queue", "Reviews", d)
}

// textual reports whether every parameter is given once and is short text.
func textual(q url.Values) bool {
	for _, values := range q {
		if len(values) > 1 || len(values[0]) > 300 || strings.ToValidUTF8(values[0], "") != values[0] || strings.ContainsRune(values[0], 0) {
			return false
		}
	}
	return true
}

func cursor(at time.Time, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(at.UTC().Format(time.RFC3339Nano) + " " + id))
}

func cursorOf(text string) (*review.Cursor, error) {
	if text == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	at, id, ok := strings.Cut(string(raw), " ")
	if err == nil && ok && isID(id) {
		if t, err := time.Parse(time.RFC3339Nano, at); err == nil {
			return &review.Cursor{At: t, ID: id}, nil
		}
	}
	return nil, errAddress
}

// isID keeps what is no id away from the database.
func isID(s string) bool {
	return len(s) == 36 && strings.Trim(s, "0123456789abcdef-") == ""
}
