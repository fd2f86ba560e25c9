-- Text is compared byte by byte (collate "C"), as every other store does, whatever the database's own language is.

-- Every claim of a session takes its epoch from here, so epochs grow over all hosts and all their starts.
create sequence epochs as bigint;

-- One session's place in the log. Every append passes through this row: it is the fence.
create table sessions (
    session_no    bigint generated always as identity primary key,
    session_id    text collate "C" not null unique,
    workspace_id  text collate "C" not null,
    user_id       text collate "C" not null,
    created_at    double precision not null,
    updated_at    double precision not null,
    epoch         bigint not null,
    head_seq      bigint not null,
    head_digest   bytea  not null,
    item_count    bigint not null,
    snapshot_seq  bigint not null default 0,
    snapshot      bytea  not null default ''
) with (fillfactor = 70);  -- every append updates its row: room for the new version on the same page

create table facts (
    session_no  bigint not null,
    seq         bigint not null,
    position    bigint not null,
    kind        text collate "C" not null,
    target      text collate "C" not null,
    sender      text collate "C" not null,
    target_id   text collate "C",
    turn_id     text collate "C",
    trace_id    text collate "C",
    tx_id       text collate "C",
    time        double precision not null,
    payload     bytea not null,
    metadata    bytea not null,
    digest      bytea not null,
    primary key (session_no, position, seq)
);
-- Finished messages stand where their first delta stood: a reader inside that range finds them here.
create index facts_moved on facts (session_no, seq, position) where position < seq;

-- A run also says where its facts lie: from just before first_seq to last_seq, once it has ended.
create table runs (
    run_id         text collate "C" not null primary key,
    session_id     text collate "C" not null,
    workspace_id   text collate "C" not null,
    user_id        text collate "C" not null,
    client_run_id  text collate "C" not null,
    agent_id       text collate "C" not null,
    runner_id      text collate "C" not null,
    status         text collate "C" not null,
    code           text collate "C",
    message        text collate "C",
    created_at     double precision not null,
    started_at     double precision,
    ended_at       double precision,
    deadline_at    double precision,
    first_seq      bigint not null,
    last_seq       bigint not null,
    "grant"        bytea  not null,
    usage          bytea  not null
) with (fillfactor = 80);
create unique index runs_by_label on runs (workspace_id, user_id, client_run_id, session_id) where client_run_id <> '';
create index runs_unfinished on runs (created_at, run_id) where status in ('queued', 'running');

create table transcript (
    session_no    bigint not null,
    seq           bigint not null,
    item_id       text collate "C" not null,
    run_id        text collate "C",
    role          text collate "C" not null,
    item_type     text collate "C" not null,
    agent_id      text collate "C",
    content       text collate "C" not null,
    content_json  bytea  not null,
    created_at    double precision not null,
    metadata      bytea  not null,
    primary key (session_no, seq)
);

create table inbox (
    session_no      bigint not null,
    key             text collate "C" not null,
    body_hash       bytea  not null,
    run_id          text collate "C" not null,
    created_at      double precision not null,
    opened_session  boolean not null,
    primary key (session_no, key)
);

create table state (
    scope_key   text collate "C" not null,
    key         text collate "C" not null,
    value       bytea not null,
    updated_at  double precision not null,
    primary key (scope_key, key)
);

create table audit (
    audit_no      bigint generated always as identity primary key,
    time          double precision not null,
    workspace_id  text collate "C" not null,
    actor         text collate "C" not null,
    action        text collate "C" not null,
    resource      text collate "C" not null,
    scope         text collate "C" not null,
    result        text collate "C" not null,
    reason        text collate "C" not null,
    run_id        text collate "C",
    runner_id     text collate "C",
    session_id    text collate "C"
);
create index audit_by_run on audit (run_id, audit_no) where run_id is not null;

create table api_keys (
    key_id        text collate "C" not null primary key,
    key_hash      bytea not null unique,
    workspace_id  text collate "C" not null,
    user_id       text collate "C" not null,
    role          text collate "C" not null,
    created_at    double precision not null
);

-- A tiny write of our own tells whether the database takes writes when nobody else writes.
create table probes (host text collate "C" not null primary key, count bigint not null);
