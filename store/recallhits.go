package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/review"
	"weir/screening"
)

// RecallHits lists the screenings that data leads to, the newest first, each with
// the shortest way there.
func (s *Store) RecallHits(ctx context.Context, r *review.Recall, after *review.Cursor, limit int) (*review.RecallHits, error) {
	out := &review.RecallHits{}
	err := pgx.BeginFunc(ctx, s.of(r.Project), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local statement_timeout = '`+lineageTimeout+`'`); err != nil {
			return err
		}
		inputs, err := readHits(ctx, tx, r, out, after, limit)
		if err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `select count(*) from spec where project = $1 and inputs = '\x00'`, r.Project).Scan(&out.Unknown); err != nil {
			return err
		}
		paths, err := pathsTo(ctx, tx, r, inputs)
		if err != nil {
			return err
		}
		for i := range out.Hits {
			way := paths[inputs[i]]
			out.Hits[i].Uses = way.direct
			for _, p := range way.names {
				out.Hits[i].Path = append(out.Hits[i].Path, review.RecallStep{Point: p})
			}
		}
		return nil
	})
	return out, translate(err)
}

// readHits reads a page, and gives the inputs of each hit.
func readHits(ctx context.Context, tx pgx.Tx, r *review.Recall, out *review.RecallHits, after *review.Cursor, limit int) (inputs []review.Point, err error) {
	point := r.Data.Point()
	args := pgx.StrictNamedArgs{"project": r.Project, "point": point[:], "recall": r.ID, "first": after == nil, "at": time.Time{},
		"id": "00000000-0000-0000-0000-000000000000", "limit": limit}
	if after != nil {
		args["at"], args["id"] = after.At, after.ID
	}
	rows, err := tx.Query(ctx, `with hit as materialized (
			select (x.k).id, (x.k).created_at, i.inputs from `+fromPoint+`
		), page as materialized (
			select id, inputs from hit where @first or (created_at, id) < (@at::timestamptz, @id::uuid)
			order by created_at desc, id desc limit @limit
		)
		select s.id::text, s.run_ref, s.team, s.submitter, s.owner, s.created_at, s.spec_sha256, s.outcome,
			screening_status(s, (select r.expires_at from review r where r.screening_id = s.id and r.closed_at is null)),
			s.recall_id is not distinct from @recall::uuid, page.inputs, (select count(*) from hit)
		from page join screening s on s.id = page.id order by s.created_at desc, s.id desc`, args)
	if err != nil {
		return nil, err
	}
	out.Hits, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (h review.RecallHit, err error) {
		var spec, from []byte
		var outcome string
		if err := row.Scan(&h.Screening, &h.RunRef, &h.Team, &h.Submitter, &h.Owner, &h.CreatedAt, &spec, &outcome, &h.Status, &h.ByRecall,
			&from, &out.Total); err != nil {
			return h, err
		}
		h.Spec = screening.Digest256(spec)
		inputs = append(inputs, review.Point(from))
		return h, h.Outcome.UnmarshalText([]byte(outcome))
	})
	return inputs, err
}

// way leads from recalled data to the inputs of a spec.
type way struct {
	names  []review.Point // on it, the data first
	direct bool           // the spec names the data as an input
}

// pathsTo gives the shortest way from recalled data to each of the inputs. Only
// what lies above the inputs is read.
func pathsTo(ctx context.Context, tx pgx.Tx, r *review.Recall, inputs []review.Point) (map[review.Point]way, error) {
	rows, err := tx.Query(ctx, `with recursive up(point) as (
			select p from unnest($2::bytea[]) p
			union
			select l.parent from up cross join lateral (
				select k.parent from lineage k where k.project = $1 and k.child = up.point offset 0) l
		)
		select distinct l.child, l.parent from up cross join lateral (
			select k.child, k.parent from lineage k where k.project = $1 and k.child = up.point offset 0) l`, r.Project, pointBytes(inputs))
	if err != nil {
		return nil, err
	}
	children := map[review.Point][]review.Point{}
	var child, parent []byte
	if _, err := pgx.ForEachRow(rows, []any{&child, &parent}, func() error {
		p := review.Point(parent)
		children[p] = append(children[p], review.Point(child))
		return nil
	}); err != nil {
		return nil, err
	}
	from := r.Data.Point()
	came, reached := map[review.Point]review.Point{from: {}}, []review.Point{from}
	for len(reached) > 0 {
		var next []review.Point
		for _, p := range reached {
			slices.SortFunc(children[p], func(a, b review.Point) int { return slices.Compare(a[:], b[:]) }) // the same way every time
			for _, c := range children[p] {
				if _, seen := came[c]; !seen {
					came[c] = p
					next = append(next, c)
				}
			}
		}
		reached = next
	}
	paths := map[review.Point]way{}
	for _, in := range inputs {
		if _, ok := came[in]; !ok {
			return nil, fmt.Errorf("%w: the lineage of a recalled screening changed while it was read", review.ErrUnavailable)
		}
		w := way{direct: came[in] == from}
		for p := came[in]; p != (review.Point{}); p = came[p] {
			if p.Name() {
				w.names = append(w.names, p)
			}
		}
		slices.Reverse(w.names)
		paths[in] = w
	}
	return paths, nil
}

func pointBytes(points []review.Point) [][]byte {
	out := make([][]byte, len(points))
	for i := range points {
		out[i] = points[i][:]
	}
	return out
}

// Witnesses gives a few kept specs for each name that are likely to write it: a
// spec is at most three links from what it names. The nearest come first, and what
// is popular is not read to its end.
func (s *Store) Witnesses(ctx context.Context, project string, names []review.Point) (map[review.Point][][]byte, error) {
	const links, specs, longest = 3, 3, 128 << 10 // bytes: the words of longer ones are not worth their reading
	rows, err := s.of(project).Query(ctx, `select u.p, w.raw from unnest($2::bytea[]) u(p) cross join lateral (
			with recursive down(point, links) as (
				select u.p, 0
				union
				select l.child, down.links + 1 from down cross join lateral (
					select k.child from lineage k where k.project = $1 and k.parent = down.point offset 0) l
				where down.links < $3
			)
			select r.raw from down d
				cross join lateral (select sha256 from spec where project = $1 and inputs = d.point limit 5) sp
				cross join lateral (select spec_of(s) as raw from screening s where s.project = $1 and s.spec_sha256 = sp.sha256
					and not exists (select from erased(s)) order by s.created_at desc limit 1) r
			where length(r.raw) <= $5 limit $4) w`, project, pointBytes(names), links, specs, longest)
	if err != nil {
		return nil, translate(err)
	}
	found := map[review.Point][][]byte{}
	var name, raw []byte
	_, err = pgx.ForEachRow(rows, []any{&name, &raw}, func() error {
		found[review.Point(name)] = append(found[review.Point(name)], raw)
		return nil
	})
	return found, translate(err)
}
