-- Events of people's calendars, and how often each calendar was changed: a change that overlooked another is refused.
create table calendar_events (
    event_id      text not null primary key,
    workspace_id  text not null,
    user_id       text not null,
    body          blob not null,
    recurring     integer not null,
    starts_at     real not null,
    ends_at       real,
    created_at    real not null,
    updated_at    real not null
) without rowid;
create index calendar_events_of_user on calendar_events (workspace_id, user_id, starts_at, event_id);

create table calendars (
    workspace_id  text not null,
    user_id       text not null,
    turns         integer not null,
    primary key (workspace_id, user_id)
) without rowid;
