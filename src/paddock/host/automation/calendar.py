"""Calendars of users: events written and read by their runs, and read and exported by the users themselves.

A calendar belongs to one user of one workspace; nobody else can see its events. A busy event that overlaps another is
written only with `allow_conflict`, also when two runs write at once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from heapq import merge
from itertools import islice
from typing import Any

import anyio.to_thread

from paddock.host.conflicts import written_first
from paddock.host.ids import new_id
from paddock.host.zones import find_zone
from paddock.ports import CalendarRecords
from paddock.ports.tools import ToolUse
from paddock.rules.errors import ErrorCode, HostError, invalid, needed_for
from paddock.rules.rows.automation import CalendarEventGone, CalendarEventRow, CalendarState, CalendarTurn
from paddock.rules.rows.rows import AuditRow
from paddock.rules.schedule.calendar import (
    LOOK_AHEAD,
    CalendarError,
    CalendarEvent,
    Occurrence,
    check_event,
    from_body,
    occurrences,
    overlapping,
    read_wall,
    span,
    to_body,
)
from paddock.rules.schedule.schedule import moments
from paddock.rules.values import replace

MAX_EVENTS = 2000
MAX_RECURRING = 100
"""How many events one user may have, and how many of them may recur."""
MAX_LISTED = 1000
MAX_NAMED = 10
"""How many overlaps an answer names."""
ATTEMPTS = 5
ONE_DAY_SECONDS = 86_400.0
MAX_RANGE_DAYS = 400
DEFAULT_RANGE_DAYS = 31
_TEXTS = ("title", "start", "end", "rrule", "description", "location", "event_timezone")
_ONE_DAY = timedelta(days=1)


def zone_of(name: object) -> tzinfo:
    """The time zone of this name; there is no default. Raises HostError."""
    if not isinstance(name, str) or not name:
        raise invalid(
            "event_timezone is missing: name the IANA time zone the times are meant in, such as Europe/Berlin"
        )
    zone = find_zone(name)
    if zone is None:
        raise invalid(f"there is no time zone {name[:64]!r}; event_timezone is an IANA name such as Europe/Berlin")
    return zone


def read_event(before: CalendarEvent | None, given: Mapping[str, Any]) -> CalendarEvent:
    """A new event, or an existing one with the given fields changed. Raises HostError."""
    if before is None or given.get("start") or given.get("end"):
        zone_of(given.get("event_timezone"))
    changes: dict[str, Any] = {name: given[name] for name in (*_TEXTS, "busy") if given.get(name) is not None}
    try:
        if before is None:
            empty: dict[str, Any] = {"title": "", "start": "", "end": ""}
            event = CalendarEvent(**{**empty, **changes})
        else:
            event = replace(before, **{**_moved(before, changes), **changes})
        return check_event(event, zone_of(event.event_timezone))
    except CalendarError as error:
        raise invalid(str(error)) from error


def _moved(before: CalendarEvent, changes: Mapping[str, Any]) -> Mapping[str, str]:
    """Keep the length of an event when only its start is moved."""
    if "start" not in changes or "end" in changes:
        return {}
    start = read_wall("start", changes["start"])
    if ("T" in changes["start"]) is before.all_day:
        return {"end": ""}
    end = start + (datetime.fromisoformat(before.end) - datetime.fromisoformat(before.start))
    return {"end": str(end.date()) if before.all_day else end.isoformat()}


def read_span(given: Mapping[str, Any], now: float) -> tuple[float, float]:
    """The span of time asked for; an end without a time includes its day. Raises HostError."""
    zone = zone_of(given.get("event_timezone"))
    try:
        since = _moment("start", given["start"], zone, whole=False) if given.get("start") else now
        ahead = since + DEFAULT_RANGE_DAYS * ONE_DAY_SECONDS
        until = _moment("end", given["end"], zone, whole=True) if given.get("end") else ahead
    except CalendarError as error:
        raise invalid(str(error)) from error
    return checked_span(since, until)


def checked_span(since: float, until: float) -> tuple[float, float]:
    if not since < until:
        raise invalid("the end must come after the start")
    if until - since > MAX_RANGE_DAYS * ONE_DAY_SECONDS:
        raise invalid(f"at most {MAX_RANGE_DAYS} days can be looked at together; ask for less")
    return since, until


def _moment(name: str, text: str, zone: tzinfo, *, whole: bool) -> float:
    wall = read_wall(name, text)
    return moments(wall + _ONE_DAY if whole and "T" not in text else wall, zone, every=False)[0]


def event_fields(event_id: str, event: CalendarEvent) -> dict[str, Any]:
    """The fields of an event that are not empty."""
    fields = {
        "event_id": event_id,
        "title": event.title,
        "start": event.start,
        "end": event.end,
        "all_day": event.all_day,
        "event_timezone": event.event_timezone,
        "busy": event.busy,
        "rrule": event.rrule,
        "description": event.description,
        "location": event.location,
    }
    return {name: value for name, value in fields.items() if value != ""}


class Calendars:
    """Implements the `CalendarWork` port, and serves the doors."""

    def __init__(self, records: CalendarRecords, *, clock: Callable[[], float]) -> None:
        self._records = records
        self.clock = clock

    async def write(self, use: ToolUse, action: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create, update or delete one event. A refusal is audited too. Raises HostError."""
        try:
            for _ in range(ATTEMPTS):
                state = await self._records.calendar_state(use.workspace_id, use.user_id)
                row, answer = await self._decided(use, state, action, given)
                turn = CalendarTurn(use.workspace_id, use.user_id, state.turns)
                if await written_first(self._records, [turn, row, self._audit(use, action, row.event_id)]):
                    return answer
            raise HostError(ErrorCode.CONFLICT, "others are changing this calendar; nothing was written, try again")
        except HostError as error:
            if error.code is not ErrorCode.UNAVAILABLE:
                await self._records.write([self._audit(use, action, given.get("event_id") or "", error)])
            raise

    async def read(self, use: ToolUse, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """One event by its id, or the events between two local times."""
        if event_id := given.get("event_id"):
            row = await self._own(use, event_id)
            return {"event": event_fields(row.event_id, from_body(row.body))}
        since, until = read_span(given, self.clock())
        limit = min(given["limit"], MAX_LISTED)
        found, more = await self.between(use.workspace_id, use.user_id, since, until, limit=limit)
        return {"events": [_fields(one) for one in found], "has_more": more}

    async def between(
        self, workspace_id: str, user_id: str, since: float, until: float, *, limit: int = MAX_LISTED
    ) -> tuple[Sequence[Occurrence], bool]:
        """The occurrences in this span in order, and True when there are more."""
        rows = await self._rows(workspace_id, user_id, since, until)
        found = await anyio.to_thread.run_sync(_taking_place, rows, since, until, limit + 1)
        return found[:limit], len(found) > limit

    async def export(self, workspace_id: str, user_id: str) -> bytes:
        with needed_for("exporting a calendar"):
            from paddock.host.automation.calendar_export import as_ics  # its library is not quick to import

        rows = await self._records.calendar_events(
            workspace_id, user_id, since=float("-inf"), until=float("inf"), limit=MAX_EVENTS
        )
        return await anyio.to_thread.run_sync(as_ics, rows)

    async def _decided(
        self, use: ToolUse, state: CalendarState, action: str, given: Mapping[str, Any]
    ) -> tuple[CalendarEventRow | CalendarEventGone, Mapping[str, Any]]:
        known = None if action == "create" else await self._own(use, given.get("event_id"))
        if known is not None and action == "delete":
            return CalendarEventGone(known.event_id), {"deleted": known.event_id}
        before = from_body(known.body) if known else None
        event = await anyio.to_thread.run_sync(read_event, before, given)  # slow for a rule that never matches
        _check_room(state, known, event)
        row = self._row(use, known, event)
        overlaps = await self._overlaps(row) if event.busy else ()
        if overlaps and not given.get("allow_conflict"):
            raise _overlap(event, overlaps)
        answer = {"event": event_fields(row.event_id, event)}
        return row, {**answer, "conflicts": [_fields(one) for one in overlaps]} if overlaps else answer

    async def _own(self, use: ToolUse, event_id: str | None) -> CalendarEventRow:
        if not event_id:
            raise HostError(ErrorCode.INVALID_ARGUMENT, "event_id is missing; calendar_read returns it")
        row = await self._records.calendar_event(event_id)
        if row is None or (row.workspace_id, row.user_id) != (use.workspace_id, use.user_id):
            raise HostError(ErrorCode.NOT_FOUND, "there is no such event; calendar_read returns the event_id of each")
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
        """The overlaps of an event; of a recurring one those within a year of now or of its start, the later."""
        since = max(row.starts_at, self.clock()) if row.recurring else row.starts_at
        until = since + LOOK_AHEAD if row.ends_at is None else row.ends_at
        others = await self._rows(row.workspace_id, row.user_id, since, until)
        return await anyio.to_thread.run_sync(_clashing, row, others, since, until)

    async def _rows(self, workspace_id: str, user_id: str, since: float, until: float) -> Sequence[CalendarEventRow]:
        """Read a day more at each end: the rules of a time zone may have changed since a row was written."""
        return await self._records.calendar_events(
            workspace_id, user_id, since=since - ONE_DAY_SECONDS, until=until + ONE_DAY_SECONDS, limit=MAX_EVENTS
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
            session_id=use.session_id,
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
        details={"conflicts": [_fields(one) for one in overlaps]},
    )


def _fields(one: Occurrence) -> Mapping[str, Any]:
    """An occurrence with its own start and end, not those of its series."""
    return {**event_fields(one.event_id, one.event), "start": one.start, "end": one.end}
