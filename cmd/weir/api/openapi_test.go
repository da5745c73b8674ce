package api_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"weir/cmd/weir/api"
	"weir/cmd/weir/openapi/openapitest"
)

// documentText asks a gate for the document.
func documentText() []byte {
	s := api.New(api.Config{Metrics: api.NewMetrics(), Log: quiet})
	s.Open(api.Gate{})
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	return rec.Body.Bytes()
}

func newChecker() *openapitest.Checker {
	c, err := openapitest.New(documentText())
	if err != nil {
		panic(err)
	}
	return c
}

// described holds every answer of this package's tests against the document.
var described = sync.OnceValue(newChecker)

// checkDescribed: an answer is as the document says, or, where it knows no such
// route, a problem.
func checkDescribed(t testing.TB, c *openapitest.Checker, method, path string, a answer) {
	t.Helper()
	if method == http.MethodHead {
		return // has no body to look at
	}
	err := c.Answer(method, path, a.status, a.header.Get("Content-Type"), a.body)
	if err == nil {
		return
	}
	if nowhere := a.text("type") == "urn:weir:problem:http" || a.text("type") == "urn:weir:problem:not-ready"; nowhere && errors.Is(err, openapitest.ErrNoRoute) {
		if err = c.Problem(a.body); err == nil {
			return
		}
	}
	t.Errorf("%s %s: not as the OpenAPI document says: %v", method, path, err)
}
