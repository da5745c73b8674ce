package store_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"weir/review"
	"weir/store"
	"weir/store/ledger"
	"weir/webhooks"
)

func signingKey(t *testing.T) ledger.Key {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ledger.ParseKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sequenceAll sequences until nothing is left.
func (w *world) sequenceAll(limit int, keys ...ledger.Signer) (placed int) {
	w.Helper()
	for {
		n, err := w.store.Sequence(w.Context(), limit, keys...)
		if err != nil {
			w.Fatal(err)
		}
		if n == 0 {
			return placed
		}
		placed += n
	}
}

// checkLog builds the tree anew from the events, as an outsider would, and holds
// every signed checkpoint to it.
func (w *world) checkLog(keys ...ledger.PublicKey) {
	w.Helper()
	entries, err := w.store.LogEntries(w.Context(), "default", 0, 1_000_000)
	if err != nil {
		w.Fatal(err)
	}
	events := one[int](w, `select count(*) from audit_event`)
	if len(entries) != events {
		w.Errorf("%d of %d events are in the log", len(entries), events)
	}
	var hashes []tlog.Hash
	read := tlog.HashReaderFunc(func(indexes []int64) (out []tlog.Hash, err error) {
		for _, i := range indexes {
			out = append(out, hashes[i])
		}
		return out, nil
	})
	roots := map[int64]tlog.Hash{}
	for i, e := range entries {
		if e.Index != int64(i) {
			w.Fatalf("place %d is taken by index %d", i, e.Index)
		}
		if _, err := ledger.ParseEntry(e.Bytes); err != nil {
			w.Fatalf("entry %d: %v", i, err)
		}
		nodes, err := tlog.StoredHashes(int64(i), e.Bytes, read)
		if err != nil {
			w.Fatal(err)
		}
		hashes = append(hashes, nodes...)
		root, err := tlog.TreeHash(int64(i)+1, read)
		if err != nil {
			w.Fatal(err)
		}
		roots[int64(i)+1] = root
	}
	rows, err := w.pool.Query(w.Context(), `select size, root, note from log_checkpoint order by size`)
	if err != nil {
		w.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var size int64
		var root, note []byte
		if err := rows.Scan(&size, &root, &note); err != nil {
			w.Fatal(err)
		}
		if want := roots[size]; string(root) != string(want[:]) {
			w.Errorf("checkpoint %d: root %x, want %x", size, root, want)
		}
		if len(keys) == 0 {
			continue
		}
		c, _, err := ledger.ReadCheckpoint(note, keys...)
		if err != nil || c.Size != size || c.Root != roots[size] {
			w.Errorf("checkpoint %d: %+v, %v", size, c, err)
		}
	}
	if err := rows.Err(); err != nil {
		w.Fatal(err)
	}
}

func TestSequenceNumbersEveryEventOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := signingKey(t)
	for i := range 7 {
		w.submit("bo", spec(fmt.Sprint("r", i), ""))
	}
	if n := w.sequenceAll(3, key); n != 7 {
		t.Errorf("%d placed, want 7", n)
	}
	w.submit("bo", spec("more", ""))
	w.sequenceAll(100, key)
	w.checkLog(key.Public())

	checkpoint, err := w.store.Checkpoint(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	latest, _, err := ledger.ReadCheckpoint(checkpoint, key.Public())
	if err != nil || latest.Size != 8 {
		t.Fatalf("latest: %+v, %v", latest, err)
	}
	id := one[string](w, `select screening_id::text from audit_event where log_index = 2`)
	note, index, proof, err := w.store.ProveEvent(t.Context(), "default", id, 1)
	if err != nil || index != 2 || string(note) != string(checkpoint) {
		t.Fatalf("proof of event 2: at %d, %v", index, err)
	}
	entries, err := w.store.LogEntries(t.Context(), "default", 2, 1)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	if err := latest.CheckInclusion(index, entries[0].Hash, proof); err != nil {
		t.Error(err)
	}
	consistency, err := w.store.ProveLog(t.Context(), latest.Size, 6)
	if err != nil {
		t.Fatal(err)
	}
	old := ledger.Checkpoint{Size: 6}
	root := one[[]byte](w, `select root from log_checkpoint where size = 6`)
	copy(old.Root[:], root)
	if err := latest.CheckConsistency(old, consistency); err != nil {
		t.Error(err)
	}
}

// Writers and two sequencers at once: every event gets one place, without a gap.
func TestSequencersCompete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := signingKey(t)
	other, err := store.Open(t.Context(), w.dsn, store.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	const writers, each = 50, 6
	done := make(chan struct{})
	var writing, sequencing sync.WaitGroup
	for _, s := range []*store.Store{w.store, other} {
		sequencing.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if _, err := s.Sequence(t.Context(), 17, key); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for i := range writers {
		writing.Go(func() {
			for j := range each {
				if _, _, err := w.desk.Submit(t.Context(), principal("bo"), spec(fmt.Sprintf("r%d-%d", i, j), ""), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	close(done)
	sequencing.Wait()
	w.sequenceAll(1000, key)
	w.checkLog(key.Public())
	if got := one[int](w, `select count(*) from audit_event`); got != writers*each {
		t.Errorf("%d events, want %d", got, writers*each)
	}
}

func TestPlaceInTheLogIsFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("bo", spec("r", ""))
	w.submit("bo", spec("r2", ""))
	w.sequenceAll(1)
	for _, sql := range []string{
		`update audit_event set log_index = 7 where log_index = 0`,
		`update audit_event set log_index = null`,
		`update audit_event set actor = 'x'`,
		`delete from audit_event`,
		`update log_node set hash = hash`,
		`delete from log_node`,
		`truncate log_node`,
		`delete from log_checkpoint`,
		`update log_checkpoint set previous = 0, note = 'x'`,
		`update log_checkpoint set at = now()`,
	} {
		if _, err := w.pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v, want it refused", sql, err)
		}
	}
	w.checkLog()
}

func TestKeysRotateInTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := signingKey(t), signingKey(t)
	w.submit("bo", spec("r", ""))
	w.sequenceAll(10) // no key yet: a state nobody signed
	if _, err := w.store.Checkpoint(t.Context(), false); !errors.Is(err, review.ErrNotFound) {
		t.Errorf("without a key: %v, want ErrNotFound", err)
	}
	use := func(keys ...ledger.Key) {
		t.Helper()
		var public []ledger.PublicKey
		var signers []ledger.Signer
		for _, k := range keys {
			public, signers = append(public, k.Public()), append(signers, k)
		}
		for range 2 { // the second says nothing new
			if err := w.store.UseKeys(t.Context(), public...); err != nil {
				t.Fatal(err)
			}
		}
		w.sequenceAll(10, signers...)
		note, err := w.store.Checkpoint(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range public {
			if _, _, err := ledger.ReadCheckpoint(note, k); err != nil {
				t.Errorf("%d keys, %s: %v", len(keys), k.ID(), err)
			}
		}
	}
	use(first)
	use(first, second)
	use(second)
	note, _ := w.store.Checkpoint(t.Context(), false)
	if _, _, err := ledger.ReadCheckpoint(note, first.Public()); !errors.Is(err, ledger.ErrCheckpoint) {
		t.Errorf("the retired key still signs: %v", err)
	}
	if n := one[int](w, `select count(*) from audit_event where subject = 'log' and type = 'key.rotated'`); n != 3 {
		t.Errorf("%d rotations recorded, want 3", n)
	}
	w.checkRecord()
}

func TestOtherProjectsShowOnlyTheirPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit("bo", spec("r", ""))
	w.sequenceAll(10)
	entries, err := w.store.LogEntries(t.Context(), "another", 0, 10)
	if err != nil || len(entries) != 1 || entries[0].Bytes != nil {
		t.Errorf("%+v, %v, want one hash without its leaf", entries, err)
	}
}

// What is done to keys and endpoints is in the log, in a chain for each.
func TestKeysAndEndpointsAreInTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.store.CreateKey(t.Context(), store.NewKey{ID: "abc", Project: "default", Subject: "bo", Scopes: []review.Scope{review.ScopeSubmit}}); err != nil {
		t.Fatal(err)
	}
	if err := w.store.RevokeKey(t.Context(), "abc"); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Outbox().Declare(t.Context(), []webhooks.Declared{{ID: "one", Host: "one.example", Format: webhooks.FormatStandard}}); err != nil {
		t.Fatal(err)
	}
	if err := w.store.DisableEndpoint(t.Context(), "one", webhooks.Order{Actor: "bo", Reason: "it is noisy"}); err != nil {
		t.Fatal(err)
	}
	for subject, want := range map[string]string{"key/abc": "key.created,key.revoked", "endpoint/one": "endpoint.declared,endpoint.disabled"} {
		if got := one[string](w, `select coalesce(string_agg(type, ',' order by seq), '') from audit_event where subject = '`+subject+`'`); got != want {
			t.Errorf("%s: %s, want %s", subject, got, want)
		}
	}
	w.sequenceAll(10)
	w.checkLog()
	w.checkRecord()
}
