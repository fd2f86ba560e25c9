-- A call of a model that takes a while is written while it is under way, and again when it has ended. It counts for what was
-- used on its day from its end on.
create index model_usage_open on model_usage (usage_no) where result = 'started';

drop trigger model_usage_counted;
create trigger model_usage_counted after insert on model_usage when new.result <> 'started' begin
    insert into model_spent (day, workspace_id, user_id, tokens, cost)
    values (cast(new.started_at / 86400 as integer) * 86400.0, new.workspace_id, new.user_id,
            coalesce(new.total_tokens, 0), coalesce(new.cost, 0.0))
    on conflict (day, workspace_id, user_id)
    do update set tokens = tokens + excluded.tokens, cost = cost + excluded.cost;
    delete from model_spent where day < new.started_at - 3 * 86400;
end;

create trigger model_usage_ended after update on model_usage when new.result <> old.result begin
    insert into model_spent (day, workspace_id, user_id, tokens, cost)
    values (cast(new.started_at / 86400 as integer) * 86400.0, new.workspace_id, new.user_id,
            coalesce(new.total_tokens, 0) - iif(old.result = 'started', 0, coalesce(old.total_tokens, 0)),
            coalesce(new.cost, 0.0) - iif(old.result = 'started', 0.0, coalesce(old.cost, 0.0)))
    on conflict (day, workspace_id, user_id)
    do update set tokens = tokens + excluded.tokens, cost = cost + excluded.cost;
end;
