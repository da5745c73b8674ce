package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/cmd/weir/client"
)

const reviewers = `people: [{id: ana}, {id: bo}, {id: chi}, {id: dee}]
services: [{id: airflow}]
groups: {general: [ana, bo, chi, dee]}
`

// reviewGate is a gate with a quorum of two, whose people are all in one group.
func reviewGate(t *testing.T, quorum int) (g *gate, db testDatabase) {
	t.Helper()
	db = newDatabase(t)
	dir := configFor(t, "")
	writeFile(t, []byte(reviewers), dir, "people.yaml")
	writeFile(t, fmt.Appendf(nil, "policies: [{id: general, group: general, quorum: %d, due: 48h}]\ndefault: general\n", quorum), dir, "policies.yaml")
	return startGate(t, []string{db.env()}, "--config", dir).ready(), db
}

// Two reviewers approve and reject at once, 200 times, against the running
// program (RELIABILITY fault test 19).
func TestApproveAgainstReject(t *testing.T) {
	t.Parallel()
	g, db := reviewGate(t, 1)
	chi, dee := makeKey(t, db.store, "chi"), makeKey(t, db.store, "dee")
	for i := range 200 {
		s, err := send(t.Context(), "POST", g.url+"/v1/screenings", db.token, spec(fmt.Sprintf("run-%d", i), escalates))
		if err != nil || s.status != 202 {
			t.Fatalf("submit: %d %s %v", s.status, s.body, err)
		}
		answers := make([]reply, 2)
		var wg sync.WaitGroup
		for n, v := range []struct{ token, choice string }{{chi, "admit"}, {dee, "block"}} {
			wg.Go(func() {
				a, err := send(t.Context(), "POST", g.url+"/v1/reviews/"+s.text("review", "id")+"/votes", v.token, fmt.Appendf(nil,
					`{"expected_version": 1, "spec_sha256": %q, "vote": %q, "reason": "race", "terms": ["ethics:personal_data_inside"]}`, s.text("spec_sha256"), v.choice))
				if err != nil {
					t.Error(err)
				}
				answers[n] = a
			})
		}
		wg.Wait()
		want := "admitted"
		if answers[1].status == 200 {
			want = "blocked"
		}
		if a, b := answers[0].status, answers[1].status; a+b != 200+409 || a != 200 && a != 409 {
			t.Fatalf("admit %d, block %d; want one 200 and one 409", a, b)
		}
		now, err := send(t.Context(), "GET", g.url+"/v1/screenings/"+s.text("id"), db.token, nil)
		if err != nil || now.text("status") != want {
			t.Fatalf("stored %s, the winner said %s (%v)", now.text("status"), want, err)
		}
	}
	conn := connect(t, db.dsn)
	var events, reviews int
	if err := conn.QueryRow(t.Context(), `select (select count(*) from audit_event where type = 'review.decided'), (select count(*) from review)`).Scan(&events, &reviews); err != nil {
		t.Fatal(err)
	}
	if events != 200 || reviews != 200 {
		t.Errorf("%d decisions in the record of %d reviews, want 200 of 200", events, reviews)
	}
}

// One person with two keys is one vote, and nobody with a part in a run votes on
// it (RELIABILITY fault test 20).
func TestOnePersonOneVote(t *testing.T) {
	t.Parallel()
	g, db := reviewGate(t, 2)
	s, err := send(t.Context(), "POST", g.url+"/v1/screenings", db.token, append(spec("r", escalates), "on_behalf_of: bo\n"...))
	if err != nil || s.status != 202 {
		t.Fatalf("submit: %d %s %v", s.status, s.body, err)
	}
	vote := func(token string, version int) int {
		t.Helper()
		a, err := send(t.Context(), "POST", g.url+"/v1/reviews/"+s.text("review", "id")+"/votes", token, fmt.Appendf(nil,
			`{"expected_version": %d, "spec_sha256": %q, "vote": "admit", "reason": "r", "terms": ["ethics:personal_data_inside"]}`, version, s.text("spec_sha256")))
		if err != nil {
			t.Fatal(err)
		}
		return a.status
	}
	for who, want := range map[string]int{"ana": 403, "bo": 403, "airflow": 403, "nobody": 403} { // owner, submitted for, a service, undeclared
		if got := vote(makeKey(t, db.store, who), 1); got != want {
			t.Errorf("%s: %d, want %d", who, got, want)
		}
	}
	if got := vote(makeKey(t, db.store, "chi"), 1); got != 200 {
		t.Fatalf("chi: %d", got)
	}
	if got := vote(makeKey(t, db.store, "chi"), 2); got != 409 {
		t.Errorf("chi with another key: %d, want 409", got)
	}
	if a, err := send(t.Context(), "POST", g.url+"/v1/gate/check", db.token, append(spec("r", escalates), "on_behalf_of: bo\n"...)); err != nil || a.status != 409 {
		t.Errorf("gate %d, want pending", a.status)
	}
}

