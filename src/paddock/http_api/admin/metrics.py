"""Numbers for Prometheus: of the host for whoever runs it, of their workspace for administrators."""

from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.errors import GUARDED
from paddock.http_api.edge.routing import route

TEXT = "text/plain; version=0.0.4; charset=utf-8"


class MetricsDoor:
    def __init__(self, *, auth: Auth, page: Callable[[str | None], bytes]) -> None:
        self._auth = auth
        self._page = page

    def routes(self) -> Sequence[BaseRoute]:
        return [route("GET", "/metrics", self.get)]

    async def get(self, request: Request) -> Response:
        who = await self._auth.admin(request.scope)
        return Response(
            self._page(None if who.operator else who.workspace_id), headers={**GUARDED, "Content-Type": TEXT}
        )
