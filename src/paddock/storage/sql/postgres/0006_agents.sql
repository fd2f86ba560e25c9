-- Agents made over the API, one workspace's each. `body` is what was asked for, as JSON.
create table agents (
    workspace_id  text collate "C" not null,
    agent_id      text collate "C" not null,
    body          bytea not null,
    updated_at    double precision not null,
    updated_by    text collate "C" not null,
    primary key (workspace_id, agent_id)
);
