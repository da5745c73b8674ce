drop trigger log_checkpoint_signed_once on log_checkpoint;
drop function log_checkpoint_signed_once();
alter table log_checkpoint drop column previous;

delete from schema_history where version = 18;
