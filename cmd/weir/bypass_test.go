package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// spooled gives the records of a spool and all else that lies in it.
func spooled(t testing.TB, dir string) (records, others []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
		case strings.HasSuffix(path, ".json"):
			records = append(records, path)
		default:
			others = append(others, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return records, others
}

// outage is a gate that can be taken away and given back under one address.
type outage struct {
	url  string
	down atomic.Bool
	lie  atomic.Bool // answers reports with what is no report
}

func newOutage(t testing.TB, live string) *outage {
	t.Helper()
	o := &outage{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case o.down.Load():
			http.Error(w, "no", http.StatusServiceUnavailable)
		case o.lie.Load() && strings.HasPrefix(r.URL.Path, "/v1/bypasses"):
			_, _ = w.Write([]byte("{}"))
		default:
			forward(t, w, r, live)
		}
	}))
	t.Cleanup(server.Close)
	o.url = server.URL
	return o
}

// Without an answer check is closed, unless it was told otherwise: then it
// warns, keeps a record, and the next check brings it to the gate (fault test 52).
func TestBypass(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, "")).ready()
	o, dir := newOutage(t, g.url), t.TempDir()
	check := func(raw []byte, args ...string) result {
		t.Helper()
		args = append(append([]string{"check"}, asking(t, o.url, db.token)...), append(args, specFile(t, raw))...)
		return weirEnv(t, []string{"WEIR_SPOOL=" + dir}, args...)
	}
	inTrouble := func(raw []byte, args ...string) result {
		t.Helper()
		return check(raw, append(args, "--timeout", "300ms")...)
	}
	if r := check(spec("seen", escalates)); r.code != exitPending {
		t.Fatalf("%+v", r)
	}

	o.down.Store(true)
	if r := inTrouble(spec("a")); r.code != exitNoAnswer {
		t.Errorf("closed: %+v", r)
	}
	if r := inTrouble(spec("a"), "--on-unavailable", "closed"); r.code != exitNoAnswer {
		t.Errorf("closed: %+v", r)
	}
	if records, others := spooled(t, dir); len(records)+len(others) != 0 {
		t.Errorf("a closed check left %q %q", records, others)
	}
	formats := append([]string{"text", "json"}, reportFormats...)
	for _, format := range formats {
		r := inTrouble(spec("run-"+format), "--on-unavailable", "allow", "--output", format)
		if r.code != 0 || !strings.Contains(r.stderr, "NOT SCREENED") || strings.Contains(r.stderr, "closed") || (r.stdout != "") != (format == "json") {
			t.Errorf("%s: %+v", format, r)
		}
	}
	if r := inTrouble(spec("seen", escalates), "--on-unavailable", "allow"); r.code != 0 {
		t.Errorf("seen before: %+v", r)
	}
	want := len(formats) + 1
	// What is not bypassed: no spec, what the floor blocks, and what cannot be recorded.
	for name, tt := range map[string]struct {
		raw  []byte
		code int
	}{
		"not a spec":   {[]byte("schema: weir/spec/v1\n"), exitUsage},
		"floor blocks": {spec("r", "minors, state: absent → minors, state: present", "sexual_content, state: absent → sexual_content, state: present"), exitBlock},
		"too large":    {append(spec("r"), "# "+strings.Repeat("\\", 600<<10)...), exitNoAnswer},
	} {
		if r := inTrouble(tt.raw, "--on-unavailable", "allow"); r.code != tt.code || strings.Contains(r.stderr, "NOT SCREENED") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	full := weirEnv(t, []string{"WEIR_SPOOL=" + specFile(t, nil)}, append(append([]string{"check"}, asking(t, o.url, db.token)...),
		"--timeout", "300ms", "--on-unavailable", "allow", specFile(t, spec("r")))...)
	if full.code != exitNoAnswer || !strings.Contains(full.stderr, "not bypassed") {
		t.Errorf("no place for the record: %+v", full)
	}
	if records, others := spooled(t, dir); len(records) != want || len(others) != 0 {
		t.Fatalf("records %q, others %q", records, others)
	}

	// A gate that does not take the reports is no reason to lose them, nor to
	// answer otherwise.
	o.down.Store(false)
	o.lie.Store(true)
	if r := check(spec("b", blocks)); r.code != exitBlock || !strings.Contains(r.stderr, "not reported yet") {
		t.Errorf("%+v", r)
	}
	o.lie.Store(false)
	if records, _ := spooled(t, dir); len(records) != want {
		t.Errorf("%d records, want %d", len(records), want)
	}
	if r := check(spec("c")); r.code != 0 || !strings.Contains(r.stderr, "reported 6 earlier bypasses") {
		t.Errorf("%+v", r)
	}
	if records, others := spooled(t, dir); len(records)+len(others) != 0 {
		t.Errorf("left: %q %q", records, others)
	}
	r, err := send(t.Context(), "GET", g.url+"/v1/bypasses", db.token, nil)
	var list struct {
		Bypasses []struct {
			RunRef    string `json:"run_ref"`
			Outcome   string
			Submitter string
			Reason    string
			Screening string
		}
	}
	if err != nil || json.Unmarshal(r.body, &list) != nil || len(list.Bypasses) != want {
		t.Fatalf("%d %s %v", r.status, r.body, err)
	}
	for _, b := range list.Bypasses {
		outcome := map[bool]string{true: "escalate", false: "admit"}[b.RunRef == "seen"]
		if b.Outcome != outcome || b.Submitter != "bo" || b.Reason == "" || (b.Screening != "") != (b.RunRef == "seen") {
			t.Errorf("%+v", b)
		}
	}
	var events int
	if err := connect(t, db.dsn).QueryRow(t.Context(), `select count(*) from audit_event where type = 'gate.bypassed' and actor = 'bo'`).Scan(&events); err != nil || events != want {
		t.Errorf("%d audit events, want %d (%v)", events, want, err)
	}
	// A bypass opens nothing.
	if r, err := send(t.Context(), "POST", g.url+"/v1/gate/check", db.token, spec("run-text")); err != nil || r.status != 404 {
		t.Errorf("gate: %d %s %v", r.status, r.body, err)
	}
}

