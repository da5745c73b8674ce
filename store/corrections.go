package store

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"weir/review"
	"weir/screening"
)

// Turn is the ordinal of a screening within its run_ref, from 0.
func (s *Store) Turn(ctx context.Context, project, screeningID string) (int, error) {
	var turn int
	err := s.of(project).QueryRow(ctx, `select (select count(*) from screening e
			where e.project = s.project and e.run_ref = s.run_ref and (e.created_at, e.id) < (s.created_at, s.id))
		from screening s where s.project = $1 and s.id = $2`, project, screeningID).Scan(&turn)
	return turn, translate(err)
}

// KeepCorrection keeps a correction with its audit event. The same correction of
// the same screening is kept once: existing tells that it was there before.
func (s *Store) KeepCorrection(ctx context.Context, c *review.Correction) (existing bool, err error) {
	var score any
	if c.IdentityScore != nil {
		score = []byte(c.IdentityScore)
	}
	var expectsTerm, expectsFinding any
	if c.Expects != nil {
		expectsTerm, expectsFinding = c.Expects.Term, string(c.Expects.Finding)
	}
	body, err := json.Marshal(map[string]any{"candidate_id": c.CandidateID, "review_hash": c.ReviewHash, "outcome": c.Outcome,
		"ruleset": c.Ruleset, "rules": nonNil(c.Rules), "expects": c.Expects}, json.Deterministic(true))
	if err != nil {
		return false, err
	}
	var kept bool
	err = s.of(c.Project).QueryRow(ctx, `with new_correction as (
			insert into correction (screening_id, candidate_id, project, author, correction_text, prior_surface, prior_turn, ruleset,
				rules, outcome, review_hash, identity_score, expects_term, expects_finding)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
			on conflict do nothing returning screening_id
		), new_event as (
			insert into audit_event (screening_id, type, actor, body)
			select screening_id, 'correction.reviewed', $4::text, $15::bytea from new_correction
		)
		select exists (select from new_correction)`,
		c.ScreeningID, c.CandidateID, c.Project, c.Author, c.Text, c.PriorSurface, c.PriorTurn, c.Ruleset.String(), nonNil(c.Rules),
		string(c.Outcome), c.ReviewHash, score, expectsTerm, expectsFinding, body).Scan(&kept)
	return !kept, translate(err)
}

const correctionColumns = `c.screening_id::text, c.candidate_id, c.project, c.author, c.correction_text, c.prior_surface, c.prior_turn,
	c.ruleset, c.rules, c.outcome, c.review_hash, coalesce(c.expects_term, ''), coalesce(c.expects_finding, ''), c.status, c.created_at, c.identity_score`

func scanCorrection(row pgx.CollectableRow) (*review.Correction, error) {
	var c review.Correction
	var term, finding, ruleset string
	err := row.Scan(&c.ScreeningID, &c.CandidateID, &c.Project, &c.Author, &c.Text, &c.PriorSurface, &c.PriorTurn,
		&ruleset, &c.Rules, &c.Outcome, &c.ReviewHash, &term, &finding, &c.Status, &c.CreatedAt, &c.IdentityScore)
	if err != nil {
		return nil, err
	}
	if c.Ruleset, err = screening.ParseRuleset(ruleset); err != nil {
		return nil, err
	}
	if term != "" {
		c.Expects = &review.Expectation{Term: term, Finding: screening.State(finding)}
	}
	return &c, nil
}

