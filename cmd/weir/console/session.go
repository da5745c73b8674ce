package console

import (
	"crypto/rand"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"weir/review"
	"weir/screening"
)

// The two names of the session cookie. Browsers take the first only over HTTPS,
// for this host alone and every path; the second is for the machine itself.
const (
	secureCookie = "__Host-weir"
	localCookie  = "weir-local"
)

// sessionScopes are the rights that a session can have. What a pipeline or an
// administrator may do stays with their keys.
var sessionScopes = []review.Scope{review.ScopeReview, review.ScopeAudit, review.ScopePolicy, review.ScopeCurate}

// forSession gives those of some scopes that a session can have.
func forSession(scopes []review.Scope) []review.Scope {
	return slices.DeleteFunc(slices.Clone(scopes), func(s review.Scope) bool { return !slices.Contains(sessionScopes, s) })
}

// mayEnter reports whether the console has anything for somebody.
func mayEnter(p review.Principal) bool { return p.May(review.ScopeReview) || p.May(review.ScopeAudit) }

// LinkPath is where a login link leads; the token follows.
const LinkPath = "/console/login?link="

// NewLink makes the token of a login link and the digest that is kept of it.
func NewLink() (token string, digest screening.Digest256) { return newSecret() }

// newSecret makes a random text of 256 bits and its digest.
func newSecret() (token string, digest screening.Digest256) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	token = base64.RawURLEncoding.EncodeToString(secret[:])
	return token, screening.Sum([]byte(token))
}

// cookieName gives the name under which this request's session travels. The
// insecure one needs a connection that does not leave this machine and an address
// that says so: a proxy before the gate that ends TLS has neither.
func (c *Console) cookieName(r *http.Request) (name string, err error) {
	if c.https || r.TLS != nil {
		return secureCookie, nil
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	named, err := netip.ParseAddr(strings.Trim(host, "[]"))
	local := host == "localhost" || err == nil && named.IsLoopback()
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if !local || err != nil || !peer.Addr().Unmap().IsLoopback() {
		return "", errNotLocal
	}
	return localCookie, nil
}

func (c *Console) setCookie(w http.ResponseWriter, name, value string) {
	cookie := newCookie(name, value)
	cookie.SameSite = http.SameSiteStrictMode
	http.SetCookie(w, cookie)
}

// newCookie is a cookie for this host and no script; without a value it ends one.
func newCookie(name, value string) *http.Cookie {
	cookie := &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, Secure: strings.HasPrefix(name, secureCookie)}
	if value == "" {
		cookie.MaxAge = -1
	}
	return cookie
}

// sessionOf gives the digest of the session id that a request carries.
func (c *Console) sessionOf(r *http.Request) (id screening.Digest256, ok bool) {
	name, err := c.cookieName(r)
	if err != nil {
		return id, false
	}
	cookies := r.CookiesNamed(name)
	if len(cookies) != 1 { // two of a name are not ours, or not only ours
		return id, false
	}
	return screening.Sum([]byte(cookies[0].Value)), true
}

// visitor gives who sent a request. Whoever people.yaml no longer declares is
// nobody, whatever the session says.
func (c *Console) visitor(r *http.Request) (*visit, error) {
	id, ok := c.sessionOf(r)
	if !ok {
		return nil, review.ErrUnauthenticated
	}
	p, err := c.sessions.Session(r.Context(), id)
	if err != nil {
		return nil, err
	}
	if isTokenSubject(p.Subject) {
		if p, err = c.granted(p); err != nil {
			return nil, err
		}
	}
	person, ok := c.desk.Setup().People.Person(p.Subject)
	if !ok {
		return nil, review.ErrUnauthenticated
	}
	return &visit{p, person}, nil
}

// isTokenSubject tells sessions that an issuer signed in from those of keys and links.
func isTokenSubject(subject string) bool {
	_, _, ok := review.CutSubject(subject)
	return ok
}

// granted is what somebody whom an issuer signed in may do today. What was granted
// when the session began counts no longer: as with a token.
func (c *Console) granted(p review.Principal) (review.Principal, error) {
	if c.cfg.Issuers == nil {
		return p, review.ErrUnauthenticated
	}
	now, err := c.cfg.Issuers.Principal(p.Subject)
	if err != nil || now.Project != p.Project {
		return p, review.ErrUnauthenticated
	}
	now.Scopes = forSession(now.Scopes)
	if !mayEnter(now) {
		return p, review.ErrUnauthenticated
	}
	return now, nil
}

// turnAway leads somebody without a session to the login.
func (c *Console) turnAway(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		// Browsers keep a strict cookie back when a link on another site leads
		// here. The page asks for itself again, which is no longer from there.
		if err := c.render(w, r, nil, http.StatusOK, "again", "One moment", r.URL.RequestURI()); err != nil {
			c.fail(w, r, nil, err)
		}
		return
	}
	to := "/console/login"
	if r.Method == http.MethodGet {
		to += "?next=" + url.QueryEscape(r.URL.RequestURI())
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (c *Console) logout(w http.ResponseWriter, r *http.Request) error {
	if id, ok := c.sessionOf(r); ok {
		if err := c.sessions.EndSession(r.Context(), id); err != nil {
			return err
		}
	}
	if name, err := c.cookieName(r); err == nil {
		c.setCookie(w, name, "")
	}
	return seeOther(w, r, "/console/login")
}
