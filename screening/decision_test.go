package screening

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stateful gives terms whose finding is chosen by the test.
func stateful(t *testing.T, findings map[string]Finding) *Registry {
	t.Helper()
	reg := NewRegistry()
	for name, f := range findings {
		if err := reg.Register(name, func(*Spec) Finding { return f }); err != nil {
			t.Fatal(err)
		}
	}
	return reg
}

// TestEffectOfOneFinding goes through response × finding × cause × setting and
// holds the fold's outcome against DESIGN's rules.
func TestEffectOfOneFinding(t *testing.T) {
	t.Parallel()
	findings := map[string]Finding{
		"violated": {State: Violated, Reason: "r"}, "upheld": {State: Upheld, Reason: "r"},
		"no_evidence": {State: NotCheckable, Cause: CauseNoEvidence, Reason: "r"}, "hint": {State: NotCheckable, Cause: CauseHint, Reason: "r"},
		"structural": {State: NotCheckable, Cause: CauseStructural, Reason: "r"}, "no_predicate": {State: NotCheckable, Cause: CauseNoPredicate, Reason: "r"},
		"error": {State: NotCheckable, Cause: CauseError, Reason: "r"},
	}
	reg := stateful(t, findings)
	if err := reg.Register("control", func(*Spec) Finding { return Finding{State: Upheld, Reason: "r"} }); err != nil {
		t.Fatal(err)
	}
	outcomeOf := map[Response]Outcome{0: OutcomeAdmit, Observe: OutcomeAdmit, Hedge: OutcomeAdmit, Escalate: OutcomeEscalate, Block: OutcomeBlock}
	spec := parseSpec(t, "")
	for _, response := range []Response{Observe, Hedge, Escalate, Block} {
		for _, unchecked := range []Response{0, Observe, Hedge, Escalate} {
			if response == Block && unchecked != 0 && unchecked != Escalate {
				continue // does not load
			}
			for kind, f := range findings {
				var want Response
				switch {
				case f.State == Violated:
					want = response
				case f.State == Upheld:
				case f.Cause == CauseError, f.Cause == CauseHint && response >= Escalate:
					want = Escalate
				case unchecked != 0:
					want = unchecked
				default:
					want = response
					if response == Block {
						want = Escalate
					}
				}
				body := "predicate: " + kind
				if unchecked != 0 {
					body += ", unchecked: " + unchecked.String()
				}
				name := fmt.Sprintf("%s, unchecked %s, %s", response, unchecked, kind)
				pack, err := LoadPack("p.yaml", []byte(packText("pledge", Ethics, termText("x", response, body), termText("y", Escalate, "predicate: control"))), reg)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				v, err := NewVocabulary(reg, VocabularyConfig{}, testFloor(t), pack)
				if err != nil {
					t.Fatal(err)
				}
				d := classify(t, v, spec)
				if d.Outcome != outcomeOf[want] {
					t.Errorf("%s: got %s, want the effect %s", name, d.Outcome, want)
				}
				if (d.Hedge != nil) != (want == Hedge) {
					t.Errorf("%s: hedge %+v", name, d.Hedge)
				}
				wantCauses := []EffectiveFinding{}
				if want >= Hedge {
					wantCauses = []EffectiveFinding{{Term: "ethics:x", Effect: want, Severity: "low", Title: "T", Remedy: "R"}}
				}
				if diff := cmp.Diff(wantCauses, d.Causes); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
				if wantRefusal := map[bool]string{true: "I cannot proceed — boundary violated: ethics:x"}[want == Block]; d.Refusal != wantRefusal {
					t.Errorf("%s: refusal %q", name, d.Refusal)
				}
				if d.NoPolicyMatched {
					t.Errorf("%s: no policy matched, but the control did", name)
				}
			}
		}
	}
}

func TestStructuralTermsObserve(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body string
		want Outcome
	}{
		{"structural: checked by the sandbox", OutcomeAdmit},
		{"structural: checked by the sandbox, unchecked: escalate", OutcomeEscalate},
	} {
		pack := ethicsPack(t, termText("x", Hedge, tt.body), termText("y", Escalate, "violated_if: {fact: objective.kind, has: ppo}"))
		d := classify(t, vocabulary(t, VocabularyConfig{}, testFloor(t), pack), parseSpec(t, ""))
		f, _ := d.Finding("ethics:x")
		if d.Outcome != tt.want || f.Cause != CauseStructural || d.Hedge != nil {
			t.Errorf("%s: got %s %+v", tt.body, d.Outcome, f)
		}
	}
}

