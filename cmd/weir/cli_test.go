package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/cmd/weir/client"
	"weir/review"
	"weir/screening"
)

// client flags for a server, with the key in a file.
func asking(t testing.TB, url, token string) []string {
	t.Helper()
	return []string{"--server", url, "--key-file", writeFile(t, []byte(token+"\n"), t.TempDir(), "key"), "--timeout", "10s"}
}

func specFile(t testing.TB, data []byte) string {
	t.Helper()
	return writeFile(t, data, t.TempDir(), "spec.yaml")
}

// Every way a check can end has its documented code, and the code does not
// depend on the output format (KNOWN_FAULTS 4).
func TestExitCodes(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, "")).ready()
	to := asking(t, g.url, db.token)
	answering := func(status int, body string, header ...string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { untilGone(r) }))
	t.Cleanup(hanging.Close)
	busted := t.TempDir()
	writeFile(t, []byte(strings.Replace(pledgeYAML, "response: escalate", "response: shrug", 1)), busted, "bad.yaml")
	unratified, err := writePack(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fast := func(url string) []string { return append(asking(t, url, db.token), "--timeout", "300ms") }
	problem := func(kind string, status int) string {
		return fmt.Sprintf(`{"type": "urn:weir:problem:%s", "title": "T", "status": %d, "request_id": "R"}`, kind, status)
	}
	expired := spec("expired", escalates)
	if r, err := post(t.Context(), g.url, db.token, "e", expired); err != nil || r.status != 202 {
		t.Fatalf("%v %v", r, err)
	}
	overdue(t, db, "expired")
	if r, err := post(t.Context(), g.url, db.token, "t", spec("taken")); err != nil || r.status != 201 {
		t.Fatalf("%v %v", r, err)
	}

	offline := func(packs string) []string { return []string{"--offline", "--as-of", testDay, "--packs", packs} }
	tests := []struct {
		name string
		args []string
		want int
	}{
		{"admit", append(to, specFile(t, spec("admit"))), exitAdmit},
		{"block", append(to, specFile(t, spec("block", blocks))), exitBlock},
		{"escalate", append(to, specFile(t, spec("escalate", escalates))), exitPending},
		{"escalate, waited for in vain", append(to, "--wait", "1ms", specFile(t, spec("escalate", escalates))), exitPending},
		{"expired", append(to, specFile(t, expired)), exitEnded},
		{"bad spec", append(to, specFile(t, []byte("schema: weir/spec/v1\n"))), exitUsage},
		{"not a document", append(to, specFile(t, []byte("{"))), exitUsage},
		{"empty file", append(to, specFile(t, nil)), exitUsage},
		{"too large", append(to, specFile(t, make([]byte, 1<<20+1))), exitUsage},
		{"missing file", append(to, filepath.Join(t.TempDir(), "none.yaml")), exitUsage},
		{"a directory", append(to, t.TempDir()), exitUsage},
		{"no file", to, exitUsage},
		{"two files", append(to, "a", "b"), exitUsage},
		{"unknown flag", append(to, "--admit", specFile(t, spec("x"))), exitUsage},
		{"run_ref of somebody else", append(asking(t, g.url, makeKey(t, db.store, "chi")), specFile(t, spec("taken", "owner: ana → owner: bo"))), exitUsage},
		{"wrong key", append(asking(t, g.url, db.token+"x"), specFile(t, spec("x"))), exitUsage},
		{"missing key file", []string{"--server", g.url, "--key-file", "/nonexistent", specFile(t, spec("x"))}, exitUsage},
		{"no address", append(asking(t, "weir.example", db.token), specFile(t, spec("x"))), exitUsage},
		{"server down", append(fast("http://"+unusedAddress(t)), specFile(t, spec("x"))), exitNoAnswer},
		{"time-out", append(fast(hanging.URL), specFile(t, spec("x"))), exitNoAnswer},
		{"503 all the time", append(fast(answering(503, problem("busy", 503), "Retry-After", "1")), specFile(t, spec("x"))), exitNoAnswer},
		{"503 of a proxy", append(fast(answering(503, "<html>")), specFile(t, spec("x"))), exitNoAnswer},
		{"500", append(fast(answering(500, problem("internal", 500))), specFile(t, spec("x"))), exitNoAnswer},
		{"404 of something else", append(fast(answering(404, "not found")), specFile(t, spec("x"))), exitNoAnswer},
		{"a login page", append(fast(answering(200, "<html>welcome</html>")), specFile(t, spec("x"))), exitNoAnswer},
		{"a redirect", append(fast(answering(302, "", "Location", g.url)), specFile(t, spec("x"))), exitNoAnswer},
		{"an empty 200", append(fast(answering(200, "")), specFile(t, spec("x"))), exitNoAnswer},
		{"a 200 that says nothing", append(fast(answering(200, "{}")), specFile(t, spec("x"))), exitNoAnswer},
		{"a status of the future", append(fast(answering(200, `{"id": "x", "status": "admitted_mostly", "decision": {"outcome": "admit", "as_of": "2026-11-01"}}`)), specFile(t, spec("x"))), exitNoAnswer},
		{"offline: admit", append(offline(pledge(t)), specFile(t, spec("x"))), exitAdmit},
		{"offline: block", append(offline(pledge(t)), specFile(t, spec("x", blocks))), exitBlock},
		{"offline: escalate", append(offline(pledge(t)), specFile(t, spec("x", escalates))), exitPending},
		{"offline: bad spec", append(offline(pledge(t)), specFile(t, []byte("a: 1"))), exitUsage},
		{"offline: bad day", []string{"--offline", "--as-of", "today", "--packs", pledge(t), specFile(t, spec("x"))}, exitUsage},
		{"offline: invalid pack", append(offline(filepath.Join(busted, "bad.yaml")), specFile(t, spec("x"))), exitPackInvalid},
		{"offline: pack not in force", append(offline(unratified), specFile(t, spec("x"))), exitPackInvalid},
		{"offline: missing pack", append(offline(filepath.Join(busted, "none.yaml")), specFile(t, spec("x"))), exitUsage},
		{"offline: no such shipped pack", append(offline("nonsense"), specFile(t, spec("x"))), exitUsage},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, format := range []string{"text", "json"} {
				r := weir(t, append([]string{"check", "--output", format}, tt.args...)...)
				if r.code != tt.want {
					t.Errorf("--output %s: exit %d, want %d\n%s%s", format, r.code, tt.want, r.stdout, r.stderr)
				}
				if (r.stdout == "") == (r.stderr == "") {
					t.Errorf("--output %s: something on exactly one of stdout %q and stderr %q is wanted", format, r.stdout, r.stderr)
				}
			}
		})
	}
}

