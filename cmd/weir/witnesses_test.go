package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weir/store/ledger"
	"weir/webhooks/witness/witnesstest"
)

// A gate with two witnesses, one of which is away: the log goes on, what the other
// cosigned goes out with exports and admissions, and a verifier is told who saw it.
func TestWitnesses(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	dir := t.TempDir()
	key, err := ensureSigningKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"--config", configFor(t, ""), "--signing-key", key}
	g := startGate(t, []string{d.env()}, flags...).ready()
	file := writeFile(t, spec("run"), dir, "spec.yaml")
	env := func() []string { return []string{"WEIR_SERVER=" + g.url, "WEIR_KEY=" + d.token} }
	if r := weirEnv(t, env(), "check", file); r.code != exitAdmit {
		t.Fatalf("check: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	g.sequenced(d.dsn)
	asked, err := send(t.Context(), http.MethodGet, g.url+"/v1/audit/checkpoint", d.token, nil)
	if err != nil || asked.status != 200 {
		t.Fatalf("%d, %v", asked.status, err)
	}
	if code := g.stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit %d\n%s", code, g.log)
	}

	pem, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	public, err := ledger.ParsePublicKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	origin, _, _ := strings.Cut(string(asked.body), "\n")
	vkey, err := public.VerifierKey(origin)
	if err != nil {
		t.Fatal(err)
	}
	up, down := witnesstest.New(t, "up.example"), witnesstest.New(t, "down.example")
	up.Trust(t, vkey)
	down.Server.Close()
	g = startGate(t, []string{d.env()}, append(flags, "--witness", up.Declared(), "--witness", down.Declared(), "--witness-allow-private")...).ready()
	var note []byte
	g.await("cosigned", func() bool {
		a, err := send(t.Context(), http.MethodGet, g.url+"/v1/audit/checkpoint?cosigned=true", d.token, nil)
		note = a.body
		return err == nil && a.status == 200
	})
	if size, n := witnesstest.Verify(t, note, origin, vkey, up, down); n != 1 || size < 1 {
		t.Errorf("the other libraries see %d cosignatures of %d entries", n, size)
	}
	if event := g.log.event("witnesses are asked"); event["log_key"] != vkey {
		t.Errorf("what to give to a witness: %v, want %s", event, vkey)
	}
	g.await("the one that is away is told", func() bool {
		a, err := send(t.Context(), http.MethodGet, g.url+"/readyz", "", nil)
		return err == nil && a.status == 200 && strings.Contains(string(a.body), "witness down.example does not answer") && !strings.Contains(string(a.body), "up.example")
	})
	if a, err := send(t.Context(), http.MethodGet, g.url+"/metrics", "", nil); err != nil || !strings.Contains(string(a.body), `weir_witness_behind_entries{witness="down.example"}`) {
		t.Errorf("metrics: %v", err)
	}

	admission, bundle := filepath.Join(dir, "admission.json"), filepath.Join(dir, "bundle")
	if r := weirEnv(t, env(), "check", file, "--admission-out", admission); r.code != exitAdmit {
		t.Fatalf("check: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := weirEnv(t, env(), "export", "-o", bundle); r.code != 0 {
		t.Fatalf("export: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if data, err := os.ReadFile(filepath.Join(bundle, ledger.CosignedFile)); err != nil || !strings.HasPrefix(string(data), origin+"\n") {
		t.Errorf("the bundle's cosigned state: %s, %v", data, err)
	}
	const saw = "witness up.example saw the same history up to entry "
	for what, args := range map[string][]string{
		"bundle":   {bundle},
		"database": {"--database"},
	} {
		verify := func(more ...string) result {
			r := weirEnv(t, []string{d.env()}, append(append([]string{"verify", "--key", key + ".pub"}, args...), more...)...)
			r.stdout = strings.Join(strings.Fields(r.stdout), " ")
			return r
		}
		if r := verify("--witness", up.Key); r.code != exitVerified || !strings.Contains(r.stdout, saw) {
			t.Errorf("%s: exit %d: %s%s", what, r.code, r.stdout, r.stderr)
		}
		if r := verify("--witness", up.Key, "--witness", down.Key); r.code != exitVerified || !strings.Contains(r.stdout, saw) || !strings.Contains(r.stdout, "that witness down.example saw this history") {
			t.Errorf("%s, one of two: exit %d: %s%s", what, r.code, r.stdout, r.stderr)
		}
		if r := verify("--witness", down.Key); r.code != exitNotAuthent || !strings.Contains(r.stdout, "INTACT, but seen by none of the witnesses") {
			t.Errorf("%s, none: exit %d: %s%s", what, r.code, r.stdout, r.stderr)
		}
		if r := verify("--witness", "up.example"); r.code != exitUsage {
			t.Errorf("%s, not a key: exit %d: %s", what, r.code, r.stderr)
		}
		if r := verify(); r.code != exitVerified {
			t.Errorf("%s, without witnesses: exit %d: %s%s", what, r.code, r.stdout, r.stderr)
		}
	}
	// The admission is of a decision made anew, which the witness is asked about in
	// its next round; until then it is not cosigned, and says so.
	r := weirEnv(t, nil, "verify", "--spec", file, "--admission", admission, "--key", key+".pub", "--witness", down.Key)
	if r.code != exitNotAuthent {
		t.Errorf("admission, none: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	g.await("the admission's state cosigned", func() bool {
		a, err := send(t.Context(), http.MethodGet, g.url+"/v1/screenings", d.token, nil)
		if err != nil {
			return false
		}
		var list struct{ Screenings []struct{ ID string } }
		if err := json.Unmarshal(a.body, &list); err != nil {
			t.Fatal(err)
		}
		got, err := send(t.Context(), http.MethodGet, g.url+"/v1/screenings/"+list.Screenings[0].ID+"/admission", d.token, nil)
		if err != nil || got.status != 200 || os.WriteFile(admission, got.body, 0o600) != nil {
			return false
		}
		r = weirEnv(t, nil, "verify", "--spec", file, "--admission", admission, "--key", key+".pub", "--witness", up.Key)
		return r.code == exitVerified
	})
	if !strings.Contains(strings.Join(strings.Fields(r.stdout), " "), saw) {
		t.Errorf("admission: %s%s", r.stdout, r.stderr)
	}
}

// A declaration that cannot be meant ends the start, and is found before it.
func TestWitnessesRefused(t *testing.T) {
	t.Parallel()
	w := witnesstest.New(t, "w.example")
	for name, args := range map[string][]string{
		"no key":      {"--witness", w.Server.URL},
		"no address":  {"--witness", w.Key},
		"without TLS": {"--witness", w.Declared()},
		"twice":       {"--witness", w.Declared(), "--witness", w.Declared(), "--witness-allow-private"},
	} {
		r := weirEnv(t, []string{"DATABASE_URL=postgres://127.0.0.1:1/x"}, append([]string{"serve", "--config", configFor(t, ""), "--packs", pledge(t)}, args...)...)
		if r.code != exitUsage || !strings.Contains(r.stderr, "witness") {
			t.Errorf("%s: exit %d: %s", name, r.code, r.stderr)
		}
	}
}
