"""A job as people write it down, checked field by field. What is wrong is said in a sentence."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from paddock.host.zones import find_zone
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.schedule.automations import Job
from paddock.rules.schedule.schedule import ScheduleError, check
from paddock_sdk.causes import complaint_of

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
    """`AutomationJob.config`: what a run of the job is given."""

    enabled_tools: Annotated[list[Name], Field(max_length=MAX_TOOLS)] | None = None
    """Of its agent's tools only these; it can only take away."""
    context: Annotated[list[ContextShape], Field(max_length=MAX_CONTEXT)] = []


class JobShape(_Shape):
    name: Name
    prompt: Text
    cron: Annotated[str, Field(max_length=500)] | None = None
    rrule: Annotated[str, Field(max_length=500)] | None = None
    time_zone: Annotated[str, Field(max_length=64)] | None = None
    starts_at: Annotated[datetime, Field(strict=False)] | None = None
    agent_id: Name | None = None
    missed: Literal["skip", "run_once"] = "skip"
    enabled: bool = True
    config: ConfigShape = ConfigShape()


FIELDS = tuple(to_camel(name) for name in JobShape.model_fields)


def read_job(given: Mapping[str, Any], *, time_zone: str, now: float) -> tuple[Job, bool]:
    """The job and whether it is enabled. `time_zone` counts when none is given. Raises HostError."""
    try:
        shape = JobShape.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the job"
        raise _wrong(f"{place}: {complaint_of(first)}") from error
    if (shape.cron is None) == (shape.rrule is None):
        raise _wrong("give either cron or rrule: a cron line such as '0 9 * * 1-5', or an RRULE such as FREQ=DAILY")
    if shape.starts_at is not None and shape.starts_at.tzinfo is None:
        raise _wrong("startsAt needs an offset, such as 2026-01-05T09:00:00+01:00")
    return _job(shape, shape.time_zone or time_zone, now), shape.enabled


def check_schedule(job: Job) -> None:
    """Check that the schedule has ticks. May take a second for a rule that never comes true. Raises HostError."""
    zone = find_zone(job.time_zone)
    if zone is None:
        raise _wrong(f"timeZone: there is no {job.time_zone[:64]!r}; use an IANA name, such as Europe/Berlin")
    try:
        check(job.schedule, zone)
    except ScheduleError as error:
        raise _wrong(f"{job.kind}: {error}") from error


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


def _wrong(sentence: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, sentence)


def as_given(job: Job, *, enabled: bool) -> dict[str, Any]:
    """The job in the words it was written in."""
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
