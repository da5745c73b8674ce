package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/cmd/weir/client"
)

// driftGate answers as a gate: its packs, and pages of what drifted.
type driftGate struct {
	mu     sync.Mutex
	pack   string
	engine string   // "3" when it is empty
	pages  []string // the members of each beside the packs
	status int      // instead of an answer, when it is not 0
	kind   string
	asked  map[string]int
}

func (g *driftGate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.asked == nil {
		g.asked = map[string]int{}
	}
	g.asked[r.URL.Path]++
	if g.status != 0 {
		w.WriteHeader(g.status)
		fmt.Fprintf(w, `{"type": "urn:weir:problem:%s", "title": "T"}`, g.kind)
		return
	}
	packs := fmt.Sprintf(`"packs": [{"id": "pledge", "version": "%s", "layer": "ethics", "sha256": "%064s"}]`, g.pack, g.pack)
	if r.URL.Path == "/v1/packs" {
		fmt.Fprintf(w, `{%s, "engine": %q}`, packs, cmp.Or(g.engine, "3"))
		return
	}
	n := 0
	fmt.Sscan(r.URL.Query().Get("cursor"), &n)
	next := ""
	if n+1 < len(g.pages) {
		next = fmt.Sprintf(`, "next": "%d"`, n+1)
	}
	fmt.Fprintf(w, `{%s, "project": "default", "engine": %q, "as_of": "2026-11-01", %s%s}`, packs, cmp.Or(g.engine, "3"), g.pages[n], next)
}

func (g *driftGate) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

func (g *driftGate) serve(t testing.TB) (url string) {
	t.Helper()
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	return server.URL
}

// drifted is a page's members with one admission that would be blocked.
func drifted(run string) string {
	return fmt.Sprintf(`"live": 3, "other": 2, "drift": [{"screening_id": "01", "run_ref": %q, "spec_sha256": "%064d", "as_of": "2026-11-01", "then": "admit", "now": "block",
		"changes": [{"term": "ethics:biometric_inside", "now": {"effect": "block", "finding": "violated"}}], "admitted_until": "2026-11-08T00:00:00Z", "decided_by": "packs",
		"packs": [{"id": "pledge"}]}]`, run, 0)
}

const (
	noDrift = `"live": 2, "other": 1, "drift": []`
	noLife  = `"live": 0, "other": 0, "drift": []`
)

// The exit codes of a single look, in every output.
func TestWatchOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		gate *driftGate
		want int
		says string
	}{
		{"no drift", &driftGate{pack: "1", pages: []string{noDrift}}, 0, "0 of 2 live admissions"},
		{"drift", &driftGate{pack: "1", pages: []string{drifted("a")}}, exitDiffers, "1 of 3 live admissions"},
		{"drift on a later page", &driftGate{pack: "1", pages: []string{noDrift, noDrift, drifted("a")}}, exitDiffers, "1 of 7 live admissions"},
		{"nothing alive", &driftGate{pack: "1", pages: []string{noLife, noLife}}, exitNothing, "No admission lives"},
		{"no answer", &driftGate{status: 500, kind: "internal"}, exitNoAnswer, ""},
		{"not a page", &driftGate{pack: "1", pages: []string{`"live": "many"`}}, exitNoAnswer, ""},
		{"not allowed", &driftGate{status: 403, kind: "not-allowed"}, exitUsage, ""},
		{"a gate without the route", &driftGate{status: 404, kind: "http"}, exitUsage, ""},
	} {
		url := tt.gate.serve(t)
		for _, output := range []string{"text", "json", "github"} {
			r := weir(t, append([]string{"watch", "--once", "--output", output}, asking(t, url, "k")...)...)
			if r.code != tt.want {
				t.Errorf("%s, %s: exit %d, want %d: %s", tt.name, output, r.code, tt.want, r.stderr)
			}
			if tt.says == "" {
				if r.stdout != "" {
					t.Errorf("%s, %s: a report without an answer: %s", tt.name, output, r.stdout)
				}
				continue
			}
			var report struct {
				Live  int   `json:"live"`
				Drift []any `json:"drift"`
			}
			switch {
			case output == "json" && (json.Unmarshal([]byte(r.stdout), &report) != nil || (len(report.Drift) > 0) != (tt.want == exitDiffers)):
				t.Errorf("%s: %s", tt.name, r.stdout)
			case output != "json" && !strings.Contains(r.stdout, tt.says):
				t.Errorf("%s, %s: does not say %q:\n%s", tt.name, output, tt.says, r.stdout)
			}
		}
	}
}

const watchText = `1 of 3 live admissions would not be given now
  project default, as of 2026-11-01; 2 given by other packs or another engine
  than those in force
  packs: pledge 1 (000000000000)

ADMITTED, NOW        RUN, SCREENING, WHAT MADE THE DIFFERENCE
→ block              nlp/\u202ebot
                     01
                     admitted by packs until 2026-11-08
                     + ethics:biometric_inside block, violated
`

func TestWatchText(t *testing.T) {
	t.Parallel()
	g := &driftGate{pack: "1", pages: []string{drifted("nlp/\u202ebot")}}
	args := append([]string{"watch", "--once"}, asking(t, g.serve(t), "k")...)
	if r := weir(t, args...); r.stdout != watchText {
		t.Errorf("got\n%s\nwant\n%s", r.stdout, watchText)
	}
	r := weir(t, append(args, "--output", "github")...)
	if want := "::error title=weir%3A admitted, now block::nlp/\\u202ebot, screening 01: ethics:biometric_inside block, violated\n"; !strings.Contains(strings.ReplaceAll(r.stdout, "%2C", ","), want) {
		t.Errorf("github: %s", r.stdout)
	}
}

