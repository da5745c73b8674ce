package screening

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fixed is a clause with a given value.
type fixed struct {
	v    value
	name string
}

func (c fixed) value(*evaluation, int) value { return c.v }

func (c fixed) explain(_ *evaluation, _ int, x *explanation) {
	x.because(c.name+" reason", Evidence{Name: c.name})
	if c.v == silent {
		x.open = [][]Statement{{{Pointer: "/" + c.name}}}
	}
}

var allValues = []value{no, silent, hinted, yesValue}

// TestKleene goes through every combination of three values for all and any,
// under not and not not, against the definition: a value is known only if it is
// the same however the unknown parts turn out.
func TestKleene(t *testing.T) {
	t.Parallel()
	for _, a := range allValues {
		for _, b := range allValues {
			for _, c := range allValues {
				values := []value{a, b, c}
				parts := []clause{fixed{v: a}, fixed{v: b}, fixed{v: c}}
				for _, op := range []struct {
					name  string
					whole clause
					holds func([]bool) bool
				}{
					{"all", allOf(parts), func(v []bool) bool { return !slices.Contains(v, false) }},
					{"any", anyOf(parts), func(v []bool) bool { return slices.Contains(v, true) }},
				} {
					want := definition(values, op.holds)
					if got := op.whole.value(nil, 0); got != want {
						t.Errorf("%s%v = %v, want %v", op.name, values, got, want)
					}
					negated := map[value]value{no: yesValue, yesValue: no, silent: silent, hinted: hinted}[want]
					if got := (notOf{op.whole}).value(nil, 0); got != negated {
						t.Errorf("not %s%v = %v, want %v", op.name, values, got, negated)
					}
					if got := (notOf{notOf{op.whole}}).value(nil, 0); got != want {
						t.Errorf("not not %s%v = %v, want %v", op.name, values, got, want)
					}
				}
			}
		}
	}
}

// definition tries every way the unknown parts can turn out.
func definition(values []value, holds func([]bool) bool) value {
	could := map[bool]bool{}
	for bits := range 1 << len(values) {
		way, possible := make([]bool, len(values)), true
		for i, v := range values {
			way[i] = bits&(1<<i) != 0
			possible = possible && !(v == no && way[i]) && !(v == yesValue && !way[i])
		}
		if possible {
			could[holds(way)] = true
		}
	}
	switch {
	case !could[false]:
		return yesValue
	case !could[true]:
		return no
	case slices.Contains(values, hinted):
		return hinted
	}
	return silent
}

