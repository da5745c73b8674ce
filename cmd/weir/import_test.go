package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/screening"
)

const axolotlRun = "base_model: lab/base-1b\ndatasets:\n- path: lab/talk\n  split: train[:1%]\nrl: dpo\n"

const cardOfTalk = "---\npretty_name: Talk\nlicense: cc-by-nc-4.0\nsource_datasets: [original]\n---\n\n# Talk\n"

// runFiles writes the file of a run and a card into a folder.
func runFiles(t *testing.T) (run, card, dir string) {
	t.Helper()
	dir = t.TempDir()
	return put(t, filepath.Join(dir, "axolotl.yaml"), axolotlRun), put(t, filepath.Join(dir, "card.md"), cardOfTalk), dir
}

func TestImportCommand(t *testing.T) {
	t.Parallel()
	run, card, dir := runFiles(t)
	out := filepath.Join(dir, "spec.yaml")
	r := weir(t, "import", run, card, "-o", out, "--owner", "ana")
	if r.code != exitAdmit || r.stderr != "" {
		t.Fatalf("exit %d, %s", r.code, r.stderr)
	}
	for _, want := range []string{"Axolotl run", "Hugging Face dataset card", "objective dpo", "talk, dataset; licence cc-by-nc-4.0; restrictions nc", "No file gives run_ref", "The draft is in"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is not told:\n%s", want, r.stdout)
		}
	}
	for line := range strings.Lines(r.stdout) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	draft, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := screening.ParseSpec(draft); err == nil {
		t.Error("a draft without a run_ref is a spec")
	}
	filled := strings.Replace(string(draft), `run_ref: ""`, "run_ref: lab/talk@1", 1)
	spec, err := screening.ParseSpec([]byte(filled))
	if err != nil {
		t.Fatal(err)
	}
	if spec.Inputs[1].Split != "train" || len(spec.Sources) != 2 || spec.Sources[1].SHA256 != screening.Sum([]byte(cardOfTalk)).String() {
		t.Errorf("got %+v", spec.Spec)
	}
	// A filled-in draft is not written over.
	if r := weir(t, "import", run, "-o", out); r.code != exitUsage || !strings.Contains(r.stderr, "there already") {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
	if r := weir(t, "import", run, card, "-o", "-", "--owner", "ana"); r.code != exitAdmit || r.stdout != string(draft) || !strings.Contains(r.stderr, "Understood") {
		t.Errorf("to standard output: exit %d\n%s", r.code, r.stderr)
	}
}

func TestImportJSON(t *testing.T) {
	t.Parallel()
	run, card, _ := runFiles(t)
	r := weir(t, "import", "--output", "json", run, "lab/talk="+card)
	var got draftReport
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != exitAdmit {
		t.Fatalf("exit %d, %v, %s", r.code, err, r.stderr)
	}
	if len(got.Files) != 2 || got.Files[0].Format != "axolotl" || got.Objective != "dpo" || len(got.Inputs) != 2 ||
		got.Inputs[1].From["/inputs/1/license/declared/0"] != card+" /license" || len(got.Gaps) != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestImportRefusals(t *testing.T) {
	t.Parallel()
	run, card, dir := runFiles(t)
	doubled := put(t, filepath.Join(dir, "double.md"), "---\nlicense: mit\nlicense: cc-by-nc-4.0\n---\n# x\n")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"a key given twice":       {[]string{"import", doubled}, "(duplicate_key)"},
		"no such file":            {[]string{"import", run, filepath.Join(dir, "none.md")}, "none.md"},
		"nothing":                 {[]string{"import"}, "requires at least 1 arg"},
		"a file twice":            {[]string{"import", run, run}, "is given twice"},
		"two runs":                {[]string{"import", run, put(t, filepath.Join(dir, "b.yaml"), axolotlRun)}, "more than one file is of a training run"},
		"another input":           {[]string{"import", run, "lab/other=" + card}, "the run has no dataset named lab/other"},
		"another output":          {[]string{"import", "--output", "sarif", run}, "--output must be"},
		"no known format":         {[]string{"import", put(t, filepath.Join(dir, "x.json"), `{"a": 1}`)}, "(unknown_format)"},
		"a draft to nowhere":      {[]string{"import", run, "-o", filepath.Join(dir, "no", "spec.yaml")}, "no such file"},
		"check, a broken run":     {[]string{"check", "--offline", put(t, filepath.Join(dir, "twice.yaml"), axolotlRun+"rl: kto\n"), "--with", card}, "(duplicate_key)"},
		"check, a typing mistake": {[]string{"check", "--offline", put(t, filepath.Join(dir, "typo.yaml"), "schema: weir/spec/v1\n"+axolotlRun)}, "datasets"},
		"check, a spec and more":  {[]string{"check", "--offline", filepath.Join("..", "..", "testdata", "specs", "admitted.yaml"), "--with", card}, "--with is for a SPEC that is imported"},
		"check, unsaid":           {[]string{"check", "--offline", run, "--with", card}, "give --run-ref, --owner"},
		"check, to be sent":       {[]string{"check", run, "--with", card, "--owner", "ana", "--run-ref", "r"}, "needs --spec-out"},
		"check, nowhere to go":    {[]string{"check", "--offline", "--spec-out", filepath.Join(dir, "o"), filepath.Join("..", "..", "testdata", "specs", "admitted.yaml")}, "SPEC is the spec already"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := weir(t, tt.args...)
			if want := map[bool]int{true: exitFailed, false: exitUsage}[name == "a draft to nowhere"]; r.code != want || !strings.Contains(r.stderr, tt.want) || strings.Contains(r.stderr, "\x1b") {
				t.Errorf("exit %d, %s, want %q", r.code, r.stderr, tt.want)
			}
		})
	}
}

