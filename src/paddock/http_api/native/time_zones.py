"""Which time zones exist: the names of the IANA database, read once from this machine."""

from functools import cache
from zoneinfo import available_timezones


@cache
def _names() -> frozenset[str]:
    # Both are files of the database, neither is a zone anybody lives in.
    return frozenset(available_timezones() - {"localtime", "Factory"})


def is_time_zone(name: str) -> bool:
    return name in _names()
