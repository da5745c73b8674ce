package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"weir/store"
	"weir/store/ledger"
)

type memFile struct {
	files fstest.MapFS
	name  string
	bytes.Buffer
}

func (f *memFile) Close() error {
	f.files[f.name] = &fstest.MapFile{Data: f.Bytes()}
	return nil
}

// export writes a bundle into memory.
func (w *world) export(q ledger.Selection, keys ...ledger.Signer) (fstest.MapFS, ledger.Extent) {
	w.Helper()
	q.Project = "default"
	e, err := w.store.ExportExtent(w.Context(), q)
	if err != nil {
		w.Fatal(err)
	}
	files := fstest.MapFS{}
	create := func(name string) (io.WriteCloser, error) { return &memFile{files: files, name: name}, nil }
	if err := w.store.Export(w.Context(), q, e, create, func(int64) {}, keys...); err != nil {
		w.Fatal(err)
	}
	return files, e
}

func TestExportVerifies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := signingKey(t)
	if _, err := w.store.ExportExtent(t.Context(), ledger.Selection{Project: "default"}); !errors.Is(err, ledger.ErrNothingToExport) {
		t.Errorf("of an empty log: %v, want ErrNothingToExport", err)
	}
	if err := w.store.KeepPacks(t.Context(), w.packs()); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		w.submit("bo", spec(fmt.Sprint("even/", i), ""))
		w.submit("bo", spec(fmt.Sprint("odd/", i), "", "personal_data=present"))
	}
	w.sequenceAll(4, key)
	opt := ledger.VerifyOptions{Keys: []ledger.PublicKey{key.Public()}}
	first, extent := w.export(ledger.Selection{}, key)
	got, err := ledger.VerifyBundle(t.Context(), first, opt)
	if err != nil {
		t.Fatal(err)
	}
	m := got.Manifest
	if m.Shown != 10 || m.Hidden != 0 || m.Outcomes["admit"] != 5 || m.Outcomes["escalate"] != 5 || len(m.Packs) != 2 {
		t.Errorf("%+v", m)
	}
	for _, name := range []string{ledger.ReadmeFile, ledger.IndexFile, ledger.KeyFile} {
		if len(first[name].Data) == 0 {
			t.Errorf("%s is empty", name)
		}
	}

	w.submit("bo", spec("later", ""))
	w.sequenceAll(4, key)
	// The same extent again is the same bundle, byte for byte.
	again, _ := w.export(ledger.Selection{Size: extent.Size}, key)
	for name, file := range first {
		if !bytes.Equal(file.Data, again[name].Data) {
			t.Errorf("%s differs when exported again", name)
		}
	}
	// The next export goes on from there, and says so to whoever kept the checkpoint.
	next, _ := w.export(ledger.Selection{Since: extent.Size}, key)
	opt.Since = first[ledger.CheckpointFile].Data
	if got, err = ledger.VerifyBundle(t.Context(), next, opt); err != nil || got.Since == nil || got.Manifest.Shown != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	opt.Since = nil

	filtered, _ := w.export(ledger.Selection{RunRef: "odd/", Outcome: "escalate"}, key)
	if got, err = ledger.VerifyBundle(t.Context(), filtered, opt); err != nil || got.Manifest.Shown != 5 || got.Manifest.Hidden != 6 {
		t.Errorf("filtered: %+v, %v", got, err)
	}
	if strings.Contains(string(filtered[ledger.EntriesFile].Data), "even/") {
		t.Error("the filter lets through what it does not select")
	}
	digests, _ := w.export(ledger.Selection{DigestsOnly: true}, key)
	if _, err = ledger.VerifyBundle(t.Context(), digests, opt); err != nil || digests[ledger.PayloadsFile] != nil {
		t.Errorf("digests only: %v", err)
	}
}

