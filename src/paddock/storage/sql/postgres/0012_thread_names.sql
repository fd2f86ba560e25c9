-- What clients call their conversations; a name goes with its conversation and can then be given to another.
create table thread_names (
    workspace_id  text collate "C" not null,
    user_id       text collate "C" not null,
    name          text collate "C" not null,
    session_id    text collate "C" not null,
    primary key (workspace_id, user_id, name)
);
create index thread_names_of_session on thread_names (session_id);
