-- Files by reference. Their bytes lie under their hash, outside the database.
create table artifacts (
    artifact_id      text collate "C" not null primary key,
    workspace_id     text collate "C" not null,
    user_id          text collate "C",
    conversation_id  text collate "C",
    thread_id        text collate "C",
    run_id           text collate "C",
    agent_id         text collate "C",
    runner_id        text collate "C",
    source           text collate "C" not null,
    artifact_type    text collate "C" not null,
    mime_type        text collate "C" not null,
    name             text collate "C",
    size             bigint  not null,
    sha256           text collate "C" not null,
    published        boolean not null,
    created_at       double precision not null,
    expires_at       double precision,
    metadata         bytea   not null
);
create index artifacts_by_hash on artifacts (sha256);
create index artifacts_by_workspace on artifacts (workspace_id) include (size);
create index artifacts_by_conversation on artifacts (conversation_id, artifact_id) where conversation_id is not null;
create index artifacts_by_expiry on artifacts (expires_at, artifact_id) where expires_at is not null;

-- Blobs that plugins keep, by area and key.
create table storage (
    area_key    text collate "C" not null,
    key         text collate "C" not null,
    sha256      text collate "C" not null,
    size        bigint not null,
    updated_at  double precision not null,
    primary key (area_key, key)
);
create index storage_by_hash on storage (sha256);
create index storage_by_area on storage (area_key) include (size);
