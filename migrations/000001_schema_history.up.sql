-- One row per applied migration, written by the migration itself, so that the row exists exactly if the file committed.
create table schema_history (
    version    bigint      primary key check (version > 0),
    applied_at timestamptz not null default now()
);

insert into schema_history(version) values (1);
