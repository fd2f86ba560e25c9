-- What a run asked its platform for, written once, and the steps since, each written once by whoever comes first.
create table approvals (
    approval_id   text not null primary key,
    workspace_id  text not null,
    user_id       text not null,
    session_id    text not null,
    run_id        text not null,
    agent_id      text not null,
    action        text not null,
    target        blob not null,
    payload       blob not null,
    created_at    real not null,
    expires_at    real not null
) without rowid;
create index approvals_of_user on approvals (workspace_id, user_id, created_at desc, approval_id);
create index approvals_of_run on approvals (run_id);

create table approval_steps (
    approval_id  text not null,
    step         text not null,
    result       text not null,
    actor        text not null,
    time         real not null,
    token        text not null,
    detail       text not null,
    primary key (approval_id, step)
) without rowid;
