package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"weir/store/ledger"
)

// sequencerLock lets one sequencer at a time work, whichever replica it is in.
const sequencerLock = 0x77656972_6c6f67 // "weirlog"

// ErrLog: an event cannot become a leaf. Nothing after it is sequenced until
// somebody has looked.
var ErrLog = errors.New("the log cannot go on")

// ErrUnsigned: the log is signed, and who wants to go on with it has no key.
var ErrUnsigned = errors.New("others sign the log, and this replica has no key; give it the same --signing-key")

// Sequence gives committed events, limit of them and what these come after in their
// chains, their place in the log, and writes the checkpoint of what the log is then,
// signed with every key. It returns how many events it placed; 0 also when another replica is at it. Late
// commits cause no gaps: an event is numbered after it is there for all to see.
func (s *Store) Sequence(ctx context.Context, limit int, keys ...ledger.Signer) (int, error) {
	var placed int
	err := pgx.BeginFunc(ctx, s.every, func(tx pgx.Tx) error {
		var mine bool
		if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, int64(sequencerLock)).Scan(&mine); err != nil || !mine {
			return err
		}
		size, err := logSize(ctx, tx)
		if err != nil {
			return err
		}
		ids, entries, err := unsequenced(ctx, tx, limit)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return signLatest(ctx, tx, keys)
		}
		if len(keys) == 0 {
			var others int
			if err := tx.QueryRow(ctx, `select count(*) from log_key where retired_at is null`).Scan(&others); err != nil || others > 0 {
				return cmp.Or(err, ErrUnsigned)
			}
		}
		leaves := make([]tlog.Hash, len(entries))
		for i, e := range entries {
			line, err := e.Leaf()
			if err != nil {
				return fmt.Errorf("%w: %w", ErrLog, err)
			}
			leaves[i] = ledger.LeafHash(line)
		}
		g, err := ledger.Grow(size, leaves, nodes{ctx, tx})
		if err != nil {
			return err
		}
		note, err := signCheckpoint(ctx, tx, ledger.Checkpoint{Size: g.Size, Root: g.Root}, keys)
		if err != nil {
			return err
		}
		hashes := make([][]byte, len(g.Nodes))
		for i := range g.Nodes {
			hashes[i] = g.Nodes[i][:]
		}
		batch := &pgx.Batch{}
		batch.Queue(`insert into log_node (idx, hash) select $1 + n - 1, hash from unnest($2::bytea[]) with ordinality as u(hash, n)`, g.First, hashes)
		batch.Queue(`update audit_event e set log_index = $1 + u.n - 1 from unnest($2::bigint[]) with ordinality as u(id, n) where e.id = u.id`, size, ids)
		batch.Queue(`insert into log_checkpoint (size, previous, root, note) values ($1, $2, $3, $4)`, g.Size, size, g.Root[:], note)
		placed = len(entries)
		return tx.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return 0, fmt.Errorf("sequence the log: %w", logError(err))
	}
	return placed, nil
}

// logError keeps what waiting does not cure apart from what the database says.
func logError(err error) error {
	if errors.Is(err, ErrLog) || errors.Is(err, ErrUnsigned) {
		return err
	}
	return translate(err)
}

