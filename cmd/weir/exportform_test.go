package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/screening"
	"weir/screening/formats"
)

// TestExportForms: a spec goes out in each form, from a file without a gate and by
// the id of its screening with one, and comes to the same.
func TestExportForms(t *testing.T) {
	t.Parallel()
	g, env, _ := recordedGate(t, 0)
	dir := t.TempDir()
	raw := spec("nlp/run")
	file := writeFile(t, raw, dir, "spec.yaml")
	r := weirEnv(t, env, "check", file, "--output", "json")
	var checked struct{ ID string }
	if err := json.Unmarshal([]byte(r.stdout), &checked); err != nil || checked.ID == "" {
		t.Fatalf("exit %d: %s%s, %v", r.code, r.stdout, r.stderr, err)
	}
	created := regexp.MustCompile(`2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	for format, file := range map[string]string{"cyclonedx": "r.cdx.json", "spdx": "r.spdx3.json"} {
		offline := weirEnv(t, nil, "export", "--format", format, filepath.Join(dir, "spec.yaml"))
		stored := weirEnv(t, env, "export", "--format", format, checked.ID)
		if offline.code != 0 || stored.code != 0 || created.ReplaceAllString(offline.stdout, "") != created.ReplaceAllString(stored.stdout, "") {
			t.Errorf("%s: exits %d and %d, not the same: %s%s", format, offline.code, stored.code, offline.stderr, stored.stderr)
		}
		out := filepath.Join(dir, file)
		if r := weirEnv(t, nil, "export", "--format", format, filepath.Join(dir, "spec.yaml"), "-o", out); r.code != 0 || r.stdout != "" {
			t.Errorf("%s: exit %d: %s%s", format, r.code, r.stdout, r.stderr)
		} else if !strings.Contains(r.stderr, "not held") || !strings.Contains(r.stderr, "/disclosures/0\n") {
			t.Errorf("%s: what it does not hold is not told: %s", format, r.stderr)
		}
		if r := weirEnv(t, nil, "import", out); r.code != 0 || !strings.Contains(r.stdout, "tickets") {
			t.Errorf("%s: it cannot be imported: exit %d: %s%s", format, r.code, r.stdout, r.stderr)
		}
		if !strings.Contains(offline.stdout, screening.Sum(raw).String()) {
			t.Errorf("%s does not name the spec", format)
		}
	}
	asJSON := filepath.Join(dir, "summary.json")
	if r := weirEnv(t, env, "export", "--format", "eu-summary", checked.ID, "-o", asJSON); r.code != 0 || !strings.Contains(r.stderr, "gaps to fill in") {
		t.Fatalf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	data, err := os.ReadFile(asJSON)
	if err != nil {
		t.Fatal(err)
	}
	var s formats.Summary
	if err := json.Unmarshal(data, &s); err != nil || s.RunRef != "nlp/run" || len(s.Sections) != 13 || len(s.Gaps) == 0 || s.SpecSHA256 != screening.Sum(raw).String() {
		t.Errorf("%v\n%s", err, data)
	}
	page := weirEnv(t, nil, "export", "--format", "eu-summary", file).stdout
	for _, sec := range s.Sections {
		if !strings.Contains(page, "\n### "+sec.Number+". "+sec.Title) {
			t.Errorf("the page has no section %s", sec.Number)
		}
	}
	for _, want := range []string{"# Public summary of training content (draft)", "not a filing", "## Gaps", "*not provided: ", "nlp/run"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for name, args := range map[string][]string{
		"a file that is there":  {"--format", "spdx", file, "-o", asJSON},
		"no spec":               {"--format", "spdx"},
		"a filter":              {"--format", "spdx", file, "--outcome", "admit"},
		"two specs":             {"--format", "spdx", file, file},
		"no file":               {"--format", "spdx", filepath.Join(dir, "none.yaml")},
		"not a spec":            {"--format", "cyclonedx", asJSON},
		"another format":        {"--format", "pdf", "-o", filepath.Join(dir, "x")},
		"a spec and the record": {file, "-o", filepath.Join(dir, "x")},
		"the record to nowhere": {},
		"a screening of nobody": {"--format", "spdx", "00000000-0000-0000-0000-000000000000"},
	} {
		r := weirEnv(t, env, append([]string{"export"}, args...)...)
		if r.code != exitUsage || r.stdout != "" || r.stderr == "" {
			t.Errorf("%s: exit %d: %s%s", name, r.code, r.stdout, r.stderr)
		}
	}
	if after, err := os.ReadFile(asJSON); err != nil || string(after) != string(data) {
		t.Errorf("a file that was there is another: %v", err)
	}
	g.kill()
	if r := weirEnv(t, env, "export", "--format", "spdx", checked.ID, "--timeout", "1s"); r.code != exitNoAnswer || r.stdout != "" {
		t.Errorf("no gate: exit %d: %s", r.code, r.stderr)
	}
}

// TestSummaryPageIsInert: whatever a spec says is text in the page: no line, link,
// tag, heading or list of the page is the spec's.
func TestSummaryPageIsInert(t *testing.T) {
	t.Parallel()
	const marker = "MARK"
	hostile := []string{"# " + marker, "- " + marker, "1. " + marker, "> " + marker, "\n\n# " + marker, "[" + marker + "](javascript:alert)", "<script>" + marker, "![" + marker + "](//x)",
		"`" + marker, "```\n" + marker, "| " + marker + " |", "https://" + marker + ".example", "*" + marker + "*", "&lt;" + marker, "\u202e" + marker, "www." + marker + ".example",
		"a@" + marker + ".example", "---\n" + marker, "~~" + marker, "$" + marker + "$", "+ " + marker, "===\n" + marker, "1) " + marker, "\\" + marker, "\x1b[31m" + marker}
	outline := func(page string) (shape []string) {
		for line := range strings.Lines(page) {
			shape = append(shape, strings.Fields(strings.ReplaceAll(line, "**", "** ") + " .")[0])
		}
		return shape
	}
	page := func(word string) string {
		s := &screening.Spec{RunRef: word, BaseModel: "m", Inputs: []screening.Input{{ID: "m", Kind: "base_model", Name: word, Version: word},
			{ID: "d", Kind: "dataset", Name: word, Description: word, URIs: []string{word}, Sources: []screening.Source{{Kind: "public_dataset", Detail: word}, {Kind: "human_authored", Detail: word}},
				Shape:       &screening.Shape{Modalities: []string{"text"}, Languages: []string{word}, SizeRaw: word},
				Collection:  &screening.Collection{Geography: []string{word}, End: word},
				Disclosures: []screening.Disclosure{{Tag: "deidentified", State: "present", Basis: "structured", Detail: word}}}}}
		text, _, err := euSummary(s, formats.ExportOptions{}, false)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	plain := outline(page(marker))
	// What is left of a line when its own marks are off and every escape is text.
	own := regexp.MustCompile(`^- (?:\*(?:partly|not) provided: (.*)\*|(.*))\n$`)
	escape := regexp.MustCompile(`\\[[:punct:]]`)
	active := regexp.MustCompile("[<>`*_\\[\\]|~#$@!&\\\\]|^[-+=]|^[0-9]+[.)] |://|www\\.|\x1b|\u202e")
	for _, word := range hostile {
		got := page(word)
		if shape := outline(got); strings.Join(shape, "\n") != strings.Join(plain, "\n") {
			t.Errorf("%q changes the page:\n%s", word, got)
		}
		for line := range strings.Lines(got) {
			if strings.Contains(line, marker) && active.MatchString(escape.ReplaceAllString(own.ReplaceAllString(line, "$1$2"), "x")) {
				t.Errorf("%q is more than text: %s", word, line)
			}
		}
	}
}
