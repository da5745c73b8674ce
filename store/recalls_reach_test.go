package store_test

import (
	"context"
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
