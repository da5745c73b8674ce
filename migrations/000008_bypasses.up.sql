set local lock_timeout = '5s';

-- Runs that started although the gate could not be asked, as their pipelines
-- reported them later. A report opens nothing; it is kept for the auditor.
create table bypass (
    project      text        not null,
    id           uuid        not null, -- the pipeline's, so that a report sent twice is kept once
    submitter    text        not null,    -- who reported it: the declared subject of the key
    bypassed_at  timestamptz not null,    -- claimed by the pipeline's clock
    reason       text        not null check (reason <> ''), -- why there was no answer
    spec_sha256  bytea       not null check (length(spec_sha256) = 32),
    spec         bytea       not null check (sha256(spec) = spec_sha256), -- what trained, as sent
    run_ref      text        not null,    -- '' when the spec is not valid
    outcome      text        not null check (outcome in ('', 'admit', 'escalate', 'block')), -- of the packs in force at the report; '' as above
    screening_id uuid        references screening, -- the latest of these bytes at the report, null when there was none
    reported_at  timestamptz not null default now(),
    primary key (project, id),
    check ((run_ref = '') = (outcome = ''))
);
alter table bypass alter column spec set storage external;
create index bypass_by_project on bypass (project, reported_at desc, id desc);
create trigger bypass_append_only before update or delete on bypass for each row execute function refuse_change();
create trigger bypass_no_truncate before truncate on bypass for each statement execute function refuse_change();

insert into schema_history (version) values (8);
