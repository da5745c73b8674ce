create index idempotency_by_age on idempotency (created_at);
create index finding_by_term on finding (term);
drop index screening_alive;

delete from schema_history where version = 19;
