"""Users and feedback in SQLite, and conversations read by day: how rows are written, and the questions about them."""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import astuple

from paddock.rules.rows.rows import FeedbackRow, LeftBehindRow, ThreadNameRow, TranscriptRow, UserRow
from paddock.storage.sqlite.connection import Cursor
from paddock.storage.sqlite.reader import PRESENT, Reader
from paddock.storage.sqlite.rows import ITEM

_SET_USER = """
insert into users (workspace_id, user_id, time_zone, locale, updated_at) values (?, ?, ?, ?, ?)
on conflict (workspace_id, user_id)
do update set time_zone = excluded.time_zone, locale = excluded.locale, updated_at = excluded.updated_at"""
_SET_FEEDBACK = """
insert into feedback (session_id, item_id, rating, comment, updated_at) values (?, ?, ?, ?, ?)
on conflict (session_id, item_id)
do update set rating = excluded.rating, comment = excluded.comment, updated_at = excluded.updated_at"""
_LEAVE_BEHIND = """
insert into left_behind (session_no, first_seq, last_seq)
select session_no, ?2, ?3 from sessions where session_id = ?1 on conflict do nothing"""
_SET_NAME = """
insert into thread_names (workspace_id, user_id, name, session_id) values (?, ?, ?, ?)
on conflict (workspace_id, user_id, name) do update set session_id = excluded.session_id"""
_NAMED = """
select coalesce((select session_id from thread_names where workspace_id = ?1 and user_id = ?2 and name = ?3),
                (select session_id from sessions where session_id = ?5 and workspace_id = ?1 and user_id = ?2),
                case when not exists (select 1 from tombstones where session_id = ?4) then ?4 end)"""
_NUMBER = "select session_no from sessions where session_id = ?"
_FROM = "select seq, created_at from transcript where session_no = ? and seq >= ? order by seq limit 1"
_LAST = "select max(seq) from transcript where session_no = ?"
_SPOKEN = f"""
select seq, {ITEM} from transcript t
 where session_no = ({_NUMBER}) and seq < ? and seq >= ?
   and item_type = 'message' and role in ('user', 'assistant') {{present}}
 order by seq {{order}} limit ?"""


def _write_user(cursor: Cursor, row: UserRow) -> None:
    cursor.execute(_SET_USER, astuple(row))


def _write_feedback(cursor: Cursor, row: FeedbackRow) -> None:
    if row.rating is None:
        cursor.execute("delete from feedback where session_id = ? and item_id = ?", (row.session_id, row.item_id))
    else:
        cursor.execute(_SET_FEEDBACK, astuple(row))


def _leave_behind(cursor: Cursor, row: LeftBehindRow) -> None:
    cursor.execute(_LEAVE_BEHIND, astuple(row))


def _write_name(cursor: Cursor, row: ThreadNameRow) -> None:
    cursor.execute(_SET_NAME, astuple(row))


PEOPLE_WRITES: Mapping[type, Callable[[Cursor, Any], None]] = {
    UserRow: _write_user,
    FeedbackRow: _write_feedback,
    LeftBehindRow: _leave_behind,
    ThreadNameRow: _write_name,
}


class PeopleReads(ABC):
    """The part of the store that looks these up."""

    @property
    @abstractmethod
    def _reader(self) -> Reader: ...

    async def user(self, workspace_id: str, user_id: str) -> UserRow | None:
        sql = "select workspace_id, user_id, time_zone, locale, updated_at from users"
        found = self._reader.one(f"{sql} where workspace_id = ? and user_id = ?", (workspace_id, user_id))
        return UserRow(*found) if found else None

    async def feedback(self, session_id: str, item_ids: Sequence[str]) -> Mapping[str, FeedbackRow]:
        sql = "select session_id, item_id, rating, comment, updated_at from feedback where session_id = ?"
        wanted = set(item_ids)
        return {found[1]: FeedbackRow(*found) for found in self._reader.all(sql, (session_id,)) if found[1] in wanted}

    async def thread_named(self, workspace_id: str, user_id: str, name: str, first: str, old: str) -> str | None:
        return self._reader.one(_NAMED, (workspace_id, user_id, name, first, old))[0]

    async def is_buried(self, session_id: str) -> bool:
        return self._reader.one("select 1 from tombstones where session_id = ?", (session_id,)) is not None

    async def place_of(self, session_id: str, moment: float) -> int:
        reader = self._reader
        found = reader.one(_NUMBER, (session_id,))
        if found is None:
            return 0
        low, high = 0, (reader.one(_LAST, found)[0] or 0) + 1
        while low < high:  # everything before `low` is earlier, `high` and what follows is not
            middle = (low + high) // 2
            item = reader.one(_FROM, (found[0], middle))
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
        return [
            TranscriptRow(session_id, *found) for found in self._reader.all(sql, (session_id, before, start, limit))
        ]
