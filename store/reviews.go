package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"weir/review"
)

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

var (
	_ querier = (*pgxpool.Pool)(nil)
	_ querier = (pgx.Tx)(nil)
)

const reviewColumns = `r.id::text, r.project, case when r.state = 'open' and r.due_at <= now() then 'expired' else r.state end,
	coalesce(r.outcome, ''), r.version, r.opened_at, r.due_at, r.closed_at, r.screening_id::text`

func scanReview(row pgx.CollectableRow) (*review.Review, error) {
	r := review.Review{Screening: &review.Screening{}}
	err := row.Scan(&r.ID, &r.Project, &r.State, &r.Outcome, &r.Version, &r.OpenedAt, &r.DueAt, &r.ClosedAt, &r.Screening.ID)
	return &r, err
}

// Review reads one with its screening, panels and votes.
func (s *Store) Review(ctx context.Context, project, id string) (*review.Review, error) {
	rows, err := s.pool.Query(ctx, `select `+reviewColumns+` from review r where r.project = $1 and r.id = $2`, project, id)
	if err != nil {
		return nil, translate(err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, scanReview)
	if err != nil {
		return nil, translate(err)
	}
	if err := s.complete(ctx, s.pool, []*review.Review{r}); err != nil {
		return nil, translate(err)
	}
	return r, nil
}

// Reviews lists open reviews by due time, or all of them newest first.
func (s *Store) Reviews(ctx context.Context, project string, q review.ReviewQuery) ([]*review.Review, error) {
	where, order := `(@first or (r.opened_at, r.id) < (@at::timestamptz, @id::uuid))`, `r.opened_at desc, r.id desc`
	if q.OpenOnly {
		where = `r.state = 'open' and r.due_at > now() and (@first or (r.due_at, r.id) > (@at::timestamptz, @id::uuid))`
		order = `r.due_at, r.id`
	}
	args := pgx.StrictNamedArgs{"project": project, "first": q.After == nil, "at": time.Time{},
		"id": "00000000-0000-0000-0000-000000000000", "limit": q.Limit}
	if q.After != nil {
		args["at"], args["id"] = q.After.At, q.After.ID
	}
	// Safety: where and order are constants above.
	rows, err := s.pool.Query(ctx, `select `+reviewColumns+` from review r where r.project = @project and `+where+
		` order by `+order+` limit @limit`, args)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, scanReview)
	if err != nil {
		return nil, translate(err)
	}
	if err := s.complete(ctx, s.pool, list); err != nil {
		return nil, translate(err)
	}
	return list, nil
}

// complete fills in screenings, panels and votes of reviews.
func (s *Store) complete(ctx context.Context, db querier, list []*review.Review) error {
	if len(list) == 0 {
		return nil
	}
	byID := make(map[string]*review.Review, len(list))
	ids, screenings := make([]string, len(list)), make([]string, len(list))
	for i, r := range list {
		byID[r.ID], ids[i], screenings[i] = r, r.ID, r.Screening.ID
	}
	rows, err := db.Query(ctx, `select `+screeningColumns+screeningFrom+`where s.id = any($1::uuid[])`, screenings)
	if err != nil {
		return err
	}
	read, err := pgx.CollectRows(rows, scanScreening)
	if err != nil {
		return err
	}
	for _, r := range list {
		for _, sc := range read {
			if sc.ID == r.Screening.ID {
				r.Screening = sc
			}
		}
	}
	rows, err = db.Query(ctx, `select review_id::text, policy, group_name, quorum, due_at, terms, endpoints
		from review_panel where review_id = any($1::uuid[]) order by review_id, policy`, ids)
	if err != nil {
		return err
	}
	var reviewID string
	var p review.Panel
	_, err = pgx.ForEachRow(rows, []any{&reviewID, &p.Policy, &p.Group, &p.Quorum, &p.DueAt, &p.Terms, &p.Endpoints}, func() error {
		byID[reviewID].Panels = append(byID[reviewID].Panels, p)
		p = review.Panel{}
		return nil
	})
	if err != nil {
		return err
	}
	rows, err = db.Query(ctx, `select review_id::text, policy, person, choice, reason, terms, cast_at
		from vote where review_id = any($1::uuid[]) order by cast_at, person`, ids)
	if err != nil {
		return err
	}
	var policy string
	var v review.Vote
	_, err = pgx.ForEachRow(rows, []any{&reviewID, &policy, &v.Person, &v.Choice, &v.Reason, &v.Terms, &v.CastAt}, func() error {
		panels := byID[reviewID].Panels
		for i := range panels {
			if panels[i].Policy == policy {
				panels[i].Votes = append(panels[i].Votes, v)
			}
		}
		v = review.Vote{}
		return nil
	})
	return err
}

