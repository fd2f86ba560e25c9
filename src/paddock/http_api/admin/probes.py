"""Is it alive, and is it ready? Needs no key and tells nothing about anybody."""

from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.http_api.edge.bodies import json_response
from paddock.http_api.edge.routing import route

Ready = Callable[[], tuple[bool, str]]


class Probes:
    def __init__(self, ready: Ready) -> None:
        self._ready = ready

    def routes(self) -> Sequence[BaseRoute]:
        return [
            route("GET", "/healthz", self.healthz),
            route("GET", "/readyz", self.readyz),
        ]

    async def healthz(self, _: Request) -> Response:
        return json_response({"status": "alive"})

    async def readyz(self, _: Request) -> Response:
        ready, reason = self._ready()
        return json_response({"status": "ready" if ready else "not ready", "reason": reason}, 200 if ready else 503)
