package api_test

import (
	"fmt"
	"hash/crc32"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/review"
	"weir/screening"
	"weir/store"
)

// resealed gives a token its checksum anew, as an attacker would.
func resealed(token string) string {
	const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	body := token[:len(token)-6]
	sum, out := crc32.ChecksumIEEE([]byte(body)), make([]byte, 6)
	for i := range out {
		out[i] = base62[sum%62]
		sum /= 62
	}
	return body + string(out)
}

func TestWhoIsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	live := w.key("bo", review.ScopeSubmit)
	revoked := newKey(t, w.store, store.NewKey{Subject: "bo", Scopes: []review.Scope{review.ScopeSubmit}})
	parsed, err := review.ParseAPIKey(revoked)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.RevokeKey(t.Context(), parsed.ID); err != nil {
		t.Fatal(err)
	}
	expired := newKey(t, w.store, store.NewKey{Subject: "bo", Scopes: []review.Scope{review.ScopeSubmit}, ExpiresIn: time.Hour})
	if parsed, err = review.ParseAPIKey(expired); err != nil {
		t.Fatal(err)
	}
	w.exec(`update api_key set expires_at = now() - interval '1 second' where id = $1`, parsed.ID)
	never, _, err := review.NewAPIKey()
	if err != nil {
		t.Fatal(err)
	}
	other := newKey(t, w.store, store.NewKey{Subject: "chi", Scopes: []review.Scope{review.ScopeSubmit}})
	const secretAt = len("weir_") + 12 + 1
	for name, authorization := range map[string]string{
		"no header":                 "-",
		"empty":                     "",
		"no scheme":                 live,
		"Basic":                     "Basic " + live,
		"scheme in capitals":        "BEARER " + live,
		"no token":                  "Bearer ",
		"a JWT without a signature": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbmEifQ.",
		"bad checksum":              "Bearer " + live[:len(live)-1] + "~",
		"cut":                       "Bearer " + live[:len(live)-7],
		"unknown id":                "Bearer " + never,
		"right id, wrong secret":    "Bearer " + resealed(live[:secretAt]+never[secretAt:]),
		"another key's secret":      "Bearer " + resealed(live[:secretAt]+other[secretAt:]),
		"id that is no text":        "Bearer " + resealed("weir_\xff\xfe_________'"+live[secretAt-1:]),
		"id that is SQL":            "Bearer " + resealed("weir_' or 1=1 or "+live[secretAt-1:]),
		"revoked":                   "Bearer " + revoked,
		"expired":                   "Bearer " + expired,
		"two tokens":                "Bearer " + live + ", Bearer " + live,
	} {
		a := w.do("POST", "/v1/screenings", "", spec("r"), func(r *http.Request) {
			if authorization != "-" {
				r.Header["Authorization"] = []string{authorization}
			}
		})
		if a.status != http.StatusUnauthorized || a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: status %d: %s", name, a.status, a.body)
			continue
		}
		checkProblem(t, name, a)
	}
	w.nothingStored("without a key")
	if a := w.do("POST", "/v1/screenings", "", spec("r"), header("Authorization", "Bearer "+live)); a.status != http.StatusCreated {
		t.Errorf("the live key: status %d: %s", a.status, a.body)
	}
	// What is wrong with a key is not told.
	answers := map[string]bool{}
	for _, token := range []string{never, revoked, expired, resealed(live[:secretAt] + never[secretAt:])} {
		a := w.do("GET", "/v1/packs", "", nil, header("Authorization", "Bearer "+token))
		answers[a.text("title")+a.text("detail")+a.text("type")] = true
	}
	if len(answers) != 1 {
		t.Errorf("the answers differ by what is wrong: %v", answers)
	}
}

// Every route of the router is in the table, and every one below /v1 asks for a
// scope, really.
func TestEveryRouteHasAScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	table := w.server.Table()
	const id = "018f0000-0000-7000-8000-000000000000"
	for _, r := range w.server.Registered() {
		name := r.Method + " " + r.Path
		scopes, declared := table[name]
		if !declared {
			t.Errorf("%s is served but not in the table", name)
			continue
		}
		delete(table, name)
		path := strings.ReplaceAll(r.Path, ":id", id)
		var body []byte
		if r.Method == http.MethodPost {
			body = spec("r")
		}
		if !strings.HasPrefix(r.Path, "/v1/") {
			// The console asks for a session itself; its own tests walk its pages.
			if !slices.Contains([]string{"/livez", "/readyz", "/metrics", "/schemas/:name", "/openapi.json", "/openapi", "/console", "/console/*"}, r.Path) {
				t.Errorf("%s is outside /v1 and not known to be for everybody", name)
			}
			continue
		}
		if len(scopes) == 0 {
			t.Errorf("%s asks for no scope", name)
			continue
		}
		if a := w.do(r.Method, path, "", body); a.status != http.StatusUnauthorized {
			t.Errorf("%s without a key: status %d, want 401", name, a.status)
		}
		var lacking []review.Scope
		for _, s := range review.Scopes {
			if !slices.Contains(scopes, string(s)) {
				lacking = append(lacking, s)
			}
		}
		a := w.do(r.Method, path, "", body, header("Authorization", "Bearer "+w.key("bo", lacking...)))
		if a.status != http.StatusForbidden {
			t.Errorf("%s with every scope but its own: status %d, want 403", name, a.status)
		}
		for _, s := range scopes {
			a := w.do(r.Method, path, "", body, header("Authorization", "Bearer "+w.key("bo", review.Scope(s))))
			if a.status == http.StatusUnauthorized || a.status == http.StatusForbidden || a.status >= 500 {
				t.Errorf("%s with scope %s: status %d: %s", name, s, a.status, a.body)
			}
		}
	}
	for name := range table {
		t.Errorf("%s is in the table but not served", name)
	}
	for _, other := range []string{"PUT", "DELETE", "PATCH", "HEAD"} {
		if a := w.do(other, "/v1/screenings", "bo", nil); a.status != http.StatusMethodNotAllowed {
			t.Errorf("%s: status %d, want 405", other, a.status)
		}
	}
	if a := w.do("GET", "/v1/nothing", "bo", nil); a.status != http.StatusNotFound {
		t.Errorf("unknown path: status %d", a.status)
	} else {
		checkProblem(t, "unknown path", a)
	}
}

