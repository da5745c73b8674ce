package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/cmd/weir/api"
	"weir/cmd/weir/console"
	"weir/review"
	"weir/screening"
	"weir/store/ledger"
	"weir/webhooks"
)

// Every answer that the OpenAPI document names is given by a real handler, and is
// as the document says. Where this fails for a new route, add requests to one of
// the drive functions below, or a line to the table in operations.go.
func TestOpenAPIEveryAnswer(t *testing.T) {
	t.Parallel()
	key := signingKey(t)
	d := newDriver(t, func(_ *api.Config, g *api.Gate) { g.SigningKeys = []ledger.Signer{key} })
	if err := d.store.Outbox().Declare(t.Context(), []webhooks.Declared{{ID: "legal", Host: "legal.example", Format: webhooks.FormatStandard}}); err != nil {
		t.Fatal(err)
	}
	pages, err := console.New(d.gate.Desk, d.store, d.store, console.Config{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	d.gate.Console = pages
	d.server.Open(d.gate)

	d.driveLogBeforeItBegins()
	d.refuse()
	d.driveScreenings()
	d.driveGate()
	d.driveReviews()
	d.driveWaivers()
	d.driveCorrections()
	d.driveRecalls()
	d.driveRecord(key)
	d.driveErased()
	d.drivePacks()
	d.driveEndpoints()
	d.driveService()
	d.driveFullHouse()

	for _, answer := range d.checker.Unseen() {
		t.Errorf("%s is documented, and nothing here drives it: add a request that gets it to openapi_drive_test.go", answer)
	}
	seen := d.checker.Problems()
	for _, name := range api.ProblemNames() {
		if !seen["urn:weir:problem:"+name] {
			t.Errorf("the problem %s is in the table, and nothing here gets it: add a request that does to openapi_drive_test.go", name)
		}
	}
}

// say asks the world's server with a key that may do all.
func (d *driver) say(want int, method, path, who, body string) answer {
	d.Helper()
	media := "application/json"
	if strings.HasSuffix(strings.Split(path, "?")[0], "/batch") {
		media = "application/x-ndjson"
	}
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
		if want < 300 {
			if err := d.checker.Body(method, path, media, []byte(body)); err != nil {
				d.Errorf("the body was taken, and is not as described: %v", err)
			}
		}
	}
	return d.ask(d.server, want, method, path, d.key(who, review.Scopes...), media, in)
}

func (d *driver) submit(run string, changes ...string) answer {
	d.Helper()
	want := 201
	if slices.Contains(changes, personal) {
		want = 202
	}
	return d.say(want, "POST", "/v1/screenings", "bo", string(spec(run, changes...)))
}

// header is say with one more header.
func (d *driver) header(want int, name, value, method, path, body string) answer {
	d.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+d.key("bo", review.Scopes...))
	req.Header.Set(name, value)
	return d.send(want, d.server, req)
}

// send has a server answer a request.
func (d *driver) send(want int, s *api.Server, req *http.Request) answer {
	d.Helper()
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, req)
	a := answer{rec.Code, rec.Header(), rec.Body.Bytes()}
	if a.status != want {
		d.Errorf("%s %s: status %d, want %d: %s", req.Method, req.URL.Path, a.status, want, a.body)
	}
	checkDescribed(d, d.checker, req.Method, req.URL.Path, a)
	return a
}

// refusing is a store that takes no submission.
type refusing struct {
	review.Store
	err error
}

func (r refusing) Submit(context.Context, *review.Submission) (review.Kept, error) {
	return review.Kept{}, r.err
}

// with is a server whose desk has another store.
func (d *driver) with(st review.Store) *api.Server {
	d.Helper()
	desk, err := review.NewDesk(st, d.gate.Desk.Setup(), review.Config{})
	if err != nil {
		d.Fatal(err)
	}
	s, g := api.New(api.Config{Metrics: api.NewMetrics(), Log: quiet}), d.gate
	g.Desk = desk
	s.Open(g)
	return s
}

