"""Automations in memory: jobs, what became of each tick, and who claimed one. A part of the memory store."""

from collections.abc import Iterable, Sequence
from typing import Any

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people.turns import in_turn
from paddock.rules.rows.automation import (
    AboutJobs,
    AutomationGone,
    AutomationRow,
    JobClaim,
    JobFreed,
    JobGoesOn,
    JobMoves,
    TickRow,
)
from paddock.rules.values import replace


class MemoryAutomations:
    def __init__(self) -> None:
        super().__init__()
        self._jobs: dict[str, AutomationRow] = {}
        self._ticks: dict[tuple[str, float], TickRow] = {}
        self._job_claims: dict[str, JobClaim] = {}

    async def automation(self, job_id: str) -> AutomationRow | None:
        return self._jobs.get(job_id)

    async def automation_of_thread(self, thread_id: str) -> AutomationRow | None:
        return next((job for job in self._jobs.values() if job.thread_id == thread_id), None)

    async def automations(self, workspace_id: str, user_id: str, *, limit: int = 100) -> Sequence[AutomationRow]:
        mine = [job for job in self._jobs.values() if (job.workspace_id, job.user_id) == (workspace_id, user_id)]
        return sorted(mine, key=lambda job: (job.created_at, job.job_id))[:limit]

    async def due_automations(self, now: float, *, limit: int = 100) -> Sequence[AutomationRow]:
        due = [job for job in self._waiting() if _when(job) <= now and not self._is_claimed(job.job_id, now)]
        return in_turn(sorted(due, key=lambda job: (_when(job), job.job_id)))[:limit]

    async def next_automation_at(self) -> float | None:
        return min((max(_when(job), self._claimed_until(job.job_id)) for job in self._waiting()), default=None)

    async def job_claim(self, job_id: str) -> str:
        claim = self._job_claims.get(job_id)
        return claim.token if claim else ""

    async def tick(self, job_id: str, tick: float) -> TickRow | None:
        return self._ticks.get((job_id, tick))

    async def ticks(self, job_id: str, *, before: float | None = None, limit: int = 50) -> Sequence[TickRow]:
        mine = [row for row in self._ticks.values() if row.job_id == job_id and (before is None or row.tick < before)]
        return sorted(mine, key=lambda row: -row.tick)[:limit]

    def _waiting(self) -> Iterable[AutomationRow]:
        return (job for job in self._jobs.values() if job.enabled and job.next_at is not None)

    def _is_claimed(self, job_id: str, now: float) -> bool:
        return self._claimed_until(job_id) > now

    def _claimed_until(self, job_id: str) -> float:
        claim = self._job_claims.get(job_id)
        return claim.until if claim is not None else 0.0

    def _check_ticks(self, rows: Sequence[Any]) -> None:
        """Before anything is written."""
        seen = set(self._ticks)
        for row in rows:
            if isinstance(row, TickRow):
                if (row.job_id, row.tick) in seen:
                    raise HostError(ErrorCode.CONFLICT, "this tick was seen to already")
                seen.add((row.job_id, row.tick))

    def _write_about_job(self, row: AboutJobs) -> None:
        match row:
            case AutomationRow():
                known = self._jobs.get(row.job_id, row)
                self._jobs[row.job_id] = replace(row, created_at=known.created_at)
                self._job_claims.pop(row.job_id, None)
            case AutomationGone():
                self._jobs.pop(row.job_id, None)
                self._job_claims.pop(row.job_id, None)
                self._ticks = {key: tick for key, tick in self._ticks.items() if key[0] != row.job_id}
            case TickRow():
                self._ticks[row.job_id, row.tick] = replace(row, next_at=None)
                self._go_on(row)
            case JobClaim():
                self._claim_job(row)
            case JobFreed():
                claim = self._job_claims.get(row.job_id)
                if claim is not None and claim.token == row.token:
                    self._job_claims[row.job_id] = replace(claim, until=row.at)
            case JobGoesOn():
                self._go_on(row)
            case JobMoves():
                job = self._jobs.get(row.job_id)
                if job is not None and job.thread_id == row.thread_id:
                    self._jobs[row.job_id] = replace(job, thread_id=row.new_thread_id)

    def _go_on(self, row: TickRow | JobGoesOn) -> None:
        job = self._jobs.get(row.job_id)
        if job is not None and job.next_at == row.tick:
            self._jobs[row.job_id] = replace(job, next_at=row.next_at)
            self._job_claims.pop(row.job_id, None)

    def _claim_job(self, row: JobClaim) -> None:
        job = self._jobs.get(row.job_id)
        if job is not None and job.next_at == row.tick and not self._is_claimed(row.job_id, row.now):
            self._job_claims[row.job_id] = row


def _when(job: AutomationRow) -> float:
    return job.next_at if job.next_at is not None else float("inf")
