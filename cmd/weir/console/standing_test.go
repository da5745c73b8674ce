package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"weir/cmd/weir/console"
	"weir/review"
)

// Two reviewers waive a finding on the pages; nobody does it alone, and a party
// or somebody of another project not at all.
func TestWaiveOnThePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	s := w.submit(spec("nlp/bot"))
	page := "/console/screenings/" + s.ID
	form := url.Values{"term": {"ethics:personal_data_inside"}, "ticket": {"T-1"}, "days": {"3"}, "reason": {"agreed " + hostile}}
	with := func(name, value string) url.Values {
		changed := url.Values{}
		for k, v := range form {
			changed[k] = v
		}
		changed.Set(name, value)
		return changed
	}
	bo, chi := w.as("bo"), w.as("chi")
	if a := bo.get(page); !strings.Contains(a.text(), "Ask for a waiver") {
		t.Errorf("no form: %s", a.text())
	}
	for name, tt := range map[string]struct {
		by   *browser
		form url.Values
		want int
		says string
	}{
		"a party":         {w.as("ana"), form, http.StatusForbidden, "their own run"},
		"an auditor":      {w.as("bo", review.ScopeAudit), form, http.StatusForbidden, ""},
		"no reason":       {bo, with("reason", " \u200b"), http.StatusUnprocessableEntity, "The reason must say something"},
		"no days":         {bo, with("days", "many"), http.StatusUnprocessableEntity, "The days must be between 1 and 30"},
		"too long":        {bo, with("days", "31"), http.StatusUnprocessableEntity, "The days must be between 1 and 30"},
		"a safety term":   {bo, with("term", "safety:sexualised_minors"), http.StatusConflict, "never waived"},
		"no such finding": {bo, with("term", "ethics:license_nc"), http.StatusUnprocessableEntity, "The term is not a term"},
	} {
		if a := tt.by.post(page+"/waive", tt.form); a.status != tt.want || !strings.Contains(a.text(), tt.says) {
			t.Errorf("%s: %d %s", name, a.status, a.text())
		} else if tt.want == http.StatusUnprocessableEntity && !strings.Contains(a.body, `value="T-1"`) {
			t.Errorf("%s: what was typed is gone", name)
		}
	}
	if n := w.count(`select count(*) from waiver`); n != 0 {
		t.Fatalf("%d waivers are kept", n)
	}
	if a := bo.post(page+"/waive", form); a.status != http.StatusSeeOther {
		t.Fatalf("waive: %d %s", a.status, a.text())
	}
	a := bo.get(page)
	if !strings.Contains(a.text(), "not confirmed") || strings.Contains(a.text(), "Confirm this waiver") {
		t.Errorf("the author's page: %s", a.text())
	}
	checkInert(t, page, a)
	var id string
	if err := w.pool.QueryRow(t.Context(), `select id::text from waiver`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	confirm := url.Values{"waiver": {id}}
	if a := bo.post(page+"/confirm", confirm); a.status != http.StatusForbidden || !strings.Contains(a.text(), "A second person has to confirm") {
		t.Errorf("confirmed by its author: %d %s", a.status, a.text())
	}
	if a := chi.post(page+"/confirm", url.Values{"waiver": {"x"}}); a.status != http.StatusBadRequest {
		t.Errorf("confirmed nothing: %d", a.status)
	}
	if a := chi.post(page+"/nothing", confirm); a.status != http.StatusNotFound {
		t.Errorf("no such act: %d", a.status)
	}
	if a := chi.get(page); !strings.Contains(a.text(), "Confirm this waiver") {
		t.Errorf("the other's page: %s", a.text())
	}
	if a := chi.post(page+"/confirm", confirm); a.status != http.StatusSeeOther {
		t.Errorf("confirm: %d %s", a.status, a.text())
	}
	if a := chi.get(page); !strings.Contains(a.text(), "admitted") || !strings.Contains(a.text(), "in force until") {
		t.Errorf("after both: %s", a.text())
	}
}

// A review that expired is reopened where its screening is shown.
func TestReopenOnThePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	s := w.submit(spec("nlp/bot"))
	page := "/console/screenings/" + s.ID
	bo := w.as("bo")
	reason := url.Values{"reason": {"we were away"}}
	if a := bo.post(page+"/reopen", reason); a.status != http.StatusConflict || strings.Contains(a.body, `action="`+page+`/reopen"`) {
		t.Errorf("open: %d %s", a.status, a.text())
	}
	w.exec(`with p as (update review_panel set due_at = due_at - interval '9 days')
		update review set opened_at = opened_at - interval '9 days', due_at = due_at - interval '9 days', expires_at = expires_at - interval '9 days'`)
	if a := bo.get("/console/reviews/" + s.Review.ID); !strings.Contains(a.body, page+"#waivers") {
		t.Errorf("the expired review does not lead on: %s", a.text())
	}
	if a := bo.get(page); !strings.Contains(a.body, `action="`+page+`/reopen"`) {
		t.Errorf("no form: %s", a.text())
	}
	if a := bo.post(page+"/reopen", url.Values{"reason": {" "}}); a.status != http.StatusUnprocessableEntity {
		t.Errorf("without a reason: %d %s", a.status, a.text())
	}
	a := bo.post(page+"/reopen", reason)
	if to := a.header.Get("Location"); a.status != http.StatusSeeOther || !strings.HasPrefix(to, "/console/reviews/") || to == "/console/reviews/"+s.Review.ID {
		t.Errorf("reopen: %d to %q %s", a.status, to, a.text())
	}
}
