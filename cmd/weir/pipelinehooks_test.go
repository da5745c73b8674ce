package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// pipelineHook is a way to ask the gate that people paste. It prints TRAINED only if the
// training started.
type pipelineHook struct {
	name  string
	codes bool // its exit codes are those of weir check; else only 0 counts
	asker bool // it asks by itself, and not through another one of these
	// command runs it on a spec in a directory of its own.
	command func(t testing.TB, dir, spec string) *exec.Cmd
}

const deployDir = "../../deploy"

// allHooks are those that run here. Their waits are short.
func allHooks(t testing.TB) []pipelineHook {
	t.Helper()
	hooks := []pipelineHook{
		{"weir check", true, true, script(`weir check "$SPEC" && echo TRAINED`)},
		{"shell", true, true, script(`sh "$HOOKS/shell/gate.sh" "$SPEC" && echo TRAINED`)},
		{"python check", true, true, script(`python3 -m weir_gate check "$SPEC" && echo TRAINED`)},
		{"python check, json, waiting in vain", true, false, script(`python3 -m weir_gate check --wait 1s --output json "$SPEC" && echo TRAINED`)},
		{"slurm", false, true, prolog},
		{"argo", true, false, argoSteps},
		{"github", true, false, script(ciScript(t, "github/train.yaml"))},
		{"gitlab", true, false, script(ciScript(t, "gitlab/train.yaml"))},
		{"kubeflow", true, false, script(kubeflowCommand(t))},
	}
	for _, name := range []string{"flyte", "ray", "metaflow", "trainer", "axolotl", "airflow"} {
		hooks = append(hooks, pipelineHook{name, true, false, script(`python3 "$HOOKS/testdata/drive.py" ` + name + ` "$SPEC"`)})
	}
	return hooks
}

// script is a hook that a shell runs.
func script(text string) func(testing.TB, string, string) *exec.Cmd {
	return func(testing.TB, string, string) *exec.Cmd { return exec.Command("sh", "-eu", "-c", text) }
}

// prolog screens as a pipeline would and then submits the job with the digest.
func prolog(t testing.TB, dir, spec string) *exec.Cmd {
	raw, err := os.ReadFile(spec)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `weir check "$SPEC" >/dev/null 2>&1
		printf 'WEIR_SERVER=%s\nWEIR_KEY=%s\nWEIR_PARTITIONS="gpu train"\n' "$WEIR_SERVER" "$WEIR_KEY" >weir.env
		sh "$HOOKS/slurm/prolog.sh" && echo TRAINED`)
	cmd.Env = []string{"WEIR_ENV=" + filepath.Join(dir, "weir.env"), "SLURM_JOB_ID=7", "SLURM_JOB_PARTITION=train",
		fmt.Sprintf("SLURM_JOB_COMMENT=weir:%x", sha256.Sum256(raw))}
	return cmd
}

func readYAML(t testing.TB, name string, v any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(deployDir, "hooks", name))
	if err != nil {
		t.Fatal(err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Fatalf("%s: more than one document", name)
	}
}

