package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"weir/review"
	"weir/screening"
)

func vote(w *world, who string, s answer, choice string) answer {
	w.Helper()
	return w.do("POST", "/v1/reviews/"+s.text("review", "id")+"/votes", who, fmt.Appendf(nil,
		`{"expected_version": 1, "spec_sha256": %q, "vote": %q, "reason": "looked", "terms": ["ethics:personal_data_inside"]}`,
		s.text("spec_sha256"), choice))
}

// The codes of a submission, and of the gate in every state a screening can be in.
func TestCodes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		spec     []byte
		then     func(w *world, s answer) // what happens after the submission
		submit   int
		gate     int
		status   string // problem's gate, "" when open
		retry    bool   // the gate says when to ask again
		resubmit int    // without gate=true
	}{
		{name: "admit", spec: spec("r"), submit: 201, gate: 200, resubmit: 201},
		{name: "block", spec: spec("r", sexualised, minors), submit: 201, gate: 403, status: "blocked", resubmit: 201},
		{name: "escalate", spec: spec("r", personal), submit: 202, gate: 409, status: "pending", retry: true, resubmit: 202},
		{name: "admitted by people", spec: spec("r", personal), submit: 202, gate: 200, resubmit: 200,
			then: func(w *world, s answer) { vote(w, "chi", s, "admit") }},
		{name: "blocked by people", spec: spec("r", personal), submit: 202, gate: 403, status: "blocked", resubmit: 200,
			then: func(w *world, s answer) { vote(w, "chi", s, "block") }},
		{name: "overdue", spec: spec("r", personal), submit: 202, gate: 409, status: "expired", resubmit: 409,
			then: func(w *world, _ answer) {
				w.exec(`update review set opened_at = now() - interval '2 hours', due_at = now() - interval '1 hour', expires_at = now() - interval '1 hour'`)
			}},
		{name: "overdue and swept", spec: spec("r", personal), submit: 202, gate: 409, status: "expired", resubmit: 409,
			then: func(w *world, _ answer) {
				w.exec(`update review set opened_at = now() - interval '2 hours', due_at = now() - interval '1 hour', expires_at = now() - interval '1 hour'`)
				if _, err := w.gate.Desk.Expire(w.Context()); err != nil {
					w.Error(err)
				}
			}},
		{name: "admission over", spec: spec("r"), submit: 201, gate: 409, status: "expired", resubmit: 201,
			then: func(w *world, _ answer) {
				w.exec(`update screening set admitted_until = now() - interval '1 second'`)
			}},
		{name: "superseded", spec: spec("r"), submit: 201, gate: 409, status: "superseded", resubmit: 201,
			then: func(w *world, _ answer) { w.do("POST", "/v1/screenings", "bo", spec("r", `"ana" → "chi"`)) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			key := header("Idempotency-Key", "first")
			s := w.do("POST", "/v1/screenings", "bo", tt.spec, key)
			if s.status != tt.submit || s.header.Get("Location") != "/v1/screenings/"+s.text("id") {
				t.Fatalf("submit: status %d, Location %q: %s", s.status, s.header.Get("Location"), s.body)
			}
			if tt.submit == 202 && (s.header.Get("Retry-After") == "" || s.text("review", "due_at") == "") {
				t.Errorf("escalated without review and Retry-After: %v %s", s.header, s.body)
			}
			if tt.then != nil {
				tt.then(w, s)
			}
			digest := fmt.Appendf(nil, `{"spec_sha256": %q}`, s.text("spec_sha256"))
			asked := map[string]answer{
				"gate/check with the bytes":  w.do("POST", "/v1/gate/check", "bo", tt.spec),
				"gate/check with the digest": w.do("POST", "/v1/gate/check", "bo", digest),
				"gate=true on the same key":  w.do("POST", "/v1/screenings?gate=true", "bo", tt.spec, key),
			}
			for how, a := range asked {
				if a.status != tt.gate || a.text("gate") != tt.status && tt.status != "" || (a.header.Get("Retry-After") != "") != tt.retry {
					t.Errorf("%s: status %d, gate %q, Retry-After %q; want %d %q: %s", how, a.status, a.text("gate"), a.header.Get("Retry-After"), tt.gate, tt.status, a.body)
				}
				switch {
				case a.status != 200:
					checkProblem(t, how, a)
				case a.text("screening") != s.text("id") || a.text("admitted_until") == "" || a.text("gate") != "admitted":
					t.Errorf("%s: %s", how, a.body)
				}
				if a.status >= 200 && a.status < 400 && a.status != 200 {
					t.Errorf("%s: status %d passes curl -f", how, a.status)
				}
			}
			if a := w.do("POST", "/v1/screenings", "bo", tt.spec); a.status != tt.resubmit {
				t.Errorf("submitted again: status %d, want %d: %s", a.status, tt.resubmit, a.body)
			}
		})
	}
}

