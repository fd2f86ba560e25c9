"""Automations over HTTP: the caller's own jobs, what became of their ticks, and a run of one by hand."""

from dataclasses import dataclass
from typing import Annotated, Literal

from paddock.host.automation.automations import Automation as KeptAutomation
from paddock.host.automation.automations import Automations
from paddock.host.automation.shapes import FIELDS, JobShape
from paddock.host.people.principals import Principal
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import Operations, Pydantic, operation
from paddock.http_api.edge.shapes import Accepted, Answer, Json, Moment, Query, about, accepted, iso, seen
from paddock.rules.rows.automation import TickRow

BASE = "/api/v1/automations"
ONE = f"{BASE}/{{job}}"
MAX_LISTED = 200
EXAMPLE = {"name": "Morning", "prompt": "What is on today?", "cron": "0 9 * * 1-5", "timeZone": "Europe/Berlin"}

Job = Annotated[str, about("Its jobId.", example="0199d2a5-1d50-7c3e-9b1f-0c9a5a7f4e10")]
NewAutomation = Annotated[Json, Pydantic("NewAutomation", JobShape, FIELDS)]
AutomationChange = Annotated[Json, Pydantic("AutomationChange", JobShape, FIELDS, partial=True)]


class AutomationContext(Answer):
    description: str
    value: str


class AutomationConfig(Answer):
    """Settings of the runs of a job."""

    enabled_tools: list[str] | None
    """Of its agent's tools only these; null for all."""
    context: list[AutomationContext]


class Automation(Answer):
    """A job with its next ticks."""

    job_id: str
    thread_id: str
    name: str
    prompt: str
    time_zone: str
    agent_id: str | None
    missed: Literal["skip", "run_once"]
    enabled: bool
    config: AutomationConfig
    starts_at: Moment
    next_at: Moment | None
    upcoming: list[Moment]
    created_at: Moment
    updated_at: Moment
    cron: Annotated[str, about(example="0 9 * * 1-5")] | None = None
    rrule: str | None = None


class AutomationList(Answer):
    automations: list[Automation]


class Firing(Answer):
    """The outcome of one tick. `tick` is also the cursor of the next page."""

    tick: Annotated[float, about(example=1773648000.0)]
    scheduled_at: Moment
    result: Annotated[str, about(example="fired")]
    at: Moment
    through: Moment | None = None
    task_id: str | None = None
    reason: str | None = None


class FiringList(Answer):
    firings: list[Firing]


class FiringsQuery(Query):
    before: (
        Annotated[float, about("Only ticks before this one: the `tick` of the last one seen.", example=1773648000.0)]
        | None
    ) = None
    limit: Annotated[int, about("How many, at most 200.", ge=1, le=MAX_LISTED)] = 50


@dataclass(frozen=True, kw_only=True)
class AutomationsDoor(Operations):
    group = "Automations"
    auth: Auth
    automations: Automations

    @operation("GET", BASE, {200: "The oldest first."})
    async def list(self, who: Principal) -> AutomationList:
        """List your automations"""
        return AutomationList([self._seen(one) for one in await self.automations.list(who)])

    @operation("POST", BASE, {201: "It fires from now on."}, errors=(409,), example=EXAMPLE)
    async def create(self, who: Principal, body: NewAutomation) -> Automation:
        """Make an automation

        Give either a cron line or an RRULE. Without a time zone your profile's counts, else UTC."""
        return self._seen(await self.automations.create(who, body))

    @operation("GET", ONE, {200: "With its next ticks."}, errors=(404,))
    async def get(self, who: Principal, job: Job) -> Automation:
        """Look at an automation"""
        return self._seen(await self.automations.get(who, job))

    @operation("PATCH", ONE, {200: "As it is now."}, errors=(404,), example={"enabled": False})
    async def change(self, who: Principal, job: Job, body: AutomationChange) -> Automation:
        """Change an automation"""
        return self._seen(await self.automations.change(who, job, body))

    @operation("DELETE", ONE, {204: "It fires no more; its conversation stays."}, errors=(404,))
    async def delete(self, who: Principal, job: Job) -> None:
        """Take an automation away"""
        await self.automations.delete(who, job)

    @operation("POST", f"{ONE}/run", {202: "Accepted."}, errors=(404, 409), rate="runs")
    async def fire(self, who: Principal, job: Job) -> Accepted:
        """Run an automation now"""
        return accepted(await self.automations.fire(who, job))

    @operation("GET", f"{ONE}/firings", {200: "The latest first."}, errors=(404,))
    async def firings(self, who: Principal, job: Job, query: FiringsQuery) -> FiringList:
        """List what became of its ticks"""
        found = await self.automations.firings(who, job, before=query.before, limit=query.limit)
        return FiringList([_firing(row) for row in found])

    def _seen(self, automation: KeptAutomation) -> Automation:
        row, job = automation.row, automation.job
        tools = None if job.enabled_tools is None else [*job.enabled_tools]
        return seen(
            Automation,
            row,
            **{name: getattr(job, name) for name in ("name", "prompt", "time_zone", "agent_id", "missed", "starts_at")},
            cron=job.text if job.kind == "cron" else None,
            rrule=job.text if job.kind == "rrule" else None,
            config=AutomationConfig(tools, [AutomationContext(**one) for one in job.context]),
            upcoming=[iso(tick) for tick in self.automations.upcoming(automation)],
        )


def _firing(row: TickRow) -> Firing:
    return seen(Firing, row, scheduled_at=row.tick, task_id=row.run_id, reason=row.reason or None)
