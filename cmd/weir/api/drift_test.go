package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/review"
	"weir/review/reviewtest"
)

// otherPledge asks about more than the pledge that the tests begin with.
var otherPledge = strings.Replace(pledgeYAML, `version: "1"`, `version: "2"`, 1) + `
  - id: biometric_inside
    title: Biometric data
    description: Faces and voices.
    severity: high
    over: [dataset]
    violated_if: {tag: {biometric: present}}
    response: block
    remedy: Remove it.
  - id: violent_inside
    title: Violence
    description: Violent content.
    severity: medium
    over: [dataset]
    violated_if: {tag: {violent: present}}
    response: escalate
    remedy: Remove it.
`

// stated is a spec that says what otherPledge asks.
func stated(run, biometric, violent string, changes ...string) []byte {
	more := fmt.Sprintf(`{"tag": "minors" → {"tag": "biometric", "state": "%s", "basis": "structured"}, {"tag": "violent", "state": "%s", "basis": "structured"}, {"tag": "minors"`,
		biometric, violent)
	return spec(run, append(changes, more)...)
}

// driftPage is a page of the answer.
type driftPage struct {
	Packs               []struct{ ID, Version string }
	Live, Other, Erased int
	Drift               []struct {
		RunRef    string `json:"run_ref"`
		DecidedBy string `json:"decided_by"`
		Then, Now string
		Changes   []struct{ Term string }
		Packs     []struct {
			ID        string
			Then, Now string
		}
		AdmittedUntil string `json:"admitted_until"`
	}
	Next string
}

func (w *world) drift(query string) (page driftPage) {
	w.Helper()
	a := w.do("GET", "/v1/admissions/drift"+query, "", nil, header("Authorization", "Bearer "+w.key("chi", review.ScopeAudit)))
	if a.status != 200 {
		w.Fatalf("status %d: %s", a.status, a.body)
	}
	if err := json.Unmarshal(a.body, &page); err != nil {
		w.Fatal(err)
	}
	return page
}

// decideBy opens the gate anew with other packs, as a restart does.
func (w *world) decideBy(packs ...string) {
	w.Helper()
	s := w.gate.Desk.Setup()
	s.Vocabulary = reviewtest.Vocabulary(w.T, packs...)
	desk, err := review.NewDesk(w.store, s, review.Config{})
	if err != nil {
		w.Fatal(err)
	}
	w.gate.Desk = desk
	w.server.Open(w.gate)
}

// What lives and would not be given now is told with the terms; what people have
// answered is no drift, and nothing ends by being told.
func TestDrift(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admit := func(run string, raw []byte, people bool) {
		t.Helper()
		a := w.do("POST", "/v1/screenings", "bo", raw)
		if people {
			body := fmt.Sprintf(`{"expected_version": 1, "spec_sha256": %q, "vote": "admit", "reason": "fine", "terms": ["ethics:personal_data_inside"]}`, a.text("spec_sha256"))
			a = w.do("POST", "/v1/reviews/"+a.text("review", "id")+"/votes", "chi", []byte(body))
		}
		if a.status/100 != 2 {
			t.Fatalf("%s: %d %s", run, a.status, a.body)
		}
	}
	admit("clean", stated("clean", "absent", "absent"), false)
	admit("faces", stated("faces", "present", "absent"), false)
	admit("fights", stated("fights", "absent", "present"), false)
	admit("people", stated("people", "absent", "absent", personal), true)
	admit("people-faces", stated("people-faces", "present", "absent", personal), true)
	admit("silent", spec("silent"), false)
	if a := w.do("POST", "/v1/screenings", "bo", stated("pending", "absent", "absent", personal)); a.status != 202 {
		t.Fatal(a.status)
	}
	if page := w.drift(""); page.Live != 6 || page.Other != 0 || len(page.Drift) != 0 || page.Next != "" {
		t.Errorf("by the packs that gave them: %+v", page)
	}

	w.decideBy(reviewtest.Floor, otherPledge)
	want := []string{
		"faces by packs: admit → block: ethics:biometric_inside",
		"fights by packs: admit → escalate: ethics:violent_inside",
		"people-faces by people: escalate → block: ethics:biometric_inside",
		"silent by packs: admit → escalate: ethics:biometric_inside ethics:violent_inside",
	}
	read := func(pages ...driftPage) (list []string) {
		for _, page := range pages {
			for _, d := range page.Drift {
				var terms []string
				for _, c := range d.Changes {
					terms = append(terms, c.Term)
				}
				list = append(list, fmt.Sprintf("%s by %s: %s → %s: %s", d.RunRef, d.DecidedBy, d.Then, d.Now, strings.Join(terms, " ")))
				if len(d.Packs) != 1 || d.Packs[0].ID != "pledge" || len(d.Packs[0].Then) != 64 || len(d.Packs[0].Now) != 64 || d.AdmittedUntil == "" {
					t.Errorf("%s: packs %+v, until %s", d.RunRef, d.Packs, d.AdmittedUntil)
				}
			}
		}
		return list
	}
	rows := w.count("screening")
	whole := w.drift("")
	if diff := cmp.Diff(want, read(whole)); diff != "" || whole.Live != 6 || whole.Other != 6 || whole.Next != "" {
		t.Errorf("live %d, other %d (-want +got):\n%s", whole.Live, whole.Other, diff)
	}
	var pages []driftPage
	live := 0
	for next := ""; ; {
		query := "?limit=1"
		if next != "" {
			query += "&cursor=" + next
		}
		page := w.drift(query)
		pages, live = append(pages, page), live+page.Live
		if next = page.Next; next == "" || len(pages) > 10 {
			break
		}
	}
	if got := read(pages...); !slices.Equal(got, want) || live != 6 || len(pages) < 6 {
		t.Errorf("in %d pages: live %d, %q", len(pages), live, got)
	}
	if w.count("screening") != rows || w.do("POST", "/v1/gate/check", "bo", stated("faces", "present", "absent")).status != 200 {
		t.Error("telling of drift ended something")
	}
	if a := w.do("GET", "/v1/admissions/drift", "bo", nil); a.status != 403 {
		t.Errorf("without the scope: %d", a.status)
	}
	w.exec(`update screening set admitted_until = now() - interval '1 second' where run_ref = 'faces' and status = 'admitted'`)
	if page := w.drift(""); page.Live != 5 || len(page.Drift) != 3 {
		t.Errorf("one ran out: %+v", page)
	}
}
