"""Calendars in PostgreSQL: how events are written, and the questions about them. No decisions live here."""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import astuple

from paddock.rules.calendar_rows import CalendarEventGone, CalendarEventRow, CalendarState, CalendarTurn
from paddock.rules.errors import ErrorCode, HostError
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.reader import HasReader

EVENT = "event_id, workspace_id, user_id, body, recurring, starts_at, ends_at, created_at, updated_at"
_SET_EVENT = f"""
insert into calendar_events ({EVENT}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (event_id) do update set body = excluded.body, recurring = excluded.recurring,
  starts_at = excluded.starts_at, ends_at = excluded.ends_at, updated_at = excluded.updated_at"""
_FIRST_TURN = """
insert into calendars (workspace_id, user_id, turns) values ($1, $2, 1) on conflict do nothing returning 1"""
_NEXT_TURN = """
update calendars set turns = turns + 1 where workspace_id = $1 and user_id = $2 and turns = $3 returning 1"""
_STATE = """
select coalesce((select turns from calendars where workspace_id = $1 and user_id = $2), 0), count(*),
       count(*) filter (where recurring) from calendar_events where workspace_id = $1 and user_id = $2"""
_BETWEEN = f"""
select {EVENT} from calendar_events
 where workspace_id = $1 and user_id = $2 and starts_at < $4 and (ends_at is null or ends_at > $3)
 order by starts_at, event_id limit $5"""


async def _write_event(connection: Connection, row: CalendarEventRow) -> None:
    await connection.fetch(_SET_EVENT, *astuple(row))


async def _drop_event(connection: Connection, row: CalendarEventGone) -> None:
    await connection.fetch("delete from calendar_events where event_id = $1", row.event_id)


async def _turn(connection: Connection, row: CalendarTurn) -> None:
    owner = (row.workspace_id, row.user_id)
    first = row.expected == 0
    done = await (connection.fetch(_FIRST_TURN, *owner) if first else connection.fetch(_NEXT_TURN, *astuple(row)))
    if not done:
        raise HostError(ErrorCode.CONFLICT, "the calendar was changed meanwhile")


CALENDAR_WRITES: Mapping[type, Callable[[Connection, Any], Awaitable[None]]] = {
    CalendarEventRow: _write_event,
    CalendarEventGone: _drop_event,
    CalendarTurn: _turn,
}


class CalendarReads(HasReader):
    """The part of the store that looks these up."""

    async def calendar_state(self, workspace_id: str, user_id: str) -> CalendarState:
        return CalendarState(*await self.reader.one(_STATE, workspace_id, user_id))

    async def calendar_event(self, event_id: str) -> CalendarEventRow | None:
        found = await self.reader.one(f"select {EVENT} from calendar_events where event_id = $1", event_id)
        return CalendarEventRow(*found) if found else None

    async def calendar_events(
        self, workspace_id: str, user_id: str, *, since: float, until: float, limit: int
    ) -> Sequence[CalendarEventRow]:
        found = await self.reader.all(_BETWEEN, workspace_id, user_id, since, until, limit)
        return [CalendarEventRow(*row) for row in found]
