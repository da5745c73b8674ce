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
// computed by the database's time on every path, by one function: an admission
// that ran out and a review that is overdue are expired from that moment, swept
// or not, a waiver holds from its confirmation to its end, and a recall from its
// commit until it is lifted.
const screeningColumns = `s.id::text, s.project, s.spec_sha256, s.canonical_sha256, s.run_ref, s.team, s.submitter, s.owner,
	s.on_behalf_of, to_char(s.as_of, 'YYYY-MM-DD'), s.engine, s.packs_sha256, s.outcome, decision_of(s), ` + screeningStatus + `,
	case when n.status in ('revoked', 'blocked') and n.status <> s.status then 'recall' when w.until > now() then 'waiver' else s.decided_by end,
	case when n.status in ('revoked', 'blocked') then null when w.until > now() then w.until else s.admitted_until end, coalesce(s.superseded_by::text, ''), s.created_at,
	s.floor_violated, s.unmatched, coalesce(to_char(s.report_until, 'YYYY-MM-DD'), ''), case when w.until > now() and n.status = 'admitted' then w.until end,
	to_char(now() at time zone 'utc', 'YYYY-MM-DD'),
	array(select name from screening_party where screening_id = s.id order by name),
	coalesce(r.id::text, ''), coalesce(` + reviewState + `, ''), r.due_at, e.at, coalesce(e.actor, ''), coalesce(e.reason, ''),
	coalesce(q.id::text, ''), q.sha256, coalesce(q.uri, ''), coalesce(q.reason, ''), q.made_at, q.lifted_at`

const screeningStatus = `n.status`

// reviewState is where a review stands by the database's time; claimed is open
// with somebody who looks at it.
const reviewState = `case when r.closed_at is null and r.expires_at <= now() then 'expired'
	when r.state = 'open' and exists (select from review_panel c where c.review_id = r.id and c.claimed_until > now()) then 'claimed'
	else r.state end`

// screeningFrom joins the latest review of each screening, its status of now, how
// long waivers admit it where they could, what erased its bytes, and the recall
// that it falls under, or that ended it.
const screeningFrom = ` from screening s left join lateral (
	select id, state, due_at, expires_at, closed_at from review where screening_id = s.id order by opened_at desc, id desc limit 1) r on true
	left join lateral (select waived_until(s) as until where s.status in ('pending', 'blocked')) w on true
	left join lateral erased(s) e on true
	cross join lateral (select screening_status(s, r.expires_at) as status offset 0) n
	cross join lateral (select recall_of(s) as id offset 0) k -- once for each screening
	left join recall q on q.id = coalesce(k.id, s.recall_id) `

func scanScreening(row pgx.CollectableRow) (*review.Screening, error) {
	var s review.Screening
	var spec, canonical, packs []byte
	var asOf, outcome, report, readOn, reviewID, state string
	var dueAt, erasedAt, recalledAt *time.Time
	var erased review.Erased
	var recall review.RecallRef
	var recalled []byte
	err := row.Scan(&s.ID, &s.Project, &spec, &canonical, &s.RunRef, &s.Team, &s.Submitter, &s.Owner, &s.OnBehalfOf, &asOf,
		&s.Engine, &packs, &outcome, &s.Decision, &s.Status, &s.DecidedBy, &s.AdmittedUntil, &s.SupersededBy, &s.CreatedAt,
		&s.FloorViolated, &s.Unmatched, &report, &s.WaivedUntil, &readOn, &s.Parties, &reviewID, &state, &dueAt,
		&erasedAt, &erased.Actor, &erased.Reason,
		&recall.ID, &recalled, &recall.Data.URI, &recall.Reason, &recalledAt, &recall.LiftedAt)
	if err != nil {
		return nil, err
	}
	s.SpecSHA256, s.CanonicalSHA256 = screening.Digest256(spec), screening.Digest256(canonical)
	s.PacksSHA256 = screening.Digest256(packs)
	s.AsOf, s.ReportUntil, s.ReadOn = screening.Day(asOf), screening.Day(report), screening.Day(readOn)
	if err := s.Outcome.UnmarshalText([]byte(outcome)); err != nil {
		return nil, fmt.Errorf("screening %s: outcome %w", s.ID, err)
	}
	if erasedAt != nil {
		erased.At = erasedAt.UTC()
		s.Erased = &erased
	}
	if recall.ID != "" {
		if recall.MadeAt = recalledAt.UTC(); recalled != nil {
			recall.Data.SHA256 = screening.Digest256(recalled)
		}
		s.Recall = &recall
	}
	if reviewID != "" {
		s.Review = &review.ReviewRef{ID: reviewID, State: review.State(state), DueAt: *dueAt}
	}
	return &s, nil
}

