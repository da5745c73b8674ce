package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir/review"
	"weir/screening"
)

// Payloads, the bytes of specs and decisions, are kept in parts by outcome and
// month. Everything that is said about them is elsewhere, so that a part can go
// at once and every row that names its bytes by digest stays as it is.

// monthsAhead is how many months' parts are made before they are needed.
const monthsAhead = 2

// PrepareMonths makes the parts of this month and of those ahead, where they are
// missing.
func (s *Store) PrepareMonths(ctx context.Context) error {
	_, err := s.every.Exec(ctx, `select ensure_payload_part(o, (date_trunc('month', now() at time zone 'utc') + n * interval '1 month')::date)
		from unnest(array['admit', 'escalate', 'block']) o, generate_series(0, $1::integer) n`, monthsAhead)
	if err != nil {
		return fmt.Errorf("make the tables of the months ahead: %w", translate(err))
	}
	return nil
}

// noPart: a payload has no part to go into. The month began and nobody had made it.
func noPart(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23514" && pg.ConstraintName == "" // check_violation, of no constraint: routing failed
}

// Erase erases the bytes of a spec and of every decision of it in a project, also
// those that came with the report of a bypass, in one transaction with its event in
// the chain of each screening.
func (s *Store) Erase(ctx context.Context, r review.ErasureRequest) (*review.Erasure, error) {
	out := &review.Erasure{SpecSHA256: r.SpecSHA256, Erased: review.Erased{Actor: r.Actor, Reason: r.Reason}}
	var domain error
	err := pgx.BeginFunc(ctx, s.of(r.Project), func(tx pgx.Tx) error {
		if r.ScreeningID != "" {
			var sum []byte
			if err := tx.QueryRow(ctx, `select spec_sha256 from screening where project = $1 and id = $2`, r.Project, r.ScreeningID).Scan(&sum); err != nil {
				return err
			}
			out.SpecSHA256 = screening.Digest256(sum)
		}
		spec := out.SpecSHA256[:]
		// Whatever could open a review of these bytes, or submit them again, takes this lock too, and before the rows.
		if _, err := tx.Exec(ctx, lockSQL, []int64{lockKey(r.Project, "spec", spec)}); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `select id::text from screening where project = $1 and spec_sha256 = $2 order by id for update`, r.Project, spec)
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		bypasses, err := tx.Exec(ctx, `update bypass set spec = null where project = $1 and spec_sha256 = $2 and spec is not null`, r.Project, spec)
		if err == nil && len(all) == 0 && bypasses.RowsAffected() == 0 {
			err = pgx.ErrNoRows
		}
		if err != nil {
			return err
		}
		if domain, err = standsInTheWay(ctx, tx, all); domain != nil || err != nil {
			return errors.Join(domain, err)
		}
		rows, err = tx.Query(ctx, `select id::text from screening s where id = any($1::uuid[]) and not exists (select from erased(s)) order by created_at, id`, all)
		if err != nil {
			return err
		}
		left, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		if len(left) == 0 && bypasses.RowsAffected() == 0 {
			domain = &review.VoteError{Kind: review.ErrConflict, Reason: "these bytes were erased already"}
			return domain
		}
		out.Screenings = len(left)
		if _, err := tx.Exec(ctx, `delete from payload where screening_id = any($1::uuid[])`, left); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `insert into erasure (project, spec_sha256, actor, reason, at) values ($1, $2, $3, $4, clock_timestamp()) returning at`,
			r.Project, spec, r.Actor, r.Reason).Scan(&out.At); err != nil {
			return err
		}
		out.At = out.At.UTC()
		body, err := json.Marshal(map[string]any{"reason": r.Reason, "spec_sha256": out.SpecSHA256}, json.Deterministic(true))
		if err != nil {
			return err
		}
		if len(left) == 0 { // never screened, only reported as bypassed
			_, err = tx.Exec(ctx, `insert into audit_event (subject, project, type, actor, body) values ($1, $2, 'spec.erased', $3, $4)`,
				"spec/"+r.Project+"/"+out.SpecSHA256.String(), r.Project, r.Actor, body)
			return err
		}
		_, err = tx.Exec(ctx, `insert into audit_event (screening_id, type, actor, body)
			select id, 'screening.erased', $2, $3 from unnest($1::uuid[]) with ordinality as u(id, n) order by n`, left, r.Actor, body)
		return err
	})
	if domain != nil {
		return nil, domain
	}
	if err != nil {
		return nil, translate(err)
	}
	return out, nil
}

// standsInTheWay tells why bytes cannot be erased: somebody looks at them, or may
// train by them.
func standsInTheWay(ctx context.Context, tx pgx.Tx, screenings []string) (why, err error) {
	var reviewID, admitted *string
	err = tx.QueryRow(ctx, `select
		(select r.id::text from review r where r.screening_id = any($1::uuid[]) and r.closed_at is null limit 1),
		(select s.id::text from screening s where s.id = any($1::uuid[]) and screening_status(s, null) = 'admitted' limit 1)`,
		screenings).Scan(&reviewID, &admitted)
	switch {
	case err != nil:
		return nil, err
	case reviewID != nil:
		return &review.VoteError{Kind: review.ErrConflict, Reason: fmt.Sprintf("review %s of these bytes is open; close it first", *reviewID)}, nil
	case admitted != nil:
		return &review.VoteError{Kind: review.ErrConflict, Reason: fmt.Sprintf("screening %s admits these bytes; wait until the admission ends", *admitted)}, nil
	}
	return nil, nil
}