// ciScript is the shell in the screening job of a CI file, step by step as its
// runner has it, and the training that needs that job.
func ciScript(t testing.TB, name string) string {
	t.Helper()
	if strings.HasPrefix(name, "gitlab") {
		var file struct {
			Stages    []string
			Variables map[string]string
			Screen    struct {
				Stage, Image string
				Script       []string
				Artifacts    struct {
					When    string
					Paths   []string
					Reports map[string]string
				}
			}
			Train struct {
				Stage               string
				Needs, Tags, Script []string
			}
		}
		readYAML(t, name, &file)
		if !slices.Equal(file.Train.Needs, []string{"screen"}) || file.Screen.Artifacts.When != "always" {
			t.Fatalf("%s: the training does not need the screening, or its reports get lost", name)
		}
		return "(\nset -eu\n" + shortWait(strings.Join(file.Screen.Script, "\n")) + "\n) || exit\n" + trained(t, name, file.Train.Script)
	}
	type step struct {
		Name, If, Run, Uses string
		With                map[string]string
	}
	var file struct {
		Name, On         string
		Permissions, Env map[string]string
		Jobs             struct {
			Screen struct {
				RunsOn    string `yaml:"runs-on"`
				Container string
				Steps     []step
			}
			Train struct {
				Needs  string
				RunsOn []string `yaml:"runs-on"`
				Steps  []step
			}
		}
	}
	readYAML(t, name, &file)
	if file.Jobs.Train.Needs != "screen" || slices.ContainsFunc(file.Jobs.Train.Steps, func(s step) bool { return s.If != "" }) {
		t.Fatalf("%s: the training does not need the screening", name)
	}
	var text strings.Builder
	text.WriteString("code=0\n")
	for _, s := range file.Jobs.Screen.Steps {
		if s.Run != "" { // a step that fails fails the job
			if s.If != "" || strings.Contains(text.String(), "weir") {
				t.Fatalf("%s: this test does not know when %q runs", name, s.Run)
			}
			fmt.Fprintf(&text, "bash -e -c '%s' || code=$?\n", shortWait(s.Run))
		}
	}
	var run []string
	for _, s := range file.Jobs.Train.Steps {
		if s.Run != "" {
			run = append(run, s.Run)
		}
	}
	return text.String() + "[ $code = 0 ] || exit $code\n" + trained(t, name, run)
}

// shortWait has nobody wait for people who do not come.
func shortWait(script string) string {
	return regexp.MustCompile(`--wait \w+`).ReplaceAllString(script, "--wait 1ms")
}

// trained replaces the training's own command, before which the gate is asked again.
func trained(t testing.TB, name string, script []string) string {
	t.Helper()
	last := len(script) - 1
	if last < 1 || !strings.HasPrefix(script[last-1], `weir check "$SPEC"`) || !strings.HasPrefix(script[last], "train ") {
		t.Fatalf("%s: the training in %q does not ask right before", name, script)
	}
	return strings.Join(script[:last], " || exit\n") + " || exit\necho TRAINED"
}

func kubeflowCommand(t testing.TB) string {
	t.Helper()
	var file struct {
		Name           string
		Inputs         []map[string]string
		Implementation struct {
			Container struct {
				Image   string
				Command []any
			}
		}
	}
	readYAML(t, "kubeflow/component.yaml", &file)
	var words []string
	for _, w := range file.Implementation.Container.Command {
		switch w := w.(type) {
		case string:
			words = append(words, strings.Replace(w, "/weir", "weir", 1))
		case map[string]any:
			if w["inputPath"] != file.Inputs[0]["name"] {
				t.Fatalf("no such input: %v", w)
			}
			words = append(words, `"$SPEC"`)
		}
	}
	return shortWait(strings.Join(words, " ")) + " && echo TRAINED"
}

// argoSteps runs the workflow's containers as the controller would, up to the
// suspended step, which it takes as resumed at once.
func argoSteps(t testing.TB, _, _ string) *exec.Cmd {
	t.Helper()
	type step struct {
		Name, Template, When string
		ContinueOn           struct{ Failed bool } `yaml:"continueOn"`
	}
	type template struct {
		Name    string
		Steps   [][]step
		Suspend *struct{ Duration string }
		Inputs  struct {
			Artifacts []struct {
				Name, Path string
				Raw        struct{ Data string }
			}
		}
		Container *struct {
			Image         string
			Command, Args []string
			Env           []map[string]any
		}
	}
	var flow struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct {
			GenerateName string `yaml:"generateName"`
		}
		Spec struct {
			Entrypoint string
			Arguments  struct {
				Parameters []struct{ Name string }
			}
			Templates []template
		}
	}
	readYAML(t, "argo/workflow.yaml", &flow)
	named := map[string]template{}
	for _, tpl := range flow.Spec.Templates {
		named[tpl.Name] = tpl
	}
	var text strings.Builder
	for _, group := range named[flow.Spec.Entrypoint].Steps {
		for _, s := range group {
			tpl, ok := named[s.Template]
			switch {
			case !ok || len(group) != 1:
				t.Fatalf("step %s: no template, or not one after the other", s.Name)
			case s.When != "" && (tpl.Suspend == nil || s.When != "{{steps.screen.exitCode}} == 11"):
				t.Fatalf("step %s: this test does not know %q", s.Name, s.When)
			case tpl.Suspend != nil:
				fmt.Fprintf(&text, "[ $screen != 11 ] || echo SUSPENDED >&2\n")
				continue
			case tpl.Container.Command[0] == "train":
				text.WriteString("echo TRAINED\n")
				continue
			}
			run := "weir " + strings.ReplaceAll(strings.Join(tpl.Container.Args, " "), tpl.Inputs.Artifacts[0].Path, `"$SPEC"`)
			if s.ContinueOn.Failed {
				fmt.Fprintf(&text, "%s=0; %s >/dev/null 2>&1 || %[1]s=$?\n", s.Name, run)
			} else {
				fmt.Fprintf(&text, "%s || exit\n", run)
			}
		}
	}
	return exec.Command("sh", "-c", text.String())
}

