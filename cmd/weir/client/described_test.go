package client_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir/api"
	"weir/cmd/weir/client"
	"weir/cmd/weir/openapi/openapitest"
	"weir/review"
	"weir/screening"
)

// call is a method of the client with what it reads.
type call struct {
	reads reflect.Type
	do    func(context.Context, *client.Client)
}

func of[T any](do func(context.Context, *client.Client) (T, error)) call {
	return call{reflect.TypeFor[T](), func(ctx context.Context, c *client.Client) { _, _ = do(ctx, c) }} // what it answers is another test's
}

const bypass = `{"id": "018f0000-0000-4000-8000-000000000009", "at": "2026-11-30T10:00:00Z", "reason": "down", "spec": "?"}`

var (
	day     = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	digest  = screening.Sum(nil)
	vote    = client.Vote{ExpectedVersion: 1, SpecSHA256: digest, Vote: "admit", Reason: "r", Terms: []string{"ethics:a"}}
	stated  = []review.Fact{{Pointer: "/disclosures", Value: []byte(`{"tag": "minors"}`)}}
	waiver  = client.WaiverRequest{ScreeningID: "X", Term: "ethics:a", Reason: "r", Ticket: "t", Days: 3, RunPrefix: "r/", Inputs: []string{"sha256:" + digest.String()}}
	correct = client.CorrectionRequest{ScreeningID: "X", Text: "t", Expects: &review.Expectation{Term: "a", Finding: screening.Upheld}}
)

