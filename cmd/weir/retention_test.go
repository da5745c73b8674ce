package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"weir/store/ledger"
)

// sequenced waits until every event is in the log.
func (g *gate) sequenced(dsn string) {
	g.Helper()
	conn := connect(g, dsn)
	g.await("the log sequenced", func() bool {
		var left int
		err := conn.QueryRow(g.Context(), `select count(*) from audit_event where log_index is null`).Scan(&left)
		return err == nil && left == 0
	})
}

// erasedScreening is a gate with a blocked spec whose bytes were erased.
func erasedScreening(t *testing.T) (d testDatabase, g *gate, env []string, key, id string) {
	t.Helper()
	d = newDatabase(t)
	key, err := ensureSigningKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g = startGate(t, []string{d.env()}, "--config", configFor(t, ""), "--signing-key", key).ready()
	env = []string{"WEIR_SERVER=" + g.url, "WEIR_KEY=" + d.token}
	r, err := post(t.Context(), g.url, d.token, "k", spec("r", blocks))
	if err != nil {
		t.Fatal(err)
	}
	id = r.text("id")
	if r := weirEnv(t, env, "erase", id, "--reason", "asked for by the data subject"); r.code != 0 || !strings.HasPrefix(r.stdout, "ERASED  spec ") {
		t.Fatalf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	g.sequenced(d.dsn)
	return d, g, env, key + ".pub", id
}

func TestEveryViewTellsWhatWasErased(t *testing.T) {
	t.Parallel()
	d, g, env, public, id := erasedScreening(t)
	bundle := filepath.Join(t.TempDir(), "bundle")
	if r := weirEnv(t, env, "export", "-o", bundle, "--key", public); r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	for name, tt := range map[string]struct {
		args []string
		code int
	}{
		"explain":         {[]string{"explain", id}, exitBlock},
		"explain as JSON": {[]string{"explain", id, "--output", "json"}, exitBlock},
		"wait":            {[]string{"wait", id}, exitBlock},
		"appeal":          {[]string{"review", "appeal", id, "look again"}, exitUsage},
		"export a form":   {[]string{"export", "--format", "spdx", id}, exitUsage},
		"verify":          {[]string{"verify", bundle, "--key", public}, exitVerified},
		"verify --replay": {[]string{"verify", bundle, "--key", public, "--replay"}, exitVerified},
	} {
		r := weirEnv(t, env, tt.args...)
		text := strings.Join(strings.Fields(r.stdout+r.stderr), " ")
		if r.code != tt.code || !strings.Contains(text, "bo") || !strings.Contains(text, "erased at") || !strings.Contains(text, "asked for by the data subject") {
			t.Errorf("%s: exit %d, want %d: %s", name, r.code, tt.code, text)
		}
	}
	for path, status := range map[string]int{"": 200, "?explain=true": 200, "/spec": 410, "/admission": 403} {
		r, err := send(t.Context(), http.MethodGet, g.url+"/v1/screenings/"+id+path, d.token, nil)
		if err != nil || r.status != status || r.text("erased", "reason") != "asked for by the data subject" || r.text("erased", "actor") != "bo" {
			t.Errorf("GET %s: %d, want %d: %v, %v", path, r.status, status, r, err)
		}
	}
	// The same bytes again are looked at anew.
	if r := weirEnv(t, env, "check", specFile(t, spec("r", blocks))); r.code != exitBlock || strings.Contains(r.stdout, "erased") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestEraseUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--reason", "r"}, {"x", "--reason", "r"}, {"--spec", "abc", "--reason", "r"},
		{"00000000-0000-0000-0000-000000000000", "--spec", strings.Repeat("a", 64), "--reason", "r"}} {
		if r := weir(t, append([]string{"erase"}, args...)...); r.code != exitUsage {
			t.Errorf("erase %v: exit %d, want %d: %s", args, r.code, exitUsage, r.stderr)
		}
	}
}

