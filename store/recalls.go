package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir/review"
	"weir/screening"
)

// A recall is in force by its row alone: screening_status looks for it whenever a
// status is computed. What it ends is written down afterwards, in steps of
// settleAtOnce rows, from recall_work: whoever finds work there does it, on any
// replica, and a process that dies leaves it for the next.

const (
	// settleAtOnce bounds the rows that one step locks.
	settleAtOnce = 200
	// lineageTimeout is for following lineage to its ends, which can be far.
	lineageTimeout = "60s"
)

// recallLock is held by whoever makes, settles or lifts a recall of a project. Who
// brings something to life, or says where data comes from, shares it.
func recallLock(project string) int64 { return lockKey(project, "recall") }

// MakeRecall keeps a recall with its event. Under the project's lock: a submission
// was kept before and is found, or comes after and finds the recall.
func (s *Store) MakeRecall(ctx context.Context, r *review.Recall) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	r.ID = id.String()
	body := map[string]any{"reason": r.Reason}
	var sum []byte
	var uri *string
	if r.Data.URI == "" {
		sum, body["sha256"] = r.Data.SHA256[:], r.Data.SHA256
	} else {
		uri, body["uri"] = &r.Data.URI, r.Data.URI
	}
	event, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		return err
	}
	point := r.Data.Point()
	err = pgx.BeginFunc(ctx, s.of(r.Project), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockSQL, []int64{recallLock(r.Project)}); err != nil {
			return err
		}
		batch := &pgx.Batch{}
		batch.Queue(`insert into recall (id, project, point, sha256, uri, reason, actor) values ($1, $2, $3, $4, $5, $6, $7)`,
			r.ID, r.Project, point[:], sum, uri, r.Reason, r.Actor)
		batch.Queue(`insert into recall_work (project, recall_id) values ($1, $2)`, r.Project, r.ID)
		batch.Queue(recallEventSQL, r.ID, r.Project, "recall.made", r.Actor, event)
		return tx.SendBatch(ctx, batch).Close()
	})
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == "23505" && pg.ConstraintName == "recall_live" {
		return &review.VoteError{Kind: review.ErrConflict, Reason: "this is recalled already; see the recalls in force"}
	}
	return translate(err)
}

const recallEventSQL = `insert into audit_event (subject, project, type, actor, body) values ('recall/' || $1::text, $2, $3, $4, $5)`

// LiftRecall lifts a recall, with its event, unless something that fell under it is
// not written down yet: that would be admitted again.
func (s *Store) LiftRecall(ctx context.Context, project, id, actor, reason string) error {
	event, err := json.Marshal(map[string]any{"reason": reason}, json.Deterministic(true))
	if err != nil {
		return err
	}
	var domain error
	err = pgx.BeginFunc(ctx, s.of(project), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockSQL, []int64{recallLock(project)}); err != nil {
			return err
		}
		var lifted, busy bool
		if err := tx.QueryRow(ctx, `select lifted_at is not null, exists (select from recall_work w where w.recall_id = r.id)
			from recall r where project = $1 and id = $2 for update`, project, id).Scan(&lifted, &busy); err != nil {
			return err
		}
		switch {
		case lifted:
			domain = &review.VoteError{Kind: review.ErrConflict, Reason: "the recall is lifted already"}
		case busy:
			domain = &review.VoteError{Kind: review.ErrConflict, Reason: "the recall is still being carried out; lift it in a moment"}
		}
		if domain != nil {
			return domain
		}
		batch := &pgx.Batch{}
		batch.Queue(`update recall set lifted_at = now(), lifted_by = $2, lift_reason = $3 where id = $1`, id, actor, reason)
		batch.Queue(recallEventSQL, id, project, "recall.lifted", actor, event)
		return tx.SendBatch(ctx, batch).Close()
	})
	if domain != nil {
		return domain
	}
	return translate(err)
}

const recallColumns = `q.id::text, q.project, q.sha256, coalesce(q.uri, ''), q.reason, q.actor, q.made_at, q.lifted_at, coalesce(q.lifted_by, ''),
	coalesce(q.lift_reason, ''), not exists (select from recall_work w where w.recall_id = q.id),
	(select count(*) from screening s where s.recall_id = q.id and s.status = 'revoked'),
	(select count(*) from screening s where s.recall_id = q.id and s.status = 'blocked')`

func scanRecall(row pgx.CollectableRow) (*review.Recall, error) {
	var r review.Recall
	var sum []byte
	err := row.Scan(&r.ID, &r.Project, &sum, &r.Data.URI, &r.Reason, &r.Actor, &r.MadeAt, &r.LiftedAt, &r.LiftedBy, &r.LiftReason,
		&r.Settled, &r.Revoked, &r.Blocked)
	if sum != nil {
		r.Data.SHA256 = screening.Digest256(sum)
	}
	return &r, err
}

