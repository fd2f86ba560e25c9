-- One session's place in the log. Every append passes through this row: it is the fence.
create table sessions (
    session_no    integer primary key,
    session_id    text    not null unique,
    workspace_id  text    not null,
    user_id       text    not null,
    created_at    real    not null,
    updated_at    real    not null,
    epoch         integer not null,
    head_seq      integer not null,
    head_digest   blob    not null,
    item_count    integer not null,
    snapshot_seq  integer not null default 0,
    snapshot      blob    not null default x''
);

-- Rows are appended in order of commit, so a commit of many sessions dirties few pages.
create table facts (
    fact_no         integer primary key,
    session_no      integer not null,
    seq             integer not null,
    position        integer not null,
    kind            text    not null,
    target          text    not null,
    sender          text    not null,
    target_id       text,
    turn_id         text,
    trace_id        text,
    tx_id           text,
    time            real    not null,
    payload         blob    not null,
    metadata        blob    not null,
    digest          blob    not null
);
create unique index facts_by_position on facts (session_no, position, seq);
-- Finished messages stand where their first delta stood: a reader inside that range finds them here.
create index facts_moved on facts (session_no, seq, position) where position < seq;

-- A run also says where its facts lie: from just before first_seq to last_seq, once it has ended.
create table runs (
    run_id         text    not null primary key,
    session_id     text    not null,
    workspace_id   text    not null,
    user_id        text    not null,
    client_run_id  text    not null,
    agent_id       text    not null,
    runner_id      text    not null,
    status         text    not null,
    code           text,
    message        text,
    created_at     real    not null,
    started_at     real,
    ended_at       real,
    deadline_at    real,
    first_seq      integer not null,
    last_seq       integer not null,
    "grant"        blob    not null,
    usage          blob    not null
) without rowid;
create unique index runs_by_label on runs (workspace_id, user_id, client_run_id, session_id) where client_run_id <> '';
create index runs_unfinished on runs (created_at, run_id) where status in ('queued', 'running');

create table transcript (
    session_no    integer not null,
    seq           integer not null,
    item_id       text    not null,
    run_id        text,
    role          text    not null,
    item_type     text    not null,
    agent_id      text,
    content       text    not null,
    content_json  blob    not null,
    created_at    real    not null,
    metadata      blob    not null,
    primary key (session_no, seq)
) without rowid;

create table inbox (
    session_no      integer not null,
    key             text    not null,
    body_hash       blob    not null,
    run_id          text    not null,
    created_at      real    not null,
    opened_session  integer not null,
    primary key (session_no, key)
) without rowid;

create table state (
    scope_key   text not null,
    key         text not null,
    value       blob not null,
    updated_at  real not null,
    primary key (scope_key, key)
) without rowid;

-- Audit rows are written in order of time, so their number is the order of time too.
create table audit (
    audit_no      integer primary key,
    time          real not null,
    workspace_id  text not null,
    actor         text not null,
    action        text not null,
    resource      text not null,
    scope         text not null,
    result        text not null,
    reason        text not null,
    run_id        text,
    runner_id     text,
    session_id    text
);
create index audit_by_run on audit (run_id) where run_id is not null;

create table api_keys (
    key_id        text not null primary key,
    key_hash      blob not null unique,
    workspace_id  text not null,
    user_id       text not null,
    role          text not null,
    created_at    real not null
) without rowid;

create table meta (
    name   text    not null primary key,
    value  integer not null
) without rowid;
insert into meta (name, value) values ('boot_number', 0), ('probes', 0);
