package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

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

// It waits for people unless the gate says with one of two words that it only reports.
func TestPythonClientKnowsWhatIsReported(t *testing.T) {
	t.Parallel()
	h := pipelineHook{command: script(`python3 -m weir_gate check --wait 1s "$SPEC" && echo TRAINED`)}
	for would, waits := range map[string]bool{`"block"`: false, `"escalate"`: false, `"tolerate"`: true, `true`: true, `["block"]`: true} {
		t.Run(would, func(t *testing.T) {
			t.Parallel()
			var submitted, waited atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				kind, status := "gate-pending", http.StatusConflict
				switch {
				case r.Method == http.MethodGet:
					waited.Store(true)
					fmt.Fprint(w, `{"id": "S", "run_ref": "r", "status": "blocked", "decision": {}}`) // so that the wait ends
					return
				case r.URL.Path == "/v1/screenings":
					submitted.Store(true)
					w.WriteHeader(http.StatusAccepted)
					fmt.Fprintf(w, `{"id": "S", "run_ref": "r", "status": "pending", "decision": {}, "would": %s}`, would)
					return
				case !submitted.Load():
					kind, status = "not-found", http.StatusNotFound
				}
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"type": "urn:weir:problem:%s", "title": "T", "screening": "S"}`, kind)
			}))
			t.Cleanup(server.Close)
			if got := runHook(t, h, server.URL, "key", spec("r")); got.code != exitPending || got.trained() || waited.Load() != waits {
				t.Errorf("exit %d, waited %t, want %t\n%s%s", got.code, waited.Load(), waits, got.stdout, got.stderr)
			}
		})
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