// RunSequencer sequences until ctx ends: every interval, and at once again while
// there is more than one round takes. It reports what goes wrong once, not each time.
func (s *Store) RunSequencer(ctx context.Context, every time.Duration, report func(error), keys ...ledger.Signer) {
	const round = 1000
	tick := time.NewTicker(every)
	defer tick.Stop()
	said := ""
	for {
		n, err := s.Sequence(ctx, round, keys...)
		if err == nil {
			said = ""
		} else if ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			report(err)
		}
		if n >= round {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func logSize(ctx context.Context, tx pgx.Tx) (size int64, err error) {
	err = tx.QueryRow(ctx, `select coalesce(max(size), 0) from log_checkpoint`).Scan(&size)
	return size, err
}

// entryColumns are read by scanEntry, in this order, from audit_event e joined
// with its screening s.
const (
	entryColumns = `coalesce(e.subject, e.screening_id::text), coalesce(e.project, s.project, ''), e.seq, e.type, e.actor, e.at, e.body, e.prev_hash, e.hash`
	entryFrom    = ` from audit_event e left join screening s on s.id = e.screening_id `
)

func scanEntry(row pgx.Row, more ...any) (ledger.Entry, error) {
	var e ledger.Entry
	var body []byte
	err := row.Scan(append([]any{&e.Subject, &e.Project, &e.Seq, &e.Type, &e.Actor, &e.At, &body, &e.PrevHash, &e.Hash}, more...)...)
	e.Body, e.At = jsontext.Value(body), e.At.UTC()
	return e, err
}

// unsequenced gives the next events, limit of them and what they come after. Ids are
// drawn before a writer waits for its turn in the chain, so an id may be lower than
// that of the event before it: the log has each chain in its order all the same.
func unsequenced(ctx context.Context, tx pgx.Tx, limit int) (ids []int64, entries []ledger.Entry, err error) {
	rows, err := tx.Query(ctx, `with recursive picked as materialized (
			select a as event from audit_event a where a.log_index is null order by a.id limit $1
		), due as (
			select event from picked
			union all
			select p.event from due d cross join lateral (
				select a as event from audit_event a
				where a.screening_id = (d.event).screening_id and a.seq = (d.event).seq - 1 and a.log_index is null
				union all
				select a from audit_event a
				where a.screening_id is null and a.subject = (d.event).subject and a.seq = (d.event).seq - 1 and a.log_index is null
				offset 0
			) p
			where (d.event).seq > 1 and (p.event).id > (select max((event).id) from picked)
		)
		select `+entryColumns+`, e.id from (select (event).* from due) e left join screening s on s.id = e.screening_id
		order by max(e.id) over (partition by e.screening_id, e.subject order by e.seq), e.seq`, limit)
	if err != nil {
		return nil, nil, err
	}
	entries, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (ledger.Entry, error) {
		var id int64
		e, err := scanEntry(row, &id)
		ids = append(ids, id)
		return e, err
	})
	return ids, entries, err
}

// nodes reads stored nodes of the tree.
type nodes struct {
	ctx context.Context
	db  querier
}

func (n nodes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	if len(indexes) == 0 {
		return nil, nil
	}
	rows, err := n.db.Query(n.ctx, `select hash from unnest($1::bigint[]) with ordinality as u(idx, n) join log_node using (idx) order by u.n`, indexes)
	if err != nil {
		return nil, err
	}
	hashes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h tlog.Hash, err error) {
		var b []byte
		err = row.Scan(&b)
		copy(h[:], b)
		return h, err
	})
	if err == nil && len(hashes) != len(indexes) {
		return nil, fmt.Errorf("%w: %d of %d nodes are missing", ErrLog, len(indexes)-len(hashes), len(indexes))
	}
	return hashes, err
}

// signCheckpoint gives the note of a checkpoint, nil without a key.
func signCheckpoint(ctx context.Context, tx pgx.Tx, c ledger.Checkpoint, keys []ledger.Signer) ([]byte, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	if err := tx.QueryRow(ctx, `select origin from log_origin`).Scan(&c.Origin); err != nil {
		return nil, err
	}
	return c.Sign(keys...)
}