func (s *Store) oneScreening(ctx context.Context, project, where string, args ...any) (*review.Screening, error) {
	rows, err := s.of(project).Query(ctx, `select `+screeningColumns+screeningFrom+where, args...)
	if err != nil {
		return nil, translate(err)
	}
	sc, err := pgx.CollectExactlyOneRow(rows, scanScreening)
	return sc, translate(err)
}

// Screening reads one by id.
func (s *Store) Screening(ctx context.Context, project, id string) (*review.Screening, error) {
	return s.oneScreening(ctx, project, `where s.project = $1 and s.id = $2`, project, id)
}

// ScreeningOfSpec reads the latest screening of exactly these bytes.
func (s *Store) ScreeningOfSpec(ctx context.Context, project string, spec screening.Digest256) (*review.Screening, error) {
	return s.oneScreening(ctx, project, `where s.project = $1 and s.spec_sha256 = $2 order by s.created_at desc, s.id desc limit 1`, project, spec[:])
}

// Screenings lists the newest first, after q.After.
func (s *Store) Screenings(ctx context.Context, project string, q review.ListQuery) ([]*review.Screening, error) {
	args := pgx.StrictNamedArgs{"project": project, "party": nonNil(q.Party), "status": string(q.Status), "run_ref": q.RunRef,
		"at": time.Time{}, "id": "ffffffff-ffff-ffff-ffff-ffffffffffff", "first": q.After == nil, "limit": q.Limit}
	if q.After != nil {
		args["at"], args["id"] = q.After.At, q.After.ID
	}
	rows, err := s.of(project).Query(ctx, `select `+screeningColumns+screeningFrom+`
		where s.project = @project
		  and (@first or (s.created_at, s.id) < (@at::timestamptz, @id::uuid))
		  and (cardinality(@party::text[]) = 0 or exists (select from screening_party where screening_id = s.id and name = any(@party)))
		  and (@run_ref = '' or s.run_ref = @run_ref)
		  and (@status = '' or `+couldStand+` and @status = `+screeningStatus+`)
		order by s.created_at desc, s.id desc limit @limit`, args)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, scanScreening)
	return list, translate(err)
}

// couldStand is false where the row alone shows that a screening does not stand at
// @status now. Working that out for each row, however few there are of a status, is
// what a page of a long history has no time for. Without waivers in force nothing that
// is closed is admitted, and without work left to do for recalls all that they end is
// written down.
const couldStand = `case s.status
	when 'admitted' then case when s.admitted_until <= now() then @status = 'expired'
		else @status = 'admitted' or @status = 'revoked' and ` + recallsAtWork + ` end
	when 'pending' then @status in ('pending', 'expired') or @status = 'admitted' and ` + waiversInForce + `
		or @status in ('blocked', 'revoked') and ` + recallsAtWork + `
	when 'blocked' then @status = 'blocked' or @status = 'admitted' and ` + waiversInForce + ` or @status = 'revoked' and ` + recallsAtWork + `
	else @status = s.status end`

const (
	waiversInForce = `exists (select from waiver w where w.project = @project and w.confirmed_at <= now() and w.expires_at > now())`
	recallsAtWork  = `exists (select from recall_work k where k.project = @project)`
)

// SpecBytes gives the bytes of a spec as received. ErrErased when they were.
func (s *Store) SpecBytes(ctx context.Context, project string, spec screening.Digest256) ([]byte, error) {
	var raw []byte
	// Any copy: those of older screenings of the same bytes can be gone.
	err := s.of(project).QueryRow(ctx, `select spec_of(s) from screening s where s.project = $1 and s.spec_sha256 = $2
		order by exists (select from erased(s)), s.created_at desc limit 1`, project, spec[:]).Scan(&raw)
	if err == nil && raw == nil {
		return nil, review.ErrErased
	}
	return raw, translate(err)
}

// Findings gives the findings of a screening that lead to something.
func (s *Store) Findings(ctx context.Context, project, screeningID string) ([]review.FindingRow, error) {
	list, err := findings(ctx, s.of(project), project, screeningID)
	return list, translate(err)
}

func findings(ctx context.Context, db querier, project, screeningID string) ([]review.FindingRow, error) {
	rows, err := db.Query(ctx, `select f.term, f.pack, f.state, f.cause, f.effect, f.severity, f.causing, f.sha256, f.pinned
		from finding f join screening s on s.id = f.screening_id where s.project = $1 and s.id = $2 order by f.term`, project, screeningID)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f review.FindingRow, err error) {
		var effect string
		var sum []byte
		if err = row.Scan(&f.Term, &f.Pack, &f.State, &f.Cause, &effect, &f.Severity, &f.Causing, &sum, &f.Pinned); err != nil {
			return f, err
		}
		if len(sum) == len(f.SHA256) {
			f.SHA256 = screening.Digest256(sum)
		}
		return f, f.Effect.UnmarshalText([]byte(effect))
	})
}
