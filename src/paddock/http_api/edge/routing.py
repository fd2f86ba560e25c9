"""How a door names its ways in: it brings its own routes, and the application only joins them."""

from collections.abc import Sequence
from typing import Protocol

from starlette.routing import BaseRoute, Route

from paddock.http_api.edge.errors import Endpoint, Handler

RUNS = "/api/v1/agent/runs"
SESSION = "/api/v1/agent/sessions/{thread}"


class Door(Protocol):
    def routes(self) -> Sequence[BaseRoute]: ...


def route(method: str, path: str, handler: Handler) -> Route:
    made = Route(path, Endpoint(handler), methods=[method])
    made.methods = {method}  # no HEAD: asking for the head of a stream would follow the run to its end
    return made