// outcome is how a hook ended.
type outcome struct {
	result
	took time.Duration
}

func (o outcome) trained() bool { return strings.Contains(o.stdout, "TRAINED") }

// runHook runs one on a spec, with weir on the path.
func runHook(t testing.TB, h pipelineHook, server, token string, spec []byte, more ...string) outcome {
	t.Helper()
	return startPipelineHook(t, h, server, token, spec, more...)()
}

// startPipelineHook is runHook for many at once: it gives what waits for the end.
func startPipelineHook(t testing.TB, h pipelineHook, server, token string, spec []byte, more ...string) (wait func() outcome) {
	t.Helper()
	dir := t.TempDir()
	path := writeFile(t, spec, dir, "train.yaml")
	cmd := h.command(t, dir, path)
	cmd.Dir = dir
	cmd.Env = append(append(hookEnv(t, dir, server, token), append(cmd.Env, more...)...), "SPEC="+path)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second // what a killed hook leaves behind must not hold the test
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	ended := make(chan struct{})
	var took time.Duration
	var err error
	go func() {
		err = cmd.Wait()
		took = time.Since(start)
		kill.Stop()
		close(ended)
	}()
	return func() outcome {
		t.Helper()
		<-ended
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatalf("%v\n%s%s", err, &out, &errs)
		}
		return outcome{result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}, took}
	}
}

// findPython gives the interpreter behind python3, which may be a slow script that looks for it.
func findPython() (string, error) {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	return strings.TrimSpace(string(out)), err
}

