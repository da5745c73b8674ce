package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"weir/review"
	"weir/screening"
	"weir/store"
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

// A spec of later can say that data which others use came from what is recalled.
func TestRecallReachesWhatIsLearntLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.submit("bo", madeOf("a", dataset("d", "", "s3://x/derived")))
	r := w.recall(review.RecalledData{URI: "https://Data.example:443/bad/#v1"})
	w.want("nothing is known", s, "admitted by packs")
	w.submit("dee", madeOf("b", dataset("d", "", "s3://x/derived", "https://data.example/bad")))
	w.want("told by another spec", s, "revoked by recall")
	changed, err := w.store.SettleRecalls(t.Context())
	if err != nil || !slices.Equal(changed, []string{s.ID}) {
		t.Errorf("%v, %v", changed, err)
	}
	if again := w.submit("bo", madeOf("c", dataset("d", "", "s3://x/derived"))); again.Recall == nil || again.Recall.ID != r.ID {
		t.Errorf("submitted later: %s, %+v", again.Status, again.Recall)
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

// namedInput is an input as the reference sees it.
type namedInput struct {
	names, outside []string
	local          []string // ids of parents in the same spec: d and a number
}

// reachedBy gives the specs that come from a name: names and inputs are marked
// until nothing changes.
func reachedBy(bad string, specs [][]namedInput) map[int]bool {
	reached, ended := map[string]bool{bad: true}, map[int]bool{}
	has := func(names []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return reached[n] })
	}
	for grew := true; grew; {
		size := len(reached) + len(ended)
		for i, inputs := range specs {
			made := map[int]bool{} // inputs that come from it
			for range inputs {
				for j, in := range inputs {
					made[j] = made[j] || has(in.outside)
					for _, parent := range in.local {
						k := int(parent[1] - '0')
						made[j] = made[j] || k != j && (has(inputs[k].names) || made[k])
					}
					if made[j] {
						for _, n := range in.names {
							reached[n] = true
						}
					}
					if made[j] || has(in.names) {
						ended[i] = true
					}
				}
			}
		}
		grew = len(reached)+len(ended) > size
	}
	return ended
}

// What a recall reaches is what a simple search through all inputs of all specs
// reaches, in whatever order they came.
func TestRecallReachesExactlyWhatFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runs, hit, spared := 0, 0, 0
	names := rapid.SampledFrom([]string{"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"})
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		project := fmt.Sprintf("p%d", runs)
		p := steward("chi")
		p.Project = project
		var specs [][]namedInput
		var kept []*review.Screening
		submit := func(i int) {
			n := rapid.IntRange(1, 3).Draw(rt, "inputs")
			var inputs []namedInput
			var text []string
			for j := range n {
				in := namedInput{names: rapid.SliceOfNDistinct(names, 0, 2, rapid.ID).Draw(rt, "names"), outside: rapid.SliceOfNDistinct(names, 0, 1, rapid.ID).Draw(rt, "outside")}
				for k := range n {
					if rapid.IntRange(0, 3).Draw(rt, "local") == 0 {
						in.local = append(in.local, fmt.Sprintf("d%d", k))
					}
				}
				inputs = append(inputs, in)
				parents := slices.Clone(in.local)
				for _, o := range in.outside {
					parents = append(parents, "s3://b/"+o)
				}
				one := dataset(fmt.Sprintf("d%d", j), "", "", parents...)
				if len(in.names) > 0 {
					one = strings.TrimSuffix(one, "}") + `, uris: ["s3://b/` + strings.Join(in.names, `", "s3://b/`) + `"]}`
				}
				text = append(text, one)
			}
			s, _, err := w.desk.Submit(t.Context(), p, madeOf(fmt.Sprintf("r%d", i), strings.Join(text, ", ")), nil)
			if err != nil {
				rt.Fatal(err)
			}
			specs, kept = append(specs, inputs), append(kept, s)
		}
		before := rapid.IntRange(1, 6).Draw(rt, "before")
		for i := range before {
			submit(i)
		}
		bad := names.Draw(rt, "recalled")
		r, err := w.desk.Recall(t.Context(), p, review.RecalledData{URI: "s3://b/" + bad}, "because")
		if err != nil {
			rt.Fatal(err)
		}
		blocked := map[int]bool{} // at once
		for i := range rapid.IntRange(0, 3).Draw(rt, "after") {
			submit(before + i)
			blocked[before+i] = reachedBy(bad, specs)[before+i]
		}
		ended := reachedBy(bad, specs)
		hits, err := w.store.RecallHits(t.Context(), r, nil, 100)
		if err != nil {
			rt.Fatal(err)
		}
		got, want := map[string]bool{}, map[string]bool{}
		for _, h := range hits.Hits {
			got[h.RunRef] = true
			if len(h.Path) == 0 || h.Path[0].Point != r.Data.Point() {
				rt.Errorf("%s: the path begins with %v", h.RunRef, h.Path)
			}
		}
		for i, s := range kept {
			status := review.StatusAdmitted
			if ended[i] {
				want[s.RunRef] = true
				hit++
				if status = review.StatusRevoked; blocked[i] {
					status = review.StatusBlocked
				}
			} else {
				spared++
			}
			if now, err := w.desk.Screening(t.Context(), p, s.ID); err != nil || now.Status != status {
				rt.Errorf("%s is %s, want %s (%v)", s.RunRef, now.Status, status, err)
			}
		}
		if !maps.Equal(got, want) {
			rt.Errorf("reported %v, want %v; specs %+v, recalled %s", got, want, specs, bad)
		}
	})
	if hit == 0 || spared == 0 {
		t.Errorf("%d hit and %d spared: this shows little", hit, spared)
	}
	w.checkRecord()
}

