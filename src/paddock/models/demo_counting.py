"""The demo model counts when it is asked to, at a pace a person can follow: a stream to watch, leave and stop. Pure."""

import re
from collections.abc import Sequence

from paddock_sdk.protocol.messages import Message

PACE = 0.1
"""Seconds before each number."""
LAST = 1000
_ASKED = re.compile(
    r"\s*+(?:@\S++\s++)?(?:"
    r"(?:please\s++)?count\s++(?:slowly\s++)?(?:to\s++(?P<to>\d{1,20})|for\s*+ever)"
    r"|请?(?:从\s*+1\s*+)?(?:慢慢)?数到\s*+(?P<dao>\d{1,20})"
    r")\s*+[.!。！]?\s*+",
    re.IGNORECASE,
)


def counted(text: str) -> str | None:
    """The numbers that a message asks for, from 1."""
    asked = _ASKED.fullmatch(text)
    if asked is None:
        return None
    last = int(asked["to"] or asked["dao"] or LAST)
    return " ".join(str(number) for number in range(1, max(1, min(last, LAST)) + 1))


def pace(messages: Sequence[Message]) -> float:
    """How long to rest before each piece of the answer, when nobody says."""
    last = messages[-1] if messages else None
    return PACE if last is not None and last.role == "user" and _ASKED.fullmatch(last.text) else 0.0
