-- Hosts that know step 26 may stay.
-- What was used of the models on a day, added up as it is put on record: a budget is judged without reading every call.
-- Hosts that add at the same moment have parts of their own. Only the last days are kept.
create table model_spent (
    day           double precision not null,
    workspace_id  text collate "C" not null,
    user_id       text collate "C" not null,
    part          integer not null,
    tokens        bigint not null,
    cost          double precision not null,
    primary key (day, workspace_id, user_id, part)
);

create function count_model_usage() returns trigger language plpgsql as $$
begin
    insert into model_spent as known (day, workspace_id, user_id, part, tokens, cost)
    select floor(started_at / 86400) * 86400, workspace_id, user_id, pg_backend_pid() % 64,
           coalesce(sum(total_tokens), 0), coalesce(sum(cost), 0)
      from added group by 1, 2, 3 order by 1, 2, 3
    on conflict (day, workspace_id, user_id, part)
    do update set tokens = known.tokens + excluded.tokens, cost = known.cost + excluded.cost;
    delete from model_spent where day < (select max(started_at) from added) - 3 * 86400;
    return null;
end $$;

insert into model_spent (day, workspace_id, user_id, part, tokens, cost)
select floor(started_at / 86400) * 86400, workspace_id, user_id, 0, coalesce(sum(total_tokens), 0), coalesce(sum(cost), 0)
  from model_usage where started_at > (select max(started_at) from model_usage) - 2 * 86400 group by 1, 2, 3;

create trigger model_usage_counted after insert on model_usage
    referencing new table as added for each statement execute function count_model_usage();

create function forget_model_usage() returns trigger language plpgsql as $$
begin
    delete from model_spent where day <= (select max(started_at) from removed) - 86400;
    return null;
end $$;
create trigger model_usage_forgotten after delete on model_usage
    referencing old table as removed for each statement execute function forget_model_usage();

-- Which host a run was accepted at, told by the connection that writes: what a host that is gone has left is found without
-- looking at what is open at all others.
alter table runs add column boot bigint;
alter table runs alter column boot set default nullif(current_setting('paddock.boot', true), '')::bigint;
create index runs_of_host on runs (boot) where status in ('queued', 'running');
