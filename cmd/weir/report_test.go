package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/cmd/weir/client"
	"weir/review"
	"weir/screening"
)

var update = flag.Bool("update", false, "write the goldens anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("..", "..", "testdata", "goldens", name)
	if *update {
		writeFile(t, []byte(got), path)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; if that is meant, run go test ./cmd/weir -run Goldens -update (-want +got)\n%s", path, diff)
	}
}

var allFormats = append([]string{"text", "json"}, reportFormats...)

func TestReportGoldens(t *testing.T) {
	t.Parallel()
	for _, outcome := range []string{"admitted", "escalated", "blocked"} {
		for _, format := range allFormats {
			t.Run(outcome+" "+format, func(t *testing.T) {
				t.Parallel()
				spec := filepath.Join("..", "..", "testdata", "specs", outcome+".yaml")
				r := weir(t, "explain", "--all", "--as-of", testDay, "--packs", pledge(t), "--output", format, spec)
				if r.stderr != "" {
					t.Fatal(r.stderr)
				}
				golden(t, "explain_"+outcome+"."+format, r.stdout)
				if format == "text" {
					for line := range strings.Lines(r.stdout) {
						if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width {
							t.Errorf("%d columns: %s", n, line)
						}
					}
				}
				if !slices.Contains(reportFormats, format) {
					return
				}
				if c := weir(t, "check", "--offline", "--as-of", testDay, "--packs", pledge(t), "--output", format, spec); c != r {
					t.Errorf("check and explain differ:\n%s\n%s", c.stdout, r.stdout)
				}
			})
		}
	}
}

// The job summary is added to what other steps wrote; without a place for it the
// exit code stays.
func TestGitHubSummary(t *testing.T) {
	t.Parallel()
	args := []string{"check", "--offline", "--as-of", testDay, "--packs", pledge(t), "--output", "github", filepath.Join("..", "..", "testdata", "specs", "escalated.yaml")}
	path := writeFile(t, []byte("before\n"), t.TempDir(), "summary.md")
	if r := weirEnv(t, []string{"GITHUB_STEP_SUMMARY=" + path}, args...); r.code != exitPending {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(got), "before\n### weir: ESCALATED ") || !strings.Contains(string(got), "line 57") {
		t.Errorf("summary:\n%s", got)
	}
	r := weirEnv(t, []string{"GITHUB_STEP_SUMMARY=" + filepath.Join(path, "none")}, args...)
	if r.code != exitPending || !strings.Contains(r.stdout, "::warning title=weir::the job summary could not be written") {
		t.Errorf("no place for the summary: exit %d\n%s", r.code, r.stdout)
	}
}

// No format changes how a command ends.
func TestExitCodesOfFormats(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spec  []byte
		packs string
		want  int
	}{
		"admit":             {spec("x"), pledge(t), exitAdmit},
		"block":             {spec("x", blocks), pledge(t), exitBlock},
		"escalate":          {spec("x", escalates), pledge(t), exitPending},
		"not checkable":     {spec("x", "  - {tag: personal_data, state: absent, basis: structured}\n → "), pledge(t), exitPending},
		"no policy matched": {spec("x"), "general_ethics", exitPending},
		"bad spec":          {[]byte("a: 1"), pledge(t), exitUsage},
		"missing pack":      {spec("x"), "nonsense", exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := specFile(t, tt.spec)
			for _, format := range allFormats {
				for _, command := range [][]string{{"check", "--offline"}, {"explain"}} {
					r := weir(t, append(command, "--as-of", testDay, "--packs", tt.packs, "--output", format, file)...)
					if r.code != tt.want || (r.stdout == "") != (tt.want == exitUsage) {
						t.Errorf("%v %s: exit %d, want %d\n%s%s", command, format, r.code, tt.want, r.stdout, r.stderr)
					}
				}
			}
		})
	}
	if r := weir(t, "check", "--offline", "--output", "xml", "x"); r.code != exitUsage || !strings.Contains(r.stderr, "text, json, junit, sarif or github") {
		t.Errorf("unknown output: %+v", r)
	}
	if r := weir(t, "wait", "--output", "sarif", "x"); r.code != exitUsage || !strings.Contains(r.stderr, "text or json") {
		t.Errorf("wait has no reports: %+v", r)
	}
}

