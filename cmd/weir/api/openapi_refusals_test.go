package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir/api"
	"weir/cmd/weir/openapi/openapitest"
	"weir/review"
	"weir/screening"
)

const (
	nowhere = "018f0000-0000-7000-8000-000000000000"
	someSHA = "1111111111111111111111111111111111111111111111111111111111111111"
)

// goodBodies has for each route that takes a body one that is read; what it names
// need not be there.
var goodBodies = map[string]string{
	"POST /v1/screenings":                  string(spec("r")),
	"POST /v1/screenings/batch":            strings.ReplaceAll(string(spec("r")), "\n", ""),
	"POST /v1/screenings/{id}/answer":      `{"note": "n"}`,
	"POST /v1/screenings/{id}/withdraw":    `{"reason": "r"}`,
	"POST /v1/screenings/{id}/appeal":      `{"reason": "r"}`,
	"POST /v1/screenings/{id}/reopen":      `{"reason": "r"}`,
	"POST /v1/gate/check":                  `{"spec_sha256": "` + someSHA + `"}`,
	"POST /v1/bypasses":                    string(bypass("018f0000-0000-4000-8000-000000000001", "2026-11-30T10:00:00Z", "r", string(spec("r")))),
	"POST /v1/reviews/{id}/votes":          `{"expected_version": 1, "spec_sha256": "` + someSHA + `", "vote": "admit", "reason": "r", "terms": ["ethics:a"]}`,
	"POST /v1/reviews/{id}/claim":          `{"expected_version": 1}`,
	"POST /v1/reviews/{id}/release":        `{"expected_version": 1}`,
	"POST /v1/reviews/{id}/needs-evidence": `{"note": "n"}`,
	"POST /v1/reviews/{id}/comments":       `{"text": "t"}`,
	"POST /v1/reviews/{id}/corrections":    `{"correction_text": "t"}`,
	"POST /v1/waivers":                     `{"screening_id": "` + nowhere + `", "term": "ethics:a", "reason": "r", "ticket": "t", "days": 3}`,
	"POST /v1/waivers/{id}/confirm":        `{}`,
	"POST /v1/corrections":                 `{"screening_id": "` + nowhere + `", "correction_text": "t"}`,
	"POST /v1/corrections/{id}/status":     `{"status": "coherent", "reason": "r"}`,
	"POST /v1/packs/replay":                `{"packs": ["pledge"], "since": "2026-01-01"}`,
	"POST /v1/recalls":                     `{"uri": "s3://nothing", "reason": "r"}`,
	"POST /v1/recalls/{id}/lift":           `{"reason": "r"}`,
	"POST /v1/erasures":                    `{"screening": "` + nowhere + `", "reason": "r"}`,
	"POST /v1/endpoints/{id}/enable":       `{"reason": "r"}`,
	"POST /v1/endpoints/{id}/disable":      `{"reason": "r"}`,
	"POST /v1/endpoints/{id}/redeliver":    `{"since": "2026-11-30T10:00:00Z"}`,
}

// notFound is the query of routes that find nothing by it.
var notFound = map[string]string{"GET /v1/audit/proof": "?screening=" + nowhere}

// driver asks handlers and holds every answer against one checker.
type driver struct {
	*world
	checker *openapitest.Checker
}

func newDriver(t *testing.T, change ...func(*api.Config, *api.Gate)) *driver {
	t.Helper()
	return &driver{newWorld(t, change...), newChecker()}
}

// ask has a server answer, and fails unless with that status and as described.
func (d *driver) ask(s *api.Server, want int, method, path, key, media string, body io.Reader) answer {
	d.Helper()
	req := httptest.NewRequest(method, path, body)
	req.Header.Set("Content-Type", media)
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, req)
	a := answer{rec.Code, rec.Header(), rec.Body.Bytes()}
	if a.status != want {
		d.Errorf("%s %s: status %d, want %d: %s", method, path, a.status, want, a.body)
	}
	checkDescribed(d, d.checker, method, path, a)
	return a
}

// quiet drops what is logged.
var quiet = slog.New(slog.DiscardHandler)

// failing is a body that ends in an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// issuerAway cannot tell whether a token is good.
type issuerAway struct{}

func (issuerAway) Authenticate(context.Context, string) (review.Principal, error) {
	return review.Principal{}, review.ErrIssuerAway
}

