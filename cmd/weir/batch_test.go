package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/screening"
)

// batchOf writes specs into a directory, as name and text in turn.
func batchOf(t testing.TB, files ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, filepath.FromSlash(files[i]))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, []byte(files[i+1]), path)
	}
	return dir
}

func TestBatchReportGoldens(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "testdata", "batch")
	for _, format := range allFormats {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			r := weir(t, "check", "--batch", dir, "--offline", "--as-of", testDay, "--packs", pledge(t), "--output", format, "--parallel", "3")
			if r.code != exitBlock || r.stderr != "" {
				t.Fatalf("exit %d: %s", r.code, r.stderr)
			}
			golden(t, "batch."+format, r.stdout)
			for line := range strings.Lines(r.stdout) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); format == "text" && n > width {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
	}
}

// batchJSON is the JSON of a batch.
type batchJSON struct {
	Specs    int            `json:"specs"`
	Counts   map[string]int `json:"counts"`
	ExitCode int            `json:"exit_code"`
	Results  []struct {
		Path     string `json:"path"`
		Status   string `json:"status"`
		ExitCode int    `json:"exit_code"`
		ID       string `json:"id"`
		Why      string `json:"why"`
		Answer   any    `json:"answer"`
	} `json:"results"`
}

// outcomes gives "path exit-code" of every spec.
func (b batchJSON) outcomes() (list []string) {
	for _, r := range b.Results {
		list = append(list, fmt.Sprint(r.Path, " ", r.ExitCode))
	}
	return list
}

func checkBatch(t testing.TB, of string, args ...string) (result, batchJSON) {
	t.Helper()
	r := weir(t, append([]string{"check", "--batch", of, "--output", "json"}, args...)...)
	var b batchJSON
	if r.stdout != "" {
		if err := json.Unmarshal([]byte(r.stdout), &b); err != nil {
			t.Fatalf("%v: %s", err, r.stdout)
		}
		if b.ExitCode != r.code || b.Specs != len(b.Results) {
			t.Fatalf("exit %d and %d results, but the JSON says %d and %d", r.code, len(b.Results), b.ExitCode, b.Specs)
		}
	}
	return r, b
}

func offline(t testing.TB) []string {
	return []string{"--offline", "--as-of", testDay, "--packs", pledge(t)}
}

// The exit code is the worst of all, whatever the order; nothing that was not
// screened is 0.
func TestBatchExitCode(t *testing.T) {
	t.Parallel()
	admit, escalate, block, invalid := string(spec("a")), string(spec("e", escalates)), string(spec("b", blocks)), "schema: weir/spec/v1\n"
	large := "# " + strings.Repeat("x", 1<<20) + "\n" + string(spec("large"))
	for _, tt := range []struct {
		name  string
		files []string
		want  int
	}{
		{"admitted", []string{"a.yaml", admit, "b.yml", string(spec("a2"))}, exitAdmit},
		{"one pending", []string{"a.yaml", admit, "b.yaml", escalate, "c.yaml", admit}, exitPending},
		{"one invalid", []string{"a.yaml", invalid, "b.yaml", escalate, "c.yaml", admit}, exitUsage},
		{"one blocked", []string{"a.yaml", invalid, "z/z/z.yaml", block, "b.yaml", escalate}, exitBlock},
		{"one too large", []string{"a.yaml", admit, "b.yaml", large}, exitUsage},
		{"one empty", []string{"a.yaml", admit, "b.yaml", ""}, exitUsage},
		{"nothing", nil, exitUsage},
		{"no specs", []string{"README.md", "hello", ".hidden.yaml", admit}, exitUsage},
		{"no lines", []string{"specs.ndjson", ""}, exitUsage},
	} {
		dir := batchOf(t, tt.files...)
		if len(tt.files) > 0 && tt.files[0] == "specs.ndjson" {
			dir = filepath.Join(dir, tt.files[0])
		}
		for _, parallel := range []string{"1", "8"} {
			r, b := checkBatch(t, dir, append(offline(t), "--parallel", parallel)...)
			if r.code != tt.want {
				t.Errorf("%s: exit %d, want %d: %v %s", tt.name, r.code, tt.want, b.outcomes(), r.stderr)
			}
			if !slices.IsSorted(b.outcomes()) && tt.name != "one blocked" {
				t.Errorf("%s: out of order: %v", tt.name, b.outcomes())
			}
		}
	}
}

