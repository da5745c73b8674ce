package screening

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// flipsOf explains one ethics term on a spec.
func flipOf(t testing.TB, term, extra string) (*ParsedSpec, Flip) {
	t.Helper()
	p := parseSpec(t, extra)
	_, x, err := Explain(p, vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t, term)), testDay)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range x.Flips {
		if strings.HasPrefix(f.Term, "ethics:") {
			return p, f
		}
	}
	return p, Flip{}
}

// shown is a flip in one line.
func shown(f Flip) string {
	var parts []string
	for _, c := range f.Changes {
		s := fmt.Sprintf("%s %s %s", c.Do, c.Pointer, c.Fact)
		if c.From != "" {
			s += " " + c.From
		}
		if len(c.To) > 0 {
			s += " -> " + strings.Join(c.To, "|")
		}
		if len(c.Without) > 0 {
			s += " without " + strings.Join(c.Without, "|")
		}
		if c.Span != nil {
			s += fmt.Sprintf(" [%d,%d)", c.Span.Start, c.Span.End)
		}
		parts = append(parts, s)
	}
	if f.Why != "" {
		parts = append(parts, "("+f.Why+")")
	}
	return strings.Join(parts, "; ")
}

func TestFlips(t *testing.T) {
	t.Parallel()
	const (
		dataset = "inputs: [{id: a, kind: dataset}]"
		mit     = "license: {declared: [{spdx: MIT}]}"
	)
	perInput := func(clause string) string { return termText("x", Block, "over: [dataset], violated_if: "+clause) }
	for _, tt := range []struct{ name, term, spec, want string }{
		{"upheld", perInput("{tag: {minors: present}}"), dataset + "\ndisclosures: [{tag: minors, state: absent, basis: structured}]", ""},
		{"a tag, not stated", perInput("{tag: {minors: present}}"), dataset, "state /disclosures tag.minors -> absent"},
		{"a tag, not known", perInput("{tag: {minors: present}}"), dataset + "\ndisclosures: [{tag: minors, state: unknown, basis: structured}]",
			"state /disclosures/0 tag.minors unknown -> absent"},
		{"a tag, stated twice", perInput("{tag: {minors: present}}"),
			"inputs: [{id: a, kind: dataset, disclosures: [{tag: minors, state: present, basis: structured}]}]\ndisclosures: [{tag: health, state: absent, basis: structured}, {tag: minors, state: present, basis: structured}]",
			"replace /disclosures/1 tag.minors present -> absent; replace /inputs/0/disclosures/0 tag.minors present -> absent"},
		{"a tag, hinted at", perInput("{tag: {minors: present}}"), "inputs: [{id: a, kind: dataset, disclosures: [{tag: minors, state: present, basis: prose}]}]",
			"state /disclosures tag.minors -> absent; remove /inputs/0/disclosures/0 tag.minors present (prose)"},
		{"a tag of a part", perInput("{tag: {minors: present}}"), dataset + "\ndisclosures: [{tag: minors, state: absent, basis: structured, scope: 10 files}]",
			"replace /disclosures/0 tag.minors absent, of a part -> absent"},
		{"a protective tag", perInput("{tag: {consent: absent}}"), dataset, "state /disclosures tag.consent -> present"},
		{"one of several", perInput("{all: [{tag: {minors: present}}, {tag: {health: present}}]}"), dataset, "state /disclosures tag.minors -> absent"},
		{"all of several", perInput("{any: [{tag: {minors: present}}, {tag: {health: present}}]}"), dataset, "state /disclosures tag.minors -> absent; state /disclosures tag.health -> absent"},
		{"what is open before what is stated", perInput("{all: [{tag: {minors: present}}, {tag: {health: present}}]}"), "inputs: [{id: a, kind: dataset, disclosures: [{tag: minors, state: present, basis: structured}]}]",
			"state /disclosures tag.health -> absent"},
		{"the one that is shared", perInput("{any: [{all: [{tag: {minors: present}}, {tag: {health: present}}]}, {all: [{tag: {health: present}}, {tag: {hate: present}}]}]}"), dataset,
			"state /disclosures tag.health -> absent"},
		{"not", perInput("{not: {tag: {consent: present}}}"), dataset, "state /disclosures tag.consent -> present"},
		{"a code", perInput("{fact: consent.status, any_of: [claimed, absent]}"), "inputs: [{id: a, kind: dataset, consent: {status: claimed}}]",
			"replace /inputs/0/consent/status consent.status claimed -> documented|not_applicable"},
		{"a list", termText("x", Block, "violated_if: {fact: objective.purposes, any_of: [hiring, legal]}"), "objective: {kind: sft, purposes: [hiring, speech]}",
			"replace /objective/purposes objective.purposes hiring, speech without hiring"},
		{"a licence", perInput("{fact: license.restrictions, any_of: [nc, nd]}"), "inputs: [{id: a, kind: dataset, license: {declared: [{spdx: CC-BY-NC-4.0}]}}]",
			"replace /inputs/0/license license nc without nc|nd"},
		{"a licence or the purpose of all", perInput("{all: [{fact: license.restrictions, has: nc}, {fact: spec.objective.purposes, has: hiring}]}"),
			"objective: {kind: sft, purposes: [hiring]}\ninputs: [{id: a, kind: dataset, license: {declared: [{spdx: CC-BY-NC-4.0}]}}, {id: b, kind: dataset, license: {declared: [{spdx: CC-BY-NC-4.0}]}}]",
			"replace /objective/purposes objective.purposes hiring without hiring"},
		{"an unidentified licence", perInput("{fact: license.status, has: unidentified}"), "inputs: [{id: a, kind: dataset, license: {declared: [{spdx: MIT}, {raw: house rules}]}}]",
			"state /inputs/0/license/declared/1 license unidentified"},
		{"only the input that is open", perInput("{fact: split, has: test}"), "inputs: [{id: a, kind: dataset, split: train}, {id: b, kind: dataset}]",
			"state /inputs/1/split split -> train|validation|all"},
		{"no data set", perInput("{tag: {minors: present}}"), "inputs: []", "state /inputs inputs"},
		{"words", perInput(`{phrases: ["mustard gas"]}`), "inputs: [{id: a, kind: dataset, description: How mustard gas is made.}]",
			"remove /inputs/0/description phrase mustard gas [4,15)"},
		{"words in two texts", perInput(`{phrases: ["mustard gas"]}`), "inputs: [{id: a, kind: dataset, name: mustard gas, description: How mustard gas is made.}]",
			"remove /inputs/0/name phrase mustard gas [0,11); remove /inputs/0/description phrase mustard gas [4,15)"},
		{"words or a tag", perInput(`{all: [{phrases: ["mustard gas"]}, {tag: {dual_use_cbrn: present}}]}`), "inputs: [{id: a, kind: dataset, name: mustard gas, description: mustard gas}]",
			"state /disclosures tag.dual_use_cbrn -> absent"},
		{"CEL", perInput(`{cel: "input.tags.minors == 'present' && input.split == 'test'"}`), "inputs: [{id: a, kind: dataset, split: test}]", "state /disclosures tag.minors -> absent"},
		{"CEL, both", perInput(`{cel: "input.tags.minors == 'present' || input.split == 'test'"}`), "inputs: [{id: a, kind: dataset, split: test}]",
			"state /disclosures tag.minors -> absent; replace /inputs/0/split split test -> train|validation|all"},
		{"a predicate", termText("x", Block, "predicate: acknowledge_uncertainty"), "evidence: {context: {alignment_score: 0.5, hedge_emitted: false}}",
			"replace /evidence/context/hedge_emitted hedge_emitted false -> true"},
		{"a predicate, silent", termText("x", Block, "predicate: defer_high_stakes_to_human_review"), dataset, "state /evidence/context/high_stakes_topic high_stakes_topic -> false"},
		{"examples", termText("x", Block, "violated_if: {examples: {}}"), "evidence: {examples: {sha256: \"" + strings.Repeat("0", 64) + "\", count: 10, hits: 9}}", "replace /evidence/examples examples"},
		{"structural", termText("x", Observe, "structural: enforced elsewhere"), dataset, "(it cannot be seen in a spec)"},
		{"a failing expression", perInput(`{cel: "int(input.kind) == 1"}`), dataset, "(the check failed; what makes it fail has to be found first)"},
		{"the kind of an input", perInput("{fact: kind, has: dataset}"), dataset, "(no statement was found that changes it; another input would)"},
		{"whole spec", termText("x", Block, "violated_if: {tag: {minors: present}}"), "inputs: [{id: a, kind: dataset, " + mit + "}, {id: b, kind: dataset, disclosures: [{tag: minors, state: absent, basis: structured}]}]",
			"state /disclosures tag.minors -> absent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, f := flipOf(t, tt.term, tt.spec); shown(f) != tt.want {
				t.Errorf("got  %s\nwant %s", shown(f), tt.want)
			}
		})
	}
}

