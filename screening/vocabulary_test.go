package screening

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNewVocabularyRefuses(t *testing.T) {
	t.Parallel()
	const body = "violated_if: {fact: objective.kind, has: sft}"
	floor := testFloor(t)
	pack := func(id string, terms ...string) *Pack { return loadPack(t, packText(id, Ethics, terms...)) }
	noText := func(terms ...string) *Pack {
		return loadPack(t, strings.Replace(packText("pledge", Ethics, terms...), "preferred_hedge_soft: Perhaps", `preferred_hedge_soft: " "`, 1))
	}
	reg := NewRegistry()
	if err := reg.Register("mine", func(*Spec) Finding { return Finding{} }); err != nil {
		t.Fatal(err)
	}
	mine, err := LoadPack("p.yaml", []byte(packText("pledge", Ethics, termText("x", Escalate, "predicate: mine"))), reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		cfg   VocabularyConfig
		packs []*Pack
		want  string
	}{
		{"no floor", VocabularyConfig{}, []*Pack{pack("a", termText("x", Block, body))}, "safety_floor is missing"},
		{"nothing", VocabularyConfig{}, nil, "safety_floor is missing"},
		{"a pledge under the floor's name", VocabularyConfig{}, []*Pack{pack(FloorID, termText("x", Block, body))}, "safety_floor is missing"},
		{"a pack twice", VocabularyConfig{}, []*Pack{floor, pack("a", termText("x", Block, body)), floor}, "pack safety_floor is given twice"},
		{"a term twice", VocabularyConfig{}, []*Pack{floor, pack("b", termText("x", Block, body)), pack("a", termText("x", Observe, body))}, "term x is declared by pack a and pack b"},
		{"a hedge without a text", VocabularyConfig{}, []*Pack{floor, noText(termText("x", Hedge, body))}, "term x hedges, but the pack has neither"},
		{"an unchecked hedge without a text", VocabularyConfig{}, []*Pack{floor, noText(termText("x", Escalate, body+", unchecked: hedge"))}, "term x hedges"},
		{"audit only with a term that acts", VocabularyConfig{AuditOnly: true}, []*Pack{floor, pack("a", termText("x", Hedge, body))}, "audit-only needs every ethics term to observe"},
		{"a predicate of another registry", VocabularyConfig{}, []*Pack{floor, mine}, "names predicate mine, which is not registered"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := NewVocabulary(NewRegistry(), tt.cfg, tt.packs...); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestVocabulary(t *testing.T) {
	t.Parallel()
	floor := testFloor(t)
	pledge := ethicsPack(t, termText("b", Observe, "violated_if: {fact: objective.kind, has: sft}"), termText("a", Observe, ""))
	v := vocabulary(t, VocabularyConfig{AuditOnly: true}, floor, pledge)
	want := []PackRef{{"pledge", "1", Ethics, pledge.SHA256}, {"safety_floor", "1", Safety, floor.SHA256}}
	if diff := cmp.Diff(want, v.Packs()); diff != "" {
		t.Error(diff)
	}
	if p, ok := v.Pack("pledge"); !ok || p != pledge {
		t.Error("the pack is not found")
	}
	if _, ok := v.Pack("other"); ok {
		t.Error("a pack that is not there is found")
	}
	for tagged, want := range map[string]string{"ethics:a": "a", "safety:floor_term": "floor_term", "safety:a": "", "a": "", "": ""} {
		if term, ok := v.Term(tagged); ok != (want != "") || ok && term.ID != want {
			t.Errorf("%s: got %v", tagged, term)
		}
	}
	if !v.Config().AuditOnly {
		t.Error("the config is lost")
	}
	d := classify(t, v, parseSpec(t, ""))
	if f := d.Ethics[0].Findings; len(f) != 2 || f[0].Term != "a" || f[0].Cause != CauseNoPredicate || f[1].Term != "b" {
		t.Errorf("findings in lexical order: %+v", f)
	}
	if _, ok := d.Finding("safety:a"); ok {
		t.Error("a finding is found in the other layer")
	}
}

// TestObfuscationAlone: a vocabulary that has no phrases still reads the texts.
func TestObfuscationAlone(t *testing.T) {
	t.Parallel()
	v := vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t, termText("x", Escalate, "violated_if: {any: [{obfuscated: true}]}")))
	if v.matcher == nil {
		t.Fatal("the texts are not read")
	}
	if d := classify(t, v, parseSpec(t, "objective: {kind: sft, purpose: plain words}")); d.Outcome != OutcomeAdmit {
		t.Errorf("plain words: %s %+v", d.Outcome, d.Causes)
	}
	if v := vocabulary(t, VocabularyConfig{}, testFloor(t)); v.matcher != nil {
		t.Error("texts are read for nothing")
	}
}

// TestSafetyNeedsStructuredFacts: words only hint in a safety pack.
func TestSafetyNeedsStructuredFacts(t *testing.T) {
	t.Parallel()
	text := textFindings{obfuscations: []textObfuscation{{field: 0}}, hits: []phraseHit{{phrase: 0, field: 1}}}
	spec := parseSpec(t, "objective: {kind: sft, purpose: p, out_of_scope: [q]}")
	for _, tt := range []struct {
		clause clause
		want   value
	}{
		{obfuscationClause{safety: true}, hinted}, {obfuscationClause{}, yesValue},
		{phraseClause{texts: []string{"q"}, safety: true}, hinted}, {phraseClause{texts: []string{"q"}}, yesValue},
		{phraseClause{texts: []string{"q"}, first: 1}, no},
	} {
		f := newFacts(spec.Spec, nil)
		f.fields = textFields(spec.Spec, nil)
		f.keep(text)
		if got := tt.clause.value(&evaluation{facts: f}, wholeSpec); got != tt.want {
			t.Errorf("%+v: got %v, want %v", tt.clause, got, tt.want)
		}
	}
	purpose := newFacts(spec.Spec, nil)
	purpose.fields = textFields(spec.Spec, nil)
	purpose.keep(textFindings{hits: []phraseHit{{phrase: 0, field: 0}}})
	if got := (phraseClause{texts: []string{"p"}}).value(&evaluation{facts: purpose}, wholeSpec); got != hinted {
		t.Errorf("the purpose alone decided: %v", got)
	}
	for _, body := range []string{"{not: {phrases: [x]}}", "{all: [{not: {any: [{obfuscated: true}]}}]}"} {
		_, err := LoadPack("p.yaml", []byte(packText("s", Safety, termText("x", Block, "violated_if: "+body))), NewRegistry())
		if err == nil || !strings.Contains(err.Error(), "not a structured fact") {
			t.Errorf("%s: got %v", body, err)
		}
	}
}

func TestTextsBelongToTheirInput(t *testing.T) {
	t.Parallel()
	spec := parseSpec(t, "objective: {kind: sft, out_of_scope: [s]}\ninputs: [{id: a, kind: dataset, name: a}, {id: b, kind: dataset, name: b}]").Spec
	f := newFacts(spec, nil)
	f.fields = textFields(spec, nil)
	at := map[string]int{}
	for i, field := range f.fields {
		at[field.text] = i
	}
	for text, want := range map[string][]value{"s": {yesValue, yesValue, yesValue}, "a": {yesValue, yesValue, no}, "b": {yesValue, no, yesValue}} {
		f.keep(textFindings{hits: []phraseHit{{field: at[text]}, {field: at[text], start: 1}}})
		if len(f.hits[0]) != 1 {
			t.Errorf("%d hits of one phrase in one text are kept", len(f.hits[0]))
		}
		for input := wholeSpec; input < 2; input++ {
			if got := (phraseClause{texts: []string{"x"}}).value(&evaluation{facts: f}, input); got != want[input+1] {
				t.Errorf("%s at %d: got %v", text, input, got)
			}
		}
	}
}

func TestTextEvidence(t *testing.T) {
	t.Parallel()
	f := newFacts(parseSpec(t, "objective: {kind: sft, purpose: p, out_of_scope: [q, r]}").Spec, nil)
	f.fields = textFields(f.spec, nil)
	f.keep(textFindings{hits: []phraseHit{{phrase: 4, field: 2, start: 3, end: 7}, {phrase: 3, field: 1, start: 1, end: 2}},
		obfuscations: []textObfuscation{{field: 2, start: 5, end: 6}, {field: 2, start: 1, end: 2}}})
	e := &evaluation{facts: f}
	var x explanation
	phraseClause{texts: []string{"three", "four"}, first: 3}.explain(e, wholeSpec, &x)
	obfuscationClause{}.explain(e, wholeSpec, &x)
	want := []Evidence{{Name: "phrase", Value: "three", Pointer: "/objective/out_of_scope/0", Span: &Span{1, 2}},
		{Name: "phrase", Value: "four", Pointer: "/objective/out_of_scope/1", Span: &Span{3, 7}},
		{Name: "obfuscation", Value: textObfuscation{}.kind.String(), Pointer: "/objective/out_of_scope/1", Span: &Span{1, 2}}}
	if diff := cmp.Diff(want, x.evidence); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"the text names it", "text is written so that matching misses it"}, x.reasons); diff != "" {
		t.Error(diff)
	}
	for i := range 3 * maxEvidence {
		x.cite(Evidence{Name: "n", Span: &Span{Start: i}})
	}
	if shown := compactEvidence(x.evidence); len(shown) != maxEvidence+1 || shown[maxEvidence].Name != "more" {
		t.Errorf("%d pieces of evidence are shown", len(shown))
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	reg := NewRegistry()
	p := func(*Spec) Finding { return Finding{} }
	for name, want := range map[string]string{"": "must be 1 to 128", "-a": "must be 1 to 128", "a b": "must be 1 to 128",
		"acknowledge_uncertainty": "is taken", strings.Repeat("a", 129): "must be 1 to 128"} {
		if err := reg.Register(name, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", name, err)
		}
	}
	// A deployment that can check a structural commitment does, under any id that a list may use.
	for _, id := range []string{"no_manipulation", "informed-consent.v2"} {
		if err := reg.Register(id, func(*Spec) Finding { return Finding{State: Violated, Reason: "seen"} }); err != nil {
			t.Fatal(err)
		}
		p, err := LoadPack("p", []byte(`{"schema_version": "1.0.0", "pack_id": "x", "domain": "general", "commitment_ids": ["`+id+`"]}`), reg)
		if err != nil || p.Terms[0].Predicate != id {
			t.Errorf("%s: %v, %+v", id, err, p)
		}
	}
	if err := reg.Register("a", nil); err == nil {
		t.Error("nil was registered")
	}
	if err := errors.Join(reg.Register("a", p), NewRegistry().Register("a", p)); err != nil {
		t.Error(err)
	}
}

