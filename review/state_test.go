package review

import (
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/migrations"
)

// check finds "column text … check (column in (…))" of a table in the migrations.
func check(t *testing.T, table, column string) (values []string) {
	t.Helper()
	names, err := fs.Glob(migrations.FS, "*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	statement := regexp.MustCompile(`(?s)create table ` + table + ` \(.*?\n\)`)
	list := regexp.MustCompile(`(?m)^\s*` + column + `\s[^\n]*check \(` + column + ` in \(([^)]*)\)\)`)
	for _, name := range names {
		sql, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		if m := list.FindSubmatch(statement.Find(sql)); m != nil {
			for _, v := range regexp.MustCompile(`'([^']*)'`).FindAllSubmatch(m[1], -1) {
				values = append(values, string(v[1]))
			}
		}
	}
	slices.Sort(values)
	return values
}

// The database knows the same states as the code, or one of them could not be kept.
func TestDatabaseMirrorsTheStates(t *testing.T) {
	t.Parallel()
	var states []string
	for s := range transitions {
		states = append(states, string(s))
	}
	slices.Sort(states)
	for _, tt := range []struct {
		table, column string
		want          []string
	}{
		{"review", "state", states},
		{"screening", "status", []string{"admitted", "blocked", "expired", "pending", "superseded", "withdrawn"}},
		{"vote", "choice", []string{string(VoteAdmit), string(VoteBlock)}},
		{"review", "outcome", []string{string(VoteAdmit), string(VoteBlock)}},
	} {
		if diff := cmp.Diff(tt.want, check(t, tt.table, tt.column)); diff != "" {
			t.Errorf("%s.%s: code and CHECK differ (-code +database)\n%s", tt.table, tt.column, diff)
		}
	}
}

// Every state that is not final has a way out, every state can be reached from
// open, and nothing leaves a final one.
func TestStateTable(t *testing.T) {
	t.Parallel()
	reached := map[State]bool{Open: true}
	for from := range maps.Keys(transitions) {
		for _, to := range transitions[from] {
			reached[to] = true
			if _, known := transitions[to]; !known {
				t.Errorf("%s leads to %s, which is no state", from, to)
			}
			if !from.CanBecome(to) {
				t.Errorf("%s cannot become %s, says CanBecome", from, to)
			}
		}
	}
	for s, next := range transitions {
		if !reached[s] {
			t.Errorf("%s is never reached", s)
		}
		if (s == Open) != (len(next) > 0) {
			t.Errorf("%s has %d ways out", s, len(next))
		}
		if s.CanBecome(s) {
			t.Errorf("%s can become itself", s)
		}
	}
	if State("nonsense").CanBecome(Decided) || Open.CanBecome("nonsense") || State("").CanBecome(Open) {
		t.Error("a word that is no state can become something")
	}
	for _, s := range []Status{StatusAdmitted, StatusBlocked, StatusExpired, StatusSuperseded, StatusWithdrawn} {
		if !s.Final() || (Answer{Status: s}).Open() != (s == StatusAdmitted) {
			t.Errorf("%s: final %t, opens the gate %t", s, s.Final(), (Answer{Status: s}).Open())
		}
	}
	if StatusPending.Final() || (Answer{Status: StatusPending}).Open() || (Answer{}).Open() {
		t.Error("pending is final or opens the gate")
	}
}
