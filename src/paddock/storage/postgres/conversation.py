"""What people said and were answered: inbox and transcript, written and looked up."""

from collections.abc import Sequence
from typing import Any

from paddock.rules.rows.rows import WHOLE, InboxRow, TranscriptRow, View
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.tables import insert

# ruff: noqa: S608 - the column lists are our own, values are always bound
ITEM = "seq, item_id, run_id, role, item_type, agent_id, content, content_json, created_at, metadata, subthread_id"
ITEMS = insert(
    "transcript",
    "seq int, item_id text, run_id text, role text, item_type text, agent_id text, content text, "
    "content_json bytes, created_at float, metadata bytes, subthread_id text",
    session=True,
)
_OURS = frozenset({"run_id", "role", "item_type", "agent_id"})
"""Words that the host chose: they hold nothing that was written otherwise (`texts.py`), and are read without a look."""
INBOX = "key, body_hash, run_id, created_at, opened_session"
ORDERS = insert("inbox", "key text, body_hash bytes, run_id text, created_at float, opened_session bool", session=True)

_SESSION_NO = "(select session_no from sessions where session_id = $1)"
# What an edit or a new try left behind is not part of the conversation any more.
PRESENT = """and not exists (select 1 from left_behind b where b.session_no = t.session_no
                and t.seq between b.first_seq and b.last_seq)"""
_ITEMS = f"""
select {ITEM} from transcript t
 where session_no = {_SESSION_NO} and seq < $2 and seq > $3 {{view}} {PRESENT} order by seq"""
# What waited in line when a run began, and its own input, are not what was said before it.
_AS_OF = """and not exists (select 1 from runs r where r.run_id = t.run_id and (
                r.status = 'queued' or r.begun_seq > {n} or (r.begun_seq = {n} and t.item_id = t.run_id || '.0')))"""
_READ = ", ".join(f"{name}::varchar" if name in _OURS else name for name in ITEM.split(", "))
# The bytes of an item are known without reading a long one; each row comes with those of all before it.
_WITHIN = f"""
select {_READ} from (
  select *, sum(octet_length(content) + octet_length(content_json) + octet_length(metadata)) over before_it as taken
    from ({{items}}) as page
  window before_it as (order by seq {{way}} rows between unbounded preceding and 1 preceding)) as counted
 where coalesce(taken, 0) <= {{room}} order by seq {{way}}"""
_NO_END = 1 << 62


def seen(view: View, first: int) -> tuple[str, Sequence[Any]]:
    """The condition on items `t` that leaves what a view shows, its parameters from number `first` on."""
    where, values = subthread("t", view, first)
    if view.as_of is None:
        return where, values
    return f"{where} {_AS_OF.format(n=f'${first + len(values)}')}", (*values, view.as_of)


def subthread(table: str, view: View, number: int) -> tuple[str, Sequence[Any]]:
    if view.all_subthreads:
        return "", ()
    if view.subthread_id is None:
        return f"and {table}.subthread_id is null", ()
    return f"and {table}.subthread_id = ${number}", (view.subthread_id,)


class ConversationReads(HasReader):
    """Inbox and transcript, looked up."""

    async def inbox(self, session_id: str, key: str) -> InboxRow | None:
        sql = f"select {INBOX} from inbox where session_no = {_SESSION_NO} and key = $2"
        found = await self.reader.one(sql, session_id, key)
        return InboxRow(session_id, *found) if found else None

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
        lower, upper = -1 if after is None else after, _NO_END if before is None else before
        where, more = seen(view, 5)
        values = (session_id, upper, lower, limit, *more)
        way = "desc" if newest_first else "asc"
        items = f"{_ITEMS.format(view=where)} {way} limit $4"
        if room is None:
            found = await self.reader.all(items, *values)
        else:
            within = _WITHIN.format(items=items, way=way, room=f"${len(values) + 1}")
            found = await self.reader.all(within, *values, room)
        return [TranscriptRow(session_id, *row) for row in found]

    async def transcript_count(self, session_id: str) -> int:
        found = await self.reader.one("select item_count from sessions where session_id = $1", session_id)
        return found[0] if found else 0
