package access_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir/access"
	"weir/cmd/weir/access/accesstest"
	"weir/review"
)

const (
	withLogin = `
issuers: [{id: corp, issuer: "ISSUER", audience: weir, login: {client_id: console, client_secret_env: WEIR_TEST_CLIENT_SECRET, label: "Sign in at Corp"}}]
grants: [{people: [bo], scopes: [review]}]
`
	publicLogin = `
issuers: [{id: corp, issuer: "ISSUER", audience: weir, login: {client_id: console}}]
grants: [{people: [bo], scopes: [review]}]
`
	comesBack = "https://weir.example/console/login/corp/back"
	secret    = "a secret of one browser"
)

// visit follows the address of a login as a browser that is signed in at the
// issuer, and gives the query that it comes back with.
func visit(t *testing.T, address string) url.Values {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	to, err := resp.Location()
	if err != nil || !strings.HasPrefix(to.String(), comesBack+"?") {
		t.Fatalf("the issuer answers %d: %s", resp.StatusCode, body)
	}
	return to.Query()
}

func begin(t *testing.T, a *access.Access, secret string) string {
	t.Helper()
	address, err := a.LoginAddress(t.Context(), "corp", comesBack, secret)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func TestLogin(t *testing.T) {
	t.Setenv("WEIR_TEST_CLIENT_SECRET", "s3cret")
	for name, c := range map[string]struct {
		config, label string
		methods       []string
		shown         []string // the client's secret, where it was sent
	}{
		"a secret":         {withLogin, "Sign in at Corp", nil, []string{"header s3cret"}},
		"a secret by form": {withLogin, "Sign in at Corp", []string{"client_secret_post"}, []string{"form s3cret"}},
		"a public client":  {publicLogin, "Sign in with corp", nil, []string{"form "}},
	} {
		clk := newClock()
		i := newIssuer(t, clk)
		i.SignedIn(subIsBo)
		i.Methods(c.methods...)
		a := load(t, i, clk, c.config)
		for id, label := range a.Logins() {
			if id != "corp" || label != c.label {
				t.Errorf("%s: %s is %q", name, id, label)
			}
		}
		subject, err := a.Login(t.Context(), "corp", comesBack, secret, visit(t, begin(t, a, secret)))
		if err != nil || subject != i.URL+"|"+subIsBo {
			t.Errorf("%s: %q, %v", name, subject, err)
		}
		if got := i.Secrets(); !slices.Equal(got, c.shown) {
			t.Errorf("%s: the issuer was shown %q", name, got)
		}
		if strings.Contains(begin(t, a, secret), "s3cret") || strings.Contains(begin(t, a, secret), url.QueryEscape(secret)) {
			t.Errorf("%s: a secret is in the address", name)
		}
	}
}

// An answer that is not to this login, or no good, signs nobody in.
func TestLoginRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		issuer func(*accesstest.Issuer)
		answer func(url.Values)
		secret string
		asks   bool // the token endpoint
		says   string
	}{
		"no state":             {answer: func(q url.Values) { q.Del("state") }, says: "this browser"},
		"another state":        {answer: func(q url.Values) { q.Set("state", strings.Repeat("A", 43)) }, says: "this browser"},
		"another browser":      {secret: "another secret", says: "this browser"},
		"another issuer":       {answer: func(q url.Values) { q.Set("iss", "https://evil.example") }, says: "another issuer"},
		"two issuers":          {answer: func(q url.Values) { q.Add("iss", "https://evil.example") }, says: "another issuer"},
		"the person said no":   {answer: func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, says: "access_denied"},
		"no code":              {answer: func(q url.Values) { q.Del("code") }, asks: true, says: "invalid_grant"},
		"another code":         {answer: func(q url.Values) { q.Set("code", "code-7") }, asks: true, says: "invalid_grant"},
		"a token for another":  {issuer: func(i *accesstest.Issuer) { i.Misbehave(accesstest.Claim("aud", "weir")) }, asks: true, says: "audience"},
		"a token for several":  {issuer: func(i *accesstest.Issuer) { i.Misbehave(accesstest.Claim("aud", []string{"console", "x"})) }, asks: true, says: "another client"},
		"another client's":     {issuer: func(i *accesstest.Issuer) { i.Misbehave(accesstest.Claim("azp", "x")) }, asks: true, says: "another client"},
		"another nonce":        {issuer: func(i *accesstest.Issuer) { i.Misbehave(accesstest.Claim("nonce", "x")) }, asks: true, says: "not of this login"},
		"no nonce":             {issuer: func(i *accesstest.Issuer) { i.Misbehave(accesstest.Claim("nonce", nil)) }, asks: true, says: "not of this login"},
		"an old token":         {issuer: func(i *accesstest.Issuer) { i.Misbehave(accesstest.Claim("exp", 1)) }, asks: true, says: "expired"},
		"a token of another":   {issuer: func(i *accesstest.Issuer) { i.Misbehave(accesstest.Claim("iss", "https://idp.example")) }, asks: true, says: "different provider"},
		"an unknown key":       {issuer: func(i *accesstest.Issuer) { i.Misbehave(func(t *accesstest.Token) { t.KeyID = "x" }) }, asks: true, says: "no key"},
		"two spellings of sub": {issuer: func(i *accesstest.Issuer) { i.Misbehave(accesstest.Claim("Sub", subIsBo)) }, asks: true, says: "could be taken"},
		"nobody":               {issuer: func(i *accesstest.Issuer) { i.SignedIn("") }, asks: true, says: "no subject"},
		"a token of the API's": {issuer: func(i *accesstest.Issuer) {
			i.Misbehave(accesstest.Claim("aud", "weir"), accesstest.Claim("nonce", nil))
		}, asks: true, says: "audience"},
		"an answer used before": {issuer: (*accesstest.Issuer).ForgetCodes, asks: true, says: "invalid_grant"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clk := newClock()
			i := newIssuer(t, clk)
			i.SignedIn(subIsBo)
			a := load(t, i, clk, publicLogin)
			answer := visit(t, begin(t, a, secret))
			if c.issuer != nil {
				c.issuer(i)
				if strings.Contains(name, "nobody") {
					answer = visit(t, begin(t, a, secret))
				}
			}
			if c.answer != nil {
				c.answer(answer)
			}
			with := secret
			if c.secret != "" {
				with = c.secret
			}
			subject, err := a.Login(t.Context(), "corp", comesBack, with, answer)
			if !errors.Is(err, review.ErrUnauthenticated) || subject != "" || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q, %v, want it refused for %q", subject, err, c.says)
			}
			if asked := len(i.Secrets()) > 0; asked != c.asks {
				t.Errorf("the token endpoint was asked: %t", asked)
			}
		})
	}
}

