package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