// Circles and long chains end, and are followed to the end.
func TestRecallFollowsLongChains(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const specs, inputs = 10, 100
	for i := range specs {
		var text []string
		for j := range inputs {
			n := i*inputs + j
			text = append(text, dataset(fmt.Sprintf("d%d", j), "", fmt.Sprintf("s3://chain/%d", n), fmt.Sprintf("s3://chain/%d", (n+specs*inputs-1)%(specs*inputs))))
		}
		w.submit("bo", madeOf(fmt.Sprintf("chain%d", i), strings.Join(text, ", ")))
	}
	end := w.submit("bo", madeOf("end", dataset("d", "", "s3://chain/499")))
	w.recall(review.RecalledData{URI: "s3://chain/500"}) // once around
	w.want("the end of the chain", end, "revoked by recall")
	r, hits, err := w.desk.RecallReport(t.Context(), steward("chi"), one[string](w, `select id::text from recall`), nil, 50)
	w.ok("report", err)
	if hits.Total != specs+1 || r.Revoked != specs+1 {
		t.Errorf("%d hit and %d revoked, want %d", hits.Total, r.Revoked, specs+1)
	}
	for _, h := range hits.Hits {
		if h.Screening == end.ID && (len(h.Path) != specs*inputs || h.Path[1].Words != "s3://chain/501" || h.Uses) {
			t.Errorf("%d steps, the second %+v", len(h.Path), h.Path[1])
		}
	}
}

