drop index review_panel_claimed;
drop index screening_by_project;
create index screening_by_project on screening (project, created_at desc, id desc);
drop table exposure;
drop table console_session;
drop table console_link;

delete from schema_history where version = 9;
