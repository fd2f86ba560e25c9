"""Jobs and calendars: what is on record of them, and what the calendar's tools ask of the host."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from paddock.ports.log import Rows
from paddock.ports.tools import ToolUse
from paddock.rules.rows.automation import AutomationRow, CalendarEventRow, CalendarState, TickRow


class AutomationRecords(Rows, Protocol):
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
        """Ticks of a job with their outcome, the latest first."""
        ...


class CalendarRecords(Rows, Protocol):
    """A user's calendar, and the count that keeps two writers of it apart."""

    async def calendar_state(self, workspace_id: str, user_id: str) -> CalendarState: ...
    async def calendar_event(self, event_id: str) -> CalendarEventRow | None: ...
    async def calendar_events(
        self, workspace_id: str, user_id: str, *, since: float, until: float, limit: int
    ) -> Sequence[CalendarEventRow]:
        """A user's that begin before `until` and may go on after `since`, the earliest first."""
        ...


class CalendarWork(Protocol):
    """Calendar operations of a run, for its user. Raises HostError with a sentence for the model."""

    async def write(self, use: ToolUse, action: str, given: Mapping[str, Any]) -> Mapping[str, Any]: ...
    async def read(self, use: ToolUse, given: Mapping[str, Any]) -> Mapping[str, Any]: ...
