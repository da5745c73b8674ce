package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A mistyped command is a usage error, not help and exit code 0: a script must
// not believe that a key was revoked.
func TestMistypedCommands(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"pack", "validat", "x"}, {"key", "revok", "ID"}, {"migrate", "upp"}, {"text", "scren", "-"}, {"chek", "x"}} {
		if code, out, errs := weirRun(t, args...); code != exitUsage || out != "" || errs == "" {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errs)
		}
	}
	if code, out, _ := weirRun(t, "pack"); code != exitAdmit || !strings.Contains(out, "ratify") {
		t.Errorf("pack alone: exit %d, %q; want its help", code, out)
	}
}

func TestPackOutputs(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"pack", "list"}, {"pack", "validate", "general_ethics"}, {"pack", "test", "general_ethics"}} {
		text, _, _ := weirRun(t, args...)
		code, out, errs := weirRun(t, append(args, "--output", "json")...)
		var v any
		if code != text || json.Unmarshal([]byte(out), &v) != nil {
			t.Errorf("%v: exit %d as JSON, %d as text, %q %s", args, code, text, out, errs)
		}
		if code, _, _ := weirRun(t, append(args, "--output", "xml")...); code != exitUsage {
			t.Errorf("%v --output xml: exit %d, want %d", args, code, exitUsage)
		}
	}
}

// The life of a pack on the command line: written, found not to be in force,
// ratified, in force, changed, not in force.
func TestPackCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, err := writePack(dir)
	if err != nil {
		t.Fatal(err)
	}
	check := func() int {
		return weir(t, "check", "--offline", "--as-of", testDay, "--packs", path, specFile(t, spec("r"))).code
	}
	if r := weir(t, "pack", "validate", path); r.code != 0 || !strings.Contains(r.stdout, "1 term, 3 cases") {
		t.Errorf("validate: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if code := check(); code != exitPackInvalid {
		t.Errorf("not ratified: exit %d", code)
	}
	if r := weir(t, "pack", "list", "--packs", path); r.code != 0 || !regexp.MustCompile(`pledge .* no\n`).MatchString(r.stdout) {
		t.Errorf("list: exit %d\n%s", r.code, r.stdout)
	}
	if r := weir(t, "pack", "test", path, "--as-of", testDay); r.code != 0 || strings.Contains(r.stdout, "FAIL") || strings.Count(r.stdout, "pass") < 5 {
		t.Errorf("test: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "pledge.report.json")); err == nil {
		t.Error("a test wrote a report")
	}
	if r := weir(t, "pack", "ratify", path, "--as-of", testDay); r.code != 0 {
		t.Errorf("ratify: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	sealed, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(sealed), pledgeYAML) || !strings.Contains(string(sealed), "mastery_report_sha256: ") {
		t.Errorf("sealed pack (%v):\n%s", err, sealed)
	}
	if code := check(); code != exitAdmit {
		t.Errorf("ratified: exit %d", code)
	}
	if r := weir(t, "pack", "list", "--verbose", "--packs", path); !regexp.MustCompile(`pledge .* yes\n`).MatchString(r.stdout) || !strings.Contains(r.stdout, "ethics:personal_data_inside  escalate, medium") {
		t.Errorf("list: exit %d\n%s", r.code, r.stdout)
	}
	again := weir(t, "pack", "ratify", path, "--as-of", testDay)
	if after, err := os.ReadFile(path); err != nil || again.code != 0 || string(after) != string(sealed) {
		t.Errorf("ratified again the same day: exit %d, %v", again.code, err)
	}
	writeFile(t, []byte(strings.Replace(string(sealed), "severity: medium", "severity: low", 1)), path)
	if code := check(); code != exitPackInvalid {
		t.Errorf("changed: exit %d", code)
	}
	if r := weir(t, "pack", "list", "--packs", path); !regexp.MustCompile(`pledge .* no\n`).MatchString(r.stdout) {
		t.Errorf("changed:\n%s", r.stdout)
	}

	// Gates that fail write nothing.
	failing := t.TempDir()
	if path, err = writePack(failing); err != nil {
		t.Fatal(err)
	}
	writeFile(t, []byte(strings.Replace(pledgeCases, "expect: {personal_data_inside: violated}", "expect: {personal_data_inside: upheld}", 1)), failing, "pledge.cases.yaml")
	if r := weir(t, "pack", "ratify", path); r.code != exitPackInvalid || !strings.Contains(r.stdout, "FAIL  cases") {
		t.Errorf("failing gates: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != pledgeYAML {
		t.Errorf("failing gates changed the pack (%v)", err)
	}
	if entries, err := os.ReadDir(failing); err != nil || len(entries) != 2 {
		t.Errorf("failing gates left files: %v, %v", entries, err)
	}
}

func TestPackExitCodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := writeFile(t, []byte(strings.Replace(pledgeYAML, "violated_if", "violated_when", 1)), dir, "bad.yaml")
	syntax := writeFile(t, []byte("a: [\n"), dir, "syntax.yaml")
	lonely := writeFile(t, []byte(pledgeYAML), dir, "lonely.yaml")
	for _, tt := range []struct {
		args []string
		want int
	}{
		{[]string{"validate", bad}, exitPackInvalid}, {[]string{"validate", syntax}, exitPackInvalid}, {[]string{"test", bad}, exitPackInvalid},
		{[]string{"ratify", bad}, exitPackInvalid}, {[]string{"test", lonely}, exitPackInvalid}, {[]string{"list", "--packs", bad}, exitPackInvalid},
		{[]string{"validate", filepath.Join(dir, "none.yaml")}, exitUsage}, {[]string{"test", "nonsense"}, exitUsage}, {[]string{"ratify", filepath.Join(dir, "none.yaml")}, exitUsage},
		{[]string{"validate"}, exitUsage}, {[]string{"test", lonely, "--as-of", "soon"}, exitUsage}, {[]string{"validate", lonely}, 0},
		{[]string{"validate", "safety_floor"}, 0}, {[]string{"list"}, 0},
	} {
		r := weir(t, append([]string{"pack"}, tt.args...)...)
		if r.code != tt.want {
			t.Errorf("pack %q: exit %d, want %d\n%s%s", tt.args, r.code, tt.want, r.stdout, r.stderr)
		}
		if tt.want != 0 && r.stderr == "" {
			t.Errorf("pack %q says nothing", tt.args)
		}
	}
	r := weir(t, "pack", "validate", bad)
	for _, want := range []string{bad, "line 13", "violated_when"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("the message lacks %q: %s", want, r.stderr)
		}
	}
}
