package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/cmd/weir/client"
	"weir/screening"
)

// input makes the input of a spec one with a URI and parents.
func input(uri string, parents ...string) string {
	out := "{id: tickets, kind: dataset} → {id: tickets, kind: dataset, uris: [\"" + uri + "\"]"
	for i, p := range parents {
		parents[i] = `{ref: "` + p + `"}`
	}
	return out + ", lineage: {derived_from: [" + strings.Join(parents, ", ") + "]}}"
}

// A recall as people and pipelines meet it: exit codes, the report, its graphs,
// the waiting pipeline, the trainer offline, the log.
func TestRecallCommands(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	key, err := ensureSigningKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := startGate(t, []string{d.env()}, "--config", configFor(t, ""), "--signing-key", key).ready()
	env := []string{"WEIR_SERVER=" + g.url, "WEIR_KEY=" + d.token}
	ran := func(code int, args ...string) string {
		t.Helper()
		r := weirEnv(t, env, args...)
		if r.code != code {
			t.Errorf("weir %v: exit %d, want %d: %s%s", args, r.code, code, r.stdout, r.stderr)
		}
		return strings.Join(strings.Fields(r.stdout+r.stderr), " ")
	}
	says := func(text string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in: %s", want, text)
			}
		}
	}
	dir := t.TempDir()
	direct := specFile(t, spec("direct", input("s3://x/bad")))
	derived := specFile(t, spec("derived", input(`made-<b>`, "s3://x/bad")))
	escalated := specFile(t, spec("escalated", input("s3://x/bad"), escalates))
	admission := filepath.Join(dir, "admission.json")
	g.await("an admission", func() bool { return weirEnv(t, env, "check", direct, "--admission-out", admission).code == exitAdmit })
	ran(exitAdmit, "check", derived)
	ran(exitPending, "check", escalated)

	waiting := make(chan result, 1)
	r, err := send(t.Context(), http.MethodGet, g.url+"/v1/screenings?status=pending", d.token, nil)
	if err != nil {
		t.Fatal(err)
	}
	pending := regexp.MustCompile(`"id":"([0-9a-f-]{36})","status":"pending"`).FindStringSubmatch(string(r.body))
	if pending == nil {
		t.Fatalf("nothing waits: %s", r.body)
	}
	go func() { waiting <- weirEnv(t, env, "wait", pending[1], "--for", "1m") }()

	said := ran(0, "recall", "--uri", "S3://X/bad/#2026", "--reason", "abuse was found")
	says(said, "RECALLED s3://x/bad", "abuse was found", "2 admissions revoked, 1 screening blocked")
	id := regexp.MustCompile(`recall ([0-9a-f-]{36})`).FindStringSubmatch(said)[1]
	select {
	case r := <-waiting:
		if r.code != exitBlock || !strings.Contains(r.stdout, "abuse was found") {
			t.Errorf("wait: exit %d: %s%s", r.code, r.stdout, r.stderr)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("who waits did not hear of it")
	}
	check := ran(exitBlock, "check", direct)
	says(check, "BLOCKED", "was recalled", "abuse was found", id)
	r, err = send(t.Context(), http.MethodGet, g.url+"/v1/screenings?status=revoked", d.token, nil)
	if err != nil {
		t.Fatal(err)
	}
	revoked := regexp.MustCompile(`"id":"([0-9a-f-]{36})","status":"revoked"`).FindStringSubmatch(string(r.body))
	says(ran(exitEnded, "wait", revoked[1]), "REVOKED", "abuse was found")
	says(ran(exitEnded, "explain", revoked[1]), "REVOKED")

	// The trainer has no network, but the list of revocations.
	list, err := send(t.Context(), http.MethodGet, g.url+"/v1/admissions/revoked", d.token, nil)
	if err != nil {
		t.Fatal(err)
	}
	revocations := writeFile(t, list.body, dir, "revoked.json")
	if r := weir(t, "verify", "--spec", direct, "--admission", admission, "--key", key+".pub", "--revocations", revocations); r.code != exitBroken {
		t.Errorf("verify: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}

	dot, mermaid := filepath.Join(dir, "r.dot"), filepath.Join(dir, "r.mmd")
	report := ran(0, "recall", "show", id, "--graph", dot)
	says(report, "4 screenings use it or come from it", "direct, submitted by bo", "by s3://x/bad > made-<b>", "uses", "derives")
	says(ran(0, "recall", "show", id, "--graph", mermaid, "--output", "json"), `"how": "derives"`, `"text": "made-<b>"`)
	drawn, err := os.ReadFile(dot)
	if err != nil {
		t.Fatal(err)
	}
	says(string(drawn), "digraph recall {", `label="s3://x/bad"`, `label="derived (revoked)"`, "n0 -> n1;")
	if path, err := exec.LookPath("dot"); err == nil {
		if out, err := exec.CommandContext(t.Context(), path, "-Tsvg", dot).CombinedOutput(); err != nil {
			t.Errorf("Graphviz does not read it: %v: %s", err, out)
		}
	}
	if drawn, err = os.ReadFile(mermaid); err != nil {
		t.Fatal(err)
	}
	says(string(drawn), "flowchart LR", `(["made-#lt;b#gt;"])`, `["derived (revoked)"]:::ended`)
	if strings.Contains(string(drawn), "<b>") {
		t.Errorf("markup in the graph: %s", drawn)
	}

	says(ran(0, "recall", "list", "--live"), id)
	says(ran(0, "recall", "lift", id, "--reason", "it was another"), "LIFTED", "it was another")
	says(ran(0, "recall", "list", "--live"), "no recalls")
	ran(exitUsage, "recall", "lift", id, "--reason", "again")
	says(ran(exitEnded, "wait", revoked[1]), "REVOKED", "which is lifted")
	ran(exitAdmit, "check", derived)

	g.sequenced(d.dsn)
	bundle := filepath.Join(dir, "bundle")
	ran(0, "export", "-o", bundle, "--key", key+".pub")
	ran(exitVerified, "verify", bundle, "--key", key+".pub", "--replay")
	entries, err := os.ReadFile(filepath.Join(bundle, "entries.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	says(string(entries), "recall.made", "recall.lifted", "screening.recalled")
	rows := filepath.Join(dir, "rows.ndjson")
	ran(0, "export", "--format", "ndjson", "-o", rows)
	text, err := os.ReadFile(rows)
	if err != nil {
		t.Fatal(err)
	}
	says(string(text), `"status":"revoked"`, `"decided_by":"recall"`)
}

func TestRecallUsage(t *testing.T) {
	t.Parallel()
	const id = "00000000-0000-0000-0000-000000000000"
	for _, args := range [][]string{{"--reason", "r"}, {"--uri", "x", "--sha256", screening.Sum(nil).String(), "--reason", "r"}, {"--sha256", "abc", "--reason", "r"},
		{"nothing"}, {"lift"}, {"lift", "x", "--reason", "r"}, {"show", "x"}, {"show", id, "--graph", "x.svg"}, {"show", id, "--output", "sarif"}} {
		if r := weir(t, append([]string{"recall"}, args...)...); r.code != exitUsage {
			t.Errorf("recall %v: exit %d, want %d: %s", args, r.code, exitUsage, r.stderr)
		}
	}
}

// Labels hold what submitters chose.
func TestRecallGraphsAreInert(t *testing.T) {
	t.Parallel()
	hostile := "a\"];\nclick n0 \"javascript:alert(1)\" \\N `x` <img> #quot; \x1b[31m"
	r := &client.RecallReport{Screenings: []client.RecallHit{{Screening: "s", RunRef: hostile, Status: "revoked", How: "derives",
		Path: []client.RecallStep{{Fingerprint: "00"}, {Text: hostile, Fingerprint: "01"}}}}}
	r.URI = hostile
	for name, drawn := range map[string]string{"dot": drawDOT(r), "mermaid": drawMermaid(r)} {
		lines := strings.Count(drawn, "\n")
		if want := map[string]int{"dot": 9, "mermaid": 8}[name]; lines != want {
			t.Errorf("%s has %d lines, want %d:\n%s", name, lines, want, drawn)
		}
		if strings.Contains(drawn, "\x1b") {
			t.Errorf("%s holds a terminal code", name)
		}
	}
	unescaped := regexp.MustCompile(`(^|[^\\])(\\\\)*"`)
	for line := range strings.Lines(drawDOT(r)) {
		if strings.Contains(line, "label=") {
			label := line[strings.Index(line, `label="`)+7:]
			end := unescaped.FindStringIndex(label)
			if end == nil || !regexp.MustCompile(`^(, [a-z]+=("#f4c7c3"|[a-z]+))*\];\n$`).MatchString(label[end[1]:]) {
				t.Errorf("a label ends early: %s", line)
			}
		}
	}
	for line := range strings.Lines(drawMermaid(r)) {
		if n := strings.Count(line, `"`); strings.HasPrefix(line, "    n") && !strings.Contains(line, "-->") && n != 2 {
			t.Errorf("a label ends early: %s", line)
		}
	}
}
