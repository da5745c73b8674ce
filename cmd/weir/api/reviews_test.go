package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/review"
)

// with gives the world's desk other people and policies.
func with(people, policies string) func(t *testing.T) review.Setup {
	return func(t *testing.T) review.Setup {
		t.Helper()
		s := setup(t)
		var err error
		if s.People, err = review.LoadPeople("people.yaml", []byte(people)); err != nil {
			t.Fatal(err)
		}
		if s.Policies, err = review.LoadPolicies("policies.yaml", []byte(policies), s.People); err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// reviewing is a world with two panels' worth of people, and quorum two.
func reviewing(t *testing.T, policies string) *world {
	t.Helper()
	w := newWorld(t)
	made := with(`
people: [{id: ana}, {id: bo}, {id: chi}, {id: dee}, {id: eve}]
services: [{id: airflow}]
groups: {general: [ana, bo, chi, dee, eve]}`, policies)(t)
	desk, err := review.NewDesk(w.store, made, review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w.gate.Desk = desk
	w.server.Open(w.gate)
	return w
}

const twoOfGeneral = `
policies: [{id: general, group: general, quorum: 2, due: 48h}]
default: general
`

// A whole life over the wire: every act has its code, and a repetition its own.
func TestLifeOfAReview(t *testing.T) {
	t.Parallel()
	w := reviewing(t, twoOfGeneral)
	s := w.do("POST", "/v1/screenings", "bo", spec("r", personal))
	id, sid := s.text("review", "id"), s.text("id")
	vote := func(choice string, version int) string {
		return fmt.Sprintf(`{"expected_version": %d, "spec_sha256": %q, "vote": %q, "reason": "looked", "terms": ["ethics:personal_data_inside"]}`,
			version, s.text("spec_sha256"), choice)
	}
	steps := []struct {
		name, path, who, body string
		status                int
		state                 string
	}{
		{"claim", "/v1/reviews/" + id + "/claim", "chi", ``, 200, "claimed"},
		{"renew", "/v1/reviews/" + id + "/claim", "chi", `{"expected_version": 1}`, 200, "claimed"},
		{"claim of another", "/v1/reviews/" + id + "/claim", "dee", `{}`, 409, ""},
		{"claim on an old version", "/v1/reviews/" + id + "/claim", "chi", `{"expected_version": 7}`, 409, ""},
		{"claim of a party", "/v1/reviews/" + id + "/claim", "bo", `{}`, 403, ""},
		{"claim with more", "/v1/reviews/" + id + "/claim", "chi", `{"minutes": 600}`, 422, ""},
		{"release of another's", "/v1/reviews/" + id + "/release", "dee", ``, 409, ""},
		{"release", "/v1/reviews/" + id + "/release", "chi", ``, 200, "open"},
		{"comment", "/v1/reviews/" + id + "/comments", "dee", `{"text": "hm"}`, 201, "open"},
		{"comment of nothing", "/v1/reviews/" + id + "/comments", "dee", `{"text": ""}`, 422, ""},
		{"question of nothing", "/v1/reviews/" + id + "/needs-evidence", "dee", `{"note": "\u200b"}`, 422, ""},
		{"question", "/v1/reviews/" + id + "/needs-evidence", "dee", `{"expected_version": 1, "note": "whose data?"}`, 200, "needs_evidence"},
		{"vote meanwhile", "/v1/reviews/" + id + "/votes", "chi", vote("admit", 2), 409, ""},
		{"answer of another", "/v1/screenings/" + sid + "/answer", "chi", `{"note": "mine"}`, 403, ""},
		{"answer", "/v1/screenings/" + sid + "/answer", "bo", `{"note": "ours"}`, 200, "pending"},
		{"answer again", "/v1/screenings/" + sid + "/answer", "bo", `{"note": "ours"}`, 409, ""},
		{"vote on an old version", "/v1/reviews/" + id + "/votes", "chi", vote("admit", 1), 409, ""},
		{"vote", "/v1/reviews/" + id + "/votes", "chi", vote("admit", 3), 200, "open"},
		{"vote twice", "/v1/reviews/" + id + "/votes", "chi", vote("admit", 4), 409, ""},
		{"block", "/v1/reviews/" + id + "/votes", "dee", vote("block", 4), 200, "decided"},
		{"vote on what is decided", "/v1/reviews/" + id + "/votes", "eve", vote("admit", 5), 409, ""},
		{"reopen a block", "/v1/screenings/" + sid + "/reopen", "bo", `{"reason": "please"}`, 409, ""},
		{"appeal without a reason", "/v1/screenings/" + sid + "/appeal", "bo", `{}`, 422, ""},
		{"appeal of another", "/v1/screenings/" + sid + "/appeal", "eve", `{"reason": "unfair"}`, 403, ""},
		{"appeal", "/v1/screenings/" + sid + "/appeal", "bo", `{"reason": "unfair"}`, 200, "blocked"},
		{"appeal again", "/v1/screenings/" + sid + "/appeal", "bo", `{"reason": "unfair"}`, 409, ""},
		{"withdraw the appeal", "/v1/screenings/" + sid + "/withdraw", "bo", `{"reason": "well"}`, 200, "blocked"},
		{"withdraw nothing", "/v1/screenings/" + sid + "/withdraw", "bo", `{"reason": "well"}`, 409, ""},
		{"correction", "/v1/reviews/" + id + "/corrections", "eve", `{"correction_text": "It was synthetic."}`, 201, ""},
		{"no such review", "/v1/reviews/018f0000-0000-7000-8000-000000000000/claim", "chi", ``, 404, ""},
		{"no id", "/v1/reviews/x/claim", "chi", ``, 404, ""},
		{"no such screening", "/v1/screenings/018f0000-0000-7000-8000-000000000000/withdraw", "bo", `{"reason": "r"}`, 404, ""},
	}
	for _, step := range steps {
		var body []byte
		if step.body != "" {
			body = []byte(step.body)
		}
		a := w.do("POST", step.path, step.who, body)
		if a.status != step.status {
			t.Fatalf("%s: status %d, want %d: %s", step.name, a.status, step.status, a.body)
		}
		if step.status >= 400 {
			checkProblem(t, step.name, a)
			continue
		}
		if got := a.text("state") + a.text("status"); step.state != "" && got != step.state {
			t.Errorf("%s: %q, want %q", step.name, got, step.state)
		}
	}
	a := w.do("GET", "/v1/reviews/"+id, "chi", nil)
	if notes, _ := a.get("notes").([]any); len(notes) != 3 || a.text("kind") != "escalation" {
		t.Errorf("the review: %s", a.body)
	}
	if a := w.do("POST", "/v1/gate/check", "bo", spec("r", personal)); a.status != 403 {
		t.Errorf("gate %d", a.status)
	}
}

func TestReopenOverTheWire(t *testing.T) {
	t.Parallel()
	w := reviewing(t, twoOfGeneral)
	s := w.do("POST", "/v1/screenings", "bo", spec("r", personal))
	w.exec(`update review set opened_at = now() - interval '2 hours', due_at = now() - interval '1 hour', expires_at = now() - interval '1 hour'`)
	if a := w.do("POST", "/v1/screenings", "bo", spec("r", personal)); a.status != 409 || !strings.Contains(string(a.body), "review-expired") {
		t.Errorf("submitted again: %d %s", a.status, a.body)
	}
	path := "/v1/screenings/" + s.text("id") + "/reopen"
	reviewer := header("Authorization", "Bearer "+w.key("dee", review.ScopeReview))
	if a := w.do("POST", path, "", []byte(`{"reason": "people were away"}`), reviewer); a.status != 200 || a.text("status") != "pending" || a.text("review", "id") == s.text("review", "id") {
		t.Errorf("reopened: %d %s", a.status, a.body)
	}
	if a := w.do("POST", "/v1/screenings", "bo", spec("r", personal)); a.status != 202 || a.text("id") != s.text("id") {
		t.Errorf("submitted again: %d %s", a.status, a.body)
	}
}

func TestWaiversOverTheWire(t *testing.T) {
	t.Parallel()
	w := reviewing(t, twoOfGeneral)
	s := w.do("POST", "/v1/screenings", "bo", spec("r", personal))
	body := fmt.Sprintf(`{"screening_id": %q, "term": "ethics:personal_data_inside", "reason": "agreed", "ticket": "T-1", "days": 3}`, s.text("id"))
	for name, tt := range map[string]struct {
		who, body string
		status    int
		kind      string
	}{
		"a party":       {"ana", body, 403, "not-allowed"},
		"too long":      {"chi", strings.Replace(body, `: 3`, `: 31`, 1), 422, "invalid"},
		"no ticket":     {"chi", strings.Replace(body, `"T-1"`, `""`, 1), 422, "invalid"},
		"a safety term": {"chi", strings.Replace(body, `ethics:personal_data_inside`, `safety:sexualised_minors`, 1), 409, "floor"},
		"no screening":  {"chi", strings.Replace(body, s.text("id"), "x", 1), 404, "not-found"},
	} {
		if a := w.do("POST", "/v1/waivers", tt.who, []byte(tt.body)); a.status != tt.status || a.text("type") != "urn:weir:problem:"+tt.kind {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	made := w.do("POST", "/v1/waivers", "chi", []byte(body))
	if made.status != 201 || made.get("in_force") != false || made.header.Get("Location") != "/v1/waivers/"+made.text("id") {
		t.Fatalf("%d %s", made.status, made.body)
	}
	confirm := "/v1/waivers/" + made.text("id") + "/confirm"
	if a := w.do("POST", confirm, "chi", nil); a.status != 403 {
		t.Errorf("its author confirms: %d", a.status)
	}
	if a := w.do("POST", "/v1/gate/check", "bo", spec("r", personal)); a.status != 409 {
		t.Errorf("before: %d", a.status)
	}
	if a := w.do("POST", confirm, "dee", nil); a.status != 200 || a.get("in_force") != true || a.text("confirmed_by") != "dee" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := w.do("POST", confirm, "eve", nil); a.status != 409 {
		t.Errorf("twice: %d", a.status)
	}
	if a := w.do("POST", "/v1/gate/check", "bo", spec("r", personal)); a.status != 200 || a.text("admitted_until") == "" {
		t.Errorf("gate %d %s", a.status, a.body)
	}
	if a := w.do("GET", "/v1/screenings/"+s.text("id"), "bo", nil); a.text("status") != "admitted" || a.text("decided_by") != "waiver" {
		t.Errorf("%s", a.body)
	}
	if a := w.do("POST", "/v1/screenings", "bo", spec("r", personal)); a.status != 200 || a.text("status") != "admitted" {
		t.Errorf("submitted again: %d %s", a.status, a.body)
	}
	list := w.do("GET", "/v1/waivers?screening="+s.text("id"), "chi", nil)
	if all, _ := list.get("waivers").([]any); len(all) != 1 {
		t.Errorf("%s", list.body)
	}
	if a := w.do("GET", "/v1/waivers/"+made.text("id"), "chi", nil); a.status != 200 {
		t.Errorf("%d", a.status)
	}
}

// In report mode the gate answers 200 and says what it would do; curl -f passes,
// and no answer looks like an admission.
func TestReportModeOverTheWire(t *testing.T) {
	t.Parallel()
	until := time.Now().UTC().AddDate(0, 0, 30).Format(time.DateOnly)
	w := reviewing(t, twoOfGeneral+"projects: [{id: default, mode: report, until: "+until+"}]\n")
	for name, tt := range map[string]struct {
		changes []string
		status  int
		would   string
		gate    string
	}{
		"admitted":         {nil, 200, "", "admitted"},
		"escalated":        {[]string{personal}, 200, "escalate", "pending"},
		"floor block":      {[]string{minors, sexualised}, 403, "", "blocked"},
		"floor escalation": {[]string{minors, `"minors", "state": "absent" → "minors", "state": "unknown"`}, 200, "escalate", "pending"},
	} {
		raw := spec(strings.ReplaceAll(name, " ", "-"), tt.changes...)
		if s := w.do("POST", "/v1/screenings", "bo", raw); s.text("report_until") != until || s.text("would") != tt.would {
			t.Errorf("%s: %s", name, s.body)
		}
		for path, a := range map[string]answer{"gate/check": w.do("POST", "/v1/gate/check", "bo", raw),
			"gate=true": w.do("POST", "/v1/screenings?gate=true", "bo", raw)} {
			if a.status != tt.status || a.header.Get("X-Weir-Would") != tt.would || a.text("gate") != tt.gate || (a.text("admitted_until") != "") != (tt.gate == "admitted") {
				t.Errorf("%s, %s: %d, would %q: %s", name, path, a.status, a.header.Get("X-Weir-Would"), a.body)
			}
		}
	}
	// Nobody reviewed in time: that stops no run, and is no admission.
	w.exec(`update review set opened_at = now() - interval '2 hours', due_at = now() - interval '1 hour', expires_at = now() - interval '1 hour'`)
	late := spec("escalated", personal)
	for path, want := range map[string]int{"/v1/screenings": 200, "/v1/screenings?gate=true": 200, "/v1/gate/check": 200} {
		if a := w.do("POST", path, "bo", late); a.status != want || a.text("would") != "escalate" || a.text("status")+a.text("gate") != "expired" || a.text("admitted_until") != "" {
			t.Errorf("%s of an expired review: %d %s", path, a.status, a.body)
		}
	}
	if a := w.do("POST", "/v1/screenings", "dee", late); a.status != 409 {
		t.Errorf("of somebody else: %d %s", a.status, a.body)
	}
	if a := w.do("POST", "/v1/screenings?dry_run=true", "bo", spec("dry")); a.text("report_until") != until {
		t.Errorf("dry run: %s", a.body)
	}
	if a := w.do("POST", "/v1/gate/check", "bo", spec("never")); a.status != http.StatusNotFound {
		t.Errorf("never screened: %d", a.status)
	}
}

// The floor's answers over the wire: facts are taken, and kept where they can be read.
func TestFactsOverTheWire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.do("POST", "/v1/screenings", "bo", spec("r", minors, `"minors", "state": "absent" → "minors", "state": "unknown"`))
	path := "/v1/reviews/" + s.text("review", "id")
	vote := func(facts string) answer {
		return w.do("POST", path+"/votes", "chi", []byte(fmt.Sprintf(
			`{"expected_version": 1, "spec_sha256": %q, "vote": "admit", "reason": "asked", "terms": ["safety:sexualised_minors"]%s}`, s.text("spec_sha256"), facts)))
	}
	if a := vote(""); a.status != 409 || a.text("type") != "urn:weir:problem:conflict" {
		t.Errorf("nothing stated: %d %s", a.status, a.body)
	}
	if a := vote(`, "facts": [{"pointer": "/disclosures", "value": {"tag": "minors", "state": "present", "basis": "structured"}}]`); a.status != 409 || a.text("type") != "urn:weir:problem:floor" {
		t.Errorf("a violation stated: %d %s", a.status, a.body)
	}
	if a := vote(`, "facts": [{"pointer": "/owner", "value": "chi"}]`); a.status != 422 {
		t.Errorf("something else stated: %d %s", a.status, a.body)
	}
	if a := vote(`, "facts": [{"pointer": "/disclosures", "value": {"tag": "minors", "state": "absent", "basis": "structured"}}]`); a.status != 200 || a.text("outcome") != "admit" {
		t.Fatalf("upheld: %d %s", a.status, a.body)
	}
	if a := w.do("GET", path, "bo", nil); !strings.Contains(string(a.body), `"facts":[{"pointer":"/disclosures","value":{"tag":"minors","state":"absent","basis":"structured"}}]`) {
		t.Errorf("not shown: %s", a.body)
	}
}
