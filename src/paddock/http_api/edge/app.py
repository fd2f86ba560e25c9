"""All doors of the HTTP API in one application. Everything it needs arrives as an argument; nothing is decided here."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from paddock.http_api.ag_ui.door import AG_UI, AgUiDoor
from paddock.http_api.edge.connection import Way
from paddock.http_api.edge.cors import Cors, origin_of
from paddock.http_api.edge.errors import Endpoint, not_routed
from paddock.http_api.edge.operations import Door, Operations, operations_of
from paddock.http_api.native.runs import RUNS, RunsDoor

AG_UI_OF_AN_AGENT = f"{AG_UI}/"


def create_app(*, ag_ui: AgUiDoor, native: RunsDoor, doors: Sequence[Door], origins: Sequence[str] = ()) -> "ShortWay":
    """The two doors that start runs, and all others. `origins` are web pages of elsewhere that may call."""
    routes = [route for door in (ag_ui, native, *doors) for route in door.routes()]
    app = Starlette(routes=routes, exception_handlers={HTTPException: not_routed})
    return ShortWay(Cors(app, origins), app.routes, ag_ui=_posting(ag_ui), runs=_posting(native))


def _posting(door: Operations) -> Endpoint:
    """The way in by which runs are started."""
    return Endpoint(door.handler(next(one for one in operations_of(type(door)) if one.name == "post")))


class ShortWay:
    """The two calls that start a run go straight to their door; matching routes would cost more than reading them.

    Everything else, every other method on their paths, and what a web page asks for goes the ordinary way.
    """

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute], *, ag_ui: Endpoint, runs: Endpoint) -> None:
        self._app = app
        self._ag_ui = ag_ui
        self._runs = runs
        self.routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._way(scope)(scope, receive, send)

    def _way(self, scope: Scope) -> ASGIApp:
        found = self._find(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if found is None or origin_of(scope) is not None:
            return self._app
        scope["path_params"] = found[1]
        return found[0]

    def find(self, method: bytes, url: bytes) -> Way | None:
        """Find a door from raw bytes; a path that is spelled in an unusual way is not found."""
        plain = method == b"POST" and b"%" not in url and b"?" not in url and url.isascii()
        return self._find(url.decode()) if plain else None

    def _find(self, path: str) -> Way | None:
        if path == RUNS:
            return self._runs, {}
        if path == AG_UI:
            return self._ag_ui, {}
        agent = path.removeprefix(AG_UI_OF_AN_AGENT)
        if len(agent) < len(path) and agent and agent != "connect" and "/" not in agent:
            return self._ag_ui, {"agent": agent}
        return None
