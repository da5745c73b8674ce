drop table log_cosignature;

delete from schema_history where version = 15;
