package screening

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

var someTags = []string{"minors", "consent", "health", "known_bias"}

func drawDisclosures(t *rapid.T, label string) []Disclosure {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Disclosure {
		return Disclosure{Tag: rapid.SampledFrom(someTags).Draw(t, "tag"), State: rapid.SampledFrom(stateCodes).Draw(t, "state"),
			Basis: rapid.SampledFrom(basisCodes).Draw(t, "basis"), Detail: rapid.SampledFrom([]string{"", "see \"notes\"\n", "ü😀"}).Draw(t, "detail")}
	}), 0, 3).Draw(t, label)
}

func drawSpec(t *rapid.T) *Spec {
	s := &Spec{Schema: SpecSchema, RunRef: "r", Owner: "ana", DisclosureStatement: rapid.SampledFrom([]string{"It may err.", "perhaps it errs"}).Draw(t, "statement"),
		Objective: Objective{Kind: rapid.SampledFrom(objectiveKinds).Draw(t, "objective"),
			Purposes: rapid.SliceOfN(rapid.SampledFrom(purposeCodes), 0, 2).Draw(t, "purposes")},
		Disclosures: drawDisclosures(t, "disclosures")}
	for i := range rapid.IntRange(0, 3).Draw(t, "inputs") {
		in := Input{ID: fmt.Sprintf("i%d", i), Kind: rapid.SampledFrom(inputKinds).Draw(t, "kind"), Disclosures: drawDisclosures(t, "input disclosures")}
		in.License.TDM = rapid.SampledFrom(append(tdmCodes, "")).Draw(t, "tdm")
		in.Split = rapid.SampledFrom(append(splitCodes, "")).Draw(t, "split")
		for _, raw := range rapid.SliceOfN(rapid.SampledFrom([]string{"MIT", "CC-BY-NC-4.0", "other", "MIT OR GPL-3.0-only", ""}), 0, 2).Draw(t, "licences") {
			in.License.Declared = append(in.License.Declared, DeclaredLicense{Raw: raw})
		}
		if rapid.Bool().Draw(t, "remote code stated") {
			yes := rapid.Bool().Draw(t, "remote code")
			in.TrustRemoteCode = &yes
		}
		if rapid.Bool().Draw(t, "lineage stated") {
			in.Lineage = &Lineage{}
		}
		s.Inputs = append(s.Inputs, in)
	}
	return s
}

// drawClause gives a clause in flow YAML; the leaves ask for the worse answer,
// so that worse facts never clear it.
func drawClause(t *rapid.T, depth int) string {
	if depth > 0 {
		switch rapid.IntRange(0, 3).Draw(t, "form") {
		case 0:
			return "{all: [" + drawClause(t, depth-1) + ", " + drawClause(t, depth-1) + "]}"
		case 1:
			return "{any: [" + drawClause(t, depth-1) + ", " + drawClause(t, depth-1) + "]}"
		}
	}
	return rapid.SampledFrom([]string{"{tag: {minors: present}}", "{tag: {consent: absent}}", "{tag: {health: present, known_bias: absent}}",
		"{fact: license.tdm, has: reserved}", "{fact: license.restrictions, has: nc}", "{fact: trust_remote_code, has: \"yes\"}",
		`{cel: "input.tags.minors == 'present' || input.split == 'test'"}`}).Draw(t, "leaf")
}

func drawTerm(t *rapid.T, id string, responses ...Response) string {
	r := rapid.SampledFrom(responses).Draw(t, "response")
	body := "over: [dataset, teacher], violated_if: " + drawClause(t, 2)
	if r < Block {
		if u := rapid.SampledFrom([]string{"", "observe", "hedge", "escalate"}).Draw(t, "unchecked"); u != "" {
			body += ", unchecked: " + u
		}
	}
	return termText(id, r, body)
}

func drawPacks(t *rapid.T, floor *Pack) []*Pack {
	packs := []*Pack{floor}
	for i := range rapid.IntRange(0, 3).Draw(t, "packs") {
		var terms []string
		for j := range rapid.IntRange(1, 3).Draw(t, "terms") {
			terms = append(terms, drawTerm(t, fmt.Sprintf("p%d_t%d", i, j), Observe, Hedge, Escalate, Block))
		}
		text := packText(fmt.Sprintf("p%d", i), Ethics, terms...)
		p, err := LoadPack("p.yaml", []byte(text), NewRegistry())
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		packs = append(packs, p)
	}
	return packs
}

