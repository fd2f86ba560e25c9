"""Automation jobs of users: how they are written, and the work to make, change, list and fire them.

A job runs as the user who made it, in a conversation of its own. Other users cannot see it. `scheduler.py` fires it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Annotated, Any

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from paddock.host.agents.agents import Agents
from paddock.host.automation.scheduler import Scheduler
from paddock.host.ids import new_id
from paddock.host.people.principals import Principal
from paddock.host.people.users import Users
from paddock.host.runs.authority import Authority
from paddock.host.session.arrivals import Accepted
from paddock.host.zones import find_zone
from paddock.ports import AutomationRecords
from paddock.rules.errors import ErrorCode, HostError, invalid
from paddock.rules.rows.automation import AutomationGone, AutomationRow, JobsCap, TickRow
from paddock.rules.rows.rows import AuditRow
from paddock.rules.schedule.schedule import Job, Missed, ScheduleError, check, from_body, next_tick, to_body
from paddock.rules.schedule.time_zones import LAST_RESORT
from paddock.rules.values import Value, replace
from paddock_sdk.causes import complaint_of

MAX_JOBS = 100
"""Jobs one user may have."""
UPCOMING = 5
TOOLS_NAMED = 50
_SCHEDULE_FIELDS = frozenset({"cron", "rrule", "timeZone", "startsAt"})
MAX_TOOLS = 100
MAX_CONTEXT = 50
Text = Annotated[str, Field(min_length=1, max_length=10_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, strict=True)


class ContextShape(_Shape):
    description: Annotated[str, Field(max_length=1000)]
    value: Annotated[str, Field(max_length=10_000)]


class ConfigShape(_Shape):
    """`AutomationJob.config`: the tools and context of the job's runs."""

    enabled_tools: Annotated[list[Name], Field(max_length=MAX_TOOLS)] | None = None
    """The tools of its agent that it may use; None for all."""
    context: Annotated[list[ContextShape], Field(max_length=MAX_CONTEXT)] = []


class JobShape(_Shape):
    name: Name
    prompt: Text
    cron: Annotated[str, Field(max_length=500)] | None = None
    rrule: Annotated[str, Field(max_length=500)] | None = None
    time_zone: Annotated[str, Field(max_length=64)] | None = None
    starts_at: Annotated[datetime, Field(strict=False)] | None = None
    agent_id: Name | None = None
    missed: Missed = "skip"
    enabled: bool = True
    config: ConfigShape = ConfigShape()


FIELDS = tuple(to_camel(name) for name in JobShape.model_fields)


def read_job(given: Mapping[str, Any], *, time_zone: str, now: float) -> tuple[Job, bool]:
    """Read a job, and whether it is enabled. `time_zone` is the default. Raises HostError."""
    try:
        shape = JobShape.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the job"
        raise invalid(f"{place}: {complaint_of(first)}") from error
    if (shape.cron is None) == (shape.rrule is None):
        raise invalid("give either cron or rrule: a cron line such as '0 9 * * 1-5', or an RRULE such as FREQ=DAILY")
    if shape.starts_at is not None and shape.starts_at.tzinfo is None:
        raise invalid("startsAt needs an offset, such as 2026-01-05T09:00:00+01:00")
    return _job(shape, shape.time_zone or time_zone, now), shape.enabled


def check_schedule(job: Job) -> None:
    """Check that the schedule has ticks; slow for a rule that never matches. Raises HostError."""
    zone = find_zone(job.time_zone)
    if zone is None:
        raise invalid(f"timeZone: there is no {job.time_zone[:64]!r}; use an IANA name, such as Europe/Berlin")
    try:
        check(job.schedule, zone)
    except ScheduleError as error:
        raise invalid(f"{job.kind}: {error}") from error


def _job(shape: JobShape, zone: str, now: float) -> Job:
    return Job(
        name=shape.name,
        prompt=shape.prompt,
        kind="cron" if shape.cron is not None else "rrule",
        text=(shape.cron if shape.cron is not None else shape.rrule) or "",
        time_zone=zone,
        starts_at=shape.starts_at.timestamp() if shape.starts_at is not None else float(int(now)),
        agent_id=shape.agent_id,
        missed=shape.missed,
        enabled_tools=None if shape.config.enabled_tools is None else tuple(shape.config.enabled_tools),
        context=tuple({"description": one.description, "value": one.value} for one in shape.config.context),
    )


def as_given(job: Job, *, enabled: bool) -> dict[str, Any]:
    return {
        "name": job.name,
        "prompt": job.prompt,
        job.kind: job.text,
        "timeZone": job.time_zone,
        "startsAt": job.starts_at,
        "agentId": job.agent_id,
        "missed": job.missed,
        "enabled": enabled,
        "config": {
            "enabledTools": None if job.enabled_tools is None else list(job.enabled_tools),
            "context": [dict(one) for one in job.context],
        },
    }


class Automation(Value, frozen=True):
    """A job and its row."""

    row: AutomationRow
    job: Job


