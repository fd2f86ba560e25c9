"""Events as models give and get them, read into values. A wrong one is refused with what to write instead."""

from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Any

from paddock.host.zones import find_zone
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.schedule.calendar import CalendarError, CalendarEvent, check_event, read_wall
from paddock.rules.schedule.schedule import moments
from paddock.rules.values import replace

MAX_RANGE_DAYS = 400
DEFAULT_RANGE_DAYS = 31
_TEXTS = ("title", "start", "end", "rrule", "description", "location", "event_timezone")
_ONE_DAY = timedelta(days=1)


def zone_of(name: object) -> tzinfo:
    """Raises HostError: an event's zone is never guessed."""
    if not isinstance(name, str) or not name:
        raise _wrong("event_timezone is missing: name the IANA time zone the times are meant in, such as Europe/Berlin")
    zone = find_zone(name)
    if zone is None:
        raise _wrong(f"there is no time zone {name[:64]!r}; event_timezone is an IANA name such as Europe/Berlin")
    return zone


def read_event(before: CalendarEvent | None, given: Mapping[str, Any]) -> CalendarEvent:
    """A new event, or an old one with what is given changed. Raises HostError."""
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
        raise _wrong(str(error)) from error


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
    """From when to when; a day at the end counts whole. Raises HostError."""
    zone = zone_of(given.get("event_timezone"))
    try:
        since = _moment("start", given["start"], zone, whole=False) if given.get("start") else now
        ahead = since + DEFAULT_RANGE_DAYS * 86_400.0
        until = _moment("end", given["end"], zone, whole=True) if given.get("end") else ahead
    except CalendarError as error:
        raise _wrong(str(error)) from error
    return checked_span(since, until)


def checked_span(since: float, until: float) -> tuple[float, float]:
    if not since < until:
        raise _wrong("the end must come after the start")
    if until - since > MAX_RANGE_DAYS * 86_400.0:
        raise _wrong(f"at most {MAX_RANGE_DAYS} days can be looked at together; ask for less")
    return since, until


def _moment(name: str, text: str, zone: tzinfo, *, whole: bool) -> float:
    wall = read_wall(name, text)
    return moments(wall + _ONE_DAY if whole and "T" not in text else wall, zone, every=False)[0]


def event_as_told(event_id: str, event: CalendarEvent) -> dict[str, Any]:
    """Event as a mapping without its empty fields."""
    told = {
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
    return {name: value for name, value in told.items() if value != ""}


def _wrong(sentence: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, sentence)
