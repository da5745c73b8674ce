package api

import (
	"bytes"
	"cmp"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"weir/cmd/weir/openapi"
	"weir/docs/schemas"
	"weir/review"
	"weir/screening"
	"weir/webhooks"
)

// either is any one of these.
type either []any

// needs is an object that must have at least one of some keys.
type needs struct {
	of  any
	one []string
}

// anything is JSON that the document does not describe.
var anything = openapi.Schema{}

// Bodies that are read as bytes first.
var (
	specBody  = openapi.Schema{"$ref": "#/components/schemas/TrainingSpec"}
	gateBody  = either{specBody, digestBody{}}
	batchBody = media{batchMedias, specBody}
)

const problemMedia = "application/problem+json"

// namedProblem is a type of problem; it may come with several statuses.
type namedProblem struct {
	name, title string
	statuses    []int
}

// problemNames are all of them: those of problemTable, and those that describe
// and gateProblem make by themselves.
var problemNames = func() []namedProblem {
	list := []namedProblem{
		{"invalid", "The document is not valid", []int{http.StatusBadRequest, http.StatusUnprocessableEntity}},
		{"internal", "Internal error", []int{http.StatusInternalServerError}},
		{"http", "No such route or method", []int{http.StatusNotFound, http.StatusMethodNotAllowed}},
	}
	for _, status := range review.Statuses() {
		if status == review.StatusAdmitted {
			continue // no problem
		}
		p := gateProblem(review.Answer{Status: status, Screening: &review.Screening{}})
		list = append(list, namedProblem{strings.TrimPrefix(p.Type, problemPrefix), p.Title, []int{p.Status}})
	}
	for _, row := range problemTable {
		i := slices.IndexFunc(list, func(p namedProblem) bool { return p.name == row.name })
		if i < 0 {
			list, i = append(list, namedProblem{name: row.name, title: row.title}), len(list)
		}
		if !slices.Contains(list[i].statuses, row.status) {
			list[i].statuses = append(list[i].statuses, row.status)
		}
	}
	return list
}()

// problemsOf names the problems that a route can answer with.
func problemsOf(r route, op operation) []string {
	names := slices.Clone(op.problems)
	if !isProbe(r.path) {
		names = append(names, "not-ready")
	}
	if r.scopes != nil {
		names = append(names, "busy", "too-fast", "unavailable", "issuer-away", "internal", "unauthenticated", "not-allowed", "parameter")
	}
	if strings.Contains(r.path, ":") {
		names = append(names, "not-found")
	}
	if op.body != nil {
		names = append(names, "body", "slow-body", "too-large", "media-type")
		if _, lines := op.body.(media); lines { // what is wrong with a line is said in its place
			names = append(names, "invalid 422")
		} else {
			names = append(names, "invalid")
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// document describes every route. What it cannot describe is a fault of the
// program: it panics, in the first test that asks.
func (s *Server) document() *openapi.Document {
	t := wireTypes()
	d := &openapi.Document{OpenAPI: openapi.Version, Servers: []openapi.Server{{URL: "/"}}, Paths: map[string]map[string]*openapi.Operation{},
		Info: openapi.Info{Title: "weir", Version: "1", Description: "A screening gate for training runs. Of the scopes that an operation names any one is enough. " +
			"Any route may answer 500, and what is no route answers 404 or 405, as problems. What the words mean is in docs/api.md."}}
	described := map[string]operation{}
	for _, op := range operations {
		described[op.route] = op.operation
	}
	for _, r := range s.routes() {
		name := r.method + " " + r.path
		op, ok := described[name]
		if !ok {
			panic(name + " is served and not described: add a line to operations in cmd/weir/api/operations.go")
		}
		delete(described, name)
		d.Add(r.method, pathTemplate(r.path), operationOf(t, r, op))
	}
	for name := range described {
		panic(name + " is described and not served: take its line out of operations in cmd/weir/api/operations.go")
	}
	t.Answer(problem{})
	security := map[string]openapi.SecurityScheme{
		keyScheme: {Type: "http", Scheme: "bearer", Description: "An API key, weir_…, or a token of an issuer that the gate knows. It belongs to one project and speaks for one person or service."}}
	for _, also := range s.cfg.Beside {
		d.Add(also.Method, also.Path, also.Describe(t))
		maps.Copy(security, also.Security)
	}
	d.Components = openapi.Components{Schemas: t.Components(), SecuritySchemes: security}
	maps.Copy(d.Components.Schemas, trainingSpec())
	return d
}

// keyScheme is the name of the one way to say who asks.
const keyScheme = "bearer"

// pathTemplate writes a path of the router as OpenAPI does. What a wildcard stands
// for may have slashes, for which OpenAPI has no words.
func pathTemplate(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if name, ok := strings.CutPrefix(part, ":"); ok {
			parts[i] = "{" + name + "}"
		} else if part == "*" {
			parts[i] = "{page}"
		}
	}
	return strings.Join(parts, "/")
}

func operationOf(t *openapi.Types, r route, op operation) *openapi.Operation {
	o := &openapi.Operation{ID: op.id, Summary: op.says, Tags: []string{tagOf(r.path)}, Responses: map[string]*openapi.Response{}}
	for _, scope := range r.scopes {
		o.Security = append(o.Security, map[string][]string{keyScheme: {string(scope)}})
	}
	for _, part := range strings.Split(pathTemplate(r.path), "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			o.Parameters = append(o.Parameters, openapi.Parameter{Name: strings.TrimSuffix(name, "}"), In: "path", Required: true, Schema: openapi.Schema{"type": "string"}})
		}
	}
	for _, name := range r.query {
		p, ok := parameters[r.method+" "+r.path+" "+name]
		if !ok {
			p, ok = parameters[name]
		}
		if !ok {
			panic(name + " of " + r.method + " " + r.path + " is not described: add it to parameters in cmd/weir/api/operations.go")
		}
		p.Name, p.In = name, "query"
		o.Parameters = append(o.Parameters, p)
	}
	o.Parameters = append(o.Parameters, op.headers...)
	if op.body != nil {
		o.Body = &openapi.Body{Required: !op.optional, Content: contentOf(t, op.body, true)}
	}
	for status, v := range op.answers {
		o.Responses[statusText(status)] = &openapi.Response{Description: cmp.Or(http.StatusText(status), "The page says what is wrong"), Content: contentOf(t, v, false)}
	}
	types := map[int][]string{}
	titles := map[int][]string{}
	for _, name := range problemsOf(r, op) {
		name, other, _ := strings.Cut(name, " ")
		i := slices.IndexFunc(problemNames, func(p namedProblem) bool { return p.name == name })
		if i < 0 {
			panic(name + " of " + r.method + " " + r.path + " is no problem of problemTable")
		}
		statuses := problemNames[i].statuses
		if status, err := strconv.Atoi(other); err == nil {
			statuses = []int{status}
		}
		for _, status := range statuses {
			types[status], titles[status] = append(types[status], problemPrefix+name), append(titles[status], problemNames[i].title)
		}
	}
	for status, list := range types {
		o.Responses[statusText(status)] = &openapi.Response{Description: strings.Join(titles[status], ". ") + ".",
			Content: map[string]openapi.Media{problemMedia: {Schema: openapi.Schema{"$ref": "#/components/schemas/Problem",
				"properties": map[string]openapi.Schema{"type": {"enum": list}, "status": {"const": status}}}}}}
		if _, ok := op.answers[status]; ok {
			panic(r.method + " " + r.path + " has an answer and a problem of one status")
		}
	}
	return o
}

