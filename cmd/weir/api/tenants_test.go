package api_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"weir/cmd/weir/api"
	"weir/cmd/weir/console"
	"weir/review"
	"weir/review/reviewtest"
	"weir/store/ledger"
	"weir/webhooks"
)

// crossing tells how a route is asked for what another project has. Each of paths,
// bodies and their pairs is asked once for every thing of that project, whose
// fields stand in for <id>, <spec_sha256>, <run> and <version>.
type crossing struct {
	who     string   // asks; default dee, who has voted on nothing
	queries []string // after the path; and none
	paths   []string // instead of the route's own, where it has a *
	bodies  []string
	specs   func(spec []byte) string // body out of each spec of the project
	media   string
	keyed   bool // with the idempotency keys of the project, too
	// paged is a body with <cursor>, where the cursor is not in the query.
	paged string
	// nobodys: even the project itself finds nothing of its own here, and changes
	// nothing of its own. Why.
	nobodys string
}

const anyone = "the same for everybody"

// crossings has every route of the table in server.go. For a new one, add what
// names anything of a project in its query and body.
var crossings = map[string]crossing{
	"GET /v1/screenings":               {queries: []string{"?limit=1", "?limit=500&status=pending", "?run_ref=<run>", "?cursor=<cursor>"}},
	"GET /v1/screenings/:id":           {queries: []string{"?wait=0s", "?explain=true"}},
	"GET /v1/screenings/:id/admission": {},
	"GET /v1/screenings/:id/spec":      {},
	"GET /v1/admissions/revoked":       {},
	"GET /v1/admissions/drift":         {queries: []string{"?limit=1", "?cursor=<cursor>"}},
	"GET /v1/bypasses":                 {queries: []string{"?limit=1", "?cursor=<cursor>"}},
	"GET /v1/reviews":                  {queries: []string{"?limit=1", "?all=true", "?cursor=<cursor>"}},
	"GET /v1/reviews/:id":              {},
	"GET /v1/waivers":                  {queries: []string{"?limit=1", "?screening=<id>", "?cursor=<cursor>"}},
	"GET /v1/waivers/:id":              {},
	"GET /v1/corrections":              {queries: []string{"?limit=1", "?status=coherent", "?cursor=<cursor>"}},
	"GET /v1/corrections/:id":          {},
	"GET /v1/packs":                    {nobodys: anyone},
	"GET /v1/packs/:id":                {nobodys: anyone},
	"GET /v1/audit/checkpoint":         {queries: []string{"?cosigned=true"}, nobodys: anyone},
	"GET /v1/audit/entries":            {queries: []string{"?limit=500", "?from=500&limit=500", "?from=1000&limit=500"}},
	"GET /v1/audit/proof":              {queries: []string{"?screening=<id>", "?screening=<id>&seq=2", "?size=40&old=20"}},
	"GET /v1/exports": {queries: []string{"?from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z", "?since=5&size=60", "?skip=0", "?payloads=digests",
		"?format=ndjson", "?format=ndjson&run_ref=<run>", "?run_ref=<run>", "?format=csv&outcome=escalate", "?format=parquet", "?format=ndjson&after=3"}},
	"GET /v1/recalls":        {queries: []string{"?limit=1", "?live=true", "?cursor=<cursor>"}},
	"GET /v1/recalls/:id":    {queries: []string{"?limit=1", "?cursor=<cursor>"}},
	"GET /v1/endpoints":      {nobodys: "endpoints are the deployment's, and what is said of them names nothing of a project"},
	"GET /v1/endpoints/:id":  {paths: []string{"/v1/endpoints/legal", "/v1/endpoints/<id>"}, nobodys: "as the list"},
	"GET /v1/deliveries":     {queries: []string{"?limit=1", "?endpoint=legal", "?state=dead", "?type=review.opened", "?review=<id>", "?cursor=<cursor>"}},
	"GET /v1/deliveries/:id": {},
	"GET /console":           {nobodys: "leads to the queue"},
	"GET /console/*": {paths: []string{"/console/reviews", "/console/reviews/<id>", "/console/screenings", "/console/screenings/<id>", "/console/recalls/<id>",
		"/console/deliveries", "/console/deliveries/<id>", "/console/dashboard"}},
	"GET /schemas/:name": {nobodys: anyone},
	"GET /openapi.json":  {nobodys: anyone},
	"GET /openapi":       {nobodys: anyone},
	"GET /livez":         {nobodys: anyone},
	"GET /readyz":        {nobodys: anyone},
	"GET /metrics":       {nobodys: anyone},

	"POST /v1/packs/replay":               {bodies: []string{`{"packs": [` + stricter + `], "since": "2020-01-01"}`}, paged: `{"packs": [` + stricter + `], "cursor": "<cursor>"}`},
	"POST /v1/reviews/:id/claim":          {bodies: []string{``, `{"expected_version": <version>}`}},
	"POST /v1/reviews/:id/release":        {bodies: []string{``, `{"expected_version": <version>}`}},
	"POST /v1/reviews/:id/comments":       {bodies: []string{`{"text": "t"}`, `{"expected_version": <version>, "text": "t"}`}},
	"POST /v1/reviews/:id/corrections":    {bodies: []string{`{"correction_text": "It was synthetic."}`}},
	"POST /v1/reviews/:id/votes":          {bodies: []string{`{"expected_version": <version>, "spec_sha256": "<spec_sha256>", "vote": "block", "reason": "r", "terms": ["ethics:personal_data_inside"]}`}},
	"POST /v1/reviews/:id/needs-evidence": {bodies: []string{`{"note": "n"}`}},
	"POST /v1/screenings/:id/answer":      {who: "bo", bodies: []string{`{"note": "n"}`}},
	"POST /v1/screenings/:id/withdraw":    {who: "bo", bodies: []string{`{"reason": "r"}`}},
	"POST /v1/screenings/:id/appeal":      {who: "bo", bodies: []string{`{"reason": "r"}`}},
	"POST /v1/screenings/:id/reopen":      {who: "bo", bodies: []string{`{"reason": "r"}`}},
	"POST /v1/waivers":                    {bodies: []string{`{"screening_id": "<id>", "term": "ethics:personal_data_inside", "reason": "r", "ticket": "t", "days": 3}`}},
	"POST /v1/waivers/:id/confirm":        {bodies: []string{``}},
	"POST /v1/corrections":                {bodies: []string{`{"screening_id": "<id>", "correction_text": "It was synthetic."}`}},
	"POST /v1/corrections/:id/status":     {bodies: []string{`{"status": "contested", "reason": "r"}`}},
	"POST /v1/recalls/:id/lift":           {bodies: []string{`{"reason": "r"}`}},
	"POST /v1/erasures":                   {bodies: []string{`{"screening": "<id>", "reason": "r"}`, `{"spec_sha256": "<spec_sha256>", "reason": "r"}`}},
	"POST /v1/deliveries/:id/redeliver":   {},
	"POST /v1/endpoints/:id/ping":         {paths: []string{"/v1/endpoints/legal/ping", "/v1/endpoints/<id>/ping"}},
	"POST /v1/endpoints/:id/redeliver":    {paths: []string{"/v1/endpoints/legal/redeliver", "/v1/endpoints/<id>/redeliver"}, bodies: []string{`{"since": "2020-01-01T00:00:00Z"}`}},
	// An endpoint is switched for all projects, see docs/decisions/0025-projects.md: nothing is for this one.
	"POST /v1/endpoints/:id/disable": {paths: []string{"/v1/endpoints/chat/disable", "/v1/endpoints/<id>/disable"}, bodies: []string{`{"reason": "r"}`}},
	"POST /v1/endpoints/:id/enable":  {paths: []string{"/v1/endpoints/chat/enable", "/v1/endpoints/<id>/enable"}, bodies: []string{`{"reason": "r"}`}},
	"POST /console/*": {paths: []string{"/console/reviews/<id>/comment?note=n", "/console/screenings/<id>/excerpts", "/console/deliveries/<id>/redeliver"},
		media: "application/x-www-form-urlencoded"},

	"POST /v1/recalls":    {bodies: []string{}, specs: recallOf},
	"POST /v1/bypasses":   {bodies: []string{`{"id": "<id>", "at": "2026-11-30T10:00:00Z", "reason": "r", "spec": "another"}`}, specs: bypassOf},
	"POST /v1/gate/check": {bodies: []string{`{"spec_sha256": "<spec_sha256>"}`}, specs: asItIs},
	"POST /v1/screenings/batch": {queries: []string{"?dry_run=true"}, specs: func(spec []byte) string { return strings.ReplaceAll(string(spec), "\n", "") + "\n" },
		media: "application/x-ndjson", keyed: true},
	"POST /v1/screenings": {queries: []string{"?dry_run=true", "?gate=true", "?explain=true"}, specs: asItIs, keyed: true},
}

