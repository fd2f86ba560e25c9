"""Calendars: events, and the count that keeps two writers of one calendar from overlooking each other."""

from collections.abc import Mapping, Sequence

from paddock.rules.rows.automation import CalendarEventGone, CalendarEventRow, CalendarState, CalendarTurn
from paddock.storage.tables.statements import Change, HasEngine, Query, Write, in_turn, put

WRITES: Mapping[type, Write] = {
    CalendarEventRow: in_turn(
        put(
            "calendar_events",
            CalendarEventRow,
            key="event_id",
            again=("body", "recurring", "starts_at", "ends_at", "updated_at"),
        )
    ),
    CalendarEventGone: in_turn(Change("delete from calendar_events where event_id = :event_id")),
    CalendarTurn: in_turn(
        Change("""
insert into calendars (workspace_id, user_id, turns) values (:workspace_id, :user_id, 0) on conflict do nothing"""),
        Change(
            """
update calendars set turns = turns + 1
 where workspace_id = :workspace_id and user_id = :user_id and turns = :expected returning 1""",
            refused="the calendar was changed meanwhile",
        ),
    ),
}

_STATE = Query(
    CalendarState,
    """
select coalesce((select turns from calendars where workspace_id = :workspace_id and user_id = :user_id), 0), count(*),
       count(*) filter (where recurring)
  from calendar_events where workspace_id = :workspace_id and user_id = :user_id""",
)
_EVENT = Query(CalendarEventRow, "select {columns} from calendar_events where event_id = :event_id")
_BETWEEN = Query(
    CalendarEventRow,
    """
select {columns} from calendar_events
 where workspace_id = :workspace_id and user_id = :user_id and starts_at < :until
   and (ends_at is null or ends_at > :since)
 order by starts_at, event_id limit :limit""",
)


class CalendarReads(HasEngine):
    """The part of the store that looks calendars up."""

    async def calendar_state(self, workspace_id: str, user_id: str) -> CalendarState:
        return await self.engine.one(_STATE, workspace_id=workspace_id, user_id=user_id) or CalendarState()

    async def calendar_event(self, event_id: str) -> CalendarEventRow | None:
        return await self.engine.one(_EVENT, event_id=event_id)

    async def calendar_events(
        self, workspace_id: str, user_id: str, *, since: float, until: float, limit: int
    ) -> Sequence[CalendarEventRow]:
        owner = {"workspace_id": workspace_id, "user_id": user_id}
        return await self.engine.all(_BETWEEN, **owner, since=since, until=until, limit=limit)