// calls has every method of the client, with X wherever there is an id.
var calls = map[string]call{
	"Ready": {nil, func(ctx context.Context, c *client.Client) { _ = c.Ready(ctx) }},
	"Submit": of(func(ctx context.Context, c *client.Client) (*client.Screening, error) {
		return c.Submit(ctx, "k", []byte("schema: x"))
	}),
	"Screening": of(func(ctx context.Context, c *client.Client) (*client.Screening, error) {
		return c.Screening(ctx, "X", 0)
	}),
	"Explained": of(func(ctx context.Context, c *client.Client) (*client.Screening, error) { return c.Explained(ctx, "X") }),
	"Spec":      of(func(ctx context.Context, c *client.Client) ([]byte, error) { return c.Spec(ctx, "X") }),
	"Admission": of(func(ctx context.Context, c *client.Client) ([]byte, error) { return c.Admission(ctx, "X") }),
	"Answer":    of(func(ctx context.Context, c *client.Client) (*client.Screening, error) { return c.Answer(ctx, "X", "n") }),
	"Withdraw": of(func(ctx context.Context, c *client.Client) (*client.Screening, error) {
		return c.Withdraw(ctx, "X", "r")
	}),
	"Appeal": of(func(ctx context.Context, c *client.Client) (*client.Screening, error) { return c.Appeal(ctx, "X", "r") }),
	"Reopen": of(func(ctx context.Context, c *client.Client) (*client.Screening, error) { return c.Reopen(ctx, "X", "r") }),
	"ReportBypass": of(func(ctx context.Context, c *client.Client) (*client.Bypass, error) {
		return c.ReportBypass(ctx, []byte(bypass))
	}),
	"Erase": of(func(ctx context.Context, c *client.Client) (*client.Erasure, error) {
		return c.Erase(ctx, client.ErasureRequest{SpecSHA256: digest, Reason: "r"})
	}),
	"Export": of(func(ctx context.Context, c *client.Client) (*client.Export, error) {
		return c.Export(ctx, time.Minute, nil)
	}),
	"Reviews": of(func(ctx context.Context, c *client.Client) (*client.ReviewList, error) {
		return c.Reviews(ctx, true, 5)
	}),
	"Review": of(func(ctx context.Context, c *client.Client) (*client.Review, error) { return c.Review(ctx, "X") }),
	"Vote": of(func(ctx context.Context, c *client.Client) (*client.Review, error) {
		v := vote
		v.Facts = stated
		return c.Vote(ctx, "X", v)
	}),
	"Claim":   of(func(ctx context.Context, c *client.Client) (*client.Review, error) { return c.Claim(ctx, "X") }),
	"Release": of(func(ctx context.Context, c *client.Client) (*client.Review, error) { return c.Release(ctx, "X") }),
	"AskEvidence": of(func(ctx context.Context, c *client.Client) (*client.Review, error) {
		return c.AskEvidence(ctx, "X", "q")
	}),
	"Comment":       of(func(ctx context.Context, c *client.Client) (*client.Review, error) { return c.Comment(ctx, "X", "t") }),
	"Waive":         of(func(ctx context.Context, c *client.Client) (*client.Waiver, error) { return c.Waive(ctx, waiver) }),
	"ConfirmWaiver": of(func(ctx context.Context, c *client.Client) (*client.Waiver, error) { return c.ConfirmWaiver(ctx, "X") }),
	"Waivers":       of(func(ctx context.Context, c *client.Client) (*client.WaiverList, error) { return c.Waivers(ctx, "X") }),
	"Correct": of(func(ctx context.Context, c *client.Client) (*client.Correction, error) {
		return c.Correct(ctx, correct)
	}),
	"CorrectReview": of(func(ctx context.Context, c *client.Client) (*client.Correction, error) {
		return c.CorrectReview(ctx, "X", client.CorrectionRequest{Text: "t"})
	}),
	"Judge": of(func(ctx context.Context, c *client.Client) (*client.Correction, error) {
		return c.Judge(ctx, "X", "coherent", "r")
	}),
	"Deliveries": of(func(ctx context.Context, c *client.Client) (*client.DeliveryList, error) {
		return c.Deliveries(ctx, client.DeliveryQuery{"a", "b", "c", "d", "e", 5})
	}),
	"Delivery":  of(func(ctx context.Context, c *client.Client) (*client.Delivery, error) { return c.Delivery(ctx, "X") }),
	"Redeliver": of(func(ctx context.Context, c *client.Client) (*client.Redelivery, error) { return c.Redeliver(ctx, "X") }),
	"RedeliverFailed": of(func(ctx context.Context, c *client.Client) (*client.Redeliveries, error) {
		return c.RedeliverFailed(ctx, "X", day)
	}),
	"Endpoints": of(func(ctx context.Context, c *client.Client) (*client.EndpointList, error) { return c.Endpoints(ctx) }),
	"Endpoint":  of(func(ctx context.Context, c *client.Client) (*client.Endpoint, error) { return c.Endpoint(ctx, "X") }),
	"EnableEndpoint": of(func(ctx context.Context, c *client.Client) (*client.Endpoint, error) {
		return c.EnableEndpoint(ctx, "X", "r")
	}),
	"DisableEndpoint": of(func(ctx context.Context, c *client.Client) (*client.Endpoint, error) {
		return c.DisableEndpoint(ctx, "X", "r")
	}),
	"PingEndpoint": of(func(ctx context.Context, c *client.Client) (*client.Ping, error) { return c.PingEndpoint(ctx, "X") }),
	"Packs":        of(func(ctx context.Context, c *client.Client) (*client.PackList, error) { return c.Packs(ctx) }),
	"Drift":        of(func(ctx context.Context, c *client.Client) (*client.DriftPage, error) { return c.Drift(ctx, "X", 5) }),
	"Recall": of(func(ctx context.Context, c *client.Client) (*client.Recall, error) {
		return c.Recall(ctx, client.RecallRequest{SHA256: digest, Reason: "r"})
	}),
	"LiftRecall": of(func(ctx context.Context, c *client.Client) (*client.Recall, error) {
		return c.LiftRecall(ctx, "X", "r")
	}),
	"Recalls": of(func(ctx context.Context, c *client.Client) (*client.RecallList, error) {
		return c.Recalls(ctx, true, "c", 5)
	}),
	"RecallReport": of(func(ctx context.Context, c *client.Client) (*client.RecallReport, error) {
		return c.RecallReport(ctx, "X", "c", 5)
	}),
	"Replay": of(func(ctx context.Context, c *client.Client) (*client.ReplayPage, error) {
		return c.Replay(ctx, client.ReplayRequest{Packs: []any{"p"}, Limit: 5, Since: day, AsOf: "stored"})
	}),
}

