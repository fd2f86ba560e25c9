"""A conversation by days in its owner's time zone. Tools and events are left out."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Protocol
from zoneinfo import ZoneInfo

from paddock.host.people.principals import Principal, no_such_thread
from paddock.host.people.users import Users
from paddock.ports import AutomationRecords, ConversationRecords, DayRecords, PeopleRecords, SessionRecords
from paddock.rules.rows.rows import FeedbackRow, TranscriptRow
from paddock.rules.schedule.time_zones import LAST_RESORT, day_of, day_start
from paddock.rules.values import Value

LOOKED_AT = 20
"""Conversations that are read at once to find one that does not belong to a job."""
MAX_ITEMS = 10_000
"""Most items of a day; of a longer one the last are returned, and `cut` is set."""
_NO_END = 1 << 62


class _Records(AutomationRecords, ConversationRecords, DayRecords, PeopleRecords, SessionRecords, Protocol): ...


class Day(Value, frozen=True):
    """One day of a session; empty when `day` is None."""

    session_id: str | None
    day: date | None = None
    items: Sequence[TranscriptRow] = ()
    more: bool = False
    """There are earlier days."""
    cut: bool = False
    """The day has more than `MAX_ITEMS`."""
    opinions: Mapping[str, FeedbackRow] = {}
    """The owner's ratings of answers, by item."""


class Days:
    def __init__(self, records: _Records, users: Users) -> None:
        self._records = records
        self._users = users

    async def day(self, principal: Principal, session_id: str | None, before: date | None) -> Day:
        """Return the latest day with an item, before `before`. Raises NOT_FOUND for a thread that is not the
        caller's."""
        found = await self._thread(principal, session_id)
        if found is None:
            return Day(None)
        zone = ZoneInfo((await self._users.profile(principal)).time_zone or LAST_RESORT)
        until = _NO_END if before is None else await self._records.place_of(found, day_start(before, zone))
        last = await self._records.spoken(found, before=until)
        return await self._of(found, day_of(last[0].created_at, zone), until, zone) if last else Day(found)

    async def _of(self, session_id: str, day: date, until: int, zone: ZoneInfo) -> Day:
        start = await self._records.place_of(session_id, day_start(day, zone))
        items = await self._records.spoken(session_id, before=until, start=start, limit=MAX_ITEMS + 1)
        earlier = await self._records.spoken(session_id, before=start)
        kept = sorted(items[:MAX_ITEMS], key=lambda row: row.seq)
        answers = [row.item_id for row in kept if row.role == "assistant"]
        opinions = await self._records.feedback(session_id, answers)
        return Day(session_id, day, kept, more=bool(earlier), cut=len(items) > MAX_ITEMS, opinions=opinions)

    async def _last(self, principal: Principal) -> str | None:
        """Return the conversation that this person opened last; jobs' conversations do not count."""
        before: int | None = None
        while True:
            rows = await self._records.sessions_of(
                principal.workspace_id, principal.user_id, before=before, archived=False, limit=LOOKED_AT
            )
            for row in rows:
                if row.automation_id is None:
                    return row.session_id
            if len(rows) < LOOKED_AT:
                return None
            before = rows[-1].number

    async def _thread(self, principal: Principal, session_id: str | None) -> str | None:
        """Return the thread asked for; otherwise the one opened last that is neither archived nor a job's."""
        if session_id is None:
            return await self._last(principal)
        session = await self._records.session(session_id)
        if session is None or not principal.owns(session):
            raise no_such_thread()
        return session_id
