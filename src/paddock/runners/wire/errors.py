"""Failures of a runner program, and how often its mistakes are logged. Doors and sessions never see these."""

from collections.abc import Callable
from time import monotonic

from paddock.rules.errors import RunCode


class PeerError(Exception):
    """A failure of the peer; the text is for a person. `quoted` is what it said, in its own words."""

    def __init__(self, message: str, quoted: str = "") -> None:
        super().__init__(message)
        self.quoted = quoted


class HandshakeError(PeerError):
    """The peer does not speak our protocol."""


class PeerRefusedError(PeerError):
    """The peer answered with an error, or went away before it answered."""


class StartError(Exception):
    """No process could be had. `code` is one of the run failure codes of the wire, `message` is for anybody; `detail`,
    which may quote programs and name places on this machine, is for whoever runs the host."""

    def __init__(self, code: RunCode, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.code: RunCode = code
        self.message = message
        self.detail = detail or message


TELL_PER_SECOND = 5
TOO_MUCH = 50_000
"""Unwanted lines within ten seconds. A chatty library stays far below; a flood reaches it in a fraction of a second."""
WINDOW_SECONDS = 10.0


class LogThrottle:
    """Let so many a second through; count the rest."""

    def __init__(self, per_second: int, clock: Callable[[], float] = monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        self._second = -1
        self._used = 0
        self.left_out = 0

    def take(self) -> bool:
        second = int(self._clock())
        if second != self._second:
            self._second, self._used = second, 0
        self._used += 1
        if self._used <= self._per_second:
            return True
        self.left_out += 1
        return False

    def take_left_out(self) -> int:
        """Return how many were only counted since the last call."""
        count, self.left_out = self.left_out, 0
        return count


class Noise:
    """Counts unwanted lines of one connection."""

    def __init__(self, clock: Callable[[], float] = monotonic, limit: int = TOO_MUCH) -> None:
        self._clock = clock
        self._limit = limit
        self._since = clock()
        self._count = 0
        self.tell = LogThrottle(TELL_PER_SECOND, clock)

    def too_much(self) -> bool:
        """Count one more; True when the window holds more than anybody needs to hear."""
        self._count += 1
        if self._count <= self._limit:
            return False
        now = self._clock()
        if now - self._since <= WINDOW_SECONDS:
            return True
        self._since, self._count = now, 1
        return False
