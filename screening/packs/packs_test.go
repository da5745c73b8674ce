package packs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/screening"
	"weir/screening/packs"
)

// asOf is the day that the tests decide on; no shipped term depends on it.
const asOf = screening.Day("2026-06-01")

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := fs.ReadFile(packs.FS, name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// shipped loads every pack that has a file here, with its cases, and its report if there is one.
func shipped(t *testing.T, reg *screening.Registry) map[string]*screening.Bundle {
	t.Helper()
	names, err := fs.Glob(packs.FS, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	bundles := map[string]*screening.Bundle{}
	for _, name := range names {
		if strings.HasSuffix(name, ".cases.yaml") {
			continue
		}
		id := strings.TrimSuffix(name, ".yaml")
		p, err := screening.LoadPack(name, read(t, name), reg)
		if err != nil {
			t.Fatal(err)
		}
		if p.ID != id {
			t.Fatalf("file %s holds pack %s", name, p.ID)
		}
		b := &screening.Bundle{Pack: p}
		if b.Cases, err = screening.LoadCases(id+".cases.yaml", read(t, id+".cases.yaml"), p); err != nil {
			t.Fatal(err)
		}
		if data, err := fs.ReadFile(packs.FS, id+".report.json"); err == nil {
			if b.Report, err = screening.LoadReport(id+".report.json", data); err != nil {
				t.Fatal(err)
			}
		}
		bundles[id] = b
	}
	return bundles
}

func TestShippedPacksPassTheirGates(t *testing.T) {
	t.Parallel()
	reg := screening.NewRegistry()
	all := shipped(t, reg)
	for _, id := range []string{"safety_floor", "content_hazards", "data_rights"} {
		if all[id] == nil {
			t.Errorf("pack %s is not shipped", id)
		}
	}
	for id, b := range all {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			r, err := b.Ratify(reg, all[screening.FloorID].Pack, asOf)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range r.Gates {
				if !g.Passed {
					t.Errorf("gate %s: %s", g.Name, g.Detail)
				}
			}
		})
	}
}

