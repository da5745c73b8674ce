-- Projects are kept apart by the database. Requests come with a role of their own
-- and name their project; every table has policies that show such a role the rows of
-- that project alone. The owner of the tables, as which the gate does what it does
-- by itself, is not bound by them.
set local lock_timeout = '5s';

-- The project that a connection has been given; null without one, which equals
-- nothing, so that then there are no rows.
create function tenant() returns text stable parallel safe language sql as $$
    select nullif(current_setting('weir.project', true), '')
$$;

-- The role of requests. Roles are the cluster's, so it is named after the owner of
-- the tables: databases of one owner share it, those of others do not.
create function gate_role() returns name stable language sql as $$
    select ('weir_gate_' || pg_get_userbyid(relowner))::name from pg_class where oid = 'screening'::regclass
$$;

-- Makes the role of requests, unless it is there and may be used, and gives it the
-- rights that the policies speak of; a table without any is out of its reach. Of the
-- functions, those that look past the policies are for it and nobody else. Called
-- after every migration: a restored database can be without role and rights. Other
-- databases of the cluster may be at the same at the same time.
create function let_requests_in() returns void language plpgsql as $$
declare
    gate   constant name := gate_role();
    usable boolean := false;
    wanted record;
begin
    for try in 1..2 loop
        begin
            perform set_config('role', gate::text, true);
            raise exception using errcode = 'WEIR0'; -- takes it back
        exception
            when sqlstate 'WEIR0' then usable := true;
            when undefined_object or insufficient_privilege or invalid_parameter_value then null;
        end;
        exit when usable or try = 2;
        begin
            execute format('create role %I nologin', gate);
        exception
            when duplicate_object or unique_violation or insufficient_privilege then null;
        end;
        begin
            execute format('grant %I to %I', gate, current_user);
        exception
            when duplicate_object or unique_violation or undefined_object or insufficient_privilege then null;
        end;
    end loop;
    if not usable then
        raise exception 'requests need a role of their own, which % may not make; as an administrator run: create role % nologin; grant % to %;',
            current_user, quote_ident(gate::text), quote_ident(gate::text), quote_ident(current_user::text) using errcode = 'insufficient_privilege';
    end if;
    if not has_schema_privilege(gate, current_schema(), 'usage') then
        execute format('grant usage on schema %I to %I', current_schema(), gate);
    end if;
    for wanted in
        select c.oid::regclass as of_table, r.name
        from pg_policy p join pg_class c on c.oid = p.polrelid
            -- a policy for all is one for all but deleting
            join (values ('*', 'select'), ('*', 'insert'), ('*', 'update'), ('r', 'select'), ('a', 'insert'), ('w', 'update'), ('d', 'delete'))
                r(cmd, name) on r.cmd = p.polcmd::text
        where c.relnamespace = current_schema()::regnamespace and starts_with(p.polname, 'requests')
            and not has_table_privilege(gate, c.oid, r.name)
    loop
        execute format('grant %s on %s to %I', wanted.name, wanted.of_table, gate);
    end loop;
    for wanted in
        select p.oid::regprocedure as of_function from pg_proc p
        where p.pronamespace = current_schema()::regnamespace and p.prosecdef
            and p.proowner = (select relowner from pg_class where oid = 'screening'::regclass)
            and (not has_function_privilege(gate, p.oid, 'execute')
                or exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0))
    loop
        execute format('revoke execute on function %s from public', wanted.of_function);
        execute format('grant execute on function %s to %I', wanted.of_function, gate);
    end loop;
end
$$;

