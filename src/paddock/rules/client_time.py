"""The time a client says it has: is it one? Pure; which time zones exist is asked, not known here."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

MAX_EPOCH_MS = 8_640_000_000_000_000
"""The end of time in every browser."""

_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-](?:[01]\d|2[0-3]):[0-5]\d))", re.ASCII
)


def wrong_part(client_time: Mapping[str, Any], is_time_zone: Callable[[str], bool]) -> str | None:
    """The name of the first part that is missing or wrong, or None."""
    zone = client_time.get("device_timezone")
    if not isinstance(zone, str) or not is_time_zone(zone):
        return "device_timezone"
    now = client_time.get("client_now_iso")
    if not isinstance(now, str) or not is_rfc3339(now):
        return "client_now_iso"
    epoch = client_time.get("client_epoch_ms")
    if type(epoch) is not int or not 0 <= epoch <= MAX_EPOCH_MS:
        return "client_epoch_ms"
    return None


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
