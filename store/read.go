package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/review"
	"weir/screening"
)

// screeningColumns are read by scanScreening, in this order. The status is
// computed by the database's time on every path: an admission that ran out and a
// review that is overdue are expired from that moment, swept or not.
const screeningColumns = `s.id::text, s.project, s.spec_sha256, s.canonical_sha256, s.run_ref, s.team, s.submitter, s.owner,
	s.on_behalf_of, to_char(s.as_of, 'YYYY-MM-DD'), s.engine, s.outcome, s.decision,
	case when s.status = 'admitted' and s.admitted_until <= now() then 'expired'
	     when s.status = 'pending' and r.due_at <= now() then 'expired'
	     else s.status end,
	s.decided_by, s.admitted_until, coalesce(s.superseded_by::text, ''), s.created_at,
	array(select name from screening_party where screening_id = s.id order by name),
	coalesce(r.id::text, ''), coalesce(r.state, ''), r.due_at`

// screeningFrom joins the latest review of each screening.
const screeningFrom = ` from screening s left join lateral (
	select id, state, due_at from review where screening_id = s.id order by opened_at desc, id desc limit 1) r on true `

func scanScreening(row pgx.CollectableRow) (*review.Screening, error) {
	var s review.Screening
	var spec, canonical []byte
	var asOf, outcome, reviewID, reviewState string
	var dueAt *time.Time
	err := row.Scan(&s.ID, &s.Project, &spec, &canonical, &s.RunRef, &s.Team, &s.Submitter, &s.Owner, &s.OnBehalfOf, &asOf,
		&s.Engine, &outcome, &s.Decision, &s.Status, &s.DecidedBy, &s.AdmittedUntil, &s.SupersededBy, &s.CreatedAt, &s.Parties,
		&reviewID, &reviewState, &dueAt)
	if err != nil {
		return nil, err
	}
	s.SpecSHA256, s.CanonicalSHA256 = screening.Digest256(spec), screening.Digest256(canonical)
	s.AsOf = screening.Day(asOf)
	if err := s.Outcome.UnmarshalText([]byte(outcome)); err != nil {
		return nil, fmt.Errorf("screening %s: outcome %w", s.ID, err)
	}
	if reviewID != "" {
		s.Review = &review.ReviewRef{ID: reviewID, State: review.State(reviewState), DueAt: *dueAt}
	}
	return &s, nil
}

func (s *Store) oneScreening(ctx context.Context, where string, args ...any) (*review.Screening, error) {
	rows, err := s.pool.Query(ctx, `select `+screeningColumns+screeningFrom+where, args...)
	if err != nil {
		return nil, translate(err)
	}
	sc, err := pgx.CollectExactlyOneRow(rows, scanScreening)
	return sc, translate(err)
}

// Screening reads one by id.
func (s *Store) Screening(ctx context.Context, project, id string) (*review.Screening, error) {
	return s.oneScreening(ctx, `where s.project = $1 and s.id = $2`, project, id)
}

// ScreeningOfSpec reads the latest screening of exactly these bytes.
func (s *Store) ScreeningOfSpec(ctx context.Context, project string, spec screening.Digest256) (*review.Screening, error) {
	return s.oneScreening(ctx, `where s.project = $1 and s.spec_sha256 = $2 order by s.created_at desc, s.id desc limit 1`, project, spec[:])
}

// Screenings lists the newest first, after q.After.
func (s *Store) Screenings(ctx context.Context, project string, q review.ListQuery) ([]*review.Screening, error) {
	args := pgx.StrictNamedArgs{"project": project, "party": q.Party, "status": string(q.Status), "run_ref": q.RunRef,
		"at": time.Time{}, "id": "ffffffff-ffff-ffff-ffff-ffffffffffff", "first": q.After == nil, "limit": q.Limit}
	if q.After != nil {
		args["at"], args["id"] = q.After.At, q.After.ID
	}
	rows, err := s.pool.Query(ctx, `select `+screeningColumns+screeningFrom+`
		where s.project = @project
		  and (@first or (s.created_at, s.id) < (@at::timestamptz, @id::uuid))
		  and (@party = '' or exists (select from screening_party where screening_id = s.id and name = @party))
		  and (@run_ref = '' or s.run_ref = @run_ref)
		  and (@status = '' or @status = case when s.status = 'admitted' and s.admitted_until <= now() then 'expired'
			when s.status = 'pending' and r.due_at <= now() then 'expired' else s.status end)
		order by s.created_at desc, s.id desc limit @limit`, args)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, scanScreening)
	return list, translate(err)
}

// SpecBytes gives the bytes of a spec as received.
func (s *Store) SpecBytes(ctx context.Context, project string, spec screening.Digest256) ([]byte, error) {
	var raw []byte
	err := s.pool.QueryRow(ctx, `select raw from spec where project = $1 and sha256 = $2`, project, spec[:]).Scan(&raw)
	return raw, translate(err)
}