-- What belongs to a screening or a review and is written by the same statement
-- names the project too: nothing else could say whose it is before it is there.
alter table screening_party add column project text;
update screening_party x set project = s.project from screening s where s.id = x.screening_id;
alter table finding add column project text;
update finding x set project = s.project from screening s where s.id = x.screening_id;
alter table review_panel add column project text;
update review_panel x set project = r.project from review r where r.id = x.review_id;
alter table vote add column project text;
update vote x set project = r.project from review r where r.id = x.review_id;
drop trigger payload_unchanged on payload;
alter table payload add column project text;
update payload x set project = s.project from screening s where s.id = x.screening_id;
create trigger payload_unchanged before update on payload for each row execute function refuse_change();
alter table screening_party alter column project set not null;
alter table finding alter column project set not null;
alter table review_panel alter column project set not null;
alter table vote alter column project set not null;
alter table payload alter column project set not null;

-- The event of a screening says whose it is, where that was the screening's to say.
-- Leaf and hash of an event are the same as before.
alter table audit_event drop constraint audit_event_check1;
alter table audit_event disable trigger audit_event_place_once;
update audit_event e set project = s.project from screening s where s.id = e.screening_id;
alter table audit_event enable trigger audit_event_place_once;
alter table audit_event add constraint audit_event_project check (screening_id is null or project is not null);

create or replace function audit_event_chain() returns trigger language plpgsql as $$
declare
    last record;
begin
    if new.screening_id is not null then
        if new.project is null then
            select project into new.project from screening where id = new.screening_id;
        end if;
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

-- Nothing hangs on something of another project, or of none.
alter table screening add check (project <> ''), add unique (id, project);
alter table api_key add check (project <> '');
alter table review add unique (id, project),
    drop constraint review_screening_id_fkey, add foreign key (screening_id, project) references screening (id, project),
    drop constraint review_origin_fkey, add foreign key (origin, project) references review (id, project);
alter table screening_party drop constraint screening_party_screening_id_fkey,
    add foreign key (screening_id, project) references screening (id, project);
alter table finding drop constraint finding_screening_id_fkey,
    add foreign key (screening_id, project) references screening (id, project);
alter table idempotency drop constraint idempotency_screening_id_fkey,
    add foreign key (screening_id, project) references screening (id, project);
alter table audit_event drop constraint audit_event_screening_id_fkey,
    add foreign key (screening_id, project) references screening (id, project);
alter table delivery
    drop constraint delivery_screening_id_fkey, add foreign key (screening_id, project) references screening (id, project),
    drop constraint delivery_review_id_fkey, add foreign key (review_id, project) references review (id, project);
alter table waiver drop constraint waiver_screening_id_fkey,
    add foreign key (screening_id, project) references screening (id, project);
alter table correction drop constraint correction_screening_id_fkey,
    add foreign key (screening_id, project) references screening (id, project);
alter table bypass drop constraint bypass_screening_id_fkey,
    add foreign key (screening_id, project) references screening (id, project);
alter table exposure drop constraint exposure_screening_id_fkey,
    add foreign key (screening_id, project) references screening (id, project);
alter table review_panel drop constraint review_panel_review_id_fkey,
    add foreign key (review_id, project) references review (id, project);
alter table vote
    add foreign key (review_id, project) references review (id, project),
    drop constraint vote_origin_fkey, add foreign key (origin, project) references review (id, project);

-- The rows of a project, for requests of it: where a column says whose a row is.
do $$
declare
    t regclass;
begin
    foreach t in array array['spec', 'screening', 'screening_party', 'finding', 'review', 'review_panel', 'vote', 'idempotency', 'waiver',
        'correction', 'bypass', 'exposure', 'payload', 'api_key', 'console_link', 'console_session']::regclass[] loop
        execute format('alter table %s enable row level security', t);
        execute format('create policy requests on %s using (project = tenant())', t);
    end loop;
end
$$;
-- Erasing, and logging out, is the only deleting that requests do.
create policy requests_delete on payload for delete using (project = tenant());
create policy requests_delete on console_session for delete using (project = tenant());

-- Where the row that it hangs on says whose it is. Of attempts requests only read.
alter table review_note enable row level security;
create policy requests on review_note using (exists (select from review r where r.id = review_id));
alter table correction_status enable row level security;
create policy requests on correction_status using (exists (select from correction c
    where c.screening_id = correction_status.screening_id and c.candidate_id = correction_status.candidate_id));