// A changed submission voids earlier votes, unless what they answered is all that
// is left, of the same bytes (RELIABILITY fault test 21).
func TestChangedSubmissionVoidsVotes(t *testing.T) {
	t.Parallel()
	g, db := reviewGate(t, 2)
	const digest = `{id: tickets, kind: dataset} → {id: tickets, kind: dataset, digests: [{alg: sha256, value: "` // and 64 digits
	for name, tt := range map[string]struct {
		first, second []byte
		carried       int
	}{
		"no digests":   {spec("a", escalates), append(spec("a", escalates), "team: x\n"...), 0},
		"other digest": {spec("b", escalates, digest+strings.Repeat("a", 64)+`"}]}`), spec("b", escalates, digest+strings.Repeat("b", 64)+`"}]}`), 0},
		"same digest":  {spec("c", escalates, digest+strings.Repeat("a", 64)+`"}]}`), append(spec("c", escalates, digest+strings.Repeat("a", 64)+`"}]}`), "team: x\n"...), 1},
	} {
		s, err := send(t.Context(), "POST", g.url+"/v1/screenings", db.token, tt.first)
		if err != nil || s.status != 202 {
			t.Fatalf("%s: %d %s %v", name, s.status, s.body, err)
		}
		if r := weir(t, append([]string{"review", "vote", "--reason", "fine", "--terms", "all"}, append(asking(t, g.url, makeKey(t, db.store, "chi")), s.text("review", "id"), "admit")...)...); r.code != 0 {
			t.Fatalf("%s: vote: exit %d %s", name, r.code, r.stderr)
		}
		next, err := send(t.Context(), "POST", g.url+"/v1/screenings", db.token, tt.second)
		if err != nil || next.status != 202 {
			t.Fatalf("%s: %d %s %v", name, next.status, next.body, err)
		}
		shown, err := send(t.Context(), "GET", g.url+"/v1/reviews/"+next.text("review", "id"), db.token, nil)
		if err != nil || strings.Count(string(shown.body), `"origin":"`+s.text("review", "id")+`"`) != tt.carried {
			t.Errorf("%s: %s", name, shown.body)
		}
	}
}

