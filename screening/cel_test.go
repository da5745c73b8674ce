package screening

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCELFollowsKleene(t *testing.T) {
	t.Parallel()
	// health present, minors absent, violent unknown, hate not stated;
	// restrictions: nc and something unknown; split and tdm not stated.
	spec := `
objective: {kind: sft, purposes: [research]}
disclosures:
  - {tag: health, state: present, basis: structured}
  - {tag: minors, state: absent, basis: structured}
  - {tag: violent, state: unknown, basis: structured}
  - {tag: self_harm, state: present, basis: prose}
inputs:
  - id: d1
    kind: dataset
    license: {declared: [{spdx: CC-BY-NC-4.0}], restrictions: [unknown]}
    consent: {status: documented}
    shape: {modalities: [text, image]}`
	const yes, nope, open = Violated, Upheld, NotCheckable
	for _, tt := range []struct {
		expr  string
		want  State
		cause Cause
	}{
		{`input.tags.health == 'present'`, yes, ""},
		{`input.tags['health'] == 'present'`, yes, ""},
		{`input.tags.minors == 'present'`, nope, ""},
		{`input.tags.violent == 'present'`, open, CauseNoEvidence},
		{`input.tags.hate == 'present'`, open, CauseNoEvidence},
		{`input.tags.hate != 'present'`, open, CauseNoEvidence},
		{`input.tags.self_harm == 'present'`, open, CauseHint},
		{`input.tags.hate == 'present' || input.tags.self_harm == 'present'`, open, CauseHint},
		// or
		{`input.tags.hate == 'present' || input.tags.health == 'present'`, yes, ""},
		{`input.tags.health == 'present' || input.tags.hate == 'present'`, yes, ""},
		{`input.tags.hate == 'present' || input.tags.minors == 'present'`, open, CauseNoEvidence},
		// and
		{`input.tags.hate == 'present' && input.tags.minors == 'present'`, nope, ""},
		{`input.tags.minors == 'present' && input.tags.hate == 'present'`, nope, ""},
		{`input.tags.hate == 'present' && input.tags.health == 'present'`, open, CauseNoEvidence},
		// not
		{`!(input.tags.hate == 'present')`, open, CauseNoEvidence},
		// has
		{`has(input.tags.health)`, yes, ""},
		{`has(input.tags.hate)`, open, CauseNoEvidence},
		{`has(input.license.tdm) && input.license.tdm == 'reserved'`, open, CauseNoEvidence},
		{`has(input.consent.status)`, yes, ""},
		// lists that may hold more than is known
		{`'nc' in input.license.restrictions`, yes, ""},
		{`'nd' in input.license.restrictions`, open, CauseNoEvidence},
		{`!('nd' in input.license.restrictions)`, open, CauseNoEvidence},
		{`input.license.restrictions.exists(r, r == 'nc')`, yes, ""},
		{`input.license.restrictions.exists(r, r == 'nd')`, open, CauseNoEvidence},
		{`input.license.restrictions.all(r, r == 'nc')`, open, CauseNoEvidence},
		{`input.license.restrictions.all(r, r == 'nd')`, nope, ""},
		{`size(input.license.restrictions) == 1`, open, CauseNoEvidence},
		{`input.license.restrictions.size() == 1`, open, CauseNoEvidence},
		{`input.license.restrictions == ['nc']`, open, CauseError}, // a set has no order to compare
		{`input.license.restrictions.filter(r, r == 'nd').size() > 0`, open, CauseNoEvidence},
		{`input.license.restrictions.exists_one(r, r == 'nc')`, open, CauseNoEvidence},
		// lists that are known
		{`'image' in input.shape.modalities`, yes, ""},
		{`'audio' in input.shape.modalities`, nope, ""},
		{`input.shape.modalities.all(m, m in ['text', 'image'])`, yes, ""},
		{`size(input.shape.modalities) == 2`, yes, ""},
		// a list that is not stated
		{`input.shape.languages.exists(l, l == 'de')`, open, CauseNoEvidence},
		{`'de' in input.shape.languages`, open, CauseNoEvidence},
		{`size(input.shape.languages) == 0`, open, CauseNoEvidence},
		// ternary
		{`input.tags.health == 'present' ? true : input.tags.hate == 'present'`, yes, ""},
		{`input.tags.minors == 'present' ? true : input.tags.hate == 'present'`, open, CauseNoEvidence},
		{`input.tags.hate == 'present' ? true : false`, open, CauseNoEvidence},
		// the spec, and the inputs from it
		{`'research' in spec.objective.purposes`, yes, ""},
		{`spec.objective.kind == 'dpo'`, nope, ""},
		{`spec.tags.health == 'present'`, yes, ""},
		{`spec.inputs.exists(i, i.tags.health == 'present')`, yes, ""},
		{`spec.inputs.exists(i, i.kind == 'teacher' && i.consent.status == 'absent')`, nope, ""},
		{`spec.inputs.all(i, i.split == 'train')`, open, CauseNoEvidence},
		// failures
		{`int(input.kind) == 1 || input.tags.health == 'present'`, yes, ""},
		{`int(input.kind) == 1 && input.tags.minors == 'present'`, nope, ""},
		{`int(input.kind) == 1 || input.tags.hate == 'present'`, open, CauseNoEvidence},
		{`int(input.kind) == 1`, open, CauseError},
		{`[1, 2][5] == 1 && input.kind == 'dataset'`, open, CauseError},
	} {
		t.Run(tt.expr, func(t *testing.T) {
			t.Parallel()
			f := findingOf(t, termText("x", Escalate, "over: [dataset], violated_if: {cel: \""+tt.expr+"\"}"), parseSpec(t, spec))
			if f.State != tt.want || f.Cause != tt.cause {
				t.Errorf("got %s %s (%s), want %s %s", f.State, f.Cause, f.Reason, tt.want, tt.cause)
			}
			if IsBlank(f.Reason) {
				t.Error("no reason is given")
			}
			if f.State == Violated && len(f.Evidence) == 0 {
				t.Error("violated without evidence")
			}
		})
	}
}