alter table delivery_attempt enable row level security;
create policy requests on delivery_attempt for select using (exists (select from delivery d where d.id = delivery_id));

-- Where some rows are the deployment's: every project sees them, and of a project's
-- requests only those about an endpoint add to them.
alter table audit_event enable row level security;
create policy requests on audit_event for select using (tenant() is not null and (project is null or project = tenant()));
create policy requests_insert on audit_event for insert
    with check (project = tenant() or tenant() is not null and project is null and starts_with(subject, 'endpoint/'));
alter table erasure enable row level security;
create policy requests on erasure for select using (tenant() is not null and (project is null or project = tenant()));
create policy requests_insert on erasure for insert with check (project = tenant());
alter table delivery enable row level security;
create policy requests on delivery for select using (tenant() is not null and project in (tenant(), ''));
create policy requests_insert on delivery for insert with check (project = tenant());
create policy requests_update on delivery for update using (tenant() is not null and project in (tenant(), ''));

-- What is the deployment's as a whole: hashes, keys and checkpoints of the log, packs,
-- endpoints.
do $$
declare
    t regclass;
begin
    foreach t in array array['log_origin', 'log_node', 'log_checkpoint', 'log_key', 'pack', 'endpoint', 'endpoint_event']::regclass[] loop
        execute format('alter table %s enable row level security', t);
        execute format('create policy requests on %s for select using (true)', t);
    end loop;
end
$$;
create policy requests_update on endpoint for update using (true);
create policy requests_insert on endpoint_event for insert with check (true);

-- What is asked before the project is known. Each answers for the one row that its
-- secret, or the id of a key, names.
create function key_of(of_id text) returns table (secret_sha256 bytea, project text, subject text, scopes text[], live boolean, stale boolean)
stable security definer set search_path from current language plpgsql as $$
#variable_conflict use_column
begin
    return query select k.secret_sha256, k.project, k.subject, k.scopes, k.revoked_at is null and (k.expires_at is null or k.expires_at > now()),
        k.last_used_at is null or k.last_used_at < now() - interval '1 minute'
    from api_key k where k.id = of_id;
end
$$;
create function use_login_link(token bytea) returns table (project text, person text, scopes text[])
security definer set search_path from current language plpgsql as $$
#variable_conflict use_column
begin
    return query update console_link l set used_at = now() where l.token_sha256 = token and l.used_at is null and l.expires_at > now()
    returning l.project, l.person, l.scopes;
end
$$;
-- Once a minute is enough to know that a session is in use.
create function session_of(of_id bytea, idle interval, life interval) returns table (project text, person text, scopes text[])
security definer set search_path from current language plpgsql as $$
#variable_conflict use_column
begin
    return query with live as (
        select c.project, c.person, c.scopes, c.seen_at from console_session c left join api_key k on k.id = c.key_id
        where c.id_sha256 = of_id and c.seen_at > now() - idle and c.created_at > now() - life
          and (c.key_id is null or k.revoked_at is null and (k.expires_at is null or k.expires_at > now()))
    ), used as (
        update console_session c set seen_at = now() where c.id_sha256 = of_id and exists (select from live where seen_at < now() - interval '1 minute')
    )
    select project, person, scopes from live;
end
$$;
create function end_session(of_id bytea) returns void security definer set search_path from current language sql as $$
    delete from console_session where id_sha256 = of_id
$$;

-- The places of the log that have an entry, whosever it is: who reads the log of
-- a project tells by it what is not shown from what is missing.
create function log_places(from_index bigint, below bigint, most integer) returns setof bigint
stable security definer set search_path from current language plpgsql as $$
begin
    return query select e.log_index from audit_event e where e.log_index >= from_index and e.log_index < below order by 1 limit most;
end
$$;

select let_requests_in();

insert into schema_history (version) values (12);
