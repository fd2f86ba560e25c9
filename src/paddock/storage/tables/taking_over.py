"""Taking over: one user's rows are given to another, in every table that names an owner."""

from collections.abc import Mapping

from paddock.rules.rows.forgetting import MOVED_ON, OwnershipMoved, SessionMoved, StateMoved
from paddock.storage.tables.conversations import NUMBER, TURNS
from paddock.storage.tables.statements import Change, HasEngine, Write, in_turn, one, value

# ruff: noqa: S608 - the table names are our own, values are always bound
_THEIRS = "workspace_id = :workspace_id and user_id = :from_user"
OWNED = (
    *("runs", "tool_calls", "model_usage", "approvals", "artifacts", "automations", "calendar_events"),
    "knowledge_jobs",
)
"""Tables whose column `user_id` says whose a row is."""
APART = ("sessions", "thread_names", "users", "calendars", "api_keys", "model_spent")
"""Tables with such a column that are treated in their own way. A key stays its user's, and what was spent on a day
counts for the budget of the one who spent it."""
_OF_RUNS = ("runs", "tool_calls", "model_usage", "approvals")
_GIVEN = f"set user_id = :to_user where {_THEIRS}"

WRITES: Mapping[type, Write] = {
    SessionMoved: in_turn(
        Change(
            f"""
update sessions set user_id = :to_user
 where session_id = :session_id and {_THEIRS} and epoch <= :epoch returning 1""",
            refused=MOVED_ON,
        ),
        *(Change(f"update {table} {_GIVEN} and run_id in ({TURNS.format(number=NUMBER)})") for table in _OF_RUNS),
        Change(f"update artifacts {_GIVEN} and conversation_id = :session_id"),
        Change(f"update automations {_GIVEN} and thread_id = :session_id"),
        # A name that the new owner uses for another conversation stays theirs; this one is still found by its id.
        Change(f"""
delete from thread_names where {_THEIRS} and session_id = :session_id and name in (
  select name from thread_names where workspace_id = :workspace_id and user_id = :to_user)"""),
        Change(f"update thread_names {_GIVEN} and session_id = :session_id"),
    ),
    StateMoved: in_turn(
        Change("""
update state set scope_key = :new_key where scope_key = :old_key and key not in (
  select key from state where scope_key = :new_key)"""),
        Change("delete from state where scope_key = :old_key"),
    ),
    OwnershipMoved: in_turn(
        *(Change(f"update {table} {_GIVEN}") for table in OWNED),
        Change(f"""
insert into calendars (workspace_id, user_id, turns)
select workspace_id, :to_user::text, turns + 1 from calendars where {_THEIRS}
on conflict (workspace_id, user_id) do update set turns = calendars.turns + 1"""),
        Change(f"""
insert into users (workspace_id, user_id, time_zone, locale, updated_at)
select workspace_id, :to_user::text, time_zone, locale, updated_at from users where {_THEIRS}
on conflict do nothing"""),
        # An agent's files are those of who wrote it.
        Change("""
update agents set updated_by = :to_user where workspace_id = :workspace_id and updated_by = :from_user"""),
    ),
}


class TakingOverReads(HasEngine):
    count_sessions = one(
        value, "select count(*) from sessions where workspace_id = :workspace_id and user_id = :user_id", otherwise=0
    )