// What the gate has said is not bypassed: an answer is an answer, and so is
// "people have to decide" when the gate goes away while they do.
func TestNoBypassOfAnAnswer(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, "")).ready()
	dir := t.TempDir()
	goes := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("wait") {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		forward(t, w, r, g.url)
	}))
	t.Cleanup(goes.Close)
	for _, tt := range []struct {
		name, token string
		spec        []byte
		args        []string
		want        int
	}{
		{"block", db.token, spec("b", blocks), nil, exitBlock},
		{"escalate", db.token, spec("e", escalates), nil, exitPending},
		{"gone while people decide", db.token, spec("e", escalates), []string{"--wait", "1m"}, exitNoAnswer},
		{"a wrong key", db.token + "x", spec("k"), nil, exitUsage},
		{"offline", db.token, spec("k"), []string{"--offline"}, exitUsage},
		{"misspelt", db.token, spec("k"), []string{"--on-unavailable", "open"}, exitUsage},
	} {
		args := append([]string{"check", "--on-unavailable", "allow"}, asking(t, goes.URL, tt.token)...)
		r := weirEnv(t, []string{"WEIR_SPOOL=" + dir}, append(append(args, "--timeout", "2s"), append(tt.args, specFile(t, tt.spec))...)...)
		if r.code != tt.want {
			t.Errorf("%s: exit %d, want %d\n%s%s", tt.name, r.code, tt.want, r.stdout, r.stderr)
		}
	}
	if records, others := spooled(t, dir); len(records)+len(others) != 0 {
		t.Errorf("spooled: %q %q", records, others)
	}
}