func (d *driver) driveScreenings() {
	d.Helper()
	a := d.submit("s/a")
	d.say(200, "POST", "/v1/screenings?dry_run=true&explain=true", "bo", string(spec("s/dry", personal)))
	d.say(202, "POST", "/v1/screenings?explain=true", "bo", string(spec("s/b", personal)))
	d.say(200, "GET", "/v1/screenings?limit=1", "bo", "")
	d.say(200, "GET", "/v1/screenings/"+a.text("id")+"?explain=true", "bo", "")
	d.say(200, "GET", "/v1/screenings/"+a.text("id")+"/spec", "bo", "")
	d.say(409, "POST", "/v1/screenings", "chi", string(spec("s/a", personal)))                 // another's run
	d.header(400, "Idempotency-Key", "a b", "POST", "/v1/screenings", string(spec("s/c")))     // header
	d.header(201, "Idempotency-Key", "one", "POST", "/v1/screenings", string(spec("s/c")))     //
	d.header(200, "Idempotency-Key", "one", "POST", "/v1/screenings", string(spec("s/c")))     // the same again
	d.header(422, "Idempotency-Key", "one", "POST", "/v1/screenings", string(spec("s/other"))) // idempotency-key-reused
	d.say(422, "POST", "/v1/screenings?dry_run=true&gate=true", "bo", string(spec("s/d")))
	for _, err := range []error{review.ErrInFlight, review.ErrReviewExpired} {
		d.ask(d.with(refusing{d.store, err}), 409, "POST", "/v1/screenings", d.key("bo", review.Scopes...), "application/json",
			bytes.NewReader(spec("s/e")))
	}
	line := func(run string, changes ...string) string {
		return strings.ReplaceAll(string(spec(run, changes...)), "\n", "") + "\n"
	}
	d.say(200, "POST", "/v1/screenings/batch", "bo", line("s/f")+line("s/g", personal)+line("s/h", minors, sexualised))
	d.say(200, "POST", "/v1/screenings/batch?dry_run=true", "bo", line("s/f"))
	d.ask(d.server, 200, "POST", "/v1/screenings/batch", d.key("bo", review.Scopes...), "application/x-ndjson", strings.NewReader("{}\n"+line("s/i")))
	batch := func(want int, change func(*http.Request)) {
		d.Helper()
		req := httptest.NewRequest("POST", "/v1/screenings/batch", strings.NewReader(line("s/f")))
		req.Header.Set("Content-Type", "application/jsonl")
		req.Header.Set("Authorization", "Bearer "+d.key("bo", review.Scopes...))
		change(req)
		d.send(want, d.server, req)
	}
	batch(413, func(r *http.Request) { r.ContentLength = 1 << 40 })
	batch(400, func(r *http.Request) { r.Header.Set("Idempotency-Key", "a b") })

	report := `{"id": "018f0000-0000-4000-8000-000000000009", "at": "2026-11-30T10:00:00Z", "reason": "down", "spec": "?"}`
	d.say(201, "POST", "/v1/bypasses", "bo", report)
	d.say(200, "POST", "/v1/bypasses", "bo", report)
	d.say(409, "POST", "/v1/bypasses", "bo", strings.Replace(report, `"?"`, `"!"`, 1))
	d.say(200, "GET", "/v1/bypasses", "bo", "")
}

