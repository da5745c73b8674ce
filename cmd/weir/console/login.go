package console

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"weir/review"
	"weir/screening"
)

const (
	// A browser that is at an issuer keeps what it began under the name of the
	// session's cookie and this.
	underWay = "-login"
	// underWayFor is how long it may be there, in seconds.
	underWayFor = 600
)

type loginData struct {
	Next    string
	Link    string // token of a login link, to be confirmed
	Person  string // whom the link signs in
	Project string
	Scopes  []review.Scope
	Error   string
	Issuers []loginIssuer
}

type loginIssuer struct{ Path, Label string }

// showLogin shows the ways in, and what went wrong with one.
func (c *Console) showLogin(w http.ResponseWriter, r *http.Request, status int, data loginData) error {
	if c.cfg.Issuers != nil {
		for id, label := range c.cfg.Issuers.Logins() {
			path := "/console/login/" + id
			if data.Next != "" {
				path += "?next=" + url.QueryEscape(data.Next)
			}
			data.Issuers = append(data.Issuers, loginIssuer{path, label})
		}
	}
	return c.render(w, r, nil, status, "login", "Sign in", data)
}

const deadLink = "This link was used, is older than 10 minutes, or never was one. Ask for a new one."

// loginPage shows the ways in. Of a link it says whom it signs in, and only the
// button uses it up: programs that preview links open this page too.
func (c *Console) loginPage(w http.ResponseWriter, r *http.Request) error {
	if _, err := c.cookieName(r); err != nil {
		return err
	}
	q := r.URL.Query()
	data := loginData{Next: safeNext(q.Get("next"))}
	link := q.Get("link")
	if link == "" {
		return c.showLogin(w, r, http.StatusOK, data)
	}
	p, err := c.sessions.LoginLink(r.Context(), screening.Sum([]byte(link)))
	if errors.Is(err, review.ErrUnauthenticated) {
		data.Error = deadLink
		return c.showLogin(w, r, http.StatusUnauthorized, data)
	}
	if err != nil {
		return err
	}
	p, person, why := c.enter(p)
	if why != "" {
		data.Error = why
		return c.showLogin(w, r, http.StatusUnauthorized, data)
	}
	data.Link, data.Person, data.Project, data.Scopes = link, person, p.Project, p.Scopes
	return c.showLogin(w, r, http.StatusOK, data)
}

// safeNext keeps where somebody wanted to go, if it is a page of the console.
func safeNext(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || strings.ContainsAny(next, "\\\r\n\t") ||
		!strings.HasPrefix(next, "/console/") || strings.HasPrefix(next, "/console/login") || strings.Contains(u.Path, "..") {
		return ""
	}
	return next
}

// login opens a session for who shows a live link or key.
func (c *Console) login(w http.ResponseWriter, r *http.Request) error {
	if _, err := c.cookieName(r); err != nil {
		return err
	}
	if err := r.ParseForm(); err != nil {
		return errForm
	}
	data := loginData{Next: safeNext(r.PostForm.Get("next"))}
	link := r.PostForm.Get("link")
	var p review.Principal
	var keyID string
	var err error
	if link != "" {
		p, err = c.sessions.UseLoginLink(r.Context(), screening.Sum([]byte(link)))
	} else {
		var key review.APIKey
		if key, err = review.ParseAPIKey(strings.TrimSpace(r.PostForm.Get("key"))); err == nil {
			keyID = key.ID
			p, err = c.sessions.Authenticate(r.Context(), key.ID, key.SecretSHA256)
		}
	}
	switch {
	case errors.Is(err, review.ErrUnauthenticated) && link != "":
		data.Error = deadLink
	case errors.Is(err, review.ErrUnauthenticated):
		data.Error = "This key is not valid. Check that it was copied whole, and that it was not revoked."
	case err != nil:
		return err
	}
	if data.Error != "" {
		return c.showLogin(w, r, http.StatusUnauthorized, data)
	}
	p, person, why := c.enter(p)
	if why != "" {
		data.Error = why
		return c.showLogin(w, r, http.StatusUnauthorized, data)
	}
	if isTokenSubject(p.Subject) { // what an issuer's sessions are called; this one is none
		p.Subject = person
	}
	return c.openSession(w, r, p, person, session{keyID: keyID, next: data.Next})
}

// enter gives what a session of somebody may do, and whose it is; why says to them
// why there can be none.
func (c *Console) enter(p review.Principal) (narrowed review.Principal, person, why string) {
	person, ok := c.desk.Setup().People.Person(p.Subject)
	if !ok {
		return p, "", "Only a person can sign in, and people.yaml declares none for this."
	}
	p.Scopes = forSession(p.Scopes)
	if !mayEnter(p) {
		return p, "", "This may neither review nor audit; the console has nothing for it."
	}
	return p, person, ""
}

// session is how one began.
type session struct {
	keyID  string // API key that it ends with; "" = none
	issuer string // "" = none
	next   string // where to go then; "" = the reviews
}

