package store

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"weir/review"
	"weir/screening"
)

// KeepBypass keeps a report of a bypass and its audit event, which is about the
// latest screening of these bytes when there is one. existing tells that the id was
// reported before; nothing is kept then.
func (s *Store) KeepBypass(ctx context.Context, b *review.Bypass) (existing bool, err error) {
	outcome := ""
	if b.RunRef != "" {
		outcome = b.Outcome.String()
	}
	body, err := json.Marshal(map[string]any{"bypass": b.ID, "at": b.At.UTC().Truncate(time.Microsecond), "reason": b.Reason,
		"spec_sha256": b.SpecSHA256, "outcome": outcome}, json.Deterministic(true))
	if err != nil {
		return false, err
	}
	err = pgx.BeginFunc(ctx, s.of(b.Project), func(tx pgx.Tx) error {
		var screeningID *string // locked: the order of a chain's events is the lock's
		rows, err := tx.Query(ctx, `select id::text from screening where project = $1 and spec_sha256 = $2
			order by created_at desc, id desc limit 1 for update`, b.Project, b.SpecSHA256[:])
		if err != nil {
			return err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		if len(found) > 0 {
			screeningID = &found[0]
		}
		tag, err := tx.Exec(ctx, `insert into bypass (project, id, submitter, bypassed_at, reason, spec_sha256, spec, run_ref, outcome, screening_id)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict do nothing`,
			b.Project, b.ID, b.Submitter, b.At, b.Reason, b.SpecSHA256[:], b.Spec, b.RunRef, outcome, screeningID)
		if err != nil {
			return err
		}
		if existing = tag.RowsAffected() == 0; existing {
			return nil
		}
		_, err = tx.Exec(ctx, `insert into audit_event (screening_id, subject, project, type, actor, body)
			values ($1, case when $1::uuid is null then 'bypass/' || $3 || '/' || $2 end, case when $1::uuid is null then $3 end, 'gate.bypassed', $4, $5)`,
			screeningID, b.ID, b.Project, b.Submitter, body)
		return err
	})
	return existing, translate(err)
}

const bypassColumns = `id::text, project, submitter, bypassed_at, reason, spec_sha256, run_ref, outcome, coalesce(screening_id::text, ''), reported_at`

func scanBypass(row pgx.CollectableRow) (*review.Bypass, error) {
	var b review.Bypass
	var sum []byte
	var outcome string
	err := row.Scan(&b.ID, &b.Project, &b.Submitter, &b.At, &b.Reason, &sum, &b.RunRef, &outcome, &b.ScreeningID, &b.ReportedAt)
	if err != nil {
		return nil, err
	}
	b.SpecSHA256 = screening.Digest256(sum)
	if outcome != "" {
		err = b.Outcome.UnmarshalText([]byte(outcome))
	}
	return &b, err
}

// Bypass reads a report. ErrNotFound.
func (s *Store) Bypass(ctx context.Context, project, id string) (*review.Bypass, error) {
	rows, err := s.of(project).Query(ctx, `select `+bypassColumns+` from bypass where project = $1 and id = $2`, project, id)
	if err != nil {
		return nil, translate(err)
	}
	b, err := pgx.CollectExactlyOneRow(rows, scanBypass)
	return b, translate(err)
}

// Bypasses lists the latest reports first, after after.
func (s *Store) Bypasses(ctx context.Context, project string, limit int, after *review.Cursor) ([]*review.Bypass, error) {
	args := pgx.StrictNamedArgs{"project": project, "first": after == nil, "at": time.Time{}, "id": "ffffffff-ffff-ffff-ffff-ffffffffffff", "limit": limit}
	if after != nil {
		args["at"], args["id"] = after.At, after.ID
	}
	rows, err := s.of(project).Query(ctx, `select `+bypassColumns+` from bypass
		where project = @project and (@first or (reported_at, id) < (@at::timestamptz, @id::uuid))
		order by reported_at desc, id desc limit @limit`, args)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, scanBypass)
	return list, translate(err)
}
