do $$
declare
    p record;
begin
    for p in select polname, polrelid::regclass as of_table, c.oid from pg_policy join pg_class c on c.oid = polrelid
        where relnamespace = current_schema()::regnamespace and starts_with(polname, 'requests')
    loop
        execute format('drop policy %I on %s', p.polname, p.of_table);
        execute format('alter table %s disable row level security', p.of_table);
        execute format('revoke all on %s from %I', p.of_table, gate_role());
    end loop;
    -- The role stays: other databases may have it.
    execute format('revoke usage on schema %I from %I', current_schema(), gate_role());
end
$$;
drop function key_of(text);
drop function use_login_link(bytea);
drop function session_of(bytea, interval, interval);
drop function end_session(bytea);
drop function log_places(bigint, bigint, integer);
drop function let_requests_in();
drop function gate_role();
drop function tenant();

alter table vote
    drop constraint vote_review_id_project_fkey,
    drop constraint vote_origin_project_fkey, add foreign key (origin) references review;
alter table review_panel drop constraint review_panel_review_id_project_fkey, add foreign key (review_id) references review;
alter table exposure drop constraint exposure_screening_id_project_fkey, add foreign key (screening_id) references screening;
alter table bypass drop constraint bypass_screening_id_project_fkey, add foreign key (screening_id) references screening;
alter table correction drop constraint correction_screening_id_project_fkey, add foreign key (screening_id) references screening;
alter table waiver drop constraint waiver_screening_id_project_fkey, add foreign key (screening_id) references screening;
alter table delivery
    drop constraint delivery_screening_id_project_fkey, add foreign key (screening_id) references screening,
    drop constraint delivery_review_id_project_fkey, add foreign key (review_id) references review;
alter table audit_event drop constraint audit_event_screening_id_project_fkey, add foreign key (screening_id) references screening;
alter table idempotency drop constraint idempotency_screening_id_project_fkey, add foreign key (screening_id) references screening;
alter table finding drop constraint finding_screening_id_project_fkey, add foreign key (screening_id) references screening;
alter table screening_party drop constraint screening_party_screening_id_project_fkey, add foreign key (screening_id) references screening;
alter table review
    drop constraint review_screening_id_project_fkey, add foreign key (screening_id) references screening,
    drop constraint review_origin_project_fkey, add foreign key (origin) references review,
    drop constraint review_id_project_key;
alter table api_key drop constraint api_key_project_check;
alter table screening drop constraint screening_project_check, drop constraint screening_id_project_key;

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
alter table audit_event drop constraint audit_event_project;
alter table audit_event disable trigger audit_event_place_once;
update audit_event set project = null where screening_id is not null;
alter table audit_event enable trigger audit_event_place_once;
alter table audit_event add constraint audit_event_check1 check (screening_id is null or project is null);

alter table payload drop column project;
alter table vote drop column project;
alter table review_panel drop column project;
alter table finding drop column project;
alter table screening_party drop column project;

delete from schema_history where version = 12;
