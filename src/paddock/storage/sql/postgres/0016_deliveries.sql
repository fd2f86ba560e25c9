-- Events of platforms, each there once with the run it led to; where conversations live; and what goes out to them.
create table platform_events (
    platform     text collate "C" not null,
    event_id     text collate "C" not null,
    session_id   text collate "C" not null,
    run_id       text collate "C" not null,
    body_hash    bytea not null,
    received_at  double precision not null,
    primary key (platform, event_id)
);
create index platform_events_of_session on platform_events (session_id);
create index platform_events_by_age on platform_events (received_at);

create table platform_conversations (
    session_id    text collate "C" not null primary key,
    platform      text collate "C" not null,
    reply_target  bytea not null,
    updated_at    double precision not null
);

create table deliveries (
    delivery_id    text collate "C" not null primary key,
    workspace_id   text collate "C" not null,
    platform       text collate "C" not null,
    session_id     text collate "C" not null,
    run_id         text collate "C" not null,
    number         bigint not null,
    body           bytea not null,
    created_at     double precision not null,
    status         text collate "C" not null,
    attempts       bigint not null,
    due_at         double precision,
    detail         text collate "C" not null,
    ended_at       double precision,
    claim_token    text collate "C" not null default '',
    claimed_until  double precision not null default 0
);
-- What waits is a small part of all there ever was.
create index deliveries_waiting on deliveries (session_id, number) where status = 'pending';
create index deliveries_due on deliveries (due_at) where status = 'pending';
create index deliveries_of_workspace on deliveries (workspace_id, delivery_id);
create index deliveries_of_session on deliveries (session_id);
create index deliveries_by_age on deliveries (created_at);