// Pages by different packs are no report.
func TestWatchWhilePacksChange(t *testing.T) {
	t.Parallel()
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		pack, next := 1, `, "next": "x"`
		if n == 2 { // the second page, after a restart
			pack, next = 2, `, "next": "y"`
		}
		if n > 2 {
			pack, next = 2, ""
		}
		fmt.Fprintf(w, `{"packs": [{"id": "pledge", "version": "%d", "layer": "ethics", "sha256": "%064d"}], "project": "default", "as_of": "2026-11-01", %s%s}`, pack, pack, drifted("a"), next)
	}))
	t.Cleanup(server.Close)
	r := weir(t, append([]string{"watch", "--once"}, asking(t, server.URL, "k")...)...)
	if r.code != exitDiffers || !strings.Contains(r.stdout, "1 of 3 live admissions") || n != 3 {
		t.Errorf("exit %d after %d pages: %s", r.code, n, r.stdout)
	}
}

// A report at the beginning and each time packs or engine change, none in between; a
// gate that is away is said, and asked again.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	g := &driftGate{pack: "1", pages: []string{noDrift}}
	var out, errs output
	c, err := client.New(g.serve(t), "k", client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w := watcher{c: c, timeout: time.Minute, output: "json", stdout: &out, stderr: &errs}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	tick, ended := make(chan time.Time), make(chan error, 1)
	go func() { ended <- w.run(ctx, tick) }()
	reports := func() int { return strings.Count(out.String(), "\n") }
	step := func(what string, want int) {
		t.Helper()
		tick <- time.Time{} // taken when the look before it is over
		if got := reports(); got != want {
			t.Fatalf("%s: %d reports, want %d: %s", what, got, want, out.String())
		}
	}
	step("the beginning", 1)
	step("the same packs", 1)
	g.set(func() { g.pack, g.pages = "2", []string{drifted("a")} })
	tick <- time.Time{} // whatever was asked at that moment
	step("other packs", 2)
	step("the same packs", 2)
	g.set(func() { g.status, g.kind = 500, "internal" })
	tick <- time.Time{} // whatever was asked at that moment
	step("away", 2)
	if !strings.Contains(errs.String(), "no answer") {
		t.Errorf("nothing is said of a gate that is away: %q", errs.String())
	}
	g.set(func() { g.status, g.pack = 0, "1" })
	tick <- time.Time{} // whatever was asked at that moment
	step("back, with the packs from before", 3)
	g.set(func() { g.engine = "4" })
	tick <- time.Time{} // whatever was asked at that moment
	step("another engine", 4)
	step("the same engine", 4)
	stop()
	if err := <-ended; err != nil {
		t.Errorf("interrupted: %v", err)
	}
	g.set(func() { g.status, g.kind = 401, "unauthenticated" })
	if err := (&watcher{c: w.c, timeout: time.Second, stdout: &out, stderr: &errs}).run(t.Context(), tick); err == nil {
		t.Error("a refused key does not end it")
	}
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no line of JSON: %s", line)
		}
	}
}

func TestWatchUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--interval", "1ms"}, {"--once", "--interval", "1m"}, {"--output", "sarif"}, {"x"}} {
		if r := weir(t, append(append([]string{"watch"}, asking(t, "http://127.0.0.1:1", "k")...), args...)...); r.code != exitUsage || r.stdout != "" {
			t.Errorf("%q: exit %d: %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}

// With a real gate that is started again with one more pack: what it admitted
// before is reported, and stays admitted.
func TestWatchAtAGate(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	config := configFor(t, "")
	g := startGate(t, []string{db.env()}, "--config", config).ready()
	raw := spec("a", "{tag: minors, → {tag: violent, state: present, basis: structured}\n  - {tag: minors,")
	if r, err := post(t.Context(), g.url, db.token, "a", raw); err != nil || r.status != 201 {
		t.Fatalf("%v %s", err, r.body)
	}
	if r := weir(t, append([]string{"watch", "--once"}, asking(t, g.url, db.token)...)...); r.code != 0 {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if code := g.stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit %d\n%s", code, g.log)
	}
	more := writeFile(t, bytes.ReplaceAll(bytes.ReplaceAll([]byte(pledgeYAML), []byte("pledge"), []byte("more")), []byte("personal_data"), []byte("violent")),
		t.TempDir(), "more.yaml")
	g = startGate(t, []string{db.env()}, "--config", config, "--packs", filepath.ToSlash(more), "--allow-unratified").ready()
	r := weir(t, append([]string{"watch", "--once"}, asking(t, g.url, db.token)...)...)
	if r.code != exitDiffers || !strings.Contains(r.stdout, "ethics:violent_inside") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if a, err := send(t.Context(), http.MethodPost, g.url+"/v1/gate/check", db.token, raw); err != nil || a.status != 200 {
		t.Errorf("what drifted is not admitted any more: %v %d", err, a.status)
	}
	if event := g.log.event("looked at admissions of other packs"); event == nil || event["ended"] != "0" {
		t.Errorf("at the start it did not look: %v", event)
	}
}
