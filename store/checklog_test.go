package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"

	"weir/store"
	"weir/store/ledger"
)

func (w *world) useKeys(keys ...ledger.Key) {
	w.Helper()
	var public []ledger.PublicKey
	for _, k := range keys {
		public = append(public, k.Public())
	}
	w.ok("use keys", w.store.UseKeys(w.Context(), public...))
}

// rotatedLog is a log of twelve entries in which one key gave way to another: the
// checkpoints 1 and 2 are from before there was a key, 4 and 6 are signed by the old
// one, 8 by both, 10 and 12 by the new one.
func rotatedLog(t *testing.T) (w *world, before, now ledger.Key) {
	t.Helper()
	w = newWorld(t)
	before, now = signingKey(t), signingKey(t)
	n := 0
	grow := func(events int, keys ...ledger.Signer) {
		for range events {
			n++
			w.submit("bo", spec(fmt.Sprint("r", n), ""))
		}
		w.sequenceAll(100, keys...)
	}
	grow(1)
	grow(1)
	w.useKeys(before) // is entry 2
	grow(1, before)
	grow(2, before)
	w.useKeys(before, now) // 6
	grow(1, before, now)
	w.useKeys(now) // 8
	grow(1, now)
	grow(2, now)
	return w, before, now
}

// tampering runs statements as somebody who may do everything, and puts it all back.
func (w *world) tampering() (undo func(sql string)) {
	w.Helper()
	w.exec(`drop index audit_event_by_log_index; drop index audit_event_by_subject; alter table audit_event drop constraint audit_event_screening_id_seq_key`)
	w.exec(`alter table log_checkpoint drop constraint log_checkpoint_pkey cascade, drop constraint log_checkpoint_previous_key`)
	w.exec(`alter table log_node drop constraint log_node_pkey; alter table log_checkpoint drop constraint log_checkpoint_check`)
	back := map[string]string{}
	for _, table := range []string{"audit_event", "log_node", "log_checkpoint", "log_key", "log_origin"} {
		w.exec(`alter table ` + table + ` disable trigger all; create table kept_` + table + ` as table ` + table)
		back[table] = `delete from ` + table + `; insert into ` + table + ` overriding system value select * from kept_` + table + `; `
	}
	return func(sql string) {
		w.Helper()
		for table, put := range back {
			if strings.Contains(sql, table) {
				w.exec(put)
			}
		}
	}
}