// How a screening was reached is said in the words of specs that are still there.
func TestRecallReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("bo", madeOf("made", dataset("d", "mid", "s3://x/mid", "s3://x/bad")))
	w.submit("bo", madeOf("uses", dataset("d", "mid", "")))
	w.submit("bo", madeOf("direct", dataset("d", "", "s3://x/bad/")))
	w.submit("bo", madeOf("nameless", dataset("d", "", "", "s3://x/bad")))
	r := w.recall(review.RecalledData{URI: "S3://x/bad/"})
	type line struct {
		Run  string
		Uses bool
		Path []string
		By   bool
	}
	report := func() (lines []line) {
		t.Helper()
		var after *review.Cursor
		for {
			_, hits, err := w.desk.RecallReport(t.Context(), steward("chi"), r.ID, after, 2)
			w.ok("report", err)
			for _, h := range hits.Hits {
				l := line{Run: h.RunRef, Uses: h.Uses, By: h.ByRecall}
				for _, step := range h.Path {
					l.Path = append(l.Path, step.Words)
				}
				lines = append(lines, l)
				after = &review.Cursor{At: h.CreatedAt, ID: h.Screening}
			}
			if len(hits.Hits) < 2 {
				return lines
			}
		}
	}
	mid := "sha256:" + hexOf("mid")
	want := []line{{"nameless", false, []string{"s3://x/bad"}, true}, {"direct", true, []string{"s3://x/bad"}, true},
		{"uses", false, []string{"s3://x/bad", mid}, true}, {"made", false, []string{"s3://x/bad", mid}, true}}
	got := report()
	if diff := cmp.Diff(want[:3], got[:3]); diff != "" || len(got) != 4 {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Erased specs are reached as before; only their words are gone.
	for _, run := range []string{"made", "direct", "nameless"} {
		if _, err := w.erase(one[string](w, `select id::text from screening where run_ref = $1`, run)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want[:3], report()[:3]); diff != "" {
		t.Errorf("after erasing (-want +got):\n%s", diff)
	}
	far := w.submit("bo", madeOf("far", dataset("e", "far", "", "s3://x/other")))
	w.submit("bo", madeOf("between", dataset("e", "", "s3://x/other", "s3://x/bad")))
	w.want("far", far, "revoked by recall")
	if got := report()[1]; got.Run != "far" || got.Path[1] != "s3://x/other" {
		t.Errorf("%+v", got)
	}
}

// Specs of before the lineage was kept are read when weir starts; of erased ones
// nothing is known, and the report says of how many.
func TestLinkSpecs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var kept []*review.Screening
	for i := range 3 {
		kept = append(kept, w.submit("bo", madeOf(fmt.Sprintf("r%d", i), dataset("d", fmt.Sprintf("c%d", i+1), "", "sha256:"+hexOf(fmt.Sprintf("c%d", i))))))
	}
	gone := w.submit("bo", madeOf("gone", dataset("d", "c0", "")))
	w.ended(gone.ID)
	_, err := w.erase(gone.ID)
	w.ok("erase", err)
	want := one[int](w, `select count(*) from lineage where child in (select inputs from spec) or parent in (select child from lineage)`)
	w.exec(`alter table lineage disable trigger all; delete from lineage; update spec set inputs = null; alter table lineage enable trigger all`)

	r := &review.Recall{Project: "default", Data: bytesOf("c0"), Reason: "abuse", Actor: "chi"}
	w.ok("recall", w.store.MakeRecall(t.Context(), r))
	w.want("nothing is known yet", kept[2], "revoked by recall") // it could be that
	read := 0
	w.ok("link", w.store.LinkSpecs(t.Context(), func(n int) { read += n }))
	if read != 4 {
		t.Errorf("%d specs read, want 4", read)
	}
	if _, err := w.store.SettleRecalls(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := one[int](w, `select count(*) from screening where status = 'revoked'`); got != 3 {
		t.Errorf("%d revoked, want 3", got)
	}
	hits, err := w.store.RecallHits(t.Context(), r, nil, 9)
	if err != nil || hits.Total != 3 || hits.Unknown != 1 {
		t.Errorf("%+v, %v", hits, err)
	}
	if got := one[int](w, `select count(*) from lineage where child in (select inputs from spec) or parent in (select child from lineage)`); got > want || got == 0 {
		t.Errorf("%d links, there were %d", got, want)
	}
	w.ok("link again", w.store.LinkSpecs(t.Context(), func(int) { t.Error("specs are read twice") }))
	// Its bytes come again, and with them its lineage.
	again := w.submit("bo", madeOf("gone", dataset("d", "c0", "")))
	w.want("submitted again", again, "blocked by recall")
	w.checkRecord()
}

// Specs and recalls that an older weir read less closely are read again. What it
// knew holds until then, and stays where the bytes are gone.
func TestLinkSpecsReadsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	says := w.submit("bo", madeOf("says", dataset("d", "c1", "", "sha256:"+hexOf("c0"))))
	gone := w.submit("bo", madeOf("gone", dataset("d", "c2", "", "sha256:"+hexOf("c1"))))
	far := w.submit("bo", madeOf("far", dataset("d", "c2", "")))
	slash := w.submit("bo", madeOf("slash", dataset("d", "", "hf:org/d/")))
	w.ended(gone.ID)
	_, err := w.erase(gone.ID)
	w.ok("erase", err)
	known := one[string](w, `select inputs::text from spec where sha256 = $1`, gone.SpecSHA256[:])
	c0 := bytesOf("c0").Point()
	// As a reading that knows no digests left it, in says; and old names in a recall.
	w.exec(`alter table lineage disable trigger all`)
	w.exec(`delete from lineage where child = (select inputs from spec where sha256 = $1) or parent = $2`, says.SpecSHA256[:], c0[:])
	w.exec(`alter table lineage enable trigger all`)
	w.exec(`update spec set read_again = true, inputs = case when sha256 = $1 then '\x06'::bytea || sha256('older') else inputs end`, says.SpecSHA256[:])
	w.exec(`insert into recall (id, project, point, uri, reason, actor) values (gen_random_uuid(), 'default', '\x03'::bytea || sha256('hf:org/d/'), 'hf:org/d/', 'abuse', 'chi')`)
	w.ok("recall", w.store.MakeRecall(t.Context(), &review.Recall{Project: "default", Data: bytesOf("c0"), Reason: "abuse", Actor: "chi"}))
	w.want("not read again yet", says, "admitted by packs")
	read := 0
	w.ok("link", w.store.LinkSpecs(t.Context(), func(n int) { read += n }))
	w.ok("settle", errOf(w.store.SettleRecalls(t.Context())))
	if read != 4 {
		t.Errorf("%d specs read, want 4", read)
	}
	w.want("read again", says, "revoked by recall")
	w.want("through an erased one", far, "revoked by recall")
	w.want("a recall of before", slash, "revoked by recall")
	if got := one[string](w, `select inputs::text from spec where sha256 = $1`, gone.SpecSHA256[:]); got != known {
		t.Errorf("the erased one is known as %s, and was as %s", got, known)
	}
	links := one[int](w, `select count(*) from lineage`)
	w.ok("link again", w.store.LinkSpecs(t.Context(), func(int) { t.Error("specs are read twice") }))
	if got := one[int](w, `select count(*) from lineage`); got != links {
		t.Errorf("%d links, there were %d", got, links)
	}
}

