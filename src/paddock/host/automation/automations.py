"""Automation jobs of people: made, changed, looked at, fired by hand. When they fire by themselves is the scheduler's.

A job belongs to whoever made it and runs as them, in a conversation of its own; to everybody else it does not exist.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio.to_thread

from paddock.host.agents.agents import Agents
from paddock.host.automation.scheduler import Scheduler
from paddock.host.automation.shapes import as_given, check_schedule, read_job
from paddock.host.ids import new_id
from paddock.host.people.principals import Principal
from paddock.host.people.users import Users
from paddock.host.runs.authority import Authority
from paddock.host.session.arrivals import Accepted
from paddock.host.zones import find_zone
from paddock.ports import AutomationRecords
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.automation import AutomationGone, AutomationRow, TickRow
from paddock.rules.rows.rows import AuditRow
from paddock.rules.schedule.automations import Job, from_body, to_body
from paddock.rules.schedule.schedule import next_tick
from paddock.rules.schedule.time_zones import LAST_RESORT
from paddock.rules.values import Value, replace

MAX_JOBS = 100
"""Jobs one user may have."""
UPCOMING = 5
TOOLS_NAMED = 50
_SCHEDULE_FIELDS = frozenset({"cron", "rrule", "timeZone", "startsAt"})


class Automation(Value, frozen=True):
    """A job and where it is kept."""

    row: AutomationRow
    job: Job


class Automations:
    def __init__(
        self,
        records: AutomationRecords,
        scheduler: Scheduler,
        *,
        agents: Agents,
        authority: Authority,
        users: Users,
        clock: Callable[[], float],
    ) -> None:
        self._authority = authority
        self._records = records
        self._scheduler = scheduler
        self._agents = agents
        self._users = users
        self._clock = clock

    async def list(self, who: Principal) -> Sequence[Automation]:
        rows = await self._records.automations(who.workspace_id, who.user_id, limit=MAX_JOBS)
        return [Automation(row, from_body(row.body)) for row in rows]

    async def get(self, who: Principal, job_id: str) -> Automation:
        row = await self._records.automation(job_id)
        if row is None or (row.workspace_id, row.user_id) != (who.workspace_id, who.user_id):
            raise HostError(ErrorCode.NOT_FOUND, "there is no such automation")
        return Automation(row, from_body(row.body))

    async def create(self, who: Principal, given: Mapping[str, Any]) -> Automation:
        """Raises HostError, and leaves a row about that too."""
        try:
            if len(await self.list(who)) >= MAX_JOBS:
                raise HostError(ErrorCode.CONFLICT, f"a user has at most {MAX_JOBS} automations; delete one first")
            made = await self._read(who, given)
        except HostError as error:
            await self._note(who, "automations.create", "", error)
            raise
        await self._write(who, "automations.create", made)
        return made

    async def change(self, who: Principal, job_id: str, given: Mapping[str, Any]) -> Automation:
        """Set what is given; the rest stays. A new schedule counts from now."""
        try:
            known = await self.get(who, job_id)
            changed = await self._changed(who, known, given)
        except HostError as error:
            await self._note(who, "automations.change", job_id, error)
            raise
        await self._write(who, "automations.change", changed)
        return changed

    async def delete(self, who: Principal, job_id: str) -> None:
        """The job fires no more; what its runs said stays in its conversation."""
        try:
            await self.get(who, job_id)
        except HostError as error:
            await self._note(who, "automations.delete", job_id, error)
            raise
        await self._records.write([AutomationGone(job_id), self._audit(who, "automations.delete", job_id)])

    async def fire(self, who: Principal, job_id: str) -> Accepted:
        """Run it now, whatever its schedule says."""
        return await self._scheduler.fire_now((await self.get(who, job_id)).row)

    async def firings(
        self, who: Principal, job_id: str, *, before: float | None = None, limit: int = 50
    ) -> Sequence[TickRow]:
        await self.get(who, job_id)
        return await self._records.ticks(job_id, before=before, limit=limit)

    async def of_thread(self, who: Principal, thread_id: str) -> Automation | None:
        """The caller's own job that a conversation belongs to."""
        row = await self._records.automation_of_thread(thread_id)
        if row is None or (row.workspace_id, row.user_id) != (who.workspace_id, who.user_id):
            return None
        return Automation(row, from_body(row.body))

    def upcoming(self, automation: Automation) -> Sequence[float]:
        """The next ticks, as far as they can be told."""
        zone, tick = find_zone(automation.job.time_zone), automation.row.next_at
        found: list[float] = []
        while automation.row.enabled and zone is not None and tick is not None and len(found) < UPCOMING:
            found.append(tick)
            tick = next_tick(automation.job.schedule, zone, tick)
        return found

    # --- within ------------------------------------------------------------------------------------------------------

    async def _read(self, who: Principal, given: Mapping[str, Any]) -> Automation:
        now = self._clock()
        profile = await self._users.profile(who)
        job, enabled = read_job(given, time_zone=profile.time_zone or LAST_RESORT, now=now)
        await self._check(who, job)
        await self._check_tools(who, job)
        row = AutomationRow(
            job_id=new_id(),
            workspace_id=who.workspace_id,
            user_id=who.user_id,
            thread_id=new_id(),
            body=to_body(job),
            enabled=enabled,
            next_at=_first_tick(job, now) if enabled else None,
            created_at=now,
            updated_at=now,
        )
        return Automation(row, job)

    async def _changed(self, who: Principal, known: Automation, given: Mapping[str, Any]) -> Automation:
        row, now = known.row, self._clock()
        before = as_given(known.job, enabled=row.enabled)
        for one, other in (("cron", "rrule"), ("rrule", "cron")):
            if given.get(one) is not None:
                before.pop(other, None)
        job, enabled = read_job({**before, **given}, time_zone=known.job.time_zone, now=now)
        await self._check(who, job)
        if "config" in given or "agentId" in given:  # else one whose tool went away could not even be disabled
            await self._check_tools(who, job)
        anew = not _SCHEDULE_FIELDS.isdisjoint(given) or enabled != row.enabled
        next_at = (_first_tick(job, now) if enabled else None) if anew else row.next_at
        return Automation(replace(row, body=to_body(job), enabled=enabled, next_at=next_at, updated_at=now), job)

    async def _check(self, who: Principal, job: Job) -> None:
        if job.agent_id is not None and not self._agents.known(job.agent_id, who.workspace_id):
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"agentId: there is no agent {job.agent_id[:64]!r}")
        await anyio.to_thread.run_sync(check_schedule, job)  # a rule that never comes true takes a while to refuse

    async def _check_tools(self, who: Principal, job: Job) -> None:
        """Raises HostError for a tool that the job's agent does not have. Of an agent that cannot answer now, nobody
        knows; its runs say so."""
        agents = self._agents
        agent_id = job.agent_id or agents.default_agent_id or ""
        binding = agents.get(agent_id, who.workspace_id)
        if not job.enabled_tools or binding is None:
            return
        await self._authority.prepare(agent_id, who.workspace_id)
        part = self._authority.part(binding, who.workspace_id)
        has = sorted(part.allowance.tools) if part is not None else job.enabled_tools
        strange = next((name for name in job.enabled_tools if name not in has), None)
        if strange is not None:
            named = ", ".join(has[:TOOLS_NAMED]) + (", ..." if len(has) > TOOLS_NAMED else "")
            text = f"config.enabledTools: agent {agent_id!r} has no tool {strange[:64]!r}; it has: {named or 'none'}"
            raise HostError(ErrorCode.INVALID_ARGUMENT, text)

    async def _write(self, who: Principal, action: str, made: Automation) -> None:
        await self._records.write([made.row, self._audit(who, action, made.row.job_id)])
        self._scheduler.wake()

    async def _note(self, who: Principal, action: str, job_id: str, error: HostError) -> None:
        if error.code is not ErrorCode.UNAVAILABLE:
            await self._records.write([self._audit(who, action, job_id, error)])

    def _audit(self, who: Principal, action: str, job_id: str, error: HostError | None = None) -> AuditRow:
        return AuditRow(
            time=self._clock(),
            workspace_id=who.workspace_id,
            actor=f"user:{who.user_id}",
            action=action,
            resource=job_id[:64],
            scope=who.workspace_id,
            result="allowed" if error is None else str(error.code),
            reason="their own" if error is None else error.message[:500],
        )


def _first_tick(job: Job, now: float) -> float | None:
    zone = find_zone(job.time_zone)
    return next_tick(job.schedule, zone, now) if zone is not None else None
