package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/review"
	"weir/webhooks"
)

// endpointWorld is a world whose escalations are told to the endpoints legal and chat.
func endpointWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	if err := w.store.Outbox().Declare(t.Context(), []webhooks.Declared{{ID: "legal", Host: "legal.example", Format: webhooks.FormatStandard},
		{ID: "chat", Host: "chat.example", Format: webhooks.FormatChat, Types: []string{"review.opened"}}}); err != nil {
		t.Fatal(err)
	}
	return w
}

// tell enqueues n messages for an endpoint, about a review of that project.
func (w *world) tell(endpoint string, n int) {
	w.Helper()
	s := w.do("POST", "/v1/screenings", "bo", spec("r/"+endpoint, personal))
	w.exec(`insert into delivery (message_id, endpoint, type, project, screening_id, review_id, body)
		select 'msg_' || n, $1, 'review.opened', 'default', $2, $3, convert_to('{"type": "review.opened"}', 'UTF8') from generate_series(1, $4::integer) n`,
		endpoint, s.text("id"), s.text("review", "id"), n)
}

// attempt claims one and lets it end.
func (w *world) attempt(endpoint string, status int, o webhooks.Outcome) webhooks.Delivery {
	w.Helper()
	ds, err := w.store.Outbox().Claim(w.Context(), 1, time.Minute, []string{endpoint})
	if err != nil || len(ds) != 1 {
		w.Fatalf("%d claimed, %v", len(ds), err)
	}
	a := webhooks.Attempt{Number: ds[0].Attempt, StartedAt: time.Now(), Host: "legal.example", Status: status, Answer: "the-receivers-word", Request: ds[0].Request}
	if status != 200 {
		a.Class, a.Detail = webhooks.ClassHTTPStatus, "answered"
	}
	if err := w.store.Outbox().Finish(w.Context(), ds[0], a, o); err != nil {
		w.Fatal(err)
	}
	return ds[0]
}

