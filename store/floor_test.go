package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/review"
	"weir/screening"
	"weir/store"
	"weir/webhooks"
)

// replica is another desk on the same store, with the packs of w's: w may take others.
func (w *world) replica() *review.Desk {
	w.Helper()
	desk, err := review.NewDesk(w.store, w.desk.Setup(), review.Config{})
	if err != nil {
		w.Fatal(err)
	}
	return desk
}

// What a floor ended stays ended for its bytes: a replica with an older floor, as
// there is one during a rolling update, does not admit them again, nor does a floor
// that was loosened. Other bytes are another question.
func TestFloorIsNotUndone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw, key := spec("r", ""), screening.Sum([]byte("key"))
	_, _, err := w.desk.Submit(t.Context(), principal("bo"), raw, &key)
	w.ok("submit", err)
	pending := spec("p", "", "personal_data=present")
	w.submit("bo", pending)
	older := w.replica()
	w.decideBy(newFloor, pledgeYAML)
	w.enforce()
	// An open review does not answer for bytes that the floor blocks.
	if s := w.submit("bo", pending); !s.FloorViolated || s.Status != review.StatusBlocked {
		t.Errorf("submitted again while a review is open: %s", s.Status)
	}
	rows := one[int](w, `select count(*) from screening`)
	for name, key := range map[string]*screening.Digest256{"again": nil, "with the key of then": &key} {
		s, existing, err := older.Submit(t.Context(), principal("bo"), raw, key)
		if err != nil || !existing || s.Status == review.StatusAdmitted {
			t.Errorf("%s, at a replica with the older floor: %+v, existing %t, %v", name, s, existing, err)
		}
		for which, desk := range map[string]*review.Desk{"older": older, "newer": w.desk} {
			if a, err := desk.AnswerTo(t.Context(), principal("bo"), s, screening.Sum(raw)); err != nil || a.Status != review.StatusBlocked || !a.Screening.FloorViolated {
				t.Errorf("%s, the gate with the %s floor: %s %v", name, which, a.Status, err)
			}
		}
	}
	if s, existing, err := older.Submit(t.Context(), principal("dee"), pending, nil); err != nil || !existing || s.Status != review.StatusBlocked {
		t.Errorf("what waited for review, at the older replica: %+v %v", s, err)
	}
	if n := one[int](w, `select count(*) from screening`); n != rows {
		t.Errorf("%d screenings more", n-rows)
	}
	// The newer floor decides the bytes anew each time, as ever.
	if s := w.submit("bo", raw); s.Status != review.StatusBlocked || !s.FloorViolated {
		t.Errorf("again: %+v", s)
	}
	w.desk = older
	if s := w.submit("bo", spec("r", "one comment more")); s.Status != review.StatusAdmitted {
		t.Errorf("other bytes by a floor that was taken back: %s", s.Status)
	}
	w.checkRecord()
}

