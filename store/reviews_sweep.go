package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"weir/review"
)

// sweepAtOnce bounds the rows that one transaction of the sweep locks.
const sweepAtOnce = 100

// SweepReviews does what time does to reviews: expires them, never to an admit;
// hands overdue panels over to the next; reminds. Running it twice, or on two
// replicas, changes nothing more: every step looks for rows that still need it,
// and leaves those that somebody holds right now to the next sweep.
func (s *Store) SweepReviews(ctx context.Context) (expired []string, err error) {
	did := false
	step := func(name string, run func(context.Context, pgx.Tx) ([]string, error)) []string {
		var ids []string
		if err != nil {
			return nil
		}
		if err = pgx.BeginFunc(ctx, s.every, func(tx pgx.Tx) (err error) {
			ids, err = run(ctx, tx)
			return err
		}); err != nil {
			if retryable(err) { // certainly nothing was done; the next sweep comes soon
				err = nil
				return nil
			}
			err = fmt.Errorf("%s reviews: %w", name, translate(err))
			return nil
		}
		did = did || len(ids) > 0
		return ids
	}
	expired = step("expire", s.expire)
	step("hand over", s.pass)
	step("remind of", s.remind)
	if did && s.cfg.Enqueued != nil {
		s.cfg.Enqueued()
	}
	return expired, err
}

// expire closes what nobody answered in time. What waivers admit stays open
// until they end. It gives the ids of the screenings.
func (s *Store) expire(ctx context.Context, tx pgx.Tx) (screenings []string, err error) {
	var reviews []string
	// Screenings are locked before reviews, as everywhere; of both, because a review
	// may have moved since it was looked at. A block that is appealed stays one.
	rows, err := tx.Query(ctx, `with due as (
			select s.id as screening_id, r.id as review_id from review r join screening s on s.id = r.screening_id
			where r.closed_at is null and r.expires_at <= now() and not coalesce(waived_until(s) > now(), false)
			order by r.expires_at limit $1 for update of s, r skip locked
		), gone as (
			update screening s set status = 'expired', changed_at = now() from due where s.id = due.screening_id and s.status = 'pending'
		)
		update review r set state = 'expired', event = 'expire', asked_at = null, closed_at = now(), version = version + 1
		from due where r.id = due.review_id
		returning r.id::text, r.screening_id::text`, sweepAtOnce)
	if err != nil {
		return nil, err
	}
	var reviewID, screeningID string
	if _, err := pgx.ForEachRow(rows, []any{&reviewID, &screeningID}, func() error {
		reviews, screenings = append(reviews, reviewID), append(screenings, screeningID)
		return nil
	}); err != nil || len(reviews) == 0 {
		return nil, err
	}
	batch := &pgx.Batch{}
	batch.Queue(closingSQL, pgx.StrictNamedArgs{"review": reviews, "type": "review.expired", "base_url": s.cfg.BaseURL})
	batch.Queue(`insert into audit_event (screening_id, type, actor, body)
		select s, 'review.expired', 'weir', convert_to(jsonb_build_object('review_id', r)::text, 'UTF8')
		from unnest($1::uuid[], $2::uuid[]) as u(s, r)`, screenings, reviews)
	return screenings, tx.SendBatch(ctx, batch).Close()
}

