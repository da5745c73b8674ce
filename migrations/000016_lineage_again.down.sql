drop index spec_unlinked;
alter table spec drop column read_again;
create index spec_unlinked on spec (project, sha256) where inputs is null;

delete from schema_history where version = 16;