// Every request of the client is one that the gate's OpenAPI document describes, and
// every key that it reads is in the answer there.
func TestDescribed(t *testing.T) {
	t.Parallel()
	s := api.New(api.Config{Metrics: api.NewMetrics(), Log: slog.New(slog.DiscardHandler)})
	s.Open(api.Gate{})
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	doc, err := openapitest.New(rec.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	methods := reflect.TypeFor[*client.Client]()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		if _, ok := calls[name]; !ok && name != "Server" {
			t.Errorf("%s is in no test: add it to calls", name)
		}
	}
	for name, call := range calls {
		asked := 0
		c := newClient(t, func(r *http.Request) (*http.Response, error) {
			asked++
			op := r.Method + " " + strings.NewReplacer("/endpoints/X", "/endpoints/{id}", "/X", "/{id}").Replace(r.URL.Path)
			described := doc.Operation(op)
			if described == nil {
				t.Errorf("%s: %s is not in the document", name, op)
				return answering(404, "")
			}
			var body []byte
			if r.Body != nil {
				body, _ = io.ReadAll(r.Body)
			}
			if err := doc.Body(r.Method, r.URL.Path, r.Header.Get("Content-Type"), bytes.TrimSpace(body)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for parameter := range r.URL.Query() {
				if !takes(described, parameter) {
					t.Errorf("%s: %s takes no %s", name, op, parameter)
				}
			}
			if call.reads != nil && call.reads.Kind() == reflect.Pointer && call.reads.Elem() != reflect.TypeFor[client.Export]() {
				unread(doc, success(described), call.reads.Elem(), func(key string) { t.Errorf("%s: the answer of %s has no %s", name, op, key) })
			}
			return answering(404, "")
		})
		call.do(t.Context(), c)
		if asked != 1 {
			t.Errorf("%s asked %d times", name, asked)
		}
	}
}

func takes(op map[string]any, name string) bool {
	list, _ := op["parameters"].([]any)
	for _, p := range list {
		if m, _ := p.(map[string]any); m["in"] == "query" && m["name"] == name {
			return true
		}
	}
	return false
}

// success is what may be answered with a 2xx.
func success(op map[string]any) (schemas []any) {
	responses, _ := op["responses"].(map[string]any)
	for status, r := range responses {
		content, _ := r.(map[string]any)["content"].(map[string]any)
		if media, ok := content["application/json"].(map[string]any); ok && status[0] == '2' {
			schemas = append(schemas, media["schema"])
		}
	}
	return schemas
}

// unread tells the keys that a type reads and none of the schemas has.
func unread(doc *openapitest.Checker, schemas []any, typ reflect.Type, tell func(key string)) {
	properties := map[string][]any{}
	var collect func(any)
	collect = func(s any) {
		schema, _ := doc.Resolve(s).(map[string]any)
		either, _ := schema["anyOf"].([]any)
		for _, one := range either {
			collect(one)
		}
		has, _ := schema["properties"].(map[string]any)
		for key, property := range has {
			properties[key] = append(properties[key], property)
		}
	}
	for _, s := range schemas {
		collect(s)
	}
	for _, f := range reflect.VisibleFields(typ) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || key == "-" || len(f.Index) > 1 && f.Type.PkgPath() != "" && key == "" {
			continue
		}
		inner, ok := properties[key]
		if !ok {
			tell(key)
			continue
		}
		of := f.Type
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			if of.Kind() == reflect.Slice {
				inner = items(doc, inner)
			}
			of = of.Elem()
		}
		if of.Kind() == reflect.Struct && strings.HasSuffix(of.PkgPath(), "/client") {
			unread(doc, inner, of, func(sub string) { tell(key + "." + sub) })
		}
	}
}

func items(doc *openapitest.Checker, schemas []any) (inner []any) {
	for _, s := range schemas {
		if schema, _ := doc.Resolve(s).(map[string]any); schema["items"] != nil {
			inner = append(inner, schema["items"])
		}
	}
	return inner
}
