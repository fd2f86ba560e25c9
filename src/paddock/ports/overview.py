"""Reads for people who look over a workspace: runs, audit rows and usage by filter, newest first."""

from collections.abc import Sequence
from typing import Protocol

from paddock.rules.people.overview import AuditEntry, AuditQuery, Pace, RunsQuery, Spender, UsageLine
from paddock.rules.rows.rows import AuditRow, RunRow


class OverviewRecords(Protocol):
    """Every read is of committed data, and has an end: one that takes too long raises DEADLINE_EXCEEDED."""

    async def runs_where(self, query: RunsQuery) -> Sequence[RunRow]:
        """Runs that fit, the one begun last first."""
        ...

    async def audit_where(self, query: AuditQuery) -> Sequence[AuditEntry]:
        """Decisions that fit, the newest first."""
        ...

    async def usage_lines(
        self, workspace_id: str, user_id: str | None, *, since: float, every: int
    ) -> Sequence[UsageLine]:
        """Model calls since then, added up by span of `every` seconds, agent and model, the oldest span first."""
        ...

    async def spenders(self, workspace_id: str, *, since: float, limit: int) -> Sequence[Spender]:
        """Users of models since then, the most expensive first, then by tokens."""
        ...

    async def paces(self, workspace_id: str, user_id: str | None, *, since: float, every: int | None) -> Sequence[Pace]:
        """How many runs began since then, how they ended and how long they took, by span of `every` seconds; None: all
        of them together, from 0. Spans without runs are left out."""
        ...

    async def audit(self, *, run_id: str | None = None, limit: int = 100) -> Sequence[AuditRow]: ...