// Every byte, row and order of what the log is kept in: whatever is changed is found,
// and the place is named.
func TestCheckLogNamesThePlace(t *testing.T) {
	t.Parallel()
	w, before, now := rotatedLog(t)
	keys := []ledger.PublicKey{before.Public(), now.Public()}
	c, err := w.store.CheckLog(t.Context(), func(int64) {}, keys...)
	if err != nil || c.Size != 12 || c.Signed() != 12 {
		t.Fatalf("%+v, %v", c, err)
	}
	type change struct {
		table string
		index int64
		sql   string
	}
	var changes []change
	flip := func(table string, index int64, column string, length int, where string) { // in every row other bytes
		step := map[bool]int{true: 3, false: 11}[column == "note"]
		for i := len(changes) % step; i < length; i += step {
			changes = append(changes, change{table, index, fmt.Sprintf(`update %s set %s = set_byte(%[2]s, %d, get_byte(%[2]s, %[3]d) # 1) where %[4]s`, table, column, i, where)})
		}
	}
	for i := range int64(12) {
		at := fmt.Sprintf("log_index = %d", i)
		flip("audit_event", i, "body", one[int](w, `select length(body) from audit_event where `+at), at)
		flip("audit_event", i, "hash", 32, at)
		flip("audit_event", i, "prev_hash", one[int](w, `select length(prev_hash) from audit_event where `+at), at)
		for _, set := range []string{"actor = actor || 'x'", "type = type || 'x'", "seq = seq + 1", "at = at + interval '1 microsecond'", "prev_hash = prev_hash || 'x'",
			"project = 'x'", "subject = 'x', screening_id = null"} {
			index := i
			if set == "project = 'x'" { // only the tree covers it
				index = -1
			}
			changes = append(changes, change{"audit_event", index, `update audit_event set ` + set + ` where ` + at})
		}
		changes = append(changes,
			change{"audit_event", i, `delete from audit_event where ` + at},
			change{"audit_event", i, `update audit_event set log_index = null where ` + at})
	}
	for i := range tlog.StoredHashCount(12) {
		flip("log_node", i, "hash", 32, fmt.Sprint("idx = ", i))
		changes = append(changes, change{"log_node", i, fmt.Sprint(`delete from log_node where idx = `, i)})
		if i > 0 {
			changes = append(changes, change{"log_node", i - 1, fmt.Sprintf(`update log_node set idx = %d - idx where idx in (%d, %d)`, 2*i-1, i-1, i)})
		}
	}
	sizes := []int64{1, 2, 4, 6, 8, 10, 12}
	if got := one[[]int64](w, `select array_agg(size order by size) from log_checkpoint`); !slices.Equal(got, sizes) {
		t.Fatalf("checkpoints %v", got)
	}
	for i, size := range sizes {
		at := fmt.Sprint("size = ", size)
		flip("log_checkpoint", size, "root", 32, at)
		changes = append(changes,
			change{"log_checkpoint", size, `delete from log_checkpoint where ` + at})
		if i > 0 {
			p := sizes[i-1]
			changes = append(changes,
				change{"log_checkpoint", p, fmt.Sprintf(`update log_checkpoint a set root = b.root, note = b.note from log_checkpoint b
					where a.size in (%d, %d) and b.size = %d - a.size`, p, size, p+size)},
				change{"log_checkpoint", p, fmt.Sprintf(`update log_checkpoint set previous = 0 where size = %d and previous > 0`, size)})
		}
		if size <= 2 {
			continue
		}
		flip("log_checkpoint", size, "note", one[int](w, `select length(note) from log_checkpoint where `+at), at)
		changes = append(changes,
			change{"log_checkpoint", size, `update log_checkpoint set note = null where ` + at},
			change{"log_checkpoint", size, `update log_checkpoint set note = substring(note from 1 for length(note) - 1) where ` + at})
	}
	// Cut off, or with more than there was.
	changes = append(changes,
		change{"log_checkpoint", 2, `delete from log_checkpoint where size <= 2`},
		change{"log_checkpoint", 12, `delete from log_checkpoint where size = 12`},
		change{"audit_event", 12, fmt.Sprintf(`insert into log_node values (%d, sha256('x'))`, tlog.StoredHashCount(12))},
		change{"log_checkpoint", 13, `insert into log_checkpoint (size, previous, root) values (13, 12, sha256('x'))`},
		change{"log_checkpoint", 3, `insert into log_checkpoint (size, previous, root) values (3, 2, sha256('x'))`},
		change{"audit_event", 11, `update audit_event set log_index = null where log_index = 11; delete from log_checkpoint where size = 12`},
		change{"log_checkpoint", 4, `update log_origin set origin = origin || 'x'`},
	)
	for _, id := range []string{before.Public().ID(), now.Public().ID()} {
		flip("log_key", -1, "public", 32, `id = '`+id+`'`)
		for _, sql := range []string{`delete from log_key`, `update log_key set id = translate(id, '0123456789abcdef', '123456789abcdef0')`,
			`update log_key set since = since + interval '1 microsecond'`,
			`update log_key set retired_at = case when retired_at is null then now() end`} {
			changes = append(changes, change{"log_key", -1, sql + ` where id = '` + id + `'`})
		}
	}
	third := signingKey(t)
	changes = append(changes, change{"log_key", -1, fmt.Sprintf(`insert into log_key (id, public) values ('%s', '\x%x')`, third.Public().ID(), third.Public().Bytes())})
	undo := w.tampering()
	for i, c := range changes {
		w.exec(c.sql)
		given := keys
		if i%2 == 0 {
			given = nil // the keys that the log names are enough to find it
		}
		_, err := w.store.CheckLog(t.Context(), func(int64) {}, given...)
		var broken *ledger.BrokenError
		if !errors.As(err, &broken) || c.index >= 0 && (broken.File != c.table || broken.Index != c.index) || c.table == "log_key" && broken.File != c.table {
			t.Errorf("%s: %v, want %s %d", c.sql, err, c.table, c.index)
		}
		undo(c.sql)
	}
	t.Logf("%d changes", len(changes))
	if _, err := w.store.CheckLog(t.Context(), func(int64) {}, keys...); err != nil {
		t.Errorf("put back: %v", err)
	}
}

