set local lock_timeout = '5s';

-- Where data comes from, by the specs of a project: child comes from parent. Both
-- are points of 33 bytes, a kind and a digest, which package review makes:
--   1 the sha256 of an input's bytes          2 another digest of them
--   3 a URI or another name                   4 an input with exactly these names
--   5 such an input as something was made into it    6 all inputs of a spec
-- No text of a spec is in it. Rows are never changed. The same row twice says
-- nothing more, and comes of two specs at one moment: a unique index would make
-- submissions wait for each other, in whatever order their rows come.
create table lineage (
    project text  not null,
    child   bytea not null check (length(child) = 33),
    parent  bytea not null check (length(parent) = 33),
    check (child <> parent)
);
create index lineage_up on lineage (project, child, parent);
create index lineage_down on lineage (project, parent, child);
create trigger lineage_append_only before update or delete on lineage for each row execute function refuse_change();
create trigger lineage_no_truncate before truncate on lineage for each statement execute function refuse_change();

-- The point of kind 6 of a spec. Null: not worked out yet, as of specs from before.
-- One zero byte: not known, the bytes were erased or cannot be read any more.
alter table spec add column inputs bytea check (case when length(inputs) = 33 then get_byte(inputs, 0) = 6 else inputs = '\x00' end);
create index spec_by_inputs on spec (project, inputs) where inputs is not null;
create index spec_unlinked on spec (project, sha256) where inputs is null;

-- Data that must not be trained on any more, until lifted.
create table recall (
    id          uuid        primary key,
    project     text        not null check (project <> ''),
    point       bytea       not null check (length(point) = 33), -- what is recalled
    sha256      bytea       check (length(sha256) = 32),          -- as it was given, or
    uri         text        check (uri <> ''),
    reason      text        not null check (reason <> ''),
    actor       text        not null check (actor <> ''),
    made_at     timestamptz not null default now(),
    lifted_at   timestamptz,
    lifted_by   text        check (lifted_by <> ''),
    lift_reason text        check (lift_reason <> ''),
    unique (id, project),
    check ((sha256 is null) <> (uri is null)),
    check ((lifted_at is null) = (lifted_by is null) and (lifted_at is null) = (lift_reason is null))
);
create unique index recall_live on recall (project, point) where lifted_at is null;
create index recall_by_project on recall (project, made_at desc, id desc);

-- A recall is lifted once; nothing else about it changes.
create function recall_lifted_once() returns trigger language plpgsql as $$
declare
    lift text[] := array['lifted_at', 'lifted_by', 'lift_reason'];
begin
    if old.lifted_at is null and new.lifted_at is not null and (to_jsonb(new) - lift) = (to_jsonb(old) - lift) then
        return new;
    end if;
    raise exception 'a recall is only lifted, and once' using errcode = 'restrict_violation';
end
$$;
create trigger recall_lifted_once before update on recall for each row execute function recall_lifted_once();
create trigger recall_append_only before delete on recall for each row execute function refuse_change();
create trigger recall_no_truncate before truncate on recall for each statement execute function refuse_change();

-- Recalls whose screenings have to be looked through: the recall is new, or
-- something was said since about where data comes from.
create table recall_work (
    id        bigint generated always as identity primary key,
    project   text   not null,
    recall_id uuid   not null,
    foreign key (recall_id, project) references recall (id, project)
);

alter table screening
    add column recall_id uuid, -- that ended it
    add foreign key (recall_id, project) references recall (id, project),
    drop constraint screening_status_check, drop constraint screening_decided_by_check,
    drop constraint screening_milder, drop constraint screening_blocked_by,
    add constraint screening_status_check check (status in ('admitted', 'blocked', 'pending', 'expired', 'superseded', 'withdrawn', 'revoked')),
    add constraint screening_decided_by_check check (decided_by in ('packs', 'people', 'waiver', 'recall')),
    add constraint screening_milder check (outcome <> 'admit' or decided_by = 'recall'
        or status not in ('pending', 'expired', 'blocked') and decided_by = 'packs'),
    add constraint screening_blocked_by check (not (outcome = 'escalate' and status = 'blocked' and decided_by not in ('people', 'recall'))),
    add constraint screening_recalled check ((decided_by = 'recall') = (recall_id is not null)
        and (decided_by <> 'recall' or status in ('blocked', 'revoked')) and (status <> 'revoked' or decided_by = 'recall'));