// TestMissingNamesItsTerms: exactly the terms that a statement decides.
func TestMissingNamesItsTerms(t *testing.T) {
	t.Parallel()
	pack := ethicsPack(t, termText("young", Escalate, "over: [dataset], violated_if: {tag: {minors: present}}"),
		termText("either", Escalate, "over: [dataset], violated_if: {all: [{tag: {minors: present}}, {tag: {health: present}}]}"),
		termText("ill", Observe, "over: [dataset], violated_if: {tag: {health: present}}"),
		termText("split", Escalate, "over: [dataset], violated_if: {fact: split, has: test}"))
	d, x, err := Explain(parseSpec(t, "inputs: [{id: a, kind: dataset}]"), vocabulary(t, VocabularyConfig{}, testFloor(t), pack), testDay)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, m := range x.Missing {
		if m.Statement != d.Missing[i] {
			t.Errorf("%v is not %v", m.Statement, d.Missing[i])
		}
		got = append(got, m.Pointer+" "+strings.Join(m.Terms, ","))
	}
	want := []string{"/disclosures ethics:either,ethics:young", "/inputs/0/split ethics:split"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// apply makes changes as a reader of their JSON would, by pointer, fact and value.
func applyChanges(t *rapid.T, s *Spec, changes []Change) {
	removed := map[string]bool{}
	for _, c := range changes {
		in, rest := wholeSpec, c.Pointer
		if after, ok := strings.CutPrefix(c.Pointer, "/inputs/"); ok {
			n, key, _ := strings.Cut(after, "/")
			if _, err := fmt.Sscan(n, &in); err != nil {
				t.Fatal(err)
			}
			rest = "/" + key
		}
		var value string
		if len(c.To) > 0 {
			value = rapid.SampledFrom(c.To).Draw(t, "value")
		}
		if tag, ok := strings.CutPrefix(c.Fact, "tag."); ok {
			list := statements(s, in)
			nth := -1
			if n, ok := strings.CutPrefix(rest, "/disclosures/"); ok {
				if _, err := fmt.Sscan(n, &nth); err != nil {
					t.Fatal(err)
				}
			}
			switch {
			case c.Do == DoRemove:
				removed[c.Pointer] = true
			case nth >= 0:
				(*list)[nth].State, (*list)[nth].Basis, (*list)[nth].Scope = value, "structured", ""
			default:
				*list = append(*list, Disclosure{Tag: tag, State: value, Basis: "structured"})
			}
			continue
		}
		switch c.Fact {
		case "license":
			s.Inputs[in].License = License{Declared: []DeclaredLicense{{SPDX: "MIT"}}, TDM: s.Inputs[in].License.TDM}
		case "license.tdm":
			s.Inputs[in].License.TDM = value
		case "split":
			s.Inputs[in].Split = value
		case "consent.status":
			s.Inputs[in].Consent.Status = value
		case "trust_remote_code":
			yes := value == "yes"
			s.Inputs[in].TrustRemoteCode = &yes
		case "objective.purposes":
			left := slices.DeleteFunc(slices.Clone(s.Objective.Purposes), func(p string) bool { return slices.Contains(c.Without, p) })
			if len(left) == 0 {
				left = []string{"speech"}
			}
			s.Objective.Purposes = left
		case "phrase":
			field := &s.Objective.Purpose
			if in != wholeSpec {
				field = map[string]*string{"/name": &s.Inputs[in].Name, "/description": &s.Inputs[in].Description}[rest]
			}
			*field = (*field)[:c.Span.Start] + (*field)[c.Span.End:]
		default:
			t.Fatalf("what to do about %+v?", c)
		}
	}
	for in := wholeSpec; in < len(s.Inputs); in++ { // last, so that places stay where they were
		list, kept := statements(s, in), []Disclosure(nil)
		for i, d := range *list {
			if !removed[(tagPointer{in, i}).String()] {
				kept = append(kept, d)
			}
		}
		*list = kept
	}
}

func drawFlipClause(t *rapid.T, depth int) string {
	if depth > 0 {
		switch rapid.IntRange(0, 4).Draw(t, "form") {
		case 0:
			return "{all: [" + drawFlipClause(t, depth-1) + ", " + drawFlipClause(t, depth-1) + "]}"
		case 1:
			return "{any: [" + drawFlipClause(t, depth-1) + ", " + drawFlipClause(t, depth-1) + "]}"
		case 2:
			return "{not: {not: " + drawFlipClause(t, depth-1) + "}}"
		}
	}
	return rapid.SampledFrom([]string{"{tag: {minors: present}}", "{tag: {consent: absent}}", "{tag: {health: present, known_bias: absent}}", "{not: {tag: {known_bias: present}}}",
		"{fact: license.tdm, has: reserved}", "{fact: license.restrictions, has: nc}", "{fact: license.status, has: unidentified}", "{fact: trust_remote_code, has: \"yes\"}",
		"{fact: consent.status, any_of: [claimed, absent]}", "{not: {fact: split, any_of: [train, validation]}}", "{fact: spec.objective.purposes, any_of: [hiring, legal]}",
		"{phrases: [mustard gas, nerve agent]}", `{cel: "input.tags.minors == 'present' || input.split == 'test'"}`}).Draw(t, "leaf")
}

// TestFlipsFlip: the changes of a flip, made in the document by pointer and
// value, have the term upheld; no proper subset of them does.
func TestFlipsFlip(t *testing.T) {
	t.Parallel()
	floor := testFloor(t)
	flipped := 0
	rapid.Check(t, func(t *rapid.T) {
		clause := drawFlipClause(t, 2)
		pack, err := LoadPack("p.yaml", []byte(packText("pledge", Ethics, termText("x", Escalate, "over: [dataset, teacher], if_stated: [code], violated_if: "+clause))), NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		v, err := NewVocabulary(NewRegistry(), VocabularyConfig{}, floor, pack)
		if err != nil {
			t.Fatal(err)
		}
		s := drawSpec(t)
		s.Objective.Kind = "sft"
		for i := range s.Inputs {
			s.Inputs[i].Name = rapid.SampledFrom([]string{"", "all about mustard gas", "nothing"}).Draw(t, "name")
			s.Inputs[i].Description = rapid.SampledFrom([]string{"", "a nerve agent and mustard gas", "a nerve a-gent"}).Draw(t, "description")
		}
		s.Inputs = append(s.Inputs, Input{ID: "extra", Kind: "dataset"})
		doc := specJSON(t, s)
		parsed, err := ParseSpec(doc)
		if err != nil {
			t.Fatal(err)
		}
		d, x, err := Explain(parsed, v, testDay)
		if err != nil {
			t.Fatal(err)
		}
		if f, _ := d.Finding("ethics:x"); f.State == Upheld {
			if len(x.Flips) > 0 {
				t.Fatalf("%s: upheld, and yet %v", clause, x.Flips)
			}
			return
		}
		flip := x.Flips[0]
		if len(flip.Changes) == 0 {
			t.Fatalf("%s: no flip: %s\n%s", clause, flip.Why, doc)
		}
		flipped++
		for subset := range 1 << min(len(flip.Changes), 7) {
			var changes []Change
			for i, c := range flip.Changes {
				if i >= 7 || subset&(1<<i) != 0 {
					changes = append(changes, c)
				}
			}
			all := len(changes) == len(flip.Changes)
			again, err := ParseSpec(doc)
			if err != nil {
				t.Fatal(err)
			}
			applyChanges(t, again.Spec, changes)
			again.coded = again.Spec.code()
			e := v.begin(again)
			upheld := e.answers[0].result == resultUpheld
			v.end(e)
			if upheld != all {
				t.Fatalf("%s: with %d of %d changes upheld is %t: %s\n%s", clause, len(changes), len(flip.Changes), upheld, shown(Flip{Changes: changes}), doc)
			}
		}
	})
	if flipped == 0 {
		t.Error("nothing was flipped")
	}
}

// TestExplainOfManyInputs: a large spec of which nothing is known is explained soon.
func TestExplainOfManyInputs(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("inputs:\n")
	for i := range maxInputs {
		fmt.Fprintf(&b, "  - {id: i%d, kind: dataset, license: {declared: [{spdx: CC-BY-NC-4.0}]}}\n", i)
	}
	p := parseSpec(t, b.String())
	var terms []string
	for i := range 10 {
		terms = append(terms, termText(fmt.Sprintf("t%d", i), Escalate, "over: [dataset], violated_if: {any: [{fact: license.restrictions, has: nc}, {all: [{tag: {minors: present}}, {tag: {health: present}}]}]}"))
	}
	terms = append(terms, termText("whole", Escalate, "violated_if: {tag: {minors: present}}"),
		termText("expression", Escalate, `violated_if: {cel: "spec.inputs.exists(i, i.tags.minors == 'present' && i.split == 'test')"}`))
	v := vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t, terms...))
	start := time.Now()
	_, x, err := Explain(p, v, testDay)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	if took > soon || len(x.Flips) != 12 {
		t.Errorf("took %s for %d flips", took, len(x.Flips))
	}
}

func BenchmarkExplain(b *testing.B) {
	p := parseSpec(b, "inputs: [{id: a, kind: dataset, license: {declared: [{spdx: CC-BY-NC-4.0}]}}]")
	v := vocabulary(b, VocabularyConfig{}, testFloor(b), ethicsPack(b,
		termText("x", Escalate, "over: [dataset], violated_if: {any: [{fact: license.restrictions, has: nc}, {all: [{tag: {minors: present}}, {tag: {health: present}}]}]}")))
	for b.Loop() {
		if _, _, err := Explain(p, v, testDay); err != nil {
			b.Fatal(err)
		}
	}
}
