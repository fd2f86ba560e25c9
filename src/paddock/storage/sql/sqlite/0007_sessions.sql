-- A user's conversations in the order in which they were opened. Written once per conversation, never by an append.
create index sessions_by_user on sessions (workspace_id, user_id, session_no);

-- What people set on a conversation; most have no row here.
create table session_details (
    session_id  text    not null primary key,
    title       text,
    archived    integer not null default 0,
    closed      integer not null default 0
) without rowid;

-- What is kept of an agent that was removed from a conversation.
create table kept_members (
    session_id  text not null,
    agent_id    text not null,
    left_at     real not null,
    info        blob not null,
    primary key (session_id, agent_id)
) without rowid;

-- Transactions that are under way, so that a new start finds them; gone when they have ended.
create table transactions (
    tx_id       text not null primary key,
    session_id  text not null,
    kind        text not null,
    created_at  real not null
) without rowid;
create index transactions_by_session on transactions (session_id);
