"""How PostgreSQL forgets: trimmed logs, erased words, deleted conversations, rows past their time.

What is deleted or replaced here is gone from the tables; the server's own files keep it until they are vacuumed and
written over, which is the business of whoever runs the server.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from paddock.ports.keeping import OldRows
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import DELTA, Head
from paddock.rules.log.retention import OldFact, OldSession, first_id_after
from paddock.rules.rows.forgetting import (
    GONE_ON,
    CallsErased,
    FactErased,
    ItemErased,
    LogTrimmed,
    RequestsErased,
    SessionGone,
)
from paddock.rules.rows.taking_over import SessionSettled
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.sessions import TURNS
from paddock.storage.postgres.texts import escaped_column

# ruff: noqa: S608 - the column lists are our own, values are always bound
_SESSION_NO = "(select session_no from sessions where session_id = $1)"
_OWNED = "select session_no, epoch from sessions where session_id = $1 for update"
_OF_RUNS = (
    "delete from approval_steps where approval_id in (select approval_id from approvals where run_id = any($1))",
    *(f"delete from {table} where run_id = any($1)" for table in ("approvals", "tool_calls", "runs")),
)
_OF_LOG = tuple(
    f"delete from {table} where session_no = $1" for table in ("facts", "transcript", "search", "inbox", "left_behind")
)
_OF_SESSION = (
    *(
        f"delete from {table} where session_id = $1"
        for table in (
            *("session_details", "kept_members", "transactions", "feedback", "thread_names", "sessions"),
            *("platform_events", "platform_conversations", "deliveries"),
        )
    ),
    "delete from artifacts where conversation_id = $1",
)
_TRIMMED = """
update sessions set trimmed_seq = $2, trimmed_digest = $3, item_count = item_count - $4 where session_no = $1"""
_FEWER_WORDS = f"""
update sessions set word_bytes = greatest(0, word_bytes + coalesce((
  select sum($2::bigint - octet_length(payload)) from facts
   where session_no = $1 and kind <> '{DELTA}' and {{which}}), 0)) where session_no = $1"""
"""Facts are about to have so many bytes each."""
_WORDS = """
select coalesce(sum(word_bytes), 0)::bigint from sessions
 where workspace_id = $1 and ($2::text is null or user_id = $2)"""
_BURY = "insert into tombstones (session_id, deleted_at) values ($1, $2) on conflict (session_id) do nothing"
_OPENED_BEFORE = """
select session_no, session_id, workspace_id, user_id, updated_at, trimmed_seq from sessions
 where session_no > $1 and created_at < $2 order by session_no limit $3"""
_OLDEST = f"""
select seq, turn_id, time, kind, digest from facts where session_no = {_SESSION_NO} order by position, seq limit $2"""
_OLD_RUNS = """
select run_id from runs r where run_id < $3 and ended_at < $1 and not exists (
  select 1 from sessions s where s.session_id = r.session_id and s.trimmed_seq < r.last_seq) order by run_id limit $2"""


def _first_of(table: str, number: str, time: str) -> tuple[str, str, str]:
    """Numbered in order of time, but for what hosts with different clocks wrote at once: the oldest are the first."""
    first = f"select {number}, {time} from {table} order by {number} limit 4 * $2::bigint"
    return table, number, f"select {number} from ({first}) as first where {time} < $1 limit $2"


OLD: Mapping[str, tuple[str, str, str]] = {
    "audit": _first_of("audit", "audit_no", "time"),
    "tool_calls": _first_of("tool_calls", "call_no", "started_at"),
    "model_usage": _first_of("model_usage", "usage_no", "started_at"),
    "approvals": ("approvals", "approval_id", "select approval_id from approvals where created_at < $1 limit $2"),
    "deliveries": ("deliveries", "delivery_id", "select delivery_id from deliveries where created_at < $1 limit $2"),
    # Their keys are pairs; what came at the same moment is old at the same moment.
    "platform_events": (
        "platform_events",
        "received_at",
        "select received_at from platform_events where received_at < $1 limit $2",
    ),
    "automation_ticks": ("automation_ticks", "at", "select at from automation_ticks where at < $1 limit $2"),
    "tombstones": ("tombstones", "session_id", "select session_id from tombstones where deleted_at < $1 limit $2"),
    "runs": ("runs", "run_id", _OLD_RUNS),
}
"""Table, key, and which keys are old. None of it reads more of a table than it finds, however large that is."""


async def _forget(connection: Connection, row: SessionGone) -> None:
    found = await connection.fetchrow(_OWNED, row.session_id)
    if found is not None:
        session_no, epoch = found
        if row.epoch is not None and epoch > row.epoch:
            raise HostError(ErrorCode.CONFLICT, GONE_ON, retryable=True)
        runs = [found[0] for found in await connection.fetch(TURNS, session_no)]
        for sql in _OF_RUNS:
            await connection.fetch(sql, runs)
        for sql in _OF_LOG:
            await connection.fetch(sql, session_no)
    for sql in _OF_SESSION:
        await connection.fetch(sql, row.session_id)
    await connection.fetch("delete from state where scope_key = any($1::text[])", escaped_column(row.scope_keys))
    if row.buried_at is not None:
        await connection.fetch(_BURY, row.session_id, row.buried_at)


async def _trim(connection: Connection, row: LogTrimmed) -> None:
    number = await connection.fetchval(f"select {_SESSION_NO}", row.session_id)
    await _trim_requests(connection, row, number)
    await connection.fetch(_FEWER_WORDS.format(which="position <= $3 and seq <= $3"), number, 0, row.through)
    facts = "delete from facts where session_no = $1 and position <= $2 and seq <= $2"
    await connection.fetch(facts, number, row.through)
    items = await connection.fetch(
        "delete from transcript where session_no = $1 and seq <= $2 returning seq", number, row.through
    )
    await connection.fetch(_TRIMMED, number, row.through, row.digest, len(items))


async def _trim_requests(connection: Connection, row: LogTrimmed, number: int) -> None:
    """The digests of what was asked go with what was said."""
    sql = "select max(time) from facts where session_no = $1 and position <= $2 and seq <= $2"
    last = await connection.fetchval(sql, number, row.through)
    await connection.fetch("update inbox set body_hash = '' where session_no = $1 and created_at <= $2", number, last)
    sql = "update platform_events set body_hash = '' where session_id = $1 and received_at <= $2"
    await connection.fetch(sql, row.session_id, last)


async def _erase_fact(connection: Connection, row: FactErased) -> None:
    number = await connection.fetchval(f"select {_SESSION_NO}", row.session_id)
    left = (number, len(row.payload), row.position, row.seq)
    await connection.fetch(_FEWER_WORDS.format(which="position = $3 and seq = $4"), *left)
    sql = (
        f"update facts set payload = $4, metadata = $5 where session_no = {_SESSION_NO} and position = $2 and seq = $3"
    )
    await connection.fetch(sql, row.session_id, row.position, row.seq, row.payload, row.metadata)


async def _erase_item(connection: Connection, row: ItemErased) -> None:
    new = "content = $3, content_json = $4, metadata = $5"
    sql = f"update transcript set {new} where session_no = {_SESSION_NO} and seq = $2"
    await connection.fetch(sql, row.session_id, row.seq, row.content, row.content_json, row.metadata)
    gone = "delete from deliveries where session_id = $1 and number / 1000 = $2"
    await connection.fetch(gone, row.session_id, row.seq)


async def _erase_calls(connection: Connection, row: CallsErased) -> None:
    sql = "update tool_calls set parameters = '', result = '' where run_id = $1 and tool_name = $2"
    await connection.fetch(sql, row.run_id, row.tool_name)


async def _erase_requests(connection: Connection, row: RequestsErased) -> None:
    place = (row.session_id, row.run_id, row.since)
    sql = f"update inbox set body_hash = '' where session_no = {_SESSION_NO} and (run_id = $2 or created_at >= $3)"
    await connection.fetch(sql, *place)
    sql = "update platform_events set body_hash = '' where session_id = $1 and (run_id = $2 or received_at >= $3)"
    await connection.fetch(sql, *place)


async def _settle(connection: Connection, row: SessionSettled) -> None:
    """The index carries the mark of a conversation's owner; it is filled again when the new one looks."""
    sql = "update sessions set boot = null where session_id = $1 returning session_no"
    number = await connection.fetchval(sql, row.session_id)
    for table in ("thread_search_progress", "thread_search"):  # whoever is just filling holds the progress
        await connection.fetch(f"delete from {table} where session_no = $1", number)


