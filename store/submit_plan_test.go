package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"weir/review"
	"weir/store"
	"weir/store/storetest"
)

// What a submission reads grows at most with what is stored, not with its square,
// whatever the planner believes: a young table has no statistics, and a plan of then
// lives on.
func TestSubmissionOfYoungTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const stored = 400
	w.exec(`insert into spec (project, sha256, canonical_sha256)
		select 'default', sha256(n::text::bytea), sha256(n::text::bytea) from generate_series(1, $1) n`, stored)
	w.exec(`insert into screening (id, project, spec_sha256, canonical_sha256, run_ref, team, submitter, owner, on_behalf_of, as_of, engine, outcome,
			decision_sha256, packs_sha256, findings_sha256, status, decided_by, admitted_until)
		select md5(n::text)::uuid, 'default', sha256(n::text::bytea), sha256(n::text::bytea), 'run/' || n, 'team', 'ana', 'ana', '', '2026-11-01', '1',
			'admit', sha256('d'), sha256('p'), sha256('f'), 'admitted', 'packs', now() + interval '1 day' from generate_series(1, $1) n`, stored)
	seen := &statements{}
	st, err := store.Open(t.Context(), storetest.With(w.dsn, "default_transaction_read_only", "on"), store.Traced(seen)) // says what it would write, and does not
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	desk, err := review.NewDesk(st, setup(t), review.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := desk.Submit(t.Context(), principal("bo"), spec("run/new", ""), nil); err == nil {
		t.Fatal("it was written")
	}
	for _, s := range seen.take() {
		if !strings.Contains(s.sql, "new_screening") {
			continue
		}
		tx, err := store.Of(w.store, "default").Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(context.Background()) //nolint:errcheck // nothing of it is wanted
		var plan []byte
		if err := tx.QueryRow(t.Context(), `explain (analyze, format json) `+s.sql, s.args...).Scan(&plan); err != nil {
			t.Fatal(err)
		}
		for node, read := range rowsRead(t, plan) {
			if read > 2*stored {
				t.Errorf("%s reads %d rows of %d", node, read, stored)
			}
		}
		return
	}
	t.Fatal("no submission was seen")
}

// rowsRead counts, for each scan of a plan that was run, the rows that it went through.
func rowsRead(t *testing.T, plan []byte) map[string]int {
	t.Helper()
	type node struct {
		Type     string  `json:"Node Type"`
		Table    string  `json:"Relation Name"`
		Alias    string  `json:"Alias"`
		Rows     float64 `json:"Actual Rows"`
		Removed  float64 `json:"Rows Removed by Filter"`
		Loops    float64 `json:"Actual Loops"`
		Children []node  `json:"Plans"`
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal(plan, &plans); err != nil || len(plans) != 1 {
		t.Fatalf("%d plans, %v", len(plans), err)
	}
	read := map[string]int{}
	var walk func(n node)
	walk = func(n node) {
		if n.Table != "" {
			read[fmt.Sprintf("%s of %s %s", n.Type, n.Table, n.Alias)] = int((n.Rows + n.Removed) * n.Loops)
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(plans[0].Plan)
	if len(read) == 0 {
		t.Fatal("the plan reads nothing")
	}
	return read
}
