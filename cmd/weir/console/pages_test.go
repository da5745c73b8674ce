package console_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"weir/cmd/weir/console"
	"weir/review"
)

// hostile tries to be more than text: markup, a script, a link, a reversed line,
// invisible characters and a terminal code.
const hostile = "</textarea><script>alert('gotcha')</script><img src=x onerror=alert(1)> <a href=\"javascript:alert(1)\">click</a> \u202egnp.exe\u202c z\u200be\u200bro \x1b[31m {{.}} --> ]]>"

// Every page answers, is small, and shows what it should; a spec's text stays text.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	first := w.submit(spec("nlp/bot", purpose("Nerve agent synthesis, step by step."), func(doc map[string]any) { doc["team"] = "nlp" }))
	s := w.submit(spec("nlp/bot", purpose("Nerve agent synthesis. "+hostile)))
	delivery := w.delivery(s)
	b := w.as("bo", review.ScopeReview, review.ScopeAudit)
	for path, wants := range map[string][]string{
		"/console/reviews":             {"nlp/bot", "Waiting for me", "due in 1 day 23 h|due in 2 days"},
		"/console/reviews?view=closed": {"superseded"},
		"/console/reviews?view=open&term=ethics:weapon_words&severity=high&group=general&team=nlp": {"nlp/bot"},
		"/console/reviews?view=open&team=none":                                                     {"Nothing here matches the filter"},
		"/console/reviews/" + s.Review.ID:                                                          {"2 findings need a person", "Words about weapons", "Say what the data is for", "held back", "raw tickets", "May this run train?", "See what changed", "the text would have to do without this", "would have to be otherwise: {tag: personal_data, state: absent"},
		"/console/reviews/" + s.Review.ID + "?from=5":                                              {"Earlier lines"},
		"/console/reviews/" + s.Review.ID + "/diff":                                                {"1 line gone, 1 line new"},
		"/console/screenings":                                                                      {"nlp/bot", "escalated", "superseded"},
		"/console/screenings?status=superseded":                                                    {"nlp/bot"},
		"/console/screenings/" + first.ID:                                                          {"The spec that took its place"},
		"/console/screenings/" + s.ID:                                                              {"Personal data"},
		"/console/screenings/" + s.ID + "/received":                                                {"held back"},
		"/console/screenings/" + s.ID + "/history":                                                 {"Screened", "ana"},
		"/console/vocabulary":                                                                      {"Sexualised minors", "Pledge for tests"},
		"/console/vocabulary/ethics/personal_data_inside":                                          {"Data about people.", "E-1", "Would pass", "Remove it."},
		"/console/deliveries":                                                                      {"review.opened", "to hook", "Endpoints"},
		"/console/deliveries?state=pending&endpoint=hook":                                          {"review.opened"},
		"/console/deliveries/" + delivery:                                                          {"Not tried yet", "review.opened"},
		"/console/dashboard":                                                                       {"Outcomes of the last 30 days", "weapon_words"},
	} {
		a := b.get(path)
		if a.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, a.status, a.text())
			continue
		}
		if dir := os.Getenv("WEIR_KEEP_PAGES"); dir != "" {
			_ = os.WriteFile(dir+"/"+strings.NewReplacer("/", "_", "?", "_").Replace(path)[:min(60, len(path))]+".html", []byte(a.body), 0o644)
		}
		if len(a.body) > 100_000 {
			t.Errorf("%s has %d bytes", path, len(a.body))
		}
		for _, want := range wants {
			found := false
			for alternative := range strings.SplitSeq(want, "|") {
				found = found || strings.Contains(a.text(), alternative)
			}
			if !found {
				t.Errorf("%s lacks %q: %s", path, want, a.text())
			}
		}
		checkInert(t, path, a)
	}
	if a := b.post("/console/deliveries/"+delivery+"/redeliver", nil); a.status != http.StatusForbidden {
		t.Errorf("redelivery without the scope policy: %d", a.status)
	}
	if a := w.as("bo", review.ScopeReview, review.ScopePolicy).post("/console/deliveries/"+delivery+"/redeliver", nil); a.status != http.StatusSeeOther {
		t.Errorf("redelivery: %d %s", a.status, a.text())
	}
	if a := w.as("bo").get("/console/deliveries"); a.status != http.StatusForbidden {
		t.Errorf("deliveries for a reviewer: %d", a.status)
	}
	for path, want := range map[string]int{
		"/console/":                                   http.StatusSeeOther,
		"/console/nothing":                            http.StatusNotFound,
		"/console/reviews/nothing":                    http.StatusNotFound,
		"/console/reviews/" + s.ID:                    http.StatusNotFound,
		"/console/vocabulary/ethics/nothing":          http.StatusNotFound,
		"/console/reviews?view=all":                   http.StatusBadRequest,
		"/console/reviews?view=open&after=x":          http.StatusBadRequest,
		"/console/reviews?view=open&team=a&team=b":    http.StatusBadRequest,
		"/console/reviews?severity=none":              http.StatusBadRequest,
		"/console/reviews/" + s.Review.ID + "?from=x": http.StatusBadRequest,
		"/console/screenings?run_ref=%00":             http.StatusBadRequest,
		"/console/assets/none":                        http.StatusNotFound,
	} {
		if a := b.get(path); a.status != want {
			t.Errorf("%s: %d, want %d", path, a.status, want)
		}
	}
}

