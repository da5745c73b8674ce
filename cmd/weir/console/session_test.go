package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"weir/cmd/weir/console"
	"weir/review"
)

func linkForm(path string) url.Values {
	return url.Values{"link": {strings.TrimPrefix(path, console.LinkPath)}}
}

func cookieOf(a answer) *http.Cookie {
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		return c
	}
	return nil
}

// A link works once and in time, opening it does nothing, and its session is a
// row whose id is kept as a digest.
func TestLoginLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	link := w.link("bo@corp.example", review.ScopeReview, review.ScopeSubmit, review.ScopeAdmin)
	b := w.browser()
	for range 2 {
		if a := b.get(link); a.status != http.StatusOK || a.header.Get("Set-Cookie") != "" || !strings.Contains(a.body, "<form method=\"post\"") ||
			!strings.Contains(a.text(), "as bo in the project default , to review.") {
			t.Fatalf("opening the link: %d %s", a.status, a.text())
		}
	}
	if n := w.count(`select count(*) from console_session`) + w.count(`select count(*) from console_link where used_at is not null`); n != 0 {
		t.Fatal("a GET logged in")
	}
	a := b.post("/console/login", linkForm(link))
	c := cookieOf(a)
	if a.status != http.StatusSeeOther || c == nil {
		t.Fatalf("login: %d %s", a.status, a.text())
	}
	if c.Name != "weir-local" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.Path != "/" || c.Domain != "" || len(c.Value) != 43 {
		t.Errorf("cookie %+v", c)
	}
	if n := w.count(`select count(*) from console_session where person = 'bo@corp.example' and scopes = '{review}'
		and position(convert_to($1, 'UTF8') in id_sha256) = 0`, c.Value); n != 1 {
		t.Error("no session with the scopes of a reader and voter")
	}
	if a := b.get("/console/reviews"); a.status != http.StatusOK {
		t.Errorf("logged in: %d", a.status)
	}
	for name, form := range map[string]url.Values{"again": linkForm(link), "never made": {"link": {strings.Repeat("A", 43)}}, "nothing": {}} {
		if a := w.browser().post("/console/login", form); a.status != http.StatusUnauthorized || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d", name, a.status)
		}
	}
	if a := w.browser().get(link); a.status != http.StatusUnauthorized || strings.Contains(a.body, `name="link"`) {
		t.Errorf("opening a used link: %d", a.status)
	}
	for _, who := range []string{"airflow", "gone"} {
		if a := w.browser().get(w.link(who, review.ScopeReview)); a.status != http.StatusUnauthorized || !strings.Contains(a.text(), "Only a person") {
			t.Errorf("opening a link for %s: %d", who, a.status)
		}
	}
	late := w.link("bo", review.ScopeReview)
	w.exec(`update console_link set created_at = created_at - interval '11 minutes', expires_at = expires_at - interval '10 minutes 1 second' where used_at is null`)
	if a := w.browser().post("/console/login", linkForm(late)); a.status != http.StatusUnauthorized {
		t.Errorf("after 10 minutes: %d", a.status)
	}
}

// A key of a person who reviews or audits opens a session that ends with the key.
func TestLoginByKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	good, id := w.key("bo", review.ScopeReview)
	for name, c := range map[string]struct {
		subject string
		scope   review.Scope
		says    string
	}{
		"a service":   {"airflow", review.ScopeReview, "Only a person"},
		"nobody":      {"admin", review.ScopeAudit, "Only a person"},
		"a submitter": {"ana", review.ScopeSubmit, "neither review nor audit"},
	} {
		key, _ := w.key(c.subject, c.scope)
		if a := w.browser().post("/console/login", url.Values{"key": {key}}); a.status != http.StatusUnauthorized || !strings.Contains(a.text(), c.says) {
			t.Errorf("%s: %d %s", name, a.status, a.text())
		}
	}
	for _, key := range []string{"", "weir_", good + "x", good[:len(good)-1] + "!"} {
		if a := w.browser().post("/console/login", url.Values{"key": {key}}); a.status != http.StatusUnauthorized {
			t.Errorf("key %q: %d", key, a.status)
		}
	}
	b := w.browser()
	if a := b.post("/console/login", url.Values{"key": {good}, "next": {"/console/dashboard?a=b"}}); a.status != http.StatusSeeOther || a.header.Get("Location") != "/console/dashboard?a=b" {
		t.Fatalf("login: %d to %q: %s", a.status, a.header.Get("Location"), a.text())
	}
	if a := b.get("/console/dashboard"); a.status != http.StatusOK {
		t.Errorf("logged in: %d", a.status)
	}
	if err := w.store.RevokeKey(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if a := b.get("/console/dashboard"); a.status != http.StatusSeeOther {
		t.Errorf("after the key was revoked: %d", a.status)
	}
}