func asItIs(spec []byte) string { return string(spec) }

func bypassOf(spec []byte) string {
	return string(bypass(uuid.NewSHA1(uuid.NameSpaceOID, spec).String(), "2026-11-30T10:00:00Z", "r", string(spec)))
}

// recallOf is a recall of what a spec has as its data.
func recallOf(spec []byte) string {
	_, after, ok := strings.Cut(string(spec), `"sha256", "value": "`)
	if !ok {
		return ""
	}
	return `{"sha256": "` + after[:64] + `", "reason": "r"}`
}

// driftedYAML asks about an admission that the pledge before it gave.
var driftedYAML = strings.Replace(pledgeYAML, `version: "1"`, `version: "2"`, 1) + `
  - id: biometric_inside
    title: Biometric data
    description: Faces and voices.
    severity: high
    over: [dataset]
    violated_if: {tag: {biometric: present}}
    response: escalate
    unchecked: observe
    remedy: Remove it.
`

// requests gives what to ask of a route about the things of a project.
func (p *tenant) requests(route string, c crossing, cursors []string) (list []request) {
	method, path, _ := strings.Cut(route, " ")
	paths := c.paths
	if paths == nil {
		paths = []string{strings.NewReplacer(":id", "<id>", ":name", "<run>").Replace(path)}
	}
	bodies := c.bodies
	if bodies == nil && c.specs == nil {
		bodies = []string{""}
	}
	seen := map[string]bool{}
	add := func(r request) {
		if !seen[r.String()] && (r.body != "" || c.specs == nil) && !strings.Contains(r.path+r.body, "<") {
			seen[r.String()] = true
			list = append(list, r)
		}
	}
	for _, path := range paths {
		for _, query := range append([]string{""}, c.queries...) {
			for i, raw := range p.specs {
				if c.specs != nil && (query == "" || i < 2) {
					add(request{method, path + query, c.specs(raw), c.media, "", i < 2})
				}
			}
			for _, t := range p.things {
				if !t.sample && strings.Contains(query, "<") {
					continue
				}
				for _, body := range bodies {
					form := strings.NewReplacer("<id>", t.id, "<run>", t.run, "<spec_sha256>", cmp.Or(t.specSHA256, someSHA), "<version>", cmp.Or(t.version, "1"))
					add(request{method, form.Replace(path + query), form.Replace(body), c.media, "", t.sample})
				}
			}
		}
		for _, t := range p.things {
			for _, cursor := range cursors {
				form := strings.NewReplacer("<id>", t.id, "<cursor>", cursor)
				if c.paged != "" {
					add(request{method, path, form.Replace(c.paged), c.media, "", true})
				} else if t.sample {
					add(request{method, form.Replace(path + "?cursor=<cursor>"), "", c.media, "", true})
				}
			}
		}
	}
	for i, raw := range p.specs {
		if c.keyed && i < 4 { // a key of the project, with another of its specs
			add(request{method, path, c.specs(p.specs[i+1]), c.media, runOf(raw), true})
		}
	}
	return list
}

