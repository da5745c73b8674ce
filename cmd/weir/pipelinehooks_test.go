package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

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

// The Kubeflow pipeline does not cache its gate, and trains after it.
func TestKubeflowPipeline(t *testing.T) {
	t.Parallel()
	h := pipelineHook{command: script(`python3 "$HOOKS/testdata/drive.py" kubeflow "$SPEC"`)}
	if got := runHook(t, h, "http://weir.invalid", "k", spec("r")); got.code != 0 {
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
