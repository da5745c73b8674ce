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
	var locks, shared []int64
	for _, p := range group {
		locks = append(locks, lockKeys(p.sub)...)
		shared = append(shared, recallLock(p.sub.Principal.Project))
	}
	slices.Sort(locks)
	slices.Sort(shared)
	batch := &pgx.Batch{}
	refused := false // a rival holds one of the locks: known only here, a table's lock gives the same code
	batch.Queue(groupLockSQL, slices.Compact(shared), slices.Compact(locks)).
		Query(func(rows pgx.Rows) error {
			rows.Close()
			refused = rows.Err() != nil
			return rows.Err()
		})
	outcomes := make([]outcome, len(group))
	for i, p := range group {
		// In the same round trip, and until the transaction ends: a group can have several projects.
		if project := p.sub.Principal.Project; i == 0 || project != group[i-1].sub.Principal.Project {
			batch.Queue(setProjectSQL, project, true)
		}
		args, err := submitArgs(p.id, p.sub, s.cfg.BaseURL)
		if err != nil {
			return nil, err
		}
		batch.Queue(submitSQL, args).QueryRow(func(row pgx.Row) error {
			var verdict, id, carried string
			if err := row.Scan(&verdict, &id, &carried); err != nil {
				return err
			}
			outcomes[i] = readVerdict(verdict, id)
			outcomes[i].kept.ReviewID = carried
			return nil
		})
	}
	// A batch without BEGIN is one transaction: it commits at its end or not at all.
	err := s.nobody().SendBatch(ctx, batch).Close()
	if refused && isBusy(err) {
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
	case "ended": // before it could be
		return outcome{err: review.ErrConflict}
	case "day_changed":
		return outcome{err: review.ErrDayChanged}
	}
	return outcome{err: fmt.Errorf("%w: unknown verdict", review.ErrUnavailable)}
}

func lockKeys(sub *review.Submission) []int64 {
	keys := submissionLocks(sub.Principal.Project, sub.Spec.RunRef, sub.Spec.SHA256)
	if sub.IdempotencyKey != nil {
		keys = append(keys, lockKey(sub.Principal.Project, "key", []byte(sub.Principal.Subject+"\x00"), sub.IdempotencyKey[:]))
	}
	return keys
}

const lockSQL = `select pg_advisory_xact_lock(k) from (select unnest($1::bigint[]) as k) locks`

// groupLockSQL shares locks before it takes others for itself. Who waits for a
// shared one holds nothing yet.
const groupLockSQL = `select pg_advisory_xact_lock_shared(k) from (select unnest($1::bigint[]) as k) shared
	union all select pg_advisory_xact_lock(k) from (select unnest($2::bigint[]) as k) locks`

// submissionLocks are what everything holds that could change which screening
// answers for bytes or for a run, in order.
func submissionLocks(project, runRef string, spec screening.Digest256) []int64 {
	keys := []int64{lockKey(project, "run", []byte(runRef)), lockKey(project, "spec", spec[:])}
	slices.Sort(keys)
	return keys
}