func hookEnv(t testing.TB, dir, server, token string) []string {
	t.Helper()
	interpreter, err := shared.python()
	if err == nil {
		_, err = exec.LookPath("curl")
	}
	if err != nil {
		t.Fatalf("the hooks are tested with python3 and curl; make hook-tools installs them: %v", err)
	}
	hooks, err := filepath.Abs(filepath.Join(deployDir, "hooks"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := filepath.Abs(filepath.Join(deployDir, "python"))
	if err != nil {
		t.Fatal(err)
	}
	// weir as it is on the path of a pipeline, with the patience of the test.
	wrapper := fmt.Sprintf("#!/bin/sh\ncase $1 in check | wait) exec %q \"$@\" --timeout ${WEIR_TIMEOUT}s ;; esac\nexec %[1]q \"$@\"\n", binary(t))
	for name, text := range map[string]string{"weir": wrapper, "python3": fmt.Sprintf("#!/bin/sh\nexec %q \"$@\"\n", interpreter)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return environment("WEIR_SERVER="+server, "WEIR_KEY="+token, "WEIR_TIMEOUT=30", "WEIR_SPOOL="+filepath.Join(dir, "spool"), "HOOKS="+hooks,
		"PYTHONPATH="+client+":"+filepath.Join(hooks, "testdata", "standin"), "PYTHONDONTWRITEBYTECODE=1", "PATH="+dir+":"+os.Getenv("PATH"))
}

// Every hook lets the training start for exactly the admitted bytes, and what it
// exits with is what weir check exits with.
func TestHooksOnALiveGate(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, "")).ready()
	for _, h := range allHooks(t) {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			run := regexp.MustCompile(`[^a-z]+`).ReplaceAllString(h.name, "-")
			expired := spec(run+"-expired", escalates)
			if r, err := post(t.Context(), g.url, db.token, run+"-expired", expired); err != nil || r.status != 202 {
				t.Fatalf("%d %s %v", r.status, r.body, err)
			}
			overdue(t, db, run+"-expired")
			tests := []struct {
				name  string
				token string
				spec  []byte
				want  int
			}{
				{"admitted", db.token, spec(run + "-admitted"), exitAdmit},
				{"blocked", db.token, spec(run+"-blocked", blocks), exitBlock},
				{"pending", db.token, spec(run+"-pending", escalates), exitPending},
				{"expired", db.token, expired, exitEnded},
				{"not a spec", db.token, []byte("schema: weir/spec/v1\n"), exitUsage},
				{"a wrong key", db.token + "x", spec(run + "-key"), exitUsage},
			}
			running := make([]func() outcome, len(tests))
			for i, tt := range tests {
				if h.name != "airflow" || tt.name != "pending" { // that one waits: TestHooksWaitForPeople
					running[i] = startPipelineHook(t, h, g.url, tt.token, tt.spec)
				}
			}
			for i, tt := range tests {
				if running[i] == nil {
					continue
				}
				got := running[i]()
				if got.trained() != (tt.want == 0) || (got.code == 0) != (tt.want == 0) || h.codes && got.code != tt.want {
					t.Errorf("%s: exit %d, want %d\n%s%s", tt.name, got.code, tt.want, got.stdout, got.stderr)
				}
			}
		})
	}
}

// In report mode the hooks let pass what the gate reports, say so, wait for nobody, and
// are closed as ever to what the floor blocks.
func TestHooksInReportMode(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	dir := configFor(t, "")
	writeFile(t, fmt.Appendf(nil, "policies: [{id: general, group: general, quorum: 1, due: 48h}]\ndefault: general\nprojects: [{id: default, mode: report, until: %s}]\n",
		time.Now().UTC().AddDate(0, 0, 30).Format(time.DateOnly)), dir, "policies.yaml")
	g := startGate(t, []string{db.env()}, "--config", dir).ready()
	for _, h := range allHooks(t) {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Query().Has("wait") {
					t.Errorf("it waits for people: %s", req.URL)
				}
				forward(t, w, req, g.url)
			}))
			t.Cleanup(proxy.Close)
			run := regexp.MustCompile(`[^a-z]+`).ReplaceAllString(h.name, "-")
			passes := startPipelineHook(t, h, proxy.URL, db.token, spec(run+"-passes", escalates))
			blocked := startPipelineHook(t, h, proxy.URL, db.token, spec(run+"-blocked", blocks))
			if got := passes(); !got.trained() || got.code != 0 || h.asker && !strings.Contains(strings.ToLower(got.stdout+got.stderr), "report mode") {
				t.Errorf("reported: exit %d\n%s%s", got.code, got.stdout, got.stderr)
			}
			if got := blocked(); got.trained() || got.code == 0 || h.codes && got.code != exitBlock {
				t.Errorf("blocked by the floor: exit %d\n%s%s", got.code, got.stdout, got.stderr)
			}
		})
	}
}

// What a gate in report mode would do is one of two words; whatever else it says, the
// hooks that read its answer with the shell are closed.
func TestShellHooksKnowWhatIsReported(t *testing.T) {
	t.Parallel()
	raw := spec("reported")
	for _, h := range []pipelineHook{
		{"shell", true, true, script(`sh "$HOOKS/shell/gate.sh" "$SPEC" && echo TRAINED`)},
		{"slurm", false, true, prolog},
	} {
		for word, passes := range map[string]bool{"block": true, "escalate": true, "admit": false, "": false, "blocked": false, "revoke": false} {
			t.Run(h.name+" "+word, func(t *testing.T) {
				t.Parallel()
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					fmt.Fprintf(w, `{"gate":"pending","would":%q,"report_until":"2027-01-01","screening":"S","spec_sha256":"%x"}`+"\n", word, sha256.Sum256(raw))
				}))
				t.Cleanup(server.Close)
				if got := runHook(t, h, server.URL, "key", raw); got.trained() != passes || (got.code == 0) != passes || passes && !strings.Contains(got.stderr, "report mode") {
					t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
				}
			})
		}
	}
}

