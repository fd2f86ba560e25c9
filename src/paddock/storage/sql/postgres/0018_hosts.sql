-- Hosts that serve this database. The only clock that counts here is the database's own.
create table hosts (
    boot        bigint not null primary key,  -- from the sequence of epochs: a host that starts again is another one
    host_id     text collate "C" not null,
    url         text collate "C" not null,
    started_at  timestamptz not null,
    beat_at     timestamptz not null,
    gone        text collate "C",             -- why it owns nothing any more; null while it serves
    settled     boolean not null default false
);

-- The host that owns a session while something goes on in it; null while it rests, so that anybody may go on with it.
-- Hosts of the release before do not know the column and leave it as it is: null.
alter table sessions add column boot bigint;

-- What one host asks of another that owns a session. It lasts, so a ring that is lost costs time and nothing else.
create table errands (
    errand_id   text collate "C" not null primary key,
    boot        bigint not null,
    body        bytea not null,
    created_at  timestamptz not null,
    answer      bytea
);
create index errands_waiting on errands (boot, created_at) where answer is null;
create index errands_by_age on errands (created_at);
