package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/store/ledger"
)

// recordedGate is a gate that signs its log, with some decisions in it.
func recordedGate(t *testing.T, n int) (g *gate, env []string, publicKey string) {
	t.Helper()
	d := newDatabase(t)
	dir := t.TempDir()
	key, err := ensureSigningKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	storedSpecs(t, d, "other", spec("of-another-project"))
	g = startGate(t, []string{d.env()}, "--config", configFor(t, ""), "--signing-key", key).ready()
	env = []string{"WEIR_SERVER=" + g.url, "WEIR_KEY=" + d.token}
	for i := range n {
		file := writeFile(t, spec(fmt.Sprint("run-", i)), t.TempDir(), "spec.yaml")
		if r := weirEnv(t, env, "check", file); r.code != exitAdmit {
			t.Fatalf("check: exit %d: %s%s", r.code, r.stdout, r.stderr)
		}
	}
	conn := connect(t, d.dsn)
	g.await("the log sequenced", func() bool {
		var left int
		err := conn.QueryRow(t.Context(), `select count(*) from audit_event where log_index is null`).Scan(&left)
		return err == nil && left == 0
	})
	return g, env, key + ".pub"
}

func TestExportAndVerify(t *testing.T) {
	t.Parallel()
	_, env, public := recordedGate(t, 3)
	dir := t.TempDir()
	bundle := filepath.Join(dir, "bundle")
	r := weirEnv(t, env, "export", "-o", bundle, "--key", public)
	if r.code != 0 || !strings.HasPrefix(r.stdout, "EXPORTED") {
		t.Fatalf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	// Verifying needs nothing but the files and the key.
	verify := func(args ...string) result { return weirEnv(t, nil, append([]string{"verify"}, args...)...) }
	if r := verify(bundle, "--key", public, "--replay"); r.code != exitVerified || !strings.HasPrefix(r.stdout, "VERIFIED") ||
		!strings.Contains(strings.Join(strings.Fields(r.stdout), " "), "3 decisions came out the same, byte for byte") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := verify(bundle); r.code != exitNotAuthent || !strings.HasPrefix(r.stdout, "INTACT, but not shown whose it is") {
		t.Errorf("without a key: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	for _, line := range strings.Split(verify(bundle, "--key", public).stdout, "\n") {
		if len([]rune(line)) > 80 && !strings.Contains(line, dir) {
			t.Errorf("longer than 80 columns: %s", line)
		}
	}
	if data, err := os.ReadFile(filepath.Join(bundle, "entries.jsonl")); err != nil || strings.Contains(string(data), "of-another-project") {
		t.Errorf("the bundle tells of another project: %v", err)
	}

	// One directory, one archive, the same content; a second export goes on from the first.
	archive := filepath.Join(dir, "bundle.zip")
	if r := weirEnv(t, env, "export", "-o", archive); r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	if r := verify(archive, "--key", public, "--output", "json"); r.code != exitVerified || !json.Valid([]byte(r.stdout)) {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := weirEnv(t, env, "export", "-o", archive); r.code != exitUsage || !strings.Contains(r.stderr, "is there already") {
		t.Errorf("over another file: exit %d: %s", r.code, r.stderr)
	}
	if r := weirEnv(t, env, "export", "-o", filepath.Join(dir, "next"), "--since", bundle); r.code != exitUsage || !strings.Contains(r.stderr, "no signed entries") {
		t.Errorf("nothing new: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}

	// Whatever was changed is named.
	entries := filepath.Join(bundle, "entries.jsonl")
	data, err := os.ReadFile(entries)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(entries, []byte(strings.Replace(string(data), `"outcome":"admit"`, `"outcome":"block"`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	r = verify(bundle, "--key", public)
	if r.code != exitBroken || !strings.HasPrefix(r.stdout, "BROKEN") || !strings.Contains(r.stdout, "entries.jsonl, entry ") {
		t.Errorf("changed: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	var v verification
	r = verify(bundle, "--output", "json")
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || r.code != exitBroken || v.Index == nil {
		t.Errorf("changed, as JSON: exit %d: %s, %v", r.code, r.stdout, err)
	}
	for _, args := range [][]string{nil, {filepath.Join(dir, "nothing")}, {public}, {bundle, "--database"}} {
		if r := verify(args...); r.code != exitUsage {
			t.Errorf("verify %v: exit %d, want %d: %s", args, r.code, exitUsage, r.stderr)
		}
	}
}

// A download that is cut off goes on where it was, and comes to the same archive.
func TestExportGoesOn(t *testing.T) {
	t.Parallel()
	g, env, public := recordedGate(t, 4)
	target, err := url.Parse(g.url)
	if err != nil {
		t.Fatal(err)
	}
	const cut = 2000
	proxy := httputil.NewSingleHostReverseProxy(target)
	cutting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("skip") != "" {
			proxy.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		proxy.ServeHTTP(rec, r)
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Length", fmt.Sprint(rec.Body.Len()))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()[:cut])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(cutting.Close)
	dir := t.TempDir()
	out := filepath.Join(dir, "a.zip")
	cutEnv := []string{"WEIR_SERVER=" + cutting.URL, env[1]}
	if r := weirEnv(t, cutEnv, "export", "-o", out); r.code != exitNoAnswer || !strings.Contains(r.stderr, "goes on from there") {
		t.Fatalf("cut off: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if info, err := os.Stat(out + ".part"); err != nil || info.Size() != cut {
		t.Fatalf("%v, %v: want %d bytes kept", info, err, cut)
	}
	if r := weirEnv(t, cutEnv, "export", "-o", out, "--run-ref", "other"); r.code != exitUsage || !strings.Contains(r.stderr, "of another export") {
		t.Errorf("another export into the same name: exit %d: %s", r.code, r.stderr)
	}
	if r := weirEnv(t, cutEnv, "export", "-o", out, "--key", public); r.code != 0 {
		t.Fatalf("going on: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	whole := filepath.Join(dir, "b.zip")
	if r := weirEnv(t, env, "export", "-o", whole); r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	a, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(whole)
	if err != nil || string(a) != string(b) {
		t.Errorf("in two parts it is another archive: %d and %d bytes, %v", len(a), len(b), err)
	}
	for _, left := range []string{".part", ".part.json"} {
		if _, err := os.Stat(out + left); err == nil {
			t.Errorf("%s is left behind", left)
		}
	}
}

// Killed between commit and sequencing, twenty times, the log has every event once
// and without a gap, and every checkpoint goes on from the one before.
func TestCrashBetweenCommitAndLog(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	key, err := ensureSigningKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const rounds, each = 20, 4
	conn := connect(t, d.dsn)
	early := 0 // rounds that were killed while something was not sequenced
	for i := range rounds {
		g := startGate(t, []string{d.env()}, "--config", configFor(t, ""), "--signing-key", key).ready()
		for j := range each {
			req, err := http.NewRequest(http.MethodPost, g.url+"/v1/screenings", bytes.NewReader(spec(fmt.Sprintf("run-%d-%d", i, j))))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+d.token)
			req.Header.Set("Content-Type", "application/yaml")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusCreated {
				t.Fatalf("status %d", resp.StatusCode)
			}
		}
		g.kill()
		var left int
		if err := conn.QueryRow(t.Context(), `select count(*) from audit_event where log_index is null`).Scan(&left); err != nil {
			t.Fatal(err)
		}
		if left > 0 {
			early++
		}
	}
	if early == 0 {
		t.Error("no round was killed before its events were sequenced: this shows nothing")
	}
	g := startGate(t, []string{d.env()}, "--config", configFor(t, ""), "--signing-key", key).ready()
	g.await("the log sequenced", func() bool {
		var left int
		err := conn.QueryRow(t.Context(), `select count(*) from audit_event where log_index is null`).Scan(&left)
		return err == nil && left == 0
	})
	var events, decided int
	if err := conn.QueryRow(t.Context(), `select count(*), count(*) filter (where type = 'screening.decided') from audit_event`).Scan(&events, &decided); err != nil {
		t.Fatal(err)
	}
	r := weirEnv(t, []string{d.env()}, "verify", "--database", "--key", key+".pub")
	if want := fmt.Sprintf("%d entries are chained", events); r.code != exitVerified || !strings.Contains(r.stdout, want) || decided != rounds*each {
		t.Errorf("exit %d: %s%s, want %s, of %d decisions", r.code, r.stdout, r.stderr, want, rounds*each)
	}
}

// The trainer's check before the first step, with nothing but files.
func TestAdmissionOffline(t *testing.T) {
	t.Parallel()
	g, env, public := recordedGate(t, 0)
	dir := t.TempDir()
	file := writeFile(t, spec("nlp/run"), dir, "spec.yaml")
	admission := filepath.Join(dir, "admission.json")
	if r := weirEnv(t, env, "check", file, "--admission-out", admission); r.code != exitAdmit {
		t.Fatalf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	verify := func(args ...string) result {
		return weirEnv(t, nil, append([]string{"verify", "--spec", file, "--admission", admission}, args...)...)
	}
	if r := verify("--key", public); r.code != exitVerified || !strings.HasPrefix(r.stdout, "VERIFIED") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := verify(); r.code != exitNotAuthent {
		t.Errorf("without a key: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	other, err := ensureSigningKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if r := verify("--key", other+".pub"); r.code != exitBroken || !strings.Contains(r.stdout, "is not signed by the given key") {
		t.Errorf("another gate's key: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	list := func() string {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, g.url+"/v1/admissions/revoked", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimPrefix(env[1], "WEIR_KEY="))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp.StatusCode, string(body), err)
		}
		return writeFile(t, body, t.TempDir(), "revoked.json")
	}
	if r := verify("--key", public, "--revocations", list()); r.code != exitVerified {
		t.Errorf("not revoked: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	// Another spec takes the run's place: the admission is revoked.
	next := writeFile(t, append(spec("nlp/run"), "\n# changed\n"...), dir, "next.yaml")
	if r := weirEnv(t, env, "check", next); r.code != exitAdmit {
		t.Fatalf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := verify("--key", public, "--revocations", list()); r.code != exitBroken || !strings.Contains(r.stdout, "revoked") {
		t.Errorf("revoked: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	// Other bytes, however little they differ.
	if err := os.WriteFile(file, append(spec("nlp/run"), '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := verify("--key", public); r.code != exitBroken || !strings.Contains(r.stdout, "other bytes") {
		t.Errorf("other bytes: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	escalated := writeFile(t, spec("people", escalates), dir, "escalated.yaml")
	none := filepath.Join(dir, "none.json")
	if r := weirEnv(t, env, "check", escalated, "--admission-out", none); r.code != exitPending {
		t.Fatalf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("an admission was written for what is not admitted")
	}
}

func TestSigningKeyMustBeSecret(t *testing.T) {
	t.Parallel()
	path, err := ensureSigningKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ensureSigningKey(filepath.Dir(path)); err != nil || again != path {
		t.Errorf("%s, %v", again, err)
	}
	for mode, fine := range map[fs.FileMode]bool{0o600: true, 0o400: true, 0o440: true, 0o640: true, 0o660: false, 0o644: false, 0o602: false, 0o604: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := loadSigningKeys([]string{path}); fine && err != nil || !fine && (err == nil || !strings.Contains(err.Error(), "chmod 600")) {
			t.Errorf("with mode %o: %v", mode, err)
		}
	}
}

// What a key signed of the log in the database, and no other that is given with it.
func TestVerifyDatabaseNamesWhoSigned(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	conn := connect(t, d.dsn)
	keys := make([]string, 3)
	for i := range keys {
		var err error
		if keys[i], err = ensureSigningKey(t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	id := func(i int) string {
		data, err := os.ReadFile(keys[i] + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		k, err := ledger.ParsePublicKey(data)
		if err != nil {
			t.Fatal(err)
		}
		return k.ID()
	}
	size := 0
	for i, use := range []string{keys[0], keys[1], ""} { // the third signs nothing; the last gate has no key
		args := []string{"--config", configFor(t, "")}
		if use != "" {
			args = append(args, "--signing-key", use)
		}
		g := startGate(t, []string{d.env()}, args...).ready()
		g.await("its keys in the log", func() bool {
			var n, left int
			err := conn.QueryRow(t.Context(), `select count(*) filter (where type = 'key.rotated'), count(*) filter (where log_index is null) from audit_event`).Scan(&n, &left)
			return err == nil && n == i+1 && left == 0
		})
		g.kill()
		if i == 1 {
			if err := conn.QueryRow(t.Context(), `select max(size) from log_checkpoint`).Scan(&size); err != nil {
				t.Fatal(err)
			}
		}
	}
	verify := func(given ...int) result {
		args := []string{"verify", "--database"}
		for _, i := range given {
			args = append(args, "--key", keys[i]+".pub")
		}
		return weirEnv(t, []string{d.env()}, args...)
	}
	signed, upTo := "signed by key ", fmt.Sprintf(" up to entry %d", size-1)
	for _, tt := range []struct {
		given         []int
		says, saysNot []string
		first         string
	}{
		{nil, []string{"no public key was given", id(0), id(1)}, []string{signed}, "INTACT, but not shown whose it is"},
		{[]int{2}, []string{"none of the keys that were given"}, []string{signed, id(2)}, "INTACT, but signed with none of these keys"},
		{[]int{0}, []string{signed + id(0), "which signed too"}, []string{upTo, signed + id(1)}, "INTACT, but signed up to entry"},
		{[]int{1, 2}, []string{signed + id(1) + upTo, "whose the last 1 entry"}, []string{id(2)}, "INTACT, but signed up to entry"},
	} {
		r := verify(tt.given...)
		text := strings.Join(strings.Fields(r.stdout), " ")
		if r.code != exitNotAuthent || !strings.HasPrefix(text, tt.first) {
			t.Errorf("%v: exit %d: %s%s", tt.given, r.code, r.stdout, r.stderr)
		}
		for _, want := range tt.says {
			if !strings.Contains(text, want) {
				t.Errorf("%v: no %q in %s", tt.given, want, r.stdout)
			}
		}
		for _, not := range tt.saysNot {
			if strings.Contains(text, not) {
				t.Errorf("%v: %q in %s", tt.given, not, r.stdout)
			}
		}
	}
	startGate(t, []string{d.env()}, "--config", configFor(t, ""), "--signing-key", keys[1]).ready().await("all signed", func() bool {
		var n, left int
		err := conn.QueryRow(t.Context(), `select count(*) filter (where type = 'key.rotated'), count(*) filter (where log_index is null) from audit_event`).Scan(&n, &left)
		return err == nil && n == 4 && left == 0
	})
	if r := verify(1); r.code != exitVerified || strings.Contains(r.stdout, id(2)) {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	var first int
	if err := conn.QueryRow(t.Context(), `select min(size) from log_checkpoint where note is not null`).Scan(&first); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), fmt.Sprintf(`set session_replication_role = replica; update log_checkpoint set note = null where size = %d`, first)); err != nil {
		t.Fatal(err)
	}
	if r := verify(1); r.code != exitBroken || !strings.Contains(r.stdout, fmt.Sprintf("log_checkpoint, entry %d: is not signed", first)) {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}
