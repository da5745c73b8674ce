package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir/access"
	"weir/cmd/weir/access/accesstest"
)

// accessFor adds an issuer to a set-up: bo by their provider, airflow as a workload.
func accessFor(t testing.TB, issuer, more string) (dir string) {
	t.Helper()
	dir = configFor(t, "")
	in := func(text string) []byte { return []byte(strings.ReplaceAll(text, "ISSUER", issuer)) }
	writeFile(t, in(`people: [{id: ana}, {id: bo, subjects: ["ISSUER|00u1"]}, {id: chi}]
services: [{id: airflow, subjects: ["ISSUER|system:serviceaccount:airflow:worker"]}]
groups: {general: [ana, bo, chi]}
`), dir, "people.yaml")
	writeFile(t, in(`issuers: [{id: corp, issuer: "ISSUER", audience: weir`+more+`}]
grants: [{people: [bo], scopes: [submit, review]}, {services: [airflow], scopes: [submit]}]
`), dir, access.FileName)
	return dir
}

// Faults 48 and 49 at the built gate: it starts while the issuer is away, keys work
// meanwhile, and a pipeline's exit code tells a bad token from one that is not known.
func TestTokensAtTheGate(t *testing.T) {
	t.Parallel()
	db, issuer := newDatabase(t), accesstest.NewIssuer(t)
	issuer.Down(503)
	config := accessFor(t, issuer.URL, "")
	g := startGate(t, []string{db.env()}, "--config", config).ready()
	check := func(run, token string, changes ...string) result {
		t.Helper()
		path := writeFile(t, spec(run, changes...), t.TempDir(), "spec.yaml")
		return weirEnv(t, []string{"WEIR_SERVER=" + g.url, "WEIR_KEY=" + token}, "check", path, "--timeout", "2s")
	}
	if r := check("away", issuer.Token()); r.code != exitNoAnswer {
		t.Errorf("a token while its issuer is away: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := check("key", db.token); r.code != exitAdmit {
		t.Errorf("a key meanwhile: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := weirEnv(t, []string{db.env()}, "doctor", "--config", config, "--packs", pledge(t)); r.code != exitFailed || !strings.Contains(r.stdout, "issuer corp: its keys cannot be had") {
		t.Errorf("doctor: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if got, err := send(t.Context(), "GET", g.url+"/readyz", "", nil); err != nil || got.status != 200 || !strings.Contains(string(got.body), "issuer corp") {
		t.Errorf("readyz: %d %s, %v", got.status, got.body, err)
	}
	if g.log.event("the keys of an issuer cannot be fetched; tokens with known keys go on being good") == nil {
		t.Errorf("nothing is said of it\n%s", g.log)
	}
	g.kill()

	issuer.Resume()
	g = startGate(t, []string{db.env()}, "--config", config).ready()
	if r := check("back", issuer.Token()); r.code != exitAdmit {
		t.Errorf("a token: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := weirEnv(t, []string{db.env()}, "doctor", "--config", config, "--packs", pledge(t)); !strings.Contains(r.stdout, "issuer corp gives its keys") {
		t.Errorf("doctor: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := check("workload", issuer.Token(accesstest.Sub("system:serviceaccount:airflow:worker")), "owner: ana → owner: ana\non_behalf_of: ana"); r.code != exitAdmit {
		t.Errorf("a workload: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	for name, token := range map[string]string{
		"expired":        issuer.Token(accesstest.Claim("exp", time.Now().Add(-time.Hour).Unix())),
		"wrong audience": issuer.Token(accesstest.Claim("aud", "https://kubernetes.default.svc")),
		"unknown person": issuer.Token(accesstest.Sub("00u2")),
	} {
		if r := check("bad", token); r.code != exitUsage || strings.Contains(r.stderr, token) {
			t.Errorf("%s: exit %d: %s%s", name, r.code, r.stdout, r.stderr)
		}
	}
	if n := issuer.Fetches.Load(); n != 2 { // the gate and the doctor
		t.Errorf("the keys were fetched %d times", n)
	}
}

// The built gate signs people in at an issuer.
func TestConsoleLoginAtTheGate(t *testing.T) {
	t.Parallel()
	db, issuer := newDatabase(t), accesstest.NewIssuer(t)
	issuer.SignedIn("00u1")
	g := startGate(t, []string{db.env()}, "--config", accessFor(t, issuer.URL, ", login: {client_id: console}")).ready()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Jar: jar}).Get(g.url + "/console/login/corp") // to the issuer, back, and on
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || resp.Request.URL.Path != "/console/reviews" || !strings.Contains(string(page), "<span>bo</span>") {
		t.Errorf("%d at %s, %v: %s", resp.StatusCode, resp.Request.URL, err, page)
	}
	if e := g.log.event("console login"); e == nil || e["person"] != "bo" || e["issuer"] != "corp" {
		t.Errorf("logged %v", e)
	}
}

func TestConfigCheckReadsAccess(t *testing.T) {
	t.Parallel()
	dir := accessFor(t, "https://idp.example", "")
	if r := weirEnv(t, nil, "config", "check", "--config", dir, "--packs", pledge(t)); r.code != 0 || !strings.Contains(r.stdout, "1 issuer of tokens") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	writeFile(t, []byte("issuers: [{id: corp, issuer: \"https://idp.example\", skip: true}]\n"), dir, access.FileName)
	if r := weirEnv(t, nil, "config", "check", "--config", dir, "--packs", pledge(t)); r.code != exitUsage ||
		!strings.Contains(r.stdout+r.stderr, filepath.Base(access.FileName)) || !strings.Contains(r.stdout+r.stderr, "skip") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}
