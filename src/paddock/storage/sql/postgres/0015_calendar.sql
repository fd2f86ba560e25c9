-- Events of people's calendars, and how often each calendar was changed: a change that overlooked another is refused.
create table calendar_events (
    event_id      text collate "C" not null primary key,
    workspace_id  text collate "C" not null,
    user_id       text collate "C" not null,
    body          bytea not null,
    recurring     boolean not null,
    starts_at     double precision not null,
    ends_at       double precision,
    created_at    double precision not null,
    updated_at    double precision not null
);
create index calendar_events_of_user on calendar_events (workspace_id, user_id, starts_at, event_id);

create table calendars (
    workspace_id  text collate "C" not null,
    user_id       text collate "C" not null,
    turns         bigint not null,
    primary key (workspace_id, user_id)
);