FORGETTING: Mapping[type, Callable[[Connection, Any], Awaitable[None]]] = {
    SessionGone: _forget,
    SessionSettled: _settle,
    LogTrimmed: _trim,
    FactErased: _erase_fact,
    ItemErased: _erase_item,
    CallsErased: _erase_calls,
    RequestsErased: _erase_requests,
}


class KeepingReads(HasReader):
    """The part of the store that forgets."""

    async def words_of(self, workspace_id: str, user_id: str | None) -> int:
        found = await self.reader.one(_WORDS, *escaped_column([workspace_id, user_id]))
        return int(found[0]) if found else 0

    async def trimmed(self, session_id: str) -> Head:
        sql = "select trimmed_seq, trimmed_digest from sessions where session_id = $1"
        found = await self.reader.one(sql, session_id)
        return Head(*found) if found else Head()

    async def sessions_opened_before(self, time: float, *, after: int = 0, limit: int = 200) -> Sequence[OldSession]:
        return [OldSession(*found) for found in await self.reader.all(_OPENED_BEFORE, after, time, limit)]

    async def oldest_facts(self, session_id: str, *, limit: int = 1000) -> Sequence[OldFact]:
        return [OldFact(*found) for found in await self.reader.all(_OLDEST, session_id, limit)]

    async def forget_old(self, kind: OldRows, before: float, *, limit: int = 500) -> int:
        table, key, old = OLD[kind]
        values = (before, limit, first_id_after(before)) if kind == "runs" else (before, limit)

        async def forget(connection: Connection) -> int:
            keys = [found[0] for found in await connection.fetch(old, *values)]
            if kind == "approvals":
                await connection.fetch("delete from approval_steps where approval_id = any($1)", keys)
            await connection.fetch(f"delete from {table} where {key} = any($1)", keys)
            return len(keys)

        return await self.reader.perform(forget)

    async def purge(self, *, limit: int = 500) -> int:  # noqa: ARG002 - the port's
        """Nothing is left behind here: what is deleted goes in one commit."""
        return 0

    async def scrub(self) -> None:
        """Not ours to do: the server's files are the server's."""