// TestPredicatesThatMisbehave: none of these may admit.
func TestPredicatesThatMisbehave(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]Predicate{
		"panics":               func(*Spec) Finding { panic(marker) },
		"panics with nil":      func(*Spec) Finding { var s *Spec; return Finding{Reason: s.Owner} },
		"out of range":         func(s *Spec) Finding { return Finding{Reason: s.Inputs[99].ID} },
		"zero":                 func(*Spec) Finding { return Finding{} },
		"unknown state":        func(*Spec) Finding { return Finding{State: "fine"} },
		"unknown cause":        func(*Spec) Finding { return Finding{State: NotCheckable, Cause: "busy"} },
		"says error":           func(*Spec) Finding { return Finding{State: NotCheckable, Cause: CauseError} },
		"state in capitals":    func(*Spec) Finding { return Finding{State: "Upheld"} },
		"says only the reason": func(*Spec) Finding { return Finding{Reason: "all is well"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, response := range []Response{Observe, Hedge, Escalate, Block} {
				reg := NewRegistry()
				if err := reg.Register("p", p); err != nil {
					t.Fatal(err)
				}
				pack, err := LoadPack("p.yaml", []byte(packText("pledge", Ethics, termText("x", response, "predicate: p"),
					termText("y", Escalate, "violated_if: {fact: objective.kind, has: ppo}"))), reg)
				if err != nil {
					t.Fatal(err)
				}
				v, err := NewVocabulary(reg, VocabularyConfig{}, testFloor(t), pack)
				if err != nil {
					t.Fatal(err)
				}
				d := classify(t, v, parseSpec(t, ""))
				f, _ := d.Finding("ethics:x")
				if d.Outcome != OutcomeEscalate || f.Cause != CauseError || f.Term != "x" {
					t.Errorf("response %s: got %s with %+v", response, d.Outcome, f)
				}
				if strings.Contains(marshal(t, d), marker) {
					t.Error("the decision shows what the predicate panicked with")
				}
			}
		})
	}
	t.Run("contradicts itself", func(t *testing.T) {
		t.Parallel()
		f := Finding{Term: "another", State: Violated, Cause: CauseHint}.honest()
		if f.State != Violated || f.Cause != "" || f.Reason == "" {
			t.Errorf("got %+v", f)
		}
	})
}