func TestDeliveryRoutes(t *testing.T) {
	t.Parallel()
	w := endpointWorld(t)
	w.tell("legal", 3)
	key := header("Authorization", "Bearer "+w.key("chi", review.ScopePolicy))
	get := func(path string) answer { return w.do("GET", path, "", nil, key) }
	post := func(path, body string) answer {
		return w.do("POST", path, "", []byte(body), key, header("Content-Type", "application/json"))
	}
	d := w.attempt("legal", 500, webhooks.Outcome{State: webhooks.StateDead})

	one := get("/v1/deliveries/" + d.ID)
	if one.status != 200 || one.text("state") != "dead" || one.text("endpoint") != "legal" || one.text("last_attempt", "class") != "http_status" ||
		one.text("body") != string(d.Body) || one.text("finished_at") == "" || one.get("due_at") != nil {
		t.Errorf("one: status %d: %s", one.status, one.body)
	}
	if strings.Contains(string(one.body), "the-receivers-word") {
		t.Error("the receiver's answer is shown: an endpoint would be a way to read what its address serves (KNOWN_FAULTS 20)")
	}
	for query, want := range map[string]int{"": 3, "?state=dead": 1, "?state=pending&endpoint=legal": 2, "?endpoint=chat": 0, "?type=review.opened&limit=2": 2} {
		a := get("/v1/deliveries" + query)
		list, _ := a.get("deliveries").([]any)
		if a.status != 200 || len(list) != want || (a.text("next") != "") != strings.Contains(query, "limit=2") {
			t.Errorf("%q: status %d, %d deliveries, want %d: %s", query, a.status, len(list), want, a.body)
		}
	}
	for _, query := range []string{"?state=gone", "?endpoint=a%00b", "?type=review.closed", "?review=x", "?limit=0", "?cursor=x", "?unknown=1"} {
		if a := get("/v1/deliveries" + query); a.status != 400 {
			t.Errorf("%q: status %d: %s", query, a.status, a.body)
		}
	}
	for _, path := range []string{"/v1/deliveries/x", "/v1/deliveries/018f0000-0000-7000-8000-000000000000", "/v1/endpoints/none", "/v1/endpoints/a%00b"} {
		if a := get(path); a.status != 404 {
			t.Errorf("%s: status %d: %s", path, a.status, a.body)
		}
	}

	again := post("/v1/deliveries/"+d.ID+"/redeliver", "")
	if again.status != 202 || again.text("request") == "" {
		t.Fatalf("redeliver: status %d: %s", again.status, again.body)
	}
	w.exec(`update delivery set due_at = now() + interval '1 hour' where id <> $1`, d.ID)
	w.attempt("legal", 200, webhooks.Outcome{State: webhooks.StateDelivered})
	if one = get("/v1/deliveries/" + d.ID); one.text("state") != "delivered" || one.text("last_attempt", "request") != again.text("request") {
		t.Errorf("after redelivery: %s", one.body)
	}

	for _, body := range []string{`{}`, `{"reason": ""}`, `{"why": "x"}`} {
		if a := post("/v1/endpoints/legal/disable", body); a.status != 422 {
			t.Errorf("disable %s: status %d: %s", body, a.status, a.body)
		}
	}
	if a := post("/v1/endpoints/legal/disable", `{"reason": "they move"}`); a.status != 200 || a.text("state") != "disabled" ||
		a.text("disabled", "by") != "chi" || a.text("disabled", "reason") != "they move" || a.get("held").(float64) != 2 {
		t.Errorf("disable: status %d: %s", a.status, a.body)
	}
	for path, body := range map[string]string{"/v1/deliveries/" + d.ID + "/redeliver": "", "/v1/endpoints/legal/redeliver": `{"since": "2026-11-01T00:00:00Z"}`} {
		if a := post(path, body); a.status != 409 || a.text("type") != "urn:weir:problem:endpoint-disabled" {
			t.Errorf("%s while disabled: status %d: %s", path, a.status, a.body)
		}
	}
	ping := post("/v1/endpoints/legal/ping", "")
	if ping.status != 202 || ping.header.Get("Location") != "/v1/deliveries/"+ping.text("delivery") {
		t.Errorf("ping: status %d: %s", ping.status, ping.body)
	}
	if a := get(ping.header.Get("Location")); a.text("type") != webhooks.TypePing || a.text("state") != "pending" {
		t.Errorf("ping: %s", a.body)
	}
	if a := post("/v1/endpoints/legal/enable", `{"reason": "they moved"}`); a.status != 200 || a.text("state") != "enabled" || a.get("held").(float64) != 0 {
		t.Errorf("enable: status %d: %s", a.status, a.body)
	} else if events := a.get("events").([]any); len(events) < 4 || events[0].(map[string]any)["type"] != "enabled" {
		t.Errorf("events: %s", a.body)
	}
	if a := post("/v1/endpoints/legal/redeliver", `{}`); a.status != 422 {
		t.Errorf("without since: status %d: %s", a.status, a.body)
	}
	if a := post("/v1/endpoints/legal/redeliver", `{"since": "2026-11-01T00:00:00Z"}`); a.status != 202 || a.get("deliveries").(float64) != 0 {
		t.Errorf("nothing failed: status %d: %s", a.status, a.body)
	}
	list := get("/v1/endpoints")
	if all, _ := list.get("endpoints").([]any); list.status != 200 || len(all) != 2 || strings.Contains(string(list.body), "whsec_") {
		t.Errorf("endpoints: %s", list.body)
	}
}

// What an operator does counts under a declared name, and in one project.
func TestDeliveriesAreOneProjects(t *testing.T) {
	t.Parallel()
	w := endpointWorld(t)
	w.tell("legal", 1)
	d := w.attempt("legal", 500, webhooks.Outcome{State: webhooks.StateDead})
	nobody := header("Authorization", "Bearer "+w.key("mallory", review.ScopePolicy))
	for path, body := range map[string]string{"/v1/deliveries/" + d.ID + "/redeliver": "", "/v1/endpoints/legal/ping": "",
		"/v1/endpoints/legal/disable": `{"reason": "x"}`, "/v1/endpoints/legal/redeliver": `{"since": "2026-11-01T00:00:00Z"}`} {
		if a := w.do("POST", path, "", []byte(body), nobody, header("Content-Type", "application/json")); a.status != http.StatusForbidden {
			t.Errorf("%s by nobody: status %d: %s", path, a.status, a.body)
		}
	}
	w.exec(`update delivery set project = 'other', screening_id = null, review_id = null`)
	key := header("Authorization", "Bearer "+w.key("chi", review.ScopePolicy))
	if a := w.do("GET", "/v1/deliveries", "", nil, key); strings.Contains(string(a.body), d.ID) {
		t.Errorf("another project's delivery is listed: %s", a.body)
	}
	for _, m := range []string{"GET /v1/deliveries/" + d.ID, "POST /v1/deliveries/" + d.ID + "/redeliver"} {
		method, path, _ := strings.Cut(m, " ")
		if a := w.do(method, path, "", nil, key); a.status != http.StatusNotFound {
			t.Errorf("%s of another project: status %d: %s", m, a.status, a.body)
		}
	}
}
