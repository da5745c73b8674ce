package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/review"
	"weir/store"
	"weir/store/storetest"
)

// shared holds what is made once for all tests of this package: the binary and a
// ratified pack.
var shared struct {
	dir    string
	binary func() (string, error)
	pack   func() (string, error)
	python func() (string, error)
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-cmd-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared.dir = dir
	if err := os.Unsetenv("GITHUB_STEP_SUMMARY"); err != nil { // these tests may run in a job that has one
		fmt.Fprintln(os.Stderr, err)
	}
	shared.binary = sync.OnceValues(buildBinary)
	shared.pack = sync.OnceValues(ratifyPack)
	shared.python = sync.OnceValues(findPython)
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func buildBinary() (string, error) {
	path := filepath.Join(shared.dir, "weir")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
}

func binary(t testing.TB) string {
	t.Helper()
	path, err := shared.binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

const pledgeYAML = `schema: weir/pack/v1
id: pledge
version: "1"
layer: ethics
title: Pledge for tests
description: One term that a single statement decides.
terms:
  - id: personal_data_inside
    title: Data about people without a word on it
    description: An input holds data about people.
    severity: medium
    over: [dataset]
    violated_if: {tag: {personal_data: present}}
    response: escalate
    remedy: Take the data about people out of the input, or replace it by invented data and state personal_data as absent.
`

const pledgeCases = `schema: weir/cases/v1
pack: pledge
cases:
- name: inside
  spec: {inputs: [{id: a, kind: dataset, disclosures: [{tag: personal_data, state: present, basis: structured}]}]}
  expect: {personal_data_inside: violated}
- name: not inside
  spec: {inputs: [{id: a, kind: dataset, disclosures: [{tag: personal_data, state: absent, basis: structured}]}]}
  expect: {personal_data_inside: upheld}
complete:
- name: eight
  spec:
    objective: {kind: sft, purposes: [customer_support]}
    disclosures:
    - {tag: personal_data, state: absent, basis: structured}
    - {tag: minors, state: absent, basis: structured}
    - {tag: sexual_content, state: absent, basis: structured}
    - {tag: biometric, state: absent, basis: structured}
    inputs: [{id: a, kind: dataset}, {id: b, kind: dataset}, {id: c, kind: dataset}, {id: d, kind: dataset},
      {id: e, kind: dataset}, {id: f, kind: dataset}, {id: g, kind: code}, {id: h, kind: tokenizer}]
`

const testDay = "2026-11-01"

// writePack writes the pack and its cases, not ratified, and gives its path.
func writePack(dir string) (string, error) {
	path := filepath.Join(dir, "pledge.yaml")
	return path, errors.Join(os.WriteFile(path, []byte(pledgeYAML), 0o644),
		os.WriteFile(filepath.Join(dir, "pledge.cases.yaml"), []byte(pledgeCases), 0o644))
}

func ratifyPack() (string, error) {
	path, err := writePack(shared.dir)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if code := run(context.Background(), []string{"pack", "ratify", path, "--as-of", testDay}, &out, &out); code != 0 {
		return "", fmt.Errorf("ratify the pack for tests: exit %d: %s", code, &out)
	}
	return path, nil
}

// pledge is the path of a pack that is in force.
func pledge(t testing.TB) string {
	t.Helper()
	path, err := shared.pack()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// spec is admitted unless a change ("old → new" in its text) makes it otherwise.
func spec(run string, changes ...string) []byte {
	text := `schema: weir/spec/v1
run_ref: ` + run + `
owner: ana
objective: {kind: sft, purposes: [customer_support]}
inputs:
  - {id: tickets, kind: dataset}
disclosures:
  - {tag: personal_data, state: absent, basis: structured}
  - {tag: minors, state: absent, basis: structured}
  - {tag: sexual_content, state: absent, basis: structured}
  - {tag: biometric, state: absent, basis: structured}
`
	for _, c := range changes {
		old, new, _ := strings.Cut(c, " → ")
		text = strings.Replace(text, old, new, 1)
	}
	return []byte(text)
}

const (
	escalates = "personal_data, state: absent → personal_data, state: present"
	blocks    = "[customer_support] → [social_scoring]"
)

func writeFile(t testing.TB, data []byte, parts ...string) string {
	t.Helper()
	path := filepath.Join(parts...)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// secret signs the webhooks of the tests.
const secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"

// configFor writes the declarations of a set-up; hook is a receiver's URL, "" for none.
func configFor(t testing.TB, hook string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	writeFile(t, []byte("people: [{id: ana}, {id: bo}, {id: chi}]\nservices: [{id: airflow}]\ngroups: {general: [ana, bo, chi]}\n"), dir, "people.yaml")
	policies := "policies: [{id: general, group: general, quorum: 1, due: 48h%s}]\ndefault: general\n"
	if hook == "" {
		policies = fmt.Sprintf(policies, "")
	} else {
		policies = fmt.Sprintf(policies, ", endpoints: [hook]") +
			"endpoints: [{id: hook, url: \"" + hook + "\", secret_file: hook.secret, timeout: 1s, allow_http: true, allow_private: true}]\n"
		writeFile(t, []byte(secret+"\n"), dir, "hook.secret")
	}
	writeFile(t, []byte(policies), dir, "policies.yaml")
	return dir
}

// gate is a running weir serve, the built binary in a process of its own.
type gate struct {
	testing.TB
	cmd   *exec.Cmd
	url   string
	log   *output
	ended chan struct{}
}

// startGate starts the binary and returns when it listens.
func startGate(t testing.TB, env []string, args ...string) *gate {
	t.Helper()
	g := &gate{TB: t, log: &output{}, ended: make(chan struct{})}
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--packs", pledge(t), "--rate-limit", "0"}, args...) // tests are in a hurry
	g.cmd = exec.Command(binary(t), args...)
	g.cmd.Env = environment(env...)
	g.cmd.Stderr = g.log
	dieWithTest(g.cmd)
	started := make(chan error, 1)
	go func() {
		// To die with its parent means, to the kernel, with the thread that started it.
		runtime.LockOSThread()
		err := g.cmd.Start()
		if started <- err; err == nil {
			_ = g.cmd.Wait()
		}
		close(g.ended)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.kill)
	g.await("listening", func() bool {
		event := g.log.event("listening, not ready yet")
		g.url = event["scheme"] + "://" + event["address"]
		return event != nil
	})
	return g
}

// environment is the process's own without what could lead a gate astray.
func environment(extra ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "WEIR_") && !strings.HasPrefix(v, "WEIR_PG") || strings.HasPrefix(v, "DATABASE_URL=")
	})
	return append(env, extra...)
}

// await polls until something is so; a gate that ended or half a minute fail the test.
func (g *gate) await(what string, so func() bool) {
	g.Helper()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-g.ended:
			if so() {
				return
			}
			g.Fatalf("the gate ended before: %s\n%s", what, g.log)
		case <-limit.C:
			g.Fatalf("never: %s\n%s", what, g.log)
		}
	}
}

