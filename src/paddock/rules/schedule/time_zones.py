"""Whose clock counts, and which day it is there. Pure: zones come in as values, and the server's own is never asked."""

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, tzinfo
from typing import Any, cast

LAST_RESORT = "UTC"
_ONE_DAY = timedelta(days=1)


def event_zone(
    is_time_zone: Callable[[str], bool],
    *,
    event_timezone: object = None,
    device_timezone: object = None,
    profile_timezone: object = None,
) -> str:
    """The zone in which an event is meant: what the tool call says, else the device, else the profile, else UTC.

    What is missing or no zone is passed over; the doors and the profile have refused it long before.
    """
    for given in (event_timezone, device_timezone, profile_timezone):
        if isinstance(given, str) and is_time_zone(given):
            return given
    return LAST_RESORT


def device_zone(params: Mapping[str, Any]) -> str | None:
    """The zone of the client's device, as its request said; the door has checked it."""
    props = params.get("forwardedProps")
    client_time = cast("dict[str, Any]", props).get("client_time") if isinstance(props, dict) else None
    device = cast("dict[str, Any]", client_time).get("device_timezone") if isinstance(client_time, dict) else None
    return device if isinstance(device, str) else None


def day_start(day: date, zone: tzinfo) -> float:
    """When a day begins: its first midnight, or, when clocks skip midnight, the moment they do."""
    return datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()


def day_of(moment: float, zone: tzinfo) -> date:
    """The day a moment belongs to. A day lasts from its start to the next one's: where clocks are set back across
    midnight, the hour that comes twice stays with the day that has begun."""
    day = datetime.fromtimestamp(moment, zone).date()
    if moment >= day_start(day + _ONE_DAY, zone):
        return day + _ONE_DAY
    return day if moment >= day_start(day, zone) else day - _ONE_DAY
