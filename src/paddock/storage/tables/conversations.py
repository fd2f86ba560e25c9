"""Conversations: the inbox, runs and the transcript, whole or as a view shows it. And what stands beside their logs:
names, lists, kept members, open transactions.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from paddock.rules.rows.rows import (
    BEGINS_CHARS,
    BEGINS_FACTS,
    WHOLE,
    InboxRow,
    KeptMemberRow,
    RunRow,
    SessionDetailsRow,
    SessionSummary,
    TransactionRow,
    TranscriptRow,
    View,
)
from paddock.rules.values import replace
from paddock.storage.tables.statements import Change, HasEngine, Query, Write, in_turn, many, one, put, several, value
from paddock.storage.tables.table import Table

# ruff: noqa: S608 - the column lists are our own, values are always bound
NO_END = 1 << 62
NUMBER = "(select session_no from sessions where session_id = :session_id)"
PRESENT = """and not exists (select 1 from left_behind b where b.session_no = t.session_no
                and t.seq between b.first_seq and b.last_seq)"""
"""What an edit or a new try left behind is not part of the conversation any more."""
TURNS = """
select turn_id from facts where session_no = {number} and turn_id is not null union
select run_id from inbox where session_no = {number}"""
"""The runs of a session, found by its facts and orders: an index over all runs would cost every run a page."""


def _written_again(known: RunRow, row: RunRow) -> RunRow:
    """Merge two writes of one run: the later one, with the owner of the first."""
    return replace(
        row,
        session_id=known.session_id,
        workspace_id=known.workspace_id,
        user_id=known.user_id,
        client_run_id=known.client_run_id,
        created_at=known.created_at,
        subthread_id=known.subthread_id,
    )


# To whom a run belongs is written once, so these columns (and their index) are left alone by a later write.
_LATER = ("agent_id", "runner_id", "status", "code", "message", "started_at", "ended_at", "deadline_at")
RUNS = Table(
    "runs",
    RunRow,
    key=("run_id",),
    again=(*_LATER, "first_seq", "last_seq", "grant", "usage", "begun_seq"),
    order="run_id",
    merged=_written_again,
)
ITEMS = Table("transcript", TranscriptRow, of_session=True)
ORDERS = Table("inbox", InboxRow, of_session=True)

_OURS = frozenset({"run_id", "role", "item_type", "agent_id"})
"""Words that the host chose: PostgreSQL need not look whether they were written otherwise (`postgres/texts.py`)."""
_READ = ", ".join(f"{name}::varchar" if name in _OURS else name for name in ITEMS.names)
_ITEMS = f"""
select {_READ} from transcript t
 where session_no = {NUMBER} and seq < :before and seq > :after {{view}} {PRESENT} order by {{order}} limit :limit"""
_ITEM = f"""
select {_READ} from transcript
 where session_no = {NUMBER} and seq >= :start and seq <= :end and item_id = :item_id limit 1"""
# The bytes of an item are known without reading a long one: so those that fit are chosen before any is read.
_WITHIN = f"""
select {_READ} from transcript where session_no = {NUMBER} and seq in (
  select seq from (
    select seq, sum(size) over (order by {{order}} rows between unbounded preceding and 1 preceding) as taken from (
      select seq, octet_length(content) + octet_length(content_json) + octet_length(metadata) as size
        from transcript t where session_no = {NUMBER} and seq < :before and seq > :after {{view}} {PRESENT}
       order by {{order}} limit :limit) as page) as counted
   where coalesce(taken, 0) <= :room)
 order by {{order}}"""
# What waited in line when a run began, and its own input, are not what was said before it.
_AS_OF = """and not exists (
  select 1 from runs r where r.run_id = t.run_id and (
    r.status = 'queued' or r.begun_seq > :as_of or (r.begun_seq = :as_of and t.item_id = t.run_id || '.0')))"""
_ORDER = f"select {ORDERS.columns} from inbox where session_no = {NUMBER} and key = :key"


def subthread(table: str, view: View) -> str:
    """The condition that a row is of the view's thread; its value is `subthread_id`."""
    if view.all_subthreads:
        return ""
    if view.subthread_id is None:
        return f"and {table}.subthread_id is null"
    return f"and {table}.subthread_id = :subthread_id"


class ConversationReads(HasEngine):
    async def inbox(self, session_id: str, key: str) -> InboxRow | None:
        query = Query(partial(InboxRow, session_id), _ORDER)
        row = await self.engine.one(query, session_id=session_id, key=key)
        return row and replace(row, opened_session=bool(row.opened_session))

    run = one(RunRow, "select {columns} from runs where run_id = :run_id")

    runs_by_label = many(
        RunRow,
        """
select {columns} from runs
 where workspace_id = :workspace_id and user_id = :user_id and client_run_id = :client_run_id and client_run_id <> ''
 order by session_id limit :limit""",
        limit=2,
    )
    unfinished_runs = many(
        RunRow, "select {columns} from runs where status in ('queued', 'running') order by created_at, run_id"
    )

    async def transcript(
        self,
        session_id: str,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
        newest_first: bool = True,
        room: int | None = None,
        view: View = WHOLE,
    ) -> Sequence[TranscriptRow]:
        where = subthread("t", view) if view.as_of is None else f"{subthread('t', view)} {_AS_OF}"
        order = "seq desc" if newest_first else "seq asc"
        sql = (_ITEMS if room is None else _WITHIN).format(view=where, order=order)
        asked = {
            "session_id": session_id,
            "before": NO_END if before is None else before,
            "after": -1 if after is None else after,
            "limit": limit,
            "subthread_id": view.subthread_id,
            "as_of": view.as_of,
            "room": room,
        }
        return await self.engine.all(Query(partial(TranscriptRow, session_id), sql), **asked)

    async def item(self, session_id: str, item_id: str, *, start: int, end: int) -> TranscriptRow | None:
        query = Query(partial(TranscriptRow, session_id), _ITEM)
        return await self.engine.one(query, session_id=session_id, item_id=item_id, start=start, end=end)

    transcript_count = one(value, "select item_count from sessions where session_id = :session_id", otherwise=0)


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
_OF_USER = Query(
    SessionSummary,
    f"""
{SUMMARY} where s.workspace_id = :workspace_id and s.user_id = :user_id and s.session_no < :before
   and (:archived::boolean is null or coalesce(d.archived, false) = :archived)
 order by s.session_no desc limit :limit""",
)
_AGENTS = Query(
    several,
    f"""
select distinct agent_id, runner_id from runs where run_id in ({TURNS.format(number=NUMBER)}) order by 1, 2""",
)
_SUBTHREADS = Query(
    value,
    f"""
select distinct subthread_id from runs
 where subthread_id is not null and run_id in ({TURNS.format(number=NUMBER)}) order by 1""",
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
    session_summary = one(SessionSummary, f"{SUMMARY} where s.session_id = :session_id")

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

    kept_member = one(
        KeptMemberRow, "select {columns} from kept_members where session_id = :session_id and agent_id = :agent_id"
    )
    sessions_with_transactions = many(value, "select distinct session_id from transactions order by 1")

    async def agents_of_session(self, session_id: str) -> Sequence[tuple[str, str]]:
        return [(agent, runner) for agent, runner in await self.engine.all(_AGENTS, session_id=session_id)]

    async def subthreads_of_session(self, session_id: str) -> Sequence[str]:
        return await self.engine.all(_SUBTHREADS, session_id=session_id)
