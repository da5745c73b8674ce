-- What was erased cannot come back: then this fails, and changes nothing.
alter table spec add column raw bytea check (length(raw) <= 1048576);
alter table screening add column decision bytea;
update screening s set decision = decision_of(s);
update spec sp set raw = spec_of(s) from screening s where s.project = sp.project and s.spec_sha256 = sp.sha256 and spec_of(s) is not null;
alter table spec alter column raw set not null, alter column raw set storage external;
alter table screening alter column decision set not null, alter column decision set storage external;

alter table screening add foreign key (project, spec_sha256) references spec (project, sha256);
alter table bypass alter column spec set not null;
drop trigger bypass_erased_only on bypass;
drop function bypass_erased_only();
drop trigger bypass_append_only on bypass;
create trigger bypass_append_only before update or delete on bypass for each row execute function refuse_change();
drop function spec_of(screening);
drop function decision_of(screening);
drop function erased(screening);
drop table erasure;
alter table screening drop column month, drop column decision_sha256;
drop function ensure_payload_part(text, date);
drop table payload;

delete from schema_history where version = 10;
