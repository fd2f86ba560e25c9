"""Buttons and forms of cards, pressed and sent."""

from collections.abc import Mapping
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.conversations.ui_actions import UiActions
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import has_body, json_response, read_object
from paddock.http_api.edge.routing import route
from paddock.http_api.edge.sources import source_of
from paddock.rules.errors import ErrorCode, HostError

PATH = "/api/v1/agent/ui-actions/{action}"


class UiActionsDoor:
    def __init__(self, *, auth: Auth, actions: UiActions) -> None:
        self._auth = auth
        self._actions = actions

    def routes(self) -> list[BaseRoute]:
        return [route("POST", PATH, self.post)]

    async def post(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        given = await read_object(request, ("values",)) if has_body(request) else {}
        accepted = await self._actions.use(
            principal, request.path_params["action"], _values(given), source_of(request.scope)
        )
        answer = {
            "taskId": accepted.task_id,
            "threadId": accepted.thread_id,
            "runId": accepted.run_id,
            "created": accepted.created,
        }
        return json_response(answer, 202)


def _values(given: Mapping[str, Any]) -> Mapping[str, Any]:
    values = given.get("values", {})
    if not isinstance(values, dict):
        raise HostError(ErrorCode.INVALID_ARGUMENT, "values must be an object: the fields of the form by name")
    return cast("dict[str, Any]", values)