// marks counts what stands against a run in each format.
func marks(t *testing.T, format, out string) (n int) {
	t.Helper()
	switch format {
	case "junit":
		return decodeJUnit(t, out).Failures
	case "sarif":
		for _, r := range decodeSARIF(t, out).Runs[0].Results {
			if r.Level != "note" {
				n++
			}
		}
	case "github":
		n = len(regexp.MustCompile(`(?m)^::(error|warning) `).FindAllString(out, -1))
	}
	return n
}

// Whatever became of a screening since it was decided, a report marks the run
// exactly when the exit code stops it.
func TestReportsOfEveryStatus(t *testing.T) {
	t.Parallel()
	decide := func(changes ...string) *screening.Decision {
		s, err := decideOffline(spec("x", changes...), []string{pledge(t)}, testDay)
		if err != nil {
			t.Fatal(err)
		}
		return s.Decision
	}
	decisions := map[string]*screening.Decision{"admit": decide(), "escalate": decide(escalates), "block": decide(blocks),
		"nothing matched": {Outcome: screening.OutcomeEscalate, NoPolicyMatched: true, Missing: []screening.Statement{{Pointer: "/disclosures", Say: "x"}}}}
	for _, status := range []review.Status{review.StatusAdmitted, review.StatusBlocked, review.StatusPending, review.StatusExpired,
		review.StatusSuperseded, review.StatusWithdrawn, "of the future"} {
		for name, d := range decisions {
			for _, format := range reportFormats {
				var out bytes.Buffer
				err := answer(&out, &client.Screening{Status: status, RunRef: "r", Decision: d}, format, source{file: "spec.yaml", raw: spec("x")})
				code := exitAdmit
				if exit := (*exitError)(nil); errors.As(err, &exit) {
					code = exit.code
				}
				if code != exitCode(status) {
					t.Errorf("%s, %s, %s: exit %d, want %d", status, name, format, code, exitCode(status))
				}
				if n := marks(t, format, out.String()); (n > 0) != (code != exitAdmit) {
					t.Errorf("%s, %s, %s: %d marks, exit %d\n%s", status, name, format, n, code, &out)
				}
			}
		}
	}
}

// strictSARIF is what SARIF 2.1.0 and code scanning require of a log. Members
// that are not listed here are not written.
type strictSARIF struct {
	Schema  string `json:"$schema"`
	Version string
	Runs    []struct {
		Tool struct {
			Driver struct {
				Name, Version string
				Rules         []struct {
					ID                                      string
					ShortDescription, FullDescription, Help struct{ Text string }
					DefaultConfiguration                    struct{ Level string }
					Properties                              struct {
						Tags  []string
						Score string `json:"security-severity"`
					}
				}
			}
		}
		Invocations []struct {
			ExecutionSuccessful bool
			ExitCode            int
		}
		Results    []strictResult
		ColumnKind string
	}
}

type strictResult struct {
	RuleID    string
	RuleIndex int
	Level     string
	Message   struct{ Text string }
	Locations []strictLocation
	Related   []strictLocation `json:"relatedLocations"`
}

type strictLocation struct {
	ID               int
	PhysicalLocation *struct {
		ArtifactLocation struct{ URI string }
		Region           struct {
			StartLine, StartColumn, EndLine, EndColumn int
			Snippet                                    struct{ Text string }
		}
	}
	LogicalLocations []struct{ FullyQualifiedName string }
	Message          struct{ Text string }
}