// checkInert: nothing of a spec is an element, an attribute or a direction.
func checkInert(t testing.TB, path string, a answer) {
	t.Helper()
	for _, bad := range []string{"<script>", "onerror", "href=\"javascript", "style=", "\u202e", "\u200b", "\x1b", "http://", "https://data.example\""} {
		body := a.body
		if bad == "onerror" { // as text it is harmless, within a tag it is not
			body = strings.Join(tags.FindAllString(body, -1), "")
		}
		if bad == "http://" || strings.HasPrefix(bad, "https") {
			body = strings.Join(tags.FindAllString(body, -1), "")
			body = strings.ReplaceAll(body, "http://www.w3.org/", "")
		}
		if strings.Contains(body, bad) {
			t.Errorf("%s holds %q", path, bad)
		}
	}
}

// What is held back is not in the page until it is asked for, and each time is counted.
func TestExcerptsAreHeldBackAndCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	const secret = "the way of nerve agent synthesis over Easton Street"
	s := w.submit(spec("nlp/bot", purpose(secret)))
	b := w.as("bo@corp.example")
	elsewhere := w.submit(spec("nlp/other", func(doc map[string]any) {
		in := doc["inputs"].([]any)[0].(map[string]any)
		in["name"] = "Easton nerve agent synthesis"
		in["lineage"] = map[string]any{"derived_from": []any{map[string]any{"ref": "https://easton.example/nerve%20agent%20synthesis",
			"label": "nerve agent synthesis, Easton", "license": "Easton nerve agent synthesis"}}}
	}))
	for _, path := range []string{"/console/reviews/" + elsewhere.Review.ID, "/console/screenings/" + elsewhere.ID} {
		if a := b.get(path); a.status != http.StatusOK || strings.Contains(a.body, "Easton") || strings.Contains(a.body, "nerve agent") {
			t.Errorf("%s: %d, shows what is held back: %s", path, a.status, a.text())
		}
	}
	page := "/console/reviews/" + s.Review.ID
	for _, path := range []string{page, "/console/screenings/" + s.ID, "/console/screenings/" + s.ID + "/received"} {
		if a := b.get(path); a.status != http.StatusOK || strings.Contains(a.body, "Easton") || strings.Contains(a.body, "nerve agent") {
			t.Errorf("%s: %d, shows what is held back: %s", path, a.status, a.text())
		}
	}
	if n := w.count(`select count(*) from exposure`); n != 0 {
		t.Errorf("%d openings are counted before any", n)
	}
	for i, path := range []string{page + "/excerpts", "/console/screenings/" + s.ID + "/excerpts", "/console/screenings/" + s.ID + "/received"} {
		a := b.post(path, nil)
		if a.status != http.StatusOK || !strings.Contains(a.body, "Easton") {
			t.Errorf("%s: %d, does not show: %s", path, a.status, a.text())
		}
		if n := w.count(`select count(*) from exposure where person = 'bo' and screening_id = $1 and excerpts = 1`, s.ID); n != i+1 {
			t.Errorf("%s: %d openings are counted, want %d", path, n, i+1)
		}
	}
	if a := b.post(page+"/excerpts", nil); !strings.Contains(a.body, "<mark>nerve agent synthesis</mark>") || !strings.Contains(a.text(), "4 times today") {
		t.Errorf("the mark or the count is missing: %s", a.text())
	}
	if a := b.get(page); strings.Contains(a.body, "Easton") {
		t.Error("the next page still shows it")
	}
}

