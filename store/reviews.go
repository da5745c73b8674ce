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

// querier is a pool, a project's view of one, or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

var (
	_ querier = (*pgxpool.Pool)(nil)
	_ querier = tenant{}
	_ querier = (pgx.Tx)(nil)
)

const reviewColumns = `r.id::text, r.project, r.kind, coalesce(r.origin::text, ''), ` + reviewState + `,
	coalesce(r.outcome, ''), r.version, r.opened_at, r.due_at, r.expires_at, r.closed_at, r.screening_id::text`

func scanReview(row pgx.CollectableRow) (*review.Review, error) {
	r := review.Review{Screening: &review.Screening{}}
	err := row.Scan(&r.ID, &r.Project, &r.Kind, &r.Origin, &r.State, &r.Outcome, &r.Version, &r.OpenedAt, &r.DueAt, &r.ExpiresAt,
		&r.ClosedAt, &r.Screening.ID)
	return &r, err
}

// Review reads one with its screening, panels and votes.
func (s *Store) Review(ctx context.Context, project, id string) (*review.Review, error) {
	rows, err := s.of(project).Query(ctx, `select `+reviewColumns+` from review r where r.project = $1 and r.id = $2`, project, id)
	if err != nil {
		return nil, translate(err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, scanReview)
	if err != nil {
		return nil, translate(err)
	}
	if err := s.complete(ctx, s.of(project), []*review.Review{r}); err != nil {
		return nil, translate(err)
	}
	return r, nil
}

// Reviews lists open reviews by due time, or all of them newest first.
func (s *Store) Reviews(ctx context.Context, project string, q review.ReviewQuery) ([]*review.Review, error) {
	where, order := `(@first or (r.opened_at, r.id) < (@at::timestamptz, @id::uuid))`, `r.opened_at desc, r.id desc`
	if q.OpenOnly {
		where = `r.closed_at is null and (r.expires_at is null or r.expires_at > now()) and (@first or (r.due_at, r.id) > (@at::timestamptz, @id::uuid))`
		order = `r.due_at, r.id`
	}
	args := pgx.StrictNamedArgs{"project": project, "first": q.After == nil, "at": time.Time{},
		"id": "00000000-0000-0000-0000-000000000000", "limit": q.Limit}
	if q.After != nil {
		args["at"], args["id"] = q.After.At, q.After.ID
	}
	// Safety: where and order are constants above.
	rows, err := s.of(project).Query(ctx, `select `+reviewColumns+` from review r where r.project = @project and `+where+
		` order by `+order+` limit @limit`, args)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, scanReview)
	if err != nil {
		return nil, translate(err)
	}
	if err := s.complete(ctx, s.of(project), list); err != nil {
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
	for _, fill := range []func(context.Context, querier, map[string]*review.Review, []string) error{fillPanels, fillVotes, fillNotes, fillWaivers} {
		if err := fill(ctx, db, byID, ids); err != nil {
			return err
		}
	}
	return nil
}

func fillPanels(ctx context.Context, db querier, byID map[string]*review.Review, ids []string) error {
	rows, err := db.Query(ctx, `select review_id::text, panel, policy, group_name, quorum, due_seconds, due_at, coalesce(next_panel, 0),
			passed_at, answered_at, terms, endpoints,
			coalesce(case when claimed_until > now() then claimed_by end, ''), case when claimed_until > now() then claimed_until end
		from review_panel where review_id = any($1::uuid[]) order by review_id, panel`, ids)
	if err != nil {
		return err
	}
	var id string
	var p review.Panel
	var due float64
	_, err = pgx.ForEachRow(rows, []any{&id, &p.Number, &p.Policy, &p.Group, &p.Quorum, &due, &p.DueAt, &p.Next, &p.PassedAt, &p.AnsweredAt,
		&p.Terms, &p.Endpoints, &p.ClaimedBy, &p.ClaimedUntil}, func() error {
		p.Due = time.Duration(due * float64(time.Second))
		byID[id].Panels = append(byID[id].Panels, p)
		p = review.Panel{}
		return nil
	})
	return err
}

func fillVotes(ctx context.Context, db querier, byID map[string]*review.Review, ids []string) error {
	rows, err := db.Query(ctx, `select review_id::text, panel, person, choice, reason, terms, facts, cast_at, coalesce(origin::text, '')
		from vote where review_id = any($1::uuid[]) order by cast_at, person`, ids)
	if err != nil {
		return err
	}
	var id string
	var panel int
	var v review.Vote
	var facts []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &panel, &v.Person, &v.Choice, &v.Reason, &v.Terms, &facts, &v.CastAt, &v.Origin}, func() error {
		if facts != nil {
			if err := json.Unmarshal(facts, &v.Facts); err != nil {
				return fmt.Errorf("vote on review %s: %w", id, err)
			}
		}
		panels := byID[id].Panels
		for i := range panels {
			if panels[i].Number == panel {
				panels[i].Votes = append(panels[i].Votes, v)
			}
		}
		v, facts = review.Vote{}, nil
		return nil
	})
	return err
}