func runOf(spec []byte) string {
	var doc struct {
		RunRef string `json:"run_ref"`
	}
	if err := json.Unmarshal(spec, &doc); err != nil {
		panic(err)
	}
	return doc.RunRef
}

// cursors gives where each page of one of a list leads.
func (p *tenant) cursors(route string, c crossing) (list []string) {
	for _, r := range p.requests(route, c, nil) {
		if c.paged != "" {
			r.body = strings.Replace(r.body, "{", `{"limit": 1, `, 1)
		} else if !slices.Contains(c.queries, "?cursor=<cursor>") || !strings.HasSuffix(r.path, "?limit=1") {
			continue
		}
		if next := p.knock(r, p.key("ana")).text("next"); next != "" {
			list = append(list, next)
		}
	}
	return list
}

// A project reaches nothing of another by any route, whatever it names: no answer
// holds anything of the other or differs from that about what is nobody's, and of the
// other's rows none is another afterwards. That the other finds its things by the same
// requests shows that they would find them.
func TestEveryRouteAcrossProjects(t *testing.T) {
	t.Parallel()
	key := signingKey(t)
	d := newDriver(t, func(_ *api.Config, g *api.Gate) { g.SigningKeys = []ledger.Signer{key} })
	if err := d.store.Outbox().Declare(t.Context(), []webhooks.Declared{{ID: "legal", Host: "legal.example", Format: webhooks.FormatStandard},
		{ID: "chat", Host: "chat.example", Format: webhooks.FormatChat}}); err != nil {
		t.Fatal(err)
	}
	pages, err := console.New(d.gate.Desk, d.store, d.store, console.Config{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	d.gate.Console = pages
	d.server.Open(d.gate)
	a, b := d.furnish("a", "kanarienvogel", "zaunkoenig"), d.furnish("b", "amsel", "drossel")
	d.decideBy(reviewtest.Floor, driftedYAML)
	d.settle()
	for n := 1; n > 0; {
		if n, err = d.store.Sequence(t.Context(), 1000, key); err != nil {
			t.Fatal(err)
		}
	}

	table := d.server.Table()
	for _, r := range d.server.Registered() {
		if _, ok := crossings[r.Method+" "+r.Path]; !ok {
			t.Errorf("nothing here asks %s %s of another project: add it to crossings", r.Method, r.Path)
		}
	}
	everything := d.everyRow()
	m := marksOf(everything, a, b)
	before, nobodys := everything.of("a", m), m.nobodys(a)
	requests, twins := map[string][]request{}, map[string][]request{}
	for route, c := range crossings {
		if _, ok := table[route]; !ok {
			t.Errorf("%s is no route", route)
			continue
		}
		cursors := a.cursors(route, c)
		requests[route], twins[route] = a.requests(route, c, cursors), a.nobody(nobodys).requests(route, c, cursors)
		if n := len(requests[route]); n == 0 || n != len(twins[route]) {
			t.Errorf("%s: %d requests, %d about what is nobody's", route, n, len(twins[route]))
		}
		for _, name := range d.server.Queries()[strings.NewReplacer(":id", "{id}", ":name", "{name}").Replace(route)] {
			if !slices.ContainsFunc(requests[route], func(r request) bool { return strings.Contains(r.path, name+"=") }) {
				t.Errorf("%s: its query has %s, and nothing here asks with it: add it to crossings", route, name)
			}
		}
	}

	for _, table := range []string{"spec", "payload", "screening", "finding", "review", "review_panel", "review_note", "vote", "waiver", "correction", "correction_status",
		"bypass", "recall", "erasure", "lineage", "idempotency", "delivery", "delivery_attempt", "audit_event", "api_key", "console_session"} {
		if len(before[table]) == 0 {
			t.Errorf("project a has nothing in %s: add it to furnish", table)
		}
	}
	asked, answered := 0, map[string]int{}
	order := slices.SortedFunc(maps.Keys(requests), func(x, y string) int { return cmp.Or(turn(x)-turn(y), strings.Compare(x, y)) })
	for _, route := range order {
		c := crossings[route]
		keys := []string{b.key(cmp.Or(c.who, "dee"))}
		for _, scope := range table[route] {
			keys = append(keys, b.key("dee", review.Scope(scope)))
		}
		for n, key := range keys {
			for i, r := range requests[route] {
				if n > 0 && !r.sample {
					continue
				}
				asked++
				got := b.knock(r, key)
				if n == 0 {
					answered[r.String()] = got.status
				}
				said := strings.ToLower(plain(r))
				if got.status >= 500 {
					t.Errorf("%s: %d: %s", r, got.status, got.body)
				}
				if mark := known(c, m).in(unfolded(t, got), said); mark != "" {
					t.Errorf("%s: %d: the answer to another project has %s", r, got.status, mark)
				}
				other := twins[route][i]
				if other == r {
					continue
				}
				if twin := b.knock(other, key); twin.status != got.status || twin.text("type") != got.text("type") ||
					r.method == http.MethodGet && got.status == 200 && len(c.paths) == 0 && route != "GET /v1/exports" && nobodys.Replace(string(got.body)) != string(twin.body) {
					t.Errorf("%s: %d %s\nand about what is nobody's, %s: %d %s", r, got.status, got.body, other, twin.status, twin.body)
				}
			}
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
			_, path, _ := strings.Cut(route, " ")
			if _, ok := table[method+" "+path]; ok {
				continue
			}
			for _, r := range requests[route][:1] {
				r.method = method
				asked++
				if got := b.knock(r, keys[0]); got.status/100 != 4 && (method != "OPTIONS" || got.status != 204) {
					t.Errorf("%s: %d: %s", r, got.status, got.body)
				} else if mark := m.in(unfolded(t, got), strings.ToLower(plain(r))); mark != "" {
					t.Errorf("%s: %d: the answer to another project has %s", r, got.status, mark)
				}
			}
		}
	}
	if diff := gocmp.Diff(before, d.everyRow().of("a", m)); diff != "" {
		t.Errorf("rows of project a, before and after requests of project b (-before +after):\n%s", diff)
	}
	t.Logf("%d requests of %d routes", asked, len(order))

	was := before
	for _, route := range order {
		c := crossings[route]
		found, key := "", a.key(cmp.Or(c.who, "dee"))
		for _, r := range requests[route] {
			got := a.knock(r, key)
			if found = m.in(unfolded(t, got), strings.ToLower(plain(r))); found == "" && got.status != answered[r.String()] {
				found = "another status"
			}
			if found != "" {
				break
			}
		}
		if strings.HasPrefix(route, http.MethodPost) {
			is := d.everyRow().of("a", m)
			if found == "" && !gocmp.Equal(was, is) {
				found = "another row"
			}
			was = is
		}
		if (found == "") != (c.nobodys != "") {
			t.Errorf("%s: project a finds %q of its own by the requests of this test, and crossings says %q: they must find what they are to miss",
				route, found, c.nobodys)
		}
	}
}

// turn is when a route is asked: first what only reads, last what submits.
func turn(route string) int {
	switch c := crossings[route]; {
	case c.keyed:
		return 3
	case c.specs != nil:
		return 2
	case strings.HasPrefix(route, http.MethodPost):
		return 1
	}
	return 0
}

// known gives the marks that an answer must not have: who sends a spec knows it.
func known(c crossing, m marks) marks {
	if c.specs != nil {
		return marks{ids: m.ids}
	}
	return m
}

// plain is all that a request says, what is encoded in it too.
func plain(r request) string {
	var b strings.Builder
	unfold(&b, []byte(r.String()), 2)
	return b.String()
}