// When the gate is down, slow, half-answering or wrongly certified, no hook lets
// the training start, and each says so in one line within its deadline (fault
// test 52).
func TestHooksFailClosed(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, "")).ready()
	admitted := spec("admitted")
	if r, err := post(t.Context(), g.url, db.token, "a", admitted); err != nil || r.status != 201 {
		t.Fatalf("%d %s %v", r.status, r.body, err)
	}
	faults := faultyGates(t, g.url, db.token, admitted)
	for _, h := range allHooks(t) {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			running := map[string]func() outcome{}
			for name, url := range faults {
				if h.asker || slices.Contains([]string{"down", "hanging", "200 of another", "cut, without a length", "an unknown authority"}, name) {
					patience := "WEIR_TIMEOUT=1"
					if name == "an unknown authority" {
						patience = "WEIR_TIMEOUT=30" // this one ends by itself
					}
					running[name] = startPipelineHook(t, h, url, db.token, admitted, patience)
				}
			}
			if len(running) < 5 {
				t.Fatalf("only %d faults", len(running))
			}
			for name, wait := range running {
				got := wait()
				if got.trained() || got.code == 0 || h.codes && got.code != exitNoAnswer {
					t.Errorf("%s: exit %d, want %d\n%s%s", name, got.code, exitNoAnswer, got.stdout, got.stderr)
				}
				lines := slices.Compact(strings.Split(strings.TrimSpace(got.stderr), "\n")) // a CI job asks twice
				if len(lines) > 2 || !strings.Contains(lines[0], "closed") {
					t.Errorf("%s: it does not say in one line that it is closed:\n%s", name, got.stderr)
				}
				if name == "an unknown authority" && !strings.Contains(got.stderr, "certificate") {
					t.Errorf("%s: it does not say so:\n%s", name, got.stderr)
				}
				if got.took > 30*time.Second { // a second each question, on a machine that is busy
					t.Errorf("%s: it took %s", name, got.took)
				}
			}
		})
	}
}