// TestCheckImports: check screens the draft of the files it is given, and writes
// the bytes that were screened.
func TestCheckImports(t *testing.T) {
	t.Parallel()
	run, card, dir := runFiles(t)
	out := filepath.Join(dir, "screened.yaml")
	args := []string{"check", "--offline", run, "--with", card, "--owner", "ana", "--run-ref", "lab/talk@1", "--statement", "It can be wrong.", "--spec-out", out, "--output", "json"}
	r := weir(t, args...)
	if r.code != exitPending || !strings.Contains(r.stderr, "read as Axolotl run; 0 points left open") {
		t.Fatalf("exit %d\n%s", r.code, r.stderr)
	}
	again := weir(t, "check", "--offline", "--output", "json", out)
	if again.stdout != r.stdout || again.code != r.code {
		t.Error("the spec that was written is decided otherwise")
	}
	// Without the card the licence is not known, and that is no better.
	if r := weir(t, "check", "--offline", run, "--owner", "ana", "--run-ref", "r", "--statement", "s"); r.code != exitPending {
		t.Errorf("exit %d", r.code)
	}
	trl := put(t, filepath.Join(dir, "trl.yaml"), "model_name_or_path: lab/base\ndataset_name: ./data\n")
	told := []string{"check", "--offline", trl, "--owner", "ana", "--run-ref", "r", "--statement", "s"}
	if r := weir(t, told...); r.code != exitUsage || !strings.Contains(r.stderr, "give --objective") {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
	if r := weir(t, append(told, "--objective", "sft")...); r.code != exitPending || !strings.Contains(r.stdout, "import_unresolved") {
		t.Errorf("exit %d\n%s", r.code, r.stdout)
	}
}

// The server takes imported evidence like any spec, and holds it to its digest.
func TestGateTakesImportedEvidence(t *testing.T) {
	t.Parallel()
	run, card, dir := runFiles(t)
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, "")).ready()
	out := filepath.Join(dir, "spec.yaml")
	args := append([]string{"check", run, "--with", card, "--owner", "ana", "--run-ref", "lab/imported@1", "--statement", "s", "--spec-out", out}, asking(t, g.url, db.token)...)
	if r := weir(t, args...); r.code != exitPending {
		t.Fatalf("exit %d\n%s", r.code, r.stderr)
	}
	kept, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	sum := screening.Sum([]byte(cardOfTalk)).String()
	broken := strings.Replace(string(kept), sum, strings.Repeat("0", 64), 1)
	r, err := post(t.Context(), g.url, db.token, "lab/imported@2", []byte(strings.Replace(broken, "lab/imported@1", "lab/imported@2", 1)))
	if err != nil || r.status != 422 {
		t.Errorf("bytes with another digest: status %d, %v", r.status, err)
	}
}
