"""Automations: jobs, what became of their ticks, and who sees to one that is due."""

from collections.abc import Mapping, Sequence

from paddock.rules.rows.automation import (
    AutomationGone,
    AutomationRow,
    JobClaim,
    JobFreed,
    JobGoesOn,
    JobMoves,
    TickRow,
)
from paddock.storage.tables.statements import Change, HasEngine, Query, Write, columns_of, in_turn, put, value

# ruff: noqa: S608 - the column lists are our own, values are always bound
TICK = ", ".join(name for name in columns_of(TickRow).split(", ") if name != "next_at")
_GO_ON = Change("""
update automations set next_at = :next_at, claim_token = '', claimed_until = 0
 where job_id = :job_id and next_at = :tick""")

WRITES: Mapping[type, Write] = {
    AutomationRow: in_turn(
        put(
            "automations",
            AutomationRow,
            key="job_id",
            again=("thread_id", "body", "enabled", "next_at", "updated_at"),
            also="claim_token = '', claimed_until = 0",
        )
    ),
    AutomationGone: in_turn(
        Change("delete from automation_ticks where job_id = :job_id"),
        Change("delete from automations where job_id = :job_id"),
    ),
    TickRow: in_turn(
        Change(
            f"""
insert into automation_ticks ({TICK}) values (:{TICK.replace(", ", ", :")}) on conflict do nothing returning 1""",
            refused="this tick was seen to already",
        ),
        _GO_ON,
    ),
    JobClaim: in_turn(
        Change("""
update automations set claim_token = :token, claimed_until = :until
 where job_id = :job_id and next_at = :tick and claimed_until <= :now""")
    ),
    JobFreed: in_turn(
        Change("update automations set claimed_until = :at where job_id = :job_id and claim_token = :token")
    ),
    JobGoesOn: in_turn(_GO_ON),
    JobMoves: in_turn(
        Change("update automations set thread_id = :new_thread_id where job_id = :job_id and thread_id = :thread_id")
    ),
}
_JOB = Query(AutomationRow, "select {columns} from automations where job_id = :job_id")
_OF_THREAD = Query(AutomationRow, "select {columns} from automations where thread_id = :thread_id")
_OF_USER = Query(
    AutomationRow,
    """
select {columns} from automations where workspace_id = :workspace_id and user_id = :user_id
 order by created_at, job_id limit :limit""",
)
_DUE = Query(
    AutomationRow,
    """
select {columns} from (
  select {columns}, row_number() over (partition by workspace_id order by next_at, job_id) as turn from automations
   where enabled and next_at is not null and next_at <= :now and claimed_until <= :now) due
 order by turn, next_at, job_id limit :limit""",
)
_NEXT = Query(
    value, "select min(greatest(next_at, claimed_until)) from automations where enabled and next_at is not null"
)
_CLAIMED = Query(value, "select claim_token from automations where job_id = :job_id")
_TICK = Query(TickRow, f"select {TICK} from automation_ticks where job_id = :job_id and tick = :tick")
_TICKS = Query(
    TickRow,
    f"select {TICK} from automation_ticks where job_id = :job_id and tick < :before order by tick desc limit :limit",
)


class AutomationReads(HasEngine):
    """The part of the store that looks these up."""

    async def automation(self, job_id: str) -> AutomationRow | None:
        return await self.engine.one(_JOB, job_id=job_id)

    async def automation_of_thread(self, thread_id: str) -> AutomationRow | None:
        return await self.engine.one(_OF_THREAD, thread_id=thread_id)

    async def automations(self, workspace_id: str, user_id: str, *, limit: int = 100) -> Sequence[AutomationRow]:
        return await self.engine.all(_OF_USER, workspace_id=workspace_id, user_id=user_id, limit=limit)

    async def due_automations(self, now: float, *, limit: int = 100) -> Sequence[AutomationRow]:
        return await self.engine.all(_DUE, now=now, limit=limit)

    async def next_automation_at(self) -> float | None:
        return await self.engine.one(_NEXT)

    async def job_claim(self, job_id: str) -> str:
        return await self.engine.one(_CLAIMED, job_id=job_id) or ""

    async def tick(self, job_id: str, tick: float) -> TickRow | None:
        return await self.engine.one(_TICK, job_id=job_id, tick=tick)

    async def ticks(self, job_id: str, *, before: float | None = None, limit: int = 50) -> Sequence[TickRow]:
        return await self.engine.all(_TICKS, job_id=job_id, before=1e300 if before is None else before, limit=limit)