// FuzzLoadPack: whatever a pack file holds, it is refused with problems, or it
// compiles and decides.
func FuzzLoadPack(f *testing.F) {
	for _, body := range []string{"violated_if: {tag: {minors: present}}", "violated_if: {fact: split, any_of: [test]}, over: [dataset]", "predicate: respect_user_autonomy",
		`violated_if: {cel: "spec.objective.kind == 'sft'"}`, "violated_if: {any: [{phrases: [a b]}, {not: {obfuscated: true}}]}", "structural: x", "unchecked: hedge"} {
		f.Add([]byte(packText("pledge", Ethics, termText("x", Escalate, body))))
	}
	f.Add([]byte(smallPack))
	f.Add([]byte(`{"schema":"weir/pack/v1","id":"a","x-a":1}`))
	reg := NewRegistry()
	floor, err := LoadPack("f", []byte(packText(FloorID, Safety, termText("floor_term", Block, "violated_if: {fact: objective.kind, has: orpo}"))), reg)
	if err != nil {
		f.Fatal(err)
	}
	spec, err := ParseSpec([]byte(specText("inputs: [{id: a, kind: dataset}]")))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := LoadPack("p", data, reg)
		if err != nil {
			var invalid *InvalidError
			if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			return
		}
		v, err := NewVocabulary(reg, VocabularyConfig{}, floor, p)
		if err != nil {
			return // ids that clash, or hedges without a text
		}
		d, err := Classify(spec, v, testDay)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Classify(spec, v, testDay)
		if err != nil || !reflect.DeepEqual(marshal(t, d), marshal(t, again)) {
			t.Fatalf("decides otherwise the second time: %v", err)
		}
	})
}
