package screening

import (
	"fmt"
	"strings"
	"testing"
)

func TestTags(t *testing.T) {
	t.Parallel()
	if len(tags) != numTags {
		t.Fatalf("numTags is %d, there are %d tags", numTags, len(tags))
	}
	for i, tag := range tags {
		if i > 0 && tags[i-1].name >= tag.name {
			t.Errorf("%s is out of order", tag.name)
		}
		protective := tag.name == "consent" || tag.name == "deidentified" || tag.name == "known_limits" || tag.name == "known_bias"
		if tag.protective != protective || tag.means == "" {
			t.Errorf("%+v", tag)
		}
	}
}

// states are written as for a hazard; st turns them round for a protective tag.
type st struct{ spec, d1, d2 string }

func (s st) text(tag string, protective bool) string {
	list := func(states string) string {
		var out []string
		for word := range strings.FieldsSeq(states) {
			state, basis, ok := strings.Cut(word, "/")
			if !ok {
				basis = "structured"
			}
			switch {
			case protective && state == "present":
				state = "absent"
			case protective && state == "absent":
				state = "present"
			}
			out = append(out, fmt.Sprintf("{tag: %s, state: %s, basis: %s}", tag, state, basis))
		}
		return "disclosures: [" + strings.Join(out, ", ") + "]"
	}
	return list(s.spec) + fmt.Sprintf("\ninputs:\n- {id: d1, kind: dataset, %s}\n- {id: d2, kind: dataset, %s}", list(s.d1), list(s.d2))
}

func TestTagTable(t *testing.T) {
	t.Parallel()
	const hint = "hint"
	for _, tt := range []struct {
		name                 string
		in                   st
		wantSpec, wantD1, d2 string // state, and hint
		pointer              string // of the spec's state
	}{
		{"nothing said", st{}, "not_assessed", "not_assessed", "not_assessed", ""},
		{"not_assessed says nothing", st{"not_assessed", "absent", "not_assessed"}, "not_assessed", "absent", "not_assessed", ""},
		{"the spec speaks for every input", st{"absent", "", ""}, "absent", "absent", "absent", "/disclosures/0"},
		// one level: structured present or absent beats unknown, and the worse of two holds
		{"absent beats unknown at one level", st{"unknown absent", "", ""}, "absent", "absent", "absent", "/disclosures/1"},
		{"absent beats placeholder at one level", st{"absent placeholder", "", ""}, "absent", "absent", "absent", "/disclosures/0"},
		{"present beats absent at one level", st{"absent present", "", ""}, "present", "present", "present", "/disclosures/1"},
		{"present beats unknown at one level", st{"present unknown", "", ""}, "present", "present", "present", "/disclosures/0"},
		{"unknown beats nothing", st{"not_assessed unknown", "", ""}, "unknown", "unknown", "unknown", "/disclosures/1"},
		{"the first of two alike is cited", st{"absent absent", "", ""}, "absent", "absent", "absent", "/disclosures/0"},
		// across levels the worse holds
		{"an input is worse", st{"absent", "present", ""}, "present", "present", "absent", "/inputs/0/disclosures/0"},
		{"an input is unknown", st{"absent", "unknown", ""}, "unknown", "unknown", "absent", "/inputs/0/disclosures/0"},
		{"an input is a placeholder", st{"absent", "", "placeholder"}, "unknown", "absent", "unknown", "/inputs/1/disclosures/0"},
		{"the spec is worse", st{"present", "absent", "absent"}, "present", "present", "present", "/disclosures/0"},
		{"the spec is unknown", st{"unknown", "absent", "present"}, "present", "unknown", "present", "/inputs/1/disclosures/0"},
		// the whole
		{"one input does not speak for another", st{"", "absent", ""}, "not_assessed", "absent", "not_assessed", ""},
		{"both inputs", st{"", "absent", "absent"}, "absent", "absent", "absent", "/inputs/0/disclosures/0"},
		{"a worse input is enough", st{"", "present", ""}, "present", "present", "not_assessed", "/inputs/0/disclosures/0"},
		{"an unknown input is enough", st{"", "unknown", ""}, "unknown", "unknown", "not_assessed", "/inputs/0/disclosures/0"},
		// prose and inference
		{"prose does not clear", st{"absent/prose", "", ""}, "not_assessed", "not_assessed", "not_assessed", ""},
		{"inference does not clear", st{"unknown absent/inferred", "", ""}, "unknown", "unknown", "unknown", "/disclosures/0"},
		{"prose hints", st{"present/prose", "", ""}, "not_assessed hint", "not_assessed hint", "not_assessed hint", ""},
		{"inference hints against a statement", st{"absent", "present/inferred", ""}, "absent hint", "absent hint", "absent", "/disclosures/0"},
		{"prose without an answer is nothing", st{"unknown/prose placeholder/prose not_assessed/prose", "", ""}, "not_assessed", "not_assessed", "not_assessed", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, tag := range []string{"minors", "consent"} {
				ti := tagIndex[tag]
				protective := tags[ti].protective
				f := newFacts(parseSpec(t, tt.in.text(tag, protective)).Spec, nil)
				for row, want := range []string{tt.wantSpec, tt.wantD1, tt.d2} {
					state := f.tags[row].state(ti)
					got := stateName(state)
					if protective && (state == present || state == absent) {
						got = stateName(present + absent - state)
					}
					if f.tags[row].hint&(1<<ti) != 0 {
						got += " " + hint
					}
					if got != want {
						t.Errorf("%s, row %d: got %s, want %s", tag, row, got, want)
					}
				}
				if at := f.statedAt(ti, wholeSpec); f.tags[0].state(ti) != notAssessed && at.String() != tt.pointer {
					t.Errorf("%s: decided at %s, want %s", tag, at, tt.pointer)
				}
			}
		})
	}
}

