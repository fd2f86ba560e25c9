"""How SQLite forgets: trimmed logs, erased words, deleted conversations, rows past their time.

A deleted conversation is out of reach with its first commit; what it leaves is removed in parts, after a crash too.
"""

# ruff: noqa: S608 - the table names are our own, values are always bound
from abc import ABC, abstractmethod
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
from paddock.storage.sqlite.connection import Connection, Cursor
from paddock.storage.sqlite.pool import Answer
from paddock.storage.sqlite.reader import Reader
from paddock.storage.sqlite.sessions import TURNS

BURIED = "deleted:"
"""How the name of a deleted session begins, so that nobody finds it while its rows are removed."""
MERGE_PAGES = 500
"""Pages of the search index that are rewritten in one commit."""
_NUMBER = "select session_no from sessions where session_id = ?"
_OWNED = "select session_no, epoch from sessions where session_id = ?"
_BURY = "update sessions set session_id = ? || session_id, workspace_id = '', user_id = '' where session_no = ?"
_PURGED = "select session_no from sessions where session_id >= 'deleted:' and session_id < 'deleted;' limit 1"
_FEWER_WORDS = f"""
update sessions set word_bytes = max(0, word_bytes + coalesce((
  select sum(?2 - length(payload)) from facts where session_no = ?1 and kind <> '{DELTA}' and {{which}}), 0))
 where session_no = ?1"""
"""Facts are about to have so many bytes each."""
_WORDS = """
select coalesce(sum(word_bytes), 0) from sessions where workspace_id = ?1 and (?2 is null or user_id = ?2)"""
_OPENED_BEFORE = """
select session_no, session_id, workspace_id, user_id, updated_at, trimmed_seq from sessions
 where session_no > ? and created_at < ? and user_id <> '' order by session_no limit ?"""
_OLDEST = f"""
select seq, turn_id, time, kind, digest from facts where session_no = ({_NUMBER}) order by position, seq limit ?"""
_OLD_RUNS = """
select run_id from runs r where run_id < ? and ended_at < ? and not exists (
  select 1 from sessions s where s.session_id = r.session_id and s.trimmed_seq < r.last_seq) limit ?"""
_FORGET: Mapping[str, str] = {
    # Numbered in order of time: the oldest are the first.
    "audit": """
delete from audit where time < ?1 and audit_no in (select audit_no from audit order by audit_no limit ?2)""",
    "tool_calls": """
delete from tool_calls
 where started_at < ?1 and call_no in (select call_no from tool_calls order by call_no limit ?2)""",
    "model_usage": """
delete from model_usage
 where started_at < ?1 and usage_no in (select usage_no from model_usage order by usage_no limit ?2)""",
    "deliveries": """
delete from deliveries where delivery_id in (select delivery_id from deliveries where created_at < ?1 limit ?2)""",
    "platform_events": """
delete from platform_events where (platform, event_id) in (
  select platform, event_id from platform_events where received_at < ?1 limit ?2)""",
    "automation_ticks": """
delete from automation_ticks where (job_id, tick) in (
  select job_id, tick from automation_ticks where at < ?1 limit ?2)""",
    "tombstones": """
delete from tombstones where session_id in (select session_id from tombstones where deleted_at < ?1 limit ?2)""",
    "approvals": """
delete from approvals where approval_id in (select approval_id from approvals where created_at < ?1 limit ?2)""",
}


# --- writing ---------------------------------------------------------------------------------------------------------


OF_SESSION = (
    *("session_details", "kept_members", "transactions", "feedback", "thread_names"),
    *("platform_events", "platform_conversations", "deliveries"),
)


def _bury(cursor: Cursor, row: SessionGone) -> None:
    found = cursor.execute(_OWNED, (row.session_id,)).fetchone()
    if found is not None:
        if row.epoch is not None and found[1] > row.epoch:
            raise HostError(ErrorCode.CONFLICT, GONE_ON, retryable=True)
        runs = [run for (run,) in cursor.execute(TURNS, (found[0],)).fetchall()]
        cursor.executemany("delete from runs where run_id = ?", [(run,) for run in runs])
        cursor.executemany("delete from tool_calls where run_id = ?", [(run,) for run in runs])
        _drop_approvals(cursor, "select approval_id from approvals where run_id = ?", runs)
        for table in ("inbox", "left_behind"):
            cursor.execute(f"delete from {table} where session_no = ?", (found[0],))
        cursor.execute(_BURY, (BURIED, found[0]))
    for table in OF_SESSION:
        cursor.execute(f"delete from {table} where session_id = ?", (row.session_id,))
    cursor.execute("delete from artifacts where conversation_id = ?", (row.session_id,))
    cursor.executemany("delete from state where scope_key = ?", [(key,) for key in row.scope_keys])
    if row.buried_at is not None:
        cursor.execute("insert or ignore into tombstones values (?, ?)", (row.session_id, row.buried_at))


