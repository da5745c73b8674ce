package store

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir/review"
)

// panelRow is a panel as SQL takes it. Panels differ in the length of their
// lists, which unnest cannot carry.
type panelRow struct {
	Panel     int      `json:"panel"`
	Policy    string   `json:"policy"`
	Group     string   `json:"group_name"`
	Quorum    int      `json:"quorum"`
	Due       float64  `json:"due_seconds"`
	Begins    bool     `json:"begins"`
	Next      *int     `json:"next_panel"`
	Terms     []string `json:"terms"`
	Endpoints []string `json:"endpoints"`
	Members   []string `json:"members"`
}

func panelsJSON(panels []review.Panel) (string, error) {
	rows := make([]panelRow, len(panels))
	for i, p := range panels {
		rows[i] = panelRow{Panel: p.Number, Policy: p.Policy, Group: p.Group, Quorum: p.Quorum, Due: p.Due.Seconds(), Begins: p.DueAt != nil,
			Terms: nonNil(p.Terms), Endpoints: nonNil(p.Endpoints), Members: nonNil(p.Members())}
		if p.Next != 0 {
			rows[i].Next = &p.Next
		}
	}
	text, err := json.Marshal(rows)
	return string(text), err
}

// readPanels reads what panelsJSON wrote: a list of columns for jsonb_to_recordset.
const readPanels = `jsonb_to_recordset(@panels::jsonb) as p(panel integer, policy text, group_name text, quorum integer,
	due_seconds double precision, begins boolean, next_panel integer, terms jsonb, endpoints jsonb, members jsonb)`

// OpenReview locks a screening, lets decide look at it and at what it was, and
// opens the linked review that decide returns.
func (s *Store) OpenReview(ctx context.Context, project, screeningID string, decide func(*review.Closed) (*review.Opening, error)) (string, error) {
	var id string
	var domain error
	err := pgx.BeginFunc(ctx, s.of(project), func(tx pgx.Tx) error {
		c, runTaken, err := s.closed(ctx, tx, project, screeningID)
		if err != nil {
			return err
		}
		o, err := decide(c)
		if err == nil && runTaken {
			err = review.ErrRunRefTaken
		}
		if err != nil {
			domain = err
			return err
		}
		id, err = s.keepOpening(ctx, tx, c.Screening, o)
		return err
	})
	if domain != nil {
		return "", domain
	}
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, review.ErrConflict):
		return "", review.ErrConflict
	case errors.As(err, &pg) && pg.Code == "23505": // a review is open, of these bytes or of this run
		if pg.ConstraintName == "screening_one_open_per_run" {
			return "", review.ErrRunRefTaken
		}
		return "", &review.VoteError{Kind: review.ErrConflict, Reason: "a review is open already"}
	}
	if err == nil && s.cfg.Enqueued != nil {
		s.cfg.Enqueued()
	}
	return id, translate(err)
}

// closed reads a screening under its lock, with what there was. runTaken tells
// that another spec is alive under its run_ref.
func (s *Store) closed(ctx context.Context, tx pgx.Tx, project, screeningID string) (c *review.Closed, runTaken bool, err error) {
	c = &review.Closed{}
	// Submissions of the same bytes or run take the same locks, and before the row too.
	// A recall was settled before, and is seen, or is settled after, and sees this.
	sc, err := readScreening(ctx, tx, project, screeningID)
	if err != nil {
		return nil, false, err
	}
	if _, err := tx.Exec(ctx, groupLockSQL, []int64{recallLock(project)}, submissionLocks(project, sc.RunRef, sc.SpecSHA256)); err != nil {
		return nil, false, err
	}
	if _, err := tx.Exec(ctx, `select from screening where id = $1 for update`, screeningID); err != nil {
		return nil, false, err
	}
	if c.Screening, err = readScreening(ctx, tx, project, screeningID); err != nil { // as it is now
		return nil, false, err
	}
	err = tx.QueryRow(ctx, `select not exists (select from screening n where n.project = s.project and n.spec_sha256 = s.spec_sha256
				and (n.created_at, n.id) > (s.created_at, s.id)),
			exists (select from screening o left join review r on r.screening_id = o.id and r.closed_at is null
				where o.project = s.project and o.run_ref = s.run_ref and o.spec_sha256 <> s.spec_sha256
				and (r.id is not null or screening_status(o, null) = 'admitted'))
		from screening s where s.id = $1`, screeningID).Scan(&c.Latest, &runTaken)
	if err != nil {
		return nil, false, err
	}
	if c.Findings, err = findings(ctx, tx, project, screeningID); err != nil {
		return nil, false, err
	}
	rows, err := tx.Query(ctx, `select distinct v.person from vote v join review r on r.id = v.review_id
		where r.screening_id = $1 and v.choice = 'block' order by 1`, screeningID)
	if err != nil {
		return nil, false, err
	}
	if c.Blockers, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return nil, false, err
	}
	if c.Screening.Review != nil {
		rows, err := tx.Query(ctx, `select `+reviewColumns+` from review r where r.id = $1`, c.Screening.Review.ID)
		if err != nil {
			return nil, false, err
		}
		if c.Last, err = pgx.CollectExactlyOneRow(rows, scanReview); err != nil {
			return nil, false, err
		}
	}
	return c, runTaken, nil
}