// A key that speaks for nobody can do nothing, whatever its scopes say, and
// nobody votes who is in no group (KNOWN_FAULTS 14).
func TestUndeclaredSubjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, query := range []string{"", "?dry_run=true", "?gate=true"} {
		a := w.do("POST", "/v1/screenings"+query, "mallory", spec("r"))
		if a.status != http.StatusForbidden || !strings.Contains(a.text("detail"), "people.yaml") {
			t.Errorf("submit%s: status %d: %s", query, a.status, a.body)
		}
	}
	w.nothingStored("for an undeclared subject")
	s := w.do("POST", "/v1/screenings", "bo", spec("r", personal))
	vote := func(who string) answer {
		return w.do("POST", "/v1/reviews/"+s.text("review", "id")+"/votes", who, fmt.Appendf(nil,
			`{"expected_version": 1, "spec_sha256": %q, "vote": "admit", "reason": "looked", "terms": ["ethics:personal_data_inside"]}`, s.text("spec_sha256")))
	}
	events := w.count("audit_event")
	for _, who := range []string{"mallory", "airflow", "ana", "bo", "bo2"} { // nobody, a service, the owner, the submitter, the submitter's other name
		if a := vote(who); a.status != http.StatusForbidden || a.text("detail") == "" {
			t.Errorf("vote of %s: status %d: %s", who, a.status, a.body)
		}
	}
	if w.count("vote") != 0 || w.count("audit_event") != events {
		t.Error("a refused vote left something behind")
	}
	if a := w.do("GET", "/v1/screenings/"+s.text("id"), "bo", nil); a.text("status") != "pending" {
		t.Errorf("status %s, want pending", a.text("status"))
	}
	if a := vote("chi"); a.status != http.StatusOK {
		t.Errorf("vote of chi: status %d: %s", a.status, a.body)
	}
}

// A service says for whom; a person is the same under every name.
func TestServicesAndAliases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if a := w.do("POST", "/v1/screenings", "airflow", spec("r")); a.status != 422 || !hasPointer(a, "/on_behalf_of") {
		t.Errorf("service without on_behalf_of: status %d: %s", a.status, a.body)
	}
	if a := w.do("POST", "/v1/screenings", "airflow", spec("r", `"owner": "ana" → "owner": "ana", "on_behalf_of": "bo"`)); a.status != 201 || a.text("submitter") != "airflow" {
		t.Errorf("service: status %d: %s", a.status, a.body)
	}
	first := w.do("POST", "/v1/screenings", "bo2", spec("a"))
	if first.text("submitter") != "bo" {
		t.Errorf("submitted by %q, want bo under whatever name", first.text("submitter"))
	}
	if a := w.do("POST", "/v1/screenings", "bo", spec("a", `"ana" → "dee"`)); a.status != 201 {
		t.Errorf("the same person under the other name: status %d: %s", a.status, a.body)
	}
}

func TestSubmittersReadTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	only := func(subject string, scope review.Scope) option {
		return header("Authorization", "Bearer "+w.key(subject, scope))
	}
	s := w.do("POST", "/v1/screenings", "", spec("r"), only("bo", review.ScopeSubmit))
	path := "/v1/screenings/" + s.text("id")
	for _, p := range []string{path, path + "/spec", path + "?wait=1s"} {
		if a := w.do("GET", p, "", nil, only("bo", review.ScopeSubmit)); a.status != 200 {
			t.Errorf("%s, own: status %d", p, a.status)
		}
		if a := w.do("GET", p, "", nil, only("chi", review.ScopeSubmit)); a.status != 404 {
			t.Errorf("%s, somebody else's: status %d, want 404", p, a.status)
		}
		if a := w.do("GET", p, "", nil, only("chi", review.ScopeAudit)); a.status != 200 {
			t.Errorf("%s, auditor: status %d", p, a.status)
		}
	}
	raw := w.do("GET", path+"/spec", "", nil, only("bo", review.ScopeSubmit))
	if screening.Sum(raw.body) != screening.Sum(spec("r")) || raw.header.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.HasPrefix(raw.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("spec bytes: %v %s", raw.header, raw.body)
	}
	if list := w.do("GET", "/v1/screenings", "", nil, only("chi", review.ScopeSubmit)); len(list.get("screenings").([]any)) != 0 {
		t.Errorf("somebody else's list: %s", list.body)
	}
}
