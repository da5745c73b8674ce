package kubernetes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"

	"weir/cmd/weir/kubernetes"
	"weir/review"
	"weir/review/reviewtest"
	"weir/screening"
	"weir/store"
	"weir/store/storetest"
)

const pledgeYAML = `
schema: weir/pack/v1
id: pledge
version: "1"
layer: ethics
title: Pledge for tests
description: Two terms.
terms:
  - id: personal_data_inside
    title: Personal data
    description: Data about people.
    severity: medium
    over: [dataset]
    violated_if: {tag: {personal_data: present}}
    response: escalate
    remedy: Remove it.
  - id: license_nc
    title: Commercial use of a non-commercial licence
    description: The licence forbids commercial use.
    severity: high
    over: [dataset]
    violated_if: {fact: license.restrictions, has: nc}
    response: escalate
    remedy: Use other data.
`

const peopleYAML = `
people: [{id: ana, subjects: ["kubernetes|ana@corp.example"]}, {id: bo, subjects: ["kubernetes|bo@corp.example"]}, {id: chi}]
services: [{id: cluster}, {id: airflow}]
groups: {general: [ana, bo, chi]}
`

const policiesYAML = `
policies: [{id: general, group: general, quorum: 1, due: 48h}]
default: general
`

func setup(t testing.TB, packs ...string) review.Setup {
	t.Helper()
	return reviewtest.Setup(t, peopleYAML, policiesYAML, packs...)
}

// cluster is an API server's view of a hook, and a look at what the hook keeps.
type cluster struct {
	*testing.T
	handler *kubernetes.Handler
	desk    *review.Desk
	pool    *pgxpool.Pool
	log     *bytes.Buffer

	mu       sync.Mutex
	answered []kubernetes.Answered
}

var config = kubernetes.Config{Service: "cluster", BaseURL: "https://weir.example/",
	Controllers: []string{"system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager"}}

func newCluster(t *testing.T, packs ...string) *cluster {
	t.Helper()
	if packs == nil {
		packs = []string{reviewtest.Floor, pledgeYAML}
	}
	dsn := storetest.DSN(t)
	st, err := store.Open(t.Context(), dsn, store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	c := on(t, st, packs...)
	c.pool = pool
	return c
}

// on is a cluster whose hook works on any store.
func on(t *testing.T, st review.Store, packs ...string) *cluster {
	t.Helper()
	desk, err := review.NewDesk(st, setup(t, packs...), review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, desk: desk, log: &bytes.Buffer{}}
	cfg := config
	cfg.Log = slog.New(slog.NewJSONHandler(c.log, nil))
	cfg.Answered = func(a kubernetes.Answered) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.answered = append(c.answered, a)
	}
	if c.handler, err = kubernetes.New(desk, cfg); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) rows(table string) (n int) {
	c.Helper()
	if err := c.pool.QueryRow(c.Context(), `select count(*) from `+table).Scan(&n); err != nil {
		c.Fatal(err)
	}
	return n
}

// response is what the API server takes from an answer.
type response struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Response   struct {
		UID     string
		Allowed bool
		Status  struct {
			Status, Message, Reason string
			Code                    int
		}
		AuditAnnotations map[string]string
		Warnings         []string
	}
	code int
	body string
}

func (r response) result() string  { return r.Response.AuditAnnotations["result"] }
func (r response) message() string { return r.Response.Status.Message }

// send posts a body as an API server does, and holds every answer to what they all have to be.
func (c *cluster) send(body []byte, query string) response {
	c.Helper()
	req := httptest.NewRequestWithContext(c.Context(), http.MethodPost, kubernetes.Path+query, bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, req)
	if err := described().Answer(http.MethodPost, kubernetes.Path, rec.Code, rec.Header().Get("Content-Type"), rec.Body.Bytes()); err != nil {
		c.Errorf("the answer is not as described: %v", err)
	}
	if err := described().Body(http.MethodPost, kubernetes.Path, "application/json", body); err != nil && rec.Code == http.StatusOK {
		c.Errorf("the question is not as described: %v", err)
	}
	r := response{code: rec.Code, body: rec.Body.String()}
	if rec.Code != http.StatusOK {
		return r
	}
	dec := json.NewDecoder(strings.NewReader(r.body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		c.Fatalf("answer %s: %v", r.body, err)
	}
	s := r.Response.Status
	switch {
	case r.Kind != "AdmissionReview" || r.Response.UID == "":
		c.Errorf("answer %s", r.body)
	case r.Response.Allowed && (s.Message != "" || s.Code != 0):
		c.Errorf("allowed with a status: %s", r.body)
	case !r.Response.Allowed && (s.Status != "Failure" || s.Code < 400 || s.Reason == "" || !strings.HasPrefix(s.Message, "weir: ")):
		c.Errorf("refused without a reason: %s", r.body)
	case len(s.Message) > kubernetes.MaxMessage || !utf8.ValidString(s.Message) || strings.ContainsFunc(s.Message, func(r rune) bool { return !unicode.IsPrint(r) }):
		c.Errorf("a message that cannot be shown: %q", s.Message)
	}
	return r
}

func (c *cluster) ask(review tree) response {
	c.Helper()
	r := c.send(encode(review), "?timeout=10s")
	if r.code == http.StatusOK && r.Response.UID != request(review)["uid"] {
		c.Errorf("uid %q in the answer", r.Response.UID)
	}
	return r
}

// edit changes the spec in the annotation: "old → new" in its text.
func edit(review tree, changes ...string) tree {
	annotations := at(objectOf(review), "metadata", "annotations").(tree)
	text := annotations["weir.dev/spec"].(string)
	for _, c := range changes {
		old, new, _ := strings.Cut(c, " → ")
		if !strings.Contains(text, old) {
			panic("nothing to change: " + old)
		}
		text = strings.Replace(text, old, new, 1)
	}
	annotations["weir.dev/spec"] = text
	return review
}

// The changes of a spec that make it escalate, and block.
var (
	escalates = []string{"personal_data, state: absent → personal_data, state: present"}
	blocks    = []string{"minors, state: absent → minors, state: present", "sexual_content, state: absent → sexual_content, state: present"}
)

// update makes an UPDATE of a recorded create; change works on the new object.
func update(t *testing.T, name string, change func(object tree)) tree {
	r := load(t, name)
	req := request(r)
	req["operation"] = "UPDATE"
	req["oldObject"] = load(t, name)["request"].(tree)["object"]
	change(objectOf(r))
	return r
}

func with(review tree, value any, path ...string) tree {
	put(request(review), value, path...)
	return review
}

// failing is a store that gives one error.
type failing struct {
	review.Store
	err error
}

func (f failing) Today(context.Context) (screening.Day, error) { return "", f.err }

// breaking is a store that is used no further than for the day.
type breaking struct {
	review.Store
	today func(context.Context) (screening.Day, error)
}

func (b breaking) Today(ctx context.Context) (screening.Day, error) { return b.today(ctx) }
func (b breaking) ScreeningOfSpec(context.Context, string, screening.Digest256) (*review.Screening, error) {
	return nil, review.ErrNotFound
}

func annotate(r tree, change func(string) string) {
	annotations := at(objectOf(r), "metadata", "annotations").(tree)
	annotations["weir.dev/spec"] = change(annotations["weir.dev/spec"].(string))
}

// edit0 is edit where there may be nothing to change.
func edit0(r tree, changes []string) tree {
	annotate(r, func(text string) string {
		for _, c := range changes {
			old, new, _ := strings.Cut(c, " → ")
			text = strings.Replace(text, old, new, 1)
		}
		return text
	})
	return r
}
