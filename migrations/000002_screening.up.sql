-- Specs: the bytes as received. They are evidence, so they are stored as they
-- came (never jsonb) and uncompressed out of line: they are written once, hashed
-- by the client, and read whole.
create table spec (
    project          text        not null,
    sha256           bytea       not null check (length(sha256) = 32),
    canonical_sha256 bytea       not null check (length(canonical_sha256) = 32),
    raw              bytea       not null check (length(raw) <= 1048576),
    created_at       timestamptz not null default now(),
    primary key (project, sha256)
);
alter table spec alter column raw set storage external;

-- One row per submission, with its decision and its current status.
create table screening (
    id               uuid        primary key,
    project          text        not null,
    spec_sha256      bytea       not null check (length(spec_sha256) = 32),
    canonical_sha256 bytea       not null check (length(canonical_sha256) = 32),
    run_ref          text        not null,
    team             text        not null,
    submitter        text        not null,
    owner            text        not null,
    on_behalf_of     text        not null, -- '' when the submitter is a person
    as_of            date        not null,
    engine           text        not null,
    outcome          text        not null check (outcome in ('admit', 'escalate', 'block')),
    decision         bytea       not null, -- the decision's JSON bytes
    packs_sha256     bytea       not null check (length(packs_sha256) = 32),
    findings_sha256  bytea       not null check (length(findings_sha256) = 32),
    status           text        not null check (status in ('admitted', 'blocked', 'pending', 'expired', 'superseded', 'withdrawn')),
    decided_by       text        not null check (decided_by in ('packs', 'people')),
    admitted_until   timestamptz,
    superseded_by    uuid,
    created_at       timestamptz not null default now(),
    changed_at       timestamptz not null default now(),
    foreign key (project, spec_sha256) references spec (project, sha256),
    -- What the packs decided cannot turn into its opposite by a status change alone.
    check (status <> 'pending' or outcome = 'escalate'),
    check (status <> 'expired' or outcome = 'escalate'),
    check (decided_by = 'packs' or outcome = 'escalate'),
    check (not (outcome = 'block' and status = 'admitted')),
    check (not (outcome = 'escalate' and status in ('admitted', 'blocked') and decided_by = 'packs')),
    check (status <> 'admitted' or admitted_until is not null),
    check ((status = 'superseded') = (superseded_by is not null))
);
alter table screening alter column decision set storage external;
create index screening_by_project on screening (project, created_at desc, id desc);
create index screening_by_spec on screening (project, spec_sha256, created_at desc, id desc);
create index screening_by_content on screening (project, canonical_sha256, created_at desc) where decided_by = 'people';
create index screening_by_run on screening (project, run_ref, created_at desc);
create unique index screening_one_open_per_spec on screening (project, spec_sha256) where status = 'pending';
create unique index screening_one_open_per_run on screening (project, run_ref) where status = 'pending';

-- Who has a part in a screening: everybody who submitted its bytes, was submitted
-- for, or owns it. They may read it, and none of them may review it.
create table screening_party (
    screening_id uuid        not null references screening,
    name         text        not null,
    since        timestamptz not null default now(),
    primary key (screening_id, name)
);

-- The findings that lead to something. Upheld ones are in the decision bytes.
create table finding (
    screening_id uuid not null references screening,
    term         text not null, -- "safety:<id>" or "ethics:<id>"
    pack         text not null,
    state        text not null check (state in ('violated', 'not_checkable')),
    cause        text not null, -- '' when violated
    effect       text not null check (effect in ('observe', 'hedge', 'escalate', 'block')),
    severity     text not null,
    causing      boolean not null,
    primary key (screening_id, term),
    check ((state = 'violated') = (cause = ''))
);
create index finding_by_term on finding (term);

-- The human side of an escalation.
create table review (
    id           uuid        primary key,
    project      text        not null,
    screening_id uuid        not null references screening,
    state        text        not null check (state in ('open', 'decided', 'expired', 'superseded', 'withdrawn')),
    outcome      text        check (outcome in ('admit', 'block')),
    version      integer     not null default 1 check (version > 0),
    opened_at    timestamptz not null default now(),
    due_at       timestamptz not null,
    closed_at    timestamptz,
    check ((state = 'decided') = (outcome is not null)),
    check ((state = 'open') = (closed_at is null)),
    check (due_at > opened_at)
);
create unique index review_one_open on review (screening_id) where state = 'open';
create index review_by_screening on review (screening_id);
create index review_queue on review (project, due_at, id) where state = 'open';
create index review_by_project on review (project, opened_at desc, id desc);

-- One panel per review policy that a causing finding was routed to.
create table review_panel (
    review_id  uuid        not null references review,
    policy     text        not null,
    group_name text        not null,
    quorum     integer     not null check (quorum > 0),
    due_at     timestamptz not null,
    terms      text[]      not null, -- the findings routed here, '{}' for no_policy_matched
    endpoints  text[]      not null,
    primary key (review_id, policy)
);

