set local lock_timeout = '5s';

-- Each checkpoint names the one before, so that none can be taken out or put in
-- unseen; and it is signed once, which is all that changes about it.
alter table log_checkpoint add column previous bigint;
update log_checkpoint c set previous = coalesce((select max(size) from log_checkpoint b where b.size < c.size), 0);
alter table log_checkpoint alter column previous set not null,
    add check (previous >= 0 and previous < size), add unique (previous);

create function log_checkpoint_signed_once() returns trigger language plpgsql as $$
begin
    if old.note is null and new.note is not null
        and (to_jsonb(new) - 'note') = (to_jsonb(old) - 'note') then
        return new;
    end if;
    raise exception 'log_checkpoint is append-only' using errcode = 'restrict_violation';
end
$$;
create trigger log_checkpoint_signed_once before update on log_checkpoint for each row execute function log_checkpoint_signed_once();

insert into schema_history (version) values (18);
