package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/review"
)

// Projects lists those in which something was screened. It jumps from one to the
// next in the index, whatever is in them.
func (s *Store) Projects(ctx context.Context) ([]string, error) {
	rows, err := s.every.Query(ctx, `with recursive p(name) as (
			(select project from screening order by project limit 1)
			union all
			select (select project from screening where project > p.name order by project limit 1) from p where p.name is not null
		)
		select name from p where name is not null`)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return list, translate(err)
}

// Admitted looks at q.Limit screenings, oldest first, in one short statement, and
// gives those that are admitted now. An old one can be: people may have admitted it
// yesterday.
func (s *Store) Admitted(ctx context.Context, project string, q review.AdmittedQuery) (list []review.Admitted, next *review.Cursor, err error) {
	args := pgx.StrictNamedArgs{"project": project, "packs": q.Packs[:], "engine": q.Engine, "first": q.After == nil,
		"at": time.Time{}, "id": "00000000-0000-0000-0000-000000000000", "limit": q.Limit}
	if q.After != nil {
		args["at"], args["id"] = q.After.At, q.After.ID
	}
	rows, err := s.of(project).Query(ctx, `with slice as materialized (
			select id, created_at, packs_sha256 <> @packs::bytea or engine <> @engine::text as other,
				status = 'admitted' and admitted_until > now() as admitted, status in ('pending', 'blocked') as closed,
				row_number() over (order by created_at, id) = @limit::bigint as last
			from screening s
			where s.project = @project and (@first or (s.created_at, s.id) > (@at::timestamptz, @id::uuid))
			order by s.created_at, s.id limit @limit
		), waived as ( -- most projects have none, and then nothing that is closed is looked at
			select `+waiversInForce+` as any
		)
		select x.id::text, x.created_at, x.other, x.last, case when x.admitted or x.closed and waived.any then (
				select screening_status(s, r.expires_at) = 'admitted' from screening s left join review r on r.screening_id = s.id and r.closed_at is null
				where s.id = x.id) else false end
		from slice x, waived where x.admitted or x.last or x.closed and waived.any
		order by x.created_at, x.id`, args)
	if err != nil {
		return nil, nil, translate(err)
	}
	var a review.Admitted
	var last, admitted bool
	_, err = pgx.ForEachRow(rows, []any{&a.At.ID, &a.At.At, &a.Other, &last, &admitted}, func() error {
		if admitted {
			list = append(list, a)
		}
		if last {
			at := a.At
			next = &at
		}
		return nil
	})
	return list, next, translate(err)
}