// Whatever admitted bytes, and wherever they are asked for: a gate never says that
// they may train against the floor that it has, and ends such an admission at once.
func TestGateAsksItsOwnFloor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.store.Outbox().Declare(t.Context(), []webhooks.Declared{{ID: "all", Host: "all.example", Format: webhooks.FormatStandard}}); err != nil {
		t.Fatal(err)
	}
	p, ctx := principal("bo"), t.Context()
	key := func(run string) *screening.Digest256 { sum := screening.Sum([]byte(run)); return &sum }
	asks := map[string]func(s *review.Screening, raw []byte) (review.Answer, error){
		"check": func(s *review.Screening, raw []byte) (review.Answer, error) {
			return w.desk.Check(ctx, p, screening.Sum(raw))
		},
		"read": func(s *review.Screening, raw []byte) (a review.Answer, err error) {
			a.Screening, err = w.desk.Screening(ctx, p, s.ID)
			return a, err
		},
		"wait": func(s *review.Screening, raw []byte) (a review.Answer, err error) {
			a.Screening, err = w.desk.Wait(ctx, p, s.ID, time.Minute, nil)
			return a, err
		},
		"answer to a key of then": func(s *review.Screening, raw []byte) (a review.Answer, err error) {
			a.Screening, _, err = w.desk.Submit(ctx, p, raw, key(s.RunRef))
			return a, err
		},
		"batch": func(s *review.Screening, raw []byte) (review.Answer, error) {
			done, err := w.desk.SubmitAll(ctx, p, []review.Line{{Raw: raw, Key: key(s.RunRef)}})
			return review.Answer{Screening: done[0].Screening}, errors.Join(err, done[0].Err)
		},
		"signed admission": func(s *review.Screening, raw []byte) (review.Answer, error) {
			var closed *review.ClosedError
			if _, err := w.desk.Admission(ctx, p, s.ID); !errors.As(err, &closed) {
				return review.Answer{}, fmt.Errorf("an admission: %w", err)
			}
			return closed.Answer, nil
		},
	}
	type admitted struct {
		screening *review.Screening
		raw       []byte
		ask       string
	}
	var all []admitted
	keep := func(by, ask string, states ...string) *review.Screening {
		run := strings.ReplaceAll(by+" "+ask, " ", "-")
		raw := spec(run, "", states...)
		s, _, err := w.desk.Submit(ctx, p, raw, key(run))
		w.ok(run, err)
		all = append(all, admitted{s, raw, ask})
		return s
	}
	for ask := range asks {
		keep("packs", ask)
		s := keep("people", ask, "personal_data=present")
		w.ok("vote", w.vote("chi", s, review.VoteAdmit))
		w.ok("vote", w.vote("dee", s, review.VoteAdmit))
		w.waive(keep("waiver", ask, "personal_data=present"), "ethics:personal_data_inside", "dee")
	}
	stays := spec("stays", "", "violent=present")
	w.admittedByPeople(stays, "chi")
	for _, a := range all {
		if got := w.gate(a.raw); got != review.StatusAdmitted {
			t.Fatalf("run %s is %s", a.screening.RunRef, got)
		}
	}

	w.decideBy(newFloor, pledgeYAML)
	for _, a := range all {
		name := a.screening.RunRef
		answer, err := asks[a.ask](a.screening, a.raw)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := answer.Screening.Status; answer.Open() || got != review.StatusBlocked && got != review.StatusSuperseded {
			t.Errorf("%s: %s", name, got)
		}
		latest, err := w.store.ScreeningOfSpec(ctx, "default", screening.Sum(a.raw))
		if err != nil || latest.ID == a.screening.ID || latest.Status != review.StatusBlocked || !latest.FloorViolated {
			t.Errorf("%s: what stands in the store: %+v %v", name, latest, err)
		}
	}
	if told := w.revocations("all"); len(told) != len(all) {
		t.Errorf("%d were told that their admission ended, want %d", len(told), len(all))
	}
	rows := one[int](w, `select count(*) from screening`)
	if got := w.gate(stays); got != review.StatusAdmitted || one[int](w, `select count(*) from screening`) != rows {
		t.Errorf("what the floor does not block is %s", got)
	}
	if done := w.enforce(); done.Looked != 1 || len(done.Ended) != 0 {
		t.Errorf("left for the next look: %+v", done)
	}
	w.checkRecord()
}

// An admission that is given up, or given anew, while the floor ends it.
func TestGateAsksItsFloorLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := spec("r", "")
	w.submit("bo", raw)
	w.decideBy(newFloor, pledgeYAML)
	late := &lateStore{Store: w.store, first: func() { w.enforce() }}
	desk, err := review.NewDesk(late, w.desk.Setup(), review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := desk.Check(t.Context(), principal("bo"), screening.Sum(raw)); err != nil || a.Status != review.StatusBlocked || late.first != nil {
		t.Errorf("%s %v", a.Status, err)
	}
	if n := one[int](w, `select count(*) from screening`); n != 2 {
		t.Errorf("%d screenings, want the admission and its end", n)
	}
}

