"""Why a run may, or may not, make a host call: asked by its owner, or by an administrator of the workspace."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.conversations.thread_names import ThreadNames
from paddock.host.people.overview import Overview
from paddock.host.runs.explanations import Explanations
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response
from paddock.http_api.edge.routing import RUNS, route
from paddock.rules.errors import ErrorCode, HostError


class ExplainDoor:
    def __init__(self, *, auth: Auth, names: ThreadNames, overview: Overview, explanations: Explanations) -> None:
        self._auth = auth
        self._names = names
        self._overview = overview
        self._explanations = explanations

    def routes(self) -> Sequence[BaseRoute]:
        return [route("GET", f"{RUNS}/{{run}}/explain", self.get)]

    async def get(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        asked = request.query_params
        thread = asked.get("threadId")
        thread_id = None if thread is None else await self._names.find(principal, thread)
        run = await self._overview.find(principal, request.path_params["run"], thread_id)
        if not asked.get("action"):
            raise HostError(ErrorCode.INVALID_ARGUMENT, "say which host call: ?action=history.page")
        return json_response(await self._explanations.explain(run, asked["action"], asked.get("resource", "")))