func decodeSARIF(t *testing.T, out string) (log strictSARIF) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&log); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if log.Version != "2.1.0" || !strings.Contains(log.Schema, "sarif-2.1.0") || len(log.Runs) != 1 {
		t.Fatalf("head of the log: %q, %q, %d runs", log.Version, log.Schema, len(log.Runs))
	}
	levels := []string{"note", "warning", "error"}
	run := log.Runs[0]
	if run.Tool.Driver.Name != "weir" || len(run.Invocations) != 1 || !run.Invocations[0].ExecutionSuccessful || run.Results == nil {
		t.Errorf("the run is incomplete: %+v", run)
	}
	seen := map[string]bool{}
	for _, r := range run.Tool.Driver.Rules {
		if r.ID == "" || seen[r.ID] || r.ShortDescription.Text == "" || !slices.Contains(levels, r.DefaultConfiguration.Level) {
			t.Errorf("rule %+v", r)
		}
		seen[r.ID] = true
	}
	for _, r := range run.Results {
		if r.RuleIndex < 0 || r.RuleIndex >= len(run.Tool.Driver.Rules) || run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID ||
			r.Message.Text == "" || !slices.Contains(levels, r.Level) || len(r.Locations) != 1 {
			t.Errorf("result %+v", r)
			continue
		}
		if p := r.Locations[0].PhysicalLocation; p != nil {
			if _, err := url.Parse(p.ArtifactLocation.URI); err != nil || p.Region.StartLine < 1 {
				t.Errorf("location %+v: %v", p, err)
			}
		}
	}
	return log
}

func decodeJUnit(t *testing.T, out string) (all junitSuites) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(out))
	if err := dec.Decode(&all); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if tok, err := dec.Token(); !errors.Is(err, io.EOF) && strings.TrimSpace(fmt.Sprint(tok)) == "" {
		t.Errorf("after the end: %v %v", tok, err)
	}
	var tests, failures, skipped int
	for _, s := range all.Suites {
		tests += s.Tests
		failures += s.Failures
		skipped += s.Skipped
		if s.Tests != len(s.Cases) {
			t.Errorf("suite %s counts %d of %d", s.Name, s.Tests, len(s.Cases))
		}
	}
	if tests != all.Tests || failures != all.Failures || skipped != all.Skipped {
		t.Errorf("the sums do not agree: %d %d %d", tests, failures, skipped)
	}
	return all
}

// Every result of a report stands at the line of the spec that it speaks of, in
// YAML and in JSON.
func TestSARIFLines(t *testing.T) {
	t.Parallel()
	escalated := spec("x", escalates)
	parsed, err := screening.ParseSpec(escalated)
	if err != nil {
		t.Fatal(err)
	}
	indented := parsed.JSON().Clone()
	if err := indented.Indent(); err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{"spec.yaml": escalated, "spec.json": indented} {
		file := writeFile(t, raw, t.TempDir(), name)
		r := weir(t, "check", "--offline", "--as-of", testDay, "--packs", pledge(t), "--output", "sarif", file)
		log := decodeSARIF(t, r.stdout)
		if len(log.Runs[0].Results) != 1 {
			t.Fatalf("%s: %d results", name, len(log.Runs[0].Results))
		}
		at := log.Runs[0].Results[0].Locations[0]
		if at.PhysicalLocation.ArtifactLocation.URI != "file://"+file || at.LogicalLocations[0].FullyQualifiedName != "/disclosures/0" {
			t.Errorf("%s: %+v", name, at)
		}
		lines := strings.Split(string(raw), "\n")
		near := strings.Join(lines[at.PhysicalLocation.Region.StartLine-1:][:2], "")
		if !strings.Contains(near, "personal_data") {
			t.Errorf("%s: line %d is %q", name, at.PhysicalLocation.Region.StartLine, near)
		}
	}
}

