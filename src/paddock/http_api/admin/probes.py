"""Is it alive, is it ready, and numbers for Prometheus: of the host for whoever runs it, of a workspace for its
administrators."""

from collections.abc import Callable
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


class Probes(Operations):
    group = "Probes"

    def __init__(self, *, auth: Auth, ready: IsReady, numbers: Callable[[str | None], bytes]) -> None:
        self.auth = auth
        self._ready = ready
        self._numbers = numbers

    @operation("GET", "/healthz", role="anybody", answers={200: "Yes."})
    async def healthz(self) -> Alive:
        """Ask whether it is alive"""
        return Alive("alive")

    @operation("GET", "/readyz", role="anybody", answers={200: "Yes.", 503: "Not now."})
    async def readyz(self) -> Answered[Ready]:
        """Ask whether it is ready"""
        ready, reason = self._ready()
        return Answered(Ready("ready" if ready else "not ready", reason), 200 if ready else 503)

    @operation(
        "GET",
        "/metrics",
        role="admin",
        answers={200: "In its text format."},
        response=[Content("text/plain", str, EXAMPLE)],
    )
    async def metrics(self, who: Principal) -> Response:
        """Read numbers for Prometheus"""
        numbers = self._numbers(None if who.operator else who.workspace_id)
        return Response(numbers, headers={**GUARDED, "Content-Type": NUMBERS})
