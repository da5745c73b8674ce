package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/review"
)

// severityRank orders severities, the worst highest.
const severityRank = `array_position(array['low', 'medium', 'high', 'critical'], f.severity)`

// causingFinding is how a review's causing findings are told from hedges, which
// travel with a decision and need nobody.
const causingFinding = `f.screening_id = s.id and f.causing and f.effect in ('escalate', 'block')`

// Queue lists reviews without their decisions.
func (s *Store) Queue(ctx context.Context, project string, q review.QueueQuery) ([]*review.QueueItem, error) {
	// The state by the database's time: a review that is overdue is expired, swept or not.
	view, order, after := `r.closed_at is null and (r.expires_at is null or r.expires_at > now())`, `r.due_at, r.id`, `(r.due_at, r.id) > (@at::timestamptz, @id::uuid)`
	if q.View.Newest() {
		view, order, after = `r.closed_at is not null`, `r.opened_at desc, r.id desc`, `(r.opened_at, r.id) < (@at::timestamptz, @id::uuid)`
	}
	if q.View == review.QueueOverdue {
		view = `(r.state = 'expired' or r.closed_at is null and r.expires_at <= now())`
	}
	args := pgx.StrictNamedArgs{"project": project, "first": q.After == nil, "at": time.Time{}, "id": "00000000-0000-0000-0000-000000000000",
		"groups": nonNil(q.Groups), "term": q.Term, "severity": q.Severity, "team": q.Team, "person": q.Person, "limit": q.Limit,
		"most": review.MostQueueTerms}
	if q.After != nil {
		args["at"], args["id"] = q.After.At, q.After.ID
	}
	// Safety: view, order, after and the constants are in this file.
	rows, err := s.of(project).Query(ctx, `with chosen as materialized (
			select r.id, r.screening_id, r.state, r.outcome, r.opened_at, r.due_at, r.expires_at, r.closed_at, s.run_ref, s.team, s.submitter, s.owner
			from review r join screening s on s.id = r.screening_id
			where r.project = @project and `+view+` and (@first or `+after+`)
			  and (@team = '' or s.team = @team)
			  and (cardinality(@groups::text[]) = 0
				or exists (select from review_panel p where p.review_id = r.id and p.group_name = any(@groups::text[])
					and p.due_at is not null and p.passed_at is null))
			  and (@term = '' or exists (select from finding f where `+causingFinding+` and f.term = @term))
			  and (@severity = '' or exists (select from finding f where `+causingFinding+` and f.severity = @severity))
			  and (@person = '' or not exists (select from screening_party y where y.screening_id = s.id and y.name = @person)
				and not exists (select from vote v where v.review_id = r.id and v.person = @person))
			order by `+order+` limit @limit
		)
		select r.id::text, r.screening_id::text, r.run_ref, r.team, r.submitter, r.owner,
			`+reviewState+`, coalesce(r.outcome, ''),
			r.opened_at, r.due_at, r.closed_at, now(), coalesce(c.severities[1], ''), coalesce(c.terms[:@most], '{}'),
			coalesce(cardinality(c.terms), 0),
			array(select distinct group_name from review_panel where review_id = r.id and due_at is not null and passed_at is null order by group_name),
			(select count(distinct person) from vote where review_id = r.id)
		from chosen r left join lateral (
			select array_agg(f.term order by `+severityRank+` desc, f.term) as terms,
				array_agg(f.severity order by `+severityRank+` desc, f.term) as severities
			from finding f where f.screening_id = r.screening_id and f.causing and f.effect in ('escalate', 'block')) c on true
		order by `+order, args)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[review.QueueItem])
	return list, translate(err)
}

// History gives the events of a screening after seq, in order.
func (s *Store) History(ctx context.Context, project, screeningID string, after, limit int) ([]review.HistoryEvent, error) {
	rows, err := s.of(project).Query(ctx, `select seq, type, actor, at, body from audit_event
		where screening_id = $1 and seq > $2 order by seq limit $3`, screeningID, after, limit)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[review.HistoryEvent])
	return list, translate(err)
}

