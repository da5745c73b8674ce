package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"weir/store/ledger"
)

// LogCheck is what CheckLog found of a log that is as it should be.
type LogCheck struct {
	Size     int64        // entries
	SignedBy []SignedUpTo // by those of the given keys that signed anything
	Others   []string     // ids of keys of the log that signed, and were not given
}

// SignedUpTo tells how many entries, from the first, stand under what a key signed.
type SignedUpTo struct {
	Key  ledger.PublicKey
	Size int64
}

// Signed is how many entries stand under a signature of the given keys.
func (c LogCheck) Signed() (size int64) {
	for _, by := range c.SignedBy {
		size = max(size, by.Size)
	}
	return size
}

// CheckLog builds the log anew from the events and holds every stored node,
// checkpoint and signature to it, the events of each subject to their chain, and the
// keys to the events that tell of them. It looks at the log as it is when it begins. A
// *ledger.BrokenError names the first table and place that differ. The keys that the
// log itself names are checked too, but only a given one shows whose the log is.
func (s *Store) CheckLog(ctx context.Context, progress func(done int64), keys ...ledger.PublicKey) (*LogCheck, error) {
	c := &logChecker{known: map[int64]tlog.Hash{}, chains: ledger.Chains{}, given: keys, signed: map[string]int64{}}
	err := pgx.BeginTxFunc(ctx, s.every, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		c.db = tx
		return c.run(ctx, progress)
	})
	if err != nil {
		if broken := (*ledger.BrokenError)(nil); errors.As(err, &broken) {
			return nil, broken
		}
		return nil, logError(err)
	}
	return c.found(), nil
}

// logChecker goes through a log once, page by page.
type logChecker struct {
	db     pgx.Tx
	origin string
	given  []ledger.PublicKey
	keys   []ledger.PublicKey // those that the log names, and those given

	size      int64               // entries so far
	known     map[int64]tlog.Hash // nodes by storage index: the frontier, and what the page at hand adds
	chains    ledger.Chains
	rotations []rotation // in the order of the log; those up to the checkpoint at hand are taken off
	kept      map[string]*keyUse

	last     int64            // size of the checkpoint before
	promised bool             // keys are in use: checkpoints are signed
	unsigned int64            // the first checkpoint that is not, though it should be; 0 without one
	signed   map[string]int64 // what each key signed last, by its id
}

// rotation is what the event key.rotated says, and where it stands.
type rotation struct {
	index   int64
	at      time.Time
	Added   []string `json:"added"`
	InUse   []string `json:"in_use"`
	Retired []string `json:"retired"`
}

// keyUse is what the log says of one of its keys.
type keyUse struct {
	since   time.Time
	retired *time.Time
}

func (c *logChecker) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		hashes[i] = c.known[at]
	}
	return hashes, nil
}

func (c *logChecker) run(ctx context.Context, progress func(done int64)) error {
	if err := c.db.QueryRow(ctx, `select origin from log_origin`).Scan(&c.origin); err != nil {
		return err
	}
	if err := c.readKeys(ctx); err != nil {
		return err
	}
	for {
		leaves, err := c.entries(ctx)
		if err != nil {
			return err
		}
		if len(leaves) == 0 {
			break
		}
		if err := c.nodes(ctx, leaves); err != nil {
			return err
		}
		if err := c.checkpoints(ctx, c.size+int64(len(leaves))); err != nil {
			return err
		}
		c.size += int64(len(leaves))
		next := map[int64]tlog.Hash{}
		for _, i := range ledger.Frontier(c.size) {
			next[i] = c.known[i]
		}
		clear(c.known)
		maps.Copy(c.known, next)
		progress(c.size)
	}
	return c.end(ctx)
}

// entries holds a page of them to their chains, and gives their hashes.
func (c *logChecker) entries(ctx context.Context) (leaves []tlog.Hash, err error) {
	const page = 1000
	rows, err := c.db.Query(ctx, `select `+entryColumns+`, e.log_index`+entryFrom+`where e.log_index >= $1 order by e.log_index limit $2`, c.size, page)
	if err != nil {
		return nil, err
	}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		var index int64
		e, err := scanEntry(row, &index)
		if err != nil {
			return struct{}{}, err
		}
		at := c.size + int64(len(leaves))
		if index != at {
			return struct{}{}, &ledger.BrokenError{File: "audit_event", Index: at, Detail: "is missing"}
		}
		leaf, err := e.Leaf()
		if err == nil {
			_, err = ledger.ParseEntry(leaf)
		}
		if err == nil {
			err = c.chains.Follow(e, false)
		}
		if err == nil && e.Type == keyRotated {
			err = c.rotated(e, at)
		}
		if err != nil {
			return struct{}{}, &ledger.BrokenError{File: "audit_event", Index: at, Detail: err.Error()}
		}
		leaves = append(leaves, ledger.LeafHash(leaf))
		return struct{}{}, nil
	})
	return leaves, err
}