-- A vote counts once per person and panel, whatever the token.
create table vote (
    review_id   uuid        not null,
    policy      text        not null,
    person      text        not null,
    choice      text        not null check (choice in ('admit', 'block')),
    reason      text        not null check (reason <> ''),
    terms       text[]      not null,
    group_name  text        not null, -- the person was a member when voting
    spec_sha256 bytea       not null check (length(spec_sha256) = 32),
    cast_at     timestamptz not null default now(),
    primary key (review_id, policy, person),
    foreign key (review_id, policy) references review_panel (review_id, policy)
);

-- An answer already given for a client's key; written with what it answers.
create table idempotency (
    project      text        not null,
    principal    text        not null,
    key_sha256   bytea       not null check (length(key_sha256) = 32),
    spec_sha256  bytea       not null check (length(spec_sha256) = 32),
    screening_id uuid        not null references screening,
    created_at   timestamptz not null default now(),
    primary key (project, principal, key_sha256)
);
create index idempotency_by_age on idempotency (created_at);

-- The record: one event per state change, chained per screening.
create table audit_event (
    id           bigint      generated always as identity primary key,
    screening_id uuid        not null references screening,
    seq          integer     not null,
    type         text        not null,
    actor        text        not null,
    at           timestamptz not null,
    body         bytea       not null, -- canonical facts of the event as JSON
    prev_hash    bytea       not null,
    hash         bytea       not null check (length(hash) = 32),
    unique (screening_id, seq)
);

-- The chain is built here, so that no writer can forget it: seq follows the
-- last, and hash covers the previous hash and everything the row says.
create function audit_event_chain() returns trigger language plpgsql as $$
declare
    last record;
begin
    select seq, hash into last from audit_event where screening_id = new.screening_id order by seq desc limit 1;
    new.seq := coalesce(last.seq, 0) + 1;
    new.prev_hash := coalesce(last.hash, '\x'::bytea);
    new.at := now();
    new.hash := sha256(new.prev_hash || convert_to(concat_ws(e'\n', new.screening_id, new.seq, new.type, new.actor,
        to_char(new.at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), ''), 'UTF8') || new.body);
    return new;
end
$$;
create trigger audit_event_chain before insert on audit_event for each row execute function audit_event_chain();

create function refuse_change() returns trigger language plpgsql as $$
begin
    raise exception '% is append-only', tg_table_name using errcode = 'restrict_violation';
end
$$;
create trigger audit_event_append_only before update or delete on audit_event for each row execute function refuse_change();
create trigger audit_event_no_truncate before truncate on audit_event for each statement execute function refuse_change();

-- The outbox: one row per message and endpoint, written with the change it tells of.
create table delivery (
    id           uuid        primary key default gen_random_uuid(),
    message_id   text        not null,
    endpoint     text        not null,
    type         text        not null,
    review_id    uuid        not null references review,
    body         bytea       not null, -- frozen: every attempt sends exactly these bytes
    state        text        not null default 'pending' check (state in ('pending', 'delivering', 'delivered', 'held', 'dead', 'cancelled')),
    attempt      integer     not null default 0 check (attempt >= 0),
    due_at       timestamptz not null default now(),
    claim        uuid,
    lease_until  timestamptz,
    created_at   timestamptz not null default now(),
    finished_at  timestamptz,
    check ((state = 'delivering') = (claim is not null)),
    check ((state = 'delivering') = (lease_until is not null)),
    check ((state in ('delivered', 'dead', 'cancelled')) = (finished_at is not null))
) with (autovacuum_vacuum_scale_factor = 0.02);
create index delivery_due on delivery (due_at) where state = 'pending';
create index delivery_leased on delivery (lease_until) where state = 'delivering';
create index delivery_by_review on delivery (review_id);

create table delivery_attempt (
    delivery_id uuid        not null references delivery,
    attempt     integer     not null,
    started_at  timestamptz not null,
    duration_ms integer     not null,
    address     text        not null, -- host and the address dialled
    status      integer     not null, -- 0 when there was no answer
    class       text        not null, -- '' on success
    detail      text        not null, -- what failed, in words
    answer      text        not null, -- start of the receiver's answer, made printable
    primary key (delivery_id, attempt)
);

create table endpoint_state (
    endpoint    text        primary key,
    disabled_at timestamptz not null default now(),
    reason      text        not null
);

-- API keys: only the digest of the secret is kept.
create table api_key (
    id            text        primary key,
    secret_sha256 bytea       not null check (length(secret_sha256) = 32),
    project       text        not null,
    subject       text        not null, -- id of a declared person or service
    scopes        text[]      not null check (cardinality(scopes) > 0),
    created_at    timestamptz not null default now(),
    expires_at    timestamptz,
    last_used_at  timestamptz,
    revoked_at    timestamptz
);

insert into schema_history (version) values (2);
