"""Jobs and their ticks as they are looked up. They are written like other rows: with a run, or by `Records.write`."""

from collections.abc import Sequence
from typing import Protocol

from paddock.rules.rows.automation import AutomationRow, TickRow


class AutomationRecords(Protocol):
    """Every read is of committed data."""

    async def automation(self, job_id: str) -> AutomationRow | None: ...
    async def automation_of_thread(self, thread_id: str) -> AutomationRow | None: ...
    async def automations(self, workspace_id: str, user_id: str, *, limit: int = 100) -> Sequence[AutomationRow]:
        """A user's, the oldest first."""
        ...

    async def due_automations(self, now: float, *, limit: int = 100) -> Sequence[AutomationRow]:
        """Enabled jobs with a tick that has come and that nobody has claimed, the longest overdue first."""
        ...

    async def next_automation_at(self) -> float | None:
        """When the next tick of any enabled job comes."""
        ...

    async def job_claim(self, job_id: str) -> str:
        """The token of whoever claimed its pending tick last; empty when nobody did."""
        ...

    async def tick(self, job_id: str, tick: float) -> TickRow | None: ...
    async def ticks(self, job_id: str, *, before: float | None = None, limit: int = 50) -> Sequence[TickRow]:
        """What became of ticks, the latest first."""
        ...