// ChangeReview locks a review, lets decide look at it as it is now, and keeps
// the change it returns in the same transaction.
func (s *Store) ChangeReview(ctx context.Context, project, id string, decide func(*review.Review, time.Time) (*review.Change, error)) error {
	var domain error // decide's own error: not the database's to translate
	const tries = 4
	var err error
	for range tries {
		domain = nil
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			return s.changeReview(ctx, tx, project, id, func(r *review.Review, now time.Time) (c *review.Change, err error) {
				c, domain = decide(r, now)
				return c, domain
			})
		})
		if err == nil || domain != nil || !retryable(err) {
			break
		}
	}
	if domain != nil {
		return domain
	}
	if err == nil && s.cfg.Enqueued != nil {
		s.cfg.Enqueued()
	}
	if errors.Is(err, review.ErrConflict) {
		return review.ErrConflict
	}
	return translate(err)
}

func (s *Store) changeReview(ctx context.Context, tx pgx.Tx, project, id string, decide func(*review.Review, time.Time) (*review.Change, error)) error {
	// The screening is locked first, as a superseding submission does.
	var now time.Time
	err := tx.QueryRow(ctx, `select now() from screening s where s.id =
		(select screening_id from review where project = $1 and id = $2) for update`, project, id).Scan(&now)
	if err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `select `+reviewColumns+` from review r where r.id = $1 for update`, id)
	if err != nil {
		return err
	}
	r, err := pgx.CollectExactlyOneRow(rows, scanReview)
	if err != nil {
		return err
	}
	if err := s.complete(ctx, tx, []*review.Review{r}); err != nil {
		return err
	}
	change, err := decide(r, now)
	if err != nil {
		return err
	}
	return s.keepChange(ctx, tx, r, change)
}

func (s *Store) keepChange(ctx context.Context, tx pgx.Tx, r *review.Review, c *review.Change) error {
	batch := &pgx.Batch{}
	event, seen := map[string]any{"review_id": r.ID, "outcome": c.Outcome}, []map[string]any{}
	for _, v := range c.Votes {
		batch.Queue(`insert into vote (review_id, policy, person, choice, reason, terms, group_name, spec_sha256)
			values ($1, $2, $3, $4, $5, $6, $7, $8)`,
			r.ID, v.Policy, v.Person, v.Choice, v.Reason, nonNil(v.Terms), v.Group, r.Screening.SpecSHA256[:])
		seen = append(seen, map[string]any{"policy": v.Policy, "group": v.Group, "person": v.Person, "choice": v.Choice,
			"reason": v.Reason, "terms": nonNil(v.Terms)})
	}
	event["votes"] = seen
	body, err := json.Marshal(event, json.Deterministic(true))
	if err != nil {
		return err
	}
	if c.Outcome == "" {
		batch.Queue(`update review set version = version + 1 where id = $1 and state = 'open' and version = $2`, r.ID, r.Version).Exec(exactlyOne)
		batch.Queue(`insert into audit_event (screening_id, type, actor, body) values ($1, 'review.voted', $2, $3)`, r.Screening.ID, c.Actor, body)
		return tx.SendBatch(ctx, batch).Close()
	}
	batch.Queue(`update review set state = 'decided', outcome = $3, closed_at = now(), version = version + 1
		where id = $1 and state = 'open' and version = $2 and due_at > now()`, r.ID, r.Version, c.Outcome).Exec(exactlyOne)
	status := map[review.Choice]string{review.VoteAdmit: "admitted", review.VoteBlock: "blocked"}[c.Outcome]
	batch.Queue(`update screening set status = $2, decided_by = 'people', changed_at = now(),
			admitted_until = case when $2 = 'admitted' then now() + make_interval(secs => $3) end
		where id = $1 and status = 'pending'`, r.Screening.ID, status, c.AdmissionPeriod.Seconds()).Exec(exactlyOne)
	batch.Queue(closingSQL, pgx.StrictNamedArgs{"review": []string{r.ID}, "type": "review.decided", "base_url": s.cfg.BaseURL})
	batch.Queue(`insert into audit_event (screening_id, type, actor, body) values ($1, 'review.decided', $2, $3)`, r.Screening.ID, c.Actor, body)
	return tx.SendBatch(ctx, batch).Close()
}