func TestBatchUsage(t *testing.T) {
	t.Parallel()
	dir := batchOf(t, "a.yaml", string(spec("a")))
	file := filepath.Join(dir, "a.yaml")
	for _, args := range [][]string{{"--batch", dir, file}, {"--batch", file}, {"--batch", dir + "/none"}, {"--batch", ""}, {}, {"--batch", dir, "--parallel", "0"},
		{"--batch", dir, "--wait", "1s"}, {"--batch", dir, "--admission-out", "x"}, {"--batch", dir, "--on-unavailable", "allow"},
		{"--batch", dir, "--owner", "ana"}, {file, "--resume", dir + "/r"}, {file, "--parallel", "2"}} {
		if r := weir(t, append(append([]string{"check"}, offline(t)...), args...)...); r.code != exitUsage || r.stdout != "" || r.stderr == "" {
			t.Errorf("%q: exit %d: %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}

// Links are followed within the directory; what is behind one that leads out, or
// to a directory, is not screened, and is said to be so.
func TestBatchLinks(t *testing.T) {
	t.Parallel()
	outside := batchOf(t, "secret.yaml", string(spec("secret")))
	dir := batchOf(t, "a.yaml", string(spec("a")), ".data/v1/b.yaml", string(spec("b")))
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(".data", "v1", "b.yaml"), "b.yaml") // as Kubernetes mounts a ConfigMap
	r, b := checkBatch(t, dir, offline(t)...)
	if want := []string{"a.yaml 0", "b.yaml 0"}; r.code != 0 || !slices.Equal(b.outcomes(), want) {
		t.Fatalf("exit %d: %v %s", r.code, b.outcomes(), r.stderr)
	}
	link(filepath.Join(outside, "secret.yaml"), "c.yaml")
	link(filepath.Join("..", filepath.Base(outside), "secret.yaml"), "d.yaml")
	link(outside, "e")
	link(".data", "f")
	link("nowhere", "g.yaml")
	link("h.yaml", "h.yaml")
	r, b = checkBatch(t, dir, offline(t)...)
	want := []string{"a.yaml 0", "b.yaml 0", "c.yaml 2", "d.yaml 2", "e 2", "f 2", "g.yaml 2", "h.yaml 2"}
	if diff := cmp.Diff(want, b.outcomes()); diff != "" || r.code != exitUsage || strings.Contains(r.stdout, "secret@") {
		t.Errorf("exit %d (-want +got):\n%s", r.code, diff)
	}
}

// Lines of a file are named by number, in order, and findings stand in their line.
func TestBatchLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := func(run string, changes ...string) string {
		text := `{"schema": "weir/spec/v1", "run_ref": "RUN", "owner": "ana", "objective": {"kind": "sft", "purposes": ["customer_support"]},
			"inputs": [{"id": "tickets", "kind": "dataset"}], "disclosures": [{"tag": "personal_data", "state": "absent", "basis": "structured"},
			{"tag": "minors", "state": "absent", "basis": "structured"}, {"tag": "sexual_content", "state": "absent", "basis": "structured"},
			{"tag": "biometric", "state": "absent", "basis": "structured"}]}`
		for _, c := range append([]string{"RUN → " + run}, changes...) {
			old, new, _ := strings.Cut(c, " → ")
			text = strings.Replace(text, old, new, 1)
		}
		var b bytes.Buffer
		if err := json.Compact(&b, []byte(text)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	lines := []string{one("a"), one("b", `"customer_support" → "social_scoring"`), "", "run_ref: c", one("d", `"sft" → "sft", "purpose": "`+strings.Repeat("x", 2<<20)+`"`), one("e")}
	path := writeFile(t, []byte(strings.Join(lines, "\n")), dir, "specs.ndjson")
	r, b := checkBatch(t, path, offline(t)...)
	var want []string
	for i, code := range []int{0, exitBlock, exitUsage, exitUsage, exitUsage, 0} {
		want = append(want, fmt.Sprintf("%s:%d %d", filepath.ToSlash(path), i+1, code))
	}
	if diff := cmp.Diff(want, b.outcomes()); diff != "" || r.code != exitBlock {
		t.Errorf("exit %d (-want +got):\n%s", r.code, diff)
	}
	g := weir(t, append([]string{"check", "--batch", path, "--output", "github"}, offline(t)...)...)
	if blocked := "::error file=" + githubProperty(filepath.ToSlash(path)) + ",line=2,"; !strings.Contains(g.stdout, blocked) || strings.Contains(g.stdout, ",line=7,") {
		t.Errorf("no finding in line 2:\n%s", g.stdout)
	}
}

// batchGate answers as a gate whose specs are all admitted, unless answer says
// otherwise.
func batchGate(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, body []byte) bool) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		switch {
		case r.URL.Path == "/v1/packs":
			fmt.Fprint(w, `{"packs": [{"id": "safety_floor"}]}`)
		case answer(w, r, body.Bytes()):
		default:
			fmt.Fprintf(w, `{"id": "x", "status": "admitted", "spec_sha256": "%x", "decision": {"outcome": "admit", "as_of": "2026-11-01"}}`, sha(body.Bytes()))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A gate that stops answering: the rest is not asked about, everything is listed,
// and nothing of it is 0.
func TestBatchGivesUp(t *testing.T) {
	t.Parallel()
	var files []string
	for i := range 40 {
		files = append(files, fmt.Sprintf("%02d.yaml", i), string(spec(fmt.Sprint("r", i))))
	}
	dir := batchOf(t, files...)
	var asked atomic.Int64
	url := batchGate(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		if asked.Add(1) <= 5 {
			return false
		}
		w.WriteHeader(500)
		fmt.Fprint(w, `{"type": "urn:weir:problem:internal", "title": "T", "request_id": "R"}`)
		return true
	})
	r, b := checkBatch(t, dir, append(asking(t, url, "k"), "--parallel", "2")...)
	if r.code != exitNoAnswer || b.Specs != 40 || b.Counts["admitted"] != 5 || b.Counts["no_answer"] != 35 {
		t.Errorf("exit %d: %v %s", r.code, b.Counts, r.stderr)
	}
	if n := asked.Load(); n > 5+giveUpAfter+4 {
		t.Errorf("asked %d times", n)
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	if r, _ := checkBatch(t, dir, append(asking(t, gone.URL, "k"), "--timeout", "300ms")...); r.code != exitNoAnswer || r.stdout != "" {
		t.Errorf("no gate there: exit %d: %s", r.code, r.stdout)
	}
}

// What a gate refuses for another reason than the spec's text is told apart.
func TestBatchWords(t *testing.T) {
	t.Parallel()
	url := batchGate(t, func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		kind := "run-ref-taken"
		if bytes.Contains(body, []byte("run_ref: late")) {
			kind = "review-expired"
		}
		w.WriteHeader(409)
		fmt.Fprintf(w, `{"type": "urn:weir:problem:%s", "title": "T"}`, kind)
		return true
	})
	r, b := checkBatch(t, batchOf(t, "a.yaml", string(spec("late")), "b.yaml", string(spec("taken"))), asking(t, url, "k")...)
	if r.code != exitUsage || b.Counts["expired"] != 1 || b.Counts["refused"] != 1 || !slices.Equal(b.outcomes(), []string{"a.yaml 12", "b.yaml 2"}) {
		t.Errorf("exit %d: %v", r.code, b)
	}
}

// A gate that answers for other bytes has not answered.
func TestBatchOfOtherBytes(t *testing.T) {
	t.Parallel()
	url := batchGate(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		fmt.Fprintf(w, `{"id": "x", "status": "admitted", "spec_sha256": "%x", "decision": {"outcome": "admit", "as_of": "2026-11-01"}}`, sha(nil))
		return true
	})
	if r, b := checkBatch(t, batchOf(t, "a.yaml", string(spec("a"))), asking(t, url, "k")...); r.code != exitNoAnswer {
		t.Errorf("exit %d: %v", r.code, b.outcomes())
	}
}

// Two specs of one run would take each other's place; which one stands must not
// depend on chance.
func TestBatchOfOneRun(t *testing.T) {
	t.Parallel()
	url := batchGate(t, func(http.ResponseWriter, *http.Request, []byte) bool { return false })
	dir := batchOf(t, "a.yaml", string(spec("r")), "b.yaml", string(spec("r", escalates)), "c.yaml", string(spec("r")))
	r, b := checkBatch(t, dir, asking(t, url, "k")...)
	if want := []string{"a.yaml 0", "b.yaml 2", "c.yaml 0"}; r.code != exitUsage || !slices.Equal(b.outcomes(), want) || !strings.Contains(b.Results[1].Why, "a.yaml") {
		t.Errorf("exit %d: %v", r.code, b.Results)
	}
}

// An interrupted run ends with a failure and shows nothing; the same command goes
// on, asks for the rest under the keys of then, and asks how the others stand now.
func TestBatchResumes(t *testing.T) {
	t.Parallel()
	var files []string
	for i := range 6 {
		files = append(files, fmt.Sprintf("%d.yaml", i), string(spec(fmt.Sprint("r", i))))
	}
	dir, kept := batchOf(t, files...), filepath.Join(t.TempDir(), "kept")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var mu sync.Mutex
	keys, read, posts := map[string][]string{}, 0, 0
	revoked := false
	url := batchGate(t, func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodGet {
			read++
			status := "admitted"
			if revoked {
				status = "blocked"
			}
			sum := filepath.Base(r.URL.Path)
			fmt.Fprintf(w, `{"id": "%s", "status": "%s", "spec_sha256": "%s", "decision": {"outcome": "admit", "as_of": "2026-11-01"}}`, sum, status, sum)
			return true
		}
		if posts++; posts == 4 {
			interrupt()
			untilGone(r)
			keys[fmt.Sprintf("%x", sha(body))] = append(keys[fmt.Sprintf("%x", sha(body))], r.Header.Get("Idempotency-Key"))
			return true
		}
		sum := fmt.Sprintf("%x", sha(body))
		keys[sum] = append(keys[sum], r.Header.Get("Idempotency-Key"))
		fmt.Fprintf(w, `{"id": "%s", "status": "admitted", "spec_sha256": "%s", "decision": {"outcome": "admit", "as_of": "2026-11-01"}}`, sum, sum)
		return true
	})
	args := append(asking(t, url, "k"), "--batch", dir, "--parallel", "1", "--resume", kept)
	var out, errs bytes.Buffer
	if code := run(ctx, append([]string{"check"}, args...), &out, &errs); code != exitFailed || out.Len() > 0 || !strings.Contains(errs.String(), "goes on") {
		t.Fatalf("interrupted: exit %d: %s%s", code, &out, &errs)
	}
	whole, err := os.ReadFile(kept)
	if err != nil || bytes.Count(whole, []byte("\n")) != 4 {
		t.Fatalf("kept %d lines, want a head and three results (%v)", bytes.Count(whole, []byte("\n")), err)
	}
	// Cut off within the last result: that one is asked for again, under its key.
	writeFile(t, whole[:len(whole)-10], kept)
	r, b := checkBatch(t, dir, append(asking(t, url, "k"), "--parallel", "1", "--resume", kept)...)
	if r.code != 0 || b.Specs != 6 || read != 2 {
		t.Fatalf("went on: exit %d, %d specs, %d asked how they stand: %s", r.code, b.Specs, read, r.stderr)
	}
	for sum, under := range keys {
		if len(slices.Compact(under)) != 1 {
			t.Errorf("spec %s was sent under %q", sum, under)
		}
	}
	if len(keys) != 6 {
		t.Errorf("%d specs were sent, want 6", len(keys))
	}
	// What is kept is not believed.
	revoked = true
	if r, b := checkBatch(t, dir, append(asking(t, url, "k"), "--resume", kept)...); r.code != exitBlock || b.Counts["blocked"] != 6 {
		t.Errorf("after the admissions ended: exit %d: %v", r.code, b.Counts)
	}
	for why, damage := range map[string]func() []byte{
		"another batch": func() []byte { return bytes.Replace(whole, []byte(dir), []byte(dir+"x"), 1) },
		"no results":    func() []byte { return []byte("dear diary\n") },
		"damaged":       func() []byte { return append(slices.Clone(whole), "x\n"...) },
	} {
		text := damage()
		writeFile(t, text, kept)
		if r, _ := checkBatch(t, dir, append(asking(t, url, "k"), "--resume", kept)...); r.code != exitUsage || r.stdout != "" {
			t.Errorf("%s: exit %d", why, r.code)
		}
		if now, err := os.ReadFile(kept); err != nil || !bytes.Equal(now, text) {
			t.Errorf("%s: the file was written to (%v)", why, err)
		}
	}
}

// With a real gate: outcomes, and one screening a spec however often it is run.
func TestBatchAtAGate(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, "")).ready()
	dir := batchOf(t, "a.yaml", string(spec("a")), "b.yaml", string(spec("b", escalates)), "c/c.yaml", string(spec("c", blocks)), "d.yaml", string(spec("d", "owner: ana → owner: nobody")))
	kept := filepath.Join(t.TempDir(), "kept")
	var first batchJSON
	for i := range 3 {
		r, b := checkBatch(t, dir, append(asking(t, g.url, db.token), "--resume", kept, "--packs", pledge(t))...)
		want := []string{"a.yaml 0", "b.yaml 11", "c/c.yaml 10", "d.yaml 2"}
		if r.code != exitBlock || !slices.Equal(b.outcomes(), want) {
			t.Fatalf("run %d: exit %d: %v %s", i, r.code, b.outcomes(), r.stderr)
		}
		if i == 0 {
			first = b
		}
		for j := range b.Results {
			if b.Results[j].ID != first.Results[j].ID {
				t.Errorf("run %d: %s is screening %s, was %s", i, b.Results[j].Path, b.Results[j].ID, first.Results[j].ID)
			}
		}
	}
	for _, format := range reportFormats {
		r := weir(t, append([]string{"check", "--batch", dir, "--output", format, "--packs", pledge(t)}, asking(t, g.url, db.token)...)...)
		if r.code != exitBlock || !strings.Contains(r.stdout, "social_scoring") || !strings.Contains(r.stdout, "d.yaml") {
			t.Errorf("%s: exit %d: %s%s", format, r.code, r.stdout, r.stderr)
		}
	}
}

func sha(data []byte) []byte {
	sum := screening.Sum(data)
	return sum[:]
}