// The command line does all of a review.
func TestReviewCommands(t *testing.T) {
	t.Parallel()
	g, db := reviewGate(t, 2)
	keys := map[string]string{"bo": db.token}
	for _, who := range []string{"chi", "dee", "ana"} {
		keys[who] = makeKey(t, db.store, who)
	}
	submitter := makeKey(t, db.store, "bo")
	keys["bo"] = submitter
	s, err := send(t.Context(), "POST", g.url+"/v1/screenings", submitter, spec("shop/bot@1", escalates))
	if err != nil || s.status != 202 {
		t.Fatalf("submit: %d %s %v", s.status, s.body, err)
	}
	id, sid := s.text("review", "id"), s.text("id")
	var waiver string
	steps := []struct {
		who, args string
		code      int
		says      []string
	}{
		{"chi", "list", 0, []string{"OPEN  shop/bot@1", id, "ethics:personal_data_inside"}},
		{"chi", "show " + id, 0, []string{"OPEN  shop/bot@1", "submitted by bo, owned by ana", "where   /disclosures/0: tag.personal_data = present", "passes  Take the data",
			"panel general  group general: 0 of 2", "version    1"}},
		{"chi", "claim " + id, 0, []string{"CLAIMED", "chi looks at it"}},
		{"dee", "claim " + id, exitUsage, []string{"chi looks at it until"}},
		{"chi", "release " + id, 0, []string{"OPEN"}},
		{"dee", "comment " + id + " |is this the shop?", 0, []string{"comment  dee,", "is this the shop?"}},
		{"dee", "ask " + id + " |whose data is it?", 0, []string{"NEEDS EVIDENCE", "the submitter's turn"}},
		{"bo", "answer " + sid + " |our customers', who agreed", 0, []string{"ESCALATED  shop/bot@1"}},
		{"chi", "vote " + id + " admit --reason fine --terms all", 0, []string{"OPEN", "admit  chi: fine", "1 of 2"}},
		{"chi", "vote " + id + " admit --reason fine --terms all", exitUsage, []string{"you voted on this already"}},
		{"dee", "vote " + id + " admit --reason fine", exitUsage, []string{"the vote is not valid", "/terms must cite"}},
		{"dee", "vote " + id + " admit --reason fine --terms all --fact x", exitUsage, []string{"--fact is written"}},
		{"dee", "vote " + id + " admit --reason fine --terms all --version 1", exitUsage, []string{"the review changed"}},
		{"dee", "vote " + id + " perhaps --reason fine --terms all", exitUsage, []string{"/vote must be"}},
		{"dee", "vote " + id + " block --reason no --terms all", 0, []string{"BLOCKED"}},
		{"chi", "list", 0, []string{"nothing waits"}},
		{"chi", "list --all", 0, []string{"BLOCKED  shop/bot@1"}},
		{"bo", "appeal " + sid + " |they did agree", exitUsage, []string{"needs 2 persons of group general who have no part in it; there are 1"}},
		{"bo", "withdraw " + sid + " |never mind", exitUsage, []string{"409"}},
		{"bo", "reopen " + sid + " |again", exitUsage, []string{"only a review that expired"}},
		{"chi", "waive " + sid + " --term ethics:personal_data_inside --reason r --ticket T-1", exitUsage, []string{"people decided this"}},
		{"chi", "show 018f0000-0000-7000-8000-000000000000", exitUsage, []string{"404"}},
		{"chi", "nonsense", exitUsage, []string{"no command"}},
		{"chi", "show " + id + " --output yaml", exitUsage, []string{"--output must be"}},
	}
	check := func(who, args string, code int, says []string) result {
		t.Helper()
		fields, text, spoken := strings.Cut(args, "|")
		argv := append([]string{"review"}, strings.Fields(fields)...)
		if spoken {
			argv = append(argv, text)
		}
		if !strings.Contains(args, "nonsense") {
			argv = append(argv, asking(t, g.url, keys[who])...)
		}
		r := weir(t, argv...)
		if r.code != code {
			t.Fatalf("%s: %s: exit %d, want %d\n%s%s", who, args, r.code, code, r.stdout, r.stderr)
		}
		for _, say := range says {
			if !strings.Contains(r.stdout+r.stderr, say) {
				t.Errorf("%s: %s: does not say %q:\n%s%s", who, args, say, r.stdout, r.stderr)
			}
		}
		for line := range strings.Lines(r.stdout) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width && !strings.Contains(args, "json") {
				t.Errorf("%s: a line of %d columns: %s", args, n, line)
			}
		}
		return r
	}
	for _, step := range steps {
		check(step.who, step.args, step.code, step.says)
	}
	// A waiver, from the request to the admission.
	s, err = send(t.Context(), "POST", g.url+"/v1/screenings", submitter, spec("shop/bot@2", escalates))
	if err != nil || s.status != 202 {
		t.Fatalf("submit: %d %s %v", s.status, s.body, err)
	}
	made := check("chi", "waive "+s.text("id")+" --term ethics:personal_data_inside --reason agreed --ticket T-1 --days 3", 0, []string{"NOT CONFIRMED  ethics:personal_data_inside", "by         chi"})
	for line := range strings.Lines(made.stdout) {
		if _, after, ok := strings.Cut(line, "waiver "); ok {
			waiver = strings.TrimSpace(after)
		}
	}
	check("chi", "confirm "+waiver, exitUsage, []string{"a second person"})
	check("dee", "confirm "+waiver, 0, []string{"IN FORCE", "chi, confirmed by dee"})
	check("dee", "waivers --screening "+s.text("id"), 0, []string{"IN FORCE"})
	check("dee", "show "+s.text("review", "id"), 0, []string{"waived until"})
	if r := weir(t, append([]string{"check"}, append(asking(t, g.url, submitter), specFile(t, spec("shop/bot@2", escalates)))...)...); r.code != exitAdmit || !strings.Contains(r.stdout, "Waivers take away") {
		t.Errorf("check: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	// Taken back.
	s, err = send(t.Context(), "POST", g.url+"/v1/screenings", submitter, spec("shop/bot@3", escalates, "[customer_support] → [translation]"))
	if err != nil || s.status != 202 {
		t.Fatalf("submit: %d %s %v", s.status, s.body, err)
	}
	check("bo", "withdraw "+s.text("id")+" |not needed", 0, []string{"WITHDRAWN  shop/bot@3"})
	correction := writeFile(t, []byte("The tickets were invented."), t.TempDir(), "correction.txt")
	check("dee", "correct "+s.text("review", "id")+" "+correction, 0, []string{"ACCEPTED"})
	if r := check("dee", "show "+s.text("review", "id")+" --output json", 0, nil); !strings.HasPrefix(r.stdout, "{\n") {
		t.Errorf("%s", r.stdout)
	}
}

// In a project that only reports, the program passes what the gate reports.
func TestCheckInReportMode(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	dir := configFor(t, "")
	policies := "policies: [{id: general, group: general, quorum: 1, due: 48h}]\ndefault: general\nprojects: [{id: default, mode: report, until: %s}]\n"
	writeFile(t, fmt.Appendf(nil, policies, time.Now().UTC().AddDate(0, 0, 30).Format(time.DateOnly)), dir, "policies.yaml")
	g := startGate(t, []string{db.env()}, "--config", dir).ready()
	for name, tt := range map[string]struct {
		raw  []byte
		code int
		says string
	}{
		"admitted":    {spec("a"), exitAdmit, "ADMITTED"},
		"escalated":   {spec("b", escalates), exitAdmit, "Report mode until"},
		"floor block": {spec("c", blocks), exitBlock, "BLOCKED"},
	} {
		if r := weir(t, append([]string{"check"}, append(asking(t, g.url, db.token), specFile(t, tt.raw))...)...); r.code != tt.code || !strings.Contains(r.stdout, tt.says) {
			t.Errorf("%s: exit %d, want %d\n%s%s", name, r.code, tt.code, r.stdout, r.stderr)
		}
	}
	// Nobody is waited for, and nobody is told to wait.
	impatient := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait := r.URL.Query().Get("wait"); wait != "0s" {
			t.Errorf("it waits for people: %s %s", r.Method, r.URL)
		}
		forward(t, w, r, g.url)
	}))
	t.Cleanup(impatient.Close)
	w, err := post(t.Context(), g.url, db.token, "w", spec("w", escalates))
	if err != nil || w.status != 202 {
		t.Fatalf("status %d, %v", w.status, err)
	}
	to := append([]string{"wait", "--for", "1s"}, asking(t, impatient.URL, db.token)...)
	if r := weir(t, append(to, w.text("id"))...); r.code != exitAdmit || !strings.Contains(r.stdout, "Report mode until") || strings.Contains(r.stdout, "weir wait") {
		t.Errorf("wait: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	// What it says of other bytes lets nothing pass: people blocked the same content.
	raw := spec("e", escalates)
	s, err := post(t.Context(), g.url, db.token, "e", raw)
	if err != nil || s.status != 202 {
		t.Fatalf("status %d, %v", s.status, err)
	}
	v, err := send(t.Context(), "POST", g.url+"/v1/reviews/"+s.text("review", "id")+"/votes", makeKey(t, db.store, "chi"), fmt.Appendf(nil,
		`{"expected_version": 1, "spec_sha256": %q, "vote": "block", "reason": "looked", "terms": ["ethics:personal_data_inside"]}`, s.text("spec_sha256")))
	if err != nil || v.status != 200 {
		t.Fatalf("vote: %d %s %v", v.status, v.body, err)
	}
	for name, tt := range map[string]struct {
		raw  []byte
		code int
		says string
	}{
		"these bytes": {raw, exitAdmit, "Report mode until"},
		"other bytes": {append([]byte("# a comment\n"), raw...), exitNoAnswer, "other bytes"},
	} {
		r := weir(t, append([]string{"check"}, append(asking(t, g.url, db.token), specFile(t, tt.raw))...)...)
		if r.code != tt.code || !strings.Contains(r.stdout+r.stderr, tt.says) {
			t.Errorf("%s: exit %d, want %d\n%s%s", name, r.code, tt.code, r.stdout, r.stderr)
		}
		if r := weir(t, append([]string{"check", "--batch", batchOf(t, "a.yaml", string(tt.raw))}, asking(t, g.url, db.token)...)...); r.code != tt.code {
			t.Errorf("%s, --batch: exit %d, want %d\n%s%s", name, r.code, tt.code, r.stdout, r.stderr)
		}
	}
	// A word that is not known is not let pass.
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		forward(t, answer, r, g.url)
		w.WriteHeader(answer.Code)
		_, _ = w.Write(bytes.ReplaceAll(answer.Body.Bytes(), []byte(`"would":"escalate"`), []byte(`"would":"tolerate"`)))
	}))
	t.Cleanup(proxy.Close)
	if r := weir(t, append([]string{"check"}, append(asking(t, proxy.URL, db.token), specFile(t, spec("d", escalates)))...)...); r.code != exitPending {
		t.Errorf("an unknown word: exit %d, want %d\n%s%s", r.code, exitPending, r.stdout, r.stderr)
	}
	writeFile(t, fmt.Appendf(nil, policies, time.Now().UTC().AddDate(0, 0, 92).Format(time.DateOnly)), dir, "policies.yaml")
	if r := weirEnv(t, []string{db.env()}, "serve", "--config", dir, "--listen", "127.0.0.1:0"); r.code != exitUsage || !strings.Contains(r.stderr, "at most 90 days away") {
		t.Errorf("a report mode of 92 days: exit %d\n%s", r.code, r.stderr)
	}
}