// However big a spec and whatever is in it, a page stays small and the rest can be reached.
func TestPagesStaySmall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	b := w.as("bo")
	for name, raw := range map[string][]byte{
		"a line of nearly a megabyte": spec("a", func(doc map[string]any) {
			var list []any
			for range 15 {
				list = append(list, strings.Repeat("word ", 13_000))
			}
			doc["objective"].(map[string]any)["out_of_scope"] = list
		}),
		"a value of invisible characters": spec("b", purpose("see "+strings.Repeat("\u200b\u200c", 10_000))),
		"marks all over":                  spec("c", purpose(strings.Repeat("nerve agent synthesis & ", 2_700))),
		"many invisible values": spec("e", func(doc map[string]any) {
			var list []any
			for range 200 {
				list = append(list, strings.Repeat("\u200b\u200c", 600))
			}
			doc["objective"].(map[string]any)["out_of_scope"] = list
		}),
		"many inputs": spec("d", func(doc map[string]any) {
			var inputs []any
			for i := range 500 {
				inputs = append(inputs, map[string]any{"id": fmt.Sprintf("d%d", i), "kind": "dataset", "name": strings.Repeat("\u202e<b>", 10),
					"lineage": map[string]any{"derived_from": []any{map[string]any{"ref": fmt.Sprintf("x%d", i)}, map[string]any{"ref": fmt.Sprintf("d%d", (i+1)%500)}}}})
			}
			doc["inputs"] = inputs
		}),
	} {
		t.Run(name, func(t *testing.T) {
			s := w.submit(raw)
			page := "/console/reviews/" + s.Review.ID
			for _, a := range []answer{b.get(page), b.post(page+"/excerpts", nil), b.get(page + "?from=2000000"), b.get("/console/screenings/" + s.ID),
				b.post("/console/screenings/"+s.ID+"/received", nil), b.get("/console/reviews")} {
				if a.status != http.StatusOK || len(a.body) > 100_000 {
					t.Errorf("%d, %d bytes", a.status, len(a.body))
				}
			}
		})
	}
}

// What was typed is kept and what is wrong is said; a good vote decides.
func TestVote(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	s := w.submit(spec("nlp/bot"))
	page := "/console/reviews/" + s.Review.ID
	const term, reason = "ethics:personal_data_inside", "Consent is on file <b>here</b>."
	bo := w.as("bo")
	stale := ballot(s, "admit", reason, term)
	stale.Set("expected_version", "7")
	other := ballot(s, "admit", reason, term)
	other.Set("spec_sha256", strings.Repeat("0", 63)+"1")
	for name, c := range map[string]struct {
		who    *browser
		form   map[string][]string
		status int
		says   string
	}{
		"no choice":     {bo, ballot(s, "", reason, term), 422, "Choose admit or block"},
		"blank reason":  {bo, ballot(s, "admit", " \u200b", term), 422, "must say why"},
		"no term":       {bo, ballot(s, "admit", reason), 422, "must cite at least one"},
		"foreign term":  {bo, ballot(s, "admit", reason, "ethics:license_nc"), 422, "is not a finding"},
		"stale":         {bo, stale, 409, "changed since you read it"},
		"other bytes":   {bo, other, 409, "other bytes"},
		"no version":    {bo, map[string][]string{"vote": {"admit"}}, 400, "Form not understood"},
		"own run":       {w.as("ana"), ballot(s, "admit", reason, term), 403, "cannot review their own run"},
		"in no group":   {w.as("dee"), ballot(s, "admit", reason, term), 403, "in no group"},
		"may only read": {w.as("bo", review.ScopeAudit), ballot(s, "admit", reason, term), 403, "Not allowed"},
	} {
		a := c.who.post(page+"/vote", c.form)
		if a.status != c.status || !strings.Contains(a.text(), c.says) {
			t.Errorf("%s: %d, want %d and %q: %s", name, a.status, c.status, c.says, a.text())
		}
		if c.status == 409 && !strings.Contains(a.body, "Consent is on file &lt;b&gt;here&lt;/b&gt;.</textarea>") {
			t.Errorf("%s: what was typed is gone", name)
		}
	}
	if n := w.count(`select count(*) from vote`); n != 0 {
		t.Fatalf("%d votes were kept", n)
	}
	for who, why := range map[*browser]string{w.as("ana"): "cannot review their own run", w.as("dee"): "in no group", w.as("chi", review.ScopeAudit): "lacks the scope review"} {
		if a := who.get(page); !strings.Contains(a.text(), why) || strings.Contains(a.text(), "May this run train?") {
			t.Errorf("the page does not say %q, or offers a vote", why)
		}
	}
	if a := bo.post(page+"/vote", ballot(s, "admit", reason, term)); a.status != http.StatusSeeOther {
		t.Fatalf("vote: %d %s", a.status, a.text())
	}
	if a := bo.get(page + "?done=vote"); !strings.Contains(a.text(), "Your vote is kept") || !strings.Contains(a.text(), "admitted") ||
		!strings.Contains(a.text(), "the review is not open any more") && !strings.Contains(a.text(), "The review is not open any more") {
		t.Errorf("after the vote: %s", a.text())
	}
	if n := w.count(`select count(*) from screening where status = 'admitted' and decided_by = 'people'`); n != 1 {
		t.Error("the vote did not decide")
	}
}

