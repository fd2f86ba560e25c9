"""People: what they set, what they said of answers, how they call conversations, and on which days they spoke."""

from collections.abc import Mapping, Sequence
from functools import partial

from paddock.rules.rows.rows import FeedbackRow, LeftBehindRow, ThreadNameRow, TranscriptRow, UserRow
from paddock.storage.tables.conversations import ITEMS, NUMBER, PRESENT
from paddock.storage.tables.statements import Change, HasEngine, Query, Write, in_turn, one, put, several, value

# ruff: noqa: S608 - the column lists are our own, values are always bound
WRITES: Mapping[type, Write] = {
    UserRow: in_turn(put("users", UserRow, key="workspace_id, user_id", again=("time_zone", "locale", "updated_at"))),
    FeedbackRow: in_turn(
        put(
            "feedback",
            FeedbackRow,
            key="session_id, item_id",
            again=("rating", "comment", "updated_at"),
            when=lambda row: row.rating is not None,
        ),
        Change(
            "delete from feedback where session_id = :session_id and item_id = :item_id",
            when=lambda row: row.rating is None,
        ),
    ),
    LeftBehindRow: in_turn(
        Change("""
insert into left_behind (session_no, first_seq, last_seq)
select session_no, :first_seq::bigint, :last_seq::bigint from sessions where session_id = :session_id
on conflict do nothing""")
    ),
    ThreadNameRow: in_turn(
        put("thread_names", ThreadNameRow, key="workspace_id, user_id, name", again=("session_id",))
    ),
}
_OPINIONS = Query(
    FeedbackRow,
    "select {columns} from feedback where session_id = :session_id and item_id = any(:item_ids::text[])",
)
_NAMED = Query(
    value,
    """
select coalesce(
  (select session_id from thread_names where workspace_id = :workspace_id and user_id = :user_id and name = :name),
  (select session_id from sessions where session_id = :old and workspace_id = :workspace_id and user_id = :user_id),
  case when not exists (select 1 from tombstones where session_id = :first) then :first end)""",
)
_RANGE = Query(
    several,
    """
select s.session_no, coalesce((select max(seq) from transcript t where t.session_no = s.session_no), 0)
  from sessions s where s.session_id = :session_id""",
)
_FROM = Query(
    several,
    "select seq, created_at from transcript where session_no = :number and seq >= :seq order by seq limit 1",
)
_SPOKEN = f"""
select {ITEMS.columns} from transcript t
 where session_no = {NUMBER} and seq < :before and seq >= :start
   and item_type = 'message' and role in ('user', 'assistant') {{present}}
 order by seq {{order}} limit :limit"""


class PeopleReads(HasEngine):
    user = one(UserRow, "select {columns} from users where workspace_id = :workspace_id and user_id = :user_id")

    async def feedback(self, session_id: str, item_ids: Sequence[str]) -> Mapping[str, FeedbackRow]:
        rows = await self.engine.all(_OPINIONS, session_id=session_id, item_ids=list(item_ids))
        return {row.item_id: row for row in rows}

    async def thread_named(self, workspace_id: str, user_id: str, name: str, first: str, old: str) -> str | None:
        whose = {"workspace_id": workspace_id, "user_id": user_id}
        return await self.engine.one(_NAMED, **whose, name=name, first=first, old=old)

    async def place_of(self, session_id: str, moment: float) -> int:
        found = await self.engine.one(_RANGE, session_id=session_id)
        if found is None:
            return 0
        number, last = found
        low, high = 0, last + 1
        while low < high:  # everything before `low` is earlier, `high` and what follows is not
            middle = (low + high) // 2
            item = await self.engine.one(_FROM, number=number, seq=middle)
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
        query = Query(partial(TranscriptRow, session_id), sql)
        return await self.engine.all(query, session_id=session_id, before=before, start=start, limit=limit)
