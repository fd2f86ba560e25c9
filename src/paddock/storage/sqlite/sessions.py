"""Conversations in SQLite beside their logs: names, lists, kept members, open transactions, and their deletion."""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paddock.rules.rows.rows import (
    BEGINS_CHARS,
    BEGINS_FACTS,
    KeptMemberRow,
    SessionDetailsRow,
    SessionSummary,
    TransactionRow,
)
from paddock.storage.sqlite.connection import Cursor
from paddock.storage.sqlite.reader import PRESENT, Reader

BEGINS = f"""
select substr(t.content, 1, {BEGINS_CHARS}) from transcript t
 where t.session_no = s.session_no and t.role = 'user' and t.item_type = 'message' and t.content <> ''
   and t.seq < (select min(seq) from transcript where session_no = s.session_no) + {BEGINS_FACTS} {PRESENT}
 order by t.seq limit 1"""
SUMMARY = f"""
select s.session_id, s.workspace_id, s.user_id, s.created_at, s.updated_at, s.item_count, s.session_no,
       d.title, coalesce(d.archived, 0), coalesce(d.closed, 0), iif(coalesce(d.title, '') = '', ({BEGINS}), null),
       (select min(a.job_id) from automations a where a.thread_id = s.session_id)
  from sessions s left join session_details d on d.session_id = s.session_id"""
_SET_DETAILS = """
insert into session_details (session_id, title, archived, closed) values (?1, ?2, coalesce(?3, 0), coalesce(?4, 0))
on conflict (session_id) do update
  set title = iif(?5, coalesce(title, ?2), coalesce(?2, title)),
      archived = coalesce(?3, archived), closed = coalesce(?4, closed)"""
_KEEP = """
insert into kept_members (session_id, agent_id, left_at, info) values (?, ?, ?, ?)
on conflict (session_id, agent_id) do update set left_at = excluded.left_at, info = excluded.info"""
_BEGIN = """
insert into transactions (tx_id, session_id, kind, created_at) values (?, ?, ?, ?) on conflict (tx_id) do nothing"""
TURNS = """
select turn_id from facts where session_no = ?1 and turn_id is not null union
select run_id from inbox where session_no = ?1"""
"""The runs of a session, found by its facts and orders: an index over all runs would cost every run a page."""
_NO_END = 1 << 62


def _write_details(cursor: Cursor, row: SessionDetailsRow) -> None:
    cursor.execute(_SET_DETAILS, (row.session_id, row.title, row.archived, row.closed, row.suggested))


def _write_kept(cursor: Cursor, row: KeptMemberRow) -> None:
    cursor.execute(_KEEP, (row.session_id, row.agent_id, row.left_at, row.info))


def _write_transaction(cursor: Cursor, row: TransactionRow) -> None:
    if row.over:
        cursor.execute("delete from transactions where tx_id = ?", (row.tx_id,))
    else:
        cursor.execute(_BEGIN, (row.tx_id, row.session_id, row.kind, row.created_at))


SESSION_WRITES: Mapping[type, Callable[[Cursor, Any], None]] = {
    SessionDetailsRow: _write_details,
    KeptMemberRow: _write_kept,
    TransactionRow: _write_transaction,
}


def summary_of(found: Any) -> SessionSummary:
    return SessionSummary(
        *found[:8], archived=bool(found[8]), closed=bool(found[9]), begins=found[10], automation_id=found[11]
    )


class SessionReads(ABC):
    """The part of the store that looks these rows up."""

    @property
    @abstractmethod
    def _reader(self) -> Reader: ...

    async def session_summary(self, session_id: str) -> SessionSummary | None:
        found = self._reader.one(f"{SUMMARY} where s.session_id = ?", (session_id,))
        return summary_of(found) if found else None

    async def sessions_of(
        self,
        workspace_id: str,
        user_id: str,
        *,
        before: int | None = None,
        archived: bool | None = None,
        limit: int = 50,
    ) -> Sequence[SessionSummary]:
        sql = f"""{SUMMARY} where s.workspace_id = ? and s.user_id = ? and s.session_no < ?
           and (? is null or coalesce(d.archived, 0) = ?) order by s.session_no desc limit ?"""
        until = _NO_END if before is None else before
        rows = self._reader.all(sql, (workspace_id, user_id, until, archived, archived, limit))
        return [summary_of(found) for found in rows]

    async def kept_member(self, session_id: str, agent_id: str) -> KeptMemberRow | None:
        sql = "select session_id, agent_id, left_at, info from kept_members where session_id = ? and agent_id = ?"
        found = self._reader.one(sql, (session_id, agent_id))
        return KeptMemberRow(*found) if found else None

    async def sessions_with_transactions(self) -> Sequence[str]:
        return [found[0] for found in self._reader.all("select distinct session_id from transactions order by 1")]

    async def agents_of_session(self, session_id: str) -> Sequence[tuple[str, str]]:
        turns = TURNS.replace("?1", "(select session_no from sessions where session_id = ?1)")
        sql = f"select distinct agent_id, runner_id from runs where run_id in ({turns}) order by 1, 2"
        return [(found[0], found[1]) for found in self._reader.all(sql, (session_id,))]
