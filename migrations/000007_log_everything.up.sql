set local lock_timeout = '5s';

-- What is done to endpoints and keys is in the log too: a chain for each of them.
create function endpoint_event_logged() returns trigger language plpgsql as $$
begin
    insert into audit_event (subject, type, actor, body) values ('endpoint/' || new.endpoint, 'endpoint.' || new.type, new.actor,
        convert_to(jsonb_build_object('id', new.id, 'reason', new.reason)::text, 'UTF8'));
    return new;
end
$$;
create trigger endpoint_event_logged after insert on endpoint_event for each row execute function endpoint_event_logged();

create function api_key_logged() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        insert into audit_event (subject, project, type, actor, body) values ('key/' || new.id, new.project, 'key.created', 'operator',
            convert_to(jsonb_build_object('for', new.subject, 'scopes', new.scopes, 'expires_at', new.expires_at)::text, 'UTF8'));
    elsif old.revoked_at is null and new.revoked_at is not null then
        insert into audit_event (subject, project, type, actor, body) values ('key/' || new.id, new.project, 'key.revoked', 'operator',
            convert_to('{}', 'UTF8'));
    end if;
    return new;
end
$$;
create trigger api_key_logged after insert or update of revoked_at on api_key for each row execute function api_key_logged();

insert into schema_history (version) values (7);
