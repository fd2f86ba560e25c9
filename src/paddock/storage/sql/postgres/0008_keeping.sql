-- Up to which number a log was trimmed, and the digest of the last fact that went: the chain verifies from there.
alter table sessions add column trimmed_seq bigint not null default 0;
alter table sessions add column trimmed_digest bytea not null default '';

-- Conversations that were deleted. Their ids are not given to others.
create table tombstones (
    session_id  text collate "C" not null primary key,
    deleted_at  double precision not null
);
create index tombstones_by_time on tombstones (deleted_at);

create index approvals_by_time on approvals (created_at);
