package screening

import (
	"fmt"
	"strings"
	"testing"
)

const testDay = Day("2026-11-30")

// specText is a spec in YAML: the required keys, unless extra gives them, and extra.
func specText(extra string) string {
	var b strings.Builder
	for _, line := range []string{
		"schema: weir/spec/v1", "run_ref: team/run@1", "owner: ana", "objective: {kind: sft}", `disclosure_statement: "It may err."`,
	} {
		key, _, _ := strings.Cut(line, ":")
		if !strings.HasPrefix(extra, key+":") && !strings.Contains(extra, "\n"+key+":") {
			b.WriteString(line + "\n")
		}
	}
	return b.String() + extra + "\n"
}

func parseSpec(t testing.TB, extra string) *ParsedSpec {
	t.Helper()
	p, err := ParseSpec([]byte(specText(extra)))
	if err != nil {
		t.Fatalf("spec: %v\n%s", err, extra)
	}
	return p
}

// termText is a term in YAML flow form; body adds to or replaces the defaults.
func termText(id string, response Response, body string) string {
	return fmt.Sprintf("  - {id: %s, title: T, description: D, severity: low, remedy: R, response: %s, %s}\n", id, response, body)
}

func packText(id string, layer Layer, terms ...string) string {
	return fmt.Sprintf("schema: weir/pack/v1\nid: %s\nversion: \"1\"\nlayer: %s\ntitle: T\ndescription: D\npreferred_hedge_soft: Perhaps\nterms:\n%s",
		id, layer, strings.Join(terms, ""))
}

func loadPack(t testing.TB, text string) *Pack {
	t.Helper()
	p, err := LoadPack("pack.yaml", []byte(text), NewRegistry())
	if err != nil {
		t.Fatalf("%v\n%.2000s", err, text)
	}
	return p
}

func ethicsPack(t testing.TB, terms ...string) *Pack {
	t.Helper()
	return loadPack(t, packText("pledge", Ethics, terms...))
}

// testFloor is a floor of one term that plain specs uphold.
func testFloor(t testing.TB) *Pack {
	t.Helper()
	return loadPack(t, packText(FloorID, Safety, termText("floor_term", Block, "violated_if: {fact: objective.kind, has: orpo}")))
}

func vocabulary(t testing.TB, cfg VocabularyConfig, packs ...*Pack) *Vocabulary {
	t.Helper()
	v, err := NewVocabulary(NewRegistry(), cfg, packs...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func classify(t testing.TB, v *Vocabulary, p *ParsedSpec) *Decision {
	t.Helper()
	d, err := Classify(p, v, testDay)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// findingOf evaluates one term of an ethics pack on a spec.
func findingOf(t testing.TB, term string, p *ParsedSpec) *Finding {
	t.Helper()
	pack := ethicsPack(t, term)
	d := classify(t, vocabulary(t, VocabularyConfig{}, testFloor(t), pack), p)
	f, ok := d.Finding("ethics:" + pack.Terms[0].ID)
	if !ok {
		t.Fatal("the decision lacks the finding")
	}
	return f
}

func marshal(t testing.TB, d *Decision) string {
	t.Helper()
	out, err := MarshalDecision(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// profileText is a profile of base; raises are in YAML flow form, comma-separated.
func profileText(id string, base *Pack, raises string, terms ...string) string {
	text := strings.TrimSuffix(packText(id, Ethics), "terms:\n") +
		fmt.Sprintf("extends: [{id: %s, sha256: %s}]\nraises: [%s]\n", base.ID, base.SHA256, raises)
	if len(terms) > 0 {
		text += "terms:\n" + strings.Join(terms, "")
	}
	return text
}

func profile(t testing.TB, id string, base *Pack, raises string, terms ...string) *Pack {
	t.Helper()
	return loadPack(t, profileText(id, base, raises, terms...))
}
