"""The promises of the session machine, checked while it works: every take in tests, some of them in production."""

from collections.abc import Sequence
from itertools import count

import structlog

log = structlog.get_logger("paddock.watch")

SOMETIMES = 64
"""One take in so many is checked; a check costs about as much as the step it checks."""


class Watch:
    """Says when to look, and counts what was found."""

    def __init__(self, every: int = SOMETIMES) -> None:
        self._every = every
        self._takes = count()
        self.found: list[str] = []
        """The newest broken promises; empty is how it should stay."""
        self.total = 0

    def looks(self) -> bool:
        return next(self._takes) % self._every == 0

    def report(self, session_id: str, broken: Sequence[str]) -> None:
        self.total += len(broken)
        self.found = [*self.found, *broken][-100:]
        log.error(
            "the session machine broke a promise", action="session.invariant", session_id=session_id, broken=broken
        )
