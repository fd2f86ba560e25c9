-- What people set for themselves; most have no row here.
create table users (
    workspace_id  text collate "C" not null,
    user_id       text collate "C" not null,
    time_zone     text collate "C",
    locale        text collate "C",
    updated_at    double precision not null,
    primary key (workspace_id, user_id)
);

-- What people think of an answer: one opinion for each.
create table feedback (
    session_id  text collate "C" not null,
    item_id     text collate "C" not null,
    rating      text collate "C" not null,
    comment     text collate "C" not null,
    updated_at  double precision not null,
    primary key (session_id, item_id)
);

-- Items that an edit or a new try left behind: they stay where they are, and the conversation is read without them.
create table left_behind (
    session_no  bigint not null,
    first_seq   bigint not null,
    last_seq    bigint not null,
    primary key (session_no, first_seq, last_seq)
);

-- A revoked key stays on record: its hash is never let in again, and keyless access does not come back with its end.
alter table api_keys add column revoked_at double precision;