func TestFold(t *testing.T) {
	t.Parallel()
	kind := func(k string) string { return "violated_if: {fact: objective.kind, has: " + k + "}" }
	const openTag = "violated_if: {tag: {minors: present}}"
	for _, tt := range []struct {
		name   string
		cfg    VocabularyConfig
		floor  []string
		ethics []string
		want   Outcome
		causes string
		flags  string
	}{
		{"nothing violated", VocabularyConfig{}, nil, []string{termText("a", Block, kind("ppo"))}, OutcomeAdmit, "", ""},
		{"block beats escalate and hedge", VocabularyConfig{}, nil,
			[]string{termText("a", Escalate, kind("sft")), termText("b", Block, kind("sft")), termText("c", Hedge, kind("sft")), termText("d", Observe, kind("sft"))},
			OutcomeBlock, "block ethics:b, hedge ethics:c", ""},
		{"escalate beats hedge", VocabularyConfig{}, nil, []string{termText("a", Escalate, kind("sft")), termText("c", Hedge, kind("sft"))},
			OutcomeEscalate, "escalate ethics:a, hedge ethics:c", ""},
		{"hedge admits", VocabularyConfig{}, nil, []string{termText("c", Hedge, kind("sft"))}, OutcomeAdmit, "hedge ethics:c", ""},
		{"observe admits, but decides nothing", VocabularyConfig{}, nil, []string{termText("d", Observe, kind("sft"))}, OutcomeEscalate, "", "no_policy_matched"},
		{"unchecked block escalates", VocabularyConfig{}, nil, []string{termText("a", Block, openTag), termText("b", Escalate, kind("ppo"))}, OutcomeEscalate, "escalate ethics:a", ""},
		{"both layers block", VocabularyConfig{}, []string{termText("z", Block, kind("sft"))}, []string{termText("a", Block, kind("sft"))},
			OutcomeBlock, "block ethics:a, block safety:z", ""},
		{"the floor blocks alone", VocabularyConfig{}, []string{termText("z", Block, kind("sft"))}, []string{termText("a", Escalate, kind("ppo"))}, OutcomeBlock, "block safety:z", ""},
		{"the floor does not count as a policy", VocabularyConfig{}, []string{termText("z", Block, kind("ppo"))}, nil, OutcomeEscalate, "", "no_policy_matched"},
		{"the floor escalates what it cannot see", VocabularyConfig{}, []string{termText("z", Block, openTag)}, []string{termText("a", Escalate, kind("ppo"))}, OutcomeEscalate, "escalate safety:z", ""},
		{"nothing could be checked", VocabularyConfig{}, nil, []string{termText("a", Hedge, openTag+", unchecked: observe")}, OutcomeEscalate, "", "no_policy_matched"},
		{"audit only admits", VocabularyConfig{AuditOnly: true}, nil, []string{termText("d", Observe, kind("sft"))}, OutcomeAdmit, "", "no_policy_matched audit_only"},
		{"audit only: the floor still decides", VocabularyConfig{AuditOnly: true}, []string{termText("z", Block, kind("sft"))}, []string{termText("d", Observe, kind("sft"))},
			OutcomeBlock, "block safety:z", "no_policy_matched audit_only"},
		{"audit only: the floor escalates", VocabularyConfig{AuditOnly: true}, []string{termText("z", Block, openTag)}, []string{termText("d", Observe, kind("sft"))},
			OutcomeEscalate, "escalate safety:z", "no_policy_matched audit_only"},
		{"unratified is marked", VocabularyConfig{Unratified: true}, nil, []string{termText("a", Block, kind("ppo"))}, OutcomeAdmit, "", "unratified"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			packs := []*Pack{testFloor(t)}
			if tt.floor != nil {
				packs[0] = loadPack(t, packText(FloorID, Safety, tt.floor...))
			}
			if tt.ethics != nil {
				packs = append(packs, ethicsPack(t, tt.ethics...))
			}
			d := classify(t, vocabulary(t, tt.cfg, packs...), parseSpec(t, ""))
			var causes, flags []string
			for _, c := range d.Causes {
				causes = append(causes, c.Effect.String()+" "+c.Term)
			}
			for flag, set := range map[string]bool{"no_policy_matched": d.NoPolicyMatched} {
				if set {
					flags = append(flags, flag)
				}
			}
			if d.AuditOnly {
				flags = append(flags, "audit_only")
			}
			if d.Unratified {
				flags = append(flags, "unratified")
			}
			got := []string{d.Outcome.String(), strings.Join(causes, ", "), strings.Join(flags, " ")}
			if diff := cmp.Diff([]string{tt.want.String(), tt.causes, tt.flags}, got); diff != "" {
				t.Error(diff)
			}
			if (d.Refusal != "") != (d.Outcome == OutcomeBlock) {
				t.Errorf("refusal %q", d.Refusal)
			}
		})
	}
}

