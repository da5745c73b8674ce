package store_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/review"
	"weir/review/reviewtest"
	"weir/screening"
	"weir/webhooks"
)

// newFloor blocks what states that violent content is absent: it is another floor
// than the one that these tests begin with.
var newFloor = strings.Replace(reviewtest.Floor, `version: "1"`, `version: "2"`, 1) + `
  - id: no_violence
    title: No violence
    description: For tests.
    severity: critical
    over: [dataset]
    violated_if: {tag: {violent: absent}}
    response: block
    remedy: None.
`

// decideBy gives the desk other packs, as a restart with another program does.
func (w *world) decideBy(packs ...string) {
	w.Helper()
	s := w.desk.Setup()
	s.Vocabulary = reviewtest.Vocabulary(w.T, packs...)
	var err error
	if w.desk, err = review.NewDesk(w.store, s, review.Config{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) enforce() *review.FloorEnforced {
	w.Helper()
	done, err := w.desk.EnforceFloor(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return done
}

// admittedByPeople submits a spec that people admit.
func (w *world) admittedByPeople(raw []byte, voters ...string) *review.Screening {
	w.Helper()
	s := w.submit("bo", raw)
	for _, who := range voters {
		w.ok("vote", w.vote(who, s, review.VoteAdmit))
	}
	if got := w.status(s); got != review.StatusAdmitted {
		w.Fatalf("%s after the votes", got)
	}
	return s
}

// A new floor ends the live admissions that it blocks, whoever gave them, each with
// its events and messages; everything else stays as it is.
func TestNewFloorEndsAdmissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.store.Outbox().Declare(t.Context(), []webhooks.Declared{{ID: "all", Host: "all.example", Format: webhooks.FormatStandard}}); err != nil {
		t.Fatal(err)
	}
	byPacks := w.submit("bo", spec("packs", ""))
	byPeople := w.admittedByPeople(spec("people", "", "personal_data=present"), "chi", "dee")
	byWaiver := w.submit("dee", spec("waiver", "", "personal_data=present"))
	w.waive(byWaiver, "ethics:personal_data_inside", "bo")
	w.admittedByPeople(spec("stays", "", "violent=present"), "chi")
	pending := w.submit("bo", spec("pending", "", "personal_data=present"))
	over := w.submit("bo", spec("over", ""))
	w.exec(`update screening set admitted_until = now() - interval '1 hour' where id = $1`, over.ID)
	ended := []*review.Screening{byPacks, byPeople, byWaiver}
	for _, s := range ended {
		if got := w.status(s); got != review.StatusAdmitted {
			t.Fatalf("run %s is %s", s.RunRef, got)
		}
	}
	if done := w.enforce(); done.Looked != 0 || len(done.Ended) != 0 {
		t.Errorf("with the packs that gave them: %+v", done)
	}

	w.decideBy(newFloor, pledgeYAML)
	done := w.enforce()
	var want []string
	for _, s := range ended {
		want = append(want, s.ID)
	}
	slices.Sort(want)
	slices.Sort(done.Ended)
	if diff := cmp.Diff(want, done.Ended); diff != "" || done.Looked != 4 || len(done.Undecided) != 0 {
		t.Errorf("looked at %d, undecided %v, ended (-want +got):\n%s", done.Looked, done.Undecided, diff)
	}
	for run, want := range map[string]review.Status{"packs": review.StatusBlocked, "people": review.StatusBlocked, "waiver": review.StatusBlocked,
		"stays": review.StatusAdmitted, "pending": review.StatusPending, "over": review.StatusExpired} {
		states := map[string][]string{"people": {"personal_data=present"}, "waiver": {"personal_data=present"}, "pending": {"personal_data=present"}, "stays": {"violent=present"}}
		if got := w.gate(spec(run, "", states[run]...)); got != want {
			t.Errorf("the gate says %s to run %s, want %s", got, run, want)
		}
	}
	told := w.revocations("all")
	slices.Sort(told)
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	list, _, err := w.store.Revoked(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range ended {
		if !slices.ContainsFunc(list, func(r review.Revoked) bool { return r.ScreeningID == s.ID }) {
			t.Errorf("run %s is not among the admissions that ended early", s.RunRef)
		}
		latest, err := w.store.ScreeningOfSpec(t.Context(), "default", s.SpecSHA256)
		if err != nil {
			t.Fatal(err)
		}
		if latest.ID == s.ID || !latest.FloorViolated || latest.Submitter != s.Submitter || latest.Owner != s.Owner || latest.DecidedBy != "packs" {
			t.Errorf("run %s: what took its place: %+v", s.RunRef, latest)
		}
		actor := one[string](w, `select actor from audit_event where screening_id = $1 and type = 'screening.decided' and convert_from(body, 'UTF8')::jsonb->>'ends' = $2`, latest.ID, s.ID)
		if actor != "weir" {
			t.Errorf("run %s: %s is said to have done it", s.RunRef, actor)
		}
		if by := one[string](w, `select superseded_by::text from screening where id = $1`, s.ID); by != latest.ID {
			t.Errorf("run %s: superseded by %s, want %s", s.RunRef, by, latest.ID)
		}
	}
	if open := one[int](w, `select count(*) from review where closed_at is null and screening_id = $1`, byWaiver.ID); open != 0 {
		t.Errorf("%d reviews of what the floor blocks are open", open)
	}
	if open := one[int](w, `select count(*) from review where closed_at is null and screening_id = $1`, pending.ID); open != 1 {
		t.Errorf("%d reviews of what waits are open, want 1", open)
	}
	w.checkRecord()
	rows := one[int](w, `select count(*) from screening`)
	if done := w.enforce(); done.Looked != 1 || len(done.Ended) != 0 || one[int](w, `select count(*) from screening`) != rows {
		t.Errorf("again: %+v", done)
	}
}

// lateStore lets something happen between the look at an admission and its end.
type lateStore struct {
	review.Store
	first func()
}

func (s *lateStore) Submit(ctx context.Context, sub *review.Submission) (review.Kept, error) {
	if do := s.first; do != nil && sub.Ends != "" {
		s.first = nil
		do()
	}
	return s.Store.Submit(ctx, sub)
}

// An admission that ended meanwhile takes nothing with it: neither what took its
// place, nor a block that is there already.
func TestNewFloorComesLate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		meanwhile func(w *world)
		want      map[string]review.Status // by note
	}{
		"other bytes took the run's place": {func(w *world) { w.submit("bo", spec("r", "other", "violent=present")) },
			map[string]review.Status{"": review.StatusSuperseded, "other": review.StatusPending}},
		"the same bytes were submitted again": {func(w *world) { w.submit("bo", spec("r", "")) },
			map[string]review.Status{"": review.StatusBlocked}},
		"it was ended already": {func(w *world) { w.enforce() }, map[string]review.Status{"": review.StatusBlocked}},
		"it ran out": {func(w *world) { w.exec(`update screening set admitted_until = now() - interval '1 second'`) },
			map[string]review.Status{"": review.StatusExpired}},
	} {
		w := newWorld(t)
		w.submit("bo", spec("r", ""))
		w.decideBy(newFloor, pledgeYAML)
		late := &lateStore{Store: w.store, first: func() { tt.meanwhile(w) }}
		desk, err := review.NewDesk(late, w.desk.Setup(), review.Config{})
		if err != nil {
			t.Fatal(err)
		}
		done, err := desk.EnforceFloor(t.Context())
		if err != nil || len(done.Ended) != 0 || late.first != nil {
			t.Errorf("%s: %+v %v", name, done, err)
		}
		for note, want := range tt.want {
			states := []string{}
			if note != "" {
				states = append(states, "violent=present")
			}
			if got := w.gate(spec("r", note, states...)); got != want {
				t.Errorf("%s: the gate says %s, want %s", name, got, want)
			}
		}
		w.checkRecord()
	}
}

// Admissions are found in every project and in the middle of any history, a slice
// at a time.
func TestAdmittedInSlices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []string
	for _, project := range []string{"default", "other"} {
		p := principal("bo")
		p.Project = project
		for i, states := range [][]string{nil, {"personal_data=present"}, nil, {"sexual_content=present", "minors=present"}, {"personal_data=present"}, nil} {
			s, _, err := w.desk.Submit(t.Context(), p, spec(string(rune('a'+i)), project, states...), nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.Status == review.StatusAdmitted {
				want = append(want, s.ID)
			}
		}
	}
	projects, err := w.store.Projects(t.Context())
	if err != nil || !slices.Equal(projects, []string{"default", "other"}) {
		t.Fatalf("projects %v %v", projects, err)
	}
	for _, limit := range []int{1, 2, 5, 6, 100} {
		var got []string
		for _, project := range projects {
			for after, rounds := (*review.Cursor)(nil), 0; ; rounds++ {
				list, next, err := w.store.Admitted(t.Context(), project, review.AdmittedQuery{Engine: screening.EngineVersion, After: after, Limit: limit})
				if err != nil || rounds > 10 {
					t.Fatalf("limit %d: %d rounds, %v", limit, rounds, err)
				}
				for _, a := range list {
					if !a.Other {
						t.Errorf("limit %d: %s was decided by no packs", limit, a.At.ID)
					}
					got = append(got, a.At.ID)
				}
				if after = next; next == nil {
					break
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
	}
}