// closingSQL cancels what is still to be said about open reviews and tells
// their endpoints how they ended.
const closingSQL = `with obsolete as (
	update delivery set state = 'cancelled', finished_at = now()
	where review_id = any(@review::uuid[]) and state in ('pending', 'held')
), message as (
	select @type::text as type, r.id as review_id, r.version, r.due_at, r.screening_id, r.project,
		coalesce(r.outcome, 'escalate') as outcome, s.spec_sha256, e.endpoint, array_agg(distinct p.policy) as policies,
		array(select distinct t from review_panel p2, unnest(p2.terms) t
			where p2.review_id = r.id and e.endpoint = any(p2.endpoints) order by t) as terms
	from review r join screening s on s.id = r.screening_id join review_panel p on p.review_id = r.id,
		unnest(p.endpoints) as e(endpoint)
	where r.id = any(@review::uuid[])
	group by r.id, s.spec_sha256, e.endpoint
)
` + insertDeliverySQL

func exactlyOne(tag pgconn.CommandTag) error {
	if tag.RowsAffected() != 1 {
		return review.ErrConflict
	}
	return nil
}

// ExpireReviews closes every open review whose due time has passed: never an
// admit. Running it twice, or on two replicas, changes nothing more.
func (s *Store) ExpireReviews(ctx context.Context) ([]string, error) {
	var reviews, screenings []string
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		reviews, screenings = nil, nil
		// Screenings are locked before reviews, as everywhere; those that a
		// vote holds right now are left to the next sweep.
		rows, err := tx.Query(ctx, `with due as (
				select s.id as screening_id, r.id as review_id from review r join screening s on s.id = r.screening_id
				where r.state = 'open' and r.due_at <= now() order by r.due_at limit 100 for update of s skip locked
			), gone as (
				update screening s set status = 'expired', changed_at = now() from due where s.id = due.screening_id and s.status = 'pending'
				returning s.id
			)
			update review r set state = 'expired', closed_at = now(), version = version + 1
			from due, gone where r.id = due.review_id and gone.id = due.screening_id and r.state = 'open'
			returning r.id::text, r.screening_id::text`)
		if err != nil {
			return err
		}
		var reviewID, screeningID string
		if _, err := pgx.ForEachRow(rows, []any{&reviewID, &screeningID}, func() error {
			reviews, screenings = append(reviews, reviewID), append(screenings, screeningID)
			return nil
		}); err != nil || len(reviews) == 0 {
			return err
		}
		batch := &pgx.Batch{}
		batch.Queue(closingSQL, pgx.StrictNamedArgs{"review": reviews, "type": "review.expired", "base_url": s.cfg.BaseURL})
		batch.Queue(`insert into audit_event (screening_id, type, actor, body)
			select s, 'review.expired', 'weir', convert_to(jsonb_build_object('review_id', r)::text, 'UTF8')
			from unnest($1::uuid[], $2::uuid[]) as u(s, r)`, screenings, reviews)
		return tx.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return nil, fmt.Errorf("expire reviews: %w", translate(err))
	}
	if len(reviews) > 0 && s.cfg.Enqueued != nil {
		s.cfg.Enqueued()
	}
	return screenings, nil
}
