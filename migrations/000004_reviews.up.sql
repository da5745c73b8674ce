-- Reviews as a whole: states and events, panels that pass on, claims, notes,
-- carried votes, linked reviews; and waivers.

-- What a decision says that a status depends on.
alter table screening
    add column floor_violated boolean not null default false, -- final for these bytes
    add column unmatched      boolean not null default false, -- no ethics term that decides was checkable
    add column report_until   date;                           -- the project only reported when this was decided, until that day
update screening s set floor_violated = exists (select from finding f
        where f.screening_id = s.id and f.term like 'safety:%' and f.state = 'violated'),
    unmatched = position('"no_policy_matched":true'::bytea in decision) > 0;

alter table screening
    drop constraint screening_check, drop constraint screening_check1, drop constraint screening_check2,
    drop constraint screening_check3, drop constraint screening_check4, drop constraint screening_decided_by_check,
    add constraint screening_decided_by_check check (decided_by in ('packs', 'people', 'waiver')),
    -- What the packs decided turns into something milder only by people's votes or waiver.
    add constraint screening_milder check (outcome <> 'admit' or status not in ('pending', 'expired', 'blocked') and decided_by = 'packs'),
    add constraint screening_admitted_by check (not (outcome <> 'admit' and status = 'admitted' and decided_by = 'packs')),
    add constraint screening_blocked_by check (not (outcome = 'escalate' and status = 'blocked' and decided_by <> 'people')),
    -- Nothing admits over the floor, and nothing brings its block before people.
    add constraint screening_floor check (not floor_violated or outcome = 'block' and status = 'blocked' and decided_by = 'packs');

-- The identity of a finding: term, state, evidence pairs and the digests of the
-- inputs it speaks of. pinned: every one of them has such a digest. Null on rows
-- from before; those can be neither carried nor waived.
alter table finding
    add column sha256 bytea   check (length(sha256) = 32),
    add column pinned boolean not null default false;

-- A review's row names the event that brought it where it is, and from where.
-- The last CHECK is the state machine: the table in package review, row by row.
alter table review
    add column kind       text not null default 'escalation' check (kind in ('escalation', 'appeal', 'reopen')),
    add column origin     uuid references review, -- the review that an appeal or a reopen goes on from
    add column event      text not null default 'open',
    add column from_state text,
    add column expires_at timestamptz, -- when it expires if nobody acts; null while a panel passes on first
    add column asked_at   timestamptz; -- since when it waits for evidence
update review set event = case state when 'open' then 'open' when 'decided' then 'decide' when 'expired' then 'expire'
        when 'superseded' then 'supersede' else 'withdraw' end,
    from_state = case when state <> 'open' then 'open' end, expires_at = due_at;
alter table review
    drop constraint review_state_check, drop constraint review_check1,
    add constraint review_state_check check (state in ('open', 'needs_evidence', 'decided', 'expired', 'superseded', 'withdrawn')),
    add constraint review_closed check ((state in ('decided', 'expired', 'superseded', 'withdrawn')) = (closed_at is not null)),
    add constraint review_asked check ((state = 'needs_evidence') = (asked_at is not null)),
    add constraint review_linked check (kind <> 'escalation' and (origin is not null or kind = 'appeal') or kind = 'escalation' and origin is null),
    add constraint review_step check (concat_ws(' ', coalesce(from_state, 'none'), event, state) in (
        'none open open',
        'open vote open',
        'open decide decided',
        'open ask needs_evidence',
        'needs_evidence answer open',
        'open pass open',
        'open expire expired',
        'needs_evidence expire expired',
        'open supersede superseded',
        'needs_evidence supersede superseded',
        'open withdraw withdrawn',
        'needs_evidence withdraw withdrawn'
    ));

create function review_step() returns trigger language plpgsql as $$
begin
    if (new.state, new.event, new.version) is distinct from (old.state, old.event, old.version) then
        if new.version <> old.version + 1 then
            raise exception 'a step of a review is one version' using errcode = 'restrict_violation';
        end if;
        new.from_state := old.state;
    end if;
    return new;
end
$$;
create trigger review_step before update on review for each row execute function review_step();

drop index review_one_open;
drop index review_queue;
create unique index review_one_open on review (screening_id) where closed_at is null;
create index review_queue on review (project, due_at, id) where closed_at is null;
create index review_expiring on review (expires_at) where closed_at is null;
create index review_due on review (due_at) where closed_at is null;

-- Panels are numbered. Those of later tiers are there from the beginning, with
-- no due time yet: nothing about them depends on a file that may change.
alter table vote drop constraint vote_pkey, drop constraint vote_review_id_policy_fkey;
alter table review_panel drop constraint review_panel_pkey;
alter table review_panel
    add column panel         integer,
    add column due_seconds   double precision,
    add column next_panel    integer,     -- takes over when the due time passes; null = the review expires
    add column passed_at     timestamptz, -- when the next took over
    add column answered_at   timestamptz, -- when it had its quorum; its due time means nothing any more
    add column remind_at     timestamptz, -- null once reminded
    add column claimed_by    text,
    add column claimed_until timestamptz,
    alter column due_at drop not null;
update review_panel p set panel = n.panel, due_seconds = extract(epoch from p.due_at - r.opened_at)
from (select review_id, policy, row_number() over (partition by review_id order by policy) as panel from review_panel) n, review r
where n.review_id = p.review_id and n.policy = p.policy and r.id = p.review_id;
alter table review_panel
    alter column panel set not null,
    alter column due_seconds set not null,
    add primary key (review_id, panel),
    add check (due_seconds > 0),
    add check (next_panel > panel),
    add check (passed_at is null or due_at is not null and next_panel is not null and answered_at is null),
    add check (answered_at is null or due_at is not null),
    add check (remind_at is null or due_at is not null),
    add check ((claimed_by is null) = (claimed_until is null)),
    add foreign key (review_id, next_panel) references review_panel (review_id, panel) deferrable;
