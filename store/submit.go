package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir/review"
	"weir/screening"
)

// Submit keeps a submission, or names the screening that answers already. It
// returns when the transaction it went into has ended.
func (s *Store) Submit(ctx context.Context, sub *review.Submission) (review.Kept, error) {
	kept, err := s.committer.submit(ctx, sub)
	if errors.Is(err, review.ErrDayChanged) {
		s.forgetDay()
	}
	return kept, err
}

// writeGroup writes submissions in one pipelined transaction: first the locks
// that serialise submissions of one key, run or content, always in the same
// order, then one statement each, which therefore sees all that its rivals did.
func (s *Store) writeGroup(ctx context.Context, group []*pending) ([]outcome, error) {
	var locks []int64
	for _, p := range group {
		locks = append(locks, lockKeys(p.sub)...)
	}
	slices.Sort(locks)
	batch := &pgx.Batch{}
	refused := false // a rival holds one of the locks: known only here, a table's lock gives the same code
	batch.Queue(`select pg_advisory_xact_lock(k) from (select unnest($1::bigint[]) as k) locks`, slices.Compact(locks)).
		Query(func(rows pgx.Rows) error {
			rows.Close()
			refused = rows.Err() != nil
			return rows.Err()
		})
	outcomes := make([]outcome, len(group))
	for i, p := range group {
		args, err := submitArgs(p.id, p.sub, s.cfg.BaseURL)
		if err != nil {
			return nil, err
		}
		batch.Queue(submitSQL, args).QueryRow(func(row pgx.Row) error {
			var verdict, id string
			if err := row.Scan(&verdict, &id); err != nil {
				return err
			}
			outcomes[i] = readVerdict(verdict, id)
			return nil
		})
	}
	// A batch without BEGIN is one transaction: it commits at its end or not at all.
	err := s.pool.SendBatch(ctx, batch).Close()
	if pg := (*pgconn.PgError)(nil); refused && errors.As(err, &pg) && pg.Code == "55P03" { // lock_not_available
		err = fmt.Errorf("%w: %w", review.ErrInFlight, err)
	}
	return outcomes, err
}

// submitError is translate for a submission, which nothing can fail to be found for.
func submitError(err error) error {
	if errors.Is(err, review.ErrInFlight) {
		return review.ErrInFlight
	}
	return fmt.Errorf("%w: %w", review.ErrUnavailable, err)
}

func readVerdict(verdict, id string) outcome {
	switch verdict {
	case "new":
		return outcome{kept: review.Kept{ID: id}}
	case "existing":
		return outcome{kept: review.Kept{ID: id, Existing: true}}
	case "key_reused":
		return outcome{err: review.ErrKeyReused}
	case "run_ref_taken":
		return outcome{err: review.ErrRunRefTaken}
	case "review_expired":
		return outcome{err: review.ErrReviewExpired}
	case "day_changed":
		return outcome{err: review.ErrDayChanged}
	}
	return outcome{err: fmt.Errorf("%w: unknown verdict", review.ErrUnavailable)}
}

func lockKeys(sub *review.Submission) []int64 {
	key := func(kind string, parts ...[]byte) int64 {
		sum := screening.Sum(slices.Concat([]byte(kind+"\x00"+sub.Principal.Project+"\x00"), slices.Concat(parts...)))
		return int64(binary.BigEndian.Uint64(sum[:8]))
	}
	keys := []int64{key("run", []byte(sub.Spec.RunRef)), key("spec", sub.Spec.SHA256[:])}
	if sub.IdempotencyKey != nil {
		keys = append(keys, key("key", []byte(sub.Principal.Subject+"\x00"), sub.IdempotencyKey[:]))
	}
	return keys
}

