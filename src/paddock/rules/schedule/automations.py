"""Jobs: what an automation asks for, when, and with what. Pure; nothing here knows the time."""

from collections.abc import Mapping
from typing import Any

import msgspec

from paddock.rules.schedule.schedule import Kind, Missed, Schedule
from paddock.rules.values import Value

MODE = "automation"
"""The `runtime_mode` of a job's runs."""


class Job(Value, frozen=True):
    """A job as it is kept: who is asked what, when, and the part of `AutomationJob.config` that a run is given."""

    name: str
    prompt: str
    kind: Kind
    text: str
    time_zone: str
    starts_at: float
    agent_id: str | None = None
    missed: Missed = "skip"
    enabled_tools: tuple[str, ...] | None = None
    """Of its agent's tools only these; None leaves it all of them."""
    context: tuple[Mapping[str, str], ...] = ()

    @property
    def schedule(self) -> Schedule:
        return Schedule(self.kind, self.text, self.starts_at)

    def params(self) -> Mapping[str, Any]:
        """Parameters of a run of the job, in the place where other runs find their client's."""
        told: dict[str, Any] = {"forwardedProps": {"runtime_mode": MODE}}
        return told | ({"context": [dict(one) for one in self.context]} if self.context else {})


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Job)


def to_body(job: Job) -> bytes:
    return _encode(job)


def from_body(body: bytes) -> Job:
    return _decoder.decode(body)