func TestMissingDecides(t *testing.T) {
	t.Parallel()
	tag := func(name string) Statement {
		return Statement{"/disclosures", "{tag: " + name + ", state: present|absent, basis: structured}"}
	}
	for _, tt := range []struct {
		name, term string
		response   Response
		want       []Statement
	}{
		{"one statement for every input", "over: [dataset], violated_if: {tag: {minors: present}}", Escalate, []Statement{tag("minors")}},
		{"one of two is enough", "over: [dataset], violated_if: {all: [{tag: {minors: present}}, {tag: {health: present}}]}", Block, []Statement{tag("minors")}},
		{"both are needed", "over: [dataset], violated_if: {any: [{tag: {minors: present}}, {tag: {health: present}}]}", Block, []Statement{tag("health"), tag("minors")}},
		{"per input where it is a fact", "over: [dataset], violated_if: {fact: license.tdm, has: reserved}", Escalate,
			[]Statement{{"/inputs/0/license/tdm", "license: {tdm: not_reserved}"}, {"/inputs/1/license/tdm", "license: {tdm: not_reserved}"}}},
		{"what would match a policy", "violated_if: {tag: {minors: present}}, unchecked: observe", Escalate, []Statement{tag("minors")}},
		{"nothing for what only observes", "violated_if: {tag: {minors: present}}", Observe, []Statement{}},
		{"nothing where nothing can", "structural: elsewhere, unchecked: escalate", Escalate, []Statement{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := classify(t, vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t, termText("x", tt.response, tt.term))),
				parseSpec(t, "objective: {kind: sft, purposes: [research]}\ninputs: [{id: a, kind: dataset}, {id: b, kind: dataset}]"))
			if diff := cmp.Diff(tt.want, d.Missing); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHedge(t *testing.T) {
	t.Parallel()
	hedging := func(id, soft, strong string) *Pack {
		text := packText(id, Ethics, termText(id+"_x", Hedge, "violated_if: {fact: objective.kind, has: sft}"))
		text = strings.Replace(text, "preferred_hedge_soft: Perhaps", fmt.Sprintf("preferred_hedge_soft: %q\npreferred_hedge_strong: %q", soft, strong), 1)
		return loadPack(t, text)
	}
	quiet := loadPack(t, packText("aaa", Ethics, termText("aaa_x", Hedge, "violated_if: {fact: objective.kind, has: ppo}")))
	for _, tt := range []struct {
		name, statement   string
		packs             []*Pack
		text, want, terms string
	}{
		{"put in front", "It may err.", []*Pack{hedging("m", "Perhaps", "Surely not")}, "Perhaps", "Perhaps It may err.", "ethics:m_x"},
		{"strong where there is no soft", "It may err.", []*Pack{hedging("m", " ", "Surely not")}, "Surely not", "Surely not It may err.", "ethics:m_x"},
		{"once", "perhaps it may err.", []*Pack{hedging("m", "Perhaps", "")}, "Perhaps", "perhaps it may err.", "ethics:m_x"},
		{"full case folding", "MASSE UND GRÖSSE", []*Pack{hedging("m", "Maße", "")}, "Maße", "MASSE UND GRÖSSE", "ethics:m_x"},
		{"the lowest pack id", "It may err.", []*Pack{hedging("z", "Zed", ""), hedging("b", "Bee", ""), quiet}, "Bee", "Bee It may err.", "ethics:b_x ethics:z_x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := parseSpec(t, fmt.Sprintf("\ndisclosure_statement: %q", tt.statement))
			d := classify(t, vocabulary(t, VocabularyConfig{}, append(tt.packs, testFloor(t))...), p)
			if d.Hedge == nil || d.Hedge.Text != tt.text || d.Hedge.Statement != tt.want || strings.Join(d.Hedge.Terms, " ") != tt.terms {
				t.Errorf("got %+v", d.Hedge)
			}
			if d.Outcome != OutcomeAdmit || p.DisclosureStatement != tt.statement {
				t.Errorf("got %s with the submitted statement %q", d.Outcome, p.DisclosureStatement)
			}
		})
	}
	t.Run("a blank statement is refused", func(t *testing.T) {
		t.Parallel()
		v := vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t, termText("x", Escalate, "violated_if: {fact: objective.kind, has: ppo}, unchecked: hedge")))
		for _, statement := range []string{`""`, `" "`, `"\u200b"`, "null"} {
			_, err := Classify(parseSpec(t, "disclosure_statement: "+statement), v, testDay)
			if p := problemsOf(t, err)[0]; p.Pointer != "/disclosure_statement" || p.Line != 5 {
				t.Errorf("%s: got %+v", statement, p)
			}
		}
		v = vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t, termText("x", Escalate, "violated_if: {fact: objective.kind, has: ppo}")))
		if _, err := Classify(parseSpec(t, "disclosure_statement: null"), v, testDay); err != nil {
			t.Errorf("where nothing hedges it is not needed: %v", err)
		}
	})
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	for want, ids := range map[string][]string{
		"": nil,
		"I cannot proceed — boundary violated: ethics:a":                       {"ethics:a"},
		"I cannot proceed — boundary violated: ethics:b, safety:a, safety:a_b": {"safety:a_b", "ethics:b", "safety:a"},
	} {
		if got := Refusal(ids); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestZeroValuesCannotBeWritten: a forgotten assignment never reads as an admit.
func TestZeroValuesCannotBeWritten(t *testing.T) {
	t.Parallel()
	if _, err := MarshalDecision(&Decision{}); err == nil {
		t.Error("a decision without an outcome was written")
	}
	if _, err := MarshalDecision(&Decision{Outcome: OutcomeAdmit, Causes: []EffectiveFinding{{Term: "ethics:x"}}}); err == nil {
		t.Error("a cause without an effect was written")
	}
	for _, v := range []any{Outcome(0), Outcome(9), Response(0), Response(9), Decision{}, &Decision{Outcome: 9}, map[string]Outcome{"a": 0}} {
		if out, err := json.Marshal(v); err == nil {
			t.Errorf("%#v was written as %s", v, out)
		}
	}
	for _, text := range []string{"", "Admit", "admitted", "0", "1", "invalid outcome 0"} {
		var o Outcome
		var r Response
		if o.UnmarshalText([]byte(text)) == nil || r.UnmarshalText([]byte(text)) == nil || o != 0 || r != 0 {
			t.Errorf("%q was read", text)
		}
	}
	for o, name := range outcomeNames {
		var back Outcome
		if err := back.UnmarshalText([]byte(name)); err != nil || back != o || o.String() != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if OutcomeBlock <= OutcomeEscalate || OutcomeEscalate <= OutcomeAdmit || Block <= Escalate || Escalate <= Hedge || Hedge <= Observe {
		t.Error("the order is the fold's")
	}
}

// TestDecisionBytes is a golden: bytes that change need another EngineVersion.
func TestDecisionBytes(t *testing.T) {
	t.Parallel()
	pack := ethicsPack(t, termText("asks", Hedge, "violated_if: {fact: objective.kind, has: sft}"),
		termText("young", Escalate, "over: [dataset], violated_if: {tag: {minors: present}}"), termText("fine", Block, "violated_if: {fact: objective.kind, has: ppo}"))
	p := parseSpec(t, "inputs: [{id: a, kind: dataset}]")
	d := classify(t, vocabulary(t, VocabularyConfig{}, testFloor(t), pack), p)
	const want = `{"outcome":"escalate","spec_sha256":"%s","canonical_sha256":"%s","as_of":"2026-11-30","packs":[` +
		`{"id":"pledge","version":"1","layer":"ethics","sha256":"%s"},{"id":"safety_floor","version":"1","layer":"safety","sha256":"%s"}],` +
		`"causes":[{"term":"ethics:young","effect":"escalate","severity":"low","title":"T","remedy":"R"},{"term":"ethics:asks","effect":"hedge","severity":"low","title":"T","remedy":"R"}],` +
		`"no_policy_matched":false,"hedge_injected":true,"hedge":{"text":"Perhaps","terms":["ethics:asks"],"statement":"Perhaps It may err."},` +
		`"missing":[{"pointer":"/disclosures","say":"{tag: minors, state: present|absent, basis: structured}"}],` +
		`"safety":[{"pack":"safety_floor","upheld":true,"violated_boundaries":[],"runtime_checkable_count":1,"findings":[{"term":"floor_term","finding":"upheld","reason":"nothing stated violates it"}]}],` +
		`"ethics":[{"pack":"pledge","upheld":false,"violated_commitments":["asks"],"runtime_checkable_count":2,"findings":[` +
		`{"term":"asks","finding":"violated","reason":"objective.kind is sft","evidence":[{"name":"objective.kind","value":"sft","pointer":"/objective/kind"}]},` +
		`{"term":"fine","finding":"upheld","reason":"nothing stated violates it"},` +
		`{"term":"young","finding":"not_checkable","cause":"no_evidence","reason":"input a: minors is not stated","inputs":[{"id":"a","finding":"not_checkable"}]}]}]}`
	packs := map[string]Digest256{}
	for _, ref := range d.Packs {
		packs[ref.ID] = ref.SHA256
	}
	if diff := cmp.Diff(fmt.Sprintf(want, p.SHA256, p.CanonicalSHA256, packs["pledge"], packs["safety_floor"]), marshal(t, d)); diff != "" {
		t.Errorf("EngineVersion is %s: %s", EngineVersion, diff)
	}
	var again Decision
	if err := json.Unmarshal([]byte(marshal(t, d)), &again); err != nil {
		t.Fatal(err)
	}
	if marshal(t, &again) != marshal(t, d) {
		t.Error("read and written again it has other bytes")
	}
}

func BenchmarkClassify(b *testing.B) {
	spec, err := ParseSpec(realisticSpec(b))
	if err != nil {
		b.Fatal(err)
	}
	tagNames := []string{"personal_data", "minors", "health", "biometric", "sexual_content", "violent"}
	var terms []string
	for i := range 40 {
		body := []string{"over: [dataset], violated_if: {tag: {" + tagNames[i%6] + ": present}}",
			"over: [dataset], violated_if: {all: [{fact: license.restrictions, has: nc}, {fact: spec.objective.purposes, has: commercial_product}]}",
			"over: [dataset], violated_if: {phrases: [\"face scraping\", \"child\"]}",
			"over: [dataset], violated_if: {cel: \"input.consent.status == 'absent' && input.tags.personal_data == 'present'\"}"}[i%4]
		terms = append(terms, termText(fmt.Sprintf("t%02d", i), Escalate, body))
	}
	v := vocabulary(b, VocabularyConfig{}, loadPack(b, packText(FloorID, Safety, termText("f", Block, "violated_if: {fact: objective.purposes, has: social_scoring}"))),
		loadPack(b, packText("pledge", Ethics, terms...)))
	b.ReportAllocs()
	for b.Loop() {
		d, err := Classify(spec, v, testDay)
		if err != nil {
			b.Fatal(err)
		}
		if d.Outcome != OutcomeAdmit {
			b.Fatalf("%s: %+v", d.Outcome, d.Causes)
		}
	}
}
