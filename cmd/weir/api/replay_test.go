package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/review"
	"weir/store"
)

// stricter is the pledge of the tests with its terms raised to block.
const stricter = `{"schema": "weir/pack/v1", "id": "pledge", "version": "2", "layer": "ethics", "title": "Pledge", "description": "One term.",
 "x-note": "kept in the digest", "terms": [{"id": "personal_data_inside", "title": "P", "description": "P", "severity": "high", "over": ["dataset"],
 "violated_if": {"tag": {"personal_data": "present"}}, "response": "block", "remedy": "Remove it."}]}`

func (w *world) replay(body string) answer {
	w.Helper()
	return w.do("POST", "/v1/packs/replay", "", []byte(body), header("Authorization", "Bearer "+w.key("chi", review.ScopePolicy)))
}

// settle moves what was screened out of the last minute, which a replay leaves out.
func (w *world) settle() {
	w.Helper()
	w.exec(`update screening set created_at = created_at - interval '2 minutes'`)
}

func TestReplay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 3 {
		w.do("POST", "/v1/screenings", "bo", spec(fmt.Sprintf("clean-%d", i)))
	}
	hit := w.do("POST", "/v1/screenings", "bo", spec("hit", personal))
	stored := w.count("screening")
	if a := w.replay(`{"packs": ["pledge"], "since": "2020-01-01"}`); a.status != 200 || a.get("replayed") != 0.0 {
		t.Errorf("what may still have company is in the window: %d %s", a.status, a.body)
	}
	w.settle()

	a := w.replay(`{"packs": [` + stricter + `], "since": "2020-01-01"}`)
	if a.status != 200 || a.get("unratified") != true || a.get("replayed") != 4.0 || a.text("next") != "" || a.text("as_of") != "stored" || a.text("project") != "default" || a.get("audit_only") != false {
		t.Fatalf("replay: %d %s", a.status, a.body)
	}
	var got struct {
		Totals      []review.ReplayTotal
		Differences []review.Replayed
	}
	if err := json.Unmarshal(a.body, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Totals) != 2 || len(got.Differences) != 1 || got.Differences[0].ScreeningID != hit.text("id") || got.Differences[0].Now != "block" {
		t.Errorf("%s", a.body)
	}
	if n := w.count("screening"); n != stored {
		t.Errorf("a replay stored %d screenings", n-stored)
	}

	// The packs in force decide as they did, and are ratified as far as the gate is.
	if a := w.replay(`{"packs": ["pledge"], "since": "2020-01-01"}`); a.status != 200 || a.get("unratified") != false || len(a.get("differences").([]any)) != 0 {
		t.Errorf("packs in force: %d %s", a.status, a.body)
	}

	// Pages add up, and a cursor says all but the packs.
	var runs []string
	next, pages := "", 0
	for {
		body := `{"packs": [` + stricter + `], "limit": 1, "since": "2020-01-01"}`
		if next != "" {
			body = `{"packs": [` + stricter + `], "limit": 1, "cursor": "` + next + `"}`
		}
		a := w.replay(body)
		if a.status != 200 {
			t.Fatalf("page %d: %d %s", pages, a.status, a.body)
		}
		for _, d := range a.get("differences").([]any) {
			runs = append(runs, d.(map[string]any)["run_ref"].(string))
		}
		if pages++; pages == 1 { // what comes in later belongs to no page
			w.do("POST", "/v1/screenings", "bo", spec("late", personal))
		}
		if a.text("next") == "" {
			break
		}
		next = a.text("next")
	}
	if d := cmp.Diff([]string{"hit"}, runs); d != "" || pages < 4 {
		t.Errorf("%d pages: %s", pages, d)
	}
	for name, body := range map[string]string{
		"other packs": `{"packs": ["pledge"], "cursor": "` + next + `"}`,
		"other since": `{"packs": [` + stricter + `], "cursor": "` + next + `", "since": "2021-01-01"}`,
		"other until": `{"packs": [` + stricter + `], "cursor": "` + next + `", "until": "2021-01-01"}`,
		"other day":   `{"packs": [` + stricter + `], "cursor": "` + next + `", "as_of": "2021-01-01"}`,
		"no cursor":   `{"packs": [` + stricter + `], "cursor": "x"}`,
	} {
		if a := w.replay(body); a.status != 422 {
			t.Errorf("%s: %d %s, want 422", name, a.status, a.body)
		}
	}
	if a := w.replay(`{"packs": [` + stricter + `], "since": "2020-01-01", "as_of": "2026-02-03"}`); a.text("as_of") != "2026-02-03" ||
		!strings.Contains(string(a.body), `"as_of":"2026-02-03","then"`) {
		t.Errorf("as of another day: %d %s", a.status, a.body)
	}

	// Another project's specs are never seen.
	token, key, err := review.NewAPIKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.CreateKey(t.Context(), store.NewKey{ID: key.ID, SecretSHA256: key.SecretSHA256, Project: "other", Subject: "chi",
		Scopes: []review.Scope{review.ScopePolicy}}); err != nil {
		t.Fatal(err)
	}
	for body, status := range map[string]int{`{"packs": [` + stricter + `], "since": "2020-01-01"}`: 200, `{"packs": [` + stricter + `], "cursor": "` + next + `"}`: 422} {
		a := w.do("POST", "/v1/packs/replay", "", []byte(body), header("Authorization", "Bearer "+token))
		if a.status != status || status == 200 && (a.get("replayed") != 0.0 || a.text("project") != "other") || status == 422 && !strings.Contains(string(a.body), "another project") {
			t.Errorf("another project: %d %s, want %d", a.status, a.body, status)
		}
	}
}