func fillNotes(ctx context.Context, db querier, byID map[string]*review.Review, ids []string) error {
	rows, err := db.Query(ctx, `select review_id::text, kind, person, text, at from review_note
		where review_id = any($1::uuid[]) order by review_id, seq`, ids)
	if err != nil {
		return err
	}
	var id string
	var n review.Note
	_, err = pgx.ForEachRow(rows, []any{&id, &n.Kind, &n.Person, &n.Text, &n.At}, func() error {
		byID[id].Notes = append(byID[id].Notes, n)
		return nil
	})
	return err
}

// fillWaivers tells which findings waivers take away now, and who may not vote:
// the authors of waivers that are about the review, and who blocked what it appeals.
func fillWaivers(ctx context.Context, db querier, byID map[string]*review.Review, ids []string) error {
	rows, err := db.Query(ctx, `select r.id::text, w.term, least(w.expires_at, now() + make_interval(secs => w.admission_seconds))
		from review r join screening s on s.id = r.screening_id,
			lateral (select array_agg(term) as terms, array_agg(sha256) as digests, array_agg(pinned) as pinned
				from finding where screening_id = s.id and effect in ('escalate', 'block')) f,
			lateral live_waivers(s.project, s.spec_sha256, s.run_ref, array(select name from screening_party where screening_id = s.id),
				f.terms, f.digests, f.pinned) w
		where r.id = any($1::uuid[]) and r.closed_at is null order by 1, 2`, ids)
	if err != nil {
		return err
	}
	var id string
	var w review.Waived
	if _, err = pgx.ForEachRow(rows, []any{&id, &w.Term, &w.Until}, func() error {
		byID[id].Waived = append(byID[id].Waived, w)
		return nil
	}); err != nil {
		return err
	}
	rows, err = db.Query(ctx, `select r.id::text, w.author
		from review r join screening s on s.id = r.screening_id join finding f on f.screening_id = s.id
			join waiver w on w.project = s.project and w.term = f.term and w.finding_sha256 = f.sha256 and w.expires_at > now()
				and (w.spec_sha256 = s.spec_sha256 or starts_with(s.run_ref, w.run_prefix))
		where r.id = any($1::uuid[])
		union
		select r.id::text, v.person
		from review r join review o on o.screening_id = r.screening_id and o.id <> r.id join vote v on v.review_id = o.id and v.choice = 'block'
		where r.id = any($1::uuid[]) and r.kind = 'appeal'
		order by 1, 2`, ids)
	if err != nil {
		return err
	}
	var person string
	_, err = pgx.ForEachRow(rows, []any{&id, &person}, func() error {
		byID[id].Excluded = append(byID[id].Excluded, person)
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
		err = pgx.BeginFunc(ctx, s.of(project), func(tx pgx.Tx) error {
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
	var screeningID string
	err := tx.QueryRow(ctx, `select s.id::text from screening s where s.id =
		(select screening_id from review where project = $1 and id = $2) for update`, project, id).Scan(&screeningID)
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
	var now time.Time // not the transaction's start: the locks may have taken a while
	if err := tx.QueryRow(ctx, `select clock_timestamp()`).Scan(&now); err != nil {
		return err
	}
	change, err := decide(r, now)
	if err != nil || change == nil {
		return err
	}
	return s.keepChange(ctx, tx, r, change)
}

// eventNames are the types of the record for what happens to a review.
var eventNames = map[review.Event]string{
	review.EventClaim: "review.claimed", review.EventRelease: "review.released", review.EventVote: "review.voted",
	review.EventDecide: "review.decided", review.EventAsk: "review.asked", review.EventAnswer: "review.answered",
	review.EventWithdraw: "review.withdrawn", review.EventComment: "review.commented",
}

// keepChange writes what an event does: the review's row by one conditional
// update, what hangs on it, and one event of the record.
func (s *Store) keepChange(ctx context.Context, tx pgx.Tx, r *review.Review, c *review.Change) error {
	name, ok := eventNames[c.Event]
	if !ok {
		return fmt.Errorf("review %s: event %q is not one that people cause", r.ID, c.Event)
	}
	batch := &pgx.Batch{}
	event := map[string]any{"review_id": r.ID, "event": c.Event}
	if c.Outcome != "" {
		event["outcome"] = c.Outcome
	}
	if c.Note != nil {
		event["note"] = c.Note.Text
		queueNote(batch, r.ID, c.Note)
	}
	if len(c.Claims) > 0 {
		event["panels"] = c.Claims
	}
	if err := queueVotes(batch, r, c, event); err != nil {
		return err
	}
	switch c.Event {
	case review.EventClaim:
		batch.Queue(`update review_panel set claimed_by = $3, claimed_until = now() + make_interval(secs => $4)
			where review_id = $1 and panel = any($2)`, r.ID, c.Claims, c.Actor, c.Lease.Seconds())
	case review.EventRelease:
		batch.Queue(`update review_panel set claimed_by = null, claimed_until = null where review_id = $1 and panel = any($2)`, r.ID, c.Claims)
	case review.EventComment:
	case review.EventVote:
		queueStep(batch, r, c.Event, `due_at = d.due_at, expires_at = d.expires_at from review_due($1) d`)
	case review.EventAsk:
		queueStep(batch, r, c.Event, `asked_at = now(), due_at = now() + make_interval(secs => $5), expires_at = now() + make_interval(secs => $5)
			from (select $5::double precision) d`, c.Due.Seconds())
	case review.EventAnswer: // the panels' clocks stood still
		batch.Queue(`update review_panel p set due_at = p.due_at + (now() - r.asked_at), remind_at = p.remind_at + (now() - r.asked_at)
			from review r where r.id = $1 and p.review_id = r.id and p.due_at is not null and p.passed_at is null`, r.ID)
		queueStep(batch, r, c.Event, `asked_at = null, due_at = d.due_at, expires_at = d.expires_at from review_due($1) d`)
	case review.EventDecide, review.EventWithdraw:
		s.queueClosing(batch, r, c)
	}
	body, err := json.Marshal(event, json.Deterministic(true))
	if err != nil {
		return err
	}
	batch.Queue(`insert into audit_event (screening_id, type, actor, body) values ($1, $2, $3, $4)`, r.Screening.ID, name, c.Actor, body)
	return tx.SendBatch(ctx, batch).Close()
}

// queueStep moves a review that is still as it was read, before its time is up.
// Safety: set is a constant of this file.
func queueStep(batch *pgx.Batch, r *review.Review, e review.Event, set string, more ...any) {
	to, _ := r.State.After(e)
	if to == review.Claimed {
		to = review.Open
	}
	batch.Queue(`update review r set state = $3, event = $4, version = r.version + 1, `+set+`
		where r.id = $1 and r.version = $2 and r.closed_at is null and (r.expires_at is null or r.expires_at > clock_timestamp())`,
		append([]any{r.ID, r.Version, to, e}, more...)...).Exec(exactlyOne)
}

// queueClosing ends a review and tells its endpoints. A block that is appealed
// changes only when the appeal admits.
func (s *Store) queueClosing(batch *pgx.Batch, r *review.Review, c *review.Change) {
	var outcome *review.Choice
	status, from, told := review.StatusWithdrawn, "pending", "review.withdrawn"
	if c.Event == review.EventDecide {
		outcome, told = &c.Outcome, "review.decided"
		status = map[review.Choice]review.Status{review.VoteAdmit: review.StatusAdmitted, review.VoteBlock: review.StatusBlocked}[c.Outcome]
	}
	if r.Kind == review.KindAppeal {
		from = "blocked"
	}
	changes := c.Event == review.EventDecide || r.Kind != review.KindAppeal
	queueStep(batch, r, c.Event, `outcome = $5, asked_at = null, closed_at = now()`, outcome)
	if changes {
		batch.Queue(`update screening set status = $2, decided_by = case when $6 then 'people' else decided_by end, changed_at = now(),
				admitted_until = case when $2 = 'admitted' then least(now() + make_interval(secs => $3), $5) end
			where id = $1 and status = $4`, r.Screening.ID, status, c.AdmissionPeriod.Seconds(), from, c.AdmittedUntil,
			c.Event == review.EventDecide).Exec(exactlyOne)
	}
	batch.Queue(closingSQL, pgx.StrictNamedArgs{"review": []string{r.ID}, "type": told, "base_url": s.cfg.BaseURL})
	if changes && r.Screening.WaivedUntil != nil && status != review.StatusAdmitted { // a waiver had admitted it meanwhile
		batch.Queue(revokedSQL, pgx.StrictNamedArgs{"screening": r.Screening.ID, "base_url": s.cfg.BaseURL})
	}
}

// revokedSQL tells every endpoint that wants to hear of it that an admission holds
// no more: those that the packs gave have no panel whose endpoints could be told.
const revokedSQL = `with message as (
	select 'admission.revoked' as type, s.id as screening_id, s.project, s.run_ref, s.outcome, s.spec_sha256, e.id as endpoint
	from screening s, endpoint e where s.id = @screening::uuid and e.removed_at is null
)
` + insertDeliverySQL

func queueNote(batch *pgx.Batch, reviewID string, n *review.Note) {
	batch.Queue(`insert into review_note (review_id, seq, kind, person, text)
		select $1, count(*) + 1, $2, $3, $4 from review_note where review_id = $1`, reviewID, n.Kind, n.Person, n.Text)
}

func queueVotes(batch *pgx.Batch, r *review.Review, c *review.Change, event map[string]any) error {
	var cast []map[string]any
	for _, v := range c.Votes {
		var facts []byte
		row := map[string]any{"panel": v.Panel, "policy": v.Policy, "group": v.Group, "person": v.Person, "choice": v.Choice,
			"reason": v.Reason, "terms": nonNil(v.Terms)}
		if len(v.Facts) > 0 {
			var err error
			if facts, err = json.Marshal(v.Facts, json.Deterministic(true)); err != nil {
				return err
			}
			row["facts"] = v.Facts
		}
		batch.Queue(`insert into vote (review_id, project, panel, policy, person, choice, reason, terms, group_name, spec_sha256, facts)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			r.ID, r.Project, v.Panel, v.Policy, v.Person, v.Choice, v.Reason, nonNil(v.Terms), v.Group, r.Screening.SpecSHA256[:], facts)
		cast = append(cast, row)
	}
	if cast != nil {
		event["votes"] = cast
	}
	if len(c.Answered) > 0 {
		event["answered"] = c.Answered
		batch.Queue(`update review_panel set answered_at = now(), remind_at = null where review_id = $1 and panel = any($2)`, r.ID, c.Answered)
	}
	return nil
}

// closingSQL cancels what is still to be said about open reviews and tells
// their endpoints how they ended. Panels whose turn never came told nobody.
const closingSQL = `with obsolete as (
	update delivery set state = 'cancelled', finished_at = now()
	where review_id = any(@review::uuid[]) and state in ('pending', 'held')
), quiet as (
	update review_panel set remind_at = null where review_id = any(@review::uuid[]) and remind_at is not null
), message as (
	select @type::text as type, r.id as review_id, r.version, r.due_at, r.screening_id, r.project, s.run_ref,
		coalesce(r.outcome, 'escalate') as outcome, s.spec_sha256, e.endpoint, array_agg(distinct p.policy) as policies,
		array(select distinct t from review_panel p2, unnest(p2.terms) t
			where p2.review_id = r.id and e.endpoint = any(p2.endpoints) order by t) as terms
	from review r join screening s on s.id = r.screening_id join review_panel p on p.review_id = r.id,
		unnest(p.endpoints) as e(endpoint)
	where r.id = any(@review::uuid[]) and p.due_at is not null
	group by r.id, s.spec_sha256, s.run_ref, e.endpoint
)
` + insertDeliverySQL

func exactlyOne(tag pgconn.CommandTag) error {
	if tag.RowsAffected() != 1 {
		return review.ErrConflict
	}
	return nil
}