// gate=true never answers better than gate/check would, also when the replayed
// key names a screening that is not the latest of these bytes.
func TestGateOfAReplayedKeyIsTheGateOfNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.do("POST", "/v1/screenings?gate=true", "bo", spec("r"), header("Idempotency-Key", "k"))
	if s.status != 200 {
		t.Fatalf("status %d: %s", s.status, s.body)
	}
	// The same bytes were screened again later, by stricter packs.
	w.exec(`insert into screening (id, project, spec_sha256, canonical_sha256, run_ref, team, submitter, owner, on_behalf_of, as_of,
			engine, outcome, decision_sha256, packs_sha256, findings_sha256, status, decided_by, created_at)
		select gen_random_uuid(), project, spec_sha256, canonical_sha256, run_ref, team, submitter, owner, on_behalf_of, as_of,
			engine, 'block', decision_sha256, packs_sha256, findings_sha256, 'blocked', 'packs', created_at + interval '1 second' from screening`)
	check := w.do("POST", "/v1/gate/check", "bo", spec("r"))
	replay := w.do("POST", "/v1/screenings?gate=true", "bo", spec("r"), header("Idempotency-Key", "k"))
	if check.status != 403 || replay.status != 403 {
		t.Errorf("gate/check %d, replayed key %d, want 403 of both: %s", check.status, replay.status, replay.body)
	}
}

func TestGateCheckOfWhatWasNeverScreened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do("POST", "/v1/screenings", "bo", spec("r"))
	tests := []struct {
		name   string
		body   []byte
		status int
	}{
		{"other bytes", spec("other"), 404},
		{"one space more", append(spec("r"), ' '), 404},
		{"a spec shorter than a digest", []byte(`{"a": 1}`), 404},
		{"no document at all", []byte("\xff\xfe\x00"), 404},
		{"nothing", []byte{}, 404},
		{"unknown digest", []byte(`{"spec_sha256": "` + strings.Repeat("0", 64) + `"}`), 404},
		{"digest in capitals", []byte(`{"spec_sha256": "` + strings.Repeat("A", 64) + `"}`), 422},
		{"digest as a number", []byte(`{"spec_sha256": 7}`), 422},
		{"null digest", []byte(`{"spec_sha256": null}`), 422},
		{"digest twice", []byte(`{"spec_sha256": "a", "spec_sha256": "b"}`), 400},
		{"digest and more", []byte(`{"spec_sha256": "` + strings.Repeat("0", 64) + `", "admit": true}`), 422},
		{"larger than 1 MiB", make([]byte, 1<<20+1), 413},
	}
	for _, tt := range tests {
		a := w.do("POST", "/v1/gate/check", "bo", tt.body)
		if a.status != tt.status {
			t.Errorf("%s: status %d, want %d: %s", tt.name, a.status, tt.status, a.body)
		}
		checkProblem(t, tt.name, a)
	}
	if n := w.count("screening"); n != 1 {
		t.Errorf("%d screenings: a question stored something", n)
	}
}

func TestDryRunStoresNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, raw := range map[string][]byte{"admit": spec("r"), "escalate": spec("r", personal), "block": spec("r", sexualised, minors)} {
		a := w.do("POST", "/v1/screenings?dry_run=true", "bo", raw, header("Idempotency-Key", "k"))
		if a.status != 200 || a.get("dry_run") != true || a.text("decision", "outcome") != name || a.header.Get("Location") != "" {
			t.Errorf("%s: status %d: %s", name, a.status, a.body)
		}
		if g := w.do("POST", "/v1/gate/check", "bo", raw); g.status != 404 {
			t.Errorf("%s: the gate answers %d after a dry run", name, g.status)
		}
	}
	a := w.do("POST", "/v1/screenings?dry_run=true&gate=true", "bo", spec("r"))
	if a.status != 422 || a.text("type") != "urn:weir:problem:dry-run-gate" {
		t.Errorf("dry_run with gate: status %d: %s", a.status, a.body)
	}
	w.nothingStored("after dry runs")
}

// What would change each finding is told to whoever asks, and stored nowhere.
func TestExplained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := spec("r", personal)
	flips := func(why string, a answer) {
		t.Helper()
		list, _ := a.get("explanation", "flips").([]any)
		for _, f := range list {
			f := f.(map[string]any)
			if changes, _ := f["changes"].([]any); f["term"] == "ethics:personal_data_inside" && len(changes) == 1 {
				c := changes[0].(map[string]any)
				if c["do"] == "replace" && c["fact"] == "tag.personal_data" && c["from"] == "present" {
					return
				}
			}
		}
		t.Errorf("%s: status %d: %s", why, a.status, a.body)
	}
	flips("dry run", w.do("POST", "/v1/screenings?dry_run=true&explain=true", "bo", raw))
	w.nothingStored("after a dry run")
	a := w.do("POST", "/v1/screenings?explain=true", "bo", raw)
	flips("submit", a)
	path := "/v1/screenings/" + a.text("id")
	flips("read", w.do("GET", path+"?explain=true", "bo", nil))
	if a := w.do("GET", path, "bo", nil); a.status != 200 || a.get("explanation") != nil || strings.Contains(string(a.body), "flips") {
		t.Errorf("not asked for: %s", a.body)
	}
	for _, bad := range []answer{w.do("GET", path+"?explain=true&wait=1s", "bo", nil), w.do("GET", path+"?explain=yes", "bo", nil),
		w.do("POST", "/v1/screenings?explain=true&gate=true", "bo", raw)} {
		if bad.status/100 != 4 {
			t.Errorf("status %d: %s", bad.status, bad.body)
		}
	}
	// Kept with other packs: nothing is said rather than something that may be wrong.
	w.exec(`ALTER TABLE screening DISABLE TRIGGER USER`)
	w.exec(`UPDATE screening SET as_of = as_of - 1`)
	if a := w.do("GET", path+"?explain=true", "bo", nil); a.status != 200 || a.text("explanation", "unavailable") == "" || a.get("explanation", "flips") != nil {
		t.Errorf("another decision: status %d: %s", a.status, a.body)
	}
}