// faultyGates are servers that answer wrongly about a spec that is admitted, by
// what is wrong with them.
func faultyGates(t testing.TB, live, token string, spec []byte) map[string]string {
	t.Helper()
	serve := func(answer http.HandlerFunc) string {
		s := httptest.NewServer(answer)
		t.Cleanup(s.Close)
		return s.URL
	}
	ask := func(path string) []byte {
		r, err := send(t.Context(), http.MethodPost, live+path, token, spec)
		if err != nil || r.status/100 != 2 {
			t.Fatalf("%s: %d %s %v", path, r.status, r.body, err)
		}
		return r.body
	}
	screened, gate := ask("/v1/screenings"), ask("/v1/gate/check")
	right := func(r *http.Request) []byte {
		if strings.HasPrefix(r.URL.Path, "/v1/screenings") && r.URL.Query().Get("gate") == "" {
			return screened
		}
		return gate
	}
	raw := func(answer func(r *http.Request) string) string { // and then the connection ends
		return serve(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, buffer, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			_, _ = buffer.WriteString(answer(r))
			_ = buffer.Flush()
			_ = conn.Close()
		})
	}
	half := func(r *http.Request) string { body := string(right(r)); return body[:len(body)-3] }
	selfSigned := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(right(r)) }))
	selfSigned.Config.ErrorLog = log.New(io.Discard, "", 0) // its clients hang up: that is the point
	selfSigned.StartTLS()
	t.Cleanup(selfSigned.Close)
	reset, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reset.Close() })
	go func() {
		for {
			conn, err := reset.Accept()
			if err != nil {
				return
			}
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	}()
	return map[string]string{
		"down":         "http://" + unusedAddress(t),
		"no such host": "http://weir.invalid",
		"hanging":      serve(func(_ http.ResponseWriter, r *http.Request) { untilGone(r) }),
		"resets":       "http://" + reset.Addr().String(),
		"503":          serve(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) }),
		"500 of a weir": serve(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			_, _ = w.Write([]byte(`{"type":"urn:weir:problem:internal","title":"Internal error","status":500,"request_id":"R"}`))
		}),
		"404 of another": serve(http.NotFound),
		"200 of another": serve(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html>\"gate\" admitted, welcome</html>"))
		}),
		"another spec's answer": serve(func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(bytes.ReplaceAll(right(r), fmt.Appendf(nil, "%x", sha256.Sum256(spec)), bytes.Repeat([]byte("a"), 64)))
		}),
		"200 and nothing": serve(func(http.ResponseWriter, *http.Request) {}),
		"a redirect": serve(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, live+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		}),
		"cut, with a length": raw(func(r *http.Request) string {
			return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(right(r)), half(r))
		}),
		"cut, without a length": raw(func(r *http.Request) string { return "HTTP/1.1 200 OK\r\n\r\n" + half(r) }),
		"cut in the header":     raw(func(*http.Request) string { return "HTTP/1.1 200 OK\r\nContent-Le" }),
		"wrong status line":     raw(func(r *http.Request) string { return "SSH-2.0-OpenSSH_9.9\r\n" }),
		"a dribble": serve(func(w http.ResponseWriter, r *http.Request) {
			body := right(r)
			for tick := time.NewTicker(100 * time.Millisecond); ; {
				_, _ = w.Write(body[:1])
				_ = http.NewResponseController(w).Flush()
				select {
				case <-tick.C:
					body = append(body[1:], ' ')
				case <-r.Context().Done():
					tick.Stop()
					return
				}
			}
		}),
		"an unknown authority": selfSigned.URL,
		"TLS on a plain port":  strings.Replace(live, "http:", "https:", 1),
	}
}

// Without an answer there is no report: code scanning refuses an empty file.
func TestNoEmptyReportIsUploaded(t *testing.T) {
	t.Parallel()
	h := pipelineHook{command: script("code=0\n(\n" + ciScript(t, "github/train.yaml") + "\n) || code=$?\n[ -e weir.sarif ] || echo NO REPORT\nexit $code")}
	if got := runHook(t, h, "http://"+unusedAddress(t), "key", spec("r"), "WEIR_TIMEOUT=1"); got.code != exitNoAnswer || !strings.Contains(got.stdout, "NO REPORT") {
		t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// The same certificate opens the gate to who trusts it: it was the certificate
// that the hooks refused.
func TestHooksTrustAGivenAuthority(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, "")).ready()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { forward(t, w, r, g.url) }))
	t.Cleanup(server.Close)
	authority := writeFile(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), t.TempDir(), "ca.pem")
	for _, h := range allHooks(t) {
		if !h.asker {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			got := runHook(t, h, server.URL, db.token, spec("tls-"+strings.Fields(h.name)[0]), "SSL_CERT_FILE="+authority, "CURL_CA_BUNDLE="+authority)
			if got.code != 0 || !got.trained() {
				t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
			}
		})
	}
}