// statusText: a single digit stands for all statuses that begin with it.
func statusText(status int) string {
	if status < 10 {
		return strconv.Itoa(status) + "XX"
	}
	return strconv.Itoa(status)
}

// tagOf groups routes by what they are about.
func tagOf(path string) string {
	parts := strings.Split(path, "/")
	switch {
	case parts[1] == "v1":
		return parts[2]
	case parts[1] == "console":
		return parts[1]
	}
	return "service"
}

func contentOf(t *openapi.Types, v any, body bool) map[string]openapi.Media {
	m, ok := v.(media)
	switch {
	case ok:
	case body:
		m = media{bodyMedias, v}
	default:
		m = media{[]string{echo.MIMEApplicationJSON}, v}
	}
	content := map[string]openapi.Media{}
	for _, name := range m.types {
		content[name] = openapi.Media{Schema: schemaOf(t, m.each, body)}
	}
	return content
}

func schemaOf(t *openapi.Types, v any, body bool) openapi.Schema {
	switch v := v.(type) {
	case nil:
		return nil
	case openapi.Schema:
		return v
	case either:
		list := make([]openapi.Schema, len(v))
		for i := range v {
			list[i] = schemaOf(t, v[i], body)
		}
		return openapi.Schema{"anyOf": list}
	case needs:
		list := make([]openapi.Schema, len(v.one))
		for i, key := range v.one {
			list[i] = openapi.Schema{"required": []string{key}}
		}
		s := schemaOf(t, v.of, body)
		s["anyOf"] = list
		return s
	}
	if body {
		return t.Body(v)
	}
	return t.Answer(v)
}

// trainingSpec is the published schema of specs, its parts as components.
func trainingSpec() map[string]openapi.Schema {
	const name = "TrainingSpec"
	data, err := schemas.Read(schemas.Spec)
	if err != nil {
		panic(err) // it is built in
	}
	data = bytes.ReplaceAll(data, []byte(`"#/$defs/`), []byte(`"#/components/schemas/`+name+"."))
	var spec openapi.Schema
	if err := json.Unmarshal(data, &spec); err != nil {
		panic(err)
	}
	parts := map[string]openapi.Schema{name: spec}
	for part, schema := range spec["$defs"].(map[string]any) {
		parts[name+"."+part] = schema.(map[string]any)
	}
	delete(spec, "$defs")
	delete(spec, "$schema")
	delete(spec, "$id") // with one, the references would be into itself
	return parts
}