// PayloadPart is the payloads of an outcome and a month.
type PayloadPart struct {
	Outcome    screening.Outcome
	Month      time.Time // its first day, UTC
	Bytes      int64     // on disk
	DueAt      time.Time // when retention erases it; zero = kept for ever
	Due        bool      // that is now
	Screenings int64     // whose bytes these are; counted where Due
	InUse      int64     // of them: under review or admitted, so that it has to wait; counted where Due
}

func (p *PayloadPart) table() string {
	return fmt.Sprintf("payload_%s_%s", p.Outcome, p.Month.Format("200601"))
}

// retentionTimeout is for counting the screenings of a month, which looks at all.
const retentionTimeout = "120s"

// PayloadParts lists the parts, oldest first, with what retention makes of them.
func (s *Store) PayloadParts(ctx context.Context, keep review.Retention) ([]PayloadPart, error) {
	rows, err := s.every.Query(ctx, `select o, to_date(right(c.relname, 6), 'YYYYMM'), coalesce(pg_total_relation_size(c.oid), 0), now() -- null: dropped just now
		
		from unnest(array['admit', 'escalate', 'block']) with ordinality as u(o, n)
			join pg_inherits i on i.inhparent = ('payload_' || o)::regclass join pg_class c on c.oid = i.inhrelid
		order by 2, n`)
	if err != nil {
		return nil, translate(err)
	}
	parts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p PayloadPart, err error) {
		var outcome string
		var now time.Time
		if err := row.Scan(&outcome, &p.Month, &p.Bytes, &now); err != nil {
			return p, err
		}
		if err := p.Outcome.UnmarshalText([]byte(outcome)); err != nil {
			return p, err
		}
		if days := keep[p.Outcome]; days > 0 {
			// From the month's end: nothing goes before it is as old as declared.
			p.DueAt = p.Month.AddDate(0, 1, int(days))
			p.Due = !now.Before(p.DueAt)
		}
		return p, nil
	})
	if err != nil {
		return nil, translate(err)
	}
	for i := range parts {
		if parts[i].Due {
			if err := s.countPart(ctx, &parts[i]); err != nil {
				return nil, err
			}
		}
	}
	return parts, nil
}

func (s *Store) countPart(ctx context.Context, p *PayloadPart) error {
	return translate(pgx.BeginFunc(ctx, s.every, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local statement_timeout = '`+retentionTimeout+`'`); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `select count(*), count(*) filter (where screening_status(s, null) = 'admitted'
				or exists (select from review r where r.screening_id = s.id and r.closed_at is null))
			from screening s where s.outcome = $1 and s.month = $2`, p.Outcome.String(), p.Month).Scan(&p.Screenings, &p.InUse)
	}))
}

// EraseOld drops the parts that are older than retention keeps them, each with its
// event, and returns those that went. A part of which something is under review or
// admitted waits, as one does that somebody reads right now: the next sweep comes.
func (s *Store) EraseOld(ctx context.Context, keep review.Retention) (gone []PayloadPart, err error) {
	parts, err := s.PayloadParts(ctx, keep)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		if !p.Due || p.InUse > 0 {
			continue
		}
		dropped, err := s.dropPart(ctx, &p, keep[p.Outcome])
		if err != nil {
			return gone, fmt.Errorf("erase the payloads of %s, %s: %w", p.Outcome, p.Month.Format("2006-01"), err)
		}
		if dropped {
			gone = append(gone, p)
		}
	}
	return gone, nil
}

func (s *Store) dropPart(ctx context.Context, p *PayloadPart, days review.Days) (dropped bool, err error) {
	body, err := json.Marshal(map[string]any{"outcome": p.Outcome, "month": p.Month.Format("2006-01"), "reason": retentionReason,
		"kept": days, "screenings": p.Screenings}, json.Deterministic(true))
	if err != nil {
		return false, err
	}
	err = pgx.BeginFunc(ctx, s.every, func(tx pgx.Tx) error {
		// Safety: table is made of an outcome and digits. Submissions queue behind a lock that waits, so it waits hardly
		// at all. From the top down, as readers lock.
		for _, sql := range []string{
			`set local lock_timeout = '100ms'`,
			`lock table only payload_` + p.Outcome.String() + ` in access exclusive mode`,
			`lock table ` + p.table() + ` in access exclusive mode`,
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		// Since it was counted, an appeal may have been opened; who opens one has read the decision, and so is done or waits.
		var opened bool
		if err := tx.QueryRow(ctx, `select exists (select from review r join screening s on s.id = r.screening_id
			where r.closed_at is null and s.outcome = $1 and s.month = $2)`, p.Outcome.String(), p.Month).Scan(&opened); err != nil || opened {
			return err
		}
		if _, err := tx.Exec(ctx, `drop table `+p.table()); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into erasure (outcome, month, actor, reason, at) values ($1, $2, 'weir', $3, clock_timestamp())`,
			p.Outcome.String(), p.Month, retentionReason); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `insert into audit_event (subject, type, actor, body) values ($1, 'payload.erased', 'weir', $2)`,
			"payload/"+p.Outcome.String()+"/"+p.Month.Format("2006-01"), body)
		dropped = err == nil
		return err
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "55P03" || pg.Code == "42P01") { // locked, or another replica was first
		return false, nil
	}
	return dropped && err == nil, translate(err)
}

// retentionReason is why weir itself erases.
const retentionReason = "retention"

// RunRetention keeps the months ahead ready and erases what is old, until ctx ends.
func (s *Store) RunRetention(ctx context.Context, keep review.Retention, every time.Duration, gone func(PayloadPart), report func(error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		parts, err := s.EraseOld(ctx, keep)
		for _, p := range parts {
			gone(p)
		}
		if err := errors.Join(err, s.PrepareMonths(ctx)); err != nil && ctx.Err() == nil {
			report(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
