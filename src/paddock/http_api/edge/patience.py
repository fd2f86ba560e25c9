"""How long the host waits for a request to arrive, and how large its head may be. Pure; a connection obeys.

Whoever sends slowly enough, or never ends, would otherwise hold a connection for good. Not here: how large a body may
be, which each door says, and how long an answer may take, which a stream decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

Headers = Sequence[tuple[bytes, bytes]]
BETWEEN = len(b": \r\n")


class Arriving(Enum):
    """What of a request is still to come."""

    NOTHING = "nothing"
    HEAD = "head"
    BODY = "body"


@dataclass(frozen=True, slots=True)
class Patience:
    head_seconds: float = 20.0
    """From the first byte, or from connecting, to the end of the head."""
    body_seconds: float = 30.0
    """What any body may take; a longer one must keep the pace."""
    body_bytes_per_second: int = 1024
    """On average. A telephone with one bar is faster; whoever drips on purpose is not."""
    reader_seconds: float = 300.0
    """How long a client may take nothing at all of an answer that waits for it."""
    look_seconds: float = 5.0
    """How often a connection is looked at; a limit may be overstepped by so much."""
    max_head_bytes: int = 64 * 1024
    max_headers: int = 100

    def is_over(self, arriving: Arriving, seconds: float, size: int) -> bool:
        """Whether a request that began so long ago, and of which so much has come, is given up."""
        match arriving:
            case Arriving.HEAD:
                return seconds > self.head_seconds
            case Arriving.BODY:
                return seconds > self.body_seconds and size < seconds * self.body_bytes_per_second
            case Arriving.NOTHING:
                return False

    def is_too_large(self, url: bytes, headers: Headers) -> bool:
        if len(headers) > self.max_headers:
            return True
        return len(url) + sum(len(name) + len(value) + BETWEEN for name, value in headers) > self.max_head_bytes


PATIENCE = Patience()
