-- Jobs and what became of each of their ticks. A tick is there once; it is written in one commit with the run it led to.
create table automations (
    job_id         text not null primary key,
    workspace_id   text not null,
    user_id        text not null,
    thread_id      text not null,
    body           blob not null,
    enabled        integer not null,
    next_at        real,
    created_at     real not null,
    updated_at     real not null,
    claim_token    text not null default '',
    claimed_until  real not null default 0
) without rowid;
create index automations_of_user on automations (workspace_id, user_id, created_at, job_id);
create index automations_of_thread on automations (thread_id);
create index automations_due on automations (next_at) where enabled and next_at is not null;

create table automation_ticks (
    job_id   text not null,
    tick     real not null,
    result   text not null,
    at       real not null,
    run_id   text,
    through  real,
    reason   text not null,
    primary key (job_id, tick)
) without rowid;
create index automation_ticks_by_age on automation_ticks (at);
