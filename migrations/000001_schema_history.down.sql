delete from schema_history where version = 1;
drop table schema_history;
