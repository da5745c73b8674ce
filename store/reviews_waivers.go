package store

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"weir/review"
	"weir/screening"
)

// KeepWaiver keeps a waiver that nobody has confirmed yet, with its audit event,
// and gives it its id.
func (s *Store) KeepWaiver(ctx context.Context, w *review.Waiver) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	w.ID = id.String()
	var spec []byte
	var prefix *string
	if w.RunPrefix == "" {
		spec = w.SpecSHA256[:]
	} else {
		prefix = &w.RunPrefix
	}
	body, err := json.Marshal(map[string]any{"waiver_id": w.ID, "term": w.Term, "finding_sha256": w.FindingSHA256, "run_prefix": w.RunPrefix,
		"inputs": nonNil(w.Inputs), "reason": w.Reason, "ticket": w.Ticket, "days": w.Days}, json.Deterministic(true))
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	batch.Queue(`select from screening where id = $1 for update`, w.ScreeningID) // the chain's order is the lock's
	batch.Queue(`insert into waiver (id, project, screening_id, term, finding_sha256, spec_sha256, run_prefix, inputs, policy, reason, ticket,
			author, created_at, expires_at, admission_seconds)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, clock_timestamp(), now() + make_interval(days => $13), $14)`,
		w.ID, w.Project, w.ScreeningID, w.Term, w.FindingSHA256[:], spec, prefix, nonNil(w.Inputs), w.Policy, w.Reason, w.Ticket,
		w.Author, w.Days, w.AdmissionPeriod.Seconds())
	batch.Queue(`insert into audit_event (screening_id, type, actor, body) values ($1, 'waiver.requested', $2, $3)`, w.ScreeningID, w.Author, body)
	return translate(pgx.BeginFunc(ctx, s.of(w.Project), func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() }))
}

const waiverColumns = `w.id::text, w.project, w.screening_id::text, w.term, w.finding_sha256, w.spec_sha256, coalesce(w.run_prefix, ''), w.inputs,
	w.policy, w.reason, w.ticket, w.author, w.created_at, w.expires_at, coalesce(w.confirmed_by, ''), w.confirmed_at,
	w.confirmed_at is not null and w.expires_at > now(), w.admission_seconds`

func scanWaiver(row pgx.CollectableRow) (*review.Waiver, error) {
	var w review.Waiver
	var finding, spec []byte
	var seconds float64
	err := row.Scan(&w.ID, &w.Project, &w.ScreeningID, &w.Term, &finding, &spec, &w.RunPrefix, &w.Inputs, &w.Policy, &w.Reason, &w.Ticket,
		&w.Author, &w.CreatedAt, &w.ExpiresAt, &w.ConfirmedBy, &w.ConfirmedAt, &w.InForce, &seconds)
	if err != nil {
		return nil, err
	}
	w.FindingSHA256 = screening.Digest256(finding)
	if spec != nil {
		w.SpecSHA256 = screening.Digest256(spec)
	}
	w.AdmissionPeriod = time.Duration(seconds * float64(time.Second))
	return &w, nil
}

// Waiver reads one.
func (s *Store) Waiver(ctx context.Context, project, id string) (*review.Waiver, error) {
	rows, err := s.of(project).Query(ctx, `select `+waiverColumns+` from waiver w where w.project = $1 and w.id = $2`, project, id)
	if err != nil {
		return nil, translate(err)
	}
	w, err := pgx.CollectExactlyOneRow(rows, scanWaiver)
	return w, translate(err)
}

// Waivers lists the newest first.
func (s *Store) Waivers(ctx context.Context, project string, q review.WaiverQuery) ([]*review.Waiver, error) {
	args := pgx.StrictNamedArgs{"project": project, "screening": q.ScreeningID, "first": q.After == nil, "at": time.Time{},
		"id": "00000000-0000-0000-0000-000000000000", "limit": q.Limit}
	if q.After != nil {
		args["at"], args["id"] = q.After.At, q.After.ID
	}
	rows, err := s.of(project).Query(ctx, `select `+waiverColumns+` from waiver w
		where w.project = @project and (@screening = '' or w.screening_id = nullif(@screening, '')::uuid)
		  and (@first or (w.created_at, w.id) < (@at::timestamptz, @id::uuid))
		order by w.created_at desc, w.id desc limit @limit`, args)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, scanWaiver)
	return list, translate(err)
}

// ConfirmWaiver locks a waiver, lets decide look at it and at its screening, and
// puts it in force by the person it returns. affected are screenings that wait and
// have its finding.
func (s *Store) ConfirmWaiver(ctx context.Context, project, id string, decide func(*review.Waiver, *review.Screening, time.Time) (string, error)) (affected []review.Affected, err error) {
	var domain error
	err = pgx.BeginFunc(ctx, s.of(project), func(tx pgx.Tx) error {
		// Before the rows, as submissions do. A recall is seen here, or sees the waiver.
		if _, err := tx.Exec(ctx, groupLockSQL, []int64{recallLock(project)}, []int64{}); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select from screening where id = (select screening_id from waiver where project = $1 and id = $2) for update`,
			project, id); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `select `+waiverColumns+` from waiver w where w.project = $1 and w.id = $2 for update`, project, id)
		if err != nil {
			return err
		}
		w, err := pgx.CollectExactlyOneRow(rows, scanWaiver)
		if err != nil {
			return err
		}
		sc, err := readScreening(ctx, tx, project, w.ScreeningID)
		if err != nil {
			return err
		}
		var now time.Time
		if err := tx.QueryRow(ctx, `select clock_timestamp()`).Scan(&now); err != nil {
			return err
		}
		person, err := decide(w, sc, now)
		if err != nil {
			domain = err
			return err
		}
		body, err := json.Marshal(map[string]any{"waiver_id": w.ID, "term": w.Term}, json.Deterministic(true))
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		batch.Queue(`update waiver set confirmed_by = $2, confirmed_at = now() where id = $1 and confirmed_by is null and expires_at > clock_timestamp()`,
			w.ID, person).Exec(exactlyOne)
		batch.Queue(`insert into audit_event (screening_id, type, actor, body) values ($1, 'waiver.confirmed', $2, $3)`, w.ScreeningID, person, body)
		queueRecallWork(batch, project) // it may admit others that a recall has passed over, as blocked
		const most = 1000               // of those that wait longest; the rest is looked at when they are voted on
		batch.Queue(waitingSQL, project, w.Term, w.FindingSHA256[:], w.SpecSHA256[:], w.RunPrefix, most).
			Query(func(rows pgx.Rows) (err error) {
				affected, err = pgx.CollectRows(rows, pgx.RowToStructByPos[review.Affected])
				return err
			})
		return tx.SendBatch(ctx, batch).Close()
	})
	switch {
	case domain != nil:
		return nil, domain
	case errors.Is(err, review.ErrConflict):
		return nil, review.ErrConflict
	}
	return affected, translate(err)
}

// waitingSQL gives the screenings that wait for a waiver, with their reviews, also
// of those that no panel has answered: one may be about to, and not see the waiver yet.
// It begins with those that wait: of one term there can be as many findings as screenings.
const waitingSQL = `select s.id::text, coalesce((select r.id::text from review r where r.screening_id = s.id and r.closed_at is null), '')
	from screening s cross join lateral (
		select from finding f where f.screening_id = s.id and f.term = $2 and f.sha256 = $3 offset 0) f
	where s.project = $1 and s.status = 'pending' and (s.spec_sha256 = $4 or $5 <> '' and starts_with(s.run_ref, $5)) order by s.created_at, s.id limit $6`
