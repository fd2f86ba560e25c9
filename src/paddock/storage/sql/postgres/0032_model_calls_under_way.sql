-- Hosts that know step 26 may stay. They do not write what is under way.
-- A call of a model that takes a while is written while it is under way, and again when it has ended. It counts for what was
-- used on its day from its end on.
create index model_usage_open on model_usage (usage_no) where result = 'started';

create or replace function count_model_usage() returns trigger language plpgsql as $$
begin
    insert into model_spent as known (day, workspace_id, user_id, part, tokens, cost)
    select floor(started_at / 86400) * 86400, workspace_id, user_id, pg_backend_pid() % 64,
           coalesce(sum(total_tokens), 0), coalesce(sum(cost), 0)
      from added where result <> 'started' group by 1, 2, 3 order by 1, 2, 3
    on conflict (day, workspace_id, user_id, part)
    do update set tokens = known.tokens + excluded.tokens, cost = known.cost + excluded.cost;
    delete from model_spent where day < (select max(started_at) from added) - 3 * 86400;
    return null;
end $$;

create function count_model_usage_ended() returns trigger language plpgsql as $$
begin
    insert into model_spent as known (day, workspace_id, user_id, part, tokens, cost)
    select floor(now.started_at / 86400) * 86400, now.workspace_id, now.user_id, pg_backend_pid() % 64,
           sum(coalesce(now.total_tokens, 0) - case was.result when 'started' then 0 else coalesce(was.total_tokens, 0) end),
           sum(coalesce(now.cost, 0) - case was.result when 'started' then 0 else coalesce(was.cost, 0) end)
      from ended now join begun was on was.call_id = now.call_id
     where now.result <> was.result group by 1, 2, 3 order by 1, 2, 3
    on conflict (day, workspace_id, user_id, part)
    do update set tokens = known.tokens + excluded.tokens, cost = known.cost + excluded.cost;
    return null;
end $$;
create trigger model_usage_ended after update on model_usage
    referencing old table as begun new table as ended for each statement execute function count_model_usage_ended();
