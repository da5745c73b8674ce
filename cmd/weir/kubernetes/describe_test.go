package kubernetes_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"weir/cmd/weir/kubernetes"
	"weir/cmd/weir/openapi"
	"weir/cmd/weir/openapi/openapitest"
	"weir/review"
	"weir/review/reviewtest"
	"weir/screening"
)

// described holds every answer of this package's tests against the document.
var described = sync.OnceValue(func() *openapitest.Checker {
	c, err := checker()
	if err != nil {
		panic(err)
	}
	return c
})

func checker() (*openapitest.Checker, error) {
	var types openapi.Types
	route := kubernetes.Describe()
	d := openapi.Document{OpenAPI: openapi.Version, Paths: map[string]map[string]*openapi.Operation{}}
	d.Add(route.Method, route.Path, route.Describe(&types))
	d.Components = openapi.Components{Schemas: types.Components(), SecuritySchemes: route.Security}
	text, err := d.JSON()
	if err != nil {
		return nil, err
	}
	return openapitest.New(text)
}

// Every answer that is described is given, and none beside them.
func TestDescribedAnswers(t *testing.T) {
	t.Parallel()
	own, err := checker()
	if err != nil {
		t.Fatal(err)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	desk, err := review.NewDesk(breaking{today: func(context.Context) (screening.Day, error) {
		entered <- struct{}{}
		<-leave
		return "", review.ErrUnavailable
	}}, setup(t, reviewtest.Floor, pledgeYAML), review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := kubernetes.New(desk, kubernetes.Config{Service: "cluster", InFlight: 1})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(query string, body []byte) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, kubernetes.Path+query, bytes.NewReader(body)))
		if err := own.Answer(http.MethodPost, kubernetes.Path, rec.Code, rec.Header().Get("Content-Type"), rec.Body.Bytes()); err != nil {
			t.Error(err)
		}
	}
	ask("", []byte("{}"))
	var first sync.WaitGroup
	first.Go(func() { ask("", encode(load(t, "job"))) })
	<-entered
	ask("?timeout=50ms", encode(load(t, "job")))
	close(leave)
	first.Wait()
	for _, unseen := range own.Unseen() {
		t.Errorf("%s is described and not given", unseen)
	}
}
