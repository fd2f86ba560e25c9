"""A conversation as its owner reads it: one day at a time, in their own time zone. Tools and events stay out of it."""

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
"""Conversations that are read at once to find one that is not a job's."""
MAX_ITEMS = 10_000
"""Of one day; of a longer one the last are told, and that it was longer."""
_NO_END = 1 << 62


class _Records(AutomationRecords, ConversationRecords, DayRecords, PeopleRecords, SessionRecords, Protocol):
    """The ports of the store that are used here."""


class Day(Value, frozen=True):
    """One day of a session; empty when `day` is None."""

    thread_id: str | None
    day: date | None = None
    items: Sequence[TranscriptRow] = ()
    more: bool = False
    """There are earlier days."""
    cut: bool = False
    """The day has more than `MAX_ITEMS`."""
    opinions: Mapping[str, FeedbackRow] = {}
    """What the owner thinks of answers, by item."""


class Days:
    def __init__(self, records: _Records, users: Users) -> None:
        self._records = records
        self._users = users

    async def day(self, principal: Principal, thread_id: str | None, before: date | None) -> Day:
        """The latest day on which something was said, strictly before `before`. Raises NOT_FOUND for a thread that
        is not the caller's."""
        found = await self._thread(principal, thread_id)
        if found is None:
            return Day(None)
        zone = ZoneInfo((await self._users.profile(principal)).time_zone or LAST_RESORT)
        until = _NO_END if before is None else await self._records.place_of(found, day_start(before, zone))
        last = await self._records.spoken(found, before=until)
        return await self._of(found, day_of(last[0].created_at, zone), until, zone) if last else Day(found)

    async def _of(self, thread_id: str, day: date, until: int, zone: ZoneInfo) -> Day:
        start = await self._records.place_of(thread_id, day_start(day, zone))
        items = await self._records.spoken(thread_id, before=until, start=start, limit=MAX_ITEMS + 1)
        earlier = await self._records.spoken(thread_id, before=start)
        kept = sorted(items[:MAX_ITEMS], key=lambda row: row.seq)
        answers = [row.item_id for row in kept if row.role == "assistant"]
        opinions = await self._records.feedback(thread_id, answers)
        return Day(thread_id, day, kept, more=bool(earlier), cut=len(items) > MAX_ITEMS, opinions=opinions)

    async def _last(self, principal: Principal) -> str | None:
        """The conversation that this person opened last; those that jobs talk in are none of theirs."""
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

    async def _thread(self, principal: Principal, thread_id: str | None) -> str | None:
        """The one asked for; else the one opened last that is neither archived nor a job's, if there is any."""
        if thread_id is None:
            return await self._last(principal)
        session = await self._records.session(thread_id)
        if session is None or (session.workspace_id, session.user_id) != (principal.workspace_id, principal.user_id):
            raise no_such_thread()
        return thread_id
