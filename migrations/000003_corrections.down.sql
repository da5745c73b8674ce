drop table correction_status;
drop table correction;

delete from schema_history where version = 3;
