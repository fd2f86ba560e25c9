-- What a run asked its platform for, written once, and the steps since, each written once by whoever comes first.
create table approvals (
    approval_id   text collate "C" not null primary key,
    workspace_id  text collate "C" not null,
    user_id       text collate "C" not null,
    session_id    text collate "C" not null,
    run_id        text collate "C" not null,
    agent_id      text collate "C" not null,
    action        text collate "C" not null,
    target        bytea not null,
    payload       bytea not null,
    created_at    double precision not null,
    expires_at    double precision not null
);
create index approvals_of_user on approvals (workspace_id, user_id, created_at desc, approval_id);
create index approvals_of_run on approvals (run_id);

create table approval_steps (
    approval_id  text collate "C" not null,
    step         text collate "C" not null,
    result       text collate "C" not null,
    actor        text collate "C" not null,
    time         double precision not null,
    token        text collate "C" not null,
    detail       text collate "C" not null,
    primary key (approval_id, step)
);
-- What was granted is found by its step, however many approvals there are.
create index approval_steps_granted on approval_steps (approval_id) where step = 'decided' and result = 'granted';
