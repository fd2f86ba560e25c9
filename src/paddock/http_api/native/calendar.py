"""The caller's own calendar over HTTP: what takes place when, and the whole of it as an .ics file. Agents write it."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Annotated

import msgspec
from starlette.responses import Response

from paddock.host.automation.calendar import Calendars
from paddock.host.automation.calendar_shapes import DEFAULT_RANGE_DAYS, checked_span
from paddock.host.people.principals import Principal
from paddock.host.zones import find_zone
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.errors import GUARDED
from paddock.http_api.edge.operations import Content, Operations, operation
from paddock.http_api.edge.reading import invalid
from paddock.http_api.edge.shapes import Answer, Moment, Query, about, iso, seen
from paddock.rules.schedule.calendar import YEARS, Occurrence
from paddock.rules.schedule.time_zones import LAST_RESORT, day_start

ICS = "text/calendar; charset=utf-8"
EXAMPLE = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Paddock//Calendar//EN\r\nEND:VCALENDAR\r\n"


class CalendarOccurrence(Answer):
    """One time that an event takes place. `start` and `end` are on the wall of `eventTimezone`."""

    event_id: Annotated[str, about(example="0199d2a5-1d50-7c3e-9b1f-0c9a5a7f4e10")]
    title: Annotated[str, about(example="Stand-up")]
    start: Annotated[str, about(example="2026-03-16T09:00")]
    end: Annotated[str, about(example="2026-03-16T09:15")]
    all_day: bool
    event_timezone: Annotated[str, about(example="Europe/Berlin")]
    starts_at: Moment
    ends_at: Moment
    busy: bool
    rrule: Annotated[str, about(example="FREQ=WEEKLY;BYDAY=MO")] | None = None
    description: str | None = None
    location: str | None = None


class CalendarPage(Answer):
    since: Moment = msgspec.field(name="from")
    until: Moment = msgspec.field(name="to")
    events: list[CalendarOccurrence]
    has_more: bool


class CalendarQuery(Query):
    since: Annotated[str, about("A day, or a moment with its offset; now by default.", example="2026-03-15")] | None = (
        msgspec.field(name="from", default=None)
    )
    until: (
        Annotated[
            str,
            about(
                "The same; a day counts whole. 31 days later by default, at most 400 days later.", example="2026-03-31"
            ),
        ]
        | None
    ) = msgspec.field(name="to", default=None)
    time_zone: Annotated[str, about("The IANA zone that days are meant in; UTC by default.")] = LAST_RESORT


@dataclass(frozen=True, kw_only=True)
class CalendarDoor(Operations):
    group = "Calendar"
    auth: Auth
    calendars: Calendars

    @operation("GET", "/api/v1/calendar", {200: "Each occurrence, the earliest first."})
    async def list(self, who: Principal, query: CalendarQuery) -> CalendarPage:
        """List what takes place in your calendar

        `start` and `end` are on the wall of `eventTimezone`; of an event of whole days, `end` is the last day."""
        since, until = _span(query, self.calendars.clock())
        found, more = await self.calendars.between(who.workspace_id, who.user_id, since, until)
        return CalendarPage(iso(since), iso(until), [_seen(one) for one in found], more)

    @operation(
        "GET",
        "/api/v1/calendar.ics",
        {200: "iCalendar (RFC 5545), with its time zones."},
        response=[Content("text/calendar", str, EXAMPLE)],
    )
    async def export(self, who: Principal) -> Response:
        """Take your calendar away as a file"""
        whole = await self.calendars.export(who.workspace_id, who.user_id)
        named = {"content-disposition": 'attachment; filename="calendar.ics"'}
        return Response(whole, headers={**GUARDED, **named}, media_type=ICS)


def _span(asked: CalendarQuery, now: float) -> tuple[float, float]:
    name = asked.time_zone
    zone = find_zone(name)
    if zone is None:
        raise invalid(f"timeZone: there is no time zone {name[:64]!r}; use an IANA name such as Europe/Berlin")
    since = now if asked.since is None else _moment("from", asked.since, zone, whole=False)
    ahead = since + DEFAULT_RANGE_DAYS * 86_400.0
    return checked_span(since, ahead if asked.until is None else _moment("to", asked.until, zone, whole=True))


def _moment(name: str, text: str, zone: tzinfo, *, whole: bool) -> float:
    """A day, which counts whole, or a moment with its offset."""
    try:
        if len(text) == len("2026-03-15"):
            day = date.fromisoformat(text)
            found = day_start(day + timedelta(days=1) if whole else day, zone)
        else:
            found = _with_offset(text).timestamp()
        if not YEARS[0] <= datetime.fromtimestamp(found, UTC).year <= YEARS[1]:
            raise ValueError
    except (ValueError, OverflowError, OSError) as error:
        raise invalid(f"{name} must be a day such as 2026-03-15 or a moment such as 2026-03-15T09:00:00Z") from error
    return found


def _with_offset(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError
    return moment


def _seen(one: Occurrence) -> CalendarOccurrence:
    own = {name: getattr(one, name) for name in ("event_id", "start", "end", "starts_at", "ends_at")}
    told = {name: getattr(one.event, name) or None for name in ("rrule", "description", "location")}
    return seen(CalendarOccurrence, one.event, **own, **told)