func submitArgs(id uuid.UUID, sub *review.Submission, baseURL string) (pgx.StrictNamedArgs, error) {
	reviewID, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	d := sub.Decision
	args := pgx.StrictNamedArgs{
		"id": id.String(), "project": sub.Principal.Project, "submitter": sub.Principal.Subject,
		"key": nil, "spec": sub.Spec.SHA256[:], "canonical": sub.Spec.CanonicalSHA256[:], "raw": sub.Spec.Raw,
		"run_ref": sub.Spec.RunRef, "team": sub.Spec.Team, "owner": sub.Owner, "on_behalf_of": sub.OnBehalfOf,
		"as_of": string(d.AsOf), "engine": screening.EngineVersion, "outcome": d.Outcome.String(),
		"decision": sub.DecisionJSON, "packs": sub.PacksSHA256[:], "findings": sub.FindingsSHA256[:],
		"status": map[screening.Outcome]string{screening.OutcomeAdmit: "admitted", screening.OutcomeEscalate: "pending",
			screening.OutcomeBlock: "blocked"}[d.Outcome],
		"admission_seconds": sub.AdmissionPeriod.Seconds(),
		"review":            reviewID.String(), "base_url": baseURL,
	}
	args["parties"] = sub.Parties
	args["answers_for"] = sub.AnswersFor
	if sub.IdempotencyKey != nil {
		args["key"] = sub.IdempotencyKey[:]
	}
	column := func(name string, each func(review.FindingRow) string) {
		values := make([]string, len(sub.Findings))
		for i, f := range sub.Findings {
			values[i] = each(f)
		}
		args[name] = values
	}
	column("f_term", func(f review.FindingRow) string { return f.Term })
	column("f_pack", func(f review.FindingRow) string { return f.Pack })
	column("f_state", func(f review.FindingRow) string { return string(f.State) })
	column("f_cause", func(f review.FindingRow) string { return string(f.Cause) })
	column("f_effect", func(f review.FindingRow) string { return f.Effect.String() })
	column("f_severity", func(f review.FindingRow) string { return f.Severity })
	causing, terms := make([]bool, len(sub.Findings)), []string{}
	for i, f := range sub.Findings {
		causing[i] = f.Causing
		if f.Causing {
			terms = append(terms, f.Term)
		}
	}
	args["f_causing"] = causing
	// Panels differ in the length of their lists, which unnest cannot carry.
	type panel struct {
		Policy    string   `json:"policy"`
		Group     string   `json:"group_name"`
		Quorum    int      `json:"quorum"`
		Due       float64  `json:"due_seconds"`
		Terms     []string `json:"terms"`
		Endpoints []string `json:"endpoints"`
	}
	panels := make([]panel, len(sub.Panels))
	for i, p := range sub.Panels {
		panels[i] = panel{p.Policy, p.Group, p.Quorum, p.Due.Seconds(), nonNil(p.Terms), nonNil(p.Endpoints)}
	}
	panelJSON, err := json.Marshal(panels)
	if err != nil {
		return nil, err
	}
	args["panels"] = string(panelJSON)
	body, err := json.Marshal(map[string]any{
		"outcome": d.Outcome, "spec_sha256": d.SpecSHA256, "canonical_sha256": d.CanonicalSHA256,
		"decision_sha256": screening.Sum(sub.DecisionJSON), "packs_sha256": sub.PacksSHA256, "as_of": d.AsOf,
		"engine": screening.EngineVersion, "causes": terms, "owner": sub.Owner, "on_behalf_of": sub.OnBehalfOf, "run_ref": sub.Spec.RunRef,
	}, json.Deterministic(true))
	args["event"] = body
	return args, err
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// submitSQL decides, from what is stored now, whether a submission is new, and
// if so writes all of it. Exactly one row comes back: a verdict and an id.
const submitSQL = `
with replay as (
	select screening_id, spec_sha256 from idempotency
	where project = @project::text and principal = @submitter::text and key_sha256 = @key::bytea
), latest as (
	select s.id, s.status, s.decided_by, s.packs_sha256, s.findings_sha256, s.admitted_until, r.due_at
	from screening s left join review r on r.screening_id = s.id and r.state = 'open'
	where s.project = @project::text and s.spec_sha256 = @spec::bytea
	order by s.created_at desc, s.id desc limit 1
), human_block as (
	select id from screening
	where project = @project::text and canonical_sha256 = @canonical::bytea and decided_by = 'people' and status = 'blocked'
	  and packs_sha256 = @packs::bytea and findings_sha256 = @findings::bytea
	order by created_at desc limit 1
), answering as ( -- a human's answer holds, and an open review is not opened twice
	select id from latest
	where status = 'pending' and due_at > now()
	   or status = 'admitted' and decided_by = 'people' and admitted_until > now()
	      and packs_sha256 = @packs::bytea and findings_sha256 = @findings::bytea
	union all select id from human_block
	limit 1
), rival as ( -- what else is alive under this run_ref
	select id, submitter, coalesce(nullif(on_behalf_of, ''), submitter) as answers_for from screening
	where project = @project::text and run_ref = @run_ref::text and spec_sha256 <> @spec::bytea
	  and (status = 'pending' or status = 'admitted' and admitted_until > now())
), verdict as (
	select case
		when exists (select from replay where spec_sha256 <> @spec::bytea) then 'key_reused'
		when exists (select from replay) then 'existing'
		when exists (select from answering) then 'existing'
		when exists (select from latest where status in ('pending', 'expired')) then 'review_expired'
		when exists (select from rival where submitter <> @submitter::text and answers_for <> @answers_for::text) then 'run_ref_taken'
		when @as_of::date <> (now() at time zone 'utc')::date then 'day_changed'
		else 'new' end as says,
	coalesce((select screening_id from replay), (select id from answering), @id::uuid) as id
), go as (
	select from verdict where says = 'new'
), new_spec as (
	insert into spec (project, sha256, canonical_sha256, raw)
	select @project::text, @spec::bytea, @canonical::bytea, @raw::bytea from go
	on conflict do nothing
), new_screening as (
	insert into screening (id, project, spec_sha256, canonical_sha256, run_ref, team, submitter, owner, on_behalf_of, as_of,
		engine, outcome, decision, packs_sha256, findings_sha256, status, decided_by, admitted_until, created_at)
	select @id::uuid, @project::text, @spec::bytea, @canonical::bytea, @run_ref::text, @team::text, @submitter::text, @owner::text,
		@on_behalf_of::text, @as_of::date, @engine::text, @outcome::text, @decision::bytea, @packs::bytea, @findings::bytea,
		@status::text, 'packs', case when @status::text = 'admitted' then now() + make_interval(secs => @admission_seconds::double precision) end,
		clock_timestamp() -- not the transaction's start: the latest is the one that got the locks last
	from go
), new_party as (
	insert into screening_party (screening_id, name)
	select v.id, p.name from verdict v, unnest(@parties::text[]) as p(name) where v.says in ('new', 'existing')
	on conflict do nothing
), new_finding as (
	insert into finding (screening_id, term, pack, state, cause, effect, severity, causing)
	select @id::uuid, f.* from go, unnest(@f_term::text[], @f_pack::text[], @f_state::text[], @f_cause::text[],
		@f_effect::text[], @f_severity::text[], @f_causing::boolean[]) f
), panel as (
	select p.policy, p.group_name, p.quorum, now() + make_interval(secs => p.due_seconds) as due_at,
		array(select jsonb_array_elements_text(p.terms)) as terms, array(select jsonb_array_elements_text(p.endpoints)) as endpoints
	from go, jsonb_to_recordset(@panels::jsonb)
		as p(policy text, group_name text, quorum integer, due_seconds double precision, terms jsonb, endpoints jsonb)
), new_review as (
	insert into review (id, project, screening_id, state, due_at)
	select @review::uuid, @project, @id::uuid, 'open', min(due_at) from panel having count(*) > 0
	returning id, version, due_at
), new_panel as (
	insert into review_panel (review_id, policy, group_name, quorum, due_at, terms, endpoints)
	select @review::uuid, policy, group_name, quorum, due_at, terms, endpoints from panel
), opened as (
	select 'review.opened' as type, r.id as review_id, r.version, r.due_at, @id::uuid as screening_id, @project::text as project,
		@outcome::text as outcome, @spec::bytea as spec_sha256, e.endpoint, array_agg(distinct p.policy) as policies,
		array(select distinct t from panel p2, unnest(p2.terms) t where e.endpoint = any(p2.endpoints) order by t) as terms
	from new_review r, panel p, unnest(p.endpoints) as e(endpoint)
	group by r.id, r.version, r.due_at, e.endpoint
), superseded as (
	update screening set status = 'superseded', superseded_by = @id::uuid, admitted_until = null, changed_at = now()
	where (id in (select id from rival) or project = @project::text and spec_sha256 = @spec::bytea and status = 'admitted')
	  and status in ('pending', 'admitted') and exists (select from go)
	returning id, outcome, spec_sha256
), closed_review as (
	update review r set state = 'superseded', closed_at = now(), version = version + 1
	from superseded s where r.screening_id = s.id and r.state = 'open'
	returning r.id, r.version, r.due_at, r.screening_id, s.outcome, s.spec_sha256
), obsolete as ( -- nobody needs to hear any more that it was opened
	update delivery set state = 'cancelled', finished_at = now()
	where review_id in (select id from closed_review) and state in ('pending', 'held')
), told as (
	select 'review.superseded' as type, r.id as review_id, r.version, r.due_at, r.screening_id, @project::text as project, r.outcome,
		r.spec_sha256, e.endpoint, array_agg(distinct p.policy) as policies,
		array(select distinct t from review_panel p2, unnest(p2.terms) t
			where p2.review_id = r.id and e.endpoint = any(p2.endpoints) order by t) as terms
	from closed_review r join review_panel p on p.review_id = r.id, unnest(p.endpoints) as e(endpoint)
	group by r.id, r.version, r.due_at, r.screening_id, r.outcome, r.spec_sha256, e.endpoint
), message as (
	select * from opened union all select * from told
), new_delivery as (
	` + insertDeliverySQL + `
), new_event as (
	insert into audit_event (screening_id, type, actor, body)
	select @id::uuid, 'screening.decided', @submitter::text, @event::bytea from go
	union all
	select id, 'screening.superseded', @submitter::text,
		convert_to(jsonb_build_object('superseded_by', @id::uuid)::text, 'UTF8') from superseded
), new_key as (
	insert into idempotency (project, principal, key_sha256, spec_sha256, screening_id)
	select @project::text, @submitter::text, @key::bytea, @spec::bytea, v.id from verdict v
	where @key::bytea is not null and v.says in ('new', 'existing') and not exists (select from replay)
)
select says, id::text from verdict`
