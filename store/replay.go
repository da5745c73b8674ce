package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/review"
	"weir/screening"
)

// Now is the database's time.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := s.nobody().QueryRow(ctx, `select now()`).Scan(&now)
	return now.UTC(), translate(err)
}

// StoredSpecs reads the screenings of a window, oldest first, in one short
// statement that looks at q.Limit rows at most. Of those that a later screening of
// the same bytes in the window took the place of nothing but their place is read;
// they count towards the limit, so that a run submitted every hour makes a slice
// poor, not slow.
func (s *Store) StoredSpecs(ctx context.Context, project string, q review.StoredQuery) (list []review.StoredSpec, next *review.Cursor, err error) {
	args := pgx.StrictNamedArgs{"project": project, "since": q.Since, "until": q.Until, "first": q.After == nil,
		"at": time.Time{}, "id": "00000000-0000-0000-0000-000000000000", "limit": q.Limit}
	if q.After != nil {
		args["at"], args["id"] = q.After.At, q.After.ID
	}
	rows, err := s.of(project).Query(ctx, `with slice as materialized (
			select id, project, spec_sha256, run_ref, as_of, engine, outcome, created_at,
				not exists (select from screening later
					where later.project = s.project and later.spec_sha256 = s.spec_sha256 and later.created_at < @until
					  and (later.created_at, later.id) > (s.created_at, s.id)) as latest
			from screening s
			where s.project = @project and s.created_at >= @since and s.created_at < @until
			  and (@first or (s.created_at, s.id) > (@at::timestamptz, @id::uuid))
			order by s.created_at, s.id limit @limit
		)
		select s.id::text, s.created_at, s.latest, s.run_ref, s.spec_sha256, to_char(s.as_of, 'YYYY-MM-DD'), s.engine, s.outcome,
			p.bytes, f.terms, f.states, f.effects
		from slice s
			left join lateral (select spec_of(w) as bytes from screening w where s.latest and w.id = s.id) p on true
			cross join lateral (select coalesce(array_agg(term), '{}'), coalesce(array_agg(state), '{}'), coalesce(array_agg(effect), '{}')
				from finding where s.latest and screening_id = s.id) f (terms, states, effects)
		order by s.created_at, s.id`, args)
	if err != nil {
		return nil, nil, translate(err)
	}
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r review.StoredSpec, err error) {
		var latest bool
		var sum []byte
		var asOf, outcome string
		var terms, states, effects []string
		if err := row.Scan(&r.At.ID, &r.At.At, &latest, &r.RunRef, &sum, &asOf, &r.Engine, &outcome, &r.Raw, &terms, &states, &effects); err != nil {
			return r, err
		}
		r.SpecSHA256, r.AsOf, r.Superseded = screening.Digest256(sum), screening.Day(asOf), !latest
		r.Erased = latest && r.Raw == nil
		if err := r.Outcome.UnmarshalText([]byte(outcome)); err != nil {
			return r, fmt.Errorf("screening %s: outcome %w", r.At.ID, err)
		}
		for i, term := range terms {
			e := review.Effect{Finding: screening.State(states[i])}
			if err := e.Effect.UnmarshalText([]byte(effects[i])); err != nil {
				return r, fmt.Errorf("screening %s, finding %s: effect %w", r.At.ID, term, err)
			}
			if r.Effects == nil {
				r.Effects = map[string]review.Effect{}
			}
			r.Effects[term] = e
		}
		return r, nil
	})
	if err != nil {
		return nil, nil, translate(err)
	}
	if len(list) == q.Limit {
		next = &list[len(list)-1].At
	}
	return list, next, nil
}