// A phrase is shown where it stands: in SARIF as a region with its text, and its
// further places beside it; in JUnit and for GitHub by pointer, line and phrase.
func TestReportsCarryPlaces(t *testing.T) {
	t.Parallel()
	pack := `schema: weir/pack/v1
id: words
version: "1"
layer: ethics
title: Words
description: One term.
terms:
- {id: bad_words, title: Bad words, description: D, severity: high, violated_if: {phrases: [nerve agent synthesis]}, response: block, remedy: Take it out.}
`
	p, err := screening.LoadPack("words.yaml", []byte(pack), screening.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	floor, err := loadBundle(screening.FloorID, screening.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	v, err := screening.NewVocabulary(screening.NewRegistry(), screening.VocabularyConfig{}, floor.Pack, p)
	if err != nil {
		t.Fatal(err)
	}
	raw := []byte(`schema: weir/spec/v1
run_ref: r
owner: ana
objective: {kind: sft}
inputs:
- id: d1
  kind: dataset
  name: "über nerve agent synthesis" # nerve
  description: >
    All that is known
    of nerve agent
    synthesis.
- {id: d2, kind: dataset, name: "nerve\u0020agent synthesis"}
`)
	spec, err := screening.ParseSpec(raw)
	if err != nil {
		t.Fatal(err)
	}
	d, err := screening.Classify(spec, v, testDay)
	if err != nil {
		t.Fatal(err)
	}
	rep := newReport(&client.Screening{Status: review.StatusBlocked, RunRef: "r", Decision: d}, source{file: "spec.yaml", raw: raw})
	say := func(format string) string {
		var out strings.Builder
		if err := rep.explain(&out, format, false); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	log := decodeSARIF(t, say("sarif"))
	got := map[string]string{}
	i := slices.IndexFunc(log.Runs[0].Results, func(r strictResult) bool { return r.RuleID == "ethics:bad_words" })
	if i < 0 || log.Runs[0].ColumnKind != "unicodeCodePoints" {
		t.Fatalf("%+v", log)
	}
	for n, at := range append(log.Runs[0].Results[i].Locations, log.Runs[0].Results[i].Related...) {
		r := at.PhysicalLocation.Region
		got[at.LogicalLocations[0].FullyQualifiedName] = fmt.Sprintf("%d:%d-%d:%d %q", r.StartLine, r.StartColumn, r.EndLine, r.EndColumn, r.Snippet.Text)
		if at.ID != n || !strings.Contains(at.Message.Text, "nerve agent synthesis") {
			t.Errorf("place %d: %+v", n, at)
		}
	}
	want := map[string]string{
		"/inputs/0/name":        `8:15-8:36 "nerve agent synthesis"`,
		"/inputs/0/description": `11:8-12:14 "nerve agent synthesis"`,
		"/inputs/1/name":        `13:0-0:0 ""`, // escaped: the line is all that is known
	}
	for at := range got {
		got[at] = regexp.MustCompile(`(\\n|\s)+`).ReplaceAllString(got[at], " ")
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, format := range []string{"junit", "github", "text"} {
		out := strings.Join(strings.Fields(say(format)), " ")
		for pointer, line := range map[string]int{"/inputs/0/name": 8, "/inputs/0/description": 11, "/inputs/1/name": 13} {
			if !strings.Contains(out, fmt.Sprintf("%s (line %d): phrase = nerve agent synthesis", pointer, line)) {
				t.Errorf("%s does not name %s:\n%s", format, pointer, say(format))
			}
		}
	}
	if s := rep.githubSummary(); !strings.Contains(s, "/inputs/1/name") {
		t.Errorf("the summary leaves places out:\n%s", s)
	}
}

func TestFileURI(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"specs/a.yaml": "specs/a.yaml", "../a b.yaml": "../a%20b.yaml", "a:b.yaml": "./a:b.yaml", "/a/ü#?.yaml": "file:///a/%C3%BC%23%3F.yaml", "100%.yaml": "100%25.yaml",
	} {
		if got := fileURI(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// Text of a spec, of a pack and of a file's name stays text in every format.
func TestReportsAreSafe(t *testing.T) {
	t.Parallel()
	evil := "\x1b[31m\u202e\x00\x07\ufffe\r\n::error file=x,line=1::pwn%0A::warning::]]><failure/> [click](https://evil.example) |`<b>` ##[add-mask]x " + strings.Repeat("long", 60)
	d := &screening.Decision{Outcome: screening.OutcomeEscalate, AsOf: testDay, Refusal: evil,
		Causes:  []screening.EffectiveFinding{{Term: "ethics:x", Effect: screening.Escalate, Severity: "low", Title: evil, Remedy: evil}},
		Missing: []screening.Statement{{Pointer: "/disclosures", Say: "{tag: a, " + evil}},
		Ethics: []screening.EthicsVerdict{{Pack: "p", Findings: []*screening.Finding{
			{Term: "w", State: screening.NotCheckable, Cause: screening.CauseNoEvidence, Reason: "input " + evil + ": a is not stated"},
			{Term: "x", State: screening.Violated, Reason: evil, Evidence: []screening.Evidence{{Name: evil, Value: evil, Pointer: "/" + evil}}},
			{Term: "y", State: screening.Violated, Reason: evil}}}}}
	s := &client.Screening{Status: review.StatusPending, RunRef: evil, Decision: d}
	rep := newReport(s, source{file: "dir/" + evil})
	for _, format := range allFormats {
		var out strings.Builder
		if err := rep.explain(&out, format, true); err != nil {
			t.Fatal(err)
		}
		for i, r := range out.String() {
			if r != '\n' && r != '\t' && (r < ' ' || r == 0x7f || (r == '\ufffe' || r == '\u202e') && format != "json") {
				t.Fatalf("%s: U+%04X at %d is not escaped:\n%q", format, r, i, out.String())
			}
		}
		if format != "json" && regexp.MustCompile(`(?m)^\s*::(error|warning) file=x|##\[`).MatchString(out.String()) {
			t.Errorf("%s: a runner would take text of the spec for a command:\n%s", format, out.String())
		}
		switch format {
		case "junit":
			all := decodeJUnit(t, out.String())
			if all.Tests != 3 || all.Failures != 1 || all.Skipped != 2 || !strings.Contains(all.Suites[0].Cases[1].Failure.Text, "]]><failure/>") {
				t.Errorf("%+v", all)
			}
		case "sarif":
			log := decodeSARIF(t, out.String())
			if text := log.Runs[0].Results[0].Message.Text; len(log.Runs[0].Results) != 1 || !strings.Contains(text, `\[click\](`) {
				t.Errorf("%s", text)
			}
		case "github":
			command := regexp.MustCompile(`^::(notice|warning) (file=[^,:]*,line=1,)?title=[^,:]*::[^\r\n]*$`)
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			for _, line := range lines {
				if !command.MatchString(line) || regexp.MustCompile(`%(?:$|[^023])`).MatchString(line) {
					t.Errorf("not a command as meant: %s", line)
				}
			}
			if len(lines) != 2 || !strings.Contains(lines[1], "pwn%250A") {
				t.Errorf("%d commands\n%s", len(lines), out.String())
			}
		}
	}
	summary := rep.githubSummary()
	if n := strings.Count(summary, "\n"); n != 8 {
		t.Errorf("the summary has %d lines:\n%s", n, summary)
	}
	for _, live := range []string{"[click](", "https://evil", "|`", "<b>"} {
		if strings.Contains(strings.NewReplacer(`\[`, "", `\|`, "", `\<`, "").Replace(summary), live) {
			t.Errorf("%q is live in the summary:\n%s", live, summary)
		}
	}
}

// A runner of CI jobs takes a line that begins with :: for a command, whatever
// stands before it in blanks.
func TestTextIsNoCommand(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"::error::x", strings.Repeat("a", width-4) + " ::error::x", strings.Repeat("a", width-4) + "::error::x", ":: ::", "a " + strings.Repeat(":", 3*width)} {
		var b strings.Builder
		out := &lines{w: &b}
		out.wrap("    ", "    ", text)
		for line := range strings.Lines(b.String()) {
			if strings.HasPrefix(strings.TrimSpace(line), "::") || len(line) > width+1 {
				t.Errorf("%q: %q", text, line)
			}
		}
	}
}

// Every missing statement names its findings, and every finding what would change it.
func TestEveryMissingStatementHasAFinding(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"blocked.yaml", "escalated.yaml"} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "testdata", "specs", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range [][]byte{raw, []byte("schema: weir/spec/v1\nrun_ref: r\nowner: ana\nobjective: {kind: sft}\ndisclosure_statement: s\ninputs: [{id: a, kind: dataset}, {id: b, kind: dataset}, {id: c, kind: dataset}, {id: d, kind: dataset}]\n")} {
			s, err := decideOffline(raw, defaultPacks, testDay)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range s.Explanation.Missing {
				if len(m.Terms) == 0 {
					t.Errorf("%s: %+v belongs to no finding", name, m)
				}
			}
			for _, x := range newReport(s, source{raw: raw, packs: shelved(defaultPacks)}).findings {
				if x.State != screening.Upheld && len(x.Change) == 0 && x.NoChange == "" {
					t.Errorf("%s: %s: nothing is said of what would change it", name, x.Term)
				}
			}
		}
	}
}

// A screening is explained from what the gate says of it.
func TestExplainOfAGate(t *testing.T) {
	t.Parallel()
	const id = "018f0000-0000-7000-8000-000000000000"
	raw := spec("x", escalates)
	s, err := decideOffline(raw, []string{pledge(t)}, testDay)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		status     review.Status
		spec       []byte
		packs      string
		want       int
		says, lack string
	}{
		"pending":         {review.StatusPending, raw, pledge(t), exitPending, "/disclosures/0 (line 8)", "did not decide"},
		"admitted since":  {review.StatusAdmitted, raw, pledge(t), exitAdmit, "ADMITTED", ""},
		"withdrawn":       {review.StatusWithdrawn, raw, pledge(t), exitEnded, "WITHDRAWN", ""},
		"no bytes":        {review.StatusPending, nil, pledge(t), exitPending, "/disclosures/0: tag.personal_data", "line"},
		"other bytes":     {review.StatusPending, spec("y"), pledge(t), exitPending, "/disclosures/0: tag.personal_data", "line"},
		"unknown packs":   {review.StatusPending, raw, "content_hazards", exitPending, "Data about people without a word on it", ""},
		"no such pack":    {review.StatusPending, raw, "nonsense", exitPending, "Data about people without a word on it", ""},
		"another's words": {review.StatusPending, raw, pledge(t), exitPending, "1 violated, 0 not checkable, ", "These are upheld"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := json.Marshal(map[string]any{"id": id, "status": tt.status, "run_ref": "x", "decision": json.RawMessage(decisionJSON(t, s.Decision))})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/v1/screenings/"+id:
					_, _ = w.Write(body)
				case r.URL.Path == "/v1/screenings/"+id+"/spec" && tt.spec != nil:
					_, _ = w.Write(tt.spec)
				default:
					http.NotFound(w, r)
				}
			}))
			t.Cleanup(server.Close)
			for _, format := range allFormats {
				r := weir(t, append([]string{"explain", id, "--packs", tt.packs, "--output", format}, asking(t, server.URL, "k")...)...)
				if r.code != tt.want || r.stderr != "" {
					t.Errorf("%s: exit %d, want %d: %s", format, r.code, tt.want, r.stderr)
				}
				if format == "text" && (!strings.Contains(r.stdout, tt.says) || tt.lack != "" && strings.Contains(r.stdout, tt.lack)) {
					t.Errorf("want %q and not %q:\n%s", tt.says, tt.lack, r.stdout)
				}
				if format == "sarif" { // there is no file that a reader could open
					for _, res := range decodeSARIF(t, r.stdout).Runs[0].Results {
						if res.Locations[0].PhysicalLocation != nil {
							t.Errorf("a file of its own making: %+v", res.Locations[0].PhysicalLocation)
						}
					}
				}
			}
		})
	}
}

func decisionJSON(t *testing.T, d *screening.Decision) []byte {
	t.Helper()
	raw, err := screening.MarshalDecision(d)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// The page that shows the shipped vocabulary is what the packs say now.
func TestVocabularyPage(t *testing.T) {
	t.Parallel()
	r := weir(t, "pack", "list", "--output", "markdown")
	if r.code != exitAdmit || r.stderr != "" {
		t.Fatalf("%+v", r)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "vocabulary.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != r.stdout {
		t.Error("docs/vocabulary.md is stale: run make vocabulary")
	}
	if n := strings.Count(r.stdout, "\n### `"); n < 45 {
		t.Errorf("the page shows %d terms", n)
	}
}
