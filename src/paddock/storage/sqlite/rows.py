"""How each row is written: one statement and one way to read its values, per type. No decisions live here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from msgspec.structs import astuple

from paddock.ports import ApiKeyRow
from paddock.rules.rows.calls import ModelUsageRow, ToolCallRow
from paddock.rules.rows.rows import AuditRow, RunRow

Values = tuple[Any, ...]
SIZES = (64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
"""Rows in one statement: so few sizes that all stay prepared, so many that most groups need two at most."""

RUN = (
    "run_id, session_id, workspace_id, user_id, client_run_id, agent_id, runner_id, status, code, message, "
    'created_at, started_at, ended_at, deadline_at, first_seq, last_seq, "grant", usage, '
    "subthread_id, begun_seq"
)
ITEM = "item_id, run_id, role, item_type, agent_id, content, content_json, created_at, metadata, subthread_id"
AUDIT = "time, workspace_id, actor, action, resource, scope, result, reason, run_id, runner_id, session_id"
INBOX = "key, body_hash, run_id, created_at, opened_session"
TOOL_CALL = (
    "call_id, run_id, session_id, workspace_id, user_id, agent_id, tool_name, status, parameters, result, artifact_id, "
    "started_at, ended_at"
)
MODEL_USAGE = (
    "call_id, run_id, session_id, workspace_id, user_id, agent_id, model_id, answered_by, operation, result, "
    "prompt_tokens, completion_tokens, total_tokens, cost, started_at, ended_at, estimated"
)
KEY = "key_id, key_hash, workspace_id, user_id, role, created_at, revoked_at"
AGENT = "workspace_id, agent_id, body, updated_at, updated_by"
FACT = "seq, position, kind, target, sender, target_id, turn_id, trace_id, tx_id, time, payload, metadata, digest"


def chunks(rows: Sequence[Values]) -> Iterator[Sequence[Values]]:
    """All rows in few parts, each of a size that there is a statement for."""
    start = 0
    for size in SIZES:
        while len(rows) - start >= size:
            yield rows[start : start + size]
            start += size


def _names(columns: str) -> list[str]:
    return columns.replace('"', "").split(", ")


def getter(columns: str) -> Callable[[Any], Values]:
    return attrgetter(*_names(columns))


@dataclass(frozen=True, slots=True)
class Table:
    """How rows of one type are written: which columns, and what to do when the row exists."""

    name: str
    columns: str
    values: Callable[[Any], Values]
    on_conflict: str = ""
    row: str = ""
    """How one row is written, where that is not a mark for each column."""

    @cache  # noqa: B019 - tables live as long as the program
    def insert(self, count: int) -> str:
        """One statement for `count` rows: a thread that steps once per row would fight the event loop for each."""
        row = self.row or f"({', '.join('?' * len(_names(self.columns)))})"
        rows = ", ".join([row] * count)
        return f"insert into {self.name} ({self.columns}) values {rows} {self.on_conflict}"  # noqa: S608 - own names


# To whom a run belongs is written once, so these columns (and their index) are left alone by a later write.
_LATER = ("agent_id", "runner_id", "status", "code", "message", "started_at", "ended_at", "deadline_at")
_RUN_AGAIN = ", ".join(
    f"{name} = excluded.{name}" for name in (*_LATER, "first_seq", "last_seq", '"grant"', "usage", "begun_seq")
)

TABLES: Mapping[type, Table] = {
    RunRow: Table("runs", RUN, astuple, f"on conflict (run_id) do update set {_RUN_AGAIN}"),
    AuditRow: Table("audit", AUDIT, astuple),
    ToolCallRow: Table(
        "tool_calls",
        f"{TOOL_CALL}, after_seq",
        lambda call: (*astuple(call), call.session_id),
        "on conflict (call_id) do update set status = excluded.status, result = excluded.result, "
        "artifact_id = excluded.artifact_id, ended_at = excluded.ended_at "
        "where tool_calls.status = 'started' or excluded.status <> 'unknown'",
        row="(" + "?, " * 13 + "(select head_seq from sessions where session_id = ?))",
    ),
    ModelUsageRow: Table("model_usage", MODEL_USAGE, astuple, "on conflict do nothing"),
    ApiKeyRow: Table("api_keys", KEY, getter(KEY)),
}
"""Most rows have their columns in the order of their fields: read all at once, a row costs a sixth."""
FACTS = Table("facts", f"session_no, {FACT}", lambda fact: astuple(fact)[:-1])
ORDERS = Table("inbox", f"session_no, {INBOX}", lambda order: astuple(order)[1:])
ITEMS = Table("transcript", f"session_no, seq, {ITEM}", lambda item: astuple(item)[1:])
"""Facts without the digest of their payload, the others without the id of their session, whose number is written."""

SET_AGENT = f"""
insert into agents ({AGENT}) values (?, ?, ?, ?, ?)
on conflict (workspace_id, agent_id)
do update set body = excluded.body, updated_at = excluded.updated_at, updated_by = excluded.updated_by"""  # noqa: S608 - own names
DROP_AGENT = "delete from agents where workspace_id = ? and agent_id = ?"

COMPACT = """
delete from facts
 where session_no = ? and position between ? and ? and turn_id = ? and kind = 'AGENT_OUTPUT:CHUNK'"""

SET_STATE = """
insert into state (scope_key, key, value, updated_at) values (?, ?, ?, ?)
on conflict (scope_key, key) do update set value = excluded.value, updated_at = excluded.updated_at"""
DROP_STATE = "delete from state where scope_key = ? and key = ?"
