-- Events of platforms, each there once with the run it led to; where conversations live; and what goes out to them.
create table platform_events (
    platform     text not null,
    event_id     text not null,
    session_id   text not null,
    run_id       text not null,
    body_hash    blob not null,
    received_at  real not null,
    primary key (platform, event_id)
) without rowid;
create index platform_events_of_session on platform_events (session_id);
create index platform_events_by_age on platform_events (received_at);

create table platform_conversations (
    session_id    text not null primary key,
    platform      text not null,
    reply_target  blob not null,
    updated_at    real not null
) without rowid;

create table deliveries (
    delivery_id    text not null primary key,
    workspace_id   text not null,
    platform       text not null,
    session_id     text not null,
    run_id         text not null,
    number         integer not null,
    body           blob not null,
    created_at     real not null,
    status         text not null,
    attempts       integer not null,
    due_at         real,
    detail         text not null,
    ended_at       real,
    claim_token    text not null default '',
    claimed_until  real not null default 0
) without rowid;
-- What waits is a small part of all there ever was.
create index deliveries_waiting on deliveries (session_id, number) where status = 'pending';
create index deliveries_due on deliveries (due_at) where status = 'pending';
create index deliveries_of_workspace on deliveries (workspace_id, delivery_id);
create index deliveries_of_session on deliveries (session_id);
create index deliveries_by_age on deliveries (created_at);
