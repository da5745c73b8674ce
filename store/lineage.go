package store

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"weir/review"
	"weir/screening"
)

// linkAtOnce bounds the specs that one transaction of LinkSpecs reads.
const linkAtOnce = 100

// LinkSpecs works out the lineage of specs that were kept before it was, or was as
// it is now, until none is left, and calls done after each step with how many it
// read. Replicas share the work. Of a spec whose bytes were erased what is known
// stays; if it is nothing, nothing admits it either, before its bytes are submitted
// again.
func (s *Store) LinkSpecs(ctx context.Context, done func(specs int)) error {
	if err := pgx.BeginFunc(ctx, s.every, func(tx pgx.Tx) error { return linkRecalls(ctx, tx) }); err != nil {
		return fmt.Errorf("work out what recalls are about: %w", translate(err))
	}
	return s.linkAll(ctx, done)
}

func (s *Store) linkAll(ctx context.Context, done func(specs int)) error {
	for {
		var n int
		err := pgx.BeginFunc(ctx, s.every, func(tx pgx.Tx) (err error) {
			n, err = s.linkSome(ctx, tx)
			return err
		})
		if err != nil && !retryable(err) {
			return fmt.Errorf("work out the lineage of stored specs: %w", translate(err))
		}
		if err == nil && n == 0 {
			return nil
		}
		done(n)
	}
}

// linkRecalls makes the same what a recall in force stands for and what its URI is
// read as by now. The recall itself is never changed.
func linkRecalls(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `select id::text, project, point, uri from recall where lifted_at is null and uri is not null`)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	var id, project, uri string
	var point []byte
	if _, err := pgx.ForEachRow(rows, []any{&id, &project, &point, &uri}, func() error {
		if now := review.URIPoint(uri); now != review.Point(point) {
			queueLinks(batch, project, []review.Link{{Child: now, Parent: review.Point(point)}, {Child: review.Point(point), Parent: now}})
			queueRecallWork(batch, project)
		}
		return nil
	}); err != nil {
		return err
	}
	return tx.SendBatch(ctx, batch).Close()
}

func queueLinks(batch *pgx.Batch, project string, links []review.Link) {
	children, parents := make([]review.Point, len(links)), make([]review.Point, len(links))
	for i, l := range links {
		children[i], parents[i] = l.Child, l.Parent
	}
	batch.Queue(`insert into lineage (project, child, parent)
		select $1, l.child, l.parent from unnest($2::bytea[], $3::bytea[]) as l(child, parent)
		where not exists (select from lineage k where k.project = $1 and k.child = l.child and k.parent = l.parent)`,
		project, pointBytes(children), pointBytes(parents))
}

// queueRecallWork has the recalls in force of a project looked through: what they
// lead to may be more now.
func queueRecallWork(batch *pgx.Batch, project string) {
	batch.Queue(`insert into recall_work (project, recall_id) select project, id from recall where project = $1 and lifted_at is null`, project)
}

type unlinked struct {
	project string
	sum     []byte
	inputs  []byte // nil: never read
	raw     []byte // nil: erased
}

func (s *Store) linkSome(ctx context.Context, tx pgx.Tx) (int, error) {
	rows, err := tx.Query(ctx, `with due as (
			select project, sha256, inputs from spec where inputs is null or read_again order by project, sha256 limit $1 for update skip locked
		)
		select d.project, d.sha256, d.inputs, (select spec_of(s) from screening s where s.project = d.project and s.spec_sha256 = d.sha256
			order by exists (select from erased(s)), s.created_at desc limit 1) from due d`, linkAtOnce)
	if err != nil {
		return 0, err
	}
	specs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (u unlinked, err error) {
		err = row.Scan(&u.project, &u.sum, &u.inputs, &u.raw)
		return u, err
	})
	if err != nil {
		return 0, err
	}
	batch := &pgx.Batch{}
	more := map[string]bool{} // projects of which more is known now
	for _, u := range specs {
		inputs := cmp.Or(string(u.inputs), "\x00") // as it was, or not known
		if spec, err := screening.ParseSpec(u.raw); err == nil {
			lineage := review.LineageOf(spec)
			inputs = string(lineage.Inputs[:])
			queueLinks(batch, u.project, lineage.Links)
		}
		batch.Queue(`update spec set inputs = $3, read_again = false where project = $1 and sha256 = $2`, u.project, u.sum, []byte(inputs))
		more[u.project] = more[u.project] || inputs != string(u.inputs)
	}
	for project, known := range more {
		if known {
			queueRecallWork(batch, project)
		}
	}
	if len(specs) == 0 {
		return 0, nil
	}
	return len(specs), tx.SendBatch(ctx, batch).Close()
}