// Correction reads one with its history. ErrNotFound.
func (s *Store) Correction(ctx context.Context, project string, id review.CorrectionID) (*review.Correction, error) {
	rows, err := s.of(project).Query(ctx, `select `+correctionColumns+` from correction c
		where c.project = $1 and c.screening_id = $2 and c.candidate_id = $3`, project, id.Screening, id.Candidate)
	if err != nil {
		return nil, translate(err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, scanCorrection)
	if err != nil {
		return nil, translate(err)
	}
	rows, err = s.of(project).Query(ctx, `select status, curator, reason, at from correction_status
		where screening_id = $1 and candidate_id = $2 order by seq`, id.Screening, id.Candidate)
	if err != nil {
		return nil, translate(err)
	}
	c.History, err = pgx.CollectRows(rows, pgx.RowToStructByPos[review.StatusChange])
	return c, translate(err)
}

// Corrections lists the newest first, without their histories.
func (s *Store) Corrections(ctx context.Context, project string, q review.CorrectionQuery) ([]*review.Correction, error) {
	args := pgx.StrictNamedArgs{"project": project, "status": string(q.Status), "first": q.After == nil, "at": time.Time{},
		"id": "00000000-0000-0000-0000-000000000000", "candidate": "", "limit": q.Limit}
	if q.After != nil {
		args["at"], args["id"], args["candidate"] = q.After.At, q.After.ID.Screening, q.After.ID.Candidate
	}
	rows, err := s.of(project).Query(ctx, `select `+correctionColumns+` from correction c
		where c.project = @project and (@status = '' or c.status = @status)
		  and (@first or (c.created_at, c.screening_id, c.candidate_id) < (@at::timestamptz, @id::uuid, @candidate))
		order by c.created_at desc, c.screening_id desc, c.candidate_id desc limit @limit`, args)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, scanCorrection)
	return list, translate(err)
}

// ChangeCorrection locks a correction, lets decide look at it, and keeps the
// status it returns with its history row and audit event.
func (s *Store) ChangeCorrection(ctx context.Context, project string, id review.CorrectionID, decide func(*review.Correction) (review.StatusChange, error)) error {
	var domain error
	err := pgx.BeginFunc(ctx, s.of(project), func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select `+correctionColumns+` from correction c
			where c.project = $1 and c.screening_id = $2 and c.candidate_id = $3 for update`, project, id.Screening, id.Candidate)
		if err != nil {
			return err
		}
		c, err := pgx.CollectExactlyOneRow(rows, scanCorrection)
		if err != nil {
			return err
		}
		change, err := decide(c)
		if err != nil {
			domain = err
			return err
		}
		body, err := json.Marshal(map[string]any{"candidate_id": c.CandidateID, "from": c.Status, "to": change.Status,
			"reason": change.Reason}, json.Deterministic(true))
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		batch.Queue(`insert into correction_status (screening_id, candidate_id, seq, status, curator, reason)
			select $1, $2, count(*) + 1, $3, $4, $5 from correction_status where screening_id = $1 and candidate_id = $2`,
			id.Screening, id.Candidate, string(change.Status), change.Curator, change.Reason)
		batch.Queue(`update correction set status = $3 where screening_id = $1 and candidate_id = $2`, id.Screening, id.Candidate, string(change.Status))
		batch.Queue(`select from screening where id = $1 for update`, id.Screening) // the chain's order is the lock's
		batch.Queue(`insert into audit_event (screening_id, type, actor, body) values ($1, 'correction.status', $2, $3)`,
			id.Screening, change.Curator, body)
		return tx.SendBatch(ctx, batch).Close()
	})
	if domain != nil {
		return domain
	}
	return translate(err)
}

// Precedents gives every coherent correction that says what a term finds, with
// the bytes and the day of the screening it corrects. Where the bytes were
// erased there is nothing left to replay.
func (s *Store) Precedents(ctx context.Context) ([]screening.Precedent, error) {
	rows, err := s.every.Query(ctx, `select c.screening_id::text, c.candidate_id, p.bytes, to_char(s.as_of, 'YYYY-MM-DD'), c.expects_term, c.expects_finding
		from correction c join screening s on s.id = c.screening_id
			cross join lateral (select spec_of(s)) p(bytes)
		where p.bytes is not null and c.status = 'coherent' and c.expects_term is not null
		order by c.screening_id, c.candidate_id`)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p screening.Precedent, err error) {
		var id review.CorrectionID
		err = row.Scan(&id.Screening, &id.Candidate, &p.Spec, &p.AsOf, &p.Term, &p.Finding)
		p.Source = id.String()
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("precedents: %w", translate(err))
	}
	return list, nil
}
