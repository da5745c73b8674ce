package screening

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMoveDataKeepsTheBan: what a flip proposes for data in an excluded place is,
// word for word, a residency that is allowed; it excludes what was excluded and
// leaves data where it may be.
func TestMoveDataKeepsTheBan(t *testing.T) {
	t.Parallel()
	term := termText("x", Block, "over: [dataset], violated_if: {fact: residency.allowed, has: \"no\"}")
	v := vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t, term))
	places := rapid.SliceOfN(rapid.SampledFrom([]string{"DE", "FR", "US", "CH", "CN", "EU", "worldwide"}), 0, 3)
	proposed := 0
	rapid.Check(t, func(t *rapid.T) {
		r := Residency{StoredIn: places.Draw(t, "stored"), ProcessedIn: places.Draw(t, "processed"), Excluded: places.Draw(t, "excluded")}
		s := &Spec{Schema: SpecSchema, RunRef: "r", Owner: "o", Objective: Objective{Kind: "sft"}, Inputs: []Input{{ID: "a", Kind: "dataset", Residency: &r}}}
		p := &ParsedSpec{Spec: s, coded: s.code()}
		_, x, err := Explain(p, v, testDay)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range x.Flips {
			if f.Term != "ethics:x" || len(f.Changes) == 0 {
				continue
			}
			proposed++
			c := f.Changes[0]
			_, text, ok := strings.Cut(c.Say, "as in ")
			text, _, _ = strings.Cut(text, ";")
			doc, err := parseDocument("residency", "", []byte(text))
			var got struct {
				Residency Residency `json:"residency"`
			}
			if !ok || err != nil || doc.decode(&got) != nil {
				t.Fatalf("%q cannot be copied", c.Say)
			}
			now := got.Residency
			if c.Pointer != "/inputs/0/residency" || !slices.Equal(now.Excluded, r.Excluded) {
				t.Fatalf("%v: %s %s", r, c.Pointer, c.Say)
			}
			if f := residencyFact(&Spec{Inputs: []Input{{Residency: &now}}}, 0); f.codes != firstCode || f.unknown {
				t.Fatalf("%v: %s is not allowed", r, c.Say)
			}
			if len(r.Excluded) == 0 && len(r.StoredIn) > 0 && !slices.Equal(now.StoredIn, r.StoredIn) {
				t.Fatalf("%v: %s moves what may stay", r, c.Say)
			}
		}
	})
	if proposed == 0 {
		t.Error("nothing was proposed")
	}
}

// TestFlipsOfListsSayWhatToState: for every fact that is a list, in an expression
// over it, silent or stated, a flip names values, and with them the term is upheld.
func TestFlipsOfListsSayWhatToState(t *testing.T) {
	t.Parallel()
	for i := range factDefs {
		def := &factDefs[i]
		if !def.list || def.name == "sources.open" || def.name == "license.restrictions" { // they have words of their own
			continue
		}
		owner, over := "input", "over: [dataset], "
		if def.perSpec {
			owner, over = "spec", ""
		}
		for _, value := range []string{"de", "DE", "en", "US", "text", "web_crawl", "hiring"} {
			for _, form := range []string{"'%[2]s' in %[1]s", "!('%[2]s' in %[1]s)", "%[1]s.exists(v, v == '%[2]s')", "size(%[1]s) > 1"} {
				term := termText("x", Escalate, over+fmt.Sprintf("violated_if: {cel: \""+strings.ReplaceAll(form, "\"", "'")+"\"}", owner+"."+def.name, value))
				second := "CH"
				if len(def.codes) > 0 {
					second = def.codes[1]
				}
				for _, stated := range [][]string{nil, {value}, {value, second}} {
					if len(stated) > 0 && len(def.codes) > 0 && !slices.Contains(def.codes, value) {
						continue // no spec says so
					}
					s := &Spec{Schema: SpecSchema, RunRef: "r", Owner: "o", Inputs: []Input{{ID: "a", Kind: "dataset"}}}
					set := func(values []string) {
						if def.perSpec {
							setSpecFact(s, def.name, values)
						} else {
							setInputFact(&s.Inputs[0], def.name, values)
						}
					}
					if len(stated) > 0 {
						set(stated)
					}
					v := vocabulary(t, VocabularyConfig{}, testFloor(t), ethicsPack(t, term))
					_, x, err := Explain(&ParsedSpec{Spec: s, coded: s.code()}, v, testDay)
					if err != nil {
						t.Fatal(err)
					}
					for _, f := range x.Flips {
						if f.Term != "ethics:x" {
							continue
						}
						for _, c := range f.Changes {
							if len(c.To) == 0 && len(c.Without) == 0 || strings.HasSuffix(strings.TrimSpace(c.Say), "without") || strings.Contains(c.Say, "without ,") {
								t.Errorf("%s, stated %v: %+v says nothing", term, stated, c)
							}
							if len(c.To) == 0 {
								continue
							}
							for _, to := range c.To {
								set(strings.Split(to, ", "))
								d, err := Classify(&ParsedSpec{Spec: s, coded: s.code()}, v, testDay)
								if err != nil {
									t.Fatal(err)
								}
								if got, _ := d.Finding("ethics:x"); got.State != Upheld {
									t.Errorf("%s, stated %v: with %s it is %s", term, stated, to, got.State)
								}
							}
						}
					}
				}
			}
		}
	}
}