// Recall reads one.
func (s *Store) Recall(ctx context.Context, project, id string) (*review.Recall, error) {
	rows, err := s.of(project).Query(ctx, `select `+recallColumns+` from recall q where q.project = $1 and q.id = $2`, project, id)
	if err != nil {
		return nil, translate(err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, scanRecall)
	return r, translate(err)
}

// Recalls lists the newest first.
func (s *Store) Recalls(ctx context.Context, project string, q review.RecallQuery) ([]*review.Recall, error) {
	args := pgx.StrictNamedArgs{"project": project, "live": q.Live, "first": q.After == nil, "at": time.Time{},
		"id": "00000000-0000-0000-0000-000000000000", "limit": q.Limit}
	if q.After != nil {
		args["at"], args["id"] = q.After.At, q.After.ID
	}
	rows, err := s.of(project).Query(ctx, `select `+recallColumns+` from recall q
		where q.project = @project and (not @live or q.lifted_at is null)
		  and (@first or (q.made_at, q.id) < (@at::timestamptz, @id::uuid))
		order by q.made_at desc, q.id desc limit @limit`, args)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, scanRecall)
	return list, translate(err)
}

// LiveRecall gives the recall in force that one of the points comes from, nil without one.
func (s *Store) LiveRecall(ctx context.Context, project string, points []review.Point) (*review.RecallRef, error) {
	var r review.RecallRef
	var sum []byte
	err := s.of(project).QueryRow(ctx, `select q.id::text, q.sha256, coalesce(q.uri, ''), q.reason, q.made_at
		from (select live_recall($1, $2::bytea[]) as id offset 0) k join recall q on q.id = k.id`, project, pointBytes(points)).Scan(&r.ID, &sum, &r.Data.URI, &r.Reason, &r.MadeAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if sum != nil {
		r.Data.SHA256 = screening.Digest256(sum)
	}
	return &r, translate(err)
}

// leadingTo gives the screenings (k, as rows) of specs with certain inputs (i). Each
// step is a lookup.
const leadingTo = `
	cross join lateral (select p.sha256 from spec p where p.project = @project::text and p.inputs = i.inputs offset 0) p
	cross join lateral (select k from screening k where k.project = @project::text and k.spec_sha256 = p.sha256 offset 0) x `

// fromPoint gives the screenings that a point leads to.
const fromPoint = ` inputs_from(@project::text, @point::bytea) i(inputs)` + leadingTo

// underPoint gives those that a recall of a point can be about: also where nobody
// knows what they come from.
const underPoint = ` (select * from inputs_from(@project::text, @point::bytea) union all select '\x00'::bytea) i(inputs)` + leadingTo

// unsettled tells screenings (s, with the open review r and the status n of now)
// that a recall has to end. A block that is appealed keeps its status.
const unsettled = ` (n.status in ('revoked', 'blocked') and n.status <> s.status
	or r.id is not null and (r.expires_at is null or r.expires_at > now())) `

// recallWork is what was left to do for a recall at one moment.
type recallWork struct {
	recall, project string
	rows            []int64
}

// SettleRecalls ends what falls under recalls: statuses, reviews, with messages and
// events, settleAtOnce at a time. Specs that a replica of before kept meanwhile are
// read first.
func (s *Store) SettleRecalls(ctx context.Context) (changed []string, err error) {
	if err := s.linkAll(ctx, func(int) {}); err != nil {
		return nil, err
	}
	rows, err := s.every.Query(ctx, `select recall_id::text, project, array_agg(id) from recall_work group by recall_id, project order by min(id)`)
	if err != nil {
		return nil, translate(err)
	}
	work, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (w recallWork, err error) {
		err = row.Scan(&w.recall, &w.project, &w.rows)
		return w, err
	})
	if err != nil {
		return nil, translate(err)
	}
	for _, w := range work {
		more := true
		if err = s.awaitSubmissions(ctx, w.project); isBusy(err) {
			continue // the next sweep comes soon
		}
		for err == nil && more {
			var step []string
			if err = pgx.BeginFunc(ctx, s.every, func(tx pgx.Tx) (err error) {
				step, more, err = s.settleRecall(ctx, tx, w)
				return err
			}); err != nil {
				break
			}
			changed = append(changed, step...)
			if len(step) > 0 {
				s.enqueued()
			}
		}
		if err != nil && !retryable(err) { // else certainly nothing was done; the next sweep comes soon
			return changed, fmt.Errorf("carry out recall %s: %w", w.recall, translate(err))
		}
	}
	return changed, nil
}

// awaitSubmissions returns when all submissions of a project have ended that had
// begun. What begins later sees what they said, and leaves work of its own. So half
// of what leads to a recall cannot be on its way while nothing more is found.
func (s *Store) awaitSubmissions(ctx context.Context, project string) error {
	_, err := s.every.Exec(ctx, lockSQL, []int64{recallLock(project)}) // and let go again: a transaction of its own
	return err
}

// isBusy reports that somebody held a lock for too long.
func isBusy(err error) bool {
	pg := (*pgconn.PgError)(nil)
	return errors.As(err, &pg) && pg.Code == "55P03" // lock_not_available
}

