set local lock_timeout = '5s';

-- The log: every audit event becomes a leaf of one Merkle tree. Writers do not
-- wait for it; a sequencer numbers what is committed.

-- An event is about a screening or about something else, which subject names.
-- The project of a screening's event is the screening's.
alter table audit_event
    alter column screening_id drop not null,
    add column subject   text,
    add column project   text,
    add column log_index bigint check (log_index >= 0),
    add check ((screening_id is null) <> (subject is null)),
    add check (screening_id is null or project is null),
    add check (position('\x0a'::bytea in body) = 0); -- a leaf is one line
create unique index audit_event_by_subject on audit_event (subject, seq) where screening_id is null;
create unique index audit_event_by_log_index on audit_event (log_index) where log_index is not null;
create index audit_event_unsequenced on audit_event (id) where log_index is null;

create or replace function audit_event_chain() returns trigger language plpgsql as $$
declare
    last record;
begin
    if new.screening_id is not null then
        select seq, hash into last from audit_event where screening_id = new.screening_id order by seq desc limit 1;
    else
        -- Nothing else keeps two events of such a subject from being its next one.
        perform pg_advisory_xact_lock(hashtextextended('audit_event ' || new.subject, 0));
        select seq, hash into last from audit_event where screening_id is null and subject = new.subject order by seq desc limit 1;
    end if;
    new.seq := coalesce(last.seq, 0) + 1;
    new.prev_hash := coalesce(last.hash, '\x'::bytea);
    new.at := now();
    new.log_index := null;
    new.hash := sha256(new.prev_hash || convert_to(concat_ws(e'\n', coalesce(new.screening_id::text, new.subject), new.seq, new.type, new.actor,
        to_char(new.at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), ''), 'UTF8') || new.body);
    return new;
end
$$;

-- An event gets its place in the log once; nothing else about it changes.
create function audit_event_place_once() returns trigger language plpgsql as $$
begin
    if old.log_index is null and new.log_index is not null
        and (to_jsonb(new) - 'log_index') = (to_jsonb(old) - 'log_index') then
        return new;
    end if;
    raise exception 'audit_event is append-only' using errcode = 'restrict_violation';
end
$$;
drop trigger audit_event_append_only on audit_event;
create trigger audit_event_append_only before delete on audit_event for each row execute function refuse_change();
create trigger audit_event_place_once before update on audit_event for each row execute function audit_event_place_once();

-- The name under which checkpoints of this log are signed. One row.
create table log_origin (
    one    boolean primary key default true check (one),
    origin text    not null default 'weir/' || gen_random_uuid()
);
insert into log_origin default values;

-- Nodes of the tree, in the order in which tlog stores them.
create table log_node (
    idx  bigint primary key check (idx >= 0),
    hash bytea  not null check (length(hash) = 32)
);

-- States of the log. note is null where no key was there to sign it.
create table log_checkpoint (
    size bigint      primary key check (size > 0),
    root bytea       not null check (length(root) = 32),
    note bytea,
    at   timestamptz not null default now()
);
create index log_checkpoint_signed on log_checkpoint (size) where note is not null;
create index log_checkpoint_by_time on log_checkpoint (at, size) where note is not null;

-- The keys that ever signed for this log.
create table log_key (
    id         text        primary key,
    public     bytea       not null check (length(public) = 32),
    since      timestamptz not null default now(),
    retired_at timestamptz
);

create trigger log_node_append_only before update or delete on log_node for each row execute function refuse_change();
create trigger log_node_no_truncate before truncate on log_node for each statement execute function refuse_change();
create trigger log_checkpoint_append_only before delete on log_checkpoint for each row execute function refuse_change();
create trigger log_checkpoint_no_truncate before truncate on log_checkpoint for each statement execute function refuse_change();

-- The packs that decided, as JSON: exports carry them, so that a decision can be
-- made again from what an auditor has.
create table pack (
    sha256  bytea       primary key check (length(sha256) = 32), -- the identity that decisions name
    id      text        not null,
    version text        not null,
    json    bytea       not null,
    kept_at timestamptz not null default now()
);
create trigger pack_append_only before update or delete on pack for each row execute function refuse_change();

insert into schema_history (version) values (5);
