-- What was used of the models on a day, added up as it is put on record: a budget is judged without reading every call.
-- Only the last days are kept.
create table model_spent (
    day           real not null,
    workspace_id  text not null,
    user_id       text not null,
    tokens        integer not null,
    cost          real not null,
    primary key (day, workspace_id, user_id)
) without rowid;

insert into model_spent (day, workspace_id, user_id, tokens, cost)
select cast(started_at / 86400 as integer) * 86400.0, workspace_id, user_id, coalesce(sum(total_tokens), 0),
       coalesce(sum(cost), 0.0)
  from model_usage where started_at > (select max(started_at) from model_usage) - 2 * 86400 group by 1, 2, 3;

create trigger model_usage_counted after insert on model_usage begin
    insert into model_spent (day, workspace_id, user_id, tokens, cost)
    values (cast(new.started_at / 86400 as integer) * 86400.0, new.workspace_id, new.user_id,
            coalesce(new.total_tokens, 0), coalesce(new.cost, 0.0))
    on conflict (day, workspace_id, user_id)
    do update set tokens = tokens + excluded.tokens, cost = cost + excluded.cost;
    delete from model_spent where day < new.started_at - 3 * 86400;
end;

create trigger model_usage_forgotten after delete on model_usage begin
    delete from model_spent where day + 86400 <= old.started_at;
end;