// Whatever the form in which a spec names a digest, a recall of the bytes reaches it.
func TestRecallReachesEveryFormOfADigest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := hexOf("bad")
	kept := map[string]*review.Screening{}
	for i, inputs := range []string{
		"{id: " + x + ", kind: dataset}",
		"{id: d, kind: dataset, lineage: {derived_from: [{ref: " + x + "}]}}, {id: " + x + ", kind: dataset}",
		"{id: " + x + ", kind: dataset, uris: [s3://x/self], lineage: {derived_from: [{ref: " + x + "}]}}",
		"{id: d, kind: dataset, digests: [{alg: sha256, value: 'sha256:" + x + "'}]}",
		"{id: d, kind: dataset, digests: [{alg: sha256, value: ' " + x + " '}]}",
		"{id: d, kind: dataset, uris: ['registry/image@sha256:" + x + "']}",
		"{id: d, kind: dataset, uris: ['registry/image@sha256:" + x + "/?layer']}",
		"{id: d, kind: dataset, uris: ['urn:sha256:" + x + "']}",
	} {
		kept[inputs] = w.submit("bo", madeOf(fmt.Sprintf("r%d", i), inputs))
	}
	r := w.recall(review.RecalledData{URI: "registry/other@sha256:" + x})
	if r.Data.String() != "sha256:"+x {
		t.Errorf("recalled %s, want the digest", r.Data)
	}
	for inputs, s := range kept {
		w.want(inputs, s, "revoked by recall")
	}
	w.checkRecord()
}

// Runs that come back with the same inputs write no links.
func TestLineageIsKeptOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := dataset("d", "x", "s3://x", "p") + ", " + dataset("p", "y", "s3://y")
	w.submit("bo", madeOf("r1", in))
	links := one[int](w, `select count(*) from lineage`)
	for i := range 5 {
		w.submit("bo", madeOf(fmt.Sprintf("again%d", i), in))
	}
	if got := one[int](w, `select count(*) from lineage`); got != links || links == 0 {
		t.Errorf("%d links, after the first spec %d", got, links)
	}
	for _, sql := range []string{`update lineage set project = 'x'`, `delete from lineage`, `truncate lineage`} {
		if _, err := w.pool.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s was done", sql)
		}
	}
}

