"""Calendars in memory. A part of the memory store."""

from collections.abc import Sequence
from typing import Any

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.calendar import CalendarEventGone, CalendarEventRow, CalendarState, CalendarTurn
from paddock.rules.values import replace


class MemoryCalendar:
    def __init__(self) -> None:
        super().__init__()
        self._calendar: dict[str, CalendarEventRow] = {}
        self._calendar_turns: dict[tuple[str, str], int] = {}

    async def calendar_state(self, workspace_id: str, user_id: str) -> CalendarState:
        mine = self._calendar_of(workspace_id, user_id)
        turns = self._calendar_turns.get((workspace_id, user_id), 0)
        return CalendarState(turns, len(mine), sum(row.recurring for row in mine))

    async def calendar_event(self, event_id: str) -> CalendarEventRow | None:
        return self._calendar.get(event_id)

    async def calendar_events(
        self, workspace_id: str, user_id: str, *, since: float, until: float, limit: int
    ) -> Sequence[CalendarEventRow]:
        found = [
            row
            for row in self._calendar_of(workspace_id, user_id)
            if row.starts_at < until and (row.ends_at is None or row.ends_at > since)
        ]
        return sorted(found, key=lambda row: (row.starts_at, row.event_id))[:limit]

    def _calendar_of(self, workspace_id: str, user_id: str) -> list[CalendarEventRow]:
        return [row for row in self._calendar.values() if (row.workspace_id, row.user_id) == (workspace_id, user_id)]

    def _check_calendar(self, rows: Sequence[Any]) -> None:
        """Before anything is written."""
        for row in rows:
            if isinstance(row, CalendarTurn) and row.expected != self._turns_of(row):
                raise HostError(ErrorCode.CONFLICT, "the calendar was changed meanwhile")

    def _turns_of(self, row: CalendarTurn) -> int:
        return self._calendar_turns.get((row.workspace_id, row.user_id), 0)

    def _write_about_calendar(self, row: CalendarEventRow | CalendarEventGone | CalendarTurn) -> None:
        match row:
            case CalendarEventRow():
                known = self._calendar.get(row.event_id, row)
                self._calendar[row.event_id] = replace(row, created_at=known.created_at)
            case CalendarEventGone():
                self._calendar.pop(row.event_id, None)
            case CalendarTurn():
                self._calendar_turns[row.workspace_id, row.user_id] = row.expected + 1