func readScreening(ctx context.Context, db querier, project, id string) (*review.Screening, error) {
	rows, err := db.Query(ctx, `select `+screeningColumns+screeningFrom+`where s.project = $1 and s.id = $2`, project, id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectExactlyOneRow(rows, scanScreening)
}

func (s *Store) keepOpening(ctx context.Context, tx pgx.Tx, sc *review.Screening, o *review.Opening) (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	panels, err := panelsJSON(o.Panels)
	if err != nil {
		return "", err
	}
	name := map[review.Kind]string{review.KindAppeal: "review.appealed", review.KindReopen: "review.reopened"}[o.Kind]
	body, err := json.Marshal(map[string]any{"review_id": id.String(), "origin": o.Origin, "note": o.Note.Text}, json.Deterministic(true))
	if err != nil {
		return "", err
	}
	batch := &pgx.Batch{}
	if o.Kind == review.KindReopen {
		batch.Queue(`update screening set status = 'pending', changed_at = now() where id = $1 and status = 'expired'`, sc.ID).Exec(exactlyOne)
	}
	batch.Queue(`with panel as (
			select p.* from `+readPanels+`
		), new_review as (
			insert into review (id, project, screening_id, kind, origin, state, due_at, expires_at)
			select @id::uuid, @project::text, @screening::uuid, @kind::text, nullif(@origin::text, '')::uuid, 'open',
				min(now() + make_interval(secs => due_seconds)) filter (where begins),
				min(now() + make_interval(secs => due_seconds)) filter (where begins and next_panel is null)
			from panel
			returning id, version, due_at, project, screening_id
		), new_panel as (
			insert into review_panel (review_id, project, panel, policy, group_name, quorum, due_seconds, due_at, remind_at, next_panel, terms, endpoints)
			select @id::uuid, @project::text, panel, policy, group_name, quorum, due_seconds, case when begins then now() + make_interval(secs => due_seconds) end,
				case when begins then now() + make_interval(secs => due_seconds / 2) end, next_panel,
				array(select jsonb_array_elements_text(terms)), array(select jsonb_array_elements_text(endpoints)) from panel
		), message as (
			select 'review.opened' as type, r.id as review_id, r.version, r.due_at, r.screening_id, r.project, @outcome::text as outcome,
				@spec::bytea as spec_sha256, e.endpoint, array_agg(distinct p.policy) as policies,
				array(select distinct t from panel p2, jsonb_array_elements_text(p2.terms) t
					where p2.begins and p2.endpoints ? e.endpoint order by t) as terms
			from new_review r, panel p, jsonb_array_elements_text(p.endpoints) as e(endpoint)
			where p.begins
			group by r.id, r.version, r.due_at, r.screening_id, r.project, e.endpoint
		)
		`+insertDeliverySQL, pgx.StrictNamedArgs{"id": id.String(), "project": sc.Project, "screening": sc.ID, "kind": o.Kind,
		"origin": o.Origin, "panels": panels, "outcome": sc.Outcome.String(), "spec": sc.SpecSHA256[:], "base_url": s.cfg.BaseURL})
	queueNote(batch, id.String(), o.Note)
	batch.Queue(`insert into audit_event (screening_id, type, actor, body) values ($1, $2, $3, $4)`, sc.ID, name, o.Actor, body)
	return id.String(), tx.SendBatch(ctx, batch).Close()
}