func TestRetentionCommand(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	storedSpecs(t, d, "default", spec("old"))
	conn := connect(t, d.dsn)
	for _, sql := range []string{
		`select ensure_payload_part('admit', '2020-01-01')`,
		`with moved as (delete from payload returning *) insert into payload (screening_id, project, outcome, month, spec, decision)
			select screening_id, project, outcome, '2020-01-01', spec, decision from moved`,
		`update screening set month = '2020-01-01', created_at = '2020-01-15', admitted_until = '2020-01-22'`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	config := configFor(t, "")
	policies, err := os.ReadFile(filepath.Join(config, "policies.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, append(policies, "retention: {admit: 90d, block: 730d}\n"...), config, "policies.yaml")
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"--dry-run"}, []string{"1 month due", "nothing was erased", "2020-01 admit", "90d 2020-05-01 due, 1 screening"}},
		{nil, []string{"1 month erased", "2020-01 admit", "erased, 1 screening"}},
		{[]string{"--dry-run"}, []string{"0 months due"}},
	} {
		r := weirEnv(t, []string{d.env()}, append([]string{"retention", "--config", config}, tt.args...)...)
		text := strings.Join(strings.Fields(r.stdout), " ")
		for _, want := range tt.want {
			if r.code != 0 || !strings.Contains(text, want) {
				t.Errorf("retention %v: exit %d, no %q in: %s%s", tt.args, r.code, want, r.stdout, r.stderr)
			}
		}
		for line := range strings.Lines(r.stdout) {
			if len(line) > width+1 {
				t.Errorf("wider than %d: %s", width, line)
			}
		}
	}
	writeFile(t, append(policies, "retention: {admit: 3d, block: ever}\n"...), config, "policies.yaml")
	r := weirEnv(t, []string{d.env()}, "retention", "--config", config)
	if r.code != exitUsage || !strings.Contains(r.stderr, "/retention/admit") || !strings.Contains(r.stderr, "/retention/block") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}

func TestFlatExports(t *testing.T) {
	t.Parallel()
	g, env, _ := recordedGate(t, 5)
	dir := t.TempDir()
	export := func(format string, more ...string) (path string, r result) {
		path = filepath.Join(dir, "out."+format)
		return path, weirEnv(t, env, append([]string{"export", "--format", format, "-o", path}, more...)...)
	}
	ids := map[string][]string{}
	path, r := export("ndjson")
	data, err := os.ReadFile(path)
	if r.code != 0 || err != nil {
		t.Fatalf("exit %d: %s, %v", r.code, r.stderr, err)
	}
	for line := range bytes.Lines(data) {
		var rec ledger.Record
		if err := json.Unmarshal(line, &rec); err != nil || rec.Input.Spec == nil || len(rec.Bundles) == 0 || len(rec.Results) == 0 {
			t.Fatalf("%s, %v", line, err)
		}
		ids["ndjson"] = append(ids["ndjson"], rec.DecisionID)
	}
	csvPath, r := export("csv")
	csvData, err := os.ReadFile(csvPath)
	if r.code != 0 || err != nil {
		t.Fatalf("exit %d: %s, %v", r.code, r.stderr, err)
	}
	rows, err := csv.NewReader(bytes.NewReader(csvData)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		ids["csv"] = append(ids["csv"], row[1])
	}
	parquetPath, r := export("parquet")
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	columns, err := parquet.ReadFile[ledger.Row](parquetPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range columns {
		ids["parquet"] = append(ids["parquet"], row.DecisionID)
	}
	for format, got := range ids {
		if len(got) != 5 || !slices.Equal(got, ids["ndjson"]) {
			t.Errorf("%s: %v, want %v", format, got, ids["ndjson"])
		}
	}

	// What was cut off anywhere goes on to the same file.
	for format, whole := range map[string][]byte{"ndjson": data, "csv": csvData} {
		for _, cut := range []int{0, 1, 50, len(whole) / 2, len(whole) - 1} {
			path := filepath.Join(dir, "out."+format)
			if err := errors.Join(os.Remove(path), os.WriteFile(path+".part", whole[:cut], 0o600)); err != nil {
				t.Fatal(err)
			}
			_, r := export(format, "--resume")
			if got, err := os.ReadFile(path); r.code != 0 || err != nil || !bytes.Equal(got, whole) {
				t.Fatalf("%s cut at %d: exit %d: %s, %v\n%s", format, cut, r.code, r.stderr, err, got)
			}
		}
		// What is whole is added to.
		if _, r := export(format); r.code != exitUsage || !strings.Contains(r.stderr, "--resume") {
			t.Errorf("%s over another: exit %d: %s", format, r.code, r.stderr)
		}
		if _, r := export(format, "--resume"); r.code != 0 || !strings.Contains(r.stdout, "0 bytes") {
			t.Errorf("%s: exit %d: %s%s", format, r.code, r.stdout, r.stderr)
		}
	}
	for _, args := range [][]string{{"--format", "xml"}, {"--format", "parquet", "--resume"}, {"--format", "csv", "--since", dir}, {"--resume"}} {
		if r := weirEnv(t, env, append([]string{"export", "-o", filepath.Join(dir, "x")}, args...)...); r.code != exitUsage {
			t.Errorf("%v: exit %d, want %d: %s", args, r.code, exitUsage, r.stderr)
		}
	}
	for _, query := range []string{"format=xml", "format=parquet&after=1", "format=csv&size=1", "after=1", "format=csv&after=x"} {
		r, err := send(t.Context(), http.MethodGet, g.url+"/v1/exports?"+query, strings.TrimPrefix(env[1], "WEIR_KEY="), nil)
		if err != nil || r.status != http.StatusBadRequest {
			t.Errorf("%s: status %d, want 400, %v", query, r.status, err)
		}
	}
}

// An export that ends early is no whole one.
func TestFlatExportCutOff(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `{"log_index":0}`)
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	out := filepath.Join(t.TempDir(), "out.ndjson")
	r := weirEnv(t, []string{"WEIR_SERVER=" + server.URL, "WEIR_KEY=weir_x"}, "export", "--format", "ndjson", "-o", out)
	if _, err := os.Stat(out); r.code != exitNoAnswer || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("exit %d, %v: %s%s", r.code, err, r.stdout, r.stderr)
	}
}

