set local lock_timeout = '5s';

-- What is known of an endpoint, for all replicas alike and over restarts. The
-- URL and the secrets are not here: policies.yaml declares them.
create table endpoint (
    id            text        primary key,
    format        text        not null default 'standard' check (format in ('standard', 'chat', 'ticket')),
    types         text[]      check (cardinality(types) > 0), -- that it is told of; null = all
    host          text        not null default '',            -- for people: the rest of the URL may be a credential
    seen_at       timestamptz not null default now(),         -- when a replica that declares it last said so
    removed_at    timestamptz,
    disabled_at   timestamptz,
    disabled_by   text,
    disabled_why  text,
    failures      integer     not null default 0 check (failures >= 0), -- in a row
    failing_since timestamptz,
    trips         integer     not null default 0 check (trips >= 0),    -- of the breaker, in a row
    open_until    timestamptz,                                          -- nothing is sent before
    check ((disabled_at is null) = (disabled_by is null)),
    check ((disabled_at is null) = (disabled_why is null)),
    check ((failures = 0) = (failing_since is null)),
    check ((trips = 0) = (open_until is null))
);
insert into endpoint (id, disabled_at, disabled_by, disabled_why)
select endpoint, disabled_at, 'weir', reason from endpoint_state;
drop table endpoint_state;

-- What was done to endpoints, by whom and why. The id of a request is its nonce:
-- no two requests are ever taken for one.
create table endpoint_event (
    id          uuid        primary key default gen_random_uuid(),
    endpoint    text        not null,
    type        text        not null check (type in ('declared', 'removed', 'disabled', 'enabled', 'pinged', 'redelivered')),
    actor       text        not null check (actor <> ''),
    reason      text        not null check (reason <> ''),
    at          timestamptz not null default now()
);
create index endpoint_event_by_endpoint on endpoint_event (endpoint, at desc);
create trigger endpoint_event_append_only before update or delete on endpoint_event for each row execute function refuse_change();
create trigger endpoint_event_no_truncate before truncate on endpoint_event for each statement execute function refuse_change();

-- A message can be about an endpoint or an admission, and then has no review.
alter table delivery
    alter column review_id drop not null,
    add column project      text    not null default '', -- '' when it is of the whole deployment
    add column screening_id uuid    references screening,
    add column round_start  integer not null default 0 check (round_start >= 0), -- attempts before this round of the schedule
    add column request      uuid    references endpoint_event;                   -- whose attempt is next, when a person asked
update delivery d set project = r.project, screening_id = r.screening_id from review r where r.id = d.review_id;
alter table delivery add check (round_start <= attempt);

alter table delivery_attempt
    add column request   uuid    references endpoint_event, -- set when a person asked for this attempt
    add column truncated boolean not null default false;    -- the receiver's answer was longer than is kept

-- By endpoint, so that the backlog of one that is down is never walked over.
drop index delivery_due;
create index delivery_due on delivery (endpoint, due_at) where state = 'pending';
create index delivery_unfinished on delivery (endpoint, state) where state in ('pending', 'delivering', 'held', 'dead');
create index delivery_by_age on delivery (created_at desc, id desc);
create index delivery_by_endpoint on delivery (endpoint, created_at desc, id desc);

-- The body of a message, from its columns as JSON. It is thin: ids, digests and
-- terms, never text of a spec, and bounded whatever a review is about. Chat
-- programs and trackers read their text as markup: there, what a submitter chose
-- (the run_ref) stands in a code span, in letters that cannot leave it.
create function webhook_body(m jsonb, format text, base_url text) returns bytea language sql stable as $$
    with v as (
        select m->>'type' as type,
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
            'endpoint', m->'about', 'by', m->'actor', 'reason', left(m->>'reason', 1000))) as data
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
            when 'ticket' then jsonb_build_object('title', headline, 'body', coalesce(detail, headline), 'labels', jsonb_build_array('weir', type))
            else jsonb_build_object('type', type, 'timestamp', to_char(now() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'data', data)
        end)::text, 'UTF8')
    from v, b, t
$$;

insert into schema_history (version) values (6);