// openSession signs a person in. The session's id is new each time; one that the
// browser had before ends.
func (c *Console) openSession(w http.ResponseWriter, r *http.Request, p review.Principal, person string, began session) error {
	name, err := c.cookieName(r)
	if err != nil {
		return err
	}
	if old, ok := c.sessionOf(r); ok {
		if err := c.sessions.EndSession(r.Context(), old); err != nil {
			return err
		}
	}
	token, id := newSecret()
	if err := c.sessions.OpenSession(r.Context(), id, p, began.keyID); err != nil {
		return err
	}
	c.setCookie(w, name, token)
	c.cfg.Log.InfoContext(r.Context(), "console login", "person", person, "project", p.Project, "by_key", began.keyID != "", "issuer", began.issuer)
	return seeOther(w, r, cmp.Or(began.next, "/console/reviews"))
}

// leave sends a browser to sign in at an issuer.
func (c *Console) leave(w http.ResponseWriter, r *http.Request) error {
	name, err := c.cookieName(r)
	if err != nil {
		return err
	}
	data := loginData{Next: safeNext(r.URL.Query().Get("next"))}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" { // nobody is signed in by another's page
		return c.showLogin(w, r, http.StatusOK, data)
	}
	id := r.PathValue("issuer")
	if c.cfg.Issuers == nil {
		return review.ErrNotFound
	}
	secret, _ := newSecret()
	to, err := c.cfg.Issuers.LoginAddress(r.Context(), id, c.back(r, id), secret)
	if errors.Is(err, review.ErrIssuerAway) {
		return c.issuerAway(w, r, id, data, err)
	}
	if err != nil {
		return err
	}
	c.setUnderWay(w, name, secret+"."+base64.RawURLEncoding.EncodeToString([]byte(data.Next)))
	return seeOther(w, r, to)
}

// comeBack signs in who returns from an issuer. That this browser left from here
// shows the cookie, without which the answer is good for nothing.
func (c *Console) comeBack(w http.ResponseWriter, r *http.Request) error {
	name, err := c.cookieName(r)
	if err != nil {
		return err
	}
	if c.cfg.Issuers == nil {
		return review.ErrNotFound
	}
	id, data := r.PathValue("issuer"), loginData{}
	refuse := func(say string) error {
		data.Error = say
		return c.showLogin(w, r, http.StatusUnauthorized, data)
	}
	kept := r.CookiesNamed(name + underWay)
	if len(kept) != 1 {
		return refuse("This login was not begun in this browser, or more than 10 minutes ago. Begin again.")
	}
	c.setUnderWay(w, name, "") // it is good for one answer
	secret, next, _ := strings.Cut(kept[0].Value, ".")
	if path, err := base64.RawURLEncoding.DecodeString(next); err == nil {
		data.Next = safeNext(string(path))
	}
	subject, err := c.cfg.Issuers.Login(r.Context(), id, c.back(r, id), secret, r.URL.Query())
	switch {
	case errors.Is(err, review.ErrIssuerAway):
		return c.issuerAway(w, r, id, data, err)
	case errors.Is(err, review.ErrUnauthenticated):
		c.cfg.Log.WarnContext(r.Context(), "console login refused", "issuer", id, "error", err)
		return refuse(id + " did not sign you in, or its answer is not good. Begin again; if that does not help, the gate's log says why.")
	case err != nil:
		return err
	}
	p, err := c.cfg.Issuers.Principal(subject)
	if errors.Is(err, review.ErrNotAllowed) {
		c.cfg.Log.WarnContext(r.Context(), "console login refused", "issuer", id, "subject", subject, "error", err)
		return refuse(fmt.Sprintf("You signed in at %s, and people.yaml gives the subject %q to nobody. Tell whoever runs the gate.", id, subject))
	}
	if err != nil {
		return err
	}
	p, person, why := c.enter(p)
	if why != "" {
		return refuse(why)
	}
	p.Subject = subject // what it may do is looked up at every page: see granted
	return c.openSession(w, r, p, person, session{issuer: id, next: data.Next})
}

// issuerAway says that nobody can tell now who somebody is.
func (c *Console) issuerAway(w http.ResponseWriter, r *http.Request, id string, data loginData, err error) error {
	c.cfg.Log.WarnContext(r.Context(), "console login", "issuer", id, "error", err)
	w.Header().Set("Retry-After", "10")
	data.Error = id + " cannot be reached now. Try again in a moment, or sign in with a key or link."
	return c.showLogin(w, r, http.StatusServiceUnavailable, data)
}

// back is our address that an issuer sends browsers to.
func (c *Console) back(r *http.Request, id string) string {
	base := strings.TrimRight(c.cfg.BaseURL, "/")
	if base == "" {
		scheme := "http" // on this machine only: see cookieName
		if r.TLS != nil {
			scheme = "https"
		}
		base = scheme + "://" + r.Host
	}
	return base + "/console/login/" + id + "/back"
}

// setUnderWay keeps what a login is told apart by, or ends it. A strict cookie
// would not come back from the issuer's site.
func (c *Console) setUnderWay(w http.ResponseWriter, name, value string) {
	cookie := newCookie(name+underWay, value)
	cookie.SameSite = http.SameSiteLaxMode
	if value != "" {
		cookie.MaxAge = underWayFor
	}
	http.SetCookie(w, cookie)
}
