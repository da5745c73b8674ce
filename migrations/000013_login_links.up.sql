-- Who opens a login link is told whom it signs in before it is used.
set local lock_timeout = '5s';

create function login_link(token bytea) returns table (project text, person text, scopes text[])
stable security definer set search_path from current language plpgsql as $$
#variable_conflict use_column
begin
    return query select l.project, l.person, l.scopes from console_link l where l.token_sha256 = token and l.used_at is null and l.expires_at > now();
end
$$;

select let_requests_in();

insert into schema_history (version) values (13);