// The guide to backups in docs/operations.md, step by step.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	d, g, env, public, id := erasedScreening(t)
	if r := weirEnv(t, env, "check", specFile(t, spec("kept"))); r.code != exitAdmit {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	if r := weirEnv(t, env, "check", specFile(t, spec("open", escalates))); r.code != exitPending {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	g.sequenced(d.dsn)
	var bin string
	if err := connect(t, d.dsn).QueryRow(t.Context(), `select setting from pg_config where name = 'BINDIR'`).Scan(&bin); err != nil {
		t.Fatal(err)
	}
	postgres := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), filepath.Join(bin, name), args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	dump := filepath.Join(t.TempDir(), "weir.dump")
	postgres("pg_dump", "-Fc", "-f", dump, d.dsn) // while the gate runs
	before := filepath.Join(t.TempDir(), "before")
	if r := weirEnv(t, env, "export", "-o", before); r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}

	restored := emptyDatabase(t)
	postgres("pg_restore", "--exit-on-error", "--no-owner", "--no-privileges", "-d", restored, dump)
	database := []string{"DATABASE_URL=" + restored}
	verify := func() {
		t.Helper()
		if r := weirEnv(t, database, "verify", "--database", "--key", public); r.code != exitVerified {
			t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
		}
	}
	verify()
	again := startGate(t, database, "--config", configFor(t, ""), "--signing-key", strings.TrimSuffix(public, ".pub")).ready()
	env = []string{"WEIR_SERVER=" + again.url, "WEIR_KEY=" + d.token}
	// Everything is as it was: what was admitted, what waits, what was erased; and the log goes on.
	if r := weirEnv(t, env, "explain", id); r.code != exitBlock || !strings.Contains(r.stdout, "erased") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := weirEnv(t, env, "check", specFile(t, spec("open", escalates))); r.code != exitPending {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := weirEnv(t, env, "check", specFile(t, spec("after"))); r.code != exitAdmit {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	again.sequenced(restored)
	verify()
	after := filepath.Join(t.TempDir(), "after")
	if r := weirEnv(t, env, "export", "-o", after, "--since", before); r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	if r := weirEnv(t, nil, "verify", after, "--key", public, "--since", filepath.Join(before, ledger.CheckpointFile)); r.code != exitVerified {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}