// The small forms of a review: claim and give back, comment, ask; and facts that
// an admit over an open floor needs.
func TestActs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	s := w.submit(spec("nlp/bot", func(doc map[string]any) {
		doc["disclosures"] = []any{tag("personal_data", "present"), tag("sexual_content", "present")}
	}))
	page := "/console/reviews/" + s.Review.ID
	bo := w.as("bo")
	for _, c := range []struct{ act, note, shows string }{
		{"claim", "", "bo looks at it until"}, {"release", "", "Show that I look at this"}, {"comment", "Seen <b>before</b>.", "Seen &lt;b&gt;before&lt;/b&gt;."},
	} {
		a := bo.post(page+"/"+c.act, map[string][]string{"note": {c.note}})
		if a.status != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", c.act, a.status, a.text())
		}
		if a := bo.get(a.header.Get("Location")); !strings.Contains(a.body, c.shows) || !strings.Contains(a.body, `role="status"`) {
			t.Errorf("after %s the page lacks %q: %s", c.act, c.shows, a.text())
		}
	}
	if a := bo.post(page+"/comment", map[string][]string{"note": {" "}}); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.text(), "must say something") {
		t.Errorf("a blank comment: %d %s", a.status, a.text())
	}
	if a := bo.post(page+"/nothing", nil); a.status != http.StatusNotFound {
		t.Errorf("no such act: %d", a.status)
	}
	if a := w.as("ana").post(page+"/claim", nil); a.status != http.StatusForbidden {
		t.Errorf("a claim of one's own run: %d", a.status)
	}
	version := fmt.Sprint(w.count(`select version from review where id = $1`, s.Review.ID))
	if a := bo.get(page); !strings.Contains(a.text(), "Facts, if you admit") {
		t.Errorf("the page asks for no facts: %s", a.text())
	}
	var cited []string
	for _, line := range strings.Split(bo.get(page).body, `name="terms" value="`)[1:] {
		term, _, _ := strings.Cut(line, `"`)
		cited = append(cited, term)
	}
	admit := ballot(s, "admit", "Looked at it.", cited...)
	admit.Set("expected_version", version)
	for facts, status := range map[string]int{"": 409, "minors are absent": 422, `/disclosures {"tag": "minors"`: 422} {
		admit.Set("facts", facts)
		if a := bo.post(page+"/vote", admit); a.status != status {
			t.Errorf("facts %q: %d, want %d: %s", facts, a.status, status, a.text())
		}
	}
	admit.Set("facts", "/disclosures {\"tag\": \"minors\", \"state\": \"absent\", \"basis\": \"structured\"}\n")
	if a := bo.post(page+"/vote", admit); a.status != http.StatusSeeOther {
		t.Errorf("an admit with facts: %d %s", a.status, a.text())
	}

	other := w.submit(spec("nlp/other"))
	page = "/console/reviews/" + other.Review.ID
	if a := bo.post(page+"/ask", map[string][]string{"note": {"Where is the consent?"}, "expected_version": {"1"}}); a.status != http.StatusSeeOther {
		t.Fatalf("ask: %d %s", a.status, a.text())
	}
	if a := bo.get(page); !strings.Contains(a.text(), "waits for evidence") || !strings.Contains(a.text(), "Where is the consent?") {
		t.Errorf("after the question: %s", a.text())
	}
}

// Where the bytes were erased every page that would show them says so.
func TestErased(t *testing.T) {
	t.Parallel()
	w := newWorld(t, console.Config{})
	first := w.submit(spec("nlp/bot", purpose("Nerve agent synthesis, step by step.")))
	s := w.submit(spec("nlp/bot", purpose("Nerve agent synthesis.")))
	_, err := w.desk.Erase(t.Context(), review.Principal{Subject: "ana", Project: "default", Scopes: []review.Scope{review.ScopeAdmin}},
		review.ErasureRequest{ScreeningID: first.ID, Reason: "asked <b>by</b> them"})
	if err != nil {
		t.Fatal(err)
	}
	b := w.as("bo", review.ScopeReview, review.ScopeAudit)
	for _, path := range []string{"/console/screenings/" + first.ID, "/console/screenings/" + first.ID + "/received",
		"/console/reviews/" + first.Review.ID, "/console/reviews/" + s.Review.ID + "/diff"} {
		a := b.get(path)
		if a.status != http.StatusGone || !strings.Contains(a.text(), "by ana: asked &lt;b&gt;by&lt;/b&gt; them") {
			t.Errorf("%s: %d %s", path, a.status, a.text())
		}
	}
	for _, path := range []string{"/console/reviews?view=closed", "/console/screenings", "/console/screenings/" + first.ID + "/history", "/console/dashboard"} {
		if a := b.get(path); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, a.status, a.text())
		}
	}
}
