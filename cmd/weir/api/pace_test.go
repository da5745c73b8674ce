package api_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"weir/cmd/weir/api"
	"weir/review"
	"weir/store"
)

// One person or service gets so many answers a second, whatever keys they use, and
// takes none from the others.
func TestPaceOfOneCaller(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	later := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); at = at.Add(d) }
	w := newWorld(t, func(c *api.Config, _ *api.Gate) {
		c.Rate, c.Now = 2, func() time.Time { mu.Lock(); defer mu.Unlock(); return at }
	})
	with := func(key string) answer {
		t.Helper()
		return w.do("GET", "/v1/packs", "", nil, header("Authorization", "Bearer "+key))
	}
	const burst = 20
	first, second, alias := w.key("bo", review.ScopeReview), w.key("bo", review.ScopeReview), w.key("bo2", review.ScopeReview)
	for i := range burst {
		if a := with([]string{first, second, alias}[i%3]); a.status != http.StatusOK {
			t.Fatalf("request %d: %d %s", i+1, a.status, a.body)
		}
	}
	tooFast := func(name string, a answer) {
		t.Helper()
		if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "1" || a.text("type") != "urn:weir:problem:too-fast" {
			t.Errorf("%s: %d, Retry-After %q: %s", name, a.status, a.header.Get("Retry-After"), a.body)
		}
		checkProblem(t, name, a)
	}
	for name, key := range map[string]string{"a key": first, "another": second, "of the other name": alias} {
		tooFast(name, with(key))
	}
	// A refusal before anything is read or kept, of what the caller may not do too.
	tooFast("a submission", w.do("POST", "/v1/screenings", "", spec("r"), header("Authorization", "Bearer "+w.key("bo", review.ScopeSubmit))))
	tooFast("a gate check", w.do("POST", "/v1/gate/check", "", spec("r"), header("Authorization", "Bearer "+first)))
	w.nothingStored("too fast")
	if a := with("weir_nothing"); a.status != http.StatusUnauthorized {
		t.Errorf("a key that is none: %d", a.status)
	}
	for name, key := range map[string]string{
		"another person":  w.key("chi", review.ScopeReview),
		"a service":       w.key("airflow", review.ScopeSubmit),
		"another project": newKey(t, w.store, store.NewKey{Project: "nlp", Subject: "bo", Scopes: []review.Scope{review.ScopeReview}}),
	} {
		if a := with(key); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := w.do("GET", "/livez", "", nil); a.status != http.StatusOK {
		t.Errorf("livez: %d", a.status)
	}
	later(time.Second)
	for range 2 {
		if a := with(first); a.status != http.StatusOK {
			t.Errorf("a second later: %d", a.status)
		}
	}
	tooFast("two a second", with(first))
}