def _drop_approvals(cursor: Cursor, found: str, runs: Sequence[str]) -> None:
    for table in ("approval_steps", "approvals"):
        cursor.executemany(f"delete from {table} where approval_id in ({found})", [(run,) for run in runs])


def _trim(cursor: Cursor, row: LogTrimmed) -> None:
    number = cursor.execute(_NUMBER, (row.session_id,)).fetchone()[0]
    _trim_requests(cursor, row, number)
    cursor.execute(_FEWER_WORDS.format(which="position <= ?3 and seq <= ?3"), (number, 0, row.through))
    cursor.execute(
        "delete from facts where session_no = ? and position <= ? and seq <= ?", (number, row.through, row.through)
    )
    cursor.execute("delete from transcript where session_no = ? and seq <= ?", (number, row.through))
    items = cursor.execute("select changes()").fetchone()[0]
    sql = "update sessions set trimmed_seq = ?, trimmed_digest = ?, item_count = item_count - ? where session_no = ?"
    cursor.execute(sql, (row.through, row.digest, items, number))


def _trim_requests(cursor: Cursor, row: LogTrimmed, number: int) -> None:
    """The digests of what was asked go with what was said."""
    sql = "select max(time) from facts where session_no = ? and position <= ? and seq <= ?"
    last = cursor.execute(sql, (number, row.through, row.through)).fetchone()[0]
    cursor.execute("update inbox set body_hash = x'' where session_no = ? and created_at <= ?", (number, last))
    sql = "update platform_events set body_hash = x'' where session_id = ? and received_at <= ?"
    cursor.execute(sql, (row.session_id, last))


def _erase_fact(cursor: Cursor, row: FactErased) -> None:
    number = cursor.execute(_NUMBER, (row.session_id,)).fetchone()
    if number is not None:
        left = (number[0], len(row.payload), row.position, row.seq)
        cursor.execute(_FEWER_WORDS.format(which="position = ?3 and seq = ?4"), left)
    sql = f"update facts set payload = ?, metadata = ? where session_no = ({_NUMBER}) and position = ? and seq = ?"
    cursor.execute(sql, (row.payload, row.metadata, row.session_id, row.position, row.seq))


def _erase_item(cursor: Cursor, row: ItemErased) -> None:
    sql = f"""
    update transcript set content = ?, content_json = ?, metadata = ? where session_no = ({_NUMBER}) and seq = ?"""
    cursor.execute(sql, (row.content, row.content_json, row.metadata, row.session_id, row.seq))
    gone = "delete from deliveries where session_id = ? and number / 1000 = ?"
    cursor.execute(gone, (row.session_id, row.seq))


def _erase_calls(cursor: Cursor, row: CallsErased) -> None:
    sql = "update tool_calls set parameters = x'', result = x'' where run_id = ? and tool_name = ?"
    cursor.execute(sql, (row.run_id, row.tool_name))


def _erase_requests(cursor: Cursor, row: RequestsErased) -> None:
    place = (row.session_id, row.run_id, row.since)
    sql = f"update inbox set body_hash = x'' where session_no = ({_NUMBER}) and (run_id = ? or created_at >= ?)"
    cursor.execute(sql, place)
    sql = "update platform_events set body_hash = x'' where session_id = ? and (run_id = ? or received_at >= ?)"
    cursor.execute(sql, place)


def _settle(cursor: Cursor, row: SessionSettled) -> None:
    """The index carries the mark of a conversation's owner; it is filled again when the new one looks."""
    number = cursor.execute(_NUMBER, (row.session_id,)).fetchone()[0]
    cursor.execute("delete from thread_search where rowid >= ? and rowid < ?", (number << 32, (number + 1) << 32))
    cursor.execute("delete from thread_search_progress where session_no = ?", (number,))


FORGETTING: Mapping[type, Callable[[Cursor, Any], None]] = {
    SessionGone: _bury,
    SessionSettled: _settle,
    LogTrimmed: _trim,
    FactErased: _erase_fact,
    ItemErased: _erase_item,
    CallsErased: _erase_calls,
    RequestsErased: _erase_requests,
}


