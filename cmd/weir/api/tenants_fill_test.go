package api_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"weir/review"
	"weir/screening"
	"weir/store"
	"weir/webhooks"
)

// thing is what a project has, as far as a request can name it. A sample stands for
// those of its kind where not each is worth a request.
type thing struct {
	id, specSHA256, run, version string
	sample                       bool
}

// tenant is a project with one of everything.
type tenant struct {
	*driver
	project string
	word    string // in every spec
	said    string // in every text that its people wrote
	keys    map[string]string
	cookie  *http.Cookie // of the console

	specs  [][]byte
	things []thing
}

// key gives a token of a person; no scopes: one for all of them.
func (p *tenant) key(person string, scopes ...review.Scope) string {
	p.Helper()
	if scopes == nil {
		scopes = review.Scopes
	}
	id := fmt.Sprint(person, scopes)
	if p.keys[id] == "" {
		p.keys[id] = newKey(p, p.store, store.NewKey{Project: p.project, Subject: person, Scopes: scopes})
	}
	return p.keys[id]
}

// say asks as somebody of the project; TEXT in the body is what its people write.
func (p *tenant) say(want int, method, path, who, body string) answer {
	p.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(strings.ReplaceAll(body, "TEXT", p.said))
	}
	return p.ask(p.server, want, method, path, p.key(who), "application/json", in)
}

// submit screens a spec of bo's with its run as the idempotency key.
func (p *tenant) submit(want int, run string, changes ...string) answer {
	p.Helper()
	raw := spec(p.word+"/"+run, append(changes, `"owner": "ana" → "owner": "ana", "team": "`+p.word+`"`,
		`"kind": "sft" → "kind": "sft", "purpose": "`+p.word+` for `+run+`"`)...)
	req := httptest.NewRequest("POST", "/v1/screenings", bytes.NewReader(raw))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+p.key("bo"))
	req.Header.Set("Idempotency-Key", p.word+"/"+run)
	a := p.send(want, p.server, req)
	p.specs = append(p.specs, raw)
	of := thing{id: a.text("id"), specSHA256: screening.Sum(raw).String(), run: p.word + "/" + run, sample: run == "admitted" || run == "open"}
	p.things = append(p.things, of)
	if of.id = a.text("review", "id"); of.id != "" {
		p.things = append(p.things, of)
	}
	return a
}

// made keeps the id of what an answer is about.
func (p *tenant) made(a answer) answer { p.keep(a.text("id")); return a }

func (p *tenant) keep(ids ...string) {
	for _, id := range ids {
		p.things = append(p.things, thing{id: id, sample: true})
	}
}

// furnish makes a project with everything that a route can show or change. The
// endpoints legal and chat must be declared.
func (d *driver) furnish(project, word, said string) *tenant {
	d.Helper()
	p := &tenant{driver: d, project: project, word: word, said: said, keys: map[string]string{}}
	of := func(a answer) string { return "/v1/reviews/" + a.text("review", "id") }
	vote := func(a answer, choice string, version int) {
		d.Helper()
		p.say(200, "POST", of(a)+"/votes", "chi", strings.Replace(ballot(a, choice, version), `"reason": "r"`, `"reason": "TEXT"`, 1))
	}
	waiver := func(a answer) answer {
		d.Helper()
		return p.made(p.say(201, "POST", "/v1/waivers", "chi", fmt.Sprintf(`{"screening_id": %q, "term": "ethics:personal_data_inside",
			"reason": "TEXT", "ticket": "TEXT-1", "days": 3}`, a.text("id"))))
	}
	correct := func(a answer) answer {
		d.Helper()
		return p.made(p.say(201, "POST", "/v1/corrections", "chi", fmt.Sprintf(`{"screening_id": %q, "correction_text": "The TEXT was removed."}`, a.text("id"))))
	}

	p.submit(201, "admitted")
	p.submit(201, "floor", minors, sexualised)
	p.submit(201, "drifting", `{"tag": "minors" → {"tag": "biometric", "state": "present", "basis": "structured"}, {"tag": "minors"`)
	open := p.submit(202, "open", personal)
	p.say(201, "POST", of(open)+"/comments", "dee", `{"text": "TEXT"}`)
	p.say(200, "POST", of(open)+"/needs-evidence", "dee", `{"note": "TEXT"}`)
	p.say(200, "POST", "/v1/screenings/"+open.text("id")+"/answer", "bo", `{"note": "TEXT"}`)
	waiver(open)
	asked := p.submit(202, "asked", personal)
	p.say(200, "POST", of(asked)+"/needs-evidence", "dee", `{"note": "TEXT"}`)
	waived := p.submit(202, "waived", personal)
	p.say(200, "POST", "/v1/waivers/"+waiver(waived).text("id")+"/confirm", "dee", "")
	p.submit(202, "withdrawing", personal)
	blocked := p.submit(202, "blocked", personal)
	vote(blocked, "block", 1)
	correct(blocked)
	p.say(200, "POST", "/v1/corrections/"+correct(p.submit(201, "corrected")).text("id")+"/status", "dee", `{"status": "coherent", "reason": "TEXT"}`)
	appealed := p.submit(202, "appealed", personal)
	vote(appealed, "block", 1)
	p.say(200, "POST", "/v1/screenings/"+appealed.text("id")+"/appeal", "bo", `{"reason": "TEXT"}`)
	vote(p.submit(202, "voted", personal), "admit", 1)
	withdrawn := p.submit(202, "withdrawn", personal)
	p.say(200, "POST", "/v1/screenings/"+withdrawn.text("id")+"/withdraw", "bo", `{"reason": "TEXT"}`)
	late := p.submit(202, "late", personal)
	d.late(late.text("run_ref"))
	if _, err := d.store.SweepReviews(d.Context()); err != nil {
		d.Fatal(err)
	}
	p.submit(201, "recalled", from(word))
	p.made(p.say(201, "POST", "/v1/recalls", "chi", `{"sha256": "`+screening.Sum([]byte(word)).String()+`", "reason": "TEXT"}`))
	lifted := p.made(p.say(201, "POST", "/v1/recalls", "chi", `{"uri": "s3://`+word+`/data", "reason": "TEXT"}`))
	p.say(200, "POST", "/v1/recalls/"+lifted.text("id")+"/lift", "chi", `{"reason": "TEXT"}`)
	erased := p.submit(202, "erased", personal)
	vote(erased, "block", 1)
	p.say(201, "POST", "/v1/erasures", "ana", fmt.Sprintf(`{"screening": %q, "reason": "TEXT"}`, erased.text("id")))
	p.made(p.say(201, "POST", "/v1/bypasses", "bo", string(bypass(uuid.NewString(), "2026-11-30T10:00:00Z", "TEXT",
		string(spec(word+"/passed"))))))

	// Messages that died, one of which was asked for again and died again, and one of a
	// test. Nothing waits that an endpoint's switching would change.
	d.exec(`insert into delivery (message_id, endpoint, type, project, screening_id, review_id, body)
		select 'msg_of_' || $1 || n, 'legal', 'review.opened', $1, $2, $3, convert_to(jsonb_build_object('type', 'review.opened', 'text', $4::text)::text, 'UTF8')
		from generate_series(1, 2) n`,
		project, open.text("id"), open.text("review", "id"), word)
	dead := d.letDie()
	p.keep(dead[0])
	p.say(202, "POST", "/v1/deliveries/"+dead[0]+"/redeliver", "chi", "")
	p.keep(p.say(202, "POST", "/v1/endpoints/legal/ping", "chi", "").text("delivery"))
	d.letDie()

	for i, t := range p.things { // those of reviews have one
		if a := p.knock(request{method: "GET", path: "/v1/reviews/" + t.id}, p.key("dee")); a.status == 200 {
			p.things[i].version = fmt.Sprint(a.get("version"))
		}
	}
	p.login()
	return p
}

