"""Automations: jobs, what became of their ticks, and who sees to one that is due. And calendars, with the count that
keeps two writers of one calendar from overlooking each other.
"""

from collections.abc import Mapping, Sequence

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows import automation as rows
from paddock.storage.tables.kept import one_at_a_time
from paddock.storage.tables.statements import (
    Change,
    HasEngine,
    Query,
    Work,
    Write,
    columns_of,
    in_turn,
    many,
    one,
    put,
    value,
)

# ruff: noqa: S608 - the column lists are our own, values are always bound
TICK = ", ".join(name for name in columns_of(rows.TickRow).split(", ") if name != "next_at")
_GO_ON = Change("""
update automations set next_at = :next_at, claim_token = '', claimed_until = 0
 where job_id = :job_id and next_at = :tick""")

_COUNT = Query(value, "select count(*) from automations where workspace_id = :workspace_id and user_id = :user_id")


def _check_jobs(cap: rows.JobsCap) -> Work[None]:
    yield one_at_a_time(f"jobs:{cap.workspace_id}\0{cap.user_id}")
    [(count,)] = yield _COUNT(workspace_id=cap.workspace_id, user_id=cap.user_id)
    if count > cap.most:
        raise HostError(ErrorCode.CONFLICT, f"a user has at most {cap.most} automations; delete one first")


WRITES: Mapping[type, Write] = {
    rows.JobsCap: _check_jobs,
    rows.AutomationRow: in_turn(
        put(
            "automations",
            rows.AutomationRow,
            key="job_id",
            again=("thread_id", "body", "enabled", "next_at", "updated_at"),
            also="claim_token = '', claimed_until = 0",
        )
    ),
    rows.AutomationGone: in_turn(
        Change("delete from automation_ticks where job_id = :job_id"),
        Change("delete from automations where job_id = :job_id"),
    ),
    rows.TickRow: in_turn(
        Change(
            f"""
insert into automation_ticks ({TICK}) values (:{TICK.replace(", ", ", :")}) on conflict do nothing returning 1""",
            refused="this tick was seen to already",
        ),
        _GO_ON,
    ),
    rows.JobClaim: in_turn(
        Change("""
update automations set claim_token = :token, claimed_until = :until
 where job_id = :job_id and next_at = :tick and claimed_until <= :now""")
    ),
    rows.JobFreed: in_turn(
        Change("update automations set claimed_until = :at where job_id = :job_id and claim_token = :token")
    ),
    rows.JobGoesOn: in_turn(_GO_ON),
    rows.JobMoves: in_turn(
        Change("update automations set thread_id = :new_thread_id where job_id = :job_id and thread_id = :thread_id")
    ),
    rows.CalendarEventRow: in_turn(
        put(
            "calendar_events",
            rows.CalendarEventRow,
            key="event_id",
            again=("body", "recurring", "starts_at", "ends_at", "updated_at"),
        )
    ),
    rows.CalendarEventGone: in_turn(Change("delete from calendar_events where event_id = :event_id")),
    rows.CalendarTurn: in_turn(
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
_TICKS = Query(
    rows.TickRow,
    f"select {TICK} from automation_ticks where job_id = :job_id and tick < :before order by tick desc limit :limit",
)


class AutomationReads(HasEngine):
    automation = one(rows.AutomationRow, "select {columns} from automations where job_id = :job_id")
    automation_of_thread = one(rows.AutomationRow, "select {columns} from automations where thread_id = :thread_id")
    automations = many(
        rows.AutomationRow,
        """
select {columns} from automations where workspace_id = :workspace_id and user_id = :user_id
 order by created_at, job_id limit :limit""",
        limit=100,
    )
    due_automations = many(
        rows.AutomationRow,
        """
select {columns} from (
  select {columns}, row_number() over (partition by workspace_id order by next_at, job_id) as turn from automations
   where enabled and next_at is not null and next_at <= :now and claimed_until <= :now) due
 order by turn, next_at, job_id limit :limit""",
        limit=100,
    )
    next_automation_at = one(
        value, "select min(greatest(next_at, claimed_until)) from automations where enabled and next_at is not null"
    )
    job_claim = one(value, "select claim_token from automations where job_id = :job_id", otherwise="")
    tick = one(rows.TickRow, f"select {TICK} from automation_ticks where job_id = :job_id and tick = :tick")

    async def ticks(self, job_id: str, *, before: float | None = None, limit: int = 50) -> Sequence[rows.TickRow]:
        return await self.engine.all(_TICKS, job_id=job_id, before=1e300 if before is None else before, limit=limit)


class CalendarReads(HasEngine):
    calendar_state = one(
        rows.CalendarState,
        """
select coalesce((select turns from calendars where workspace_id = :workspace_id and user_id = :user_id), 0), count(*),
       count(*) filter (where recurring)
  from calendar_events where workspace_id = :workspace_id and user_id = :user_id""",
        otherwise=rows.CalendarState(),
    )
    calendar_event = one(rows.CalendarEventRow, "select {columns} from calendar_events where event_id = :event_id")

    calendar_events = many(
        rows.CalendarEventRow,
        """
select {columns} from calendar_events
 where workspace_id = :workspace_id and user_id = :user_id and starts_at < :until
   and (ends_at is null or ends_at > :since)
 order by starts_at, event_id limit :limit""",
    )