func TestCELAtLoad(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, over, expr, want string }{
		{"unknown fact", "[dataset]", "input.licence == 'x'", "names input.licence, which is not a fact"},
		{"unknown tag", "[dataset]", "input.tags.minor == 'present'", "names input.tags.minor"},
		{"unknown fact of the spec", "[]", "spec.purpose == 'x'", "names spec.purpose"},
		{"fact of an input at the spec", "[]", "spec.consent.status == 'x'", "names spec.consent.status"},
		{"fact of the spec at an input", "[dataset]", "input.objective.kind == 'x'", "names input.objective.kind"},
		{"unknown fact of a macro's variable", "[]", "spec.inputs.exists(i, i.licence == 'x')", "names inputs.licence"},
		{"unknown fact in has", "[dataset]", "has(input.tag)", "names input.tag"},
		{"group of facts", "[dataset]", "input.license == {}", "names input.license"},
		{"place in a list", "[dataset]", "input.sources.kind[0] == 'x'", "names input.sources.kind.0"},
		{"whole input", "[dataset]", "input == input", "uses input as a value"},
		{"computed key", "[dataset]", "input['ki' + 'nd'] == 'x'", "uses input as a value"},
		{"macro over an input", "[dataset]", "input.all(k, false)", "uses input as a value"},
		{"input without over", "[]", "input.kind == 'x'", "does not compile"},
		{"syntax", "[dataset]", "input.kind ==", "does not compile"},
		{"not a truth", "[dataset]", "1 + 1", "it must give true"},
		{"constant", "[dataset]", "1 == 1", "names no fact"},
		{"too long", "[dataset]", "input.kind == '" + strings.Repeat("x", 5000) + "'", "longer than 4 KiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := packText("pledge", Ethics, termText("x", Escalate, "over: "+tt.over+", violated_if: {cel: \""+tt.expr+"\"}"))
			_, err := LoadPack("p.yaml", []byte(text), NewRegistry())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCELCostLimitEscalates(t *testing.T) {
	t.Parallel()
	var inputs strings.Builder
	inputs.WriteString("inputs:\n")
	for range 150 {
		inputs.WriteString("  - {id: d" + strings.Repeat("x", inputs.Len()%100+1) + strings.Repeat("y", inputs.Len()%7) + ", kind: dataset}\n")
	}
	doc := inputs.String()
	for i := range 150 { // ids have to differ
		doc = strings.Replace(doc, "{id: d", "{id: i"+strings.Repeat("z", i%10)+string(rune('a'+i/10))+"-", 1)
	}
	const expr = "spec.inputs.all(a, spec.inputs.all(b, spec.inputs.all(c, a.kind == b.kind && b.kind == c.kind)))"
	for _, response := range []Response{Observe, Hedge, Escalate, Block} {
		pack := ethicsPack(t, termText("x", response, "violated_if: {cel: \""+expr+"\"}"),
			termText("control", Escalate, "violated_if: {fact: objective.kind, has: ppo}"))
		d := classify(t, vocabulary(t, VocabularyConfig{}, testFloor(t), pack), parseSpec(t, doc))
		f, _ := d.Finding("ethics:x")
		if d.Outcome != OutcomeEscalate || f.Cause != CauseError {
			t.Errorf("response %s: got %s with %s (%s), want an escalation with error", response, d.Outcome, f.Cause, f.Reason)
		}
	}
}

func TestCELNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	f := findingOf(t, termText("x", Escalate, `over: [dataset], violated_if: {cel: "input.license.tdm == 'reserved' || input.tags.minors == 'present'"}`),
		parseSpec(t, "inputs: [{id: d1, kind: dataset}]"))
	want := [][][]Statement{{{
		{"/inputs/0/license/tdm", "license: {tdm: not_reserved}"},
		{"/disclosures", "{tag: minors, state: present|absent, basis: structured}"},
	}}}
	if diff := cmp.Diff(want, f.open); diff != "" {
		t.Error(diff)
	}
}