// TestDocumentationPointsToWhatIsMissing: the finding and the flip name what is not there, and nothing else.
func TestDocumentationPointsToWhatIsMissing(t *testing.T) {
	t.Parallel()
	term := termText("x", Escalate, "over: [dataset], violated_if: {fact: documentation, has: missing}")
	for _, description := range []string{"", "TODO", "A set."} {
		for _, who := range []string{"", "creators: [{name: unknown}]", "publisher: {name: \"\"}", "creators: [{name: Ana}]", "publisher: {name: Lab}"} {
			described, made := description == "A set.", strings.HasSuffix(who, "Ana}]") || strings.HasSuffix(who, "Lab}")
			if described && made {
				continue
			}
			p, f := flipOf(t, term, fmt.Sprintf("inputs: [{id: a, kind: dataset, description: %q, %s}]", description, who))
			at := "/inputs/0/description"
			if described {
				at = "/inputs/0/creators"
			}
			col, _ := resolveFact("documentation", false)
			if got := newFacts(p.Spec, nil).pointer(col, 0); got != at {
				t.Errorf("%q, %s: the finding points to %s", description, who, got)
			}
			c := f.Changes[0]
			if c.Pointer != at || strings.Contains(c.Say, "description") == described || strings.Contains(c.Say, "creators") == made {
				t.Errorf("%q, %s: %s %s", description, who, c.Pointer, c.Say)
			}
		}
	}
}

// TestOnlyTermsThatAskAreNamed: beside a missing statement stand the terms that
// it holds up: not those that are out of force, and not those that observe.
func TestOnlyTermsThatAskAreNamed(t *testing.T) {
	t.Parallel()
	clause := "over: [dataset], violated_if: {tag: {minors: present}}"
	pack := ethicsPack(t, termText("asks", Escalate, clause), termText("blocks", Block, clause), termText("hedges", Hedge, clause),
		termText("observes", Observe, clause), termText("split", Escalate, "over: [dataset], violated_if: {fact: split, has: test}"), termText("quiet", Escalate, "unchecked: observe, "+clause),
		termText("past", Escalate, "sunset: \"2020-01-01\", "+clause), termText("future", Escalate, "effective_from: \"2100-01-01\", "+clause))
	v := vocabulary(t, VocabularyConfig{}, testFloor(t), pack)
	for name, tt := range map[string]struct{ spec, want string }{
		"no policy matched": {"inputs: [{id: a, kind: dataset}]", "ethics:asks,ethics:blocks,ethics:hedges,ethics:quiet"},
		"a policy matched":  {"inputs: [{id: a, kind: dataset, split: train}]", "ethics:asks,ethics:blocks,ethics:hedges"},
	} {
		d, x, err := Explain(parseSpec(t, tt.spec+"\ndisclosure_statement: It may err."), v, testDay)
		if err != nil {
			t.Fatal(err)
		}
		if d.NoPolicyMatched != (name == "no policy matched") {
			t.Errorf("%s: %t", name, d.NoPolicyMatched)
		}
		for _, m := range x.Missing {
			if got := strings.Join(m.Terms, ","); m.Pointer == "/disclosures" && got != tt.want {
				t.Errorf("%s: got %s, want %s", name, got, tt.want)
			}
		}
	}
}
