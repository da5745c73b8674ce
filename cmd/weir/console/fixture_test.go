package console_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"weir/cmd/weir/api"
	"weir/cmd/weir/console"
	"weir/review"
	"weir/review/reviewtest"
	"weir/store"
	"weir/store/storetest"
	"weir/webhooks"
)

const pledgeYAML = `
schema: weir/pack/v1
id: pledge
version: "1"
layer: ethics
title: Pledge for tests
description: Three terms.
terms:
  - id: personal_data_inside
    title: Personal data
    description: Data about people.
    severity: medium
    references: [{scheme: example, id: "E-1", relation: close}]
    over: [dataset]
    violated_if: {tag: {personal_data: present}}
    response: escalate
    remedy: Remove it.
  - id: weapon_words
    title: Words about weapons
    description: A text speaks of making weapons.
    severity: high
    violated_if: {phrases: ["nerve agent synthesis"]}
    response: escalate
    unchecked: observe
    remedy: Say what the data is for.
  - id: license_nc
    title: Commercial use of a non-commercial licence
    description: The licence forbids commercial use.
    severity: high
    over: [dataset]
    violated_if: {fact: license.restrictions, has: nc}
    response: escalate
    unchecked: observe
    remedy: Use other data.
`

const peopleYAML = `
people: [{id: ana}, {id: bo, aliases: [bo@corp.example]}, {id: chi}, {id: dee}]
services: [{id: airflow}]
groups: {general: [ana, bo, chi], legal: [bo]}
`

const policiesYAML = `
policies:
  - {id: rights, match: {terms: ["license_*"]}, group: legal, quorum: 1, due: 24h}
  - {id: general, group: general, quorum: 1, due: 48h, endpoints: [hook]}
default: general
endpoints: [{id: hook, url: "https://hook.example/", secret_env: S}]
`

// world is the gate with its console on loopback, in front of a database of its own.
type world struct {
	testing.TB
	url   string
	store *store.Store
	desk  *review.Desk
	pool  *pgxpool.Pool // looks at the tables, past the store
}

func newWorld(t testing.TB, cfg console.Config) *world {
	t.Helper()
	return newWorldOf(t, setup(t), cfg)
}

func newWorldOf(t testing.TB, declared review.Setup, cfg console.Config) *world {
	t.Helper()
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
	if err := st.Outbox().Declare(t.Context(), []webhooks.Declared{{ID: "hook", Host: "hook.example", Format: webhooks.FormatStandard}}); err != nil {
		t.Fatal(err)
	}
	return (&world{TB: t, store: st, pool: pool}).again(declared, cfg)
}

// again is the gate started once more before the same database.
func (w *world) again(declared review.Setup, cfg console.Config) *world {
	w.Helper()
	desk, err := review.NewDesk(w.store, declared, review.Config{})
	if err != nil {
		w.Fatal(err)
	}
	cfg.Log = slog.New(slog.NewTextHandler(testWriter{w.TB}, nil))
	pages, err := console.New(desk, w.store, w.store, cfg)
	if err != nil {
		w.Fatal(err)
	}
	server := api.New(api.Config{Log: slog.New(slog.DiscardHandler), Metrics: api.NewMetrics()})
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = server.HTTPServer()
	ts.Start()
	w.Cleanup(ts.Close)
	server.Open(api.Gate{Desk: desk, Keys: w.store, Console: pages, Ready: func(context.Context) []string { return nil }})
	return &world{w.TB, ts.URL, w.store, desk, w.pool}
}

// testWriter puts the log beside the test that it belongs to.
type testWriter struct{ testing.TB }

func (w testWriter) Write(p []byte) (int, error) { w.Logf("%s", p); return len(p), nil }

func setup(t testing.TB) review.Setup {
	t.Helper()
	return reviewtest.Setup(t, peopleYAML, policiesYAML, reviewtest.Floor, pledgeYAML)
}