-- What ended lately is looked for whenever somebody asks for the revoked admissions.
create index screening_ended on screening (project, changed_at desc) where status not in ('admitted', 'pending');
create index screening_by_recall on screening (recall_id, created_at desc, id desc) where recall_id is not null;

alter table review
    drop constraint review_step,
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
        'needs_evidence withdraw withdrawn',
        'open recall decided',
        'needs_evidence recall decided'
    ));

-- The first of the recalls in force that something comes from, or is. Every
-- point is looked at once, whatever circle it is in. "offset 0" keeps it a lookup
-- for each point; without a recall it is one lookup in all.
create function live_recall(of_project text, points bytea[]) returns uuid stable language plpgsql as $$
begin
    if not exists (select from recall r where r.project = of_project and r.lifted_at is null) then
        return null;
    end if;
    return (
        with recursive up(point) as (
            select p from unnest(points) p
            union
            select l.parent from up cross join lateral (
                select k.parent from lineage k where k.project = of_project and k.child = up.point offset 0) l
        )
        select r.id from up cross join lateral (
            select k.id, k.made_at from recall k where k.project = of_project and k.point = up.point and k.lifted_at is null offset 0) r
        order by r.made_at, r.id limit 1);
end
$$;

-- The recall in force that a screening falls under, null without one. Where its
-- inputs are not known although its bytes are there, any could be meant.
create function recall_of(s screening) returns uuid stable language plpgsql as $$
declare
    made_from bytea;
begin
    if not exists (select from recall r where r.project = s.project and r.lifted_at is null) then
        return null;
    end if;
    select p.inputs into made_from from spec p where p.project = s.project and p.sha256 = s.spec_sha256;
    if length(made_from) = 33 then
        return live_recall(s.project, array[made_from]);
    end if;
    if exists (select from erased(s)) then
        return null;
    end if;
    return (select r.id from recall r where r.project = s.project and r.lifted_at is null order by r.made_at, r.id limit 1);
end
$$;

-- What comes from a point: all inputs of a spec, by their points of kind 6.
create function inputs_from(of_project text, from_point bytea) returns setof bytea stable language plpgsql as $$
begin
    return query
        with recursive down(point) as (
            select from_point
            union
            select l.child from down cross join lateral (
                select k.child from lineage k where k.project = of_project and k.parent = down.point offset 0) l
        )
        select d.point from down d where get_byte(d.point, 0) = 6;
end
$$;

-- Where a screening stands now. Every reader asks here: by the database's time an
-- admission has run out, a review is overdue, a waiver holds; and a recall in force
-- takes admissions back and leaves nothing to decide.
alter function screening_status(screening, timestamptz) rename to unrecalled_status;
create function recalled_status(status text, s screening) returns text stable language plpgsql as $$
begin
    if status in ('admitted', 'pending') and recall_of(s) is not null then
        return case status when 'admitted' then 'revoked' else 'blocked' end;
    end if;
    return status;
end
$$;
create function screening_status(s screening, review_expires timestamptz) returns text stable language sql as $$
    select recalled_status(unrecalled_status(s, review_expires), s)
$$;

-- Lineage is a project's own: what a spec of another says about the same data neither
-- reaches into this one nor shows in it. Requests add to it and never change it; work
-- is taken off by whoever does it, over all projects.
alter table lineage enable row level security;
create policy requests on lineage for select using (project = tenant());
create policy requests_insert on lineage for insert with check (project = tenant());
alter table recall_work enable row level security;
create policy requests on recall_work for select using (project = tenant());
create policy requests_insert on recall_work for insert with check (project = tenant());
alter table recall enable row level security;
create policy requests on recall using (project = tenant());