// nodes holds the stored nodes that these leaves brought to what they must be, and
// leaves in known those that the next ones need.
func (c *logChecker) nodes(ctx context.Context, leaves []tlog.Hash) error {
	g, err := ledger.Grow(c.size, leaves, c)
	if err != nil {
		return err
	}
	rows, err := c.db.Query(ctx, `select idx, hash from log_node where idx >= $1 and idx < $2 order by idx`, g.First, g.First+int64(len(g.Nodes)))
	if err != nil {
		return err
	}
	next := 0
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		var idx int64
		var hash []byte
		if err := row.Scan(&idx, &hash); err != nil {
			return struct{}{}, err
		}
		if want := g.First + int64(next); idx != want {
			return struct{}{}, &ledger.BrokenError{File: "log_node", Index: want, Detail: "is missing"}
		}
		if !bytes.Equal(hash, g.Nodes[next][:]) {
			return struct{}{}, &ledger.BrokenError{File: "log_node", Index: idx, Detail: "is not the hash of what is below it; an event was changed together with its hash, or the node was"}
		}
		next++
		return struct{}{}, nil
	})
	if err == nil && next != len(g.Nodes) {
		err = &ledger.BrokenError{File: "log_node", Index: g.First + int64(next), Detail: "is missing"}
	}
	for i, h := range g.Nodes {
		c.known[g.First+int64(i)] = h
	}
	return err
}

func badCheckpoint(size int64, format string, args ...any) *ledger.BrokenError {
	return &ledger.BrokenError{File: "log_checkpoint", Index: size, Detail: fmt.Sprintf(format, args...)}
}

// checkpoints holds those up to a size to the tree, to one another and to the keys.
func (c *logChecker) checkpoints(ctx context.Context, upTo int64) error {
	rows, err := c.db.Query(ctx, `select size, previous, root, note from log_checkpoint where size > $1 and size <= $2 order by size`, c.size, upTo)
	if err != nil {
		return err
	}
	var size, previous int64
	var root, note []byte
	_, err = pgx.ForEachRow(rows, []any{&size, &previous, &root, &note}, func() error {
		want, err := tlog.TreeHash(size, c)
		if err != nil {
			return err
		}
		switch {
		case previous > c.last:
			return badCheckpoint(previous, "is missing, and %d goes on from it", size)
		case previous < c.last:
			return badCheckpoint(c.last, "was added; %d goes on from %d", size, previous)
		case !bytes.Equal(root, want[:]):
			return badCheckpoint(size, "its root is not that of the entries")
		}
		c.last = size
		c.passRotations(size)
		return c.note(ledger.Checkpoint{Origin: c.origin, Size: size, Root: want}, note)
	})
	return err
}

// passRotations takes in what is said of keys before a checkpoint. Where all went out
// of use, what was not signed before was waiting for its place.
func (c *logChecker) passRotations(size int64) {
	for len(c.rotations) > 0 && c.rotations[0].index < size {
		if c.promised = len(c.rotations[0].InUse) > 0; !c.promised {
			c.unsigned = 0
		}
		c.rotations = c.rotations[1:]
	}
}

// note holds the signed form of a checkpoint to what it must say, and every
// signature under it to its key.
func (c *logChecker) note(want ledger.Checkpoint, note []byte) error {
	if note == nil {
		if c.promised && c.unsigned == 0 {
			c.unsigned = want.Size
		}
		return nil
	}
	if c.unsigned != 0 {
		return badCheckpoint(c.unsigned, unsignedDetail)
	}
	said, err := ledger.ReadUnsigned(note)
	if err != nil || said != want {
		return badCheckpoint(want.Size, "its signed form says something else (%v)", err)
	}
	by, all, err := ledger.SignersOf(note, c.keys...)
	if err != nil {
		return badCheckpoint(want.Size, "%v", err)
	}
	if c.promised && !all {
		if err := c.missingKey(); err != nil {
			return err
		}
		return badCheckpoint(want.Size, "it is signed with a key that the log does not name")
	}
	for _, k := range by {
		c.signed[k.ID()] = want.Size
	}
	return nil
}

const unsignedDetail = "is not signed, though keys were in use"

// end looks for what there is too much or too little of at the end of the log.
func (c *logChecker) end(ctx context.Context) error {
	var extra int64
	err := c.db.QueryRow(ctx, `select idx from log_node where idx >= $1 order by idx limit 1`, tlog.StoredHashCount(c.size)).Scan(&extra)
	if err == nil {
		return &ledger.BrokenError{File: "audit_event", Index: c.size, Detail: fmt.Sprintf("is missing at the end, or node %d of log_node was added", extra)}
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	err = c.db.QueryRow(ctx, `select size from log_checkpoint where size > $1 order by size limit 1`, c.size).Scan(&extra)
	if err == nil {
		return badCheckpoint(extra, "is of a log with more entries than there are")
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if c.last != c.size {
		return badCheckpoint(c.size, "is missing: the entries from %d on are under none", c.last)
	}
	if err := c.unsequencedKeys(ctx); err != nil {
		return err
	}
	if c.unsigned != 0 {
		return badCheckpoint(c.unsigned, unsignedDetail)
	}
	return c.checkKeys(ctx)
}

func (c *logChecker) found() *LogCheck {
	out := &LogCheck{Size: c.size}
	for _, k := range c.keys {
		switch size, did := c.signed[k.ID()]; {
		case !did:
		case slices.ContainsFunc(c.given, func(g ledger.PublicKey) bool { return g.ID() == k.ID() }):
			out.SignedBy = append(out.SignedBy, SignedUpTo{k, size})
		default:
			out.Others = append(out.Others, k.ID())
		}
	}
	return out
}
