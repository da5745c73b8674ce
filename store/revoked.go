package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/review"
	"weir/screening"
)

// longestAdmission is how long an admission can have been given for: after that
// nobody needs to be told that it was revoked.
const longestAdmission = 30 * 24 * time.Hour

// Revoked lists the admissions of a project that ended before their time, the
// newest first, and the database's time. Those that a recall ends are in it from
// its commit, also while it is still being carried out.
func (s *Store) Revoked(ctx context.Context, project string) (list []review.Revoked, at time.Time, err error) {
	rows, err := s.of(project).Query(ctx, `with ended as (
		select s.id, s.spec_sha256, s.changed_at as at, s.status from screening s
		where s.project = $1 and s.status not in ('admitted', 'pending') and s.changed_at > now() - make_interval(secs => $2)
		  and (s.outcome = 'admit' or exists (select from review r where r.screening_id = s.id and r.outcome = 'admit')
			or exists (select from waiver w where w.project = s.project and w.confirmed_at is not null and w.created_at > s.created_at - interval '30 days'))
		), ending as (
		select distinct on (s.id) s.id, s.spec_sha256, q.made_at as at, n.status
		from (select distinct recall_id from recall_work where project = $1) w join recall q on q.id = w.recall_id and q.lifted_at is null
			cross join lateral (select * from inputs_from($1, q.point) union all select '\x00'::bytea) i(inputs)
			join spec p on p.project = $1 and p.inputs = i.inputs
			join screening s on s.project = $1 and s.spec_sha256 = p.sha256 and s.status in ('admitted', 'pending', 'blocked')
			cross join lateral (select screening_status(s, null) as status offset 0) n
		where n.status = 'revoked' order by s.id, q.made_at
		)
		select id::text, spec_sha256, at, status from ended where id not in (select id from ending)
		union all select id::text, spec_sha256, at, status from ending
		order by 3 desc, 1`, project, longestAdmission.Seconds())
	if err != nil {
		return nil, at, translate(err)
	}
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r review.Revoked, err error) {
		var spec []byte
		err = row.Scan(&r.ScreeningID, &spec, &r.At, &r.Reason)
		r.SpecSHA256 = screening.Digest256(spec)
		return r, err
	})
	if err != nil {
		return nil, at, translate(err)
	}
	at, err = s.Now(ctx)
	return list, at, err
}