// Who signed the log, and how much of it, is told of the given keys only.
func TestCheckLogTellsWhoSigned(t *testing.T) {
	t.Parallel()
	w, before, now := rotatedLog(t)
	stranger := signingKey(t)
	id := func(k ledger.Key) string { return k.Public().ID() }
	check := func(keys ...ledger.Key) (signed map[string]int64, others []string, upTo int64) {
		t.Helper()
		var given []ledger.PublicKey
		for _, k := range keys {
			given = append(given, k.Public())
		}
		c, err := w.store.CheckLog(t.Context(), func(int64) {}, given...)
		if err != nil {
			t.Fatal(err)
		}
		signed = map[string]int64{}
		for _, by := range c.SignedBy {
			signed[by.Key.ID()] = by.Size
		}
		return signed, c.Others, c.Signed()
	}
	for _, tt := range []struct {
		name   string
		given  []ledger.Key
		signed map[string]int64
		others []string
		upTo   int64
	}{
		{"none", nil, map[string]int64{}, []string{id(before), id(now)}, 0},
		{"a stranger's", []ledger.Key{stranger}, map[string]int64{}, []string{id(before), id(now)}, 0},
		{"the old one", []ledger.Key{before}, map[string]int64{id(before): 8}, []string{id(now)}, 8},
		{"the new one and a stranger's", []ledger.Key{stranger, now}, map[string]int64{id(now): 12}, []string{id(before)}, 12},
		{"both", []ledger.Key{now, before}, map[string]int64{id(before): 8, id(now): 12}, nil, 12},
	} {
		signed, others, upTo := check(tt.given...)
		if diff := cmp.Diff(tt.signed, signed); diff != "" || !slices.Equal(others, tt.others) || upTo != tt.upTo {
			t.Errorf("%s: others %v, up to %d; signed (-want +got):\n%s", tt.name, others, upTo, diff)
		}
	}

	// No key is in use any more: what comes now is not signed, and that is told.
	w.submit("bo", spec("waits", ""))
	w.useKeys()
	w.submit("bo", spec("last", ""))
	w.sequenceAll(1)
	if _, _, upTo := check(now); upTo != 12 {
		t.Errorf("signed up to %d, want 12 of 15", upTo)
	}
	w.useKeys(now)
	w.sequenceAll(1, now)
	if _, _, upTo := check(now); upTo != 16 {
		t.Errorf("signed up to %d, want 16", upTo)
	}
}

// Who has no key does not go on with a log that others sign.
func TestWithoutAKeyASignedLogWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := signingKey(t)
	w.useKeys(key)
	w.submit("bo", spec("r", ""))
	if _, err := w.store.Sequence(t.Context(), 10); !errors.Is(err, store.ErrUnsigned) {
		t.Errorf("%v, want ErrUnsigned", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	w.store.RunSequencer(ctx, 1, func(err error) {
		if !errors.Is(err, store.ErrUnsigned) {
			t.Error(err)
		}
		stop()
	})
	w.sequenceAll(10, key)
	c, err := w.store.CheckLog(t.Context(), func(int64) {}, key.Public())
	if err != nil || c.Signed() != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}
