"""Traces for OpenTelemetry: one for each run, with its steps and host calls (a tool call is one) as its parts.

A span is made when its part ends, with the times it had; export happens on a thread of the library's. What people and
agents say never becomes an attribute.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from paddock.rules.access.permissions import Grant

PATH = "/v1/traces"
MAX_LIVE = 10_000
"""Runs followed at once; those beyond it are not traced."""
MAX_STEPS = 64
"""Steps of one run that may be open at once."""


def traces_to(address: str, version: str) -> "Traces":
    endpoint = address.rstrip("/").removesuffix(PATH) + PATH
    return Traces(OTLPSpanExporter(endpoint=endpoint), version)


@dataclass(slots=True)
class _Run:
    span: Span
    inside: Context
    steps: dict[str, Span] = field(default_factory=dict[str, Span])


class Traces:
    def __init__(self, exporter: SpanExporter, version: str) -> None:
        resource = Resource.create({"service.name": "paddock", "service.version": version})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("paddock", version)
        self._runs: dict[str, _Run] = {}

    def close(self) -> None:
        """Send what waits. May take a moment: not for the event loop."""
        self._provider.shutdown()

    def run_started(self, grant: Grant, at: float) -> None:
        if len(self._runs) >= MAX_LIVE:
            return
        scope = grant.scope
        about = {
            "paddock.run_id": scope.run_id,
            "paddock.agent_id": scope.agent_id,
            "paddock.runner_id": grant.runner_id,
            "paddock.workspace_id": scope.workspace_id,
            "paddock.thread_id": scope.session_id,
        }
        span = self._span("run", at, Context(), about)
        self._runs[scope.run_id] = _Run(span, set_span_in_context(span, Context()))

    def run_ended(self, run_id: str, status: str, at: float) -> None:
        run = self._runs.pop(run_id, None)
        if run is None:
            return
        for step in run.steps.values():
            step.end(_nanoseconds(at))
        run.span.set_attribute("paddock.status", status)
        if status == "failed":
            run.span.set_status(Status(StatusCode.ERROR))
        run.span.end(_nanoseconds(at))

    def step(self, run_id: str, name: str, at: float, *, begins: bool) -> None:
        run = self._runs.get(run_id)
        if run is None:
            return
        if begins and name not in run.steps and len(run.steps) < MAX_STEPS:
            run.steps[name] = self._span(f"step {name[:64]}", at, run.inside, {})
        elif not begins and (span := run.steps.pop(name, None)) is not None:
            span.end(_nanoseconds(at))

    def host_call(self, run_id: str, action: str, resource: str, result: str, began: float, ended: float) -> None:
        run = self._runs.get(run_id)
        if run is None:
            return
        about = {"paddock.action": action[:128], "paddock.resource": resource[:256], "paddock.result": result}
        name = f"tool {resource[:64]}" if action == "tools.call" else action[:128]
        span = self._span(name, began, run.inside, about)
        if result != "allowed":
            span.set_status(Status(StatusCode.ERROR, result))
        span.end(_nanoseconds(ended))

    def _span(self, name: str, at: float, inside: Context, about: Mapping[str, Any]) -> Span:
        return self._tracer.start_span(name, inside, attributes=dict(about), start_time=_nanoseconds(at))


def _nanoseconds(at: float) -> int:
    return int(at * 1e9)