func TestNextStaysHere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	for _, next := range []string{"https://evil.example/console/", "//evil.example/console/", "/console/../v1/screenings", "/\\evil.example", "/v1/screenings",
		"javascript:alert(1)", "/console/login", "/console/a\r\nSet-Cookie: x=y", ""} {
		form := linkForm(w.link("bo", review.ScopeReview))
		form.Set("next", next)
		if a := w.browser().post("/console/login", form); a.header.Get("Location") != "/console/reviews" {
			t.Errorf("next %q leads to %q", next, a.header.Get("Location"))
		}
	}
}

// A session ends when nobody uses it, after a working day, at logout, and at a
// new login, which never takes an id that the browser brings.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	for name, sql := range map[string]string{
		"idle":            `update console_session set seen_at = now() - interval '31 minutes'`,
		"old":             `update console_session set created_at = now() - interval '8 hours 1 second'`,
		"no such person":  `update console_session set person = 'gone'`,
		"of a service":    `update console_session set person = 'airflow'`,
		"the row is gone": `delete from console_session`,
	} {
		b := w.as("bo")
		if a := b.get("/console/reviews"); a.status != http.StatusOK {
			t.Fatalf("%s, before: %d", name, a.status)
		}
		w.exec(sql)
		if a := b.get("/console/reviews"); a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/console/login") {
			t.Errorf("%s: %d", name, a.status)
		}
		if a := b.post("/console/reviews/00000000-0000-0000-0000-000000000000/vote", url.Values{}); a.status != http.StatusSeeOther {
			t.Errorf("%s: a vote gets %d", name, a.status)
		}
		w.exec(`delete from console_session`)
	}
	// Use keeps it alive.
	b := w.as("bo")
	w.exec(`update console_session set seen_at = now() - interval '29 minutes'`)
	b.get("/console/reviews")
	if n := w.count(`select count(*) from console_session where seen_at > now() - interval '1 minute'`); n != 1 {
		t.Error("use is not noted")
	}
	before := w.count(`select count(*) from console_session`)
	again := b.post("/console/login", linkForm(w.link("bo", review.ScopeReview)))
	if again.status != http.StatusSeeOther || w.count(`select count(*) from console_session`) != before {
		t.Error("the session from before did not end at a new login")
	}
	fixed := w.browser().do("POST", "/console/login", linkForm(w.link("bo", review.ScopeReview)), func(r *http.Request) {
		r.AddCookie(&http.Cookie{Name: "weir-local", Value: "chosen"})
	})
	if c := cookieOf(fixed); c == nil || c.Value == "chosen" {
		t.Error("a login took the id that the browser brought")
	}
	if a := b.post("/console/logout", nil); a.status != http.StatusSeeOther || cookieOf(a).MaxAge >= 0 {
		t.Errorf("logout: %d", a.status)
	}
	if a := b.get("/console/reviews"); a.status != http.StatusSeeOther {
		t.Error("the session outlived the logout")
	}
}

// A cookie opens nothing of the API, and a key opens no page.
func TestSessionsAndKeysAreApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	s := w.submit(spec("nlp/bot"))
	b := w.as("bo")
	for _, path := range []string{"/v1/reviews", "/v1/screenings", "/v1/reviews/" + s.Review.ID, "/v1/packs"} {
		if a := b.get(path); a.status != http.StatusUnauthorized {
			t.Errorf("%s with a cookie: %d", path, a.status)
		}
	}
	key, _ := w.key("bo", review.ScopeReview)
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key) }
	a := w.browser().do("GET", "/console/reviews", nil, bearer)
	if a.status != http.StatusSeeOther || a.header.Get("Set-Cookie") != "" {
		t.Errorf("a page with a key: %d", a.status)
	}
}

