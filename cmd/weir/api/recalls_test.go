package api_test

import (
	"net/http"
	"strings"
	"testing"

	"weir/review"
	"weir/screening"
)

// from makes the input of a spec known by a digest.
func from(what string) string {
	return `"kind": "dataset", → "kind": "dataset", "digests": [{"alg": "sha256", "value": "` + screening.Sum([]byte(what)).String() + `"}],`
}

// The routes of a recall: who may, what they answer, and what the gate answers
// while it is in force and after.
func TestRecallRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	as := func(scopes ...review.Scope) option { return header("Authorization", "Bearer "+w.key("chi", scopes...)) }
	policy := as(review.ScopePolicy)
	admitted, pending := spec("a", from("bad")), spec("p", from("bad"), personal)
	first := w.do("POST", "/v1/screenings", "bo", admitted)
	if first.status != http.StatusCreated {
		t.Fatalf("%d %s", first.status, first.body)
	}
	w.do("POST", "/v1/screenings", "bo", pending)
	body := []byte(`{"sha256": "` + screening.Sum([]byte("bad")).String() + `", "reason": "consent was withdrawn"}`)
	for name, tt := range map[string]struct {
		body   string
		as     option
		status int
	}{
		"scope":     {string(body), as(review.ScopeReview, review.ScopeAudit, review.ScopeAdmin), 403},
		"no reason": {strings.Replace(string(body), "consent was withdrawn", " \u200b", 1), policy, 422},
		"nothing":   {`{"reason": "r"}`, policy, 422},
		"both":      {`{"reason": "r", "uri": "s3://x", "sha256": "` + screening.Sum(nil).String() + `"}`, policy, 422},
		"digest":    {`{"reason": "r", "sha256": "abc"}`, policy, 422},
		"key":       {`{"reason": "r", "uri": "s3://x", "url": "y"}`, policy, 422},
		"blank":     {"{\"reason\": \"r\", \"uri\": \"\u200b\"}", policy, 422},
	} {
		if a := w.do("POST", "/v1/recalls", "", []byte(tt.body), tt.as); a.status != tt.status {
			t.Errorf("%s: %d, want %d: %s", name, a.status, tt.status, a.body)
		}
	}
	if n := w.count("recall"); n != 0 {
		t.Fatalf("%d recalls were made", n)
	}
	made := w.do("POST", "/v1/recalls", "", body, policy)
	id := made.text("id")
	if made.status != http.StatusCreated || made.get("settled") != true || made.get("revoked") != 1.0 || made.get("blocked") != 1.0 ||
		made.get("in_force") != true || made.header.Get("Location") != "/v1/recalls/"+id {
		t.Fatalf("%d %s", made.status, made.body)
	}
	if a := w.do("POST", "/v1/recalls", "", body, policy); a.status != http.StatusConflict {
		t.Errorf("again: %d %s", a.status, a.body)
	}
	gate := func(what string, raw []byte, status int, kind string) answer {
		t.Helper()
		a := w.do("POST", "/v1/gate/check", "bo", raw)
		if a.status != status || a.text("type") != "urn:weir:problem:gate-"+kind || a.text("gate") != kind || a.text("recall", "id") != id {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
		return a
	}
	if a := gate("revoked", admitted, 409, "revoked"); !strings.Contains(a.text("detail"), "consent was withdrawn") {
		t.Errorf("the reason is not said: %s", a.body)
	}
	gate("pending", pending, 403, "blocked")
	if a := w.do("GET", "/v1/screenings/"+first.text("id")+"/admission", "bo", nil); a.status != 409 {
		t.Errorf("admission: %d %s", a.status, a.body)
	}
	a := w.do("POST", "/v1/screenings", "bo", spec("new", from("bad")))
	if a.status != http.StatusCreated || a.text("status") != "blocked" || a.text("decided_by") != "recall" || a.text("outcome") != "admit" ||
		a.text("recall", "reason") != "consent was withdrawn" || a.text("decision", "outcome") != "admit" {
		t.Errorf("new: %d %s", a.status, a.body)
	}
	gate("new", spec("new", from("bad")), 403, "blocked")
	if a := w.do("POST", "/v1/screenings?dry_run=true", "bo", spec("dry", from("bad"))); a.status != 200 || a.text("recall", "id") != id || a.text("decision", "outcome") != "admit" {
		t.Errorf("dry run: %d %s", a.status, a.body)
	}
	if a := w.do("POST", "/v1/screenings?dry_run=true", "bo", spec("dry", from("good"))); a.status != 200 || a.get("recall") != nil {
		t.Errorf("dry run of other data: %d %s", a.status, a.body)
	}
	if a := w.do("POST", "/v1/screenings?gate=true", "bo", spec("newer", from("bad"))); a.status != 403 || a.text("recall", "id") != id {
		t.Errorf("new with gate: %d %s", a.status, a.body)
	}
	if a := w.do("GET", "/v1/screenings?status=revoked", "bo", nil); a.status != 200 || !strings.Contains(string(a.body), first.text("id")) {
		t.Errorf("list: %d %s", a.status, a.body)
	}

	for _, scope := range []review.Scope{review.ScopePolicy, review.ScopeReview, review.ScopeAudit} {
		a := w.do("GET", "/v1/recalls/"+id+"?limit=3", "", nil, as(scope))
		hits, _ := a.get("screenings").([]any)
		if a.status != 200 || len(hits) != 3 || a.get("total") != 4.0 || a.text("next") == "" {
			t.Fatalf("%s: %d %s", scope, a.status, a.body)
		}
		hit := hits[2].(map[string]any)
		if hit["how"] != "uses" || hit["status"] != "blocked" || hit["ended"] != true || len(hit["path"].([]any)) != 1 {
			t.Errorf("%v", hit)
		}
		a = w.do("GET", "/v1/recalls/"+id+"?limit=3&cursor="+a.text("next"), "", nil, as(scope))
		if rest, _ := a.get("screenings").([]any); a.status != 200 || len(rest) != 1 || a.text("next") != "" {
			t.Errorf("the next page: %d %s", a.status, a.body)
		}
		if a := w.do("GET", "/v1/recalls?live=true", "", nil, as(scope)); a.status != 200 || !strings.Contains(string(a.body), id) {
			t.Errorf("list: %d %s", a.status, a.body)
		}
	}
	for name, a := range map[string]answer{
		"read by a submitter":   w.do("GET", "/v1/recalls/"+id, "", nil, as(review.ScopeSubmit)),
		"lifted by a reviewer":  w.do("POST", "/v1/recalls/"+id+"/lift", "", []byte(`{"reason": "r"}`), as(review.ScopeReview)),
		"listed by a submitter": w.do("GET", "/v1/recalls", "", nil, as(review.ScopeSubmit)),
	} {
		if a.status != 403 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := w.do("GET", "/v1/recalls/"+first.text("id"), "", nil, policy); a.status != 404 {
		t.Errorf("no recall: %d %s", a.status, a.body)
	}
	if a := w.do("POST", "/v1/recalls/"+id+"/lift", "", []byte(`{"reason": " "}`), policy); a.status != 422 {
		t.Errorf("lifted for nothing: %d %s", a.status, a.body)
	}
	lifted := w.do("POST", "/v1/recalls/"+id+"/lift", "", []byte(`{"reason": "another dataset was meant"}`), policy)
	if lifted.status != 200 || lifted.get("in_force") != false || lifted.text("lift_reason") != "another dataset was meant" {
		t.Fatalf("%d %s", lifted.status, lifted.body)
	}
	if a := gate("lifted", admitted, 409, "revoked"); !strings.Contains(a.text("detail"), "Submit them again") {
		t.Errorf("lifted: %s", a.body)
	}
	if a := w.do("POST", "/v1/screenings?gate=true", "bo", admitted); a.status != 200 {
		t.Errorf("submitted again: %d %s", a.status, a.body)
	}
	if a := w.do("GET", "/v1/recalls?live=true", "", nil, policy); strings.Contains(string(a.body), id) {
		t.Errorf("the lifted recall is in force: %s", a.body)
	}
	if a := w.do("GET", "/metrics", "", nil); !strings.Contains(string(a.body), `weir_recalls_total{act="made"} 1`) || !strings.Contains(string(a.body), `weir_recalls_total{act="lifted"} 1`) {
		t.Error("recalls are not counted")
	}
}
