package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"weir/store/ledger"
)

// keyRotated is the event that tells of the keys that sign the log.
const keyRotated = "key.rotated"

func badKey(id, detail string) *ledger.BrokenError {
	return &ledger.BrokenError{File: "log_key", Index: -1, Detail: "key " + id + " " + detail}
}

// readKeys reads the keys that sign or signed, without asking yet whether the log
// tells of them.
func (c *logChecker) readKeys(ctx context.Context) error {
	c.keys = slices.Clone(c.given)
	c.kept = map[string]*keyUse{}
	rows, err := c.db.Query(ctx, `select id, public from log_key order by since, id`)
	if err != nil {
		return err
	}
	var id string
	var public []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &public}, func() error {
		k, err := ledger.PublicKeyOf(public)
		if err != nil || k.ID() != id {
			return badKey(id, "is not the key that has this id")
		}
		if !slices.ContainsFunc(c.keys, func(other ledger.PublicKey) bool { return other.ID() == id }) {
			c.keys = append(c.keys, k)
		}
		return nil
	})
	return err
}

// missingKey names a key that the log told of so far and that is not there.
func (c *logChecker) missingKey() error {
	for _, id := range slices.Sorted(maps.Keys(c.kept)) {
		if !slices.ContainsFunc(c.keys, func(k ledger.PublicKey) bool { return k.ID() == id }) {
			return badKey(id, "is missing")
		}
	}
	return nil
}

// rotated takes in an event about keys, at a place of the log.
func (c *logChecker) rotated(e ledger.Entry, at int64) error {
	r := rotation{index: at, at: e.At}
	if err := json.Unmarshal(e.Body, &r); err != nil {
		return fmt.Errorf("what it says of keys cannot be read: %w", err)
	}
	c.rotations = append(c.rotations, r)
	for _, id := range r.Added {
		if c.kept[id] == nil {
			c.kept[id] = &keyUse{since: r.at}
		}
		c.kept[id].retired = nil
	}
	for _, id := range r.Retired {
		if use := c.kept[id]; use != nil {
			use.retired = &r.at
		}
	}
	return nil
}

// unsequencedKeys takes in what is said of keys and has no place in the log yet.
func (c *logChecker) unsequencedKeys(ctx context.Context) error {
	rows, err := c.db.Query(ctx, `select `+entryColumns+entryFrom+`where e.log_index is null and e.type = $1 order by e.seq`, keyRotated)
	if err != nil {
		return err
	}
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (ledger.Entry, error) { return scanEntry(row) })
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := c.rotated(e, c.size); err != nil {
			return &ledger.BrokenError{File: "audit_event", Index: c.size, Detail: err.Error()}
		}
	}
	c.passRotations(c.size + 1)
	return nil
}

// checkKeys holds the table of keys to the events that tell of them.
func (c *logChecker) checkKeys(ctx context.Context) error {
	rows, err := c.db.Query(ctx, `select id, since, retired_at from log_key order by id`)
	if err != nil {
		return err
	}
	var id string
	var since time.Time
	var retired *time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &since, &retired}, func() error {
		use := c.kept[id]
		switch {
		case use == nil:
			return badKey(id, "is named by no event of the log")
		case !since.Equal(use.since):
			return badKey(id, "is there since another time than the log says")
		case (retired == nil) != (use.retired == nil) || retired != nil && !retired.Equal(*use.retired):
			return badKey(id, "went out of use at another time than the log says")
		}
		delete(c.kept, id)
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(c.kept)) {
		return badKey(id, "is missing")
	}
	return nil
}
