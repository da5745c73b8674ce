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

delete from schema_history where version = 17;