func decide(t *rapid.T, packs []*Pack, doc []byte) *Decision {
	v, err := NewVocabulary(NewRegistry(), VocabularyConfig{}, packs...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParseSpec(doc)
	if err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	d, err := Classify(p, v, testDay)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func specJSON(t *rapid.T, s *Spec) []byte {
	doc, err := jsonv2.Marshal(s, jsonv2.Deterministic(true), jsonv2.OmitZeroStructFields(true))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// shuffled writes a JSON document with the members of every object in a drawn order.
func shuffled(t *rapid.T, doc []byte) []byte {
	var v any
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var write func(v any) string
	write = func(v any) string {
		switch v := v.(type) {
		case map[string]any:
			keys := make([]string, 0, len(v))
			for k := range v {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			var members []string
			for _, k := range rapid.Permutation(keys).Draw(t, "order") {
				members = append(members, fmt.Sprintf("%q : %s", k, write(v[k])))
			}
			return "{" + strings.Join(members, ",\n") + "}"
		case []any:
			var items []string
			for _, x := range v {
				items = append(items, write(x))
			}
			return "[ " + strings.Join(items, ", ") + "]"
		}
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	return []byte(write(v))
}

// TestDecisionIsDeterministic: order of packs, of keys, and JSON or YAML change
// nothing but the digest of the bytes.
func TestDecisionIsDeterministic(t *testing.T) {
	t.Parallel()
	floor := testFloor(t)
	rapid.Check(t, func(t *rapid.T) {
		packs, doc := drawPacks(t, floor), specJSON(t, drawSpec(t))
		first := decide(t, packs, doc)
		want, err := MarshalDecision(first)
		if err != nil {
			t.Fatal(err)
		}
		same := decide(t, rapid.Permutation(packs).Draw(t, "pack order"), doc)
		if got, _ := MarshalDecision(same); !bytes.Equal(got, want) {
			t.Fatalf("packs in another order decide otherwise:\n%s\n%s", want, got)
		}
		var any any
		if err := json.Unmarshal(doc, &any); err != nil {
			t.Fatal(err)
		}
		inYAML, err := yaml.Marshal(any)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range [][]byte{shuffled(t, doc), inYAML} {
			d := decide(t, packs, other)
			if d.CanonicalSHA256 != first.CanonicalSHA256 || d.SpecSHA256 != Sum(other) {
				t.Fatalf("digests of\n%s", other)
			}
			d.SpecSHA256 = first.SpecSHA256
			if got, _ := MarshalDecision(d); !bytes.Equal(got, want) {
				t.Fatalf("another form decides otherwise:\n%s\n%s\n%s", other, want, got)
			}
		}
	})
}

// places of a spec at which disclosures are made.
func places(s *Spec) []*[]Disclosure {
	out := []*[]Disclosure{&s.Disclosures}
	for i := range s.Inputs {
		out = append(out, &s.Inputs[i].Disclosures)
	}
	return out
}

// strict gives a pack whose terms all escalate when unchecked, beside one that is always checkable.
func strict(t *rapid.T, floor *Pack) []*Pack {
	var terms []string
	for j := range rapid.IntRange(1, 3).Draw(t, "terms") {
		r := rapid.SampledFrom([]Response{Escalate, Block}).Draw(t, "response")
		terms = append(terms, termText(fmt.Sprintf("t%d", j), r, "over: [dataset, teacher], violated_if: "+drawClause(t, 2)))
	}
	terms = append(terms, termText("control", Escalate, "violated_if: {fact: base_model.stated, has: \"yes\"}"))
	p, err := LoadPack("p.yaml", []byte(packText("pledge", Ethics, terms...)), NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return []*Pack{floor, p}
}

// TestSilenceIsNeverBetter: leaving a statement out, or saying that it is not
// known, never turns an escalation or a block into an admission.
func TestSilenceIsNeverBetter(t *testing.T) {
	t.Parallel()
	floor := testFloor(t)
	rapid.Check(t, func(t *rapid.T) {
		packs, s := strict(t, floor), drawSpec(t)
		before := decide(t, packs, specJSON(t, s))
		ps := places(s)
		at := ps[rapid.IntRange(0, len(ps)-1).Draw(t, "place")]
		switch what := rapid.SampledFrom([]string{"unknown", "silence", "tdm", "licence", "code", "prose"}).Draw(t, "change"); what {
		case "unknown", "prose":
			d := Disclosure{Tag: rapid.SampledFrom(someTags).Draw(t, "tag"), State: "unknown", Basis: "structured"}
			if what == "prose" {
				d.State, d.Basis = rapid.SampledFrom(stateCodes).Draw(t, "state"), "prose"
			}
			*at = append(*at, d)
		case "silence": // one statement less may be the bad one of two; none is not
			tag := rapid.SampledFrom(someTags).Draw(t, "tag")
			for _, at := range ps {
				*at = slices.DeleteFunc(*at, func(d Disclosure) bool { return d.Tag == tag })
			}
		default:
			for i := range s.Inputs {
				switch what {
				case "tdm":
					s.Inputs[i].License.TDM = ""
				case "licence":
					s.Inputs[i].License.Declared = nil
				case "code":
					s.Inputs[i].TrustRemoteCode = nil
				}
			}
		}
		after := decide(t, packs, specJSON(t, s))
		if after.Outcome == OutcomeAdmit && before.Outcome != OutcomeAdmit {
			t.Fatalf("%s became %s", before.Outcome, after.Outcome)
		}
	})
}

// TestWorseIsNeverMilder: a structured statement made worse never gives a milder outcome.
func TestWorseIsNeverMilder(t *testing.T) {
	t.Parallel()
	floor := testFloor(t)
	rapid.Check(t, func(t *rapid.T) {
		packs, s := strict(t, floor), drawSpec(t)
		ps := places(s)
		at := ps[rapid.IntRange(0, len(ps)-1).Draw(t, "place")]
		tag := rapid.SampledFrom(someTags).Draw(t, "tag")
		states := []string{"absent", "unknown", "present"} // from the harmless end
		if tags[tagIndex[tag]].protective {
			slices.Reverse(states)
		}
		// One statement about the tag at this place, in all three states.
		*at = slices.DeleteFunc(*at, func(d Disclosure) bool { return d.Tag == tag })
		*at = append(*at, Disclosure{Tag: tag, Basis: "structured"})
		var last Outcome
		for _, state := range states {
			(*at)[len(*at)-1].State = state
			d := decide(t, packs, specJSON(t, s))
			if d.Outcome < last {
				t.Fatalf("%s %s gives %s, a better state gave %s", tag, state, d.Outcome, last)
			}
			last = d.Outcome
		}
	})
}

// TestFailureNeverAdmits: whatever else a vocabulary says, a predicate that fails escalates at least.
func TestFailureNeverAdmits(t *testing.T) {
	t.Parallel()
	floor := testFloor(t)
	rapid.Check(t, func(t *rapid.T) {
		reg := NewRegistry()
		fails := rapid.SampledFrom([]Predicate{
			func(*Spec) Finding { panic("boom") },
			func(*Spec) Finding { return Finding{} },
			func(*Spec) Finding { return Finding{State: NotCheckable, Cause: CauseError} },
		}).Draw(t, "failure")
		if err := reg.Register("fails", fails); err != nil {
			t.Fatal(err)
		}
		response := rapid.SampledFrom([]Response{Observe, Hedge, Escalate, Block}).Draw(t, "response")
		failing := termText("failing", response, "predicate: fails")
		if rapid.Bool().Draw(t, "in CEL") {
			failing = termText("failing", response, `violated_if: {cel: "int(spec.objective.kind) == 1"}`)
		}
		p, err := LoadPack("p.yaml", []byte(packText("broken", Ethics, failing)), reg)
		if err != nil {
			t.Fatal(err)
		}
		v, err := NewVocabulary(reg, VocabularyConfig{}, append(drawPacks(t, floor), p)...)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := ParseSpec(specJSON(t, drawSpec(t)))
		if err != nil {
			t.Fatal(err)
		}
		d, err := Classify(parsed, v, testDay)
		if err != nil || d.Outcome < OutcomeEscalate {
			t.Fatalf("got %v %v", d, err)
		}
	})
}

// TestMissingIsEnough: stating what a decision says is missing, each in its
// harmless form, leaves nothing undecided that a statement could decide.
func TestMissingIsEnough(t *testing.T) {
	t.Parallel()
	floor := testFloor(t)
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		s.Objective.Kind = "sft"
		s.Inputs = append(s.Inputs, Input{ID: "extra", Kind: "dataset"})
		for _, at := range places(s) {
			*at = slices.DeleteFunc(*at, func(d Disclosure) bool {
				return d.Basis != "structured" || d.State != "absent" || tags[tagIndex[d.Tag]].protective
			})
		}
		var clause string
		for clause == "" || strings.Contains(clause, "cel") || strings.Contains(clause, "license") || strings.Contains(clause, "trust") {
			clause = drawClause(t, 2)
		}
		p, err := LoadPack("p.yaml", []byte(packText("pledge", Ethics, termText("x", Escalate, "over: [dataset], violated_if: "+clause))), NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		packs := []*Pack{floor, p}
		for _, m := range decide(t, packs, specJSON(t, s)).Missing {
			tag, _, _ := strings.Cut(strings.TrimPrefix(m.Say, "{tag: "), ",")
			state := "absent"
			if tags[tagIndex[tag]].protective {
				state = "present"
			}
			s.Disclosures = append(s.Disclosures, Disclosure{Tag: tag, State: state, Basis: "structured"})
		}
		if d := decide(t, packs, specJSON(t, s)); d.Outcome != OutcomeAdmit {
			t.Fatalf("%s: still %s, missing %v", clause, d.Outcome, d.Missing)
		}
	})
}
