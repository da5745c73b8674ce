package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"weir/review"
	"weir/screening"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// Sessions keeps who is logged in. The error is review.ErrUnauthenticated for
// anything but a live key, link or session.
type Sessions interface {
	Authenticate(ctx context.Context, keyID string, secret screening.Digest256) (review.Principal, error)
	LoginLink(ctx context.Context, token screening.Digest256) (review.Principal, error) // and does not use it
	UseLoginLink(ctx context.Context, token screening.Digest256) (review.Principal, error)
	OpenSession(ctx context.Context, id screening.Digest256, p review.Principal, keyID string) error
	Session(ctx context.Context, id screening.Digest256) (review.Principal, error)
	EndSession(ctx context.Context, id screening.Digest256) error
}

// Issuers sign people in elsewhere, and say what they may do here.
type Issuers interface {
	// Logins gives id and label of each that does.
	Logins() iter.Seq2[string, string]
	// LoginAddress gives where a browser is sent to sign in. It comes back to the
	// address back; secret is what only it keeps. Errors: review.ErrNotFound and
	// review.ErrIssuerAway.
	LoginAddress(ctx context.Context, id, back, secret string) (string, error)
	// Login gives the subject of who came back with an answer. Errors: those of
	// LoginAddress, and review.ErrUnauthenticated for an answer that is no good.
	Login(ctx context.Context, id, back, secret string, answer url.Values) (subject string, err error)
	// Principal gives what a subject may do today. The error is
	// review.ErrNotAllowed for one that is nobody's.
	Principal(subject string) (review.Principal, error)
}

// Config tunes a Console.
type Config struct {
	// Issuers sign people in besides keys and links. May be nil.
	Issuers Issuers
	// BaseURL is where people reach the gate. With an https one, cookies are
	// Secure wherever the request seems to come from. Default empty: then nobody
	// can log in but over TLS, or from this machine.
	BaseURL string
	// Log gets what nobody else is told, and every login. Default slog.Default().
	Log *slog.Logger
}

// Console serves the pages.
type Console struct {
	desk     *review.Desk
	sessions Sessions
	log      Deliveries
	cfg      Config
	https    bool
	mux      *http.ServeMux
	handler  http.Handler
	pages    map[string]*template.Template
	assets   map[string]asset // by the path below /console/assets/
	style    string           // paths of the three, named by content
	script   string
	icon     string
}

// New builds the pages of a desk.
func New(desk *review.Desk, sessions Sessions, log Deliveries, cfg Config) (*Console, error) {
	if desk == nil || sessions == nil || log == nil {
		return nil, errors.New("a console needs a desk, sessions and deliveries")
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	c := &Console{desk: desk, sessions: sessions, log: log, cfg: cfg, mux: http.NewServeMux(), assets: map[string]asset{}}
	forms := http.NewCrossOriginProtection()
	if cfg.BaseURL != "" {
		origin, err := originOf(cfg.BaseURL)
		if err != nil {
			return nil, err
		}
		c.https = strings.HasPrefix(origin, "https:")
		if err := forms.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("base URL: %w", err)
		}
	}
	forms.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.fail(w, r, nil, errForeign) }))
	if err := c.loadAssets(); err != nil {
		return nil, err
	}
	if err := c.loadPages(); err != nil {
		return nil, err
	}
	c.routes()
	c.handler = headers(forms.Handler(c.mux))
	return c, nil
}

// CheckBaseURL says what is wrong with [Config].BaseURL.
func CheckBaseURL(text string) error {
	if text == "" {
		return nil
	}
	_, err := originOf(text)
	return err
}

func originOf(baseURL string) (string, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", errors.New("the base URL must be like https://weir.example")
	}
	return u.Scheme + "://" + u.Host, nil
}

// ServeHTTP serves the paths at and below /console.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// routes is every page, on one screen. Nothing but a POST changes anything; that
// an issuer sends a browser back opens a session, if this browser began the login.
func (c *Console) routes() {
	c.mux.HandleFunc("GET /console/assets/{name}", c.asset)
	c.mux.HandleFunc("GET /console/login", c.open(c.loginPage))
	c.mux.HandleFunc("POST /console/login", c.open(c.login))
	c.mux.HandleFunc("GET /console/login/{issuer}", c.open(c.leave))
	c.mux.HandleFunc("GET /console/login/{issuer}/back", c.open(c.comeBack))
	c.mux.HandleFunc("POST /console/logout", c.open(c.logout))
	for pattern, page := range c.forVisitors() {
		c.mux.HandleFunc(pattern, c.known(page))
	}
	c.mux.HandleFunc("/console/", c.open(func(http.ResponseWriter, *http.Request) error { return review.ErrNotFound }))
}

