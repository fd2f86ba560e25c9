"""Users and feedback in PostgreSQL, and conversations read by day: how rows are written, and what is asked of them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import astuple

from paddock.rules.rows.rows import FeedbackRow, LeftBehindRow, ThreadNameRow, TranscriptRow, UserRow
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.conversation import ITEM, PRESENT
from paddock.storage.postgres.reader import HasReader
from paddock.storage.postgres.texts import escaped_column

# ruff: noqa: S608 - the column lists are our own, values are always bound
_SET_USER = """
insert into users (workspace_id, user_id, time_zone, locale, updated_at) values ($1, $2, $3, $4, $5)
on conflict (workspace_id, user_id)
do update set time_zone = excluded.time_zone, locale = excluded.locale, updated_at = excluded.updated_at"""
_SET_FEEDBACK = """
insert into feedback (session_id, item_id, rating, comment, updated_at) values ($1, $2, $3, $4, $5)
on conflict (session_id, item_id)
do update set rating = excluded.rating, comment = excluded.comment, updated_at = excluded.updated_at"""
_LEAVE_BEHIND = """
insert into left_behind (session_no, first_seq, last_seq)
select session_no, $2, $3 from sessions where session_id = $1 on conflict do nothing"""
_SET_NAME = """
insert into thread_names (workspace_id, user_id, name, session_id) values ($1, $2, $3, $4)
on conflict (workspace_id, user_id, name) do update set session_id = excluded.session_id"""
_NAMED = """
select coalesce((select session_id from thread_names where workspace_id = $1 and user_id = $2 and name = $3),
                (select session_id from sessions where session_id = $5 and workspace_id = $1 and user_id = $2),
                case when not exists (select from tombstones where session_id = $4) then $4 end)"""
_USER = (
    "select workspace_id, user_id, time_zone, locale, updated_at from users where workspace_id = $1 and user_id = $2"
)
_OPINIONS = """
select session_id, item_id, rating, comment, updated_at from feedback
 where session_id = $1 and item_id = any($2::text[])"""
_RANGE = """
select s.session_no, (select max(seq) from transcript t where t.session_no = s.session_no)
  from sessions s where s.session_id = $1"""
_FROM = "select seq, created_at from transcript where session_no = $1 and seq >= $2 order by seq limit 1"
_SPOKEN = f"""
select {ITEM} from transcript t
 where session_no = (select session_no from sessions where session_id = $1) and seq < $2 and seq >= $3
   and item_type = 'message' and role in ('user', 'assistant') {{present}}
 order by seq {{order}} limit $4"""


async def _write_user(connection: Connection, row: UserRow) -> None:
    await connection.fetch(_SET_USER, *astuple(row))


async def _write_feedback(connection: Connection, row: FeedbackRow) -> None:
    if row.rating is None:
        sql = "delete from feedback where session_id = $1 and item_id = $2"
        await connection.fetch(sql, row.session_id, row.item_id)
    else:
        await connection.fetch(_SET_FEEDBACK, *astuple(row))


async def _leave_behind(connection: Connection, row: LeftBehindRow) -> None:
    await connection.fetch(_LEAVE_BEHIND, *astuple(row))


async def _write_name(connection: Connection, row: ThreadNameRow) -> None:
    await connection.fetch(_SET_NAME, *astuple(row))


PEOPLE_WRITES: Mapping[type, Callable[[Connection, Any], Awaitable[None]]] = {
    UserRow: _write_user,
    FeedbackRow: _write_feedback,
    LeftBehindRow: _leave_behind,
    ThreadNameRow: _write_name,
}


class PeopleReads(HasReader):
    """The part of the store that looks these up."""

    async def user(self, workspace_id: str, user_id: str) -> UserRow | None:
        found = await self.reader.one(_USER, workspace_id, user_id)
        return UserRow(*found) if found else None

    async def feedback(self, session_id: str, item_ids: Sequence[str]) -> Mapping[str, FeedbackRow]:
        rows = await self.reader.all(_OPINIONS, session_id, escaped_column(list(item_ids)))
        return {found[1]: FeedbackRow(*found) for found in rows}

    async def thread_named(self, workspace_id: str, user_id: str, name: str, first: str, old: str) -> str | None:
        return (await self.reader.one(_NAMED, workspace_id, user_id, name, first, old))[0]

    async def is_buried(self, session_id: str) -> bool:
        return await self.reader.one("select 1 from tombstones where session_id = $1", session_id) is not None

    async def place_of(self, session_id: str, moment: float) -> int:
        found = await self.reader.one(_RANGE, session_id)
        if found is None:
            return 0
        low, high = 0, (found[1] or 0) + 1
        while low < high:  # everything before `low` is earlier, `high` and what follows is not
            middle = (low + high) // 2
            item = await self.reader.one(_FROM, found[0], middle)
            if item is None or item[1] >= moment:
                high = middle
            else:
                low = item[0] + 1
        return low

    async def spoken(
        self,
        session_id: str,
        *,
        before: int,
        start: int = 0,
        limit: int = 1,
        newest_first: bool = True,
        left_behind: bool = False,
    ) -> Sequence[TranscriptRow]:
        sql = _SPOKEN.format(order="desc" if newest_first else "asc", present="" if left_behind else PRESENT)
        rows = await self.reader.all(sql, session_id, before, start, limit)
        return [TranscriptRow(session_id, *found) for found in rows]
