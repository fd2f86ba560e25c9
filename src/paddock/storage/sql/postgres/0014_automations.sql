-- Jobs and what became of each of their ticks. A tick is there once; it is written in one commit with the run it led to.
create table automations (
    job_id         text collate "C" not null primary key,
    workspace_id   text collate "C" not null,
    user_id        text collate "C" not null,
    thread_id      text collate "C" not null,
    body           bytea not null,
    enabled        boolean not null,
    next_at        double precision,
    created_at     double precision not null,
    updated_at     double precision not null,
    claim_token    text collate "C" not null default '',
    claimed_until  double precision not null default 0
);
create index automations_of_user on automations (workspace_id, user_id, created_at, job_id);
create index automations_of_thread on automations (thread_id);
create index automations_due on automations (next_at) where enabled and next_at is not null;

create table automation_ticks (
    job_id   text collate "C" not null,
    tick     double precision not null,
    result   text collate "C" not null,
    at       double precision not null,
    run_id   text collate "C",
    through  double precision,
    reason   text collate "C" not null,
    primary key (job_id, tick)
);
create index automation_ticks_by_age on automation_ticks (at);