func lockKey(project, kind string, parts ...[]byte) int64 {
	sum := screening.Sum(slices.Concat([]byte(kind+"\x00"+project+"\x00"), slices.Concat(parts...)))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

func submitArgs(id uuid.UUID, sub *review.Submission, baseURL string) (pgx.StrictNamedArgs, error) {
	reviewID, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	d, decision := sub.Decision, screening.Sum(sub.DecisionJSON)
	args := pgx.StrictNamedArgs{
		"id": id.String(), "project": sub.Principal.Project, "submitter": sub.Principal.Subject,
		"key": nil, "spec": sub.Spec.SHA256[:], "canonical": sub.Spec.CanonicalSHA256[:], "raw": sub.Spec.Raw,
		"run_ref": sub.Spec.RunRef, "team": sub.Spec.Team, "owner": sub.Owner, "on_behalf_of": sub.OnBehalfOf,
		"as_of": string(d.AsOf), "engine": screening.EngineVersion, "outcome": d.Outcome.String(),
		"decision": sub.DecisionJSON, "decision_sha256": decision[:], "packs": sub.PacksSHA256[:], "findings": sub.FindingsSHA256[:],
		"status": string(review.StatusOf(d.Outcome)), "admission_seconds": sub.AdmissionPeriod.Seconds(),
		"review": reviewID.String(), "base_url": baseURL,
	}
	children, parents := make([]review.Point, len(sub.Lineage.Links)), make([]review.Point, len(sub.Lineage.Links))
	for i, l := range sub.Lineage.Links {
		children[i], parents[i] = l.Child, l.Parent
	}
	args["inputs"], args["points"] = sub.Lineage.Inputs[:], pointBytes(sub.Lineage.Points())
	args["l_child"], args["l_parent"] = pointBytes(children), pointBytes(parents)
	args["parties"] = sub.Parties
	args["submitters"], args["answers_for"] = nonNil(sub.SubmitterNames), nonNil(sub.AnswersFor)
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
	pinned, sums := make([]bool, len(sub.Findings)), make([][]byte, len(sub.Findings))
	for i, f := range sub.Findings {
		causing[i], pinned[i], sums[i] = f.Causing, f.Pinned, sub.Findings[i].SHA256[:]
		if f.Causing {
			terms = append(terms, f.Term)
		}
	}
	args["f_causing"] = causing
	args["f_pinned"], args["f_sha256"] = pinned, sums
	panels, err := panelsJSON(sub.Panels)
	if err != nil {
		return nil, err
	}
	args["panels"] = panels
	args["party_names"] = nonNil(sub.PartyNames)
	args["floor_violated"], args["unmatched"] = sub.FloorViolated, sub.Unmatched
	args["ends"], args["actor"] = sub.Ends, sub.Principal.Subject
	args["report_until"] = nil
	if sub.ReportUntil != "" {
		args["report_until"] = string(sub.ReportUntil)
	}
	event := map[string]any{
		"outcome": d.Outcome, "spec_sha256": d.SpecSHA256, "canonical_sha256": d.CanonicalSHA256,
		"decision_sha256": decision, "packs_sha256": sub.PacksSHA256, "as_of": d.AsOf,
		"engine": screening.EngineVersion, "causes": terms, "owner": sub.Owner, "on_behalf_of": sub.OnBehalfOf, "run_ref": sub.Spec.RunRef, "report_until": sub.ReportUntil,
	}
	if sub.Ends != "" { // nobody submitted it
		event["ends"], args["actor"] = sub.Ends, "weir"
	}
	body, err := json.Marshal(event, json.Deterministic(true))
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
), recalled as ( -- by what is stored; the links of this spec are among the points
	select live_recall(@project::text, @points::bytea[]) as id
), latest as (
	select s.id, s.decided_by, s.packs_sha256, s.findings_sha256, s.floor_violated, r.id as review_id,
		case when (select id from recalled) is not null and s.status in ('pending', 'admitted') then 'recalled' when s.decided_by <> 'people' and waived_until(s) > now() then 'waived' when s.status = 'pending' and r.expires_at <= now() then 'expired'
			when s.status = 'admitted' and s.admitted_until <= now() then 'over' else s.status end as stands
	from screening s left join review r on r.screening_id = s.id and r.closed_at is null
	where s.project = @project::text and s.spec_sha256 = @spec::bytea
	order by s.created_at desc, s.id desc limit 1
), human_block as (
	select id from screening
	where project = @project::text and canonical_sha256 = @canonical::bytea and decided_by = 'people' and status = 'blocked'
	  and packs_sha256 = @packs::bytea and findings_sha256 = @findings::bytea
	order by created_at desc limit 1
), ending as ( -- what the gate looks at by itself: nobody's answer stands before the floor
	select s.id from screening s left join review r on r.screening_id = s.id and r.closed_at is null
	where s.id = nullif(@ends::text, '')::uuid and s.id = (select id from latest) and screening_status(s, r.expires_at) = 'admitted'
), answering as ( -- a human's answer holds, an open review is not opened twice, and what a floor blocked stays blocked
	select id from (
	select id from latest
	where floor_violated or stands = 'pending' or stands = 'waived' and review_id is not null
	   or stands = 'admitted' and decided_by = 'people' and packs_sha256 = @packs::bytea and findings_sha256 = @findings::bytea
	union all select id from human_block
	) a where @ends::text = '' and not @floor_violated::boolean limit 1 -- nothing of that stands before the floor
), rival as ( -- what else is alive under this run_ref
	select s.id, s.submitter, coalesce(nullif(s.on_behalf_of, ''), s.submitter) as answers_for
	from screening s left join review r on r.screening_id = s.id and r.closed_at is null
	where @ends::text = '' and s.project = @project::text and s.run_ref = @run_ref::text and s.spec_sha256 <> @spec::bytea
	  and (r.id is not null or s.status = 'pending' or s.status = 'admitted' and s.admitted_until > now()
		or s.status = 'blocked' and s.decided_by = 'packs' and waived_until(s) > now())
), verdict as (
	select case
		when @ends::text <> '' and not exists (select from ending) then 'ended'
		when exists (select from replay where spec_sha256 <> @spec::bytea) then 'key_reused'
		when exists (select from replay) then 'existing'
		when exists (select from answering) then 'existing'
		-- What was erased cannot be looked at again: the review begins anew, with the bytes.
		when not @floor_violated::boolean and exists (select from latest l join screening s on s.id = l.id where l.stands = 'expired' and not exists (select from erased(s))) then 'review_expired'
		when exists (select from rival where not (submitter = any(@submitters::text[]) or answers_for = any(@answers_for::text[]))) then 'run_ref_taken'
		when @as_of::date <> (now() at time zone 'utc')::date then 'day_changed'
		else 'new' end as says,
	coalesce((select screening_id from replay), (select id from answering), @id::uuid) as id
), f as (
	select * from unnest(@f_term::text[], @f_pack::text[], @f_state::text[], @f_cause::text[], @f_effect::text[], @f_severity::text[],
		@f_causing::boolean[], @f_sha256::bytea[], @f_pinned::boolean[])
		as f(term, pack, state, cause, effect, severity, causing, sha256, pinned)
), weighing as ( -- what stands between the spec and its admission, and the waivers of that
	select f.term, f.effect, w.expires_at, w.admission_seconds
	from f left join lateral (select * from live_waivers(@project::text, @spec::bytea, @run_ref::text, @parties::text[] || @party_names::text[],
		array[f.term], array[f.sha256], array[f.pinned])) w on true
	where f.effect in ('escalate', 'block')
), folded as ( -- again, without what is waived; a violated floor is never in question
	select case
		when @status::text = 'admitted' or @floor_violated::boolean or count(expires_at) = 0 then @status::text
		when count(expires_at) < count(*) and bool_or(effect = 'block' and expires_at is null) then @status::text
		when count(expires_at) < count(*) or @unmatched::boolean then 'pending'
		else 'admitted' end as status,
		case when @status::text <> 'admitted' and count(expires_at) = count(*) then least(min(expires_at), now() + make_interval(secs => min(admission_seconds))) end as until
	from weighing
), standing as ( -- with recalls: whatever it comes to, it is closed
	select case when r.id is null then f.status else 'blocked' end as status, f.until,
		case when f.status <> 'blocked' then r.id end as recall_id
	from folded f, recalled r
), go as (
	select f.status, f.recall_id, case when f.recall_id is not null then 'recall'
			when f.status = 'admitted' and @status::text <> 'admitted' then 'waiver' else 'packs' end as decided_by,
		case when f.status = 'admitted' then coalesce(f.until, now() + make_interval(secs => @admission_seconds::double precision)) end as until
	from verdict, standing f where says = 'new'
), new_spec as ( -- specs from before, and erased ones, have no inputs yet
	insert into spec (project, sha256, canonical_sha256, inputs, read_again)
	select @project::text, @spec::bytea, @canonical::bytea, @inputs::bytea, false from go
	on conflict (project, sha256) do update set inputs = excluded.inputs, read_again = false
		where spec.inputs is distinct from excluded.inputs or spec.read_again
), new_link as ( -- a spec with the same inputs has written all of them
	insert into lineage (project, child, parent)
	select @project::text, l.child, l.parent from go, unnest(@l_child::bytea[], @l_parent::bytea[]) as l(child, parent)
	where not exists (select from lineage k where k.project = @project::text and k.child = @inputs::bytea)
	  and not exists (select from lineage k where k.project = @project::text and k.child = l.child and k.parent = l.parent)
	returning 1
), new_work as ( -- what is new about recalled data may speak of others too
	insert into recall_work (project, recall_id)
	select r.project, r.id from recall r
	where r.project = @project::text and r.lifted_at is null and (select id from recalled) is not null and exists (select from new_link)
), new_payload as (
	insert into payload (screening_id, project, outcome, month, spec, decision)
	select @id::uuid, @project::text, @outcome::text, date_trunc('month', now() at time zone 'utc')::date, @raw::bytea, @decision::bytea from go
), new_screening as (
	insert into screening (id, project, spec_sha256, canonical_sha256, run_ref, team, submitter, owner, on_behalf_of, as_of,
		engine, outcome, decision_sha256, packs_sha256, findings_sha256, status, decided_by, recall_id, admitted_until, floor_violated, unmatched, report_until, created_at)
	select @id::uuid, @project::text, @spec::bytea, @canonical::bytea, @run_ref::text, @team::text, @submitter::text, @owner::text,
		@on_behalf_of::text, @as_of::date, @engine::text, @outcome::text, @decision_sha256::bytea, @packs::bytea, @findings::bytea,
		go.status, go.decided_by, go.recall_id, go.until, @floor_violated::boolean, @unmatched::boolean, @report_until::date,
		clock_timestamp() -- not the transaction's start: the latest is the one that got the locks last
	from go
), joined as ( -- a vote that holds the screening comes first, and whoever joins now comes after it
	select s.id from verdict v, lateral (select s.id from screening s where s.id = v.id offset 0 for key share) s where v.says = 'existing'
), new_party as (
	insert into screening_party (screening_id, project, name, since)
	select x.id, @project::text, p.name, clock_timestamp() from (select id from joined union all select @id::uuid from go) x,
		unnest(@parties::text[] || @party_names::text[]) as p(name) -- under every name: a waiver may know them by an older one
	on conflict do nothing
), new_finding as (
	insert into finding (screening_id, project, term, pack, state, cause, effect, severity, causing, sha256, pinned)
	select @id::uuid, @project::text, f.* from go, f
), held as ( -- screenings are locked before their reviews, as everywhere, and read as they are then
	select s.*, s.id in (select id from rival) as rival
	from (select id from rival
		union select id from latest -- a block can have its appeal, or a waiver
		union select id from screening where project = @project::text and spec_sha256 = @spec::bytea and status in ('pending', 'admitted')) w,
		lateral ( -- "offset 0" keeps it a lookup for each: statistics of a young table let all of it be read
			select s.id, s.status, s.decided_by, s.floor_violated, waived_until(s) > now() as waived,
				s.run_ref, s.outcome, s.spec_sha256, s.status = 'admitted' and s.admitted_until > now() as admitted
			from screening s where s.id = w.id offset 0 for update) s
	where exists (select from go)
), superseded as ( -- people's block stays one: only its appeal ends
	update screening s set status = 'superseded', superseded_by = @id::uuid, admitted_until = null, changed_at = now()
	from held h
	where s.id = h.id and (h.status in ('pending', 'admitted')
		or h.status = 'blocked' and h.decided_by = 'packs' and not h.floor_violated and (h.rival or h.waived))
	returning s.id
), closed_review as (
	update review r set state = 'superseded', event = 'supersede', asked_at = null, closed_at = now(), version = r.version + 1
	from held h join screening s on s.id = h.id
	where r.screening_id = s.id and r.closed_at is null
	returning r.id, r.version, r.due_at, r.screening_id, s.outcome, s.spec_sha256, s.packs_sha256, s.unmatched
), panel as (
	select p.panel, p.policy, p.group_name, p.quorum, p.due_seconds, p.next_panel,
		case when p.begins then now() + make_interval(secs => p.due_seconds) end as due_at,
		array(select jsonb_array_elements_text(p.terms)) as terms, array(select jsonb_array_elements_text(p.endpoints)) as endpoints,
		array(select jsonb_array_elements_text(p.members)) as members
	from go, ` + readPanels + ` where go.status = 'pending'
), carrying as ( -- reviews whose votes hold for this spec too: it asks nothing that they had not answered
	select c.id from closed_review c
	where c.packs_sha256 = @packs::bytea and exists (select from weighing)
	  and (c.unmatched or not @unmatched::boolean) -- that nothing was checkable is a question too
	  and not exists (select from f where f.effect in ('escalate', 'block') and (f.term like 'safety:%' or not f.pinned or not exists (
		select from finding o where o.screening_id = c.screening_id and o.term = f.term and o.sha256 = f.sha256 and o.pinned
			and o.effect in ('escalate', 'block'))))
), carried as (
	select distinct on (p.panel, v.person) p.panel, p.policy, p.group_name, v.person, v.choice, v.reason,
		array(select t from unnest(v.terms) t where t in (select term from f)) as terms, v.facts, v.cast_at, v.review_id as origin
	from carrying c join vote v on v.review_id = c.id and v.choice = 'admit'
		join review_panel o on o.review_id = v.review_id and o.panel = v.panel and o.passed_at is null
		join panel p on p.due_at is not null and p.policy = v.policy and p.group_name = v.group_name
	where v.person = any(p.members) and not v.person = any(@party_names::text[])
	  and exists (select from unnest(v.terms) t where t in (select term from f))
	order by p.panel, v.person, v.cast_at
), seated as ( -- with what was carried to each
	select p.*, case when p.due_at is not null and (select count(*) from carried c where c.panel = p.panel) >= p.quorum then now() end as answered_at
	from panel p
), new_review as (
	insert into review (id, project, screening_id, state, due_at, expires_at)
	select @review::uuid, @project, @id::uuid, 'open', coalesce(min(due_at) filter (where answered_at is null), max(due_at)),
		case when bool_and(answered_at is not null) filter (where due_at is not null) then max(due_at)
			else min(due_at) filter (where answered_at is null and next_panel is null) end
	from seated having count(*) > 0
	returning id, version, due_at
), new_panel as (
	insert into review_panel (review_id, project, panel, policy, group_name, quorum, due_seconds, due_at, remind_at, answered_at, next_panel, terms, endpoints)
	select @review::uuid, @project::text, panel, policy, group_name, quorum, due_seconds, due_at,
		case when answered_at is null then due_at - make_interval(secs => due_seconds / 2) end, answered_at, next_panel, terms, endpoints from seated
), new_vote as (
	insert into vote (review_id, project, panel, policy, person, choice, reason, terms, group_name, spec_sha256, facts, cast_at, origin)
	select @review::uuid, @project::text, panel, policy, person, choice, reason, terms, group_name, @spec::bytea, facts, cast_at, origin from carried
), opened as (
	select 'review.opened' as type, r.id as review_id, r.version, r.due_at, @id::uuid as screening_id, @project::text as project,
		@run_ref::text as run_ref, @outcome::text as outcome, @spec::bytea as spec_sha256, e.endpoint, array_agg(distinct p.policy) as policies,
		array(select distinct t from panel p2, unnest(p2.terms) t where p2.due_at is not null and e.endpoint = any(p2.endpoints) order by t) as terms
	from new_review r, panel p, unnest(p.endpoints) as e(endpoint)
	where p.due_at is not null
	group by r.id, r.version, r.due_at, e.endpoint
), quiet as (
	update review_panel set remind_at = null where review_id in (select id from closed_review) and remind_at is not null
), obsolete as ( -- nobody needs to hear any more that it was opened
	update delivery set state = 'cancelled', finished_at = now()
	where review_id in (select id from closed_review) and state in ('pending', 'held')
), told as (
	select 'review.superseded' as type, r.id as review_id, r.version, r.due_at, r.screening_id, @project::text as project, @run_ref::text as run_ref, r.outcome,
		r.spec_sha256, e.endpoint, array_agg(distinct p.policy) as policies,
		array(select distinct t from review_panel p2, unnest(p2.terms) t
			where p2.review_id = r.id and p2.due_at is not null and e.endpoint = any(p2.endpoints) order by t) as terms
	from closed_review r join review_panel p on p.review_id = r.id and p.due_at is not null, unnest(p.endpoints) as e(endpoint)
	group by r.id, r.version, r.due_at, r.screening_id, r.outcome, r.spec_sha256, e.endpoint
), revoked as ( -- admissions that hold no more; bytes that are admitted anew go on
	select 'admission.revoked' as type, null::uuid as review_id, null::integer as version, null::timestamptz as due_at, h.id as screening_id,
		@project::text as project, h.run_ref, h.outcome, h.spec_sha256, e.id as endpoint, null::text[] as policies, null::text[] as terms
	from superseded s join held h on h.id = s.id, go, endpoint e
	where (h.admitted or h.waived) and (h.rival or go.status <> 'admitted') and e.removed_at is null
), message as (
	select * from opened union all select * from told union all select * from revoked
), new_delivery as (
	` + insertDeliverySQL + `
), new_event as (
	insert into audit_event (screening_id, project, type, actor, body)
	select e.screening_id, @project::text, e.type, e.actor, e.body from (
		select @id::uuid as screening_id, 'screening.decided' as type, @actor::text as actor, @event::bytea as body, 1 as nth from go
		union all
		select @id::uuid, 'review.votes_carried', 'weir', convert_to(jsonb_build_object('review_id', @review::uuid,
			'votes', jsonb_agg(jsonb_build_object('policy', policy, 'person', person, 'origin', origin) order by panel, person))::text, 'UTF8'), 2
		from carried having count(*) > 0
		union all
		select @id::uuid, 'screening.recalled', 'weir', convert_to(jsonb_build_object('recall_id', q.id, 'reason', q.reason, 'status', go.status)::text, 'UTF8'), 2
		from go join recall q on q.id = go.recall_id
		union all
		select coalesce(s.id, c.screening_id), case when s.id is null then 'review.superseded' else 'screening.superseded' end, @actor::text,
			convert_to((jsonb_build_object('superseded_by', @id::uuid)
				|| case when c.id is null then '{}'::jsonb else jsonb_build_object('review_id', c.id) end)::text, 'UTF8'), 3
		from superseded s full join closed_review c on c.screening_id = s.id
	) e order by e.nth
), new_key as (
	insert into idempotency (project, principal, key_sha256, spec_sha256, screening_id)
	select @project::text, @submitter::text, @key::bytea, @spec::bytea, v.id from verdict v
	where @key::bytea is not null and v.says in ('new', 'existing') and not exists (select from replay)
)
select says, id::text, case when exists (select from carried) then @review::uuid::text else '' end from verdict`
