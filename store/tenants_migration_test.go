package store_test

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/store"
)

// tenantsMigration is the version that keeps projects apart.
const tenantsMigration = 12

// A database with data goes back to the schema before and forward again, and
// every row and the log are as they were.
func TestProjectsOfRowsFromBefore(t *testing.T) {
	t.Parallel()
	w, _, _, key := twoProjects(t, store.Config{})
	rows := func() map[string][]string {
		out := map[string][]string{}
		for _, name := range tenantTables() {
			if !one[bool](w, `select to_regclass($1) is not null`, name) {
				continue // of a later migration
			}
			out[name] = one[[]string](w, `select array_agg(to_jsonb(x)::text order by to_jsonb(x)::text) from `+name+` x`)
		}
		return out
	}
	check := func() {
		t.Helper()
		w.checkRecord()
		if _, err := w.store.CheckLog(t.Context(), func(int64) {}, key.Public()); err != nil {
			t.Error(err)
		}
	}
	check()
	if err := store.MigrateTo(t.Context(), w.dsn, tenantsMigration); err != nil {
		t.Fatal(err)
	}
	before := rows()
	if err := store.MigrateTo(t.Context(), w.dsn, tenantsMigration-1); err != nil {
		t.Fatal(err)
	}
	if n := one[int](w, `select count(*) from audit_event where screening_id is not null and project is not null`); n != 0 {
		t.Errorf("%d events of screenings name a project in the schema before", n)
	}
	w.checkRecord() // CheckLog reads tables of later migrations
	if err := store.MigrateTo(t.Context(), w.dsn, tenantsMigration); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, rows()); diff != "" {
		t.Errorf("rows after going back and forward (-before +after):\n%s", diff)
	}
	if err := store.Migrate(t.Context(), w.dsn, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	check()
	w.submit("bo", spec("after", "", "violent=present"))
	check()
}