// forVisitors gives what is for who is logged in, by pattern.
func (c *Console) forVisitors() map[string]page {
	return map[string]page{
		"GET /console/{$}":                        c.home,
		"GET /console":                            c.home,
		"GET /console/reviews":                    c.queue,
		"GET /console/reviews/{id}":               c.review,
		"POST /console/reviews/{id}/vote":         c.vote,
		"POST /console/reviews/{id}/excerpts":     c.reviewExcerpts,
		"POST /console/reviews/{id}/{act}":        c.act,
		"GET /console/reviews/{id}/diff":          c.diff,
		"GET /console/screenings":                 c.screenings,
		"GET /console/screenings/{id}":            c.screening,
		"POST /console/screenings/{id}/excerpts":  c.screeningExcerpts,
		"POST /console/screenings/{id}/{act}":     c.stand,
		"GET /console/screenings/{id}/received":   c.received,
		"POST /console/screenings/{id}/received":  c.receivedExcerpts,
		"GET /console/screenings/{id}/history":    c.history,
		"GET /console/recalls/{id}":               c.recall,
		"GET /console/vocabulary":                 c.vocabulary,
		"GET /console/vocabulary/{layer}/{term}":  c.term,
		"GET /console/deliveries":                 c.deliveries,
		"GET /console/deliveries/{id}":            c.delivery,
		"POST /console/deliveries/{id}/redeliver": c.redeliver,
		"GET /console/dashboard":                  c.dashboard,
	}
}

// visit is one request of somebody who is logged in.
type visit struct {
	review.Principal
	person string // the id that people.yaml has for them
}

type page func(w http.ResponseWriter, r *http.Request, v *visit) error

// open serves a page that anybody may ask for.
func (c *Console) open(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			c.fail(w, r, nil, err)
		}
	}
}

// known serves a page to who is logged in, and leads others to the login.
func (c *Console) known(h page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := c.visitor(r)
		if errors.Is(err, review.ErrUnauthenticated) {
			c.turnAway(w, r)
			return
		}
		if err == nil {
			err = h(w, r, v)
		}
		if err != nil {
			c.fail(w, r, v, err)
		}
	}
}

// headers are on every answer: no page may be framed, load anything from
// elsewhere, run anything inline, be kept by a cache or tell others its address.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "+
			"form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		r.Body = http.MaxBytesReader(w, r.Body, 256<<10) // forms are small
		next.ServeHTTP(w, r)
	})
}

var (
	errForeign      = errors.New("the form came from another site")
	errNotLocal     = errors.New("the console needs HTTPS")
	errForm         = errors.New("the form could not be read")
	errNoDeliveries = errors.New("the session may not read deliveries")
	errAddress      = errors.New("the address has a part that is not understood")
)

// errorTable maps errors to answers, first match first. What is not in it is the
// server's fault: its text stays here.
var errorTable = []struct {
	err    error
	status int
	title  string
	say    string
}{
	{errForeign, http.StatusForbidden, "Refused", "This form was not sent from this site. Open the page again and use its own form."},
	{errNotLocal, http.StatusForbidden, "HTTPS needed", "Nobody can log in over an open connection. Put a TLS proxy before the gate and start it with --base-url https://…, or open the console on the machine itself at http://127.0.0.1."},
	{errForm, http.StatusBadRequest, "Form not understood", "Go back and send the form again."},
	{errAddress, http.StatusBadRequest, "Address not understood", "A part of this address is not valid. Start again from the menu."},
	{errNoDeliveries, http.StatusForbidden, "Not allowed", "Deliveries are for sessions with the scope policy, or audit to read them."},
	{review.ErrNotFound, http.StatusNotFound, "Not found", "There is no such page, or it is not in your project."},
	{review.ErrErased, http.StatusGone, "Erased", "The spec and its decisions were erased."},
	{review.ErrNotAllowed, http.StatusForbidden, "Not allowed", "Your session has no right to see this. It needs the scope review or audit."},
	{review.ErrFloor, http.StatusConflict, "The floor holds", "A violated safety term is final for these bytes."},
	{review.ErrConflict, http.StatusConflict, "Changed in between", "Open the page again."},
	{review.ErrUnavailable, http.StatusServiceUnavailable, "Not available", "The database does not answer. Nothing was changed as far as is known; try again in a moment."},
	{context.Canceled, http.StatusServiceUnavailable, "Not available", "Try again in a moment."},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "Not available", "This took too long. Try again in a moment."},
}