// What somebody with all rights on the database changes is found, and named.
func TestTamperedDatabaseIsFound(t *testing.T) {
	t.Parallel()
	for name, tamper := range map[string]struct {
		sql   string
		index int64 // -1: the file only
		file  string
	}{
		"actor":      {`update audit_event set actor = 'eve' where log_index = 3`, 3, ledger.EntriesFile},
		"body":       {`update audit_event set body = replace(convert_from(body, 'UTF8'), 'admit', 'block')::bytea where log_index = 2`, 2, ledger.EntriesFile},
		"spec bytes": {`update payload set spec = spec || ' '::bytea where screening_id = (select screening_id from audit_event where log_index = 1)`, 1, ledger.PayloadsFile},
		"decision":   {`update payload set decision = '{"packs":[]}' where screening_id = (select screening_id from audit_event where log_index = 4)`, 4, ledger.PayloadsFile},
		"swapped":    {`update audit_event set log_index = 5 - log_index where log_index in (2, 3)`, 2, ledger.EntriesFile},
		"rehashed":   {`update audit_event set actor = 'eve', hash = sha256(prev_hash || convert_to(concat_ws(e'\n', screening_id, seq, type, 'eve', to_char(at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), ''), 'UTF8') || body) where log_index = 3`, 3, ledger.EntriesFile},
		"node":       {`update log_node set hash = sha256('x') where idx = 3`, 2, ledger.EntriesFile},
		"checkpoint": {`update log_checkpoint set root = sha256('x'), note = overlay(note placing 'x'::bytea from 3 for 1)`, -1, ledger.CheckpointFile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			key := signingKey(t)
			for i := range 6 {
				w.submit("bo", spec(fmt.Sprint("r", i), ""))
			}
			w.sequenceAll(100, key)
			if _, err := w.pool.Exec(t.Context(), `alter table audit_event disable trigger all; alter table log_node disable trigger all; alter table log_checkpoint disable trigger all; set session_replication_role = replica; drop index audit_event_by_log_index; `+tamper.sql); err != nil {
				t.Fatal(err)
			}
			files := fstest.MapFS{}
			create := func(name string) (io.WriteCloser, error) { return &memFile{files: files, name: name}, nil }
			q := ledger.Selection{Project: "default"}
			e, err := w.store.ExportExtent(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.store.Export(t.Context(), q, e, create, func(int64) {}, key); err != nil {
				t.Fatal(err)
			}
			_, err = ledger.VerifyBundle(t.Context(), files, ledger.VerifyOptions{Keys: []ledger.PublicKey{key.Public()}})
			var broken *ledger.BrokenError
			if !errors.As(err, &broken) || broken.File != tamper.file || broken.Index != tamper.index {
				t.Errorf("%v, want %s, entry %d", err, tamper.file, tamper.index)
			}
		})
	}
}

// Where an export begins and ends is looked up, however many checkpoints there are.
func TestExtentIsALookup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const all = 20_000 // one a second
	w.exec(`insert into log_checkpoint (size, previous, root, note, at)
		select n, n - 1, sha256('x'), repeat('n', 400)::bytea, date_trunc('second', now()) - ($1 - n) * interval '1 second' from generate_series(1, $1::integer) n`, all)
	w.exec(`vacuum analyze log_checkpoint`)
	seen := &statements{}
	st, err := store.Open(t.Context(), w.dsn, store.Traced(seen))
	w.ok("open", err)
	t.Cleanup(st.Close)
	last := one[time.Time](w, `select max(at) from log_checkpoint`)
	for name, tt := range map[string]struct {
		q           ledger.Selection
		first, size int64
	}{
		"all":              {ledger.Selection{}, 0, all},
		"lately":           {ledger.Selection{From: last.Add(-time.Minute)}, all - 60, all},
		"long ago":         {ledger.Selection{From: last.Add(-5 * time.Hour), To: last.Add(-4 * time.Hour)}, all - 5*3600, all - 4*3600 + 60},
		"the last minute":  {ledger.Selection{To: last.Add(-time.Second)}, 0, all},
		"before all of it": {ledger.Selection{From: last.Add(-all * time.Hour)}, 0, all},
		"again":            {ledger.Selection{Size: 7000}, 0, 7000},
		"what is new":      {ledger.Selection{Since: 7000}, 7000, all},
	} {
		tt.q.Project = "default"
		seen.take()
		e, err := st.ExportExtent(t.Context(), tt.q)
		w.ok(name, err)
		r, err := store.RecordsExtent(t.Context(), st, tt.q)
		w.ok(name, err)
		if e.First != tt.first || e.Size != tt.size || r != e {
			t.Errorf("%s: from %d to %d, as records %d to %d; want %d to %d", name, e.First, e.Size, r.First, r.Size, tt.first, tt.size)
		}
		for _, s := range seen.take() {
			if !strings.Contains(s.sql, "log_checkpoint") {
				continue
			}
			var plan []byte
			w.ok("explain", store.Of(w.store, "default").QueryRow(t.Context(), `explain (analyze, format json) `+s.sql, s.args...).Scan(&plan))
			for node, rows := range rowsRead(t, plan) {
				if rows > 10 {
					t.Errorf("%s: %s reads %d rows", name, node, rows)
				}
			}
		}
	}
}
