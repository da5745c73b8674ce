set local lock_timeout = '5s';

-- Names are read more closely than before: digests in ids, behind "alg:" and at the
-- ends of URIs. The specs that are kept are read again, by weir when it starts; what
-- is known of each holds until then, and stays where the bytes were erased. A
-- replica of before adds rows that are read again too.
alter table spec add column read_again boolean not null default true;
drop index spec_unlinked;
create index spec_unlinked on spec (project, sha256) where inputs is null or read_again;

insert into schema_history (version) values (16);