// driveGate asks for bytes in every state that they can be in.
func (d *driver) driveGate() {
	d.Helper()
	ask := func(want int, raw []byte) answer {
		d.Helper()
		return d.say(want, "POST", "/v1/gate/check", "bo", string(raw))
	}
	d.submit("g/admitted")
	ask(200, spec("g/admitted"))
	d.say(200, "POST", "/v1/screenings?gate=true", "bo", string(spec("g/admitted")))
	blocked := spec("g/blocked", minors, sexualised)
	b := d.say(201, "POST", "/v1/screenings", "bo", string(blocked))
	ask(403, blocked)
	d.say(403, "GET", "/v1/screenings/"+b.text("id")+"/admission", "bo", "")
	d.say(403, "POST", "/v1/screenings?gate=true", "bo", string(blocked))
	// closed asks for what was submitted under a key in every way that there is.
	closed := func(run string, s answer) {
		d.Helper()
		raw := spec(run, personal)
		ask(409, raw)
		d.header(409, "Idempotency-Key", run, "POST", "/v1/screenings?gate=true", string(raw))
		d.say(409, "GET", "/v1/screenings/"+s.text("id")+"/admission", "bo", "")
	}
	open := func(run string) answer {
		d.Helper()
		return d.header(202, "Idempotency-Key", run, "POST", "/v1/screenings", string(spec(run, personal)))
	}
	closed("g/waits", open("g/waits"))
	w := open("g/withdrawn")
	d.say(200, "POST", "/v1/screenings/"+w.text("id")+"/withdraw", "bo", `{"reason": "r"}`)
	closed("g/withdrawn", w)
	replaced := open("g/replaced")
	d.submit("g/replaced")
	closed("g/replaced", replaced)
	late := open("g/late")
	d.late("g/late")
	closed("g/late", late)
	d.say(404, "POST", "/v1/gate/check", "bo", `{"spec_sha256": "`+someSHA+`"}`)

	until := time.Now().UTC().AddDate(0, 0, 30).Format(time.DateOnly)
	reporting, err := review.NewDesk(d.store, with(peopleYAML, policiesYAML+"projects: [{id: default, mode: report, until: "+until+"}]\n")(d.T), review.Config{})
	if err != nil {
		d.Fatal(err)
	}
	s, g := api.New(api.Config{Metrics: api.NewMetrics(), Log: quiet}), d.gate
	g.Desk = reporting
	s.Open(g)
	d.ask(s, 202, "POST", "/v1/screenings", d.key("bo", review.Scopes...), "application/json", bytes.NewReader(spec("g/report", personal)))
	d.ask(s, 200, "POST", "/v1/gate/check", d.key("bo", review.Scopes...), "application/json", bytes.NewReader(spec("g/report", personal)))
}

// late lets the review of a run pass its due time.
func (d *driver) late(run string) {
	d.Helper()
	d.exec(`update review r set opened_at = now() - interval '2 hours', due_at = now() - interval '1 hour', expires_at = now() - interval '1 hour'
		from screening s where s.id = r.screening_id and s.run_ref = $1`, run)
}

// vote is a body that fits a screening's review.
func ballot(s answer, choice string, version int) string {
	return fmt.Sprintf(`{"expected_version": %d, "spec_sha256": %q, "vote": %q, "reason": "r", "terms": ["ethics:personal_data_inside"]}`,
		version, s.text("spec_sha256"), choice)
}