class _Deed:
    """Something done inside a commit that tells how much there was to do."""

    def __init__(self, work: Callable[[Cursor], int]) -> None:
        self._work = work
        self.count = 0

    def __call__(self, cursor: Cursor) -> None:
        self.count = self._work(cursor)


def _changes(cursor: Cursor) -> int:
    return int(cursor.execute("select changes()").fetchone()[0])


def _purge(cursor: Cursor, limit: int) -> int:
    found = cursor.execute(_PURGED).fetchone()
    if found is None:
        return 0
    number = found[0]
    cursor.execute(
        "delete from facts where fact_no in (select fact_no from facts where session_no = ? limit ?)", (number, limit)
    )
    count = _changes(cursor)
    part = "select seq from transcript where session_no = ?1 limit ?2"
    sql = f"delete from transcript where session_no = ?1 and seq in ({part})"
    cursor.execute(sql, (number, limit))
    count += _changes(cursor)
    if not count:
        cursor.execute("delete from sessions where session_no = ?", (number,))
        count = 1
    return count


def _merge(cursor: Cursor, pages: int) -> int:
    """One step of rewriting the search indexes, which keep deleted words until then. Done: fewer than two changes."""
    return max(_merged(cursor, index, pages) for index in ("search", "thread_search"))


def _merged(cursor: Cursor, index: str, pages: int) -> int:
    before = cursor.execute("select total_changes()").fetchone()[0]
    cursor.execute(f"insert into {index} ({index}, rank) values ('merge', ?)", (pages,))
    return int(cursor.execute("select total_changes()").fetchone()[0]) - int(before)


# --- the part of the store -------------------------------------------------------------------------------------------


class KeepingReads(ABC):
    @property
    @abstractmethod
    def _reader(self) -> Reader: ...

    @abstractmethod
    def perform(self, deed: Callable[[Cursor], None]) -> Awaitable[None]: ...

    @abstractmethod
    def ask(self, question: Callable[[Connection], Answer]) -> Awaitable[Answer]: ...

    @abstractmethod
    def fold(self) -> Awaitable[None]: ...

    async def trimmed(self, session_id: str) -> Head:
        return self._reader.trimmed(session_id)

    async def words_of(self, workspace_id: str, user_id: str | None) -> int:
        def add_up(connection: Connection) -> int:
            return int(connection.execute(_WORDS, (workspace_id, user_id)).fetchone()[0])

        return await self.ask(add_up)

    async def sessions_opened_before(self, time: float, *, after: int = 0, limit: int = 200) -> Sequence[OldSession]:
        def look(connection: Connection) -> list[OldSession]:
            return [OldSession(*row) for row in connection.execute(_OPENED_BEFORE, (after, time, limit))]

        return await self.ask(look)

    async def oldest_facts(self, session_id: str, *, limit: int = 1000) -> Sequence[OldFact]:
        def look(connection: Connection) -> list[OldFact]:
            return [OldFact(*row) for row in connection.execute(_OLDEST, (session_id, limit))]

        return await self.ask(look)

    async def forget_old(self, kind: OldRows, before: float, *, limit: int = 500) -> int:
        if kind == "runs":
            return await self._forget_runs(before, limit)

        def forget(cursor: Cursor) -> int:
            cursor.execute(_FORGET[kind], (before, limit))
            count = _changes(cursor)
            if kind == "approvals" and count:
                cursor.execute(
                    "delete from approval_steps where approval_id not in (select approval_id from approvals)"
                )
            return count

        return await self._done(forget)

    async def _forget_runs(self, before: float, limit: int) -> int:
        """Ids of runs are in order of time, so the old ones are one range of the table."""

        def look(connection: Connection) -> list[str]:
            return [found[0] for found in connection.execute(_OLD_RUNS, (first_id_after(before), before, limit))]

        def forget(cursor: Cursor) -> int:
            cursor.executemany("delete from runs where run_id = ?", [(run,) for run in runs])
            return len(runs)

        runs = await self.ask(look)
        return await self._done(forget) if runs else 0

    async def purge(self, *, limit: int = 500) -> int:
        if self._reader.one(_PURGED) is None:
            return 0
        return await self._done(lambda cursor: _purge(cursor, limit))

    async def scrub(self) -> None:
        pages = -MERGE_PAGES  # negative to begin with: all of the index, not only what is due anyway
        while await self._done(lambda cursor, pages=pages: _merge(cursor, pages)) >= 2:
            pages = MERGE_PAGES
        await self.fold()

    async def _done(self, work: Callable[[Cursor], int]) -> int:
        deed = _Deed(work)
        await self.perform(deed)
        return deed.count
