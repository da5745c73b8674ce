package api_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/review"
	"weir/store"
)

func bypass(id, at, reason, spec string) []byte {
	return fmt.Appendf(nil, `{"id": %q, "at": %q, "reason": %q, "spec": %q}`, id, at, reason, spec)
}

func TestBypasses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := w.do("POST", "/v1/screenings", "bo", spec("seen", personal))
	const (
		id = "018f0000-0000-4000-8000-00000000000"
		at = "2026-11-30T10:00:00.1234567Z"
	)
	clean, hit := string(spec("clean")), string(spec("seen", personal))
	tests := []struct {
		name    string
		body    []byte
		status  int
		runRef  string
		outcome string
	}{
		{"clean", bypass(id+"1", at, "no answer", clean), 201, "clean", "admit"},
		{"the same again", bypass(id+"1", at, "said otherwise", clean), 200, "clean", "admit"},
		{"the same, in capitals", bypass(strings.ToUpper(id+"1"), at, "no answer", clean), 200, "clean", "admit"},
		{"its id, another spec", bypass(id+"1", at, "no answer", hit), 409, "", ""},
		{"its id, another time", bypass(id+"1", "2026-11-30T10:00:01Z", "no answer", clean), 409, "", ""},
		{"screened before", bypass(id+"2", at, "no answer", hit), 201, "seen", "escalate"},
		{"not a spec", bypass(id+"3", at, "no answer", "train: everything"), 201, "", ""},
		{"no UUID", bypass("1", at, "no answer", clean), 422, "", ""},
		{"no reason", bypass(id+"4", at, "", clean), 422, "", ""},
		{"a reason that shows nothing", bypass(id+"4", at, "\u200b", clean), 422, "", ""},
		{"a long reason", bypass(id+"4", at, strings.Repeat("x", 2001), clean), 422, "", ""},
		{"no time", []byte(`{"id": "` + id + `4", "reason": "x", "spec": "x"}`), 422, "", ""},
		{"no spec", bypass(id+"4", at, "no answer", ""), 422, "", ""},
		{"not a time", bypass(id+"4", "yesterday", "no answer", clean), 422, "", ""},
		{"an unknown key", []byte(`{"id": "` + id + `4", "at": "` + at + `", "reason": "x", "spec": "x", "admit": true}`), 422, "", ""},
	}
	for _, tt := range tests {
		a := w.do("POST", "/v1/bypasses", "bo", tt.body)
		if a.status != tt.status || a.text("run_ref") != tt.runRef || a.text("outcome") != tt.outcome {
			t.Errorf("%s: %d %s", tt.name, a.status, a.body)
		}
		if tt.status < 300 && (a.text("submitter") != "bo" || a.text("reason") != "no answer" || a.text("at") != "2026-11-30T10:00:00.123456Z") {
			t.Errorf("%s: %s", tt.name, a.body)
		}
	}
	if a := w.do("POST", "/v1/bypasses", "bo", bypass(id+"2", at, "no answer", hit)); a.text("screening") != seen.text("id") {
		t.Errorf("the screening of these bytes is not named: %s", a.body)
	}
	if n := w.count("bypass"); n != 3 {
		t.Errorf("%d kept, want 3", n)
	}
	// It opens nothing.
	if a := w.do("POST", "/v1/gate/check", "bo", []byte(clean)); a.status != 404 {
		t.Errorf("gate: %d %s", a.status, a.body)
	}
	if a := w.do("POST", "/v1/gate/check", "bo", []byte(hit)); a.status != 409 {
		t.Errorf("gate: %d %s", a.status, a.body)
	}

	got, cursor := []string{}, ""
	for range 4 {
		a := w.do("GET", "/v1/bypasses?limit=1&cursor="+cursor, "chi", nil)
		for _, b := range a.get("bypasses").([]any) {
			got = append(got, b.(map[string]any)["id"].(string))
		}
		if cursor = a.text("next"); cursor == "" {
			break
		}
	}
	if want := []string{id + "3", id + "2", id + "1"}; strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("listed %q, want %q", got, want)
	}

	// Another project sees none of it, and can use the same ids.
	token := newKey(t, w.store, store.NewKey{Project: "other", Subject: "bo", Scopes: []review.Scope{review.ScopeSubmit, review.ScopeAudit}})
	other := header("Authorization", "Bearer "+token)
	if a := w.do("GET", "/v1/bypasses", "", nil, other); a.status != 200 || len(a.get("bypasses").([]any)) != 0 {
		t.Errorf("another project: %d %s", a.status, a.body)
	}
	if a := w.do("POST", "/v1/bypasses", "", bypass(id+"1", at, "no answer", clean), other); a.status != 201 {
		t.Errorf("another project: %d %s", a.status, a.body)
	}
	// A key that speaks for nobody reports nothing.
	if a := w.do("POST", "/v1/bypasses", "", bypass(id+"9", at, "no answer", clean), header("Authorization", "Bearer "+w.key("nobody", review.ScopeSubmit))); a.status != 403 {
		t.Errorf("nobody: %d %s", a.status, a.body)
	}
	for _, change := range []string{`update bypass set reason = 'x'`, `delete from bypass`, `truncate bypass`} {
		if _, err := w.pool.Exec(t.Context(), change); err == nil {
			t.Errorf("the database let this through: %s", change)
		}
	}
}