// SupersededBy reads the latest screening that another one of its run took the place of.
func (s *Store) SupersededBy(ctx context.Context, project, runRef, by string) (*review.Screening, error) {
	return s.oneScreening(ctx, project, `where s.project = $1 and s.run_ref = $2 and s.superseded_by = $3
		order by s.created_at desc, s.id desc limit 1`, project, runRef, by)
}

// Dashboard counts over the last days. Each part reads an index range or a
// bounded number of rows, however many are kept.
func (s *Store) Dashboard(ctx context.Context, project string, days int) (*review.Dashboard, error) {
	d := &review.Dashboard{}
	batch := &pgx.Batch{}
	batch.Queue(`select now()`).QueryRow(func(row pgx.Row) error { return row.Scan(&d.Now) })
	batch.Queue(outcomesSQL, project, days).Query(func(rows pgx.Rows) (err error) {
		d.Days, err = pgx.CollectRows(rows, pgx.RowToStructByPos[review.DayOutcomes])
		return err
	})
	limits := make([]float64, len(review.AgeLimits))
	for i, l := range review.AgeLimits {
		limits[i] = l.Seconds()
	}
	batch.Queue(agesSQL, project, limits).Query(func(rows pgx.Rows) error {
		for _, l := range review.AgeLimits {
			d.Ages = append(d.Ages, review.AgeCount{Below: l})
		}
		d.Ages = append(d.Ages, review.AgeCount{})
		var step, count, soon int
		_, err := pgx.ForEachRow(rows, []any{&step, &count, &soon}, func() error {
			d.Ages[step].Count = count
			d.Open += count
			d.Soon += soon
			return nil
		})
		return err
	})
	batch.Queue(termsSQL, project, review.TermWindow, review.MostTerms).Query(func(rows pgx.Rows) (err error) {
		d.Terms, err = pgx.CollectRows(rows, pgx.RowToStructByPos[review.TermCount])
		return err
	})
	var median float64
	batch.Queue(endedSQL, project, days).QueryRow(func(row pgx.Row) error {
		return row.Scan(&d.Ended.Admit, &d.Ended.Block, &d.Ended.Expired, &d.Ended.Other, &median)
	})
	if err := s.of(project).SendBatch(ctx, batch).Close(); err != nil {
		return nil, translate(err)
	}
	d.Ended.Median = time.Duration(median * float64(time.Second))
	return d, nil
}

// firstDay is the UTC midnight that begins the last $2 days.
const firstDay = `(date_trunc('day', now() at time zone 'utc') - make_interval(days => $2::int - 1)) at time zone 'utc'`

const outcomesSQL = `with counted as (
	select (created_at at time zone 'utc')::date as day, count(*) filter (where outcome = 'admit') as admit,
		count(*) filter (where outcome = 'escalate') as escalate, count(*) filter (where outcome = 'block') as block
	from screening where project = $1 and created_at >= ` + firstDay + ` group by 1
)
select to_char(d.day, 'YYYY-MM-DD'), coalesce(admit, 0), coalesce(escalate, 0), coalesce(block, 0)
from generate_series((now() at time zone 'utc')::date - ($2::int - 1), (now() at time zone 'utc')::date, interval '1 day') d(day)
left join counted c on c.day = d.day::date order by d.day`

const agesSQL = `select width_bucket(extract(epoch from now() - opened_at)::double precision, $2::double precision[]), count(*),
	count(*) filter (where due_at < now() + interval '1 day')
from review where project = $1 and closed_at is null and (expires_at is null or expires_at > now()) group by 1 order by 1`

const termsSQL = `with latest as materialized (
	select id from screening where project = $1 order by created_at desc, id desc limit $2
)
select f.term, count(*) filter (where f.effect = 'block'), count(*) filter (where f.effect = 'escalate')
from latest l cross join lateral (
	select term, effect from finding where screening_id = l.id and causing and effect in ('escalate', 'block') offset 0) f
group by f.term order by count(*) desc, f.term limit $3`

const endedSQL = `select count(*) filter (where outcome = 'admit'), count(*) filter (where outcome = 'block'), count(*) filter (where state = 'expired'),
	count(*) filter (where state in ('superseded', 'withdrawn')),
	coalesce(percentile_cont(0.5) within group (order by extract(epoch from closed_at - opened_at)) filter (where state = 'decided'), 0)
from review where project = $1 and opened_at >= ` + firstDay
