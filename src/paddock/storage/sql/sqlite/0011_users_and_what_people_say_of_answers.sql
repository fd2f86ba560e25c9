-- What people set for themselves; most have no row here.
create table users (
    workspace_id  text not null,
    user_id       text not null,
    time_zone     text,
    locale        text,
    updated_at    real not null,
    primary key (workspace_id, user_id)
) without rowid;

-- What people think of an answer: one opinion for each.
create table feedback (
    session_id  text not null,
    item_id     text not null,
    rating      text not null,
    comment     text not null,
    updated_at  real not null,
    primary key (session_id, item_id)
) without rowid;

-- Items that an edit or a new try left behind: they stay where they are, and the conversation is read without them.
create table left_behind (
    session_no  integer not null,
    first_seq   integer not null,
    last_seq    integer not null,
    primary key (session_no, first_seq, last_seq)
) without rowid;

-- A revoked key stays on record: its hash is never let in again, and keyless access does not come back with its end.
alter table api_keys add column revoked_at real;
