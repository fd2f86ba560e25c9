"""Time zones: which one counts, which day it is there, and checks of a client's time. Pure: zones come in as values."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

LAST_RESORT = "UTC"
_ONE_DAY = timedelta(days=1)


def day_start(day: date, zone: tzinfo) -> float:
    """Return the start of a day: its first midnight or, when clocks skip midnight, the moment they do."""
    return datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()


def day_of(moment: float, zone: tzinfo) -> date:
    """The day a moment belongs to. A day lasts from its start to the next one's: where clocks are set back across
    midnight, the hour that comes twice stays with the day that has begun."""
    day = datetime.fromtimestamp(moment, zone).date()
    if moment >= day_start(day + _ONE_DAY, zone):
        return day + _ONE_DAY
    return day if moment >= day_start(day, zone) else day - _ONE_DAY


MAX_EPOCH_MS = 8_640_000_000_000_000
"""The end of time in every browser."""

IsTimeZone = Callable[[str], bool]

_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-](?:[01]\d|2[0-3]):[0-5]\d))", re.ASCII
)


@dataclass(frozen=True, slots=True)
class ClientTimePart:
    """One part of the time a client says it has."""

    name: str
    holds: Callable[[object, IsTimeZone], bool]


CLIENT_TIME_PARTS = (
    ClientTimePart("device_timezone", lambda given, is_zone: isinstance(given, str) and is_zone(given)),
    ClientTimePart("client_now_iso", lambda given, _: isinstance(given, str) and is_rfc3339(given)),
    ClientTimePart("client_epoch_ms", lambda given, _: type(given) is int and 0 <= given <= MAX_EPOCH_MS),
)


def wrong_part(client_time: Mapping[str, Any], is_time_zone: IsTimeZone) -> str | None:
    """The name of the first part that is missing or wrong, or None."""
    return next(
        (part.name for part in CLIENT_TIME_PARTS if not part.holds(client_time.get(part.name), is_time_zone)), None
    )


def is_rfc3339(text: str) -> bool:
    """A real moment with its offset. The 60th second exists only where leap seconds are put: at 23:59 UTC."""
    found = _RFC3339.fullmatch(text)
    if found is None:
        return False
    day, minute, second, offset = found.groups()
    leap = second == "60"
    try:
        moment = datetime.fromisoformat(f"{day}T{minute}:{'59' if leap else second}{offset or '+00:00'}").astimezone(
            UTC
        )
    except (ValueError, OverflowError):
        return False
    return not leap or (moment.hour, moment.minute) == (23, 59)
