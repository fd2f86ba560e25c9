"""Calendars in SQLite: how events are written, and the questions about them. No decisions live here."""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import astuple

from paddock.rules.calendar_rows import CalendarEventGone, CalendarEventRow, CalendarState, CalendarTurn
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.values import replace
from paddock.storage.sqlite.connection import Cursor
from paddock.storage.sqlite.reader import Reader

EVENT = "event_id, workspace_id, user_id, body, recurring, starts_at, ends_at, created_at, updated_at"
_SET_EVENT = f"""
insert into calendar_events ({EVENT}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (event_id) do update set body = excluded.body, recurring = excluded.recurring,
  starts_at = excluded.starts_at, ends_at = excluded.ends_at, updated_at = excluded.updated_at"""
_FIRST_TURN = """
insert into calendars (workspace_id, user_id, turns) values (?1, ?2, 1) on conflict do nothing returning 1"""
_NEXT_TURN = """
update calendars set turns = turns + 1 where workspace_id = ?1 and user_id = ?2 and turns = ?3 returning 1"""
_STATE = """
select coalesce((select turns from calendars where workspace_id = ?1 and user_id = ?2), 0), count(*),
       coalesce(sum(recurring), 0) from calendar_events where workspace_id = ?1 and user_id = ?2"""
_BETWEEN = f"""
select {EVENT} from calendar_events
 where workspace_id = ?1 and user_id = ?2 and starts_at < ?4 and (ends_at is null or ends_at > ?3)
 order by starts_at, event_id limit ?5"""


def _write_event(cursor: Cursor, row: CalendarEventRow) -> None:
    cursor.execute(_SET_EVENT, astuple(row))


def _drop_event(cursor: Cursor, row: CalendarEventGone) -> None:
    cursor.execute("delete from calendar_events where event_id = ?", (row.event_id,))


def _turn(cursor: Cursor, row: CalendarTurn) -> None:
    owner = (row.workspace_id, row.user_id)
    done = cursor.execute(_FIRST_TURN, owner) if row.expected == 0 else cursor.execute(_NEXT_TURN, astuple(row))
    if done.fetchone() is None:
        raise HostError(ErrorCode.CONFLICT, "the calendar was changed meanwhile")


CALENDAR_WRITES: Mapping[type, Callable[[Cursor, Any], None]] = {
    CalendarEventRow: _write_event,
    CalendarEventGone: _drop_event,
    CalendarTurn: _turn,
}


class CalendarReads(ABC):
    """The part of the store that looks these up."""

    @property
    @abstractmethod
    def _reader(self) -> Reader: ...

    async def calendar_state(self, workspace_id: str, user_id: str) -> CalendarState:
        return CalendarState(*self._reader.one(_STATE, (workspace_id, user_id)))

    async def calendar_event(self, event_id: str) -> CalendarEventRow | None:
        found = self._reader.one(f"select {EVENT} from calendar_events where event_id = ?", (event_id,))
        return _event(found) if found else None

    async def calendar_events(
        self, workspace_id: str, user_id: str, *, since: float, until: float, limit: int
    ) -> Sequence[CalendarEventRow]:
        return [_event(row) for row in self._reader.all(_BETWEEN, (workspace_id, user_id, since, until, limit))]


def _event(found: Sequence[Any]) -> CalendarEventRow:
    return replace(CalendarEventRow(*found), recurring=bool(found[4]))