// The hooks that wait let the training start when people admit the run, and not
// when they block it.
func TestHooksWaitForPeople(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, "")).ready()
	for _, h := range []pipelineHook{
		{"weir check", true, true, script(`weir check --wait 30s "$SPEC" && echo TRAINED`)},
		{"python", true, true, script(`python3 -m weir_gate check --wait 30s "$SPEC" && echo TRAINED`)},
		{"airflow", true, false, script(`python3 "$HOOKS/testdata/drive.py" airflow "$SPEC"`)},
	} {
		for choice, want := range map[string]int{"admit": exitAdmit, "block": exitBlock} {
			t.Run(h.name+", "+choice, func(t *testing.T) {
				t.Parallel()
				run := strings.Replace(h.name, " ", "-", 1) + "-" + choice
				raw := spec(run, escalates)
				r, err := post(t.Context(), g.url, db.token, run, raw)
				if err != nil || r.status != 202 {
					t.Fatalf("%d %s %v", r.status, r.body, err)
				}
				asked, voted := make(chan struct{}), make(chan struct{})
				ask := sync.OnceFunc(func() { close(asked) })
				proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					if req.URL.Query().Has("wait") { // it waits now: people may decide
						ask()
					}
					forward(t, w, req, g.url)
				}))
				t.Cleanup(proxy.Close)
				go func() {
					defer close(voted)
					<-asked
					v, err := send(t.Context(), "POST", g.url+"/v1/reviews/"+r.text("review", "id")+"/votes", makeKey(t, db.store, "chi"), fmt.Appendf(nil,
						`{"expected_version": 1, "spec_sha256": %q, "vote": %q, "reason": "looked", "terms": ["ethics:personal_data_inside"]}`, r.text("spec_sha256"), choice))
					if err != nil || v.status != 200 {
						t.Errorf("vote: %d %s %v", v.status, v.body, err)
					}
				}()
				got := runHook(t, h, proxy.URL, db.token, raw)
				ask() // in case it did not
				<-voted
				if got.code != want || got.trained() != (want == 0) {
					t.Errorf("exit %d, want %d\n%s%s", got.code, want, got.stdout, got.stderr)
				}
			})
		}
	}
}

// forward passes a request on, and the answer back.
func forward(t testing.TB, w http.ResponseWriter, r *http.Request, to string) {
	req, err := http.NewRequestWithContext(r.Context(), r.Method, to+r.URL.RequestURI(), r.Body)
	if err != nil {
		t.Error(err)
		return
	}
	req.Header = r.Header.Clone()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // the client went away
	}
	defer resp.Body.Close()
	for k, v := range resp.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

// A callback that is to verify the admission does not train where there is none
// to verify.
func TestTrainerNeedsAnAdmissionToVerify(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, "")).ready()
	h := pipelineHook{command: script(`python3 "$HOOKS/testdata/drive.py" verified "$SPEC"`)}
	missing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/admission") {
			http.NotFound(w, r)
			return
		}
		forward(t, w, r, g.url)
	}))
	t.Cleanup(missing.Close)
	if got := runHook(t, h, missing.URL, db.token, spec("missing")); got.trained() || got.code != exitNoAnswer {
		t.Errorf("without an admission: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	signed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/admission") {
			_, _ = io.WriteString(w, "{}")
			return
		}
		forward(t, w, r, g.url)
	}))
	t.Cleanup(signed.Close)
	if got := runHook(t, h, signed.URL, db.token, spec("signed")); !got.trained() {
		t.Errorf("with an admission its verifier likes: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// The prolog stops no job that is not a training, and every training that names
// no spec.
func TestSlurmProlog(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		env  []string
		open bool
	}{
		{"another partition", []string{"SLURM_JOB_PARTITION=debug", "SLURM_JOB_COMMENT="}, true},
		{"part of a name", []string{"SLURM_JOB_PARTITION=tra", "SLURM_JOB_COMMENT="}, true},
		{"no partition", []string{"SLURM_JOB_PARTITION="}, false},
		{"no comment", []string{"SLURM_JOB_COMMENT="}, false},
		{"no digest", []string{"SLURM_JOB_COMMENT=weir:" + strings.Repeat("z", 64)}, false},
		{"a short digest", []string{"SLURM_JOB_COMMENT=weir:abc"}, false},
		{"two lines", []string{"SLURM_JOB_COMMENT=weir:" + strings.Repeat("a", 63) + "\n"}, false},
		{"no settings", []string{"WEIR_ENV=/nonexistent"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := runHook(t, pipelineHook{command: prolog}, "http://"+unusedAddress(t), "k", spec("r"), append(tt.env, "WEIR_TIMEOUT=1")...)
			if got.trained() != tt.open || (got.code == 0) != tt.open || (got.stderr == "") != tt.open {
				t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
			}
		})
	}
}

// The processes of one training ask about one spec at the same time, and all of
// them hear that it is admitted.
func TestPythonClientInManyProcesses(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, "")).ready()
	h := pipelineHook{command: script(`python3 -c '
import concurrent.futures, sys
from weir_gate import Gate
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    got = list(pool.map(lambda _: Gate().admit(sys.argv[1]), range(32)))
assert len(got) == 32 and len({a.spec_sha256 for a in got}) == 1
print("TRAINED")
' "$SPEC"`)}
	if got := runHook(t, h, g.url, db.token, spec("many")); !got.trained() {
		t.Errorf("exit %d\n%s", got.code, got.stderr)
	}
}