func TestReplayRefusesCandidates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, tt := range map[string]struct{ body, pointer string }{
		"no packs":              {`{"since": "2020-01-01"}`, "/packs"},
		"empty list":            {`{"packs": [], "since": "2020-01-01"}`, "/packs"},
		"inverted":              {`{"packs": ["pledge"], "since": "2020-01-02", "until": "2020-01-01"}`, "/until"},
		"without length":        {`{"packs": ["pledge"], "since": "2020-01-02", "until": "2020-01-02"}`, "/until"},
		"all future":            {`{"packs": ["pledge"], "since": "2100-01-01"}`, "/since"},
		"no since":              {`{"packs": ["pledge"]}`, "/since"},
		"since that is no time": {`{"packs": ["pledge"], "since": "yesterday"}`, "/since"},
		"unknown id":            {`{"packs": ["pledge", "plegde"], "since": "2020-01-01"}`, "/packs/1"},
		"a number":              {`{"packs": [7], "since": "2020-01-01"}`, "/packs/0"},
		"unknown key":           {`{"packs": ["pledge"], "since": "2020-01-01", "dry_run": true}`, "/dry_run"},
		"a key of a pack":       {`{"packs": [` + strings.Replace(stricter, `"title": "Pledge"`, `"titel": "Pledge"`, 1) + `], "since": "2020-01-01"}`, "/packs/0/titel"},
		"a response":            {`{"packs": ["pledge", ` + strings.Replace(stricter, `"block"`, `"ban"`, 1) + `], "since": "2020-01-01"}`, "/packs/1/terms/0/response"},
		"a term":                {`{"packs": [` + strings.Replace(stricter, `"high"`, `"huge"`, 1) + `], "since": "2020-01-01"}`, "/packs/0/terms/0/severity"},
		"two of one id":         {`{"packs": ["pledge", ` + stricter + `], "since": "2020-01-01"}`, "/packs"},
		"limit":                 {`{"packs": ["pledge"], "since": "2020-01-01", "limit": 501}`, "/limit"},
		"day":                   {`{"packs": ["pledge"], "since": "2020-01-01", "as_of": "soon"}`, "/as_of"},
	} {
		a := w.replay(tt.body)
		if a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s, want 422", name, a.status, a.body)
			continue
		}
		checkProblem(t, name, a)
		var p struct {
			Errors []struct{ Pointer, Detail string }
		}
		if err := json.Unmarshal(a.body, &p); err != nil || len(p.Errors) == 0 || p.Errors[0].Pointer != tt.pointer {
			t.Errorf("%s: %s, want pointer %s", name, a.body, tt.pointer)
		}
	}
	if a := w.replay(`{"packs": ["pledge"], "since": "2020-01-01"`); a.status != http.StatusBadRequest {
		t.Errorf("half a body: %d %s", a.status, a.body)
	}
}
