-- Agents made over the API, one workspace's each. `body` is what was asked for, as JSON.
create table agents (
    workspace_id  text not null,
    agent_id      text not null,
    body          blob not null,
    updated_at    real not null,
    updated_by    text not null,
    primary key (workspace_id, agent_id)
) without rowid;
