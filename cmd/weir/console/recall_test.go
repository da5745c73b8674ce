package console_test

import (
	"net/http"
	"strings"
	"testing"

	"weir/cmd/weir/console"
	"weir/review"
)

// A recalled screening says so first, leads to what else was recalled, and offers
// nothing that a recall forbids.
func TestRecallPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	named := func(uri string) func(map[string]any) {
		return func(doc map[string]any) { doc["inputs"].([]any)[0].(map[string]any)["uris"] = []any{uri} }
	}
	s := w.submit(spec("nlp/bot", named("s3://x/tickets "+hostile)))
	w.submit(spec("nlp/again", named("s3://x/tickets "+hostile)))
	policy := review.Principal{Subject: "bo", Project: "default", Scopes: []review.Scope{review.ScopePolicy}}
	r, err := w.desk.Recall(t.Context(), policy, review.RecalledData{URI: "https://data.example/tickets"}, "abuse was found "+hostile)
	if err != nil {
		t.Fatal(err)
	}
	b := w.as("chi", review.ScopeReview, review.ScopeAudit)
	for path, wants := range map[string][]string{
		"/console/reviews/" + s.Review.ID:    {"Data recalled", "abuse was found", "Data that this comes from was recalled."},
		"/console/screenings/" + s.ID:        {"Data recalled", "abuse was found", "Until the recall is lifted"},
		"/console/screenings?status=blocked": {"nlp/bot", "decided by recall"},
		"/console/recalls/" + r.ID:           {"https://data.example/tickets", "abuse was found", "2 screenings use it or come from it", "comes from it", "s3://x/tickets", "2 screenings blocked"},
	} {
		a := b.get(path)
		if a.status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, a.status, a.text())
		}
		for _, want := range wants {
			if !strings.Contains(a.text(), want) {
				t.Errorf("%s lacks %q: %s", path, want, a.text())
			}
		}
		if strings.Contains(a.body, "/vote\"") || strings.Contains(a.body, "/waive\"") || strings.Contains(a.body, "/reopen\"") {
			t.Errorf("%s offers what a recall forbids", path)
		}
		checkInert(t, path, a)
	}
	for _, path := range []string{"/console/reviews/" + s.Review.ID, "/console/screenings/" + s.ID} {
		if a := b.get(path); !strings.Contains(a.body, `href="/console/recalls/`+r.ID+`"`) || strings.Index(a.body, "Data recalled") > strings.Index(a.body, "Findings") {
			t.Errorf("%s does not begin with the recall", path)
		}
	}
	if _, err := w.desk.LiftRecall(t.Context(), policy, r.ID, "another was meant"); err != nil {
		t.Fatal(err)
	}
	if a := b.get("/console/screenings/" + s.ID); !strings.Contains(a.text(), "Ended by a recall that is lifted") {
		t.Errorf("lifted: %s", a.text())
	}
	if a := b.get("/console/recalls/" + r.ID); !strings.Contains(a.text(), "The recall is lifted") || !strings.Contains(a.text(), "another was meant") {
		t.Errorf("lifted: %s", a.text())
	}
}