// A spec whose place another took stays out: asking again does not bring it back.
func TestPythonClientRevivesNothing(t *testing.T) {
	t.Parallel()
	db := newDatabase(t)
	g := startGate(t, []string{db.env()}, "--config", configFor(t, "")).ready()
	h := pipelineHook{command: script(`python3 -m weir_gate check "$SPEC" && echo TRAINED`)}
	old, newer := spec("r"), append(spec("r"), "# newer\n"...)
	for i, raw := range [][]byte{old, newer, old, newer} {
		want := exitAdmit
		if i == 2 {
			want = exitEnded
		}
		if got := runHook(t, h, g.url, db.token, raw); got.code != want {
			t.Errorf("step %d: exit %d, want %d\n%s", i, got.code, want, got.stderr)
		}
	}
}

// The Kubeflow pipeline does not cache its gate, and trains after it.
func TestKubeflowPipeline(t *testing.T) {
	t.Parallel()
	h := pipelineHook{command: script(`python3 "$HOOKS/testdata/drive.py" kubeflow "$SPEC"`)}
	if got := runHook(t, h, "http://weir.invalid", "k", spec("r")); got.code != 0 {
		t.Errorf("exit %d\n%s", got.code, got.stderr)
	}
}

// The client keeps to the Python that its package asks for, and to the standard library.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	h := pipelineHook{command: script(`python3 - <<'EOF'
import ast, glob, os, pickle
stdlib = set("__future__ argparse dataclasses functools hashlib http json os queue re secrets ssl sys threading time typing urllib warnings".split())
folder = os.path.join(os.environ["PYTHONPATH"].split(":")[0], "weir_gate")
files = glob.glob(os.path.join(folder, "*.py"))
assert len(files) == 2 and os.path.exists(os.path.join(folder, "py.typed")), files
for name in files:
    tree = ast.parse(open(name, encoding="utf-8").read(), feature_version=(3, 9))
    for node in ast.walk(tree):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        for n in names:
            assert n.split(".")[0] in stdlib, n
import weir_gate
for cls in weir_gate.Blocked, weir_gate.Pending, weir_gate.Ended, weir_gate.Refused, weir_gate.NoAnswer:
    err = cls("why\nnot")
    err.screening = "s"
    back = pickle.loads(pickle.dumps(err))  # frameworks send errors from one process to another
    assert (type(back), str(back), back.screening, back.exit_code) == (cls, str(err), "s", cls.exit_code), back
    assert "\n" not in str(err)
for server, key, timeout in ("weir.example", "k", 1), ("http://h", "", 1), ("http://h", "a\nb", 1), ("http://h", "k", 0):
    try:
        weir_gate.Gate(server, key, timeout=timeout)
    except weir_gate.Refused:
        continue
    raise AssertionError((server, key, timeout))
EOF
`)}
	if got := runHook(t, h, "http://weir.invalid", "", spec("r")); got.code != 0 {
		t.Errorf("exit %d\n%s", got.code, got.stderr)
	}
}

// Every hook is on the page, and short enough to paste.
func TestHooksHaveAPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(deployDir, "hooks", "*", "*.*"))
	if err != nil || len(files) < 13 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	const most = 80
	for _, path := range files {
		dir, name := filepath.Base(filepath.Dir(path)), filepath.Base(path)
		if dir == "testdata" {
			continue
		}
		if !bytes.Contains(page, []byte(dir+"/"+name)) && !bytes.Contains(page, []byte("["+name+"]")) {
			t.Errorf("%s/%s is not on the page", dir, name)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n > most {
			t.Errorf("%s/%s has %d lines; %d can be pasted", dir, name, n, most)
		}
	}
}