// Report mode lets nothing pass that the floor in force blocks, whoever decided it and
// under which floor.
func TestReportModeAsksTheFloorInForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	report := policiesYAML + "projects: [{id: default, mode: report, until: " + time.Now().UTC().AddDate(0, 0, 89).Format(time.DateOnly) + "}]\n"
	w.use("", report)
	specs := map[string][]byte{"pending": spec("pending", "", "personal_data=present"), "blocked": spec("blocked", "", "personal_data=present"),
		"expired": spec("expired", "", "personal_data=present"), "not by this floor": spec("other", "", "violent=present")}
	made := map[string]*review.Screening{}
	for name, raw := range specs {
		made[name] = w.submit("dee", raw)
	}
	w.ok("block", w.vote("bo", made["blocked"], review.VoteBlock))
	w.overdue(made["expired"])
	would := func(name string) (byCheck, byID review.Answer) {
		t.Helper()
		byCheck, err := w.desk.Check(t.Context(), principal("dee"), made[name].SpecSHA256)
		w.ok("check", err)
		s, err := w.desk.Screening(t.Context(), principal("dee"), made[name].ID)
		w.ok("read", err)
		return byCheck, w.desk.Standing(s)
	}
	for name := range specs {
		if a, b := would(name); a.Would == 0 || b.Would != a.Would {
			t.Fatalf("%s: would %v, %v", name, a.Would, b.Would)
		}
	}
	w.decideBy(newFloor, pledgeYAML)
	for name := range specs {
		a, b := would(name)
		if open := name == "not by this floor"; (a.Would != 0) != open || (b.Would != 0) != open || a.Open() || b.Open() {
			t.Errorf("%s: %s, would %v, %v", name, a.Status, a.Would, b.Would)
		}
	}
	for name, raw := range specs {
		if name == "not by this floor" {
			continue
		}
		s := w.submit("dee", raw)
		if a := w.desk.Standing(s); s.Status != review.StatusBlocked || !s.FloorViolated || a.Would != 0 {
			t.Errorf("%s, submitted again: %s, would %v", name, s.Status, a.Would)
		}
	}
	w.checkRecord()
}

// No second person puts a waiver in force over what the floor of now blocks.
func TestNewFloorRefusesWaivers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refused, fine := w.submit("dee", spec("a", "", "personal_data=present")), w.submit("dee", spec("b", "", "violent=present"))
	var asked []*review.Waiver
	for s, term := range map[*review.Screening]string{refused: "ethics:personal_data_inside", fine: "ethics:violent_inside"} {
		made, err := w.desk.Waive(t.Context(), principal("chi"), review.WaiverRequest{ScreeningID: s.ID, Term: term, Reason: "agreed", Ticket: "T-1", Days: 30})
		w.ok("waive", err)
		asked = append(asked, made)
	}
	w.decideBy(newFloor, pledgeYAML)
	for _, made := range asked {
		_, err := w.desk.ConfirmWaiver(t.Context(), principal("bo"), made.ID)
		if want := made.ScreeningID == refused.ID; errors.Is(err, review.ErrFloor) != want || !want && err != nil {
			t.Errorf("%s: %v", made.Term, err)
		}
	}
	if got, other := w.status(refused), w.status(fine); got != review.StatusPending || other != review.StatusAdmitted {
		t.Errorf("%s and %s", got, other)
	}
}

// A gate that asks its own floor costs one round trip more, only where other packs decided.
func TestRoundTripsOfTheFloor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := spec("r", "", "violent=present")
	w.admittedByPeople(raw, "chi")
	p := newProxy(t, w.dsn, false)
	st, err := store.Open(t.Context(), p.dsn, store.Config{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	check := func() int64 {
		before := p.exchanges.Load()
		a, err := w.desk.Check(t.Context(), principal("bo"), screening.Sum(raw))
		if err != nil || !a.Open() {
			t.Fatalf("%s %v", a.Status, err)
		}
		return p.exchanges.Load() - before
	}
	w.store = st
	for _, step := range []struct {
		packs []string
		want  int64
	}{{nil, 1}, {[]string{newFloor, pledgeYAML}, 2}} {
		if step.packs == nil {
			w.use("", "")
		} else {
			w.decideBy(step.packs...)
		}
		check() // statements are prepared, and the day is read
		if got := check(); got != step.want {
			t.Errorf("packs %d: %d round trips, want %d", len(step.packs), got, step.want)
		}
	}
}
