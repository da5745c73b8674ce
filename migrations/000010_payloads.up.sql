set local lock_timeout = '5s';

-- The bytes of specs and decisions, apart from what is said about them: by what
-- the packs decided and by month, so that those of a month can be dropped at
-- once. One row for each screening; it is gone when the bytes are erased.
create table payload (
    screening_id uuid  not null,
    outcome      text  not null,
    month        date  not null check (extract(day from month) = 1),
    spec         bytea not null check (length(spec) <= 1048576), -- as received
    decision     bytea not null,                                 -- its JSON
    primary key (screening_id, outcome, month)
) partition by list (outcome);
alter table payload alter column spec set storage external, alter column decision set storage external;
create table payload_admit    partition of payload for values in ('admit')    partition by range (month);
create table payload_escalate partition of payload for values in ('escalate') partition by range (month);
create table payload_block    partition of payload for values in ('block')    partition by range (month);
create trigger payload_unchanged before update on payload for each row execute function refuse_change();

-- Makes the part of an outcome and a month, unless it is there. Attached, not
-- created in place: that would wait for every reader and hold up every writer.
create function ensure_payload_part(of_outcome text, of_month date) returns boolean language plpgsql as $$
declare
    part text := format('payload_%s_%s', of_outcome, to_char(of_month, 'YYYYMM'));
begin
    if to_regclass(part) is not null then
        return false;
    end if;
    perform pg_advisory_xact_lock(hashtextextended('payload part', 0)); -- replicas come at the same time
    -- Whoever had the lock before may have made it, which a lookup need not know yet.
    begin
        execute format('create table %I (like payload including all)', part);
    exception when duplicate_table then
        return false;
    end;
    execute format('alter table %I attach partition %I for values from (%L) to (%L)', 'payload_' || of_outcome, part,
        of_month, (of_month + interval '1 month')::date);
    return true;
end
$$;

alter table screening
    add column month           date,
    add column decision_sha256 bytea;
update screening set month = date_trunc('month', created_at at time zone 'utc')::date, decision_sha256 = sha256(decision);
alter table screening
    alter column month set not null,
    alter column month set default date_trunc('month', now() at time zone 'utc')::date,
    alter column decision_sha256 set not null,
    add check (length(decision_sha256) = 32);

select ensure_payload_part(o, m)
from (select outcome, month from screening
    union select o, date_trunc('month', now() at time zone 'utc')::date from unnest(array['admit', 'escalate', 'block']) o) x(o, m);
insert into payload (screening_id, outcome, month, spec, decision)
select s.id, s.outcome, s.month, sp.raw, s.decision from screening s join spec sp on sp.project = s.project and sp.sha256 = s.spec_sha256;
alter table screening drop column decision;
alter table spec drop column raw;
-- Both rows are written by one statement, and the bytes hang on neither any more:
-- looking the one up for the other is a tenth of what a submission costs.
alter table screening drop constraint screening_project_spec_sha256_fkey;

-- What was erased: a spec with its decisions, or all of a month and an outcome.
create table erasure (
    id          bigint      generated always as identity primary key,
    project     text,
    spec_sha256 bytea       check (length(spec_sha256) = 32),
    outcome     text        check (outcome in ('admit', 'escalate', 'block')),
    month       date        check (extract(day from month) = 1),
    actor       text        not null check (actor <> ''),
    reason      text        not null check (reason <> ''),
    at          timestamptz not null,
    check ((project is null) = (spec_sha256 is null)),
    check ((outcome is null) = (month is null)),
    check ((project is null) <> (outcome is null))
);
create index erasure_of_spec on erasure (project, spec_sha256, at) where spec_sha256 is not null;
create unique index erasure_of_month on erasure (outcome, month) where month is not null;
create trigger erasure_append_only before update or delete on erasure for each row execute function refuse_change();
create trigger erasure_no_truncate before truncate on erasure for each statement execute function refuse_change();

-- What a pipeline sent with the report of a bypass is bytes of a spec too.
alter table bypass alter column spec drop not null; -- null: erased
create function bypass_erased_only() returns trigger language plpgsql as $$
begin
    if new.spec is null and (to_jsonb(new) - 'spec') = (to_jsonb(old) - 'spec') then
        return new;
    end if;
    raise exception 'bypass is append-only' using errcode = 'restrict_violation';
end
$$;
drop trigger bypass_append_only on bypass;
create trigger bypass_append_only before delete on bypass for each row execute function refuse_change();
create trigger bypass_erased_only before update on bypass for each row execute function bypass_erased_only();

-- The erasure that took the bytes of a screening; no row when they are there.
-- Bytes that are submitted again later are kept with the later screening alone.
create function erased(s screening) returns table (at timestamptz, actor text, reason text) stable language sql as $$
    select e.at, e.actor, e.reason from (
        select e.at, e.actor, e.reason from erasure e
        where e.project = s.project and e.spec_sha256 = s.spec_sha256 and e.at >= s.created_at
        union all
        select e.at, e.actor, e.reason from erasure e where e.outcome = s.outcome and e.month = s.month
    ) e order by e.at limit 1
$$;

-- The bytes of a screening's spec and of its decision; null when they were erased.
-- In plpgsql, so that only the part that holds them is ever looked at.
create function spec_of(s screening) returns bytea stable language plpgsql as $$
begin
    return (select p.spec from payload p where p.screening_id = s.id and p.outcome = s.outcome and p.month = s.month);
end
$$;
create function decision_of(s screening) returns bytea stable language plpgsql as $$
begin
    return (select p.decision from payload p where p.screening_id = s.id and p.outcome = s.outcome and p.month = s.month);
end
$$;

insert into schema_history (version) values (10);
