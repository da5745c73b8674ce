-- Fails where there are rows that the old schema cannot hold; nothing is lost then.
drop function screening_status(screening, timestamptz);
drop function waived_until(screening);
drop function live_waivers(text, bytea, text, text[], text[], bytea[], boolean[]);
drop table waiver;
drop table review_note;
drop function review_due(uuid);

alter table vote drop constraint vote_review_id_panel_fkey, drop constraint vote_pkey,
    drop column panel, drop column origin, drop column facts;
alter table review_panel drop constraint review_panel_review_id_next_panel_fkey;
alter table review_panel drop constraint review_panel_pkey,
    drop column panel, drop column due_seconds, drop column next_panel, drop column passed_at, drop column answered_at,
    drop column remind_at, drop column claimed_by, drop column claimed_until,
    alter column due_at set not null,
    add primary key (review_id, policy);
alter table vote add primary key (review_id, policy, person),
    add foreign key (review_id, policy) references review_panel (review_id, policy);

drop trigger review_step on review;
drop function review_step();
drop index review_one_open;
drop index review_queue;
drop index review_expiring;
drop index review_due;
alter table review
    drop constraint review_state_check, drop constraint review_closed, drop constraint review_asked,
    drop constraint review_linked, drop constraint review_step,
    drop column kind, drop column origin, drop column event, drop column from_state, drop column expires_at, drop column asked_at,
    add constraint review_state_check check (state in ('open', 'decided', 'expired', 'superseded', 'withdrawn')),
    add constraint review_check1 check ((state = 'open') = (closed_at is null));
create unique index review_one_open on review (screening_id) where state = 'open';
create index review_queue on review (project, due_at, id) where state = 'open';

alter table finding drop column sha256, drop column pinned;
alter table screening
    drop constraint screening_decided_by_check, drop constraint screening_milder, drop constraint screening_admitted_by,
    drop constraint screening_blocked_by, drop constraint screening_floor,
    drop column floor_violated, drop column unmatched, drop column report_until,
    add constraint screening_decided_by_check check (decided_by in ('packs', 'people')),
    add constraint screening_check check (status <> 'pending' or outcome = 'escalate'),
    add constraint screening_check1 check (status <> 'expired' or outcome = 'escalate'),
    add constraint screening_check2 check (decided_by = 'packs' or outcome = 'escalate'),
    add constraint screening_check3 check (not (outcome = 'block' and status = 'admitted')),
    add constraint screening_check4 check (not (outcome = 'escalate' and status in ('admitted', 'blocked') and decided_by = 'packs'));

delete from schema_history where version = 4;