// wireTypes says of the types of the wire what reflection cannot see.
func wireTypes() *openapi.Types {
	digest := openapi.Schema{"type": "string", "pattern": "^[0-9a-f]{64}$"}
	day := openapi.Schema{"type": "string", "format": "date"}
	var states, forces []string
	for _, s := range []screening.State{screening.Violated, screening.Upheld, screening.NotCheckable} {
		states = append(states, string(s))
	}
	for _, s := range []screening.OutOfForce{screening.NotYet, screening.NoLonger} {
		forces = append(forces, string(s))
	}
	return &openapi.Types{
		Known: map[reflect.Type]openapi.Schema{
			reflect.TypeFor[screening.Digest256]():      digest,
			reflect.TypeFor[screening.Day]():            day,
			reflect.TypeFor[screening.Outcome]():        oneOf("admit", "escalate", "block"),
			reflect.TypeFor[screening.Response]():       oneOf("observe", "hedge", "escalate", "block"),
			reflect.TypeFor[screening.State]():          oneOf(states...),
			reflect.TypeFor[screening.OutOfForce]():     oneOf(forces...),
			reflect.TypeFor[screening.Cause]():          oneOf(screening.CauseNoEvidence, screening.CauseHint, screening.CauseStructural, screening.CauseNoPredicate, screening.CauseError),
			reflect.TypeFor[screening.Layer]():          oneOf(screening.Safety, screening.Ethics),
			reflect.TypeFor[screening.Ruleset]():        oneOf(screening.RulesetReference.String(), screening.RulesetHardened.String()),
			reflect.TypeFor[review.Status]():            oneOf(review.Statuses()...),
			reflect.TypeFor[review.Decider]():           oneOf(review.ByPacks, review.ByPeople, review.ByWaiver, review.ByRecall),
			reflect.TypeFor[review.State]():             oneOf(review.Open, review.Claimed, review.NeedsEvidence, review.Decided, review.Expired, review.Superseded, review.Withdrawn),
			reflect.TypeFor[review.Kind]():              oneOf(review.KindEscalation, review.KindAppeal, review.KindReopen),
			reflect.TypeFor[review.Choice]():            oneOf(review.VoteAdmit, review.VoteBlock),
			reflect.TypeFor[review.NoteKind]():          oneOf(review.NoteComment, review.NoteQuestion, review.NoteAnswer, review.NoteWithdrawal, review.NoteAppeal, review.NoteReopen),
			reflect.TypeFor[review.CorrectionOutcome](): oneOf(review.CorrectionAccepted, review.CorrectionRejectedIdentity, review.CorrectionRejectedEmpty),
			reflect.TypeFor[review.EpistemicStatus]():   oneOf(review.Speculative, review.Coherent, review.Contested, review.Falsified),
			reflect.TypeFor[review.ReplayOutcome]():     oneOf("admit", "escalate", "block", string(review.ReplayRefused)),
			reflect.TypeFor[webhooks.Format]():          oneOf(webhooks.Formats()...),
			reflect.TypeFor[webhooks.Class]():           oneOf(webhooks.Classes()...),
		},
		Names:   map[reflect.Type]string{reflect.TypeFor[screening.Problem](): "Fault"},
		Structs: []reflect.Type{reflect.TypeFor[screening.Decision]()},
		Fields: map[string]any{
			"wireScreening.Decision":       screening.Decision{},
			"wirePreview.Decision":         screening.Decision{},
			"wireCorrection.IdentityScore": review.IdentityScore{},
			"wireLeaf.Leaf":                anything,
			"Fact.Value":                   anything,
			"replayBody.Packs":             openapi.Schema{"description": "A pack, or the id of one in force.", "type": []string{"object", "string"}},
			"wireDelivery.State":           oneOf(webhooks.States()...),
			"wireDelivery.Type":            oneOf(append(webhooks.Types(), webhooks.TypePing)...),
			"wireEndpoint.Types":           oneOf(webhooks.Types()...),
		},
	}
}

// openapi gives the document. It is the same for everybody, as long as the
// server lives.
func (s *Server) openapi(c echo.Context) error {
	c.Response().Header().Set("Access-Control-Allow-Origin", "*")
	text, err := s.described()
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, text)
}

// openapiPage shows it to people.
func (s *Server) openapiPage(c echo.Context) error {
	text, err := s.describedPage()
	if err != nil {
		return err
	}
	c.Response().Header().Set("Content-Security-Policy", openapi.PagePolicy)
	c.Response().Header().Set("Referrer-Policy", "no-referrer")
	return c.HTMLBlob(http.StatusOK, text)
}