// spec is a spec that escalates for personal data; change may alter its document.
func spec(run string, change ...func(doc map[string]any)) []byte {
	doc := map[string]any{
		"schema": "weir/spec/v1", "run_ref": run, "owner": "ana", "team": "nlp",
		"objective": map[string]any{"kind": "sft", "purpose": "A helper for the support desk.", "purposes": []any{"customer_support"}},
		"inputs": []any{map[string]any{"id": "tickets", "kind": "dataset", "name": "Support tickets",
			"lineage": map[string]any{"derived_from": []any{map[string]any{"ref": "https://data.example/tickets", "label": "raw tickets"}}}}},
		"disclosures": []any{tag("personal_data", "present"), tag("minors", "absent"), tag("sexual_content", "absent")},
	}
	for _, c := range change {
		c(doc)
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return raw
}

func tag(name, state string) map[string]any {
	return map[string]any{"tag": name, "state": state, "basis": "structured"}
}

func purpose(text string) func(map[string]any) {
	return func(doc map[string]any) { doc["objective"].(map[string]any)["purpose"] = text }
}

// submit screens a spec as ana.
func (w *world) submit(raw []byte) *review.Screening {
	w.Helper()
	s, _, err := w.desk.Submit(w.Context(), review.Principal{Subject: "ana", Project: "default", Scopes: []review.Scope{review.ScopeSubmit}}, raw, nil)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// delivery is the newest message about a screening's review.
func (w *world) delivery(s *review.Screening) (id string) {
	w.Helper()
	if err := w.pool.QueryRow(w.Context(), `select id::text from delivery where review_id = $1 order by created_at desc limit 1`, s.Review.ID).Scan(&id); err != nil {
		w.Fatal(err)
	}
	return id
}

func (w *world) exec(sql string, args ...any) {
	w.Helper()
	if _, err := w.pool.Exec(w.Context(), sql, args...); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) count(sql string, args ...any) (n int) {
	w.Helper()
	if err := w.pool.QueryRow(w.Context(), sql, args...).Scan(&n); err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	return n
}

// link makes a login link as weir console link does.
func (w *world) link(person string, scopes ...review.Scope) (path string) {
	w.Helper()
	token, digest := console.NewLink()
	if err := w.store.CreateLoginLink(w.Context(), digest, review.Principal{Subject: person, Project: "default", Scopes: scopes}); err != nil {
		w.Fatal(err)
	}
	return console.LinkPath + token
}

func (w *world) key(subject string, scopes ...review.Scope) (token, id string) {
	w.Helper()
	token, key, err := review.NewAPIKey()
	if err != nil {
		w.Fatal(err)
	}
	if err := w.store.CreateKey(w.Context(), store.NewKey{ID: key.ID, SecretSHA256: key.SecretSHA256, Project: "default", Subject: subject, Scopes: scopes}); err != nil {
		w.Fatal(err)
	}
	return token, key.ID
}

// browser keeps cookies, and follows no redirect.
type browser struct {
	*world
	client *http.Client
}

func (w *world) browser() *browser {
	w.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.Fatal(err)
	}
	return &browser{w, &http.Client{Jar: jar, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// as is a browser in which a person is logged in by a link.
func (w *world) as(person string, scopes ...review.Scope) *browser {
	w.Helper()
	if scopes == nil {
		scopes = []review.Scope{review.ScopeReview}
	}
	b := w.browser()
	if a := b.post("/console/login", url.Values{"link": {strings.TrimPrefix(w.link(person, scopes...), console.LinkPath)}}); a.status != http.StatusSeeOther {
		w.Fatalf("login of %s: %d %s", person, a.status, a.text())
	}
	return b
}

type answer struct {
	status int
	header http.Header
	body   string
}

var tags = regexp.MustCompile(`<[^>]*>`)

// text is the page without its elements.
func (a answer) text() string {
	return strings.Join(strings.Fields(tags.ReplaceAllString(a.body, " ")), " ")
}

func (b *browser) do(method, path string, form url.Values, change ...func(*http.Request)) answer {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), method, b.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, c := range change {
		c(req)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(body)}
}

func (b *browser) get(path string) answer { b.Helper(); return b.do("GET", path, nil) }
func (b *browser) post(path string, form url.Values) answer {
	b.Helper()
	return b.do("POST", path, form)
}

// ballot is a vote form as the page of a review has it.
func ballot(r *review.Screening, vote, reason string, terms ...string) url.Values {
	return url.Values{"expected_version": {"1"}, "spec_sha256": {r.SpecSHA256.String()}, "vote": {vote}, "reason": {reason}, "terms": terms}
}
