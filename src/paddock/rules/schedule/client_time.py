"""The time a client says it has: is it one? Pure; which time zones exist is asked, not known here."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

MAX_EPOCH_MS = 8_640_000_000_000_000
"""The end of time in every browser."""

IsTimeZone = Callable[[str], bool]

_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-](?:[01]\d|2[0-3]):[0-5]\d))", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the time a client says it has."""

    name: str
    holds: Callable[[object, IsTimeZone], bool]


def _zone(given: object, is_time_zone: IsTimeZone) -> bool:
    return isinstance(given, str) and is_time_zone(given)


def _now(given: object, _: IsTimeZone) -> bool:
    return isinstance(given, str) and is_rfc3339(given)


def _epoch(given: object, _: IsTimeZone) -> bool:
    return type(given) is int and 0 <= given <= MAX_EPOCH_MS


PARTS = (Part("device_timezone", _zone), Part("client_now_iso", _now), Part("client_epoch_ms", _epoch))


def wrong_part(client_time: Mapping[str, Any], is_time_zone: IsTimeZone) -> str | None:
    """The name of the first part that is missing or wrong, or None."""
    return next((part.name for part in PARTS if not part.holds(client_time.get(part.name), is_time_zone)), None)


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
