package store_test

import (
	"fmt"
	"testing"

	"weir/review"
)

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