// settleRecall is one step. more tells that there is another to do now.
func (s *Store) settleRecall(ctx context.Context, tx pgx.Tx, w recallWork) (changed []string, more bool, err error) {
	if _, err := tx.Exec(ctx, `set local statement_timeout = '`+lineageTimeout+`'`); err != nil {
		return nil, false, err
	}
	var point []byte
	var live bool
	// For share: it is not lifted while this goes on.
	if err := tx.QueryRow(ctx, `select point, lifted_at is null from recall where id = $1 for share`, w.recall).Scan(&point, &live); err != nil {
		return nil, false, err
	}
	var left int
	var due []string
	if live {
		err = tx.QueryRow(ctx, `with hit as materialized (
				select s.id from (select (x.k).* from `+underPoint+` where (x.k).status in ('pending', 'admitted', 'blocked')) s
					left join review r on r.screening_id = s.id and r.closed_at is null
					cross join lateral (select screening_status(f, r.expires_at) as status from screening f where f.id = s.id) n
				where `+unsettled+`
			), due as ( -- screenings are locked before their reviews, as everywhere; what is busy comes later
				select s.id from screening s where s.id in (select id from hit limit @limit) for update skip locked
			)
			select (select count(*) from hit), array(select id::text from due)`,
			pgx.StrictNamedArgs{"project": w.project, "point": point, "limit": settleAtOnce}).Scan(&left, &due)
		if err != nil {
			return nil, false, err
		}
	}
	if left == 0 { // what came since is about rows that this need not see
		_, err := tx.Exec(ctx, `delete from recall_work where id = any($1)`, w.rows)
		return nil, false, err
	}
	changed, err = s.endRecalled(ctx, tx, w.recall, due)
	return changed, len(changed) > 0, err
}

// endRecalled ends locked screenings, as they are now.
func (s *Store) endRecalled(ctx context.Context, tx pgx.Tx, id string, due []string) (changed []string, err error) {
	rows, err := tx.Query(ctx, `with due as materialized (
			select s.id, s.status as was, n.status, r.id as review_id
			from screening s left join review r on r.screening_id = s.id and r.closed_at is null
				cross join lateral (select screening_status(s, r.expires_at) as status offset 0) n
			where s.id = any($2::uuid[]) and `+unsettled+`
		), ended as (
			update screening s set status = d.status, decided_by = 'recall', recall_id = $1, admitted_until = null, changed_at = now()
			from due d where s.id = d.id and d.status in ('revoked', 'blocked') and d.status <> d.was
			returning s.id, s.status
		), closed as (
			update review r set state = 'decided', outcome = 'block', event = 'recall', asked_at = null, closed_at = now(), version = r.version + 1
			from due d where r.id = d.review_id and r.closed_at is null
			returning r.id, r.screening_id
		)
		select d.id::text, coalesce(e.status, ''), coalesce(c.id::text, '')
		from due d left join ended e on e.id = d.id left join closed c on c.screening_id = d.id order by d.id`, id, due)
	if err != nil {
		return nil, err
	}
	var statuses, reviews, revoked, closed []string
	var screeningID, status, reviewID string
	if _, err := pgx.ForEachRow(rows, []any{&screeningID, &status, &reviewID}, func() error {
		changed, statuses, reviews = append(changed, screeningID), append(statuses, status), append(reviews, reviewID)
		if status == string(review.StatusRevoked) {
			revoked = append(revoked, screeningID)
		}
		if reviewID != "" {
			closed = append(closed, reviewID)
		}
		return nil
	}); err != nil || len(changed) == 0 {
		return nil, err
	}
	batch := &pgx.Batch{}
	batch.Queue(closingSQL, pgx.StrictNamedArgs{"review": nonNil(closed), "type": "review.decided", "base_url": s.cfg.BaseURL})
	batch.Queue(`with message as (
			select 'admission.revoked' as type, s.id as screening_id, s.project, s.run_ref, s.outcome, s.spec_sha256, q.id as recall_id,
				q.actor, q.reason, e.id as endpoint
			from screening s, recall q, endpoint e where s.id = any(@screenings::uuid[]) and q.id = @recall::uuid and e.removed_at is null
		) `+insertDeliverySQL, pgx.StrictNamedArgs{"screenings": nonNil(revoked), "recall": id, "base_url": s.cfg.BaseURL})
	batch.Queue(`insert into audit_event (screening_id, type, actor, body)
		select u.s, 'screening.recalled', q.actor, convert_to(jsonb_strip_nulls(jsonb_build_object('recall_id', q.id, 'reason', q.reason,
			'status', nullif(u.status, ''), 'review_id', nullif(u.review, '')))::text, 'UTF8')
		from unnest($2::uuid[], $3::text[], $4::text[]) with ordinality as u(s, status, review, n), recall q where q.id = $1 order by u.n`,
		id, changed, statuses, reviews)
	return changed, tx.SendBatch(ctx, batch).Close()
}