@dataclass(eq=False)
class Automations:
    records: AutomationRecords
    scheduler: Scheduler
    _: KW_ONLY
    agents: Agents
    authority: Authority
    users: Users
    clock: Callable[[], float]

    async def list(self, who: Principal) -> Sequence[Automation]:
        rows = await self.records.automations(who.workspace_id, who.user_id, limit=MAX_JOBS)
        return [Automation(row, from_body(row.body)) for row in rows]

    async def get(self, who: Principal, job_id: str) -> Automation:
        row = await self.records.automation(job_id)
        if row is None or not who.owns(row):
            raise HostError(ErrorCode.NOT_FOUND, "there is no such automation")
        return Automation(row, from_body(row.body))

    async def create(self, who: Principal, given: Mapping[str, Any]) -> Automation:
        """Make a job. A refusal is audited too. Raises HostError."""
        try:
            if len(await self.list(who)) >= MAX_JOBS:
                raise HostError(ErrorCode.CONFLICT, f"a user has at most {MAX_JOBS} automations; delete one first")
            made = await self._read(who, given)
            await self._write(who, "automations.create", made, JobsCap(who.workspace_id, who.user_id, MAX_JOBS))
        except HostError as error:
            await self._note(who, "automations.create", "", error)
            raise
        return made

    async def change(self, who: Principal, job_id: str, given: Mapping[str, Any]) -> Automation:
        """Change the given fields. A new schedule counts from now."""
        try:
            known = await self.get(who, job_id)
            changed = await self._changed(who, known, given)
        except HostError as error:
            await self._note(who, "automations.change", job_id, error)
            raise
        await self._write(who, "automations.change", changed)
        return changed

    async def delete(self, who: Principal, job_id: str) -> None:
        """Delete a job; its conversation stays."""
        try:
            await self.get(who, job_id)
        except HostError as error:
            await self._note(who, "automations.delete", job_id, error)
            raise
        await self.records.write([AutomationGone(job_id), self._audit(who, "automations.delete", job_id)])

    async def fire(self, who: Principal, job_id: str) -> Accepted:
        return await self.scheduler.fire_now((await self.get(who, job_id)).row)

    async def firings(
        self, who: Principal, job_id: str, *, before: float | None = None, limit: int = 50
    ) -> Sequence[TickRow]:
        await self.get(who, job_id)
        return await self.records.ticks(job_id, before=before, limit=limit)

    async def of_thread(self, who: Principal, session_id: str) -> Automation | None:
        """The caller's job that a conversation belongs to, if any."""
        row = await self.records.automation_of_thread(session_id)
        if row is None or not who.owns(row):
            return None
        return Automation(row, from_body(row.body))

    def upcoming(self, automation: Automation) -> Sequence[float]:
        zone, tick = find_zone(automation.job.time_zone), automation.row.next_at
        found: list[float] = []
        while automation.row.enabled and zone is not None and tick is not None and len(found) < UPCOMING:
            found.append(tick)
            tick = next_tick(automation.job.schedule, zone, tick)
        return found

    async def _read(self, who: Principal, given: Mapping[str, Any]) -> Automation:
        now = self.clock()
        profile = await self.users.profile(who)
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
        row, now = known.row, self.clock()
        before = as_given(known.job, enabled=row.enabled)
        for one, other in (("cron", "rrule"), ("rrule", "cron")):
            if given.get(one) is not None:
                before.pop(other, None)
        job, enabled = read_job({**before, **given}, time_zone=known.job.time_zone, now=now)
        await self._check(who, job)
        if "config" in given or "agentId" in given:  # else a job whose tool is gone could not be disabled
            await self._check_tools(who, job)
        rescheduled = not _SCHEDULE_FIELDS.isdisjoint(given) or enabled != row.enabled
        next_at = (_first_tick(job, now) if enabled else None) if rescheduled else row.next_at
        return Automation(replace(row, body=to_body(job), enabled=enabled, next_at=next_at, updated_at=now), job)

    async def _check(self, who: Principal, job: Job) -> None:
        if job.agent_id is not None and not self.agents.known(job.agent_id, who.workspace_id):
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"agentId: there is no agent {job.agent_id[:64]!r}")
        await anyio.to_thread.run_sync(check_schedule, job)  # slow for a rule that never matches

    async def _check_tools(self, who: Principal, job: Job) -> None:
        """Raises HostError for a tool that the job's agent does not have. An agent that cannot answer now is not
        checked; the job's runs will report it."""
        agents = self.agents
        agent_id = job.agent_id or agents.default_agent_id or ""
        binding = agents.get(agent_id, who.workspace_id)
        if not job.enabled_tools or binding is None:
            return
        await self.authority.prepare(agent_id, who.workspace_id)
        part = self.authority.agent(binding, who.workspace_id)
        has = sorted(part.allowance.tools) if part is not None else job.enabled_tools
        unknown = next((name for name in job.enabled_tools if name not in has), None)
        if unknown is not None:
            named = ", ".join(has[:TOOLS_NAMED]) + (", ..." if len(has) > TOOLS_NAMED else "")
            text = f"config.enabledTools: agent {agent_id!r} has no tool {unknown[:64]!r}; it has: {named or 'none'}"
            raise HostError(ErrorCode.INVALID_ARGUMENT, text)

    async def _write(self, who: Principal, action: str, made: Automation, *conditions: JobsCap) -> None:
        await self.records.write([made.row, *conditions, self._audit(who, action, made.row.job_id)])
        self.scheduler.wake()

    async def _note(self, who: Principal, action: str, job_id: str, error: HostError) -> None:
        if error.code is not ErrorCode.UNAVAILABLE:
            await self.records.write([self._audit(who, action, job_id, error)])

    def _audit(self, who: Principal, action: str, job_id: str, error: HostError | None = None) -> AuditRow:
        return who.audit(action, job_id[:64], at=self.clock(), reason="their own", error=error)


def _first_tick(job: Job, now: float) -> float | None:
    zone = find_zone(job.time_zone)
    return next_tick(job.schedule, zone, now) if zone is not None else None
