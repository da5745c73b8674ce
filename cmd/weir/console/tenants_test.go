package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"weir/cmd/weir/console"
	"weir/review"
)

// No page shows a session anything of another project, and no form changes it there,
// whatever id is in the address. Every page is walked; a session of the project itself
// finds its own on those that name a thing.
func TestPagesAcrossProjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	const word = "kanarienvogel"
	w.submit(spec(word, purpose(word+" for some")))
	s := w.submit(spec(word, purpose(word+" for everybody")))
	p := review.Principal{Subject: "chi", Project: "default", Scopes: review.Scopes}
	if _, err := w.desk.Comment(t.Context(), p, s.Review.ID, 0, "a comment of "+word); err != nil {
		t.Fatal(err)
	}
	waiver, err := w.desk.Waive(t.Context(), p, review.WaiverRequest{ScreeningID: s.ID, Term: "ethics:personal_data_inside", Reason: word, Ticket: word, Days: 1})
	if err != nil {
		t.Fatal(err)
	}
	recall, err := w.desk.Recall(t.Context(), p, review.RecalledData{URI: "s3://" + word + "/data"}, word)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{s.ID, s.Review.ID, recall.ID, w.delivery(s), waiver.ID}
	scopes := []review.Scope{review.ScopeReview, review.ScopeAudit, review.ScopePolicy, review.ScopeCurate}
	ours, theirs := w.as("bo", scopes...), w.browser()
	token, digest := console.NewLink()
	if err := w.store.CreateLoginLink(t.Context(), digest, review.Principal{Subject: "bo", Project: "b", Scopes: scopes}); err != nil {
		t.Fatal(err)
	}
	if a := theirs.post("/console/login", url.Values{"link": {token}}); a.status != http.StatusSeeOther {
		t.Fatalf("login: %d %s", a.status, a.text())
	}
	form := url.Values{"expected_version": {"1"}, "spec_sha256": {s.SpecSHA256.String()}, "vote": {"block"}, "reason": {"r"}, "note": {"n"},
		"terms": {"ethics:personal_data_inside"}, "term": {"ethics:personal_data_inside"}, "ticket": {"T"}, "days": {"1"}, "waiver": {waiver.ID}}
	ask := func(b *browser, method, path string) answer {
		if method == http.MethodGet {
			return b.get(path)
		}
		return b.post(path, form)
	}
	rows := func() string {
		var all string
		for _, table := range []string{"spec", "screening", "finding", "review", "review_note", "vote", "waiver", "recall", "exposure", "delivery", "audit_event"} {
			var list string
			if err := w.pool.QueryRow(t.Context(), `select coalesce(string_agg(to_jsonb(x)::text, chr(10) order by to_jsonb(x)::text), '') from `+table+` x`).Scan(&list); err != nil {
				t.Fatal(err)
			}
			all += table + ":\n" + list + "\n"
		}
		return all
	}

	pages, err := console.New(w.desk, w.store, w.store, console.Config{})
	if err != nil {
		t.Fatal(err)
	}
	before, statuses := rows(), map[string]int{}
	walk := func(b *browser, each func(pattern, path string, a answer)) {
		for _, pattern := range pages.Patterns() {
			method, path, _ := strings.Cut(pattern, " ")
			path = strings.NewReplacer("{$}", "", "{layer}", "ethics", "{term}", "personal_data_inside").Replace(path)
			for _, id := range ids {
				for _, act := range []string{"claim", "release", "comment", "ask", "waive", "confirm", "reopen"} {
					path := strings.NewReplacer("{id}", id, "{act}", act).Replace(path)
					each(pattern, path, ask(b, method, path))
					if !strings.Contains(pattern, "{act}") {
						break
					}
				}
				if !strings.Contains(pattern, "{id}") {
					break
				}
			}
		}
	}
	walk(theirs, func(pattern, path string, a answer) {
		statuses[pattern+path] = a.status
		if strings.Contains(pattern, "{id}") && a.status != http.StatusNotFound {
			t.Errorf("%s, %s: %d, want 404: %s", pattern, path, a.status, a.text())
		} else if a.status >= 500 {
			t.Errorf("%s: %d", path, a.status)
		}
		if all := strings.ToLower(fmt.Sprint(a.header) + a.body); strings.Contains(all, word) || strings.Contains(all, s.SpecSHA256.String()) ||
			slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(all, id) && !strings.Contains(path, id) }) {
			t.Errorf("%s shows what is of another project: %d %s", path, a.status, a.text())
		}
	})
	if after := rows(); after != before {
		t.Errorf("what another project asked changed something:\n%s\nand before:\n%s", after, before)
	}
	found := map[string]bool{}
	walk(ours, func(pattern, path string, a answer) {
		found[pattern] = found[pattern] || strings.Contains(a.body, word) || a.status != statuses[pattern+path]
	})
	for _, pattern := range pages.Patterns() {
		if strings.Contains(pattern, "{id}") && !found[pattern] {
			t.Errorf("%s: the project itself finds nothing there, so nothing was shown above", pattern)
		}
	}
	if !found["GET /console/reviews"] || !found["GET /console/screenings"] {
		t.Error("the lists do not show the project its own")
	}
}