func TestTagClause(t *testing.T) {
	t.Parallel()
	const hint = " because of a hint"
	for _, tt := range []struct {
		states          string // of the spec
		present, absent string // finding of {tag: present} and of {tag: absent}
	}{
		{"", "not_checkable", "not_checkable"},
		{"not_assessed", "not_checkable", "not_checkable"},
		{"unknown", "not_checkable", "not_checkable"},
		{"placeholder", "not_checkable", "not_checkable"},
		{"present", "violated", "upheld"},
		{"absent", "upheld", "violated"},
		{"present/prose", "not_checkable" + hint, "not_checkable" + hint},
		{"absent/prose", "not_checkable", "not_checkable"},
		{"absent present/prose", "not_checkable" + hint, "not_checkable" + hint},
		{"present present/prose", "violated", "upheld"},
		{"present absent/prose", "violated", "upheld"},
	} {
		for state, want := range map[string]string{"present": tt.present, "absent": tt.absent} {
			p := parseSpec(t, st{spec: tt.states}.text("minors", false))
			f := findingOf(t, termText("x", Escalate, "over: [dataset], violated_if: {tag: {minors: "+state+"}}"), p)
			got := string(f.State)
			if f.Cause == CauseHint {
				got += hint
			}
			if got != want {
				t.Errorf("%q asked for %s: got %s, want %s", tt.states, state, got, want)
			}
			if f.State == Violated && (len(f.Evidence) == 0 || f.Evidence[0].Pointer != "/disclosures/0") {
				t.Errorf("%q asked for %s: evidence %+v", tt.states, state, f.Evidence)
			}
		}
	}
}

// TestHintedEvidence: a finding because of a hint shows where the hint stands.
func TestHintedEvidence(t *testing.T) {
	t.Parallel()
	p := parseSpec(t, st{"absent", "present/prose", "unknown"}.text("minors", false))
	f := findingOf(t, termText("x", Escalate, "over: [dataset], violated_if: {tag: {minors: present}}"), p)
	want := []Evidence{{Name: "tag.minors", Value: "present (hint)", Pointer: "/inputs/0/disclosures/0"},
		{Name: "tag.minors", Value: "unknown", Pointer: "/inputs/1/disclosures/0"}}
	if fmt.Sprint(f.Evidence) != fmt.Sprint(want) || f.Cause != CauseHint {
		t.Errorf("got %s %+v", f.Cause, f.Evidence)
	}
	if fmt.Sprint(f.Inputs) != "[{d1 not_checkable} {d2 not_checkable}]" {
		t.Errorf("got %v", f.Inputs)
	}
}
