package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/review"
	"weir/screening"
)

// The recall holds from its commit, on every path, whoever is still to write down
// what it ends, and if nobody ever does.
func TestRecallHoldsBeforeItIsCarriedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admitted := w.submit("bo", madeOf("a", dataset("d", "bad", "")))
	pending := w.submit("dee", madeOf("p", dataset("d", "bad", ""), "violent=present"))
	waived := w.submit("dee", madeOf("w", dataset("d", "bad", ""), "violent=present"))
	w.waive(waived, violentTerm, "bo")
	good := w.submit("bo", madeOf("good", dataset("d", "good", "")))
	r := &review.Recall{Project: "default", Data: bytesOf("bad"), Reason: "abuse", Actor: "chi"}
	w.ok("recall", w.store.MakeRecall(t.Context(), r))

	check := func(when string) {
		t.Helper()
		w.want(when, admitted, "revoked by recall")
		w.want(when, pending, "blocked by recall")
		w.want(when, waived, "revoked by recall")
		w.want(when, good, "admitted by packs")
		for status, want := range map[review.Status][]string{review.StatusRevoked: {waived.ID, admitted.ID}, review.StatusBlocked: {pending.ID},
			review.StatusAdmitted: {good.ID}, review.StatusPending: nil} {
			list, err := w.desk.Screenings(t.Context(), steward("chi"), review.ListQuery{Status: status, Limit: 9})
			w.ok("list", err)
			var got []string
			for _, s := range list {
				got = append(got, s.ID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: listed as %s: %v, want %v", when, status, got, want)
			}
		}
		got, err := w.desk.Screening(t.Context(), steward("chi"), waived.ID)
		if err != nil || got.AdmittedUntil != nil || got.WaivedUntil != nil || got.Recall == nil || got.Recall.ID != r.ID {
			t.Errorf("%s: %+v, %v", when, got, err)
		}
		list, _, err := w.store.Revoked(t.Context(), "default")
		w.ok("revoked", err)
		var ids []string
		for _, l := range list {
			if l.Reason != "blocked" { // by now it is: nobody was told an admission of it
				ids = append(ids, l.ScreeningID)
			}
		}
		slices.Sort(ids)
		want := []string{admitted.ID, waived.ID}
		if slices.Sort(want); !slices.Equal(ids, want) {
			t.Errorf("%s: list of revocations: %v, want %v", when, ids, want)
		}
		w.refused(when, w.vote("bo", pending, review.VoteAdmit), review.ErrConflict)
		if s, err := w.desk.Wait(t.Context(), steward("chi"), pending.ID, 0, nil); err != nil || s.Status != review.StatusBlocked {
			t.Errorf("%s: wait: %v, %v", when, s.Status, err)
		}
	}
	check("not carried out")
	w.refused("lift", w.store.LiftRecall(t.Context(), "default", r.ID, "chi", "too early"), review.ErrConflict)
	// A step that somebody is in the way of is taken later.
	tx, err := w.pool.Begin(t.Context())
	w.ok("begin", err)
	_, err = tx.Exec(t.Context(), `select from screening where id = $1 for update`, admitted.ID)
	w.ok("lock", err)
	changed, err := w.store.SettleRecalls(t.Context())
	if err != nil || len(changed) != 2 {
		t.Errorf("beside a lock: %v, %v, want two", changed, err)
	}
	check("half carried out")
	w.ok("unlock", tx.Rollback(t.Context()))
	if changed, err = w.store.SettleRecalls(t.Context()); err != nil || len(changed) != 1 {
		t.Errorf("the rest: %v, %v, want one", changed, err)
	}
	check("carried out")
	if changed, err = w.store.SettleRecalls(t.Context()); err != nil || len(changed) != 0 {
		t.Errorf("again: %v, %v", changed, err)
	}
	w.checkRecord()
}

func TestRecallOfAProjectLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	raw := madeOf("a", dataset("d", "bad", "s3://x/bad"))
	mine := w.submit("bo", raw)
	p := principal("bo")
	p.Project = "other"
	theirs, _, err := w.desk.Submit(t.Context(), p, raw, nil)
	w.ok("submit", err)
	// What another project says about data is its own knowledge: it reaches nothing here.
	_, _, err = w.desk.Submit(t.Context(), p, madeOf("says", dataset("d", "", "s3://x/mid", "s3://x/bad", "sha256:"+hexOf("bad"))), nil)
	w.ok("submit", err)
	mid := w.submit("bo", madeOf("mid", dataset("d", "", "s3://x/mid")))
	r := w.recall(bytesOf("bad"))
	w.want("mine", mine, "revoked by recall")
	w.want("derived, by what another project says", mid, "admitted by packs")
	if _, hits, err := w.desk.RecallReport(t.Context(), steward("chi"), r.ID, nil, 9); err != nil || hits.Total != 1 {
		t.Errorf("report: %+v, %v, want one screening", hits, err)
	}
	if got, err := w.desk.Screening(t.Context(), p, theirs.ID); err != nil || got.Status != review.StatusAdmitted || got.Recall != nil {
		t.Errorf("theirs: %+v, %v", got, err)
	}
	foreign := steward("chi")
	foreign.Project = "other"
	if _, err := w.desk.RecallByID(t.Context(), foreign, r.ID); !errors.Is(err, review.ErrNotFound) {
		t.Errorf("read from another project: %v", err)
	}
	if _, err := w.desk.LiftRecall(t.Context(), foreign, r.ID, "not mine"); !errors.Is(err, review.ErrNotFound) {
		t.Errorf("lifted from another project: %v", err)
	}
	if list, err := w.desk.Recalls(t.Context(), foreign, review.RecallQuery{Limit: 9}); err != nil || len(list) != 0 {
		t.Errorf("listed in another project: %v, %v", list, err)
	}
	for what, p := range map[string]review.Principal{"no scope": principal("chi"), "nobody": steward("mallory")} {
		if _, err := w.desk.Recall(t.Context(), p, bytesOf("x"), "because"); !errors.Is(err, review.ErrNotAllowed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := w.desk.LiftRecall(t.Context(), steward("airflow"), r.ID, "by itself"); !errors.Is(err, review.ErrNotAllowed) {
		t.Errorf("lifted by a service: %v", err)
	}
	for what, data := range map[string]review.RecalledData{"neither": {}, "both": {SHA256: screening.Sum(nil), URI: "x"}, "blank": {URI: "\u200b "},
		"NUL": {URI: "x\x00"}, "long": {URI: strings.Repeat("x", 10_001)}} {
		var invalid *screening.InvalidError
		if _, err := w.desk.Recall(t.Context(), steward("chi"), data, "because"); !errors.As(err, &invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, reason := range []string{"", " ", "\u200b\u00ad"} {
		if _, err := w.desk.Recall(t.Context(), steward("chi"), bytesOf("x"), reason); err == nil {
			t.Errorf("recalled for %q", reason)
		}
	}
}

// What is recalled is no admission that a new floor could end, and a spec that a new
// floor decides again keeps its lineage.
func TestRecallAndANewFloor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recalled := w.submit("bo", madeOf("recalled", dataset("d", "bad", "")))
	ended := w.submit("bo", madeOf("ended", dataset("d", "good", "s3://x/good", "s3://x/from")))
	lineage := func() string {
		return one[string](w, `select concat((select string_agg(inputs::text, ' ' order by sha256) from spec),
			(select string_agg(child::text || parent::text, ' ' order by child, parent) from lineage))`)
	}
	before := lineage()
	w.ok("recall", w.store.MakeRecall(t.Context(), &review.Recall{Project: "default", Data: bytesOf("bad"), Reason: "abuse", Actor: "chi"}))
	w.decideBy(newFloor, pledgeYAML)
	if done := w.enforce(); !slices.Equal(done.Ended, []string{ended.ID}) {
		t.Errorf("ended %v, want %s alone", done.Ended, ended.ID)
	}
	w.want("recalled", recalled, "revoked by recall")
	w.want("ended by the floor", ended, "superseded by packs")
	if after := lineage(); after != before {
		t.Errorf("the lineage is\n%s\nand was\n%s", after, before)
	}
	w.checkRecord()
}

// A project that only reports lets pass what it would stop, but nothing recalled.
func TestRecallHoldsInReportMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := setup(t)
	today := one[string](w, `select to_char((now() at time zone 'utc') + interval '30 days', 'YYYY-MM-DD')`)
	var err error
	s.Policies, err = review.LoadPolicies("policies.yaml", []byte(policiesYAML+"\nprojects: [{id: default, mode: report, until: "+today+"}]\n"), s.People)
	w.ok("policies", err)
	if w.desk, err = review.NewDesk(w.store, s, review.Config{}); err != nil {
		t.Fatal(err)
	}
	reported := w.submit("bo", madeOf("a", dataset("d", "x", ""), "violent=present"))
	if a := w.desk.Standing(reported); a.Would == 0 {
		t.Fatal("the project does not report: this shows nothing")
	}
	w.recall(bytesOf("bad"))
	recalled := w.submit("bo", madeOf("b", dataset("d", "bad", "")))
	if a := w.desk.Standing(recalled); a.Would != 0 || a.Open() || a.Status != review.StatusBlocked {
		t.Errorf("recalled: %+v", a)
	}
}

// A submission that meets a recall is kept before it, and ended, or after it, and
// blocked. Nobody is ever told that it is admitted once the recall was answered.
func TestRecallRaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := 0
	for i := range races {
		name := fmt.Sprintf("bad-%d", i)
		raw := madeOf("run/"+name, dataset("d", name, ""), []string{"violent=absent", "violent=present"}[i%2])
		var s *review.Screening
		recall, submit := race(func() error {
			_, err := w.desk.Recall(t.Context(), steward("chi"), bytesOf(name), "race")
			return err
		}, func() (err error) {
			s, _, err = w.desk.Submit(t.Context(), principal("dee"), raw, nil)
			return err
		})
		if recall != nil || submit != nil {
			t.Fatalf("recall: %v, submit: %v", recall, submit)
		}
		if w.gate(raw) == review.StatusAdmitted || w.gate(raw) == review.StatusPending {
			t.Fatalf("race %d: the gate says %s", i, w.gate(raw))
		}
		if _, err := w.store.SettleRecalls(t.Context()); err != nil {
			t.Fatal(err)
		}
		stored := one[string](w, `select status || ' by ' || decided_by from screening where id = $1`, s.ID)
		switch want := []string{"revoked by recall", "blocked by recall"}[i%2]; stored {
		case want:
			if s.Status == review.StatusAdmitted || s.Status == review.StatusPending || one[int](w, `select count(*) from review where screening_id = $1`, s.ID) > 0 || i%2 == 0 {
				first++ // kept before the recall
			}
		case "blocked by recall": // kept after it
		default:
			t.Fatalf("race %d: stored as %s", i, stored)
		}
	}
	if n := one[int](w, `select count(*) from screening where status in ('admitted', 'pending')`); n != 0 {
		t.Errorf("%d slipped through", n)
	}
	t.Logf("%d of %d were kept before their recall", first, races)
	w.checkRecord()
}

// Votes that meet a recall.
func TestRecallRacesWithVotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range races {
		name := fmt.Sprintf("bad-%d", i)
		s := w.submit("dee", madeOf("run/"+name, dataset("d", name, ""), "violent=present"))
		recall, vote := race(func() error {
			_, err := w.desk.Recall(t.Context(), steward("chi"), bytesOf(name), "race")
			return err
		}, func() error {
			_, err := w.desk.Vote(t.Context(), principal("bo"), s.Review.ID, review.VoteRequest{ExpectedVersion: 1, SpecSHA256: s.SpecSHA256,
				Choice: review.VoteAdmit, Reason: "race", Terms: []string{violentTerm}})
			return err
		})
		if recall != nil || vote != nil && !errors.Is(vote, review.ErrConflict) {
			t.Fatalf("recall: %v, vote: %v", recall, vote)
		}
		if _, err := w.store.SettleRecalls(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := "blocked by recall"
		if vote == nil {
			want = "revoked by recall"
		}
		if got := one[string](w, `select status || ' by ' || decided_by from screening where id = $1`, s.ID); got != want {
			t.Fatalf("race %d, vote %v: stored as %s, want %s", i, vote, got, want)
		}
	}
	w.checkRecord()
}
