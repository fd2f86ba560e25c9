-- A user's conversations in the order in which they were opened. Written once per conversation, never by an append.
create index sessions_by_user on sessions (workspace_id, user_id, session_no);

-- What people set on a conversation; most have no row here.
create table session_details (
    session_id  text collate "C" not null primary key,
    title       text collate "C",
    archived    boolean not null default false,
    closed      boolean not null default false
);

-- What is kept of an agent that was removed from a conversation.
create table kept_members (
    session_id  text collate "C" not null,
    agent_id    text collate "C" not null,
    left_at     double precision not null,
    info        bytea not null,
    primary key (session_id, agent_id)
);

-- Transactions that are under way, so that a new start finds them; gone when they have ended.
create table transactions (
    tx_id       text collate "C" not null primary key,
    session_id  text collate "C" not null,
    kind        text collate "C" not null,
    created_at  double precision not null
);
create index transactions_by_session on transactions (session_id);