func (g *gate) ready() *gate {
	g.Helper()
	g.await("ready", func() bool {
		resp, err := http.Get(g.url + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == 200
	})
	return g
}

// kill is kill -9; it returns when the process is gone.
func (g *gate) kill() {
	_ = g.cmd.Process.Kill()
	<-g.ended
}

// stop asks with a signal and gives the exit code.
func (g *gate) stop(sig os.Signal) int {
	g.Helper()
	if err := g.cmd.Process.Signal(sig); err != nil {
		g.Fatal(err)
	}
	select {
	case <-g.ended:
	case <-time.After(30 * time.Second):
		g.Fatalf("did not stop\n%s", g.log)
	}
	return g.cmd.ProcessState.ExitCode()
}

// output collects what a process prints, one JSON event a line.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// event gives the first log event with this message, nil when there is none yet.
func (o *output) event(msg string) map[string]string {
	for line := range strings.Lines(o.String()) {
		var e map[string]any
		if json.Unmarshal([]byte(line), &e) == nil && e["msg"] == msg {
			out := map[string]string{}
			for k, v := range e {
				out[k] = fmt.Sprint(v)
			}
			return out
		}
	}
	return nil
}

// reply is an answer of the gate.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) text(path ...string) string {
	var v any
	if json.Unmarshal(r.body, &v) != nil {
		return ""
	}
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	s, _ := v.(string)
	return s
}

// post sends a spec under an idempotency key.
func post(ctx context.Context, url, token, key string, body []byte) (reply, error) {
	return send(ctx, http.MethodPost, url+"/v1/screenings", token, body, "Idempotency-Key", key)
}

func send(ctx context.Context, method, url, token string, body []byte, header ...string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/yaml")
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, data}, err
}

// database is a database of the test's own with a key for everything.
type testDatabase struct {
	dsn, token string
	store      *store.Store
}

func newDatabase(t testing.TB) testDatabase {
	t.Helper()
	dsn := storetest.DSN(t)
	st, err := store.Open(t.Context(), dsn, store.Config{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return testDatabase{dsn, makeKey(t, st, "bo"), st}
}

func (d testDatabase) env() string { return "DATABASE_URL=" + d.dsn }

func makeKey(t testing.TB, st *store.Store, subject string) (token string) {
	t.Helper()
	token, key, err := review.NewAPIKey()
	if err != nil {
		t.Fatal(err)
	}
	if err := st.CreateKey(t.Context(), store.NewKey{ID: key.ID, SecretSHA256: key.SecretSHA256, Project: "default", Subject: subject,
		Scopes: review.Scopes}); err != nil {
		t.Fatal(err)
	}
	return token
}

// result is how a command ended.
type result struct {
	code           int
	stdout, stderr string
}

// weir runs a command in this process, as main would.
func weir(t testing.TB, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), args, &out, &errs)
	return result{code, out.String(), errs.String()}
}

// weirEnv runs the built binary, for commands that read the environment.
func weirEnv(t testing.TB, env []string, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary(t), args...)
	cmd.Env = environment(env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// processesOn gives the pids of processes whose command line names a directory.
func processesOn(dir string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil // no such system: nothing to see here
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && bytes.Contains(line, []byte(dir)) {
			pids = append(pids, pid)
		}
	}
	return pids
}