// letDie claims all that waits, gives it up, and tells which it was.
func (d *driver) letDie() (ids []string) {
	d.Helper()
	list, err := d.store.Outbox().Claim(d.Context(), 1000, time.Minute, []string{"legal", "chat"})
	if err != nil {
		d.Fatal(err)
	}
	for _, one := range list {
		a := webhooks.Attempt{Number: one.Attempt, StartedAt: time.Now(), Host: "legal.example", Status: 500, Class: webhooks.ClassHTTPStatus, Detail: "answered", Request: one.Request}
		if err := d.store.Outbox().Finish(d.Context(), one, a, webhooks.Outcome{State: webhooks.StateDead}); err != nil {
			d.Fatal(err)
		}
		ids = append(ids, one.ID)
	}
	return ids
}

// login opens a session of dee's in the console.
func (p *tenant) login() {
	p.Helper()
	req := httptest.NewRequest("POST", "/console/login", strings.NewReader(url.Values{"key": {p.key("dee")}}.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.RemoteAddr, req.Host = "127.0.0.1:1", "127.0.0.1"
	a := p.send(303, p.server, req)
	p.cookie = (&http.Response{Header: a.header}).Cookies()[0]
}

// nobody is the tenant as if each of its ids, digests and words were another, which
// nobody has.
func (p *tenant) nobody(others *strings.Replacer) *tenant {
	n := &tenant{driver: p.driver, word: others.Replace(p.word)}
	for _, raw := range p.specs {
		n.specs = append(n.specs, []byte(others.Replace(string(raw))))
	}
	for _, t := range p.things {
		n.things = append(n.things, thing{others.Replace(t.id), others.Replace(t.specSHA256), others.Replace(t.run), t.version, t.sample})
	}
	return n
}

// request is one that names something of a project.
type request struct {
	method, path, body, media, idempotency string
	sample                                 bool
}

func (r request) String() string { return r.method + " " + r.path + " " + r.body + r.idempotency }

// knock sends a request as somebody of the project.
func (p *tenant) knock(r request, key string) answer {
	req := httptest.NewRequestWithContext(p.Context(), r.method, r.path, strings.NewReader(r.body))
	req.RemoteAddr, req.Host = "127.0.0.1:1", "127.0.0.1"
	req.Header.Set("Content-Type", cmp.Or(r.media, "application/json"))
	req.Header.Set("Authorization", "Bearer "+key)
	if r.idempotency != "" {
		req.Header.Set("Idempotency-Key", r.idempotency)
	}
	if strings.HasPrefix(r.path, "/console") {
		req.AddCookie(p.cookie)
	}
	rec := httptest.NewRecorder()
	p.server.Handler().ServeHTTP(rec, req)
	return answer{rec.Code, rec.Header(), rec.Body.Bytes()}
}
