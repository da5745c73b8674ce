drop function webhook_body(jsonb, text, text);
drop index delivery_by_endpoint;
drop index delivery_by_age;
drop index delivery_unfinished;
drop index delivery_due;
create index delivery_due on delivery (due_at) where state = 'pending';

alter table delivery_attempt drop column truncated, drop column request;
delete from delivery_attempt where delivery_id in (select id from delivery where review_id is null);
delete from delivery where review_id is null;
alter table delivery drop column request, drop column round_start, drop column screening_id, drop column project,
    alter column review_id set not null;
drop table endpoint_event;

create table endpoint_state (
    endpoint    text        primary key,
    disabled_at timestamptz not null default now(),
    reason      text        not null
);
insert into endpoint_state (endpoint, disabled_at, reason)
select id, disabled_at, disabled_why from endpoint where disabled_at is not null;
drop table endpoint;

delete from schema_history where version = 6;
