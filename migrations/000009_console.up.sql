-- The console: login links, sessions, and who opened what. Of links and sessions
-- only digests are kept, as of API keys.
set local lock_timeout = '5s';

create table console_link (
    token_sha256 bytea       primary key check (length(token_sha256) = 32),
    project      text        not null,
    person       text        not null,
    scopes       text[]      not null check (cardinality(scopes) > 0),
    created_at   timestamptz not null default now(),
    expires_at   timestamptz not null,
    used_at      timestamptz,
    check (expires_at > created_at)
);

-- A session that came from an API key lives no longer than the key.
create table console_session (
    id_sha256  bytea       primary key check (length(id_sha256) = 32),
    project    text        not null,
    person     text        not null,
    scopes     text[]      not null check (cardinality(scopes) > 0),
    key_id     text        references api_key,
    created_at timestamptz not null default now(),
    seen_at    timestamptz not null default now()
);
create index console_session_by_age on console_session (created_at);

-- Every time somebody asked to see excerpts that were held back.
create table exposure (
    id           bigint      generated always as identity primary key,
    project      text        not null,
    person       text        not null,
    screening_id uuid        not null references screening,
    excerpts     integer     not null check (excerpts > 0),
    at           timestamptz not null default now()
);
create index exposure_by_person on exposure (project, person, at desc);
create trigger exposure_append_only before update or delete on exposure for each row execute function refuse_change();
create trigger exposure_no_truncate before truncate on exposure for each statement execute function refuse_change();

-- Outcomes over time are counted from the index alone.
drop index screening_by_project;
create index screening_by_project on screening (project, created_at desc, id desc) include (outcome);

-- Every list shows whether somebody looks at a review; few panels are claimed.
create index review_panel_claimed on review_panel (review_id) where claimed_until is not null;

insert into schema_history (version) values (9);
