drop table api_key;
drop table endpoint_state;
drop table delivery_attempt;
drop table delivery;
drop table audit_event;
drop function audit_event_chain();
drop function refuse_change();
drop table idempotency;
drop table vote;
drop table review_panel;
drop table review;
drop table finding;
drop table screening_party;
drop table screening;
drop table spec;

delete from schema_history where version = 2;
