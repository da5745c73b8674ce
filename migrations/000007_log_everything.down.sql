drop trigger api_key_logged on api_key;
drop function api_key_logged();
drop trigger endpoint_event_logged on endpoint_event;
drop function endpoint_event_logged();

delete from schema_history where version = 7;
