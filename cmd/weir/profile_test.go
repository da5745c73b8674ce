package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const houseCases = `schema: weir/cases/v1
pack: house_profile
cases:
  - name: a high-stakes topic without a person
    spec: {evidence: {context: {high_stakes_topic: true, recommended_human_review: false}}}
    expect: {defer_high_stakes_to_human_review: violated}
  - name: a high-stakes topic with one
    spec: {evidence: {context: {high_stakes_topic: true, recommended_human_review: true}}}
    expect: {defer_high_stakes_to_human_review: upheld}
complete:
  - name: an assistant of eight inputs
    spec:
      objective: {purposes: [customer_support]}
      disclosures: [{tag: minors, state: absent, basis: structured}]
      evidence: {context: {high_stakes_topic: true, recommended_human_review: true}}
      inputs:
        - {id: a, kind: dataset, shape: {modalities: [text]}}
        - {id: b, kind: dataset, shape: {modalities: [text]}}
        - {id: c, kind: dataset, shape: {modalities: [text]}}
        - {id: d, kind: dataset, shape: {modalities: [text]}}
        - {id: e, kind: dataset, shape: {modalities: [text]}}
        - {id: f, kind: dataset, shape: {modalities: [text]}}
        - {id: g, kind: base_model}
        - {id: h, kind: tokenizer}
`

// documentedProfile is the profile that docs/packs.md shows.
func documentedProfile(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "packs.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(page), "```yaml\n") {
		if text, _, _ := strings.Cut(block, "```"); strings.Contains(text, "\nextends:") {
			return text
		}
	}
	t.Fatal("docs/packs.md shows no profile")
	return ""
}

// TestProfileFromTheCommandLine: the documented profile goes the whole way, and
// stops the load as soon as its base is not the one it is bound to.
func TestProfileFromTheCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := documentedProfile(t)
	file := put(t, filepath.Join(dir, "house_profile.yaml"), text)
	put(t, filepath.Join(dir, "house_profile.cases.yaml"), houseCases)
	spec := filepath.Join("..", "..", "testdata", "specs", "admitted.yaml")
	shipped := strings.Join(defaultPacks, ",")
	raised := "raised from observe by house_profile"
	for _, step := range []struct {
		args []string
		code int
		want []string // white space of the output does not matter
	}{
		{[]string{"pack", "validate", file}, exitAdmit, []string{"well-formed"}},
		{[]string{"pack", "test", file}, exitAdmit, []string{"1 of 1 checkable terms have a case", "1 of 1 complete cases are admitted"}},
		{[]string{"check", "--offline", "--packs", shipped + "," + file, spec}, exitPackInvalid, []string{"house_profile is not in force"}},
		{[]string{"pack", "ratify", file, "--as-of", "2026-11-30"}, exitAdmit, []string{"house_profile is ratified"}},
		{[]string{"pack", "list", "--verbose", "--packs", file}, exitAdmit, []string{"house_profile 1.0.0 ethics 0", "yes", "extends general_ethics", "response observe → escalate, not checkable observe → escalate"}},
		{[]string{"pack", "list", "--output", "markdown", "--packs", file}, exitAdmit, []string{"| `ethics:defer_high_stakes_to_human_review` | response observe → escalate"}},
		{[]string{"pack", "diff", "general_ethics", file}, exitAdmit, []string{"2 differences", "extends (absent) → general_ethics", `response "observe" → "escalate"`}},
		{[]string{"check", "--offline", "--packs", shipped, spec}, exitAdmit, nil},
		{[]string{"check", "--offline", "--packs", file + "," + shipped, spec}, exitPending, []string{raised}},
		{[]string{"explain", "--packs", shipped + "," + file, spec}, exitPending, []string{raised}},
		{[]string{"check", "--offline", "--packs", "data_rights," + file, spec}, exitPackInvalid, []string{"house_profile.yaml", "line 8", "/extends/0 ", "general_ethics"}},
	} {
		code, out, errs := weirRun(t, step.args...)
		all := strings.Join(strings.Fields(out+errs), " ")
		if code != step.code {
			t.Fatalf("%v: exit %d, want %d\n%s%s", step.args, code, step.code, out, errs)
		}
		for _, part := range step.want {
			if !strings.Contains(all, part) {
				t.Errorf("%v lacks %q:\n%s%s", step.args, part, out, errs)
			}
		}
	}
	_, rest, _ := strings.Cut(text, `sha256: "`)
	wrong := strings.Repeat("0", 63) + "1"
	put(t, file, strings.Replace(text, rest[:64], wrong, 1))
	for _, args := range [][]string{{"pack", "validate", file}, {"pack", "list", "--packs", file},
		{"check", "--offline", "--packs", shipped + "," + file, spec}} {
		code, _, errs := weirRun(t, args...)
		for _, part := range []string{"house_profile.yaml", "line 9", "general_ethics", wrong, rest[:64]} {
			if code != exitPackInvalid || !strings.Contains(errs, part) {
				t.Errorf("%v: exit %d, lacks %q\n%s", args, code, part, errs)
			}
		}
	}
}

