"""Time zones by name, from this machine's copy of the IANA database."""

from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

_NO_ZONES = frozenset({"", "localtime", "Factory"})
"""Files in the database that are not time zones."""


def find_zone(name: str) -> ZoneInfo | None:
    try:
        return None if name in _NO_ZONES else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


@cache
def _names() -> frozenset[str]:
    return frozenset(available_timezones() - _NO_ZONES)


def is_time_zone(name: str) -> bool:
    return name in _names()