func TestExitCodesAreDistinct(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for _, c := range []int{exitAdmit, exitFailed, exitUsage, exitPackInvalid, exitBlock, exitPending, exitEnded, exitNoAnswer} {
		if seen[c] {
			t.Errorf("%d stands for two things", c)
		}
		seen[c] = true
	}
	for status, want := range map[review.Status]int{review.StatusAdmitted: 0, review.StatusBlocked: 10, review.StatusPending: 11, review.StatusExpired: 12,
		review.StatusSuperseded: 12, review.StatusWithdrawn: 12, "revoked_by_moon": 20, "": 20, "Admitted": 20} {
		if got := exitCode(status); got != want {
			t.Errorf("status %q: exit %d, want %d", status, got, want)
		}
	}
}

// untilGone returns when the client has hung up, which a server only notices
// once it has read the body.
func untilGone(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func overdue(t testing.TB, db testDatabase, run string) {
	t.Helper()
	conn := connect(t, db.dsn)
	if _, err := conn.Exec(t.Context(), `update review set opened_at = now() - interval '2 hours', due_at = now() - interval '1 hour', expires_at = now() - interval '1 hour'
		where screening_id in (select id from screening where run_ref = $1)`, run); err != nil {
		t.Fatal(err)
	}
}

func unusedAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestWaitCommand(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, "")).ready()
	to := asking(t, g.url, db.token)
	submit := func(run string) reply {
		t.Helper()
		r, err := post(t.Context(), g.url, db.token, run, spec(run, escalates))
		if err != nil || r.status != 202 {
			t.Fatalf("status %d, %v", r.status, err)
		}
		return r
	}
	vote := func(r reply, choice string) {
		t.Helper()
		v, err := send(t.Context(), "POST", g.url+"/v1/reviews/"+r.text("review", "id")+"/votes", makeKey(t, db.store, "chi"), fmt.Appendf(nil,
			`{"expected_version": 1, "spec_sha256": %q, "vote": %q, "reason": "looked", "terms": ["ethics:personal_data_inside"]}`, r.text("spec_sha256"), choice))
		if err != nil || v.status != 200 {
			t.Fatalf("vote: %d %s %v", v.status, v.body, err)
		}
	}
	pending, admitted, blocked, expired, superseded := submit("pending"), submit("admitted"), submit("blocked"), submit("expired"), submit("superseded")
	vote(admitted, "admit")
	vote(blocked, "block")
	overdue(t, db, "expired")
	if r, err := post(t.Context(), g.url, db.token, "s2", spec("superseded")); err != nil || r.status != 201 {
		t.Fatalf("status %d, %v", r.status, err)
	}
	tests := []struct {
		name string
		args []string
		want int
	}{
		{"admitted", []string{admitted.text("id")}, exitAdmit},
		{"blocked", []string{blocked.text("id")}, exitBlock},
		{"time is up", []string{"--for", "50ms", pending.text("id")}, exitPending},
		{"no time at all", []string{"--for", "0s", pending.text("id")}, exitPending},
		{"expired", []string{expired.text("id")}, exitEnded},
		{"superseded", []string{superseded.text("id")}, exitEnded},
		{"unknown id", []string{"018f0000-0000-7000-8000-000000000000"}, exitUsage},
		{"no id", []string{"../../livez"}, exitUsage},
		{"nothing", nil, exitUsage},
	}
	for _, tt := range tests {
		for _, format := range []string{"text", "json"} {
			if r := weir(t, append(append([]string{"wait", "--output", format}, to...), tt.args...)...); r.code != tt.want {
				t.Errorf("%s, --output %s: exit %d, want %d\n%s%s", tt.name, format, r.code, tt.want, r.stdout, r.stderr)
			}
		}
	}
	if r := weir(t, append([]string{"wait", "--output", "yaml"}, append(to, pending.text("id"))...)...); r.code != exitUsage {
		t.Errorf("unknown format: exit %d", r.code)
	}
	// A wait ends with the decision, and check --wait is the two in one.
	ended := make(chan result, 1)
	go func() {
		ended <- weir(t, append([]string{"check", "--wait", "60s"}, append(to, specFile(t, spec("pending", escalates)))...)...)
	}()
	vote(pending, "admit")
	if r := <-ended; r.code != exitAdmit || !strings.Contains(r.stdout, "ADMITTED  pending") || !strings.Contains(r.stdout, "Reviewers decided.") {
		t.Errorf("check --wait: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	// What is said about another screening opens nothing.
	confused := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/v1/screenings/" + admitted.text("id")
		forward(t, w, r, g.url)
	}))
	t.Cleanup(confused.Close)
	if r := weir(t, append([]string{"wait"}, append(asking(t, confused.URL, db.token), blocked.text("id"))...)...); r.code != exitNoAnswer {
		t.Errorf("another screening: exit %d, want %d\n%s%s", r.code, exitNoAnswer, r.stdout, r.stderr)
	}
	if r := weir(t, append([]string{"wait"}, append(to, strings.ToUpper(admitted.text("id")))...)...); r.code != exitAdmit {
		t.Errorf("an id in capitals: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	// A gate that goes away in the middle is no answer.
	waiting := submit("late")
	go func() {
		ended <- weir(t, append([]string{"wait", "--timeout", "200ms", "--for", "1s"}, append(to[:4:4], waiting.text("id"))...)...)
	}()
	g.kill()
	if r := <-ended; r.code != exitNoAnswer {
		t.Errorf("the gate died: exit %d, want %d\n%s%s", r.code, exitNoAnswer, r.stdout, r.stderr)
	}
}

// A 503 or a lost connection is asked again under the same key, so that it is one submission.
func TestCheckAsksAgainUnderOneKey(t *testing.T) {
	t.Parallel()
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		switch len(keys) {
		case 1:
			w.WriteHeader(503)
			fmt.Fprint(w, `{"type": "urn:weir:problem:unavailable", "title": "T"}`)
		case 2:
			panic(http.ErrAbortHandler)
		case 3:
			w.WriteHeader(409)
			fmt.Fprint(w, `{"type": "urn:weir:problem:in-flight", "title": "T"}`)
		default:
			w.WriteHeader(201)
			fmt.Fprint(w, `{"id": "x", "status": "blocked", "decision": {"outcome": "block", "as_of": "2026-11-01"}}`)
		}
	}))
	t.Cleanup(server.Close)
	r := weir(t, append([]string{"check"}, append(asking(t, server.URL, "k"), specFile(t, spec("r")))...)...)
	if r.code != exitBlock || len(keys) != 4 || keys[0] == "" || keys[0] != keys[1] || keys[0] != keys[2] || keys[0] != keys[3] {
		t.Errorf("exit %d after keys %q\n%s", r.code, keys, r.stderr)
	}
}

