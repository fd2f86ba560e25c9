-- Hosts that know step 22 may stay.
-- What all hosts on this database sign addresses with, as one of them would write it into a file of its own.
create table signing_keys (
    only_one    boolean primary key default true check (only_one),
    body        bytea not null,
    changed_at  timestamptz not null
);
