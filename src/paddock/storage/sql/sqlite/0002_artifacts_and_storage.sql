-- Files by reference. Their bytes lie under their hash, outside the database.
create table artifacts (
    artifact_id      text    not null primary key,
    workspace_id     text    not null,
    user_id          text,
    conversation_id  text,
    thread_id        text,
    run_id           text,
    agent_id         text,
    runner_id        text,
    source           text    not null,
    artifact_type    text    not null,
    mime_type        text    not null,
    name             text,
    size             integer not null,
    sha256           text    not null,
    published        integer not null,
    created_at       real    not null,
    expires_at       real,
    metadata         blob    not null
) without rowid;
create index artifacts_by_hash on artifacts (sha256);
create index artifacts_by_workspace on artifacts (workspace_id, size);
create index artifacts_by_conversation on artifacts (conversation_id) where conversation_id is not null;
create index artifacts_by_expiry on artifacts (expires_at) where expires_at is not null;

-- Blobs that plugins keep, by area and key.
create table storage (
    area_key    text    not null,
    key         text    not null,
    sha256      text    not null,
    size        integer not null,
    updated_at  real    not null,
    primary key (area_key, key)
) without rowid;
create index storage_by_hash on storage (sha256);
create index storage_by_area on storage (area_key, size);