// Who is signed in at one issuer is not at another, and only a declared login is one.
func TestLoginIsOfItsIssuer(t *testing.T) {
	t.Parallel()
	c := newClock()
	i := newIssuer(t, c)
	a := load(t, i, c, working)
	for range a.Logins() {
		t.Error("an issuer without login signs people in")
	}
	for _, id := range []string{"corp", "other", ""} {
		if _, err := a.LoginAddress(t.Context(), id, comesBack, secret); !errors.Is(err, review.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
		if _, err := a.Login(t.Context(), id, comesBack, secret, nil); !errors.Is(err, review.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if n := i.Discoveries.Load(); n != 0 {
		t.Errorf("asked %d times", n)
	}
}

// Fault 49 at the login: an issuer that is away is asked no more often by people who
// press the button, and signs nobody in.
func TestLoginWhileTheIssuerIsAway(t *testing.T) {
	t.Parallel()
	c := newClock()
	i := newIssuer(t, c)
	i.SignedIn(subIsBo)
	a := load(t, i, c, publicLogin)
	i.Down(503)
	for range 50 {
		if _, err := a.LoginAddress(t.Context(), "corp", comesBack, secret); !errors.Is(err, review.ErrIssuerAway) {
			t.Fatalf("away: %v", err)
		}
	}
	if n := i.Discoveries.Load(); n != 1 {
		t.Errorf("asked %d times at one moment", n)
	}
	i.Resume()
	c.add(10 * time.Second)
	answer := visit(t, begin(t, a, secret))
	for _, status := range []int{500, 503, 429} {
		i.Down(status)
		if _, err := a.Login(t.Context(), "corp", comesBack, secret, answer); !errors.Is(err, review.ErrIssuerAway) || errors.Is(err, review.ErrUnauthenticated) {
			t.Errorf("status %d for the code: %v", status, err)
		}
	}
	i.Resume()
	if subject, err := a.Login(t.Context(), "corp", comesBack, secret, answer); err != nil || subject != i.URL+"|"+subIsBo {
		t.Errorf("back: %q, %v", subject, err)
	}
}