-- A message can tell of a recall: the function of migration 11 with one member more.
create or replace function webhook_body(m jsonb, format text, base_url text) returns bytea language sql stable as $$
    with v as (
        select m->>'type' as type,
            to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at,
            case jsonb_typeof(m->'policies') when 'array' then m->'policies' end as policies,
            case jsonb_typeof(m->'terms') when 'array' then m->'terms' end as terms,
            substr(m->>'spec_sha256', 3) as spec_sha256, -- past the \x of a bytea
            (m->>'due_at')::timestamptz at time zone 'utc' as due_at,
            case when base_url <> '' then base_url || coalesce('/console/reviews/' || (m->>'review_id'), '/console/screenings/' || (m->>'screening_id')) end as url,
            '`' || left(regexp_replace(coalesce(m->>'run_ref', m->>'about',
                (select run_ref from screening where id = (m->>'screening_id')::uuid), '?'), '[^A-Za-z0-9._/@:+-]', '?', 'g'), 256) || '`' as subject
    ), b as (
        select jsonb_strip_nulls(jsonb_build_object(
            'review_id', m->'review_id', 'screening_id', m->'screening_id', 'project', m->'project', 'outcome', m->'outcome',
            'spec_sha256', spec_sha256,
            'policies', jsonb_path_query_array(policies, '$[0 to 49]'),
            'terms', jsonb_path_query_array(terms, '$[0 to 49]'),
            'terms_left_out', nullif(greatest(jsonb_array_length(terms) - 50, 0), 0),
            'due_at', to_char(due_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'sequence', m->'version', 'url', url,
            'endpoint', m->'about', 'by', m->'actor', 'recall_id', m->'recall_id', 'reason', left(m->>'reason', 1000))) as data
        from v
    ), t as (
        select case v.type
                when 'review.opened' then 'Review needed: ' || subject
                when 'review.reminder' then 'Review still needed: ' || subject
                when 'review.overdue' then 'Review overdue: ' || subject
                when 'review.decided' then 'Review decided: ' || subject || ', ' || coalesce(m->>'outcome', 'unknown')
                when 'review.expired' then 'Review expired without an answer: ' || subject
                when 'review.superseded' then 'Review no longer needed, another spec took its place: ' || subject
                when 'review.withdrawn' then 'Review no longer needed, taken back by its submitter: ' || subject
                when 'admission.revoked' then 'Admission revoked: ' || subject
                when 'endpoint.disabled' then 'Webhook endpoint disabled: ' || subject
                when 'endpoint.ping' then 'Test message to endpoint ' || subject
                else v.type || ': ' || subject end as headline,
            nullif(concat_ws(e'\n',
                'Policies: ' || (select string_agg(p, ', ') from jsonb_array_elements_text(b.data->'policies') p),
                'Terms: ' || (select string_agg(p, ', ' order by n) from jsonb_array_elements_text(b.data->'terms') with ordinality as x(p, n) where n <= 10)
                    || case when jsonb_array_length(v.terms) > 10 then ' and ' || jsonb_array_length(v.terms) - 10 || ' more' else '' end,
                'Due: ' || to_char(v.due_at, 'YYYY-MM-DD HH24:MI "UTC"'),
                'By: `' || regexp_replace(m->>'actor', '[^A-Za-z0-9._-]', '?', 'g') || '`',
                'Screening: `' || (m->>'screening_id') || '`', v.url), '') as detail
        from v, b
    )
    select convert_to((case format
            when 'chat' then jsonb_build_object('text', headline || coalesce(e'\n' || detail, ''))
            when 'cloudevents' then jsonb_strip_nulls(jsonb_build_object('specversion', '1.0', 'id', m->>'message_id', 'type', type,
                'source', coalesce(nullif(base_url, ''), 'urn:weir'), 'subject', coalesce(m->>'review_id', m->>'screening_id', m->>'about'),
                'time', at, 'datacontenttype', 'application/json', 'data', data))
            when 'ticket' then jsonb_build_object('title', headline, 'body', coalesce(detail, headline), 'labels', jsonb_build_array('weir', type))
            else jsonb_build_object('type', type, 'timestamp', at, 'data', data)
        end)::text, 'UTF8')
    from v, b, t
$$;

select let_requests_in();

insert into schema_history (version) values (14);
