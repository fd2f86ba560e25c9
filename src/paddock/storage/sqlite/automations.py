"""Automations in SQLite: how jobs and ticks are written, and the questions about them. No decisions live here."""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
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
from paddock.rules.values import replace
from paddock.storage.sqlite.connection import Cursor
from paddock.storage.sqlite.reader import Reader

JOB = "job_id, workspace_id, user_id, thread_id, body, enabled, next_at, created_at, updated_at"
TICK = "job_id, tick, result, at, run_id, through, reason"
_SET_JOB = f"""
insert into automations ({JOB}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (job_id) do update set thread_id = excluded.thread_id, body = excluded.body, enabled = excluded.enabled,
  next_at = excluded.next_at, updated_at = excluded.updated_at, claim_token = '', claimed_until = 0"""
_ADD_TICK = f"insert into automation_ticks ({TICK}) values (?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning 1"
_GO_ON = """
update automations set next_at = ?3, claim_token = '', claimed_until = 0 where job_id = ?1 and next_at = ?2"""
_CLAIM = """
update automations set claim_token = ?3, claimed_until = ?4
 where job_id = ?1 and next_at = ?2 and claimed_until <= ?5"""
_DUE = f"""
select {JOB} from (
  select {JOB}, row_number() over (partition by workspace_id order by next_at, job_id) as turn from automations
   where enabled and next_at is not null and next_at <= ?1 and claimed_until <= ?1) due
 order by turn, next_at, job_id limit ?2"""


def _write_job(cursor: Cursor, row: AutomationRow) -> None:
    cursor.execute(_SET_JOB, astuple(row))


def _drop_job(cursor: Cursor, row: AutomationGone) -> None:
    for table in ("automation_ticks", "automations"):
        cursor.execute(f"delete from {table} where job_id = ?", (row.job_id,))


def _write_tick(cursor: Cursor, row: TickRow) -> None:
    values = (row.job_id, row.tick, row.result, row.at, row.run_id, row.through, row.reason)
    if cursor.execute(_ADD_TICK, values).fetchone() is None:
        raise HostError(ErrorCode.CONFLICT, "this tick was seen to already")
    cursor.execute(_GO_ON, (row.job_id, row.tick, row.next_at))


def _claim_job(cursor: Cursor, row: JobClaim) -> None:
    cursor.execute(_CLAIM, astuple(row))


def _free_job(cursor: Cursor, row: JobFreed) -> None:
    cursor.execute("update automations set claimed_until = ?3 where job_id = ?1 and claim_token = ?2", astuple(row))


def _go_on(cursor: Cursor, row: JobGoesOn) -> None:
    cursor.execute(_GO_ON, astuple(row))


def _move_job(cursor: Cursor, row: JobMoves) -> None:
    cursor.execute("update automations set thread_id = ?3 where job_id = ?1 and thread_id = ?2", astuple(row))


JOB_WRITES: Mapping[type, Callable[[Cursor, Any], None]] = {
    AutomationRow: _write_job,
    AutomationGone: _drop_job,
    TickRow: _write_tick,
    JobClaim: _claim_job,
    JobFreed: _free_job,
    JobGoesOn: _go_on,
    JobMoves: _move_job,
}


class AutomationReads(ABC):
    """The part of the store that looks these up."""

    @property
    @abstractmethod
    def _reader(self) -> Reader: ...

    async def automation(self, job_id: str) -> AutomationRow | None:
        return _job(self._reader.one(f"select {JOB} from automations where job_id = ?", (job_id,)))

    async def automation_of_thread(self, thread_id: str) -> AutomationRow | None:
        return _job(self._reader.one(f"select {JOB} from automations where thread_id = ?", (thread_id,)))

    async def automations(self, workspace_id: str, user_id: str, *, limit: int = 100) -> Sequence[AutomationRow]:
        sql = (
            f"select {JOB} from automations where workspace_id = ? and user_id = ? order by created_at, job_id limit ?"
        )
        return _jobs(self._reader.all(sql, (workspace_id, user_id, limit)))

    async def due_automations(self, now: float, *, limit: int = 100) -> Sequence[AutomationRow]:
        return _jobs(self._reader.all(_DUE, (now, limit)))

    async def next_automation_at(self) -> float | None:
        sql = "select min(max(next_at, claimed_until)) from automations where enabled and next_at is not null"
        return self._reader.one(sql)[0]

    async def job_claim(self, job_id: str) -> str:
        found = self._reader.one("select claim_token from automations where job_id = ?", (job_id,))
        return found[0] if found else ""

    async def tick(self, job_id: str, tick: float) -> TickRow | None:
        sql = f"select {TICK} from automation_ticks where job_id = ? and tick = ?"
        found = self._reader.one(sql, (job_id, tick))
        return TickRow(*found) if found else None

    async def ticks(self, job_id: str, *, before: float | None = None, limit: int = 50) -> Sequence[TickRow]:
        sql = f"select {TICK} from automation_ticks where job_id = ? and tick < ? order by tick desc limit ?"
        return [TickRow(*found) for found in self._reader.all(sql, (job_id, _end(before), limit))]


def _end(before: float | None) -> float:
    return before if before is not None else 1e300


def _job(found: Sequence[Any] | None) -> AutomationRow | None:
    return _jobs([found])[0] if found else None


def _jobs(found: Sequence[Sequence[Any]]) -> list[AutomationRow]:
    return [replace(AutomationRow(*row), enabled=bool(row[5])) for row in found]