// Text of people and specs cannot reach the terminal's controls from a review.
func TestReviewTextIsInert(t *testing.T) {
	t.Parallel()
	const evil = `\u001b[2J\u202eevil\u200b\u0007`
	data := strings.ReplaceAll(`{"id": "EVIL", "kind": "appeal", "origin": "EVIL", "state": "EVIL", "screening": {"id": "EVIL", "run_ref": "EVIL",
		"submitter": "EVIL", "owner": "EVIL", "on_behalf_of": "EVIL"}, "panels": [{"policy": "EVIL", "group": "EVIL", "terms": ["EVIL"], "then": "EVIL",
		"claimed_by": "EVIL", "votes": [{"person": "EVIL", "vote": "EVIL", "reason": "EVIL", "facts": ["EVIL"]}]}],
		"notes": [{"kind": "EVIL", "person": "EVIL", "text": "EVIL"}], "waived": [{"term": "EVIL"}]}`, "EVIL", evil)
	var r client.Review
	if err := json.Unmarshal([]byte(data), &r); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	renderReview(&lines{w: &b}, &r)
	renderWaiver(&lines{w: &b}, &client.Waiver{ID: r.ID, Term: r.ID, ScreeningID: r.ID, Reason: r.ID, Ticket: r.ID, Author: r.ID, ConfirmedBy: r.ID})
	for _, c := range b.String() {
		if c != '\n' && (c < ' ' || c == 0x7f || c == '\u202e' || c == '\u200b') {
			t.Fatalf("%q reaches the terminal:\n%q", c, b.String())
		}
	}
}
