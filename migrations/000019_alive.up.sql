set local lock_timeout = '5s';

-- What of the same bytes a submission can end: of bytes that come every hour there
-- are thousands of screenings, and all but one have ended.
create index screening_alive on screening (project, spec_sha256) where status in ('pending', 'admitted');

-- Written with each submission and read by nothing.
drop index finding_by_term;
drop index idempotency_by_age;

insert into schema_history (version) values (19);