// fail is the only place that turns an error into a page.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, v *visit, err error) {
	status, title, say := http.StatusInternalServerError, "Something went wrong", "The gate could not make this page. What happened is in its log."
	for _, row := range errorTable {
		if errors.Is(err, row.err) {
			status, title, say = row.status, row.title, row.say
			break
		}
	}
	if erased := (*review.ErasedError)(nil); errors.As(err, &erased) {
		e := erased.Erased
		say = fmt.Sprintf("The spec and its decisions were erased on %s by %s: %s", e.At.UTC().Format("2006-01-02 15:04 UTC"), e.Actor, e.Reason)
	}
	if status >= 500 {
		c.cfg.Log.ErrorContext(r.Context(), "console page", "path", r.URL.Path, "status", status, "error", err,
			"request_id", w.Header().Get("X-Request-Id"))
	}
	data := struct {
		Title, Say, RequestID string
	}{title, say, w.Header().Get("X-Request-Id")}
	if err := c.render(w, r, v, status, "error", title, data); err != nil {
		http.Error(w, title, status)
	}
}

// frame is what the layout needs around every page.
type frame struct {
	Title   string
	Style   string
	Script  string
	Icon    string
	Here    string // path of the page, for the menu
	Person  string // "" when nobody is logged in
	Project string
	Reads   bool // deliveries too
	Data    any
}

// render makes a page before it writes any of it, so that an error cannot follow a 200.
func (c *Console) render(w http.ResponseWriter, r *http.Request, v *visit, status int, name, title string, data any) error {
	f := frame{Title: title, Style: c.style, Script: c.script, Icon: c.icon, Here: r.URL.Path, Data: data}
	if v != nil {
		f.Person, f.Project, f.Reads = v.person, v.Project, mayReadDeliveries(v) == nil
	}
	var b bytes.Buffer
	if err := c.pages[name].ExecuteTemplate(&b, "layout", f); err != nil {
		return fmt.Errorf("page %s: %w", name, err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, err := w.Write(b.Bytes())
	if err != nil {
		c.cfg.Log.DebugContext(r.Context(), "page not written", "error", err)
	}
	return nil
}

func (c *Console) loadPages() error {
	shared, err := template.New("").Funcs(functions).ParseFS(templateFiles, "templates/_*.html")
	if err != nil {
		return err
	}
	files, err := fs.Glob(templateFiles, "templates/[a-z]*.html")
	if err != nil {
		return err
	}
	c.pages = make(map[string]*template.Template, len(files))
	for _, file := range files {
		t, err := shared.Clone()
		if err == nil {
			t, err = t.ParseFS(templateFiles, file)
		}
		if err != nil {
			return err
		}
		c.pages[strings.TrimSuffix(path.Base(file), ".html")] = t
	}
	return nil
}

// asset is a file that pages refer to by a name that changes with its content.
type asset struct {
	data []byte
	kind string
}

func (c *Console) loadAssets() error {
	add := func(file, kind string) (string, error) {
		data, err := assetFiles.ReadFile("assets/" + file)
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256(data)
		name := hex.EncodeToString(sum[:6]) + "-" + file
		c.assets[name] = asset{data, kind}
		return "/console/assets/" + name, nil
	}
	var err [3]error
	c.style, err[0] = add("console.css", "text/css; charset=utf-8")
	c.script, err[1] = add("console.js", "text/javascript; charset=utf-8")
	c.icon, err[2] = add("icon.svg", "image/svg+xml")
	return errors.Join(err[:]...)
}

func (c *Console) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := c.assets[r.PathValue("name")]
	if !ok {
		c.fail(w, r, nil, review.ErrNotFound)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.data))
}

// seeOther sends the browser on after a form.
func seeOther(w http.ResponseWriter, r *http.Request, to string) error {
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}