// TestUnratifiedNeedsTheBaseToo: what is let pass for development is a missing
// seal, not a profile of unknown packs.
func TestUnratifiedNeedsTheBaseToo(t *testing.T) {
	t.Parallel()
	file := put(t, filepath.Join(t.TempDir(), "house_profile.yaml"), documentedProfile(t))
	if _, err := loadVocabulary([]string{"general_ethics", file}, false, true); err != nil {
		t.Errorf("with its base: %v", err)
	}
	if _, err := loadVocabulary([]string{"data_rights", file}, false, true); err == nil || !strings.Contains(err.Error(), "/extends/0") {
		t.Errorf("without its base: %v", err)
	}
}

// TestBaseBesideAProfile: a base that is a file is found beside the profile, and
// one that is nowhere is missing.
func TestBaseBesideAProfile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := filepath.Join("..", "..", "testdata", "packs")
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	file := put(t, filepath.Join(dir, "house.yaml"), read("working_profile.yaml"))
	if code, _, errs := weirRun(t, "pack", "validate", file); code != exitPackInvalid || !strings.Contains(errs, "pack base_of_profiles with sha256") {
		t.Errorf("without a base: exit %d, %s", code, errs)
	}
	put(t, filepath.Join(dir, "base_of_profiles.yaml"), read("working_base_of_profiles.yaml"))
	if code, out, errs := weirRun(t, "pack", "validate", file); code != exitAdmit {
		t.Errorf("with a base beside it: exit %d, %s%s", code, out, errs)
	}
}

// TestDatesAreShown wherever a term or a finding is.
func TestDatesAreShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := put(t, filepath.Join(dir, "dated.yaml"), `schema: weir/pack/v1
id: dated
version: "1"
layer: ethics
terms:
  - {id: soon, title: Soon, description: D., severity: low, response: block, remedy: R., effective_from: 2027-01-01, sunset: 2028-01-01,
     violated_if: {any: [{fact: objective.kind, has: sft}, {tag: {minors: present}}]}}
`)
	cases := strings.NewReplacer("house_profile", "dated", "defer_high_stakes_to_human_review", "soon",
		"spec: {evidence: {context: {high_stakes_topic: true, recommended_human_review: false}}}", "spec: {objective: {kind: sft}}",
		"spec: {evidence: {context: {high_stakes_topic: true, recommended_human_review: true}}}", "spec: {disclosures: [{tag: minors, state: absent, basis: structured}]}")
	put(t, filepath.Join(dir, "dated.cases.yaml"), cases.Replace(houseCases))
	spec := filepath.Join("..", "..", "testdata", "specs", "admitted.yaml")
	packs := strings.Join(defaultPacks, ",") + "," + file
	for _, step := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"pack", "list", "--verbose", "--packs", file}, exitAdmit, "in force: from 2027-01-01, before 2028-01-01"},
		{[]string{"pack", "list", "--output", "json", "--packs", file}, exitAdmit, `"effective_from": "2027-01-01", "sunset": "2028-01-01"`},
		{[]string{"pack", "list", "--output", "markdown", "--packs", file}, exitAdmit, "in force: from 2027-01-01, before 2028-01-01"},
		{[]string{"explain", "--as-of", "2026-12-31", "--packs", packs, spec}, exitPackInvalid, "pack dated is not in force"},
		{[]string{"pack", "ratify", file, "--as-of", "2026-11-30"}, exitAdmit, "dated is ratified"},
	} {
		code, out, errs := weirRun(t, step.args...)
		if all := strings.Join(strings.Fields(out+errs), " "); code != step.code || !strings.Contains(all, step.want) {
			t.Errorf("%v: exit %d, lacks %q\n%s%s", step.args, code, step.want, out, errs)
		}
	}
	for day, want := range map[string]struct {
		code int
		said string
	}{
		"2026-12-31": {exitAdmit, "not in force before 2027-01-01: "},
		"2027-01-01": {exitBlock, "violated, block"},
		"2027-12-31": {exitBlock, "violated, block"},
		"2028-01-01": {exitAdmit, "not in force since 2028-01-01: "},
	} {
		for _, cmd := range []string{"check", "explain"} {
			args := []string{cmd, "--as-of", day, "--packs", packs, spec}
			if cmd == "check" {
				args = append(args, "--offline")
			}
			code, out, errs := weirRun(t, args...)
			if all := strings.Join(strings.Fields(out+errs), " "); code != want.code || cmd == "explain" && !strings.Contains(all, want.said) {
				t.Errorf("%v: exit %d, lacks %q\n%s%s", args, code, want.said, out, errs)
			}
		}
	}
}
