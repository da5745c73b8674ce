package api_test

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"weir/cmd/weir/access"
	"weir/cmd/weir/access/accesstest"
	"weir/cmd/weir/api"
	"weir/review"
	"weir/review/reviewtest"
)

// tokens is a world that takes the tokens of an issuer: bo may submit, chi may do
// nothing, and airflow is a workload.
func tokens(t *testing.T) (*world, *accesstest.Issuer) {
	t.Helper()
	i := accesstest.NewIssuer(t)
	dir := t.TempDir()
	declare := strings.ReplaceAll(`
issuers: [{id: corp, issuer: "ISSUER", audience: weir}]
grants:
  - {people: [bo], scopes: [submit]}
  - {services: [airflow], scopes: [submit]}
`, "ISSUER", i.URL)
	if err := os.WriteFile(filepath.Join(dir, access.FileName), []byte(declare), 0o600); err != nil {
		t.Fatal(err)
	}
	people := strings.ReplaceAll(`
people: [{id: ana}, {id: bo, subjects: ["ISSUER|00u1"]}, {id: chi, subjects: ["ISSUER|00u2"]}]
services: [{id: airflow, subjects: ["ISSUER|system:serviceaccount:airflow:worker"]}]
groups: {general: [ana, bo, chi]}
`, "ISSUER", i.URL)
	w := newWorld(t, func(_ *api.Config, g *api.Gate) {
		setup := reviewtest.Setup(t, people, policiesYAML, reviewtest.Floor, pledgeYAML)
		a, err := access.Load(dir, setup.People, access.Config{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		desk, err := review.NewDesk(g.Record.(review.Store), setup, review.Config{})
		if err != nil {
			t.Fatal(err)
		}
		g.Tokens, g.Desk = a, desk
	})
	return w, i
}

func bearer(token string) option { return header("Authorization", "Bearer "+token) }

// Fault 48: a token that is not good is 401 on every way in, one that is good but
// has no scope for the route is 403, and a good one is its person.
func TestTokens(t *testing.T) {
	t.Parallel()
	w, i := tokens(t)
	now := time.Now()
	for name, token := range map[string]string{
		"expired":                    i.Token(accesstest.Claim("exp", now.Add(-time.Minute).Unix())),
		"wrong audience":             i.Token(accesstest.Claim("aud", "other")),
		"wrong issuer":               i.Token(accesstest.Claim("iss", "https://idp.example")),
		"audience of the API server": i.Token(accesstest.Sub("system:serviceaccount:airflow:worker"), accesstest.Claim("aud", []string{"https://kubernetes.default.svc"})),
		"alg none":                   "eyJhbGciOiJub25lIn0." + strings.Split(i.Token(), ".")[1] + ".",
		"HS256 with the public key":  i.Token(func(t *accesstest.Token) { t.Alg, t.Key = jose.HS256, accesstest.RSA().N.Bytes() }),
		"unknown key":                i.Token(func(t *accesstest.Token) { t.KeyID = "other" }),
	} {
		for _, path := range []string{"/v1/screenings", "/v1/gate/check"} {
			a := w.do("POST", path, "", spec("r"), bearer(token))
			if a.status != http.StatusUnauthorized || a.text("detail") != review.ErrUnauthenticated.Error() {
				t.Errorf("%s, %s: status %d: %s", name, path, a.status, a.body)
				continue
			}
			checkProblem(t, name, a)
			if events := w.log.of(a.header.Get("X-Request-Id")); len(events) != 1 || !strings.Contains(events[0]["error"].(string), "refused") || strings.Contains(events[0]["error"].(string), token) {
				t.Errorf("%s: logged %v", name, events)
			}
		}
	}
	w.nothingStored("for a token that is not good")
	for name, c := range map[string]struct {
		sub, method, path string
	}{
		"no scope for the route": {"00u1", "GET", "/v1/reviews"},
		"no grant at all":        {"00u2", "POST", "/v1/screenings"},
		"nobody that is known":   {"00u3", "POST", "/v1/screenings"},
	} {
		a := w.do(c.method, c.path, "", spec("r"), bearer(i.Token(accesstest.Sub(c.sub))))
		if a.status != http.StatusForbidden {
			t.Errorf("%s: status %d: %s", name, a.status, a.body)
		}
		checkProblem(t, name, a)
	}
	w.nothingStored("for a token without the right")
	if a := w.do("POST", "/v1/screenings", "", spec("r"), bearer(i.Token())); a.status != http.StatusCreated || a.text("submitter") != "bo" {
		t.Errorf("a good token: status %d: %s", a.status, a.body)
	}
	workload := i.Token(accesstest.Sub("system:serviceaccount:airflow:worker"))
	if a := w.do("POST", "/v1/screenings", "", spec("w"), bearer(workload)); a.status != http.StatusUnprocessableEntity || !hasPointer(a, "/on_behalf_of") {
		t.Errorf("a workload that does not say for whom: status %d: %s", a.status, a.body)
	}
	if a := w.do("POST", "/v1/screenings", "", spec("w", `"owner": "ana" → "owner": "ana", "on_behalf_of": "chi"`), bearer(workload)); a.status != http.StatusCreated || a.text("submitter") != "airflow" {
		t.Errorf("a workload: status %d: %s", a.status, a.body)
	}
	if a := w.do("POST", "/v1/screenings", "bo", spec("k")); a.status != http.StatusCreated {
		t.Errorf("a key beside tokens: status %d: %s", a.status, a.body)
	}
}

// Fault 49: an issuer that is away makes nobody wait who has a key, and its tokens
// are neither let in nor called bad.
func TestKeysWorkWhileTheIssuerIsAway(t *testing.T) {
	t.Parallel()
	w, i := tokens(t)
	i.Down(http.StatusBadGateway)
	a := w.do("POST", "/v1/screenings", "", spec("r"), bearer(i.Token()))
	if a.status != http.StatusServiceUnavailable || a.text("type") != "urn:weir:problem:issuer-away" || a.header.Get("Retry-After") != "10" {
		t.Errorf("status %d, retry after %q: %s", a.status, a.header.Get("Retry-After"), a.body)
	}
	checkProblem(t, "issuer away", a)
	w.nothingStored("while the issuer was away")
	if a := w.do("POST", "/v1/screenings", "bo", spec("r")); a.status != http.StatusCreated {
		t.Errorf("a key: status %d: %s", a.status, a.body)
	}
	if asked := i.Discoveries.Load() + i.Fetches.Load(); asked != 1 {
		t.Errorf("the issuer was asked %d times", asked)
	}
}
