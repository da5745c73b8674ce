set local lock_timeout = '5s';

-- That witnesses, who are not the operators, saw a state of the log: a line of
-- the signed note each.
create table log_cosignature (
    size    bigint      not null references log_checkpoint,
    witness text        not null check (witness ~ '^[^+]+[+][0-9a-f]{8}$'), -- its name and the hash of its key
    line    text        not null check (line ~ '^— [^\n]+\n$'),
    at      timestamptz not null default now(),
    primary key (size, witness)
);
create index log_cosignature_by_witness on log_cosignature (witness, size);

create trigger log_cosignature_append_only before update or delete on log_cosignature for each row execute function refuse_change();
create trigger log_cosignature_no_truncate before truncate on log_cosignature for each statement execute function refuse_change();

-- The log is one for all projects: what witnesses say of it is for all to read.
alter table log_cosignature enable row level security;
create policy requests on log_cosignature for select using (true);
select let_requests_in();

insert into schema_history (version) values (15);
