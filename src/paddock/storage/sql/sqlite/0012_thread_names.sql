-- What clients call their conversations; a name goes with its conversation and can then be given to another.
create table thread_names (
    workspace_id  text not null,
    user_id       text not null,
    name          text not null,
    session_id    text not null,
    primary key (workspace_id, user_id, name)
) without rowid;
create index thread_names_of_session on thread_names (session_id);