func (d *driver) driveReviews() {
	d.Helper()
	s := d.submit("r/a", personal)
	review, screening := "/v1/reviews/"+s.text("review", "id"), "/v1/screenings/"+s.text("id")
	d.say(200, "GET", "/v1/reviews?all=true", "chi", "")
	d.say(200, "POST", review+"/claim", "chi", `{"expected_version": 1}`)
	d.say(409, "POST", review+"/claim", "dee", "")
	d.say(409, "POST", review+"/release", "dee", "")
	d.say(200, "POST", review+"/release", "chi", "")
	d.say(201, "POST", review+"/comments", "dee", `{"text": "hm"}`)
	d.say(409, "POST", review+"/comments", "dee", `{"expected_version": 9, "text": "hm"}`)
	d.say(409, "POST", review+"/needs-evidence", "dee", `{"expected_version": 9, "note": "whose?"}`)
	d.say(200, "POST", review+"/needs-evidence", "dee", `{"note": "whose?"}`)
	d.say(200, "POST", screening+"/answer", "bo", `{"note": "ours"}`)
	d.say(409, "POST", screening+"/answer", "bo", `{"note": "ours"}`)
	d.say(409, "POST", review+"/votes", "chi", ballot(s, "block", 9))
	d.say(200, "POST", review+"/votes", "chi", ballot(s, "block", 3))
	d.say(200, "GET", review, "chi", "")
	d.say(409, "POST", screening+"/withdraw", "bo", `{"reason": "r"}`)
	d.say(409, "POST", screening+"/reopen", "bo", `{"reason": "r"}`)
	d.say(200, "POST", screening+"/appeal", "bo", `{"reason": "r"}`)
	d.say(409, "POST", screening+"/appeal", "bo", `{"reason": "r"}`)
	d.say(201, "POST", review+"/corrections", "dee", `{"correction_text": "It was synthetic."}`)
	d.say(200, "POST", review+"/corrections", "dee", `{"correction_text": "It was synthetic."}`)
	d.say(409, "POST", review+"/corrections", "dee", `{"correction_text": "It was synthetic.", "expects": {"term": "personal_data_inside", "finding": "upheld"}}`)

	late := d.submit("r/late", personal)
	d.late("r/late")
	d.say(200, "POST", "/v1/screenings/"+late.text("id")+"/reopen", "bo", `{"reason": "r"}`)

	// Somebody else has the run by now.
	blocked, expired := d.submit("r/appealed", personal), d.submit("r/reopened", personal)
	d.say(200, "POST", "/v1/reviews/"+blocked.text("review", "id")+"/votes", "chi", ballot(blocked, "block", 1))
	d.late("r/reopened")
	if _, err := d.store.SweepReviews(d.Context()); err != nil {
		d.Fatal(err)
	}
	for run, way := range map[string]string{"r/appealed": blocked.text("id") + "/appeal", "r/reopened": expired.text("id") + "/reopen"} {
		d.say(201, "POST", "/v1/screenings", "chi", string(spec(run)))
		d.say(409, "POST", "/v1/screenings/"+way, "bo", `{"reason": "r"}`)
	}

	unsure := d.say(202, "POST", "/v1/screenings", "bo", string(spec("r/unsure", minors, `"minors", "state": "absent" → "minors", "state": "unknown"`)))
	d.say(409, "POST", "/v1/reviews/"+unsure.text("review", "id")+"/votes", "chi", fmt.Sprintf(`{"expected_version": 1, "spec_sha256": %q, "vote": "admit",
		"reason": "asked", "terms": ["safety:sexualised_minors"],
		"facts": [{"pointer": "/disclosures", "value": {"tag": "minors", "state": "present", "basis": "structured"}}]}`, unsure.text("spec_sha256")))
	floor := d.say(201, "POST", "/v1/screenings", "bo", string(spec("r/floor", minors, sexualised)))
	d.say(409, "POST", "/v1/screenings/"+floor.text("id")+"/appeal", "bo", `{"reason": "r"}`) // floor
}

func (d *driver) driveWaivers() {
	d.Helper()
	s := d.submit("w/a", personal)
	body := fmt.Sprintf(`{"screening_id": %q, "term": "ethics:personal_data_inside", "reason": "agreed", "ticket": "T-1", "days": 3}`, s.text("id"))
	d.say(409, "POST", "/v1/waivers", "chi", strings.Replace(body, "ethics:personal_data_inside", "safety:sexualised_minors", 1))
	w := d.say(201, "POST", "/v1/waivers", "chi", body)
	d.say(200, "GET", "/v1/waivers", "chi", "")
	d.say(200, "GET", "/v1/waivers/"+w.text("id"), "chi", "")
	d.say(200, "POST", "/v1/waivers/"+w.text("id")+"/confirm", "dee", "{}")
	d.say(409, "POST", "/v1/waivers/"+w.text("id")+"/confirm", "dee", "")
	decided := d.submit("w/b", personal)
	d.say(200, "POST", "/v1/reviews/"+decided.text("review", "id")+"/votes", "chi", ballot(decided, "block", 1))
	d.say(409, "POST", "/v1/waivers", "chi", strings.Replace(body, s.text("id"), decided.text("id"), 1))
	d.say(200, "GET", "/v1/screenings/"+s.text("id"), "bo", "")
}

