package console_test

import (
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/cmd/weir/access"
	"weir/cmd/weir/access/accesstest"
	"weir/cmd/weir/console"
	"weir/review"
	"weir/review/reviewtest"
)

// issuers are what access.yaml declares of an issuer whose 00u1 is bo, 00u2 chi,
// who may only submit, 00u3 dee, who may do nothing, and robot a service.
func issuers(t testing.TB, i *accesstest.Issuer, grants string) *access.Access {
	t.Helper()
	dir := t.TempDir()
	text := `issuers: [{id: corp, issuer: "` + i.URL + `", audience: weir, login: {client_id: console, label: "Sign in at Corp"}}]` + "\ngrants: " + grants + "\n"
	if err := os.WriteFile(filepath.Join(dir, access.FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := access.Load(dir, people(t, i).People, access.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func people(t testing.TB, i *accesstest.Issuer) review.Setup {
	t.Helper()
	return reviewtest.Setup(t, strings.ReplaceAll(`
people: [{id: ana}, {id: bo, aliases: [bo@corp.example], subjects: ["ISSUER|00u1"]}, {id: chi, subjects: ["ISSUER|00u2"]}, {id: dee, subjects: ["ISSUER|00u3"]}]
services: [{id: airflow, subjects: ["ISSUER|robot"]}]
groups: {general: [ana, bo, chi], legal: [bo]}
`, "ISSUER", i.URL), policiesYAML, reviewtest.Floor, pledgeYAML)
}

const grants = `[{people: [bo], scopes: [review, submit, admin]}, {people: [chi], scopes: [submit]}, {services: [airflow], scopes: [review]}]`

func withIssuer(t *testing.T, cfg console.Config) (*world, *accesstest.Issuer) {
	t.Helper()
	i := accesstest.NewIssuer(t)
	cfg.Issuers = issuers(t, i, grants)
	return newWorldOf(t, people(t, i), cfg), i
}

// atIssuer goes from the login page to the issuer, and gives the address that the
// browser is sent back to.
func (b *browser) atIssuer(from string) (back string) {
	b.Helper()
	a := b.get(from)
	if a.status != http.StatusSeeOther {
		b.Fatalf("%s: %d %s", from, a.status, a.text())
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(a.header.Get("Location"))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	to, err := resp.Location()
	if err != nil || !strings.HasPrefix(to.String(), b.url+"/console/login/corp/back?") {
		b.Fatalf("the issuer sends to %v, %v", to, err)
	}
	return to.RequestURI()
}

func fromElsewhere(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }

func TestLoginAtAnIssuer(t *testing.T) {
	t.Parallel()
	w, i := withIssuer(t, console.Config{})
	i.SignedIn("00u1")
	b := w.browser()
	a := b.get("/console/login?next=%2Fconsole%2Fdashboard%3Fa%3Db")
	const button = `<a class="button main" href="/console/login/corp?next=%2Fconsole%2Fdashboard%3Fa%3Db">Sign in at Corp</a>`
	if !strings.Contains(a.body, button) {
		t.Fatalf("no button: %s", a.body)
	}
	away := b.get("/console/login/corp?next=%2Fconsole%2Fdashboard%3Fa%3Db")
	c := cookieOf(away)
	if c == nil || c.Name != "weir-local-login" || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 600 || c.Path != "/" {
		t.Errorf("cookie of a login under way: %+v", c)
	}
	if strings.Contains(away.header.Get("Location"), strings.Split(c.Value, ".")[0]) {
		t.Error("the issuer is told the secret")
	}
	if n := w.count(`select count(*) from console_session`); n != 0 {
		t.Error("leaving opened a session")
	}
	back := b.do("GET", b.atIssuer("/console/login/corp?next=%2Fconsole%2Fdashboard%3Fa%3Db"), nil, fromElsewhere)
	if back.status != http.StatusSeeOther || back.header.Get("Location") != "/console/dashboard?a=b" {
		t.Fatalf("coming back: %d to %q: %s", back.status, back.header.Get("Location"), back.text())
	}
	cookies := (&http.Response{Header: back.header}).Cookies()
	if len(cookies) != 2 || cookies[0].Name != "weir-local-login" || cookies[0].MaxAge >= 0 ||
		cookies[1].Name != "weir-local" || cookies[1].SameSite != http.SameSiteStrictMode || !cookies[1].HttpOnly {
		t.Errorf("cookies %v", cookies)
	}
	if a := b.get("/console/reviews"); a.status != http.StatusOK || !strings.Contains(a.text(), "bo") {
		t.Errorf("signed in: %d", a.status)
	}
	// The vote is bo's, whichever way they came in.
	s := w.submit(spec("nlp/bot"))
	if a := b.post("/console/reviews/"+s.Review.ID+"/vote", ballot(s, "admit", "because", "ethics:personal_data_inside")); a.status != http.StatusSeeOther {
		t.Errorf("vote: %d %s", a.status, a.text())
	}
	if n := w.count(`select count(*) from vote where person = 'bo'`); n != 1 {
		t.Errorf("%d votes of bo", n)
	}
	if a := b.post("/console/logout", nil); a.status != http.StatusSeeOther {
		t.Errorf("logout: %d", a.status)
	}
	if a := b.get("/console/reviews"); a.status != http.StatusSeeOther {
		t.Error("the session outlived the logout")
	}
}

// Nobody is signed in by an answer that this browser did not ask for, nor twice by
// one, nor by a page of somebody else's, nor without being a person with rights.
func TestLoginAtAnIssuerRefuses(t *testing.T) {
	t.Parallel()
	w, i := withIssuer(t, console.Config{})
	i.SignedIn("00u1")
	refused := func(name string, a answer, status int, says string) {
		t.Helper()
		for _, c := range (&http.Response{Header: a.header}).Cookies() {
			if c.Value != "" {
				t.Errorf("%s: cookie %v", name, c)
			}
		}
		if a.status != status || !strings.Contains(a.text(), says) {
			t.Errorf("%s: %d %s", name, a.status, a.text())
		}
	}
	left := w.browser()
	back := left.atIssuer("/console/login/corp")
	refused("in another browser", w.browser().get(back), http.StatusUnauthorized, "not begun in this browser")
	other := w.browser()
	other.atIssuer("/console/login/corp")
	refused("in a browser with a login of its own", other.get(back), http.StatusUnauthorized, "did not sign you in")
	refused("after that, its own", other.get(back), http.StatusUnauthorized, "not begun")
	if a := left.get(back); a.status != http.StatusSeeOther {
		t.Fatalf("the login itself: %d %s", a.status, a.text())
	}
	refused("again", left.get(back), http.StatusUnauthorized, "not begun")
	refused("two cookies", w.browser().do("GET", back, nil, func(r *http.Request) {
		r.AddCookie(&http.Cookie{Name: "weir-local-login", Value: "a."})
		r.AddCookie(&http.Cookie{Name: "weir-local-login", Value: "b."})
	}), http.StatusUnauthorized, "not begun")
	refused("begun by another site", w.browser().do("GET", "/console/login/corp", nil, fromElsewhere), http.StatusOK, "Sign in at Corp")
	refused("an issuer that is not declared", w.browser().get("/console/login/other"), http.StatusNotFound, "no such page")
	refused("a path that is none", w.browser().get("/console/login/corp/other"), http.StatusNotFound, "no such page")
	for sub, says := range map[string]string{
		"00u2":          "neither review nor audit",
		"00u3":          "neither review nor audit",
		"robot":         "Only a person",
		"00u9":          i.URL + "|00u9",
		"<b>\u202ebo":   "\\u202ebo",
		"bo":            "to nobody",
		i.URL + "|00u1": "to nobody",
	} {
		i.SignedIn(sub)
		b := w.browser()
		refused(sub, b.get(b.atIssuer("/console/login/corp")), http.StatusUnauthorized, says)
	}
	i.Down(503)
	b := w.browser()
	b.get("/console/login/corp") // discovery is known, so the browser is sent there
	a := b.get("/console/login/corp/back?state=x&code=y")
	refused("a wrong state while the issuer is away", a, http.StatusUnauthorized, "did not sign you in")
	i.Resume()
	i.SignedIn("00u1")
	back = b.atIssuer("/console/login/corp")
	i.Down(503)
	a = b.get(back)
	refused("the issuer went away", a, http.StatusServiceUnavailable, "cannot be reached")
	if a.header.Get("Retry-After") != "10" {
		t.Errorf("retry after %q", a.header.Get("Retry-After"))
	}
	if n := w.count(`select count(*) from console_session`); n != 1 {
		t.Errorf("%d sessions, want the one of the good login", n)
	}
}

// A session of an issuer has what is granted today, not what was when it began.
func TestSessionsOfIssuersFollowTheGrants(t *testing.T) {
	t.Parallel()
	i := accesstest.NewIssuer(t)
	i.SignedIn("00u1")
	declared := people(t, i)
	w := newWorldOf(t, declared, console.Config{Issuers: issuers(t, i, `[{people: [bo], scopes: [review, policy]}]`)})
	b := w.browser()
	if a := b.get(b.atIssuer("/console/login/corp")); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.text())
	}
	if a := b.get("/console/deliveries"); a.status != http.StatusOK {
		t.Fatalf("with the scope policy: %d", a.status)
	}
	for name, c := range map[string]struct {
		issuers                console.Issuers
		reviews, deliveriesNow int
	}{
		"as before":       {issuers(t, i, `[{people: [bo], scopes: [review, policy]}]`), http.StatusOK, http.StatusOK},
		"less":            {issuers(t, i, `[{people: [bo], scopes: [review]}]`), http.StatusOK, http.StatusForbidden},
		"nothing":         {issuers(t, i, `[]`), http.StatusSeeOther, http.StatusSeeOther},
		"no reviewing":    {issuers(t, i, `[{people: [bo], scopes: [policy]}]`), http.StatusSeeOther, http.StatusSeeOther},
		"another project": {issuers(t, i, `[{people: [bo], scopes: [review, policy], project: nlp}]`), http.StatusSeeOther, http.StatusSeeOther},
		"no issuers":      {nil, http.StatusSeeOther, http.StatusSeeOther},
	} {
		restarted := w.again(declared, console.Config{Issuers: c.issuers})
		same := &browser{restarted, b.client}
		for path, want := range map[string]int{"/console/reviews": c.reviews, "/console/deliveries": c.deliveriesNow} {
			if a := same.get(path); a.status != want {
				t.Errorf("%s: %s is %d, want %d", name, path, a.status, want)
			}
		}
	}
}

// Behind a proxy the issuer is told the address that people use, whatever Host says.
func TestLoginComesBackToTheBaseURL(t *testing.T) {
	t.Parallel()
	w, _ := withIssuer(t, console.Config{BaseURL: "https://weir.example/"})
	a := w.browser().do("GET", "/console/login/corp", nil, func(r *http.Request) { r.Host = "evil.example" })
	to, err := url.Parse(a.header.Get("Location"))
	if err != nil || to.Query().Get("redirect_uri") != "https://weir.example/console/login/corp/back" {
		t.Errorf("sent to %v, %v", to, err)
	}
	if c := cookieOf(a); c == nil || c.Name != "__Host-weir-login" || !c.Secure || c.Path != "/" || c.Domain != "" {
		t.Errorf("cookie %+v", c)
	}
	open, _ := withIssuer(t, console.Config{})
	for _, path := range []string{"/console/login/corp", "/console/login/corp/back?state=x&code=y"} {
		if a := open.browser().do("GET", path, nil, func(r *http.Request) { r.Host = "weir.example" }); a.status != http.StatusForbidden || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s over an open connection: %d", path, a.status)
		}
	}
}
