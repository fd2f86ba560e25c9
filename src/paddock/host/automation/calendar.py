"""The calendars of people: events written and read on behalf of their runs, looked at and exported by themselves.

A calendar belongs to one user of one workspace; to everybody else its events do not exist. An event that takes time
which another one takes is written only when that is said to be meant, also when two runs write at once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Any

import anyio.to_thread

from paddock.host.automation.calendar_shapes import event_as_told, read_event, read_span, zone_of
from paddock.host.ids import new_id
from paddock.ports import CalendarRecords
from paddock.ports.tools import ToolUse
from paddock.rules.agents.extras import needed_for
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.automation import CalendarEventGone, CalendarEventRow, CalendarState, CalendarTurn
from paddock.rules.rows.rows import AuditRow
from paddock.rules.schedule.calendar import (
    LOOK_AHEAD,
    CalendarEvent,
    Occurrence,
    from_body,
    occurrences,
    overlapping,
    span,
    to_body,
)

MAX_EVENTS = 2000
MAX_RECURRING = 100
"""Events one user may have, and how many of them may come again."""
MAX_LISTED = 1000
MAX_NAMED = 10
"""Overlaps that are named in one answer."""
ATTEMPTS = 5
ONE_DAY = 86_400.0


class Calendars:
    """The `CalendarWork` port, and what the doors ask."""

    def __init__(self, records: CalendarRecords, *, clock: Callable[[], float]) -> None:
        self._records = records
        self.clock = clock

    async def write(self, use: ToolUse, action: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create, update or delete one event. Raises HostError, and leaves a row about that too."""
        try:
            for _ in range(ATTEMPTS):
                state = await self._records.calendar_state(use.workspace_id, use.user_id)
                row, told = await self._decided(use, state, action, given)
                if await self._committed(use, state, action, row):
                    return told
            raise HostError(ErrorCode.CONFLICT, "others are changing this calendar; nothing was written, try again")
        except HostError as error:
            if error.code is not ErrorCode.UNAVAILABLE:
                await self._records.write([self._audit(use, action, given.get("event_id") or "", error)])
            raise

    async def read(self, use: ToolUse, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """One event, or what takes place between two times on the wall of a zone."""
        if event_id := given.get("event_id"):
            row = await self._own(use, event_id)
            return {"event": event_as_told(row.event_id, from_body(row.body))}
        since, until = read_span(given, self.clock())
        limit = min(given["limit"], MAX_LISTED)
        found, more = await self.between(use.workspace_id, use.user_id, since, until, limit=limit)
        return {"events": [_told(one) for one in found], "has_more": more}

    async def between(
        self, workspace_id: str, user_id: str, since: float, until: float, *, limit: int = MAX_LISTED
    ) -> tuple[Sequence[Occurrence], bool]:
        """Occurrences in this span, in order, and True when there are more."""
        rows = await self._rows(workspace_id, user_id, since, until)
        found = await anyio.to_thread.run_sync(_taking_place, rows, since, until, limit + 1)
        return found[:limit], len(found) > limit

    async def export(self, workspace_id: str, user_id: str) -> bytes:
        """The whole calendar as iCalendar."""
        with needed_for("exporting a calendar"):
            from paddock.host.automation.calendar_export import as_ics  # its library is not quick to import

        rows = await self._records.calendar_events(
            workspace_id, user_id, since=float("-inf"), until=float("inf"), limit=MAX_EVENTS
        )
        return await anyio.to_thread.run_sync(as_ics, rows)

    # --- within ------------------------------------------------------------------------------------------------------

    async def _decided(
        self, use: ToolUse, state: CalendarState, action: str, given: Mapping[str, Any]
    ) -> tuple[CalendarEventRow | CalendarEventGone, Mapping[str, Any]]:
        known = None if action == "create" else await self._own(use, given.get("event_id"))
        if known is not None and action == "delete":
            return CalendarEventGone(known.event_id), {"deleted": known.event_id}
        before = from_body(known.body) if known else None
        event = await anyio.to_thread.run_sync(read_event, before, given)  # a rule that never comes true takes a while
        _check_room(state, known, event)
        row = self._row(use, known, event)
        overlaps = await self._overlaps(row) if event.busy else ()
        if overlaps and not given.get("allow_conflict"):
            raise _overlap(event, overlaps)
        told = {"event": event_as_told(row.event_id, event)}
        return row, {**told, "conflicts": [_told(one) for one in overlaps]} if overlaps else told

    async def _committed(
        self, use: ToolUse, state: CalendarState, action: str, row: CalendarEventRow | CalendarEventGone
    ) -> bool:
        """False when the calendar was changed meanwhile, and nothing was written."""
        turn = CalendarTurn(use.workspace_id, use.user_id, state.turns)
        try:
            await self._records.write([turn, row, self._audit(use, action, row.event_id)])
        except HostError as error:
            if error.code is not ErrorCode.CONFLICT:
                raise
            return False
        return True

    async def _own(self, use: ToolUse, event_id: str | None) -> CalendarEventRow:
        if not event_id:
            raise HostError(ErrorCode.INVALID_ARGUMENT, "event_id is missing; calendar_read tells it")
        row = await self._records.calendar_event(event_id)
        if row is None or (row.workspace_id, row.user_id) != (use.workspace_id, use.user_id):
            raise HostError(ErrorCode.NOT_FOUND, "there is no such event; calendar_read tells the event_id of each")
        return row

    def _row(self, use: ToolUse, known: CalendarEventRow | None, event: CalendarEvent) -> CalendarEventRow:
        now, (starts_at, ends_at) = self.clock(), span(event, zone_of(event.event_timezone))
        return CalendarEventRow(
            event_id=known.event_id if known else new_id(),
            workspace_id=use.workspace_id,
            user_id=use.user_id,
            body=to_body(event),
            recurring=bool(event.rrule),
            starts_at=starts_at,
            ends_at=None if event.rrule else ends_at,
            created_at=known.created_at if known else now,
            updated_at=now,
        )

    async def _overlaps(self, row: CalendarEventRow) -> Sequence[Occurrence]:
        """For what comes again: within a year of its first time, or of now when that is later."""
        since = max(row.starts_at, self.clock()) if row.recurring else row.starts_at
        until = since + LOOK_AHEAD if row.ends_at is None else row.ends_at
        others = await self._rows(row.workspace_id, row.user_id, since, until)
        return await anyio.to_thread.run_sync(_clashing, row, others, since, until)

    async def _rows(self, workspace_id: str, user_id: str, since: float, until: float) -> Sequence[CalendarEventRow]:
        """With a margin: what a zone's clocks will do may be known better now than when a row was written."""
        return await self._records.calendar_events(
            workspace_id, user_id, since=since - ONE_DAY, until=until + ONE_DAY, limit=MAX_EVENTS
        )

    def _audit(self, use: ToolUse, action: str, event_id: str, error: HostError | None = None) -> AuditRow:
        return AuditRow(
            time=self.clock(),
            workspace_id=use.workspace_id,
            actor=f"agent:{use.agent_id}",
            action=f"calendar.{action}",
            resource=event_id[:64],
            scope=use.workspace_id,
            result="allowed" if error is None else str(error.code),
            reason="of the run's user" if error is None else error.message[:500],
            run_id=use.run_id,
            session_id=use.conversation_id,
        )


def _check_room(state: CalendarState, known: CalendarEventRow | None, event: CalendarEvent) -> None:
    if known is None and state.events >= MAX_EVENTS:
        raise HostError(ErrorCode.CONFLICT, f"a calendar has at most {MAX_EVENTS} events; delete some first")
    if event.rrule and not (known and known.recurring) and state.recurring >= MAX_RECURRING:
        raise HostError(ErrorCode.CONFLICT, f"a calendar has at most {MAX_RECURRING} recurring events; delete some")


def _each(row: CalendarEventRow, since: float, until: float) -> Iterator[Occurrence]:
    event = from_body(row.body)
    return occurrences(row.event_id, event, zone_of(event.event_timezone), since, until)


def _taking_place(rows: Sequence[CalendarEventRow], since: float, until: float, limit: int) -> list[Occurrence]:
    found = merge(*(_each(row, since, until) for row in rows), key=lambda one: (one.starts_at, one.event_id))
    return list(islice(found, limit))


def _clashing(
    row: CalendarEventRow, others: Sequence[CalendarEventRow], since: float, until: float
) -> Sequence[Occurrence]:
    mine = list(_each(row, since, until))
    busy = [other for other in others if other.event_id != row.event_id and from_body(other.body).busy]
    found = merge(*(_each(other, since, until) for other in busy), key=lambda one: (one.starts_at, one.event_id))
    return overlapping(mine, found, MAX_NAMED)


def _overlap(event: CalendarEvent, overlaps: Sequence[Occurrence]) -> HostError:
    named = "; ".join(
        f"{one.event.title!r} from {one.start} to {one.end} {one.event.event_timezone}" for one in overlaps
    )
    return HostError(
        ErrorCode.CONFLICT,
        f"{event.title!r} overlaps with {named}. Nothing was written: choose another time, or ask the user and "
        "call again with allow_conflict",
        details={"conflicts": [_told(one) for one in overlaps]},
    )


def _told(one: Occurrence) -> Mapping[str, Any]:
    """One occurrence; its start and end are its own, not those of the series."""
    return {**event_as_told(one.event_id, one.event), "start": one.start, "end": one.end}
