"""Calendars: events as they are looked up, and what the calendar's tools ask of the host.

Events are written like other rows, by `Records.write`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from paddock.ports.tools import ToolUse
from paddock.rules.rows.calendar import CalendarEventRow, CalendarState


class CalendarRecords(Protocol):
    """Every read is of committed data."""

    async def calendar_state(self, workspace_id: str, user_id: str) -> CalendarState: ...
    async def calendar_event(self, event_id: str) -> CalendarEventRow | None: ...
    async def calendar_events(
        self, workspace_id: str, user_id: str, *, since: float, until: float, limit: int
    ) -> Sequence[CalendarEventRow]:
        """A user's that begin before `until` and may go on after `since`, the earliest first."""
        ...


class CalendarWork(Protocol):
    """What a run may do with the calendar of its user. Raises HostError with a sentence for the model."""

    async def write(self, use: ToolUse, action: str, given: Mapping[str, Any]) -> Mapping[str, Any]: ...
    async def read(self, use: ToolUse, given: Mapping[str, Any]) -> Mapping[str, Any]: ...