const manyLinks = `
insert into spec (project, sha256, canonical_sha256, inputs, read_again)
	select 'default', sha256(n::text::bytea), sha256(n::text::bytea), '\x06'::bytea || sha256(n::text::bytea), false from generate_series(1, 100000) n;
insert into screening (id, project, spec_sha256, canonical_sha256, run_ref, team, submitter, owner, on_behalf_of, as_of, engine, outcome,
		decision_sha256, packs_sha256, findings_sha256, status, decided_by, admitted_until)
	select md5('s' || n)::uuid, 'default', sha256(n::text::bytea), sha256(n::text::bytea), 'run/' || n, 't', 'ana', 'ana', '', '2026-11-01', '1',
		'admit', sha256('d'), sha256('p'), sha256('f'), 'admitted', 'packs', now() + interval '1 day'
	from generate_series(1, 100000) n;
insert into lineage (project, child, parent)
	select 'default', '\x06'::bytea || sha256(n::text::bytea), '\x01'::bytea || sha256(('d' || n)::bytea) from generate_series(1, 100000) n;
insert into lineage (project, child, parent)
	select 'default', '\x01'::bytea || sha256(('d' || n)::bytea), '\x05'::bytea || sha256(('m' || n)::bytea) from generate_series(1, 100000) n;
insert into lineage (project, child, parent)
	select 'default', '\x05'::bytea || sha256(('m' || n)::bytea), '\x01'::bytea || sha256(('d' || n / 10)::bytea) from generate_series(10, 100000) n;
`

// A recall among 100,000 inputs reads what it reaches and no more, with statistics
// and without.
func TestRecallIsALookup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for sql := range strings.SplitSeq(strings.TrimSpace(manyLinks), ";\n") {
		w.exec(sql)
	}
	for _, analysed := range []bool{false, true} {
		if analysed {
			w.exec(`vacuum analyze`) // as autovacuum does, which tests turn off
		}
		seen := &statements{}
		st, err := store.Open(t.Context(), w.dsn, store.Traced(seen))
		w.ok("open", err)
		t.Cleanup(st.Close)
		data := review.RecalledData{URI: "s3://nobody"}
		if analysed {
			data = review.RecalledData{SHA256: screening.Sum([]byte("d4321"))} // 4321, and 43210 to 43219
		}
		r := &review.Recall{Project: "default", Data: data, Reason: "abuse", Actor: "chi"}
		w.ok("recall", st.MakeRecall(t.Context(), r))
		plans := func(db interface {
			QueryRow(context.Context, string, ...any) pgx.Row
		}) {
			t.Helper()
			for _, s := range seen.take() {
				if !analysed { // plans of an optimiser that knows nothing are only a guess
					continue
				}
				for _, table := range fullReads(t, db, s) {
					if slices.Contains([]string{"lineage", "spec", "screening"}, table) { // the others are empty here
						t.Errorf("reads %s from end to end: %.80s", table, strings.Join(strings.Fields(s.sql), " "))
					}
				}
			}
		}
		seen.take()
		changed, err := st.SettleRecalls(t.Context())
		if err != nil || len(changed) != map[bool]int{false: 0, true: 11}[analysed] {
			t.Errorf("%d changed, %v", len(changed), err)
		}
		plans(store.Every(w.store)) // another store: this one would see its own questions
		_, err = st.RecallHits(t.Context(), r, nil, 50)
		w.ok("hits", err)
		_, err = st.Screenings(t.Context(), "default", review.ListQuery{Limit: 20})
		w.ok("list", err)
		_, _, err = st.Revoked(t.Context(), "default")
		w.ok("revoked", err)
		plans(store.Of(w.store, "default"))
		// What functions do is in no plan, but it is counted.
		tx, err := store.Of(st, "default").Begin(t.Context())
		w.ok("begin", err)
		defer tx.Rollback(t.Context())
		for _, sql := range []string{
			`select count(*) from inputs_from('default', '\x01'::bytea || sha256('d4321'))`,
			`select count(*) from (select screening_status(s, null) as now from screening s where s.project = 'default' and s.spec_sha256 = sha256('43215')) x where now = 'revoked'`,
			`select count(live_recall('default', array['\x06'::bytea || sha256('99999')]))`,
		} {
			var n, scans int
			if err := tx.QueryRow(t.Context(), sql).Scan(&n); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			if err := tx.QueryRow(t.Context(), `select coalesce(sum(seq_tup_read), 0) from pg_stat_xact_user_tables
				where relname in ('lineage', 'spec', 'screening')`).Scan(&scans); err != nil || scans != 0 {
				t.Errorf("analysed %v: %d rows read in sequence after %s (%v)", analysed, scans, sql, err)
			}
		}
		w.ok("end", tx.Rollback(t.Context()))
	}
}