// A parameter that would be overlooked is refused: "?gat=true" must not turn
// a closed gate into a 202.
func TestQueries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const id = "/v1/screenings/018f0000-0000-7000-8000-000000000000"
	for _, q := range []string{"gat=true", "Gate=true", "gate=TRUE", "gate=1", "gate=yes", "gate=true&gate=false", "gate=false&gate=true", "gate=true;dry_run=false",
		"gate=%zz", "gate=true%00", "dry_run=1", "wait=30s", "%67ate2=true", "gate", "gate="} {
		a := w.do("POST", "/v1/screenings?"+q, "bo", spec("r", personal))
		if q == "gate" || q == "gate=" { // no value: as if it was not there
			continue
		}
		if a.status != 400 {
			t.Errorf("POST ?%s: status %d, want 400: %s", q, a.status, a.body)
		}
	}
	cursor := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, p := range []string{
		"/v1/screenings?limit=0", "/v1/screenings?limit=501", "/v1/screenings?limit=-1", "/v1/screenings?limit=1e2", "/v1/screenings?limit=99999999999999999999",
		"/v1/screenings?cursor=garbage", "/v1/screenings?cursor=!!!", "/v1/screenings?cursor=" + cursor("x"),
		"/v1/screenings?cursor=" + cursor("2026-01-02T00:00:00Z not-a-uuid"), "/v1/screenings?cursor=" + cursor("2026-99-02T00:00:00Z 018f0000-0000-7000-8000-000000000000"),
		"/v1/screenings?cursor=" + cursor("018f0000-0000-7000-8000-000000000000"), "/v1/screenings?cursor=" + cursor("'; drop table screening -- 018f0000-0000-7000-8000-000000000000"),
		"/v1/screenings?status=nonsense", "/v1/screenings?status=Admitted", "/v1/screenings?run_ref=%00", "/v1/screenings?run_ref=%ff", "/v1/screenings?submitter=ana",
		"/v1/reviews?all=maybe", "/v1/reviews?cursor=garbage", "/v1/reviews?limit=0", "/v1/packs?x=1",
		id + "?wait=61s", id + "?wait=-1s", id + "?wait=30", id + "?wait=forever", id + "?wait=1h", id + "?wait=1s&wait=2s", id + "?Wait=1s",
	} {
		a := w.do("GET", p, "bo", nil)
		if a.status != 400 {
			t.Errorf("GET %s: status %d, want 400: %s", p, a.status, a.body)
			continue
		}
		checkProblem(t, p, a)
	}
	for _, p := range []string{"/v1/screenings/x", "/v1/screenings/%00", "/v1/screenings/018f0000-0000-7000-8000-00000000000g", id, id + "?wait=0s",
		id + "/spec", "/v1/reviews/x", "/v1/packs/nothing", "/v1/packs/%ff"} {
		if a := w.do("GET", p, "bo", nil); a.status != 404 {
			t.Errorf("GET %s: status %d, want 404: %s", p, a.status, a.body)
		}
	}
	if a := w.do("GET", "/v1/screenings?cursor="+cursor("0000-01-01T00:00:00Z 018f0000-0000-7000-8000-000000000000"), "bo", nil); a.status != 200 {
		t.Errorf("a cursor of long ago: status %d: %s", a.status, a.body)
	}
}

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, key := range map[string]string{"empty": "", "space": " ", "inner space": "a b", "256 characters": strings.Repeat("k", 256),
		"6 KB": strings.Repeat("k", 6<<10), "not ASCII": "schlüssel", "control": "a\tb", "DEL": "a\x7fb"} {
		a, err := w.try("POST", "/v1/screenings", "bo", spec("r"), header("Idempotency-Key", key))
		if err != nil { // Go's own client refuses to send some of them
			continue
		}
		if a.status != 400 {
			t.Errorf("%s: status %d, want 400: %s", name, a.status, a.body)
		}
	}
	a := w.do("POST", "/v1/screenings", "bo", spec("r"), func(r *http.Request) { r.Header["Idempotency-Key"] = []string{"a", "b"} })
	if a.status != 400 {
		t.Errorf("two keys: status %d: %s", a.status, a.body)
	}
	w.nothingStored("with bad keys")

	long := header("Idempotency-Key", strings.Repeat("k", 255))
	first := w.do("POST", "/v1/screenings", "bo", spec("r"), long)
	again := w.do("POST", "/v1/screenings", "bo", spec("r"), long)
	if first.status != 201 || again.status != 200 || again.text("id") != first.text("id") {
		t.Errorf("first %d %s, again %d %s", first.status, first.text("id"), again.status, again.text("id"))
	}
	if a := w.do("POST", "/v1/screenings", "bo", spec("other"), long); a.status != 422 || a.text("type") != "urn:weir:problem:idempotency-key-reused" {
		t.Errorf("other body: status %d: %s", a.status, a.body)
	}
	if a := w.do("POST", "/v1/screenings", "chi", spec("chis"), long); a.status != 201 {
		t.Errorf("another principal: status %d: %s", a.status, a.body)
	}
	// A bad body does not use the key up.
	k2 := header("Idempotency-Key", "k2")
	if a := w.do("POST", "/v1/screenings", "bo", []byte("{}"), k2); a.status != 422 {
		t.Errorf("bad body: status %d", a.status)
	}
	if a := w.do("POST", "/v1/screenings", "bo", spec("k2"), k2); a.status != 201 {
		t.Errorf("after a bad body: status %d: %s", a.status, a.body)
	}
}

func TestFiftyParallelPostsAreOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.key("bo", review.ScopeSubmit, review.ScopeReview)
	answers := make([]answer, 50)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			for { // in flight and busy mean: again
				a := w.do("POST", "/v1/screenings", "bo", spec("r", personal), header("Idempotency-Key", "k"))
				if answers[i] = a; a.status != 409 && a.status != 503 {
					return
				}
			}
		})
	}
	all.Wait()
	for _, a := range answers {
		if a.status != 202 || a.text("id") != answers[0].text("id") || string(a.body) != string(answers[0].body) {
			t.Errorf("status %d: %s", a.status, a.body)
		}
	}
	for table, want := range map[string]int{"screening": 1, "review": 1, "audit_event": 1, "idempotency": 1} {
		if n := w.count(table); n != want {
			t.Errorf("%d rows in %s, want %d", n, table, want)
		}
	}
}

func TestRunRefOfSomebodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do("POST", "/v1/screenings", "bo", spec("r"))
	a := w.do("POST", "/v1/screenings", "chi", spec("r", `"ana" → "dee"`))
	if a.status != 409 || a.text("type") != "urn:weir:problem:run-ref-taken" {
		t.Errorf("status %d: %s", a.status, a.body)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 7
	for i := range n {
		w.do("POST", "/v1/screenings", "bo", spec(fmt.Sprintf("r%d", i), personal))
	}
	w.exec(`update screening set created_at = '2026-01-02 03:04:05.678901+00'`)
	w.exec(`update review set opened_at = '2026-01-02 03:04:05.678901+00'`)
	for path, list := range map[string]string{"/v1/screenings?status=pending": "screenings", "/v1/reviews?all=false": "reviews", "/v1/reviews?all=true": "reviews"} {
		seen, next := map[string]bool{}, ""
		for pages := 0; ; pages++ {
			a := w.do("GET", path+"&limit=2"+next, "bo", nil)
			rows, _ := a.get(list).([]any)
			for _, r := range rows {
				seen[r.(map[string]any)["id"].(string)] = true
			}
			if a.text("next") == "" {
				break
			}
			if next = "&cursor=" + a.text("next"); pages > n {
				t.Fatalf("%s: pages without end", path)
			}
		}
		if len(seen) != n {
			t.Errorf("%s: %d rows over all pages, want %d", path, len(seen), n)
		}
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.do("POST", "/v1/screenings", "bo", spec("r", personal))
	path := "/v1/screenings/" + s.text("id")
	if a := w.do("GET", path+"?wait=1ms", "bo", nil); a.status != 200 || a.text("status") != "pending" {
		t.Errorf("a wait that times out: status %d: %s", a.status, a.body)
	}
	done := make(chan answer)
	go func() {
		a, err := w.try("GET", path+"?wait=60s", "bo", nil)
		if err != nil {
			t.Error(err)
		}
		done <- a
	}()
	vote(w, "chi", s, "admit")
	if a := <-done; a.status != 200 || a.text("status") != "admitted" || a.text("decided_by") != "people" {
		t.Errorf("a wait that ends with the decision: status %d: %s", a.status, a.body)
	}
	if a := w.do("GET", path+"?wait=60s", "bo", nil); a.text("status") != "admitted" {
		t.Errorf("a wait for what is decided: %s", a.body)
	}
}

func TestPacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.do("GET", "/v1/packs", "bo", nil)
	if packs, _ := a.get("packs").([]any); a.status != 200 || len(packs) != 2 || a.get("unratified") != false || a.get("engine") != screening.EngineVersion {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	a = w.do("GET", "/v1/packs/pledge", "bo", nil)
	if terms, _ := a.get("terms").([]any); len(terms) != 2 || len(a.text("sha256")) != 64 {
		t.Errorf("one pack: %s", a.body)
	}
}

// A variable that a script forgot to set must not turn the gate into a 2xx, nor a dry run into a stored row.
func TestEmptyParametersAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, query := range []string{"?gate", "?gate=", "?dry_run", "?dry_run=", "?gate=True", "?gate=1"} {
		if a := w.do("POST", "/v1/screenings"+query, "bo", spec("r")); a.status != 400 {
			t.Errorf("%s: %d, want 400", query, a.status)
		}
	}
	w.nothingStored("a parameter without a value")
}
