-- Hosts that know step 22 may stay.
-- Vectors of a document are used on behalf of who brought it in, and what no provider counted is a guess.
alter table knowledge_jobs add column user_id text collate "C" not null default '';
alter table model_usage add column estimated boolean not null default false;