// signLatest signs the newest checkpoint when it was written without a key.
func signLatest(ctx context.Context, tx pgx.Tx, keys []ledger.Signer) error {
	if len(keys) == 0 {
		return nil
	}
	var c ledger.Checkpoint
	var root []byte
	err := tx.QueryRow(ctx, `select size, root from log_checkpoint where size = (select max(size) from log_checkpoint) and note is null`).Scan(&c.Size, &root)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	copy(c.Root[:], root)
	note, err := signCheckpoint(ctx, tx, c, keys)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update log_checkpoint set note = $2 where size = $1`, c.Size, note)
	return err
}

// UseKeys records which keys sign from now on. A change of them is an event of
// the log, signed by the keys that are there then: who trusts an old key can
// follow it to the new one while both sign.
func (s *Store) UseKeys(ctx context.Context, keys ...ledger.PublicKey) error {
	ids, raw := make([]string, len(keys)), make([][]byte, len(keys))
	for i, k := range keys {
		ids[i], raw[i] = k.ID(), k.Bytes()
	}
	err := pgx.BeginFunc(ctx, s.every, func(tx pgx.Tx) error {
		// The same lock as the sequencer's, but waited for: replicas that start together must see one another's keys.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(sequencerLock)); err != nil {
			return err
		}
		var added, retired []string
		if err := tx.QueryRow(ctx, `with added as (
				insert into log_key (id, public) select * from unnest($1::text[], $2::bytea[])
				on conflict (id) do update set retired_at = null where log_key.retired_at is not null returning id
			), retired as (
				update log_key set retired_at = now() where retired_at is null and id <> all ($1::text[]) returning id
			)
			select array(select id from added order by id), array(select id from retired order by id)`, ids, raw).Scan(&added, &retired); err != nil {
			return err
		}
		if len(added) == 0 && len(retired) == 0 {
			return nil
		}
		body, err := json.Marshal(map[string]any{"added": nonNil(added), "in_use": nonNil(ids), "retired": nonNil(retired)}, json.Deterministic(true))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `insert into audit_event (subject, type, actor, body) values ('log', '`+keyRotated+`', 'weir', $1)`, body)
		return err
	})
	if err != nil {
		return fmt.Errorf("record the signing keys: %w", translate(err))
	}
	return nil
}

// LogEntries gives entries of the log from an index on, each with its index. Of
// entries of other projects only the leaf's hash is given: the place is theirs,
// what it says is not to be told.
func (s *Store) LogEntries(ctx context.Context, project string, from int64, limit int) ([]ledger.Leaf, error) {
	db := s.of(project)
	list, err := hiddenLeaves(ctx, db, from, math.MaxInt64, limit)
	if err != nil || len(list) == 0 {
		return list, logError(err)
	}
	last := list[len(list)-1].Index
	rows, err := db.Query(ctx, `select `+entryColumns+`, e.log_index`+entryFrom+`where e.log_index >= $1 and e.log_index <= $2`, list[0].Index, last)
	if err != nil {
		return nil, translate(err)
	}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		var index int64
		e, err := scanEntry(row, &index)
		if err != nil {
			return struct{}{}, err
		}
		line, err := e.Leaf()
		if err != nil {
			return struct{}{}, fmt.Errorf("%w: %w", ErrLog, err)
		}
		for i := range list {
			if list[i].Index == index && (e.Project == project || e.Project == "") {
				list[i].Hash, list[i].Bytes = ledger.LeafHash(line), line
			}
		}
		return struct{}{}, nil
	})
	return list, logError(err)
}

// hiddenLeaves gives the places of the log that have an entry, from an index on and
// below another, with the hash that the tree has there and nothing of the entry.
func hiddenLeaves(ctx context.Context, db querier, from, below int64, most int) ([]ledger.Leaf, error) {
	rows, err := db.Query(ctx, `select log_places($1, $2, $3)`, from, below, most)
	if err != nil {
		return nil, err
	}
	places, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, err
	}
	leaves := make([]int64, len(places)) // where the tree has them
	for i, at := range places {
		leaves[i] = tlog.StoredHashIndex(0, at)
	}
	hashes, err := nodes{ctx, db}.ReadHashes(leaves)
	if err != nil {
		return nil, err
	}
	list := make([]ledger.Leaf, len(places))
	for i, at := range places {
		list[i] = ledger.Leaf{Index: at, Hash: hashes[i]}
	}
	return list, nil
}

// ProveEvent gives the checkpoint and the proof that an event, by screening and
// place in its chain, is in the log of it. ErrNotFound while it is not sequenced
// or nothing is signed. Of the checkpoints that hold it, it is the latest that
// witnesses cosigned, if there is one.
func (s *Store) ProveEvent(ctx context.Context, project, screeningID string, seq int) (checkpoint []byte, index int64, proof tlog.RecordProof, err error) {
	var size int64
	err = s.of(project).QueryRow(ctx, `select `+cosignedNote+`, c.size, e.log_index from audit_event e,
			lateral (select coalesce((select max(size) from log_cosignature where size > e.log_index),
				(select max(size) from log_checkpoint where note is not null)) as size) newest
			join log_checkpoint c using (size)
		where e.screening_id = $1 and e.seq = $2 and e.log_index < c.size`, screeningID, seq).Scan(&checkpoint, &size, &index)
	if err != nil {
		return nil, 0, nil, translate(err)
	}
	proof, err = ledger.ProveInclusion(size, index, nodes{ctx, s.of(project)})
	return checkpoint, index, proof, translate(err)
}

// ProveLog gives the proof that the log of one size begins with that of an older one.
func (s *Store) ProveLog(ctx context.Context, size, old int64) (tlog.TreeProof, error) {
	proof, err := ledger.ProveConsistency(size, old, nodes{ctx, s.nobody()})
	return proof, translate(err)
}