const escalationText = `ESCALATED  nlp/support-bot@2026-11
  1 finding needs a person.

  ethics:personal_data_inside  escalate, medium
    Data about people without a word on it
    where   /disclosures/0: tag.personal_data = present
    why     violated in tickets
    passes  Take the data about people out of the input, or replace it by
            invented data and state personal_data as absent.

  offline, as of 2026-11-01; nothing was kept
`

func TestTextOfAnEscalation(t *testing.T) {
	t.Parallel()
	r := weir(t, "check", "--offline", "--as-of", testDay, "--packs", pledge(t), specFile(t, spec("nlp/support-bot@2026-11", escalates)))
	// The reason is the engine's to word.
	got := regexp.MustCompile(`(?m)^    why     .*$`).ReplaceAllString(r.stdout, "    why     violated in tickets")
	if diff := cmp.Diff(escalationText, got); diff != "" {
		t.Errorf("text (-want +got)\n%s", diff)
	}
}

// What is open is listed with the statements that would decide it.
func TestTextOfWhatIsMissing(t *testing.T) {
	t.Parallel()
	r := weir(t, "check", "--offline", "--as-of", testDay, "--packs", pledge(t),
		specFile(t, spec("r", "  - {tag: personal_data, state: absent, basis: structured}\n → ")))
	for _, want := range []string{"ESCALATED  r\n", "Not checkable yet. 1 statement would decide it:", "personal_data"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("the text lacks %q:\n%s", want, r.stdout)
		}
	}
}

