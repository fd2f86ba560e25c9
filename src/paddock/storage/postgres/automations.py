"""Automations in PostgreSQL: how jobs and ticks are written, and the questions about them. No decisions live here."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import astuple

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.automation import (
    AutomationGone,
    AutomationRow,
    JobClaim,
    JobFreed,
    JobGoesOn,
    JobMoves,
    TickRow,
)
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.reader import HasReader

# ruff: noqa: S608 - the column lists are our own, values are always bound
JOB = "job_id, workspace_id, user_id, thread_id, body, enabled, next_at, created_at, updated_at"
TICK = "job_id, tick, result, at, run_id, through, reason"
_SET_JOB = f"""
insert into automations ({JOB}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (job_id) do update set thread_id = excluded.thread_id, body = excluded.body, enabled = excluded.enabled,
  next_at = excluded.next_at, updated_at = excluded.updated_at, claim_token = '', claimed_until = 0"""
_ADD_TICK = f"""
insert into automation_ticks ({TICK}) values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing returning 1"""
_GO_ON = """
update automations set next_at = $3, claim_token = '', claimed_until = 0 where job_id = $1 and next_at = $2"""
_CLAIM = """
update automations set claim_token = $3, claimed_until = $4
 where job_id = $1 and next_at = $2 and claimed_until <= $5"""
_DUE = f"""
select {JOB} from (
  select {JOB}, row_number() over (partition by workspace_id order by next_at, job_id) as turn from automations
   where enabled and next_at is not null and next_at <= $1 and claimed_until <= $1) due
 order by turn, next_at, job_id limit $2"""
_MINE = f"select {JOB} from automations where workspace_id = $1 and user_id = $2 order by created_at, job_id limit $3"
_TICKS = f"select {TICK} from automation_ticks where job_id = $1 and tick < $2 order by tick desc limit $3"


async def _write_job(connection: Connection, row: AutomationRow) -> None:
    await connection.fetch(_SET_JOB, *astuple(row))


async def _drop_job(connection: Connection, row: AutomationGone) -> None:
    for table in ("automation_ticks", "automations"):
        await connection.fetch(f"delete from {table} where job_id = $1", row.job_id)


async def _write_tick(connection: Connection, row: TickRow) -> None:
    values = (row.job_id, row.tick, row.result, row.at, row.run_id, row.through, row.reason)
    if not await connection.fetch(_ADD_TICK, *values):
        raise HostError(ErrorCode.CONFLICT, "this tick was seen to already")
    await connection.fetch(_GO_ON, row.job_id, row.tick, row.next_at)


async def _claim_job(connection: Connection, row: JobClaim) -> None:
    await connection.fetch(_CLAIM, *astuple(row))


async def _free_job(connection: Connection, row: JobFreed) -> None:
    sql = "update automations set claimed_until = $3 where job_id = $1 and claim_token = $2"
    await connection.fetch(sql, *astuple(row))


async def _go_on(connection: Connection, row: JobGoesOn) -> None:
    await connection.fetch(_GO_ON, *astuple(row))


async def _move_job(connection: Connection, row: JobMoves) -> None:
    sql = "update automations set thread_id = $3 where job_id = $1 and thread_id = $2"
    await connection.fetch(sql, *astuple(row))


JOB_WRITES: Mapping[type, Callable[[Connection, Any], Awaitable[None]]] = {
    AutomationRow: _write_job,
    AutomationGone: _drop_job,
    TickRow: _write_tick,
    JobClaim: _claim_job,
    JobFreed: _free_job,
    JobGoesOn: _go_on,
    JobMoves: _move_job,
}


class AutomationReads(HasReader):
    """The part of the store that looks these up."""

    async def automation(self, job_id: str) -> AutomationRow | None:
        found = await self.reader.one(f"select {JOB} from automations where job_id = $1", job_id)
        return AutomationRow(*found) if found else None

    async def automation_of_thread(self, thread_id: str) -> AutomationRow | None:
        found = await self.reader.one(f"select {JOB} from automations where thread_id = $1", thread_id)
        return AutomationRow(*found) if found else None

    async def automations(self, workspace_id: str, user_id: str, *, limit: int = 100) -> Sequence[AutomationRow]:
        return [AutomationRow(*found) for found in await self.reader.all(_MINE, workspace_id, user_id, limit)]

    async def due_automations(self, now: float, *, limit: int = 100) -> Sequence[AutomationRow]:
        return [AutomationRow(*found) for found in await self.reader.all(_DUE, now, limit)]

    async def next_automation_at(self) -> float | None:
        sql = "select min(greatest(next_at, claimed_until)) from automations where enabled and next_at is not null"
        return (await self.reader.one(sql))[0]

    async def job_claim(self, job_id: str) -> str:
        found = await self.reader.one("select claim_token from automations where job_id = $1", job_id)
        return found[0] if found else ""

    async def tick(self, job_id: str, tick: float) -> TickRow | None:
        sql = f"select {TICK} from automation_ticks where job_id = $1 and tick = $2"
        found = await self.reader.one(sql, job_id, tick)
        return TickRow(*found) if found else None

    async def ticks(self, job_id: str, *, before: float | None = None, limit: int = 50) -> Sequence[TickRow]:
        end = before if before is not None else 1e300
        return [TickRow(*found) for found in await self.reader.all(_TICKS, job_id, end, limit)]
