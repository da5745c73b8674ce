package api_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"weir/cmd/weir/api"
	"weir/review"
	"weir/review/reviewtest"
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
people: [{id: ana}, {id: bo, aliases: [bo2]}, {id: chi}, {id: dee}]
services: [{id: airflow}]
groups: {general: [ana, bo, chi, dee]}
`

const policiesYAML = `
policies: [{id: general, group: general, quorum: 1, due: 48h}]
default: general
`

// world is a server on loopback in front of a database of its own.
type world struct {
	*testing.T
	url    string
	server *api.Server
	gate   api.Gate
	store  *store.Store
	pool   *pgxpool.Pool // looks at the tables, past the store
	log    *logLines
	client *http.Client

	mu   sync.Mutex
	keys map[string]string
}

// newWorld serves an open gate; change may alter the config and the gate first.
func newWorld(t *testing.T, change ...func(*api.Config, *api.Gate)) *world {
	t.Helper()
	return newWorldOn(t, store.Config{}, change...)
}

func newWorldOn(t *testing.T, kept store.Config, change ...func(*api.Config, *api.Gate)) *world {
	t.Helper()
	dsn := storetest.DSN(t)
	st, err := store.Open(t.Context(), dsn, kept)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	desk, err := review.NewDesk(st, setup(t), review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, store: st, pool: pool, log: &logLines{}, keys: map[string]string{}, client: &http.Client{Timeout: time.Minute}}
	cfg := api.Config{Log: slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Metrics: api.NewMetrics()}
	w.gate = api.Gate{Desk: desk, Keys: st, Record: st, Deliveries: st, Ready: func(context.Context) []string { return nil }}
	for _, c := range change {
		c(&cfg, &w.gate)
	}
	w.server = api.New(cfg)
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = w.server.HTTPServer()
	ts.Start()
	t.Cleanup(ts.Close)
	w.url = ts.URL
	w.server.Open(w.gate)
	return w
}

func setup(t testing.TB) review.Setup {
	t.Helper()
	return reviewtest.Setup(t, peopleYAML, policiesYAML, reviewtest.Floor, pledgeYAML)
}

// spec is a spec in JSON that is admitted; each change is "old → new" in its text.
func spec(run string, changes ...string) []byte {
	text := strings.ReplaceAll(`{"schema": "weir/spec/v1", "run_ref": "RUN", "owner": "ana", "objective": {"kind": "sft"},
 "inputs": [{"id": "d1", "kind": "dataset", "license": {"declared": [{"spdx": "Apache-2.0"}]}}],
 "disclosures": [{"tag": "minors", "state": "absent", "basis": "structured"},
  {"tag": "sexual_content", "state": "absent", "basis": "structured"},
  {"tag": "personal_data", "state": "absent", "basis": "structured"}]}`, "RUN", run)
	for _, c := range changes {
		old, new, _ := strings.Cut(c, " → ")
		text = strings.Replace(text, old, new, 1)
	}
	return []byte(text)
}

const (
	personal   = `"personal_data", "state": "absent" → "personal_data", "state": "present"` // escalates
	sexualised = `"minors", "state": "absent" → "minors", "state": "present"`               // with the next: blocks
	minors     = `"sexual_content", "state": "absent" → "sexual_content", "state": "present"`
)

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// get reads a member of a JSON body by path.
func (a answer) get(path ...string) any {
	var v any
	if json.Unmarshal(a.body, &v) != nil {
		return nil
	}
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	return v
}

func (a answer) text(path ...string) string { s, _ := a.get(path...).(string); return s }

type option func(*http.Request)

func header(name, value string) option {
	return func(r *http.Request) { r.Header[name] = []string{value} } // as it is, not canonical and not trimmed
}

// do sends a request; who is the subject of a key, "" sends none.
func (w *world) do(method, path, who string, body []byte, options ...option) answer {
	w.Helper()
	a, err := w.try(method, path, who, body, options...)
	if err != nil {
		w.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (w *world) try(method, path, who string, body []byte, options ...option) (answer, error) {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), method, w.url+path, bytes.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if who != "" {
		req.Header.Set("Authorization", "Bearer "+w.key(who, review.ScopeSubmit, review.ScopeReview))
	}
	for _, o := range options {
		o(req)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	a := answer{resp.StatusCode, resp.Header, data}
	if err == nil {
		checkDescribed(w, described(), method, path, a)
	}
	return a, err
}

// key gives a token of the subject with the scopes, making it when needed.
func (w *world) key(subject string, scopes ...review.Scope) string {
	w.Helper()
	id := subject
	for _, s := range scopes {
		id += " " + string(s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys[id] == "" {
		w.keys[id] = newKey(w, w.store, store.NewKey{Subject: subject, Scopes: scopes})
	}
	return w.keys[id]
}

func newKey(t testing.TB, st *store.Store, k store.NewKey) (token string) {
	t.Helper()
	token, key, err := review.NewAPIKey()
	if err != nil {
		t.Fatal(err)
	}
	k.ID, k.SecretSHA256, k.Project = key.ID, key.SecretSHA256, cmp.Or(k.Project, "default")
	if err := st.CreateKey(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	return token
}

func (w *world) count(table string) (n int) {
	w.Helper()
	where := ""
	if table == "audit_event" {
		where = ` where screening_id is not null` // keys and the log have events of their own
	}
	if err := w.pool.QueryRow(w.Context(), `select count(*) from `+table+where).Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	if _, err := w.pool.Exec(w.Context(), sql, args...); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
}

// nothingStored fails when any table that a submission writes has a row.
func (w *world) nothingStored(why string) {
	w.Helper()
	for _, table := range []string{"spec", "screening", "finding", "review", "idempotency", "audit_event", "delivery"} {
		if n := w.count(table); n != 0 {
			w.Errorf("%s: %d rows in %s, want none", why, n, table)
		}
	}
}

// checkProblem: every error is problem+json with the request's id, and a 5xx says nothing else.
func checkProblem(t testing.TB, why string, a answer) {
	t.Helper()
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("%s: content type %q: %s", why, got, a.body)
	}
	if a.text("request_id") == "" || a.text("request_id") != a.header.Get("X-Request-Id") {
		t.Errorf("%s: request id %q in the body, %q in the header", why, a.text("request_id"), a.header.Get("X-Request-Id"))
	}
	if int(a.get("status").(float64)) != a.status || !strings.HasPrefix(a.text("type"), "urn:weir:problem:") || a.text("title") == "" {
		t.Errorf("%s: status %d with body %s", why, a.status, a.body)
	}
	if a.status >= 500 && (a.get("detail") != nil || a.get("errors") != nil) {
		t.Errorf("%s: a 5xx with details: %s", why, a.body)
	}
}

// logLines keeps the events that were logged.
type logLines struct {
	mu    sync.Mutex
	lines []map[string]any
}

func (l *logLines) Write(p []byte) (int, error) {
	var event map[string]any
	if err := json.Unmarshal(p, &event); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, event)
	return len(p), nil
}

// of gives the events of one request.
func (l *logLines) of(requestID string) (events []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.lines {
		if e["request_id"] == requestID {
			events = append(events, e)
		}
	}
	return events
}

func (l *logLines) all() []map[string]any {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]map[string]any(nil), l.lines...)
}