// Text for a terminal stays within its width, has no colours unless it is one,
// and shows hostile characters as what they are.
func TestTextIsSafe(t *testing.T) {
	t.Parallel()
	evil := "\x1b[31mred\u202etxt\u2066\u200b\x07\x9b" + strings.Repeat("long", 60)
	s := &client.Screening{ID: "018f0000-0000-7000-8000-000000000000" + evil, Status: review.StatusPending, RunRef: "r" + evil, DecidedBy: review.Decider(evil),
		Review: &client.ReviewState{ID: "018f0000-0000-7000-8000-000000000001"},
		Decision: &screening.Decision{Outcome: screening.OutcomeEscalate, AsOf: testDay, Refusal: evil,
			Causes: []screening.EffectiveFinding{{Term: "ethics:x", Effect: screening.Escalate, Severity: "low" + evil, Title: evil, Remedy: evil}},
			Hedge:  &screening.InjectedHedge{Text: evil}, Missing: []screening.Statement{{Pointer: "/" + evil, Say: evil}},
			Ethics: []screening.EthicsVerdict{{Findings: []*screening.Finding{{Term: "x", State: screening.NotCheckable, Reason: evil,
				Evidence: []screening.Evidence{{Name: evil, Value: evil, Pointer: "/" + evil}, {}, {}, {}, {}, {}}}}}}}}
	var out strings.Builder
	if err := renderScreening(&out, s); err != nil {
		t.Fatal(err)
	}
	for i, r := range out.String() {
		if r != '\n' && (r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u202e' || r == '\u2066' || r == '\u200b') {
			t.Fatalf("U+%04X at %d is not escaped:\n%q", r, i, out.String())
		}
	}
	if !strings.Contains(out.String(), `\x1b[31mred\u202etxt`) {
		t.Errorf("the escape does not show what it was:\n%s", out.String())
	}
	s.ID, s.Decision.Causes[0].Severity = "018f0000-0000-7000-8000-000000000000", "low"
	out.Reset()
	if err := renderScreening(&out, s); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// A document's own keys come back in error messages, escaped.
func TestErrorsAreSafe(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"{\"a\u202e\x7fb\": 1}", "\"a\\e[31m\": 1\n"} {
		r := weir(t, "check", "--offline", "--packs", pledge(t), specFile(t, []byte(raw)))
		if r.code != exitUsage || strings.ContainsAny(r.stderr, "\x1b\x7f\u202e") || !strings.Contains(r.stderr, `\`) {
			t.Errorf("exit %d: %q", r.code, r.stderr)
		}
	}
	// So do the words of whatever answers at the address.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(403)
		fmt.Fprint(w, `{"type": "urn:weir:problem:not-allowed", "title": "\u001b[2J", "detail": "\u202e"}`)
	}))
	t.Cleanup(server.Close)
	r := weir(t, append([]string{"check"}, append(asking(t, server.URL, "k"), specFile(t, spec("r")))...)...)
	if r.code != exitUsage || strings.ContainsAny(r.stderr, "\x1b\u202e") {
		t.Errorf("exit %d: %q", r.code, r.stderr)
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("x", 100)
	for name, tt := range map[string]struct{ first, rest, text, want string }{
		"short":       {"a  ", "", "b c", "a  b c\n"},
		"nothing":     {"a  ", "", "", "a\n"},
		"at a space":  {"", " ", strings.Repeat("y", 79) + " z", strings.Repeat("y", 79) + "\n z\n"},
		"long word":   {"a ", "", word, "a " + word[:78] + "\n  " + word[78:] + "\n"},
		"exactly":     {"", "", strings.Repeat("y", 80), strings.Repeat("y", 80) + "\n"},
		"line breaks": {"", "", "a\n\n\tb", "a b\n"},
		"colour":      {"\x1b[1;31mFAULT\x1b[0m ", "", word[:80], "\x1b[1;31mFAULT\x1b[0m " + word[:74] + "\n      " + word[:6] + "\n"},
		"two longs":   {"", "", word + " " + word, word[:80] + "\n" + word[:20] + "\n" + word[:80] + "\n" + word[:20] + "\n"},
	} {
		var out strings.Builder
		l := &lines{w: &out}
		if l.wrap(tt.first, tt.rest, tt.text); out.String() != tt.want {
			t.Errorf("%s: %q, want %q", name, out.String(), tt.want)
		}
	}
}

func TestMigrateCommands(t *testing.T) {
	t.Parallel()
	dsn := emptyDatabase(t)
	migrate := func(dsn, what string) result {
		t.Helper()
		return weirEnv(t, []string{"DATABASE_URL=" + dsn}, "migrate", what)
	}
	if r := migrate(dsn, "status"); r.code != exitFailed || !strings.Contains(r.stdout, "version 0 of ") {
		t.Errorf("status of nothing: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := migrate(dsn, "up"); r.code != 0 || !strings.Contains(r.stdout, "up to date") {
		t.Errorf("up: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := migrate(dsn, "status"); r.code != 0 || !strings.Contains(r.stdout, "dirty false, migrating false") {
		t.Errorf("status: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for what, bad := range map[string]string{"no URL": "", "no database there": "postgres://weir:hunter2@127.0.0.1:1/x", "not a URL": "postgres://weir:hunter2@[x"} {
		for _, command := range []string{"status", "up"} {
			r := migrate(bad, command)
			if r.code == 0 || r.stderr == "" || strings.Contains(r.stderr+r.stdout, "hunter2") {
				t.Errorf("%s, %s: exit %d\n%s%s", command, what, r.code, r.stdout, r.stderr)
			}
		}
	}
}

// A day that is none is refused by the name of its flag.
func TestAsOfIsNamed(t *testing.T) {
	t.Parallel()
	file := specFile(t, spec("r"))
	for _, args := range [][]string{{"check", "--offline", file}, {"explain", file}, {"pack", "test", pledge(t)}} {
		for _, day := range []string{"2026-13-01", "0000-01-01", "today"} {
			r := weir(t, append(args, "--as-of", day)...)
			if r.code != exitUsage || r.stdout != "" || !strings.Contains(r.stderr, "--as-of must be a day") {
				t.Errorf("%v %s: exit %d: %s%s", args, day, r.code, r.stdout, r.stderr)
			}
		}
	}
}

// doctor names everything that is wrong in one run, and what to do.
func TestDoctor(t *testing.T) {
	t.Parallel()
	good, db := configFor(t, ""), newDatabase(t)
	broken := func(file, text string) string {
		dir := configFor(t, "http://127.0.0.1:1/")
		writeFile(t, []byte(text), dir, file)
		return dir
	}
	missingSecret := configFor(t, "http://127.0.0.1:1/")
	if err := os.Remove(filepath.Join(missingSecret, "hook.secret")); err != nil {
		t.Fatal(err)
	}
	unratified, err := writePack(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		dsn    string
		config string
		packs  string
		code   int
		want   []string
	}{
		{"a good one", db.dsn, good, pledge(t), 0, []string{"ok     pack pledge 1 is in force", "ok     people and policies", "note   no endpoint", "ok     database answers", "nothing is wrong"}},
		{"with an endpoint", db.dsn, configFor(t, "http://127.0.0.1:1/"), pledge(t), 0, []string{"ok     endpoint hook resolves"}},
		{"no declarations", db.dsn, t.TempDir(), pledge(t), 1, []string{"fault  declarations", "people.yaml", "deploy/example", "1 fault"}},
		{"bad people", db.dsn, broken("people.yaml", "people: [{id: ana}, {id: ana}]\n"), pledge(t), 1, []string{"fault  declarations", "/people/1/id", "declared twice"}},
		{"no default policy", db.dsn, broken("policies.yaml", "policies: []\n"), pledge(t), 1, []string{"an escalation always needs a panel"}},
		{"missing secret", db.dsn, missingSecret, pledge(t), 1, []string{"endpoint hook: secret_file"}},
		{"bad secret", db.dsn, broken("hook.secret", "hunter2"), pledge(t), 1, []string{"hook"}},
		{"unknown host", db.dsn, configFor(t, "http://nowhere.invalid/"), pledge(t), 1, []string{"does not resolve"}},
		{"pack not in force", db.dsn, good, unratified, 1, []string{"fault  packs", "ratification report"}},
		{"no such pack", db.dsn, good, "nonsense", 1, []string{"fault  packs", "no shipped pack"}},
		{"nothing is right", "postgres://weir:hunter2@127.0.0.1:1/x", t.TempDir(), "nonsense", 1, []string{"fault  packs", "fault  declarations", "fault  the database does not answer", "3 faults"}},
		{"bad URL", "postgres://weir:hunter2@[x", good, pledge(t), 1, []string{"fault  database", "cannot be read"}},
		{"empty database", emptyDatabase(t), good, pledge(t), 0, []string{"note   the schema is at version 0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := weirEnv(t, []string{"DATABASE_URL=" + tt.dsn}, "doctor", "--config", tt.config, "--packs", tt.packs)
			flat := strings.Join(strings.Fields(r.stdout), " ")
			for _, want := range tt.want {
				if !strings.Contains(flat, strings.Join(strings.Fields(want), " ")) {
					t.Errorf("it lacks %q:\n%s", want, r.stdout)
				}
			}
			if r.code != tt.code || strings.Contains(r.stdout+r.stderr, "hunter2") || strings.Contains(r.stdout, "\x1b") {
				t.Errorf("exit %d, want %d\n%s%s", r.code, tt.code, r.stdout, r.stderr)
			}
		})
	}
}

// A gate that cannot work says why and ends at once.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	good, db := configFor(t, ""), newDatabase(t)
	bad := t.TempDir()
	writeFile(t, []byte(strings.Replace(pledgeYAML, "violated_if", "violated_when", 1)), bad, "bad.yaml")
	unratified, err := writePack(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	for _, tt := range []struct {
		name string
		dsn  string
		args []string
		code int
		want string
	}{
		{"broken pack", db.dsn, []string{"--config", good, "--packs", filepath.Join(bad, "bad.yaml")}, exitPackInvalid, "violated_when"},
		{"pack not in force", db.dsn, []string{"--config", good, "--packs", unratified}, exitPackInvalid, "not in force"},
		{"missing pack", db.dsn, []string{"--config", good, "--packs", "none.yaml"}, exitUsage, "none.yaml"},
		{"no declarations", db.dsn, []string{"--config", bad}, exitUsage, "people.yaml"},
		{"bad URL", "postgres://weir:hunter2@[x", []string{"--config", good}, exitUsage, "cannot be read"},
		{"address taken", db.dsn, []string{"--config", good, "--listen", taken.Addr().String()}, exitFailed, "address already in use"},
		{"lease too short", db.dsn, []string{"--config", configFor(t, "http://127.0.0.1:1/"), "--webhook-lease", "1s"}, exitUsage, "lease"},
		{"no database in time", "postgres://weir:hunter2@127.0.0.1:1/x", []string{"--config", good, "--database-wait", "1ms"}, exitFailed, "refused"},
		{"audit only with packs that decide", db.dsn, []string{"--config", good, "--audit-only"}, exitPackInvalid, "audit-only"},
		{"unknown argument", db.dsn, []string{"now"}, exitUsage, "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"serve", "--listen", "127.0.0.1:0", "--packs", pledge(t)}, tt.args...)
			for i, a := range tt.args { // pflag appends to a list given twice
				if a == "--packs" {
					args = append([]string{"serve", "--listen", "127.0.0.1:0"}, tt.args[:i+2]...)
				}
			}
			r := weirEnv(t, []string{"DATABASE_URL=" + tt.dsn}, args...)
			if r.code != tt.code || !strings.Contains(r.stderr, tt.want) || strings.Contains(r.stderr, "hunter2") {
				t.Errorf("exit %d, want %d and %q\n%s", r.code, tt.code, tt.want, r.stderr)
			}
		})
	}
}

func TestHelpNamesTheExitCodes(t *testing.T) {
	t.Parallel()
	r := weir(t, "--help")
	for _, want := range []string{"0 admit", "10 block", "11 escalated", "12 expired", "2 usage", "4 pack invalid", "20 no answer"} {
		if !strings.Contains(strings.Join(strings.Fields(r.stdout), " "), want) {
			t.Errorf("the help lacks %q:\n%s", want, r.stdout)
		}
	}
	if r := weir(t, "nonsense"); r.code != exitUsage || r.stderr == "" {
		t.Errorf("unknown command: exit %d %q", r.code, r.stderr)
	}
	if r := weir(t, "version"); r.code != 0 || !strings.Contains(r.stdout, screening.EngineVersion) {
		t.Errorf("version: %+v", r)
	}
}

// A command that is interrupted gives no answer, and so does not admit.
func TestInterruptedCheck(t *testing.T) {
	t.Parallel()
	asked, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { cancel(); untilGone(r) }))
	t.Cleanup(server.Close)
	var out, errs strings.Builder
	code := run(asked, append([]string{"check"}, append(asking(t, server.URL, "k"), specFile(t, spec("r")))...), &out, &errs)
	if code != exitNoAnswer || out.String() != "" {
		t.Errorf("exit %d: %s%s", code, out.String(), errs.String())
	}
}
