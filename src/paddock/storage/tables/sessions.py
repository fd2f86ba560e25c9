"""Conversations beside their logs: names, lists, kept members, open transactions."""

from collections.abc import Mapping, Sequence

from paddock.rules.rows.rows import (
    BEGINS_CHARS,
    BEGINS_FACTS,
    KeptMemberRow,
    SessionDetailsRow,
    SessionSummary,
    TransactionRow,
)
from paddock.storage.tables.conversations import NO_END, NUMBER, PRESENT, TURNS
from paddock.storage.tables.statements import Change, HasEngine, Query, Write, in_turn, put, several, value

# ruff: noqa: S608 - the column lists are our own, values are always bound
_BEGINS = f"""case when coalesce(d.title, '') = '' then (
  select substr(t.content, 1, {BEGINS_CHARS}) from transcript t
   where t.session_no = s.session_no and t.role = 'user' and t.item_type = 'message' and t.content <> ''
     and t.seq < (select min(seq) from transcript where session_no = s.session_no) + {BEGINS_FACTS} {PRESENT}
   order by t.seq limit 1) end"""
SUMMARIZED = f"""s.session_id, s.workspace_id, s.user_id, s.created_at, s.updated_at, s.item_count, s.session_no,
       d.title, coalesce(d.archived, false), coalesce(d.closed, false), {_BEGINS},
       (select min(a.job_id) from automations a where a.thread_id = s.session_id)"""
"""The columns of a `SessionSummary`, of sessions `s` and their details `d`."""
SUMMARY = f"select {SUMMARIZED} from sessions s left join session_details d on d.session_id = s.session_id"
_ONE = Query(SessionSummary, f"{SUMMARY} where s.session_id = :session_id")
_OF_USER = Query(
    SessionSummary,
    f"""
{SUMMARY} where s.workspace_id = :workspace_id and s.user_id = :user_id and s.session_no < :before
   and (:archived::boolean is null or coalesce(d.archived, false) = :archived)
 order by s.session_no desc limit :limit""",
)
_KEPT = Query(
    KeptMemberRow, "select {columns} from kept_members where session_id = :session_id and agent_id = :agent_id"
)
_UNDER_WAY = Query(value, "select distinct session_id from transactions order by 1")
_AGENTS = Query(
    several,
    f"""
select distinct agent_id, runner_id from runs where run_id in ({TURNS.format(number=NUMBER)}) order by 1, 2""",
)

WRITES: Mapping[type, Write] = {
    SessionDetailsRow: in_turn(
        Change("""
insert into session_details as d (session_id, title, archived, closed)
values (:session_id, :title, coalesce(:archived, false), coalesce(:closed, false))
on conflict (session_id) do update
  set title = case when :suggested then coalesce(d.title, :title) else coalesce(:title, d.title) end,
      archived = coalesce(:archived, d.archived), closed = coalesce(:closed, d.closed)""")
    ),
    KeptMemberRow: in_turn(put("kept_members", KeptMemberRow, key="session_id, agent_id", again=("left_at", "info"))),
    TransactionRow: in_turn(
        put("transactions", TransactionRow, key="tx_id", left_out=("over",), when=lambda row: not row.over),
        Change("delete from transactions where tx_id = :tx_id", when=lambda row: row.over),
    ),
}


class SessionReads(HasEngine):
    """The part of the store that looks these up."""

    async def session_summary(self, session_id: str) -> SessionSummary | None:
        return await self.engine.one(_ONE, session_id=session_id)

    async def sessions_of(
        self,
        workspace_id: str,
        user_id: str,
        *,
        before: int | None = None,
        archived: bool | None = None,
        limit: int = 50,
    ) -> Sequence[SessionSummary]:
        whose = {"workspace_id": workspace_id, "user_id": user_id}
        until = NO_END if before is None else before
        return await self.engine.all(_OF_USER, **whose, before=until, archived=archived, limit=limit)

    async def kept_member(self, session_id: str, agent_id: str) -> KeptMemberRow | None:
        return await self.engine.one(_KEPT, session_id=session_id, agent_id=agent_id)

    async def sessions_with_transactions(self) -> Sequence[str]:
        return await self.engine.all(_UNDER_WAY)

    async def agents_of_session(self, session_id: str) -> Sequence[tuple[str, str]]:
        return [(agent, runner) for agent, runner in await self.engine.all(_AGENTS, session_id=session_id)]