create index review_panel_remind on review_panel (remind_at) where remind_at is not null;

alter table vote
    add column panel  integer,
    add column origin uuid references review, -- the review that it was cast in, when it was carried over
    add column facts  bytea;                  -- JSON: what the voter stated where the floor could not be checked
update vote v set panel = p.panel from review_panel p where p.review_id = v.review_id and p.policy = v.policy;
alter table vote
    alter column panel set not null,
    add primary key (review_id, panel, person),
    add foreign key (review_id, panel) references review_panel (review_id, panel);

-- When a review has to be looked at next, and when it expires. What has its
-- quorum waits for the others without a limit of its own.
create function review_due(of_review uuid, out due_at timestamptz, out expires_at timestamptz) stable language sql as $$
    select coalesce(min(p.due_at) filter (where p.answered_at is null), max(p.due_at)),
        case when bool_and(p.answered_at is not null) then max(p.due_at)
            else min(p.due_at) filter (where p.answered_at is null and p.next_panel is null) end
    from review_panel p where p.review_id = of_review and p.due_at is not null and p.passed_at is null
$$;

-- What people say about a review beside their votes.
create table review_note (
    review_id uuid        not null references review,
    seq       integer     not null check (seq > 0),
    kind      text        not null check (kind in ('comment', 'question', 'answer', 'withdrawal', 'appeal', 'reopen')),
    person    text        not null,
    text      text        not null check (text <> ''),
    at        timestamptz not null default now(),
    primary key (review_id, seq)
);

-- A waiver takes one finding of one term out of the fold, for a while. Two
-- persons of the term's panel make it; it is in force from the second's word.
create table waiver (
    id                uuid             primary key,
    project           text             not null,
    screening_id      uuid             not null references screening, -- on which it was granted
    term              text             not null check (term like 'ethics:_%'), -- never of a safety term
    finding_sha256    bytea            not null check (length(finding_sha256) = 32),
    spec_sha256       bytea            check (length(spec_sha256) = 32), -- the one spec it is for, or
    run_prefix        text             check (run_prefix <> ''),         -- the runs it is for, with
    inputs            text[]           not null,                         -- the digests of every input of the finding
    policy            text             not null, -- whose panel the two are of
    reason            text             not null check (reason <> ''),
    ticket            text             not null check (ticket <> ''),
    author            text             not null,
    created_at        timestamptz      not null default now(),
    expires_at        timestamptz      not null,
    confirmed_by      text,
    confirmed_at      timestamptz,
    admission_seconds double precision not null check (admission_seconds > 0), -- an admission under it is not longer
    check ((spec_sha256 is null) <> (run_prefix is null)),
    check (run_prefix is null or cardinality(inputs) > 0),
    check (expires_at > created_at and expires_at <= created_at + interval '30 days'),
    check ((confirmed_by is null) = (confirmed_at is null)),
    check (confirmed_by <> author)
);
create index waiver_by_finding on waiver (project, term, finding_sha256);
create index waiver_by_project on waiver (project, created_at desc, id desc);
create index waiver_by_screening on waiver (screening_id);

-- The waivers that hold now for findings of a spec: at most one for each. Nobody
-- who has a part in a run waives anything of it.
create function live_waivers(of_project text, spec bytea, run text, parties text[], terms text[], digests bytea[], pinned boolean[])
returns table (term text, expires_at timestamptz, confirmed_at timestamptz, admission_seconds double precision) stable language sql as $$
    select distinct on (f.term) f.term, w.expires_at, w.confirmed_at, w.admission_seconds
    from unnest(terms, digests, pinned) as f(term, sha256, pinned)
        join waiver w on w.project = of_project and w.term = f.term and w.finding_sha256 = f.sha256
    where w.confirmed_at <= now() and w.expires_at > now() and not (array[w.author, w.confirmed_by] && parties)
      and (w.spec_sha256 = spec or f.pinned and starts_with(run, w.run_prefix))
    order by f.term, w.expires_at desc
$$;

-- Until when waivers take every finding away that stands between a screening and
-- its admission; null when they do not. People's answers are not theirs to change,
-- and a block is theirs only while it is the last word on its run.
create function waived_until(s screening) returns timestamptz stable language sql as $$
    select case when s.decided_by = 'packs' and not s.unmatched and not s.floor_violated
        and (s.status = 'pending' or s.status = 'blocked' and not exists (select from screening n where n.project = s.project
            and n.run_ref = s.run_ref and (n.created_at, n.id) > (s.created_at, s.id))) then (
        select least(min(w.expires_at), greatest(max(w.confirmed_at), s.created_at) + make_interval(secs => min(w.admission_seconds)))
        from (select array_agg(f.term) as terms, array_agg(f.sha256) as digests, array_agg(f.pinned) as pinned
                from finding f where f.screening_id = s.id and f.effect in ('escalate', 'block')) f,
            lateral live_waivers(s.project, s.spec_sha256, s.run_ref,
                array(select name from screening_party where screening_id = s.id), f.terms, f.digests, f.pinned) w
        having count(*) = max(cardinality(f.terms))
    ) end
$$;

-- Where a screening stands now. Every reader asks here: by the database's time an
-- admission has run out, a review is overdue, a waiver holds.
create function screening_status(s screening, review_expires timestamptz) returns text stable language sql as $$
    select case
        when s.status = 'admitted' and s.admitted_until <= now() then 'expired'
        when s.status in ('pending', 'blocked') and waived_until(s) > now() then 'admitted'
        when s.status = 'pending' and review_expires <= now() then 'expired'
        else s.status end
$$;

insert into schema_history (version) values (4);
