package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"weir/store"
	"weir/store/storetest"
)

// BenchmarkExport writes records straight into the tables, a million with
// -benchtime 1000000x, numbers them, and exports them in every form with the built
// programs. It reports the most memory that gate and command had, and the time.
//
//	go test ./cmd/weir -run '^$' -bench 'Export$' -benchtime 1000000x -timeout 60m
func BenchmarkExport(b *testing.B) {
	if b.N == 1 { // the trial that the testing package always makes
		return
	}
	d := newDatabase(b)
	binary(b) // built now, not after a quarter of an hour
	generate(b, d, b.N)
	key, err := ensureSigningKey(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	b.ResetTimer()
	for _, args := range [][]string{{"bundle.zip"}, {"digests.zip", "--digests-only"}, {"all.ndjson", "--format", "ndjson"},
		{"all.csv", "--format", "csv"}, {"all.parquet", "--format", "parquet"}} {
		g := startGate(b, []string{d.env()}, "--config", configFor(b, ""), "--signing-key", key).ready()
		g.await("a signed log", func() bool {
			var unsigned bool
			err := connect(b, d.dsn).QueryRow(b.Context(), `select note is null from log_checkpoint order by size desc limit 1`).Scan(&unsigned)
			return err == nil && !unsigned
		})
		start, out := time.Now(), filepath.Join(dir, args[0])
		cmd := exec.CommandContext(b.Context(), binary(b), append([]string{"export", "-o", out}, args[1:]...)...)
		cmd.Env = environment("WEIR_SERVER="+g.url, "WEIR_KEY="+d.token)
		if text, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %v\n%s", args, err, text)
		}
		info, err := os.Stat(out)
		if err != nil {
			b.Fatal(err)
		}
		name := args[0]
		b.Logf("%s: gate %d MB, command %d MB, %v", name, peakMemory(b, g)/1e6, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss*1024/1e6, time.Since(start))
		b.ReportMetric(float64(peakMemory(b, g))/1e6, name+"-gate-MB")
		b.ReportMetric(float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)*1024/1e6, name+"-command-MB")
		b.ReportMetric(time.Since(start).Seconds(), name+"-s")
		b.ReportMetric(float64(info.Size())/1e6, name+"-size-MB")
		if err := os.Remove(out); err != nil {
			b.Fatal(err)
		}
		g.kill()
	}
}

// generate multiplies one screening: each copy has its own spec bytes, decision
// and event, as if it had been submitted, and is in the log.
func generate(b *testing.B, d testDatabase, n int) {
	b.Helper()
	storedSpecs(b, d, "default", spec("many"))
	conn := connect(b, d.dsn)
	const chunk = 50_000
	for at := 1; at < n; at += chunk {
		if _, err := conn.Exec(b.Context(), `with one as (select s.*, encode(spec_sha256, 'hex') as hex, spec_of(s) as raw, decision_of(s) as decision, e.body
					from screening s join audit_event e on e.screening_id = s.id order by s.created_at limit 1),
				bytes as (select i, gen_random_uuid() as new_id, raw || convert_to('# ' || i || e'\n', 'UTF8') as bytes, one.* from one, generate_series($1::integer, $2::integer) i),
				sums as (select *, sha256(bytes) as sum, encode(sha256(bytes), 'hex') as new_hex from bytes),
				decided as (select *, convert_to(replace(convert_from(decision, 'UTF8'), hex, new_hex), 'UTF8') as new_decision from sums),
				new_spec as (insert into spec (project, sha256, canonical_sha256, inputs, read_again)
					select d.project, d.sum, d.canonical_sha256, o.inputs, false from decided d join spec o on o.project = d.project and o.sha256 = d.spec_sha256),
				new_screening as (insert into screening (id, project, spec_sha256, canonical_sha256, run_ref, team, submitter, owner, on_behalf_of, as_of, engine,
						outcome, decision_sha256, packs_sha256, findings_sha256, status, decided_by, admitted_until, month)
					select new_id, project, sum, canonical_sha256, run_ref || '/' || i, team, submitter, owner, on_behalf_of, as_of, engine,
						outcome, sha256(new_decision), packs_sha256, findings_sha256, status, decided_by, admitted_until, month from decided),
				new_payload as (insert into payload (screening_id, project, outcome, month, spec, decision) select new_id, project, outcome, month, bytes, new_decision from decided)
			insert into audit_event (screening_id, project, type, actor, body)
			select new_id, project, 'screening.decided', submitter, convert_to(replace(replace(convert_from(body, 'UTF8'), hex, new_hex),
				encode(decision_sha256, 'hex'), encode(sha256(new_decision), 'hex')), 'UTF8') from decided`, at, min(at+chunk, n)-1); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := conn.Exec(b.Context(), `analyze`); err != nil {
		b.Fatal(err)
	}
	st, err := store.Open(b.Context(), storetest.With(d.dsn, "statement_timeout", "10min"), store.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	for {
		placed, err := st.Sequence(b.Context(), 10_000)
		if err != nil {
			b.Fatal(err)
		}
		if placed == 0 {
			return
		}
	}
}