// A form of another site changes nothing, and no address changes anything.
func TestForeignForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	s := w.submit(spec("nlp/bot", purpose("nerve agent synthesis")))
	b := w.as("bo")
	forms := map[string]url.Values{
		"/console/reviews/" + s.Review.ID + "/vote":     ballot(s, "admit", "because", "ethics:personal_data_inside"),
		"/console/reviews/" + s.Review.ID + "/excerpts": {},
		"/console/screenings/" + s.ID + "/received":     {},
		"/console/logout": {},
		"/console/login":  linkForm(w.link("bo", review.ScopeReview)),
	}
	for name, change := range map[string]func(*http.Request){
		"cross-site": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"same-site":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"an origin":  func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"no origin":  func(r *http.Request) { r.Header.Set("Origin", "null") },
	} {
		for path, form := range forms {
			if a := b.do("POST", path, form, change); a.status != http.StatusForbidden || a.header.Get("Set-Cookie") != "" {
				t.Errorf("%s to %s: %d", name, path, a.status)
			}
		}
	}
	for path, form := range forms {
		if path != "/console/login" {
			b.get(path + "?" + form.Encode())
		}
	}
	if n := w.count(`select (select count(*) from vote) + (select count(*) from exposure) + (select count(*) from console_link where used_at is not null) - 1`); n != 0 {
		t.Errorf("%d changes", n)
	}
	if a := b.get("/console/reviews"); a.status != http.StatusOK {
		t.Error("somebody else's form logged out")
	}
	if a := b.do("POST", "/console/logout", nil, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-origin") }); a.status != http.StatusSeeOther {
		t.Errorf("the page's own form: %d", a.status)
	}
}

// Over HTTP nobody logs in but on the machine itself; with an https base URL the
// cookie is Secure and for this host alone.
func TestCookieFitsTheConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	for _, host := range []string{"weir.example", "10.0.0.7:8080", "localhost.evil.example", "127.0.0.1.nip.example"} {
		a := w.browser().do("POST", "/console/login", linkForm(w.link("bo", review.ScopeReview)), func(r *http.Request) { r.Host = host })
		if a.status != http.StatusForbidden || a.header.Get("Set-Cookie") != "" || !strings.Contains(a.text(), "HTTPS needed") {
			t.Errorf("%s: %d", host, a.status)
		}
	}
	https := newWorld(t, console.Config{BaseURL: "https://weir.example"})
	a := https.browser().do("POST", "/console/login", linkForm(https.link("bo", review.ScopeReview)), func(r *http.Request) {
		r.Host = "weir.example"
		r.Header.Set("Origin", "https://weir.example")
	})
	c := cookieOf(a)
	if a.status != http.StatusSeeOther || c == nil || c.Name != "__Host-weir" || !c.Secure || c.Path != "/" || c.Domain != "" {
		t.Fatalf("%d, cookie %+v", a.status, c)
	}
	for name, want := range map[string]int{"__Host-weir": http.StatusOK, "weir-local": http.StatusSeeOther} {
		got := https.browser().do("GET", "/console/reviews", nil, func(r *http.Request) {
			r.AddCookie(&http.Cookie{Name: name, Value: c.Value})
		})
		if got.status != want {
			t.Errorf("session as %s: %d, want %d", name, got.status, want)
		}
	}
	if _, err := console.New(w.desk, w.store, w.store, console.Config{BaseURL: "weir.example"}); err == nil {
		t.Error("a base URL without a scheme is taken")
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	b := w.as("bo")
	for _, path := range []string{"/console/login", "/console/reviews", "/console/nothing", "/console", "/console/reviews?view=x"} {
		a := b.get(path)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
			"X-Content-Type-Options":  "nosniff",
			"Referrer-Policy":         "no-referrer",
			"Cache-Control":           "no-store",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
	// A strict cookie stays away when another site links here; the page asks again by itself.
	a := w.browser().do("GET", "/console/reviews?view=open", nil, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
	if a.status != http.StatusOK || !strings.Contains(a.body, `http-equiv="refresh"`) {
		t.Errorf("from another site: %d", a.status)
	}
}

// Nobody sees a page without a session.
func TestPagesNeedASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	s := w.submit(spec("nlp/bot"))
	rv, sc := "/console/reviews/"+s.Review.ID, "/console/screenings/"+s.ID
	for _, path := range []string{"/console", "/console/", "/console/reviews", rv, rv + "/diff", "/console/screenings", sc, sc + "/received", sc + "/history",
		"/console/deliveries", "/console/deliveries/" + w.delivery(s), "/console/vocabulary", "/console/vocabulary/ethics/license_nc", "/console/dashboard"} {
		if a := w.browser().get(path); a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/console/login") || strings.Contains(a.body, "nlp") {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	for _, path := range []string{rv + "/vote", rv + "/excerpts", rv + "/claim", rv + "/comment", sc + "/excerpts", sc + "/received", "/console/deliveries/" + w.delivery(s) + "/redeliver"} {
		if a := w.browser().post(path, url.Values{}); a.status != http.StatusSeeOther {
			t.Errorf("POST %s: %d", path, a.status)
		}
	}
}
