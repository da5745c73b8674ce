package api_test

import (
	"context"
	"sync/atomic"
	"testing"

	"weir/cmd/weir/api"
	"weir/review"
)

// slowSpecs is a store whose stored specs come when they may.
type slowSpecs struct {
	review.Store
	entered, goOn chan struct{}
	slow          *atomic.Bool
}

func (s slowSpecs) StoredSpecs(ctx context.Context, project string, q review.StoredQuery) ([]review.StoredSpec, *review.Cursor, error) {
	if s.slow.Load() {
		s.entered <- struct{}{}
		<-s.goOn
	}
	return s.Store.StoredSpecs(ctx, project, q)
}

// While one replay is worked on, another is told to come back, and the gate
// answers those who wait for a decision.
func TestReplayStandsBack(t *testing.T) {
	t.Parallel()
	slow := slowSpecs{entered: make(chan struct{}), goOn: make(chan struct{}), slow: &atomic.Bool{}}
	w := newWorld(t, func(c *api.Config, g *api.Gate) {
		slow.Store = g.Keys.(review.Store)
		desk, err := review.NewDesk(slow, g.Desk.Setup(), review.Config{})
		if err != nil {
			t.Fatal(err)
		}
		c.InFlight, g.Desk = 2, desk
	})
	for _, run := range []string{"a", "b", "c"} {
		w.do("POST", "/v1/screenings", "bo", spec(run))
	}
	w.settle()
	const body = `{"packs": ["pledge"], "since": "2020-01-01"}`
	slow.slow.Store(true)
	first := make(chan answer, 1)
	go func() { first <- w.replay(body) }()
	<-slow.entered
	if a := w.replay(body); a.status != 503 || a.text("type") != "urn:weir:problem:busy" || a.header.Get("Retry-After") == "" {
		t.Errorf("beside another replay: %d %s", a.status, a.body)
	}
	if a := w.do("POST", "/v1/screenings", "bo", spec("more")); a.status != 201 {
		t.Errorf("a submission beside a replay: %d %s", a.status, a.body)
	}
	close(slow.goOn)
	if a := <-first; a.status != 200 || a.get("replayed") != 3.0 {
		t.Errorf("the replay itself: %d %s", a.status, a.body)
	}
}
