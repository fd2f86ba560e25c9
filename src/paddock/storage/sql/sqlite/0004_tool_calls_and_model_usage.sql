-- A call of a tool is written before it is made and again when it has ended.
create table tool_calls (
    call_no       integer primary key,
    call_id       text not null unique,
    run_id        text not null,
    session_id    text not null,
    workspace_id  text not null,
    user_id       text not null,
    agent_id      text not null,
    tool_name     text not null,
    status        text not null,
    parameters    blob not null,
    result        blob not null,
    artifact_id   text,
    started_at    real not null,
    ended_at      real
);
create index tool_calls_by_run on tool_calls (run_id);
create index tool_calls_open on tool_calls (call_no) where status = 'started';

-- What each call of a model used; budgets add it up by workspace, user and time.
create table model_usage (
    usage_no           integer primary key,
    call_id            text not null unique,
    run_id             text not null,
    session_id         text not null,
    workspace_id       text not null,
    user_id            text not null,
    agent_id           text not null,
    model_id           text not null,
    answered_by        text not null,
    operation          text not null,
    result             text not null,
    prompt_tokens      integer,
    completion_tokens  integer,
    total_tokens       integer,
    cost               real,
    started_at         real not null,
    ended_at           real not null
);
create index model_usage_by_run on model_usage (run_id);
create index model_usage_by_time on model_usage (workspace_id, started_at);
