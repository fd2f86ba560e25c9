"""The caller's own calendar over HTTP: what takes place when, and the whole of it as an .ics file. Agents write it."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.automation.calendar import Calendars
from paddock.host.automation.calendar_shapes import DEFAULT_RANGE_DAYS, checked_span
from paddock.host.zones import find_zone
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response
from paddock.http_api.edge.errors import GUARDED
from paddock.http_api.edge.routing import route
from paddock.http_api.native.runs import iso
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.schedule.calendar import YEARS, Occurrence
from paddock.rules.schedule.time_zones import LAST_RESORT, day_start

ICS = "text/calendar; charset=utf-8"


class CalendarDoor:
    def __init__(self, *, auth: Auth, calendars: Calendars) -> None:
        self._auth = auth
        self._calendars = calendars

    def routes(self) -> list[BaseRoute]:
        return [route("GET", "/api/v1/calendar", self.list), route("GET", "/api/v1/calendar.ics", self.export)]

    async def list(self, request: Request) -> Response:
        who = await self._auth.principal(request.scope)
        since, until = _span(request.query_params, self._calendars.clock())
        found, more = await self._calendars.between(who.workspace_id, who.user_id, since, until)
        events = [_seen(one) for one in found]
        return json_response({"from": iso(since), "to": iso(until), "events": events, "hasMore": more})

    async def export(self, request: Request) -> Response:
        who = await self._auth.principal(request.scope)
        whole = await self._calendars.export(who.workspace_id, who.user_id)
        named = {"content-disposition": 'attachment; filename="calendar.ics"'}
        return Response(whole, headers={**GUARDED, **named}, media_type=ICS)


def _span(asked: Mapping[str, str], now: float) -> tuple[float, float]:
    name = asked.get("timeZone", LAST_RESORT)
    zone = find_zone(name)
    if zone is None:
        raise _wrong(f"timeZone: there is no time zone {name[:64]!r}; use an IANA name such as Europe/Berlin")
    since = _moment("from", asked["from"], zone, whole=False) if "from" in asked else now
    ahead = since + DEFAULT_RANGE_DAYS * 86_400.0
    return checked_span(since, _moment("to", asked["to"], zone, whole=True) if "to" in asked else ahead)


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
        raise _wrong(f"{name} must be a day such as 2026-03-15 or a moment such as 2026-03-15T09:00:00Z") from error
    return found


def _with_offset(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError
    return moment


def _wrong(sentence: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, sentence)


def _seen(one: Occurrence) -> Mapping[str, Any]:
    event = one.event
    seen = {
        "eventId": one.event_id,
        "title": event.title,
        "start": one.start,
        "end": one.end,
        "allDay": event.all_day,
        "eventTimezone": event.event_timezone,
        "startsAt": iso(one.starts_at),
        "endsAt": iso(one.ends_at),
        "busy": event.busy,
        "rrule": event.rrule,
        "description": event.description,
        "location": event.location,
    }
    return {name: value for name, value in seen.items() if value != ""}
