"""Conversations: the inbox, runs and the transcript, whole or as a view shows it."""

from collections.abc import Sequence
from functools import partial

from paddock.rules.rows.rows import WHOLE, InboxRow, RunRow, TranscriptRow, View
from paddock.rules.values import replace
from paddock.storage.tables.statements import HasEngine, Query, SizedQuery, value
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
_SIZED = "octet_length(content) + octet_length(content_json) + octet_length(metadata)"
# What waited in line when a run began, and its own input, are not what was said before it.
_AS_OF = """and not exists (
  select 1 from runs r where r.run_id = t.run_id and (
    r.status = 'queued' or r.begun_seq > :as_of or (r.begun_seq = :as_of and t.item_id = t.run_id || '.0')))"""
_COUNT = Query(value, "select item_count from sessions where session_id = :session_id")
_ORDER = f"select {ORDERS.columns} from inbox where session_no = {NUMBER} and key = :key"
_RUN = Query(RunRow, "select {columns} from runs where run_id = :run_id")
_UNFINISHED = Query(
    RunRow, "select {columns} from runs where status in ('queued', 'running') order by created_at, run_id"
)
_LABEL = Query(
    RunRow,
    """
select {columns} from runs
 where workspace_id = :workspace_id and user_id = :user_id and client_run_id = :client_run_id and client_run_id <> ''
 order by session_id limit :limit""",
)


def subthread(table: str, view: View) -> str:
    """The condition that a row is of the view's thread; its value is `subthread_id`."""
    if view.all_subthreads:
        return ""
    if view.subthread_id is None:
        return f"and {table}.subthread_id is null"
    return f"and {table}.subthread_id = :subthread_id"


class ConversationReads(HasEngine):
    """The part of the store that looks these up."""

    async def inbox(self, session_id: str, key: str) -> InboxRow | None:
        query = Query(partial(InboxRow, session_id), _ORDER)
        row = await self.engine.one(query, session_id=session_id, key=key)
        return row and replace(row, opened_session=bool(row.opened_session))

    async def run(self, run_id: str) -> RunRow | None:
        return await self.engine.one(_RUN, run_id=run_id)

    async def runs_by_label(
        self, workspace_id: str, user_id: str, client_run_id: str, *, limit: int = 2
    ) -> Sequence[RunRow]:
        whose = {"workspace_id": workspace_id, "user_id": user_id}
        return await self.engine.all(_LABEL, **whose, client_run_id=client_run_id, limit=limit)

    async def unfinished_runs(self) -> Sequence[RunRow]:
        return await self.engine.all(_UNFINISHED)

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
        sql, made = _ITEMS.format(view=where, order=order), partial(TranscriptRow, session_id)
        asked = {
            "session_id": session_id,
            "before": NO_END if before is None else before,
            "after": -1 if after is None else after,
            "limit": limit,
            "subthread_id": view.subthread_id,
            "as_of": view.as_of,
        }
        if room is None:
            return await self.engine.all(Query(made, sql), **asked)
        query = SizedQuery(made, sql, sized=_SIZED, size_of=lambda item: item.stored_bytes, order=order)
        return await self.engine.some(query, room, **asked)

    async def transcript_count(self, session_id: str) -> int:
        return await self.engine.one(_COUNT, session_id=session_id) or 0
