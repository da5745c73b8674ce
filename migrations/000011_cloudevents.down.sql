update endpoint set format = 'standard' where format = 'cloudevents';
alter table endpoint drop constraint endpoint_format_check,
    add constraint endpoint_format_check check (format in ('standard', 'chat', 'ticket'));

create or replace function webhook_body(m jsonb, format text, base_url text) returns bytea language sql stable as $$
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

delete from schema_history where version = 11;