// refuse: what every route of a kind refuses, it refuses in each place that the
// document names, in the words that it names. A new route is among them without a
// word here, but for a good body.
func (d *driver) refuse() {
	t := d.T
	closed := api.New(api.Config{Metrics: api.NewMetrics(), Log: quiet})
	broken := api.New(api.Config{Metrics: api.NewMetrics(), Log: quiet})
	broken.Open(api.Gate{Desk: d.gate.Desk, Keys: keysFunc(func(context.Context) (review.Principal, error) { panic("broken") })})
	away := api.New(api.Config{Metrics: api.NewMetrics(), Log: quiet})
	away.Open(api.Gate{Desk: d.gate.Desk, Keys: keysFunc(func(context.Context) (review.Principal, error) { return review.Principal{}, review.ErrUnavailable }),
		Tokens: issuerAway{}})
	// Here time stands still, and chi has asked all that they may.
	fast := api.New(api.Config{Metrics: api.NewMetrics(), Log: quiet, Rate: 1, Now: func() time.Time { return time.Unix(0, 0) }})
	fast.Open(d.gate)
	all := d.key("chi", review.Scopes...)
	for range 10 {
		d.ask(fast, 200, "GET", "/v1/packs", all, "", nil)
	}
	for _, op := range d.checker.Operations() {
		method, template, _ := strings.Cut(op, " ")
		described := d.checker.Operation(op)
		id := nowhere
		if strings.HasPrefix(template, "/v1/corrections/") {
			id = review.CorrectionID{Screening: nowhere, Candidate: "0123456789abcdef"}.String()
		}
		path := strings.NewReplacer("{id}", id, "{name}", "nothing.json", "{page}", "nothing").Replace(template)
		responses, _ := described["responses"].(map[string]any)
		documented := func(status string) bool { return responses[status] != nil }
		if template == "/readyz" { // says itself how it is, and not by a problem
			d.ask(closed, 503, method, path, "", "", nil)
			continue
		}
		if documented("503") {
			d.ask(closed, 503, method, path, all, "application/json", strings.NewReader("{}"))
		}
		media, good := "application/json", goodBodies[op]
		if strings.HasSuffix(template, "/batch") {
			media = "application/x-ndjson"
		}
		if documented("404") {
			d.ask(d.server, 404, method, path+notFound[op], all, media, strings.NewReader(good))
		}
		ways, _ := described["security"].([]any)
		if len(ways) == 0 {
			continue
		}
		var lacking []review.Scope
		for _, scope := range review.Scopes {
			if !slices.ContainsFunc(ways, func(way any) bool { return fmt.Sprint(way) == fmt.Sprintf("map[bearer:[%s]]", scope) }) {
				lacking = append(lacking, scope)
			}
		}
		if len(lacking) != len(review.Scopes)-len(ways) {
			t.Errorf("%s: the document names scopes that are none: %v", op, ways)
		}
		d.ask(d.server, 401, method, path, "", media, strings.NewReader(good))
		d.ask(d.server, 403, method, path, d.key("chi", lacking...), media, strings.NewReader(good))
		d.ask(d.server, 400, method, path+"?nothing=1", all, media, strings.NewReader(good))
		d.ask(fast, 429, method, path, all, media, strings.NewReader(good))
		d.ask(broken, 500, method, path, all, media, strings.NewReader(good))
		d.ask(away, 503, method, path, all, media, strings.NewReader(good))
		d.ask(away, 503, method, path, "a.b.c", media, strings.NewReader(good))
		if described["requestBody"] == nil {
			if good != "" {
				t.Errorf("%s takes a body, and the document has none", op)
			}
			continue
		}
		if good == "" {
			t.Errorf("%s takes a body: add a good one to goodBodies", op)
			continue
		}
		d.ask(d.server, 415, method, path, all, "text/html", strings.NewReader(good))
		d.ask(d.server, 400, method, path, all, media, failing{io.ErrUnexpectedEOF})
		d.ask(d.server, 408, method, path, all, media, failing{os.ErrDeadlineExceeded})
		if media != "application/json" {
			d.ask(d.server, 422, method, path, all, media, strings.NewReader(""))
			continue
		}
		d.ask(d.server, 413, method, path, all, media, strings.NewReader(strings.Repeat(" ", screening.MaxDocumentBytes+1)))
		bad := `{"nothing": 1}`
		if template == "/v1/gate/check" { // takes any bytes but these
			bad = `{"spec_sha256": 1}`
		}
		d.ask(d.server, 422, method, path, all, media, strings.NewReader(bad))
		d.ask(d.server, 400, method, path, all, media, strings.NewReader(bad[:len(bad)-1]))
		d.keys(op, path, all, good)
	}
}

// keys: what the document says of a body, the handler holds to. It takes the good
// one, none with a key beside, notes where the document has them, and none without
// one of the keys that are required.
func (d *driver) keys(op, path, key, good string) {
	d.Helper()
	method, template, _ := strings.Cut(op, " ")
	if template == "/v1/gate/check" {
		return // its body is whatever bytes were submitted
	}
	// invalid: the handler refuses the body itself, not what it asks for.
	invalid := func(body string) bool {
		req := httptest.NewRequest(method, path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+key)
		rec := httptest.NewRecorder()
		d.server.Handler().ServeHTTP(rec, req)
		a := answer{rec.Code, rec.Header(), rec.Body.Bytes()}
		checkDescribed(d, d.checker, method, path, a)
		return a.text("type") == "urn:weir:problem:invalid"
	}
	check := func(what, body string) {
		d.Helper()
		err := d.checker.Body(method, path, "application/json", []byte(body))
		if refused := invalid(body); refused != (err != nil) {
			d.Errorf("%s, %s: the handler refuses it: %t, the document says %v: %s", op, what, refused, err, body)
		}
	}
	if err := d.checker.Body(method, path, "application/json", []byte(good)); err != nil {
		d.Errorf("%s: the good body is not as described: %v", op, err)
	}
	var body map[string]any
	if err := json.Unmarshal([]byte(good), &body); err != nil {
		d.Fatal(err)
	}
	with := func(name string, value any) string {
		changed := map[string]any{}
		for k, v := range body {
			changed[k] = v
		}
		if changed[name] = value; value == nil {
			delete(changed, name)
		}
		text, err := json.Marshal(changed)
		if err != nil {
			d.Fatal(err)
		}
		return string(text)
	}
	check("the good body", good)
	check("a key beside", with("nothing", 1))
	check("a note", with("x-note", "for people"))
	for name := range body {
		check("without "+name, with(name, nil))
		check("another type of "+name, with(name, map[string]any{"nothing": true}))
	}
}