func TestExplain(t *testing.T) {
	t.Parallel()
	f := func(v value, name string) clause { return fixed{v, name} }
	yes, nope, sil, hint := yesValue, no, silent, hinted
	for _, tt := range []struct {
		name    string
		in      clause
		reasons string
		cited   string
		open    string // alternatives: "a+b|c"
	}{
		{"all hold", allOf{f(yes, "a"), f(yes, "b")}, "a b", "a b", ""},
		{"all, open: deciding one is enough", allOf{f(sil, "a"), f(yes, "b"), f(sil, "c")}, "a c", "a b c", "a|c"},
		{"all, open with a hint: the other can clear it", allOf{f(hint, "a"), f(sil, "b")}, "a b", "a b", "b"},
		{"all, one fails", allOf{f(yes, "a"), f(nope, "b"), f(sil, "c")}, "b", "b", ""},
		{"any, one holds", anyOf{f(sil, "a"), f(yes, "b"), f(nope, "c")}, "b", "b", ""},
		{"any, open: all have to be decided", anyOf{f(sil, "a"), f(nope, "b"), f(sil, "c")}, "a c", "a c", "a+c"},
		{"any, open with a hint: nothing decides it", anyOf{f(sil, "a"), f(hint, "b"), f(sil, "c")}, "a b c", "a b c", ""},
		{"any, none holds", anyOf{f(nope, "a"), f(nope, "b")}, "a b", "a b", ""},
		{"not", notOf{f(sil, "a")}, "a", "a", "a"},
		{"not all, open: all have to hold to clear it", notOf{allOf{f(sil, "a"), f(sil, "b")}}, "a b", "a b", "a+b"},
		{"not any, open: one is enough to clear it", notOf{anyOf{f(sil, "a"), f(sil, "b")}}, "a b", "a b", "a|b"},
		{"not not all", notOf{notOf{allOf{f(sil, "a"), f(sil, "b")}}}, "a b", "a b", "a|b"},
		{"not all holds because one fails", notOf{allOf{f(yes, "a"), f(nope, "b")}}, "b", "b", ""},
		{"not any holds because none does", notOf{anyOf{f(nope, "a"), f(nope, "b")}}, "a b", "a b", ""},
		{"any of alls", anyOf{allOf{f(sil, "a"), f(sil, "b")}, allOf{f(sil, "c"), f(sil, "d")}}, "a b c d", "a b c d", "a+c|a+d|b+c|b+d"},
		{"all of anys", allOf{anyOf{f(sil, "a"), f(sil, "b")}, anyOf{f(sil, "b"), f(nope, "c")}}, "a b b", "a b b", "a+b|b"},
		{"same statement once", anyOf{f(sil, "a"), f(sil, "a")}, "a a", "a a", "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var x explanation
			tt.in.explain(&evaluation{}, 0, &x)
			var cited, open []string
			for _, ev := range x.evidence {
				cited = append(cited, ev.Name)
			}
			for _, set := range x.open {
				var names []string
				for _, s := range set {
					names = append(names, s.Pointer[1:])
				}
				open = append(open, strings.Join(names, "+"))
			}
			got := []string{strings.ReplaceAll(strings.Join(x.reasons, " "), " reason", ""), strings.Join(cited, " "), strings.Join(open, "|")}
			if diff := cmp.Diff([]string{tt.reasons, tt.cited, tt.open}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNoFindingWithoutReason: whatever form a clause has, its finding says why.
func TestNoFindingWithoutReason(t *testing.T) {
	t.Parallel()
	spec := parseSpec(t, `
objective: {kind: sft, purpose: "x"}
disclosures:
- {tag: health, state: present, basis: structured}
- {tag: minors, state: absent, basis: structured}
- {tag: violent, state: unknown, basis: structured}
- {tag: hate, state: present, basis: prose}
inputs: [{id: d1, kind: dataset, license: {tdm: reserved}}]`)
	leaves := []string{"{tag: {health: present}}", "{tag: {minors: present}}", "{tag: {violent: present}}", "{tag: {hate: present}}", "{tag: {biometric: present}}",
		"{fact: license.tdm, has: reserved}", "{fact: license.tdm, has: not_reserved}", "{fact: split, has: all}", "{phrases: [zebra]}", "{obfuscated: true}",
		`{cel: "input.license.tdm == 'reserved'"}`, `{cel: "input.license.tdm == 'unknown'"}`, `{cel: "input.split == 'all'"}`}
	for _, a := range leaves {
		clauses := []string{a, "{not: " + a + "}", "{not: {not: " + a + "}}"}
		for _, b := range leaves {
			clauses = append(clauses, "{all: ["+a+", "+b+"]}", "{any: ["+a+", "+b+"]}", "{not: {all: ["+a+", "+b+"]}}", "{not: {any: ["+a+", "+b+"]}}")
		}
		var terms []string
		for i, c := range clauses {
			terms = append(terms, termText(fmt.Sprintf("t%02d", i), Escalate, "over: [dataset], violated_if: "+c))
		}
		d := classify(t, vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t, terms...)), spec)
		for i, f := range d.Ethics[0].Findings {
			if IsBlank(strings.TrimPrefix(f.Reason, "input d1:")) {
				t.Errorf("%s: no reason: %+v", clauses[i], f)
			}
			if byAbsence := strings.Contains(clauses[i], "phrases") || strings.Contains(clauses[i], "obfuscated"); f.State == Violated && len(f.Evidence) == 0 && !byAbsence {
				t.Errorf("%s: no evidence: %+v", clauses[i], f)
			}
			if (f.State == NotCheckable) != (f.Cause != "") {
				t.Errorf("%s: %s with cause %q", clauses[i], f.State, f.Cause)
			}
		}
	}
}

func TestPerInputRule(t *testing.T) {
	t.Parallel()
	const term = "over: [dataset, teacher], violated_if: {fact: trust_remote_code, has: \"yes\"}"
	input := func(id, kind, value string) string {
		if value == "" {
			return fmt.Sprintf("- {id: %s, kind: %s}\n", id, kind)
		}
		return fmt.Sprintf("- {id: %s, kind: %s, trust_remote_code: %s}\n", id, kind, value)
	}
	for _, tt := range []struct {
		name, inputs string
		want         State
		listed       string
	}{
		{"no inputs", "", NotCheckable, ""},
		{"no data set", input("m", "base_model", "false"), NotCheckable, ""},
		{"a teacher alone does not uphold", input("t", "teacher", "false"), NotCheckable, ""},
		{"a teacher alone violates", input("t", "teacher", "true"), Violated, "t:violated"},
		{"a teacher alone, not stated", input("t", "teacher", ""), NotCheckable, "t:not_checkable"},
		{"all uphold", input("a", "dataset", "false") + input("t", "teacher", "false"), Upheld, ""},
		{"other kinds do not count", input("a", "dataset", "false") + input("m", "base_model", "true") + input("c", "code", ""), Upheld, ""},
		{"one is not stated", input("a", "dataset", "false") + input("b", "dataset", "") + input("c", "dataset", "false"), NotCheckable, "b:not_checkable"},
		{"one violates", input("a", "dataset", "false") + input("b", "dataset", "true"), Violated, "b:violated"},
		{"violated beside unknown", input("a", "dataset", "") + input("b", "dataset", "true"), Violated, "a:not_checkable b:violated"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc := "inputs:\n" + tt.inputs
			if tt.inputs == "" {
				doc = "inputs: []"
			}
			f := findingOf(t, termText("x", Escalate, term), parseSpec(t, doc))
			var listed []string
			for _, in := range f.Inputs {
				listed = append(listed, in.ID+":"+string(in.State))
			}
			if f.State != tt.want || strings.Join(listed, " ") != tt.listed {
				t.Errorf("got %s %v, want %s %s", f.State, listed, tt.want, tt.listed)
			}
			if f.State == NotCheckable && f.Cause != CauseNoEvidence {
				t.Errorf("cause %s", f.Cause)
			}
		})
	}
	t.Run("a term without over does not ask for a data set", func(t *testing.T) {
		t.Parallel()
		if f := findingOf(t, termText("x", Escalate, "violated_if: {fact: objective.kind, has: ppo}"), parseSpec(t, "")); f.State != Upheld {
			t.Errorf("got %s", f.State)
		}
	})
}

func TestLongFindingsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("inputs:\n")
	for i := range 450 {
		fmt.Fprintf(&b, "- {id: d%d, kind: dataset, trust_remote_code: true}\n", i)
	}
	f := findingOf(t, termText("x", Escalate, "over: [dataset], violated_if: {fact: trust_remote_code, has: \"yes\"}"), parseSpec(t, b.String()))
	if len(f.Evidence) != maxEvidence+1 || f.Evidence[maxEvidence].Name != "more" || len(f.Inputs) != 450 {
		t.Errorf("got %d pieces of evidence for %d inputs", len(f.Evidence), len(f.Inputs))
	}
	if len(f.Reason) > 1000 || !strings.Contains(f.Reason, "and 447 more inputs") {
		t.Errorf("reason %q", f.Reason)
	}
}
