package openapitest_test

import (
	"slices"
	"strings"
	"testing"

	"weir/cmd/weir/openapi/openapitest"
)

const document = `{"openapi": "3.1.1", "info": {"title": "t", "version": "1"},
 "paths": {
  "/things/{id}": {"get": {"responses": {"200": {"description": "d", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
    "303": {"description": "d", "content": {"text/html": {}}}, "4XX": {"description": "d", "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem", "properties": {"type": {"enum": ["urn:gone"]}}}}}}}}},
  "/things/all": {"post": {"requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
    "responses": {"200": {"description": "d", "content": {"application/x-ndjson": {"schema": {"$ref": "#/components/schemas/Thing"}}}}}}},
  "/pages/{page}": {"get": {"responses": {"200": {"description": "d", "content": {"text/html": {}}}}}}},
 "components": {"schemas": {
  "Thing": {"type": "object", "properties": {"name": {"type": "string"}, "at": {"type": "string", "format": "date-time"}}, "required": ["name"], "additionalProperties": false},
  "Problem": {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"], "additionalProperties": false}}}}`

// The checker itself notices what it is there for.
func TestChecker(t *testing.T) {
	t.Parallel()
	c, err := openapitest.New([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		method, path string
		status       int
		media, body  string
		want         string // "" = as documented
	}{
		{"GET", "/things/1?a=b", 200, "application/json; charset=utf-8", `{"name": "n"}`, ""},
		{"GET", "/things/1", 200, "application/json", `{"name": "n", "more": 1}`, "more"},
		{"GET", "/things/1", 200, "application/json", `{}`, "name"},
		{"GET", "/things/1", 200, "application/json", `{"name": "n", "at": "yesterday"}`, "date-time"},
		{"GET", "/things/1", 200, "application/json", `{"name": "n"`, "not JSON"},
		{"GET", "/things/1", 200, "text/plain", `{"name": "n"}`, "text/plain"},
		{"GET", "/things/1", 200, "", `{"name": "n"}`, "content type"},
		{"GET", "/things/1", 201, "application/json", `{"name": "n"}`, "201"},
		{"GET", "/things/1", 404, "application/problem+json", `{"type": "urn:gone"}`, ""},
		{"GET", "/things/1", 404, "application/problem+json", `{"type": "urn:lost"}`, "urn:gone"},
		{"GET", "/things/1", 303, "", "", ""},
		{"GET", "/things/", 200, "application/json", `{"name": "n"}`, "not in the document"},
		{"GET", "/things/1/more", 200, "application/json", `{"name": "n"}`, "not in the document"},
		{"DELETE", "/things/1", 200, "application/json", `{"name": "n"}`, "not in the document"},
		{"POST", "/things/all", 200, "application/x-ndjson", "{\"name\": \"a\"}\n{\"name\": \"b\"}\n", ""},
		{"POST", "/things/all", 200, "application/x-ndjson", "{\"name\": \"a\"}\n{\"nome\": \"b\"}\n", "nome"},
		{"GET", "/pages/a/b", 200, "text/html", "<p>", ""},
	} {
		err := c.Answer(tt.method, tt.path, tt.status, tt.media, []byte(tt.body))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s %d %s: %v, want %q", tt.method, tt.path, tt.status, tt.body, err, tt.want)
		}
	}
	for body, want := range map[string]bool{`{"name": "n"}`: true, `{"name": 1}`: false, ``: false} {
		if err := c.Body("POST", "/things/all", "application/json", []byte(body)); (err == nil) != want {
			t.Errorf("body %s: %v", body, err)
		}
	}
	if unseen := c.Unseen(); len(unseen) != 0 {
		t.Errorf("unseen: %v", unseen)
	}
	if !c.Problems()["urn:gone"] {
		t.Error("the problem was not seen")
	}
	fresh, err := openapitest.New([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"GET /pages/{page} 200", "POST /things/all 200", "GET /things/{id} 200", "GET /things/{id} 303", "GET /things/{id} 4XX", "GET /things/{id} 4XX urn:gone"}; !slices.Equal(want, fresh.Unseen()) {
		t.Errorf("unseen of a fresh one: %v", fresh.Unseen())
	}
}