func (d *driver) driveCorrections() {
	d.Helper()
	s := d.submit("c/a")
	body := fmt.Sprintf(`{"screening_id": %q, "correction_text": "These are company names.", "identity": {"score": {"alignment": 0.9, "flagged": false}}}`, s.text("id"))
	c := d.say(201, "POST", "/v1/corrections", "chi", body)
	d.say(200, "POST", "/v1/corrections", "chi", body)
	d.say(409, "POST", "/v1/corrections", "chi", strings.Replace(body, "0.9", "0.8", 1))
	path := "/v1/corrections/" + c.text("id")
	d.say(200, "POST", path+"/status", "dee", `{"status": "coherent", "reason": "r"}`)
	d.say(409, "POST", path+"/status", "dee", `{"status": "coherent", "reason": "r"}`)
	d.say(200, "GET", path, "dee", "")
	d.say(200, "GET", "/v1/corrections?limit=1", "dee", "")
}

func (d *driver) driveRecalls() {
	d.Helper()
	raw := string(spec("x/a", from("recalled")))
	s := d.header(201, "Idempotency-Key", "x/a", "POST", "/v1/screenings", raw)
	body := `{"sha256": "` + screening.Sum([]byte("recalled")).String() + `", "reason": "abuse"}`
	r := d.say(201, "POST", "/v1/recalls", "chi", body)
	d.say(409, "POST", "/v1/recalls", "chi", body)
	d.say(409, "POST", "/v1/gate/check", "bo", raw) // gate-revoked
	d.header(409, "Idempotency-Key", "x/a", "POST", "/v1/screenings?gate=true", raw)
	d.say(409, "GET", "/v1/screenings/"+s.text("id")+"/admission", "bo", "")
	d.say(200, "GET", "/v1/screenings/"+s.text("id"), "bo", "")
	d.say(200, "POST", "/v1/screenings?dry_run=true", "bo", raw)
	d.say(403, "POST", "/v1/screenings?gate=true", "bo", raw)
	path := "/v1/recalls/" + r.text("id")
	d.say(200, "GET", "/v1/recalls?live=true&limit=1", "ana", "")
	d.say(200, "GET", path+"?limit=1", "ana", "")
	d.say(200, "POST", path+"/lift", "chi", `{"reason": "another was meant"}`)
	d.say(409, "POST", path+"/lift", "chi", `{"reason": "another was meant"}`)
	d.say(200, "GET", path, "ana", "")
}

// driveLogBeforeItBegins: nothing is in the log yet.
func (d *driver) driveLogBeforeItBegins() {
	d.Helper()
	s := d.submit("l/a")
	d.say(404, "GET", "/v1/audit/checkpoint", "ana", "")
	d.say(503, "GET", "/v1/audit/proof?screening="+s.text("id"), "ana", "")
	d.say(503, "GET", "/v1/screenings/"+s.text("id")+"/admission", "bo", "")
}

