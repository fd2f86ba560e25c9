"""All doors of the HTTP API in one application, and which web pages of elsewhere may call it.

None may, unless the operator names their origins. No cookies are involved: a page has to bring a key like everybody
else. Browsers ask before they let a page call; one that is not named is refused with what to do about it.
"""

from collections.abc import Sequence

import structlog
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from paddock.http_api.ag_ui.door import AG_UI, ONE_AGENT
from paddock.http_api.edge.errors import not_routed, problem
from paddock.http_api.edge.operations import Door
from paddock.http_api.native.runs import RUNS
from paddock.rules.errors import ErrorCode

log = structlog.get_logger(__name__)

PAGES_MAY_USE = ("GET", "POST", "PUT", "PATCH", "DELETE")
PAGES_MAY_SEND = ("authorization", "content-type", "last-event-id", "accept")
PAGES_MAY_READ = ("retry-after", "location", "content-disposition")
STARTING_RUNS = (RUNS, AG_UI, ONE_AGENT)
MAX_PAGE = 200
"""Characters of an origin that are repeated, in the answer and in the log."""
LOGGED_PAGES = 20
"""The log names so many pages that were refused."""


class Api(Starlette):
    """Starlette, but for the calls that start runs: they go straight to their operation. To match every route and pass
    every middleware would cost a short run 2 % more. What a web page asks for goes the ordinary way."""

    def __init__(self, doors: Sequence[Door], *, origins: Sequence[str] = ()) -> None:
        """`origins` are the web pages of elsewhere that may call."""
        super().__init__(
            routes=[route for door in doors for route in door.routes()],
            middleware=[Middleware(Pages, origins)],
            exception_handlers={HTTPException: not_routed},
        )
        posts = [route for route in self.routes if isinstance(route, Route) and route.methods == {"POST"}]
        self._starting_runs = {route.path: route.app for route in posts if route.path in STARTING_RUNS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._starting_a_run(scope) if scope["type"] == "http" and scope["method"] == "POST" else None
        await (app or super().__call__)(scope, receive, send)

    def _starting_a_run(self, scope: Scope) -> ASGIApp | None:
        path: str = scope["path"]
        base, _, agent = path.rpartition("/")
        if base == AG_UI and agent not in ("", "connect"):
            path, scope["path_params"] = ONE_AGENT, {"agent": agent}
        found = self._starting_runs.get(path)
        return None if found is None or any(name == b"origin" for name, _ in scope["headers"]) else found


class Pages(CORSMiddleware):
    """Tells browsers which pages may call."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(
            app,
            allow_origins=[origin.lower() for origin in origins],
            allow_methods=PAGES_MAY_USE,
            allow_headers=PAGES_MAY_SEND,
            expose_headers=PAGES_MAY_READ,
        )
        self._refused: set[str] = set()

    def preflight_response(self, request_headers: Headers) -> Response:
        page = request_headers["origin"]
        if self.is_allowed_origin(page):
            return super().preflight_response(request_headers)
        cure, shown = "name that origin in the setting `cors_origins`", page[:MAX_PAGE]
        if shown not in self._refused and len(self._refused) < LOGGED_PAGES:
            self._refused.add(shown)
            log.warning("a page of another origin was refused", action="http.page_refused", origin=shown, cure=cure)
        return problem(403, ErrorCode.UNAUTHORIZED, f"web pages of {shown} may not call this host: {cure}")

    async def simple_response(self, scope: Scope, receive: Receive, send: Send, request_headers: Headers) -> None:
        if self.is_allowed_origin(request_headers.get("origin", "")):
            await super().simple_response(scope, receive, send, request_headers)
        else:  # other programs, and pages that are told nothing
            await self.app(scope, receive, send)
