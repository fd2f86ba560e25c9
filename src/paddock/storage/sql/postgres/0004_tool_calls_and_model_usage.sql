-- A call of a tool is written before it is made and again when it has ended.
create table tool_calls (
    call_no       bigint generated always as identity primary key,
    call_id       text collate "C" not null unique,
    run_id        text collate "C" not null,
    session_id    text collate "C" not null,
    workspace_id  text collate "C" not null,
    user_id       text collate "C" not null,
    agent_id      text collate "C" not null,
    tool_name     text collate "C" not null,
    status        text collate "C" not null,
    parameters    bytea not null,
    result        bytea not null,
    artifact_id   text collate "C",
    started_at    double precision not null,
    ended_at      double precision
);
create index tool_calls_by_run on tool_calls (run_id, call_no);
create index tool_calls_open on tool_calls (call_no) where status = 'started';

-- What each call of a model used; budgets add it up by workspace, user and time.
create table model_usage (
    usage_no           bigint generated always as identity primary key,
    call_id            text collate "C" not null unique,
    run_id             text collate "C" not null,
    session_id         text collate "C" not null,
    workspace_id       text collate "C" not null,
    user_id            text collate "C" not null,
    agent_id           text collate "C" not null,
    model_id           text collate "C" not null,
    answered_by        text collate "C" not null,
    operation          text collate "C" not null,
    result             text collate "C" not null,
    prompt_tokens      bigint,
    completion_tokens  bigint,
    total_tokens       bigint,
    cost               double precision,
    started_at         double precision not null,
    ended_at           double precision not null
);
create index model_usage_by_run on model_usage (run_id, usage_no);
create index model_usage_by_time on model_usage (workspace_id, started_at);