func (d *driver) driveRecord(key ledger.Key) {
	d.Helper()
	s := d.submit("l/b")
	for {
		n, err := d.store.Sequence(d.Context(), 1000, key)
		if err != nil {
			d.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	d.say(200, "GET", "/v1/audit/checkpoint", "ana", "")
	d.say(404, "GET", "/v1/audit/checkpoint?cosigned=true", "ana", "")
	d.say(200, "GET", "/v1/audit/entries?limit=500", "ana", "")
	d.say(200, "GET", "/v1/audit/proof?screening="+s.text("id"), "ana", "")
	d.say(200, "GET", "/v1/audit/proof?size=3&old=2", "ana", "")
	d.say(200, "GET", "/v1/screenings/"+s.text("id")+"/admission", "bo", "")
	d.say(200, "GET", "/v1/admissions/revoked", "bo", "")
	for _, format := range []string{"bundle", "ndjson", "csv", "parquet"} {
		d.say(200, "GET", "/v1/exports?format="+format, "ana", "")
	}
	unsigned, g := api.New(api.Config{Metrics: api.NewMetrics(), Log: quiet}), d.gate
	g.SigningKeys = nil
	unsigned.Open(g)
	for _, path := range []string{"/v1/exports", "/v1/admissions/revoked", "/v1/screenings/" + s.text("id") + "/admission"} {
		d.ask(unsigned, 409, "GET", path, d.key("ana", review.Scopes...), "", nil)
	}
}

// driveErased: bytes that are gone.
func (d *driver) driveErased() {
	d.Helper()
	s := d.submit("e/a", personal)
	erase := fmt.Sprintf(`{"screening": %q, "reason": "they asked"}`, s.text("id"))
	d.say(409, "POST", "/v1/erasures", "ana", erase)
	d.say(200, "POST", "/v1/reviews/"+s.text("review", "id")+"/votes", "chi", ballot(s, "block", 1))
	d.say(201, "POST", "/v1/erasures", "ana", erase)
	path := "/v1/screenings/" + s.text("id")
	d.say(200, "GET", path+"?explain=true", "bo", "")
	d.say(410, "GET", path+"/spec", "bo", "")
	d.say(410, "POST", path+"/appeal", "bo", `{"reason": "r"}`)
	d.say(410, "POST", path+"/reopen", "bo", `{"reason": "r"}`)
	d.say(410, "POST", "/v1/corrections", "chi", fmt.Sprintf(`{"screening_id": %q, "correction_text": "t"}`, s.text("id")))
	d.say(410, "POST", "/v1/waivers", "chi", fmt.Sprintf(`{"screening_id": %q, "term": "ethics:personal_data_inside", "reason": "r", "ticket": "t", "days": 1}`, s.text("id")))

	// An admission whose bytes are gone: nothing makes one, and nothing relies on that.
	gone := d.header(201, "Idempotency-Key", "e/b", "POST", "/v1/screenings", string(spec("e/b")))
	d.exec(`update screening set created_at = created_at - interval '1 hour', admitted_until = now() - interval '1 minute' where id = $1`, gone.text("id"))
	d.say(201, "POST", "/v1/erasures", "ana", fmt.Sprintf(`{"screening": %q, "reason": "they asked"}`, gone.text("id")))
	d.exec(`update screening set admitted_until = now() + interval '1 hour' where id = $1`, gone.text("id"))
	d.say(409, "POST", "/v1/gate/check", "bo", string(spec("e/b")))
	d.header(409, "Idempotency-Key", "e/b", "POST", "/v1/screenings?gate=true", string(spec("e/b")))
	d.say(410, "GET", "/v1/screenings/"+gone.text("id")+"/admission", "bo", "")
}

func (d *driver) drivePacks() {
	d.Helper()
	d.say(200, "GET", "/v1/packs", "bo", "")
	d.say(200, "GET", "/v1/packs/pledge", "bo", "")
	d.settle()
	d.say(200, "POST", "/v1/packs/replay", "ana", `{"packs": [`+stricter+`], "since": "2020-01-01", "limit": 500}`)
	d.say(200, "GET", "/v1/admissions/drift?limit=500", "ana", "")
}

func (d *driver) driveEndpoints() {
	d.Helper()
	d.tell("legal", 2)
	one, other := d.attempt("legal", 500, webhooks.Outcome{State: webhooks.StateDead}), d.attempt("legal", 500, webhooks.Outcome{State: webhooks.StateDead})
	path := "/v1/deliveries/" + one.ID
	d.say(200, "GET", "/v1/endpoints", "chi", "")
	d.say(200, "GET", "/v1/deliveries?limit=1", "chi", "")
	d.say(200, "GET", path, "chi", "")
	d.say(202, "POST", path+"/redeliver", "chi", "")
	d.exec(`update delivery set state = 'delivering', claim = gen_random_uuid(), lease_until = now() + interval '1 hour' where id = $1`, one.ID)
	d.say(409, "POST", path+"/redeliver", "chi", "") // under-way
	d.say(202, "POST", "/v1/endpoints/legal/redeliver", "chi", `{"since": "2026-11-01T00:00:00Z"}`)
	d.say(202, "POST", "/v1/endpoints/legal/ping", "chi", "")
	d.say(200, "POST", "/v1/endpoints/legal/disable", "chi", `{"reason": "r"}`)
	d.say(409, "POST", "/v1/endpoints/legal/redeliver", "chi", `{"since": "2026-11-01T00:00:00Z"}`)
	d.say(409, "POST", "/v1/deliveries/"+other.ID+"/redeliver", "chi", "")
	d.say(200, "GET", "/v1/endpoints/legal", "chi", "")
	d.say(200, "POST", "/v1/endpoints/legal/enable", "chi", `{"reason": "r"}`)
}

// driveService: what anybody may ask.
func (d *driver) driveService() {
	d.Helper()
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/openapi.json", "/openapi", "/schemas/spec.v1.json"} {
		d.ask(d.server, 200, "GET", path, "", "", nil)
	}
	d.ask(d.server, 404, "GET", "/v1/nothing", "", "", nil) // http
	form := func(want int, path string, values url.Values, cookies ...*http.Cookie) answer {
		req := httptest.NewRequest("POST", path, strings.NewReader(values.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.RemoteAddr, req.Host = "127.0.0.1:1", "127.0.0.1"
		for _, c := range cookies {
			req.AddCookie(c)
		}
		return d.send(want, d.server, req)
	}
	form(401, "/console/login", nil)
	in := form(303, "/console/login", url.Values{"key": {d.key("chi", review.ScopeReview)}})
	cookies := (&http.Response{Header: in.header}).Cookies()
	get := func(want int, path string, cookies ...*http.Cookie) answer {
		req := httptest.NewRequest("GET", path, nil)
		req.RemoteAddr, req.Host = "127.0.0.1:1", "127.0.0.1"
		for _, c := range cookies {
			req.AddCookie(c)
		}
		return d.send(want, d.server, req)
	}
	get(303, "/console")
	get(303, "/console/reviews")
	get(404, "/console/nothing", cookies...)
	get(200, "/console/reviews", cookies...)
	s := d.submit("v/a")
	form(200, "/console/screenings/"+s.text("id")+"/excerpts", nil, cookies...)
}

// driveFullHouse: one request takes the only place, and every other route is asked.
func (d *driver) driveFullHouse() {
	d.Helper()
	entered, leave := make(chan struct{}), make(chan struct{})
	full := api.New(api.Config{Metrics: api.NewMetrics(), Log: quiet, InFlight: 1, Waiting: 1})
	g := d.gate
	g.Keys = keysFunc(func(context.Context) (review.Principal, error) {
		entered <- struct{}{}
		<-leave
		return review.Principal{}, review.ErrUnavailable
	})
	full.Open(g)
	key := d.key("bo", review.Scopes...)
	var first, rest sync.WaitGroup
	first.Go(func() { d.ask(full, 503, "GET", "/v1/packs", key, "", nil) })
	<-entered
	for _, op := range d.checker.Operations() {
		method, template, _ := strings.Cut(op, " ")
		if path := strings.NewReplacer("{id}", nowhere, "{page}", "reviews").Replace(template); d.checker.Operation(op)["security"] != nil || strings.HasPrefix(path, "/console") {
			rest.Go(func() { d.ask(full, 503, method, path, key, "", nil) })
		}
	}
	rest.Wait()
	close(leave)
	first.Wait()
}