// pass hands overdue panels over to the next tier: its turn begins now, and it
// has its whole time. Votes of the panel that is over stay in the record and
// count no more, so that the passing of time alone never completes a quorum.
func (s *Store) pass(ctx context.Context, tx pgx.Tx) (reviews []string, err error) {
	rows, err := tx.Query(ctx, `with due as (
			select s.id as screening_id, r.id as review_id from review r join screening s on s.id = r.screening_id
			where r.state = 'open' and r.closed_at is null and r.due_at <= now() and (r.expires_at is null or r.expires_at > now())
			order by r.due_at limit $1 for update of s, r skip locked
		), passed as (
			update review_panel p set passed_at = now(), remind_at = null, claimed_by = null, claimed_until = null from due
			where p.review_id = due.review_id and p.due_at <= now() and p.passed_at is null and p.answered_at is null and p.next_panel is not null
			returning p.review_id, p.next_panel
		), begun as (
			update review_panel n set due_at = now() + make_interval(secs => n.due_seconds), remind_at = now() + make_interval(secs => n.due_seconds / 2)
			from passed p where n.review_id = p.review_id and n.panel = p.next_panel
			returning n.review_id
		)
		select distinct review_id::text from begun`, sweepAtOnce)
	if err != nil {
		return nil, err
	}
	if reviews, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(reviews) == 0 {
		return nil, err
	}
	batch := &pgx.Batch{}
	batch.Queue(`update review r set event = 'pass', version = r.version + 1, due_at = d.due_at, expires_at = d.expires_at
		from unnest($1::uuid[]) as u(id), review_due(u.id) d where r.id = u.id`, reviews)
	// Told are those who missed it and those whose turn it is.
	batch.Queue(`with moved as (
			select p.review_id, p.policy, p.terms, p.endpoints from review_panel p where p.review_id = any(@review::uuid[])
				and (p.passed_at = now() or p.due_at = now() + make_interval(secs => p.due_seconds))
		), message as (
			select 'review.overdue' as type, r.id as review_id, r.version, r.due_at, r.screening_id, r.project, 'escalate' as outcome,
				s.spec_sha256, e.endpoint, array_agg(distinct m.policy) as policies,
				array(select distinct t from moved m2, unnest(m2.terms) t where m2.review_id = r.id and e.endpoint = any(m2.endpoints) order by t) as terms
			from moved m join review r on r.id = m.review_id join screening s on s.id = r.screening_id, unnest(m.endpoints) as e(endpoint)
			group by r.id, s.spec_sha256, e.endpoint
		)
		`+insertDeliverySQL, pgx.StrictNamedArgs{"review": reviews, "base_url": s.cfg.BaseURL})
	batch.Queue(`insert into audit_event (screening_id, type, actor, body)
		select r.screening_id, 'review.overdue', 'weir', convert_to(jsonb_build_object('review_id', r.id,
			'passed', (select jsonb_agg(p.policy order by p.panel) from review_panel p where p.review_id = r.id and p.passed_at = now()),
			'to', (select jsonb_agg(n.policy order by n.panel) from review_panel p join review_panel n on n.review_id = p.review_id and n.panel = p.next_panel
				where p.review_id = r.id and p.passed_at = now()))::text, 'UTF8')
		from review r where r.id = any($1::uuid[])`, reviews)
	return reviews, tx.SendBatch(ctx, batch).Close()
}

// remind tells the endpoints of a panel, once, that half of its time is over.
func (s *Store) remind(ctx context.Context, tx pgx.Tx) (reviews []string, err error) {
	rows, err := tx.Query(ctx, `with due as (
			select distinct s.id as screening_id, r.id as review_id
			from review_panel p join review r on r.id = p.review_id and r.state = 'open' join screening s on s.id = r.screening_id
			where p.remind_at <= now() limit $1
		), held as (
			select due.review_id from due join screening s on s.id = due.screening_id
				join review r on r.id = due.review_id and r.state = 'open' for update of s, r skip locked
		), reminded as (
			update review_panel p set remind_at = null from held
			where p.review_id = held.review_id and p.remind_at <= now()
			returning p.review_id, p.panel
		)
		select review_id::text, panel from reminded`, sweepAtOnce)
	if err != nil {
		return nil, err
	}
	var panels []int32
	var id string
	var panel int32
	if _, err = pgx.ForEachRow(rows, []any{&id, &panel}, func() error {
		reviews, panels = append(reviews, id), append(panels, panel)
		return nil
	}); err != nil || len(reviews) == 0 {
		return nil, err
	}
	batch := &pgx.Batch{}
	batch.Queue(`with due as (
			select p.* from unnest(@review::uuid[], @panel::integer[]) as u(review_id, panel)
				join review_panel p on p.review_id = u.review_id and p.panel = u.panel
		), message as (
			select 'review.reminder' as type, r.id as review_id, r.version, min(p.due_at) as due_at, r.screening_id, r.project, 'escalate' as outcome,
				s.spec_sha256, e.endpoint, array_agg(distinct p.policy) as policies,
				array(select distinct t from due p2, unnest(p2.terms) t where p2.review_id = r.id and e.endpoint = any(p2.endpoints) order by t) as terms
			from due p join review r on r.id = p.review_id join screening s on s.id = r.screening_id, unnest(p.endpoints) as e(endpoint)
			group by r.id, s.spec_sha256, e.endpoint
		)
		`+insertDeliverySQL, pgx.StrictNamedArgs{"review": reviews, "panel": panels, "base_url": s.cfg.BaseURL})
	batch.Queue(`insert into audit_event (screening_id, type, actor, body)
		select r.screening_id, 'review.reminded', 'weir', convert_to(jsonb_build_object('review_id', r.id, 'policies', jsonb_agg(p.policy order by p.panel))::text, 'UTF8')
		from unnest($1::uuid[], $2::integer[]) as u(review_id, panel)
			join review_panel p on p.review_id = u.review_id and p.panel = u.panel join review r on r.id = p.review_id
		group by r.id, r.screening_id`, reviews, panels)
	return reviews, tx.SendBatch(ctx, batch).Close()
}

var _ review.Store = (*Store)(nil)
