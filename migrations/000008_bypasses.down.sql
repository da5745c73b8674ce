drop table bypass;

delete from schema_history where version = 8;
