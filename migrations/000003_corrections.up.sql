-- Corrections of earlier decisions, as the review gate answered them. Accepted
-- ones are reviewed examples. Nothing is deleted; only the status moves.
create table correction (
    screening_id    uuid        not null references screening,
    candidate_id    text        not null check (candidate_id ~ '^[0-9a-f]{16}$'),
    project         text        not null,
    author          text        not null,
    correction_text text        not null,
    prior_surface   text        not null, -- the decision text that is corrected
    prior_turn      integer     not null check (prior_turn >= 0),
    ruleset         text        not null check (ruleset in ('reference', 'hardened')),
    rules           text[]      not null, -- that fired
    outcome         text        not null check (outcome in ('accepted', 'rejected_identity', 'rejected_empty')),
    review_hash     text        not null check (review_hash ~ '^[0-9a-f]{64}$'),
    identity_score  bytea,                -- as supplied, JSON; null when none was
    expects_term    text,                 -- what the term should find on the screening's spec
    expects_finding text        check (expects_finding in ('violated', 'upheld', 'not_checkable')),
    status          text        not null default 'speculative' check (status in ('speculative', 'coherent', 'contested', 'falsified')),
    created_at      timestamptz not null default now(),
    primary key (screening_id, candidate_id),
    check ((expects_term is null) = (expects_finding is null)),
    -- What the gate rejected can never become an example to learn from.
    check (status <> 'coherent' or outcome = 'accepted')
);
create index correction_by_project on correction (project, created_at desc, screening_id desc, candidate_id);
create index correction_coherent on correction (project) where status = 'coherent';

-- Every judgement a curator made, in order.
create table correction_status (
    screening_id uuid        not null,
    candidate_id text        not null,
    seq          integer     not null check (seq > 0),
    status       text        not null check (status in ('speculative', 'coherent', 'contested', 'falsified')),
    curator      text        not null,
    reason       text        not null check (reason <> ''),
    at           timestamptz not null default now(),
    primary key (screening_id, candidate_id, seq),
    foreign key (screening_id, candidate_id) references correction
);

insert into schema_history (version) values (3);
