drop function login_link(bytea);
delete from schema_history where version = 13;