func TestShippedPacksInForce(t *testing.T) {
	t.Parallel()
	reg := screening.NewRegistry()
	all := shipped(t, reg)
	for id, b := range all {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			if err := b.InForce(reg, all[screening.FloorID].Pack); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestShippedVocabulary(t *testing.T) {
	t.Parallel()
	const fewest = 45
	terms := 0
	seen, versions := map[string]string{}, map[string]string{}
	for id, b := range shipped(t, screening.NewRegistry()) {
		for i := range b.Pack.Terms {
			term := &b.Pack.Terms[i]
			terms++
			if other, dup := seen[term.ID]; dup {
				t.Errorf("term %s is in %s and in %s", term.ID, other, id)
			}
			seen[term.ID] = id
			if len(term.References) == 0 {
				t.Errorf("term %s refers to no public taxonomy", term.ID)
			}
			if strings.TrimSpace(term.Remedy) == "" {
				t.Errorf("term %s does not say what would make it pass", term.ID)
			}
			for _, r := range term.References {
				if other, met := versions[r.Scheme+" "+r.ID]; met && other != r.Version {
					t.Errorf("term %s: %s %s is of version %s here and of %s elsewhere", term.ID, r.Scheme, r.ID, r.Version, other)
				}
				versions[r.Scheme+" "+r.ID] = r.Version
				if r.Version == "" {
					t.Errorf("term %s: reference %s does not say which version of %s", term.ID, r.ID, r.Scheme)
				}
			}
			if b.Pack.Layer == screening.Safety && term.Response != screening.Block {
				t.Errorf("safety term %s does not block", term.ID)
			}
			if id == "content_hazards" && term.Response == screening.Block {
				t.Errorf("term %s blocks; a hazard goes to people", term.ID)
			}
		}
	}
	if terms < fewest {
		t.Errorf("%d terms are shipped, want at least %d", terms, fewest)
	}
}

// everything compiles the three packs that the demo runs with. Unratified, so
// that the test says something about the terms also while they are edited.
func everything(t *testing.T) *screening.Vocabulary {
	t.Helper()
	reg := screening.NewRegistry()
	all := shipped(t, reg)
	v, err := screening.NewVocabulary(reg, screening.VocabularyConfig{Unratified: true},
		all["safety_floor"].Pack, all["content_hazards"].Pack, all["data_rights"].Pack)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const specDir = "../../testdata/specs"

func classify(t *testing.T, v *screening.Vocabulary, data []byte) *screening.Decision {
	t.Helper()
	spec, err := screening.ParseSpec(data)
	if err != nil {
		t.Fatal(err)
	}
	d, err := screening.Classify(spec, v, asOf)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDemoSpecs(t *testing.T) {
	t.Parallel()
	v := everything(t)
	tests := []struct {
		file    string
		outcome screening.Outcome
		causes  []string // of the outcome's own effect, all of them
	}{
		{"admitted.yaml", screening.OutcomeAdmit, nil},
		{"admitted_hedged.json", screening.OutcomeAdmit, nil},
		{"escalated.yaml", screening.OutcomeEscalate, []string{
			"ethics:lineage_gap", "ethics:personal_information", "ethics:user_content"}},
		{"escalated_safety_data.yaml", screening.OutcomeEscalate, []string{
			"ethics:hazard_hate", "ethics:hazard_mass_harm_weapons", "ethics:hazard_self_harm", "ethics:hazard_violent_crime",
			"ethics:not_for_all_audiences"}},
		{"blocked.yaml", screening.OutcomeBlock, []string{
			"ethics:license_excludes_eu", "ethics:license_forbids_commercial_use", "safety:emotion_recognition"}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join(specDir, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			d := classify(t, v, data)
			if d.Outcome != tt.outcome {
				t.Errorf("outcome is %s, want %s; causes %v", d.Outcome, tt.outcome, d.Causes)
			}
			var causes []string
			for _, c := range d.Causes {
				if c.Effect >= screening.Escalate {
					causes = append(causes, c.Term)
				}
			}
			if !slices.Equal(causes, tt.causes) {
				t.Errorf("causes are\n%s\nwant\n%s", strings.Join(causes, "\n"), strings.Join(tt.causes, "\n"))
			}
			if (d.Hedge != nil) != (tt.file == "admitted_hedged.json") {
				t.Errorf("hedge is %v", d.Hedge)
			}
		})
	}
}

// A clean spec is not drowned in disclosures: they are stated once, and each one
// that is left out is asked for by name.
func TestAdmittedSpecNeedsEachOfItsFewStatements(t *testing.T) {
	t.Parallel()
	v := everything(t)
	data, err := os.ReadFile(filepath.Join(specDir, "admitted.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := screening.ParseSpec(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(spec.Inputs) < 8 {
		t.Errorf("the spec has %d inputs, want at least 8", len(spec.Inputs))
	}
	lines := strings.Split(string(data), "\n")
	statements, section := 0, 0
	inside := false
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "disclosures:"):
			inside = true
			section++
		case inside && strings.HasPrefix(line, " "):
			section++
		default:
			inside = false
		}
		if strings.HasPrefix(line, "  - {tag: ") {
			statements++
		}
	}
	if section == 0 || section > 30 {
		t.Errorf("the disclosures take %d lines, want 1 to 30", section)
	}
	for i, line := range lines {
		rest, ok := strings.CutPrefix(line, "  - {tag: ") // stated for the spec; what inputs add makes it worse, not better
		if !ok {
			continue
		}
		tag, _, _ := strings.Cut(rest, ",")
		d := classify(t, v, []byte(strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "\n")))
		asked := slices.ContainsFunc(d.Missing, func(s screening.Statement) bool {
			return strings.Contains(s.Say, "tag: "+tag+",")
		})
		hedged := tag == "known_bias" || tag == "known_limits"
		switch {
		case !asked || len(d.Missing) != 1:
			t.Errorf("without %s the spec is asked for %v", tag, d.Missing)
		case hedged && (d.Outcome != screening.OutcomeAdmit || d.Hedge == nil):
			t.Errorf("without %s the outcome is %s, want an admit with a hedge", tag, d.Outcome)
		case !hedged && d.Outcome != screening.OutcomeEscalate:
			t.Errorf("without %s the outcome is %s, want escalate", tag, d.Outcome)
		}
	}
	if statements == 0 {
		t.Error("the spec has no statement to leave out")
	}
}
