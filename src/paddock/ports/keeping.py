"""Reads and deletions for retention: old rows in small parts, and deleted sessions for good."""

from collections.abc import Sequence
from typing import Literal, Protocol

from paddock.ports.log import Rows
from paddock.rules.log.chain import Head
from paddock.rules.log.retention import OldFact, OldSession

OldRows = Literal[
    "audit",
    "tool_calls",
    "model_usage",
    "approvals",
    "deliveries",
    "platform_events",
    "automation_ticks",
    "runs",
    "tombstones",
]
"""Rows that are forgotten by age. A run is kept for as long as its facts are, and then for its own time."""


class KeepingRecords(Rows, Protocol):
    """Finds and deletes what is old or was deleted."""

    async def trimmed(self, session_id: str) -> Head:
        """The last fact that was trimmed from the beginning of a log; number 0 when none was."""
        ...

    async def words_of(self, workspace_id: str, user_id: str | None) -> int:
        """How many bytes the logs of a user hold, or those of a whole workspace (`word_bytes`). Adds up one number per
        conversation, so it is not for every run."""
        ...

    async def sessions_opened_before(self, time: float, *, after: int = 0, limit: int = 200) -> Sequence[OldSession]:
        """Sessions in the order in which they were opened, those behind the one with the number `after`."""
        ...

    async def oldest_facts(self, session_id: str, *, limit: int = 1000) -> Sequence[OldFact]:
        """The beginning of a log, in order of position."""
        ...

    async def forget_old(self, kind: OldRows, before: float, *, limit: int = 500) -> int:
        """Delete rows of before this time, at most so many, in one commit; how many there were."""
        ...

    async def purge(self, *, limit: int = 500) -> int:
        """Remove a part of what deleted sessions leave behind; how many rows. 0 when nothing is left."""
        ...

    async def scrub(self) -> None:
        """Leave nothing of what was deleted so far readable on the disk."""
        ...
