"""Is it alive, is it ready, and numbers for Prometheus: of the host for whoever runs it, of a workspace for its
administrators."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from starlette.responses import Response

from paddock.host.people.principals import Principal
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.errors import GUARDED
from paddock.http_api.edge.operations import Answered, Content, Operations, operation
from paddock.http_api.edge.shapes import Answer, about

IsReady = Callable[[], tuple[bool, str]]
NUMBERS = "text/plain; version=0.0.4; charset=utf-8"
EXAMPLE = """\
# HELP paddock_runs_in_flight Runs that have not ended.
# TYPE paddock_runs_in_flight gauge
paddock_runs_in_flight 3
"""


class Alive(Answer):
    status: Annotated[str, about(example="alive")]


class Ready(Answer):
    status: Annotated[str, about(example="ready")]
    reason: Annotated[str, about(example="ready")]


@dataclass(frozen=True, kw_only=True)
class Probes(Operations):
    group = "Probes"
    auth: Auth
    ready: IsReady
    numbers: Callable[[str | None], bytes]

    @operation("GET", "/healthz", {200: "Yes."}, role="anybody")
    async def healthz(self) -> Alive:
        """Ask whether it is alive"""
        return Alive("alive")

    @operation("GET", "/readyz", {200: "Yes.", 503: "Not now."}, role="anybody")
    async def readyz(self) -> Answered[Ready]:
        """Ask whether it is ready"""
        ready, reason = self.ready()
        return Answered(Ready("ready" if ready else "not ready", reason), 200 if ready else 503)

    @operation(
        "GET", "/metrics", {200: "In its text format."}, role="admin", response=[Content("text/plain", str, EXAMPLE)]
    )
    async def metrics(self, who: Principal) -> Response:
        """Read numbers for Prometheus"""
        numbers = self.numbers(None if who.operator else who.workspace_id)
        return Response(numbers, headers={**GUARDED, "Content-Type": NUMBERS})
