"""Conversations beside their logs: names, lists, kept members, open transactions."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from paddock.rules.rows.rows import (
    BEGINS_CHARS,
    BEGINS_FACTS,
    KeptMemberRow,
    SessionDetailsRow,
    SessionSummary,
    TransactionRow,
)
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.conversation import PRESENT
from paddock.storage.postgres.reader import HasReader

# ruff: noqa: S608 - the column lists are our own, values are always bound
BEGINS = f"""case when coalesce(d.title, '') = '' then (
  select left(t.content, {BEGINS_CHARS}) from transcript t
   where t.session_no = s.session_no and t.role = 'user' and t.item_type = 'message' and t.content <> ''
     and t.seq < (select min(seq) from transcript where session_no = s.session_no) + {BEGINS_FACTS} {PRESENT}
   order by t.seq limit 1) end"""
JOB_IN_IT = "(select min(a.job_id) from automations a where a.thread_id = s.session_id)"
SUMMARY = f"""
select s.session_id, s.workspace_id, s.user_id, s.created_at, s.updated_at, s.item_count, s.session_no,
       d.title, coalesce(d.archived, false), coalesce(d.closed, false), {BEGINS}, {JOB_IN_IT}
  from sessions s left join session_details d on d.session_id = s.session_id"""
_OF_USER = f"""
{SUMMARY} where s.workspace_id = $1 and s.user_id = $2 and s.session_no < $3
   and ($4::boolean is null or coalesce(d.archived, false) = $4) order by s.session_no desc limit $5"""
_SET_DETAILS = """
insert into session_details as d (session_id, title, archived, closed)
values ($1, $2, coalesce($3, false), coalesce($4, false))
on conflict (session_id) do update
  set title = case when $5 then coalesce(d.title, $2) else coalesce($2, d.title) end,
      archived = coalesce($3, d.archived), closed = coalesce($4, d.closed)"""
_KEPT = "session_id, agent_id, left_at, info"
_KEEP = f"""
insert into kept_members ({_KEPT}) values ($1, $2, $3, $4)
on conflict (session_id, agent_id) do update set left_at = excluded.left_at, info = excluded.info"""
_BEGIN = """
insert into transactions (tx_id, session_id, kind, created_at) values ($1, $2, $3, $4)
on conflict (tx_id) do nothing"""
_END = "delete from transactions where tx_id = $1"
# The runs of a session are found by its facts and orders: an index over all runs would cost every run.
TURNS = """
select turn_id from facts where session_no = $1 and turn_id is not null union
select run_id from inbox where session_no = $1"""
_SESSION_NO = "(select session_no from sessions where session_id = $1)"
_AGENTS = f"""
select distinct agent_id, runner_id from runs where run_id in ({TURNS.replace("$1", _SESSION_NO)}) order by 1, 2"""
_NO_END = 1 << 62


async def _write_details(connection: Connection, row: SessionDetailsRow) -> None:
    await connection.fetch(_SET_DETAILS, row.session_id, row.title, row.archived, row.closed, row.suggested)


async def _write_kept(connection: Connection, row: KeptMemberRow) -> None:
    await connection.fetch(_KEEP, row.session_id, row.agent_id, row.left_at, row.info)


async def _write_transaction(connection: Connection, row: TransactionRow) -> None:
    if row.over:
        await connection.fetch(_END, row.tx_id)
    else:
        await connection.fetch(_BEGIN, row.tx_id, row.session_id, row.kind, row.created_at)


SESSION_WRITES: Mapping[type, Callable[[Connection, Any], Awaitable[None]]] = {
    SessionDetailsRow: _write_details,
    KeptMemberRow: _write_kept,
    TransactionRow: _write_transaction,
}


class SessionReads(HasReader):
    """Conversations, looked up."""

    async def session_summary(self, session_id: str) -> SessionSummary | None:
        found = await self.reader.one(f"{SUMMARY} where s.session_id = $1", session_id)
        return SessionSummary(*found) if found else None

    async def sessions_of(
        self,
        workspace_id: str,
        user_id: str,
        *,
        before: int | None = None,
        archived: bool | None = None,
        limit: int = 50,
    ) -> Sequence[SessionSummary]:
        until = _NO_END if before is None else before
        rows = await self.reader.all(_OF_USER, workspace_id, user_id, until, archived, limit)
        return [SessionSummary(*found) for found in rows]

    async def kept_member(self, session_id: str, agent_id: str) -> KeptMemberRow | None:
        sql = f"select {_KEPT} from kept_members where session_id = $1 and agent_id = $2"
        found = await self.reader.one(sql, session_id, agent_id)
        return KeptMemberRow(*found) if found else None

    async def sessions_with_transactions(self) -> Sequence[str]:
        return [found[0] for found in await self.reader.all("select distinct session_id from transactions order by 1")]

    async def agents_of_session(self, session_id: str) -> Sequence[tuple[str, str]]:
        return [(found[0], found[1]) for found in await self.reader.all(_AGENTS, session_id)]
