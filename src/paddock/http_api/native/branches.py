"""Another course for a conversation, opinions on its answers, and all of it to take away. Reads and answers only."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from paddock.host.conversations.branches import Again, Branches
from paddock.host.conversations.exports import Exports
from paddock.host.conversations.thread_names import ThreadNames
from paddock.host.people.principals import Principal
from paddock.host.session.controls import Controls
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response, read_object
from paddock.http_api.edge.errors import GUARDED
from paddock.http_api.edge.routing import SESSION, route
from paddock.http_api.edge.sources import source_of
from paddock.http_api.streams.stream import in_pieces
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.run.input import MAX_RUN_ID, MAX_TEXT

MAX_COMMENT = 2_000


class BranchesDoor:
    def __init__(
        self, *, auth: Auth, names: ThreadNames, branches: Branches, controls: Controls, exports: Exports
    ) -> None:
        self._auth = auth
        self._names = names
        self._branches = branches
        self._controls = controls
        self._exports = exports

    def routes(self) -> Sequence[BaseRoute]:
        one = SESSION
        return [
            route("POST", f"{one}/edit", self.edit),
            route("POST", f"{one}/regenerate", self.regenerate),
            route("PUT", f"{one}/messages/{{item}}/feedback", self.feedback),
            route("GET", f"{one}/export", self.export),
        ]

    async def edit(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        given = await read_object(request, ("itemId", "content", "runId", "agentId"))
        text = _text(given, "content", most=MAX_TEXT)
        if text is None:
            raise HostError(ErrorCode.INVALID_ARGUMENT, "content must be the new words, and not empty")
        return await self._again(request, principal, given, text)

    async def regenerate(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        return await self._again(request, principal, await read_object(request, ("itemId", "runId", "agentId")), None)

    async def _again(
        self, request: Request, principal: Principal, given: Mapping[str, Any], text: str | None
    ) -> Response:
        thread_id = await self._names.find(principal, request.path_params["thread"])
        item_id = _text(given, "itemId")
        if item_id is None:
            raise HostError(ErrorCode.INVALID_ARGUMENT, "itemId must name a message: an id that the history gives")
        run_id = _text(given, "runId", most=MAX_RUN_ID) or str(uuid4())
        asked = Again(item_id, run_id, _text(given, "agentId"), text, source_of(request.scope))
        accepted = await self._branches.again(principal, thread_id, asked)
        answer = {
            "taskId": accepted.task_id,
            "threadId": accepted.thread_id,
            "runId": accepted.run_id,
            "created": False,
        }
        return json_response(answer, 202)

    async def feedback(self, request: Request) -> Response:
        principal, thread_id = await self._thread(request)
        given = await read_object(request, ("rating", "comment"))
        rating = given.get("rating")
        if "rating" not in given or rating not in ("up", "down", None):
            raise HostError(ErrorCode.INVALID_ARGUMENT, "rating must be up or down, or null to take it back")
        comment = _text(given, "comment", most=MAX_COMMENT) or ""
        await self._branches.rate(principal, thread_id, request.path_params["item"], rating, comment)
        return Response(status_code=204)

    async def export(self, request: Request) -> ASGIApp:
        principal, thread_id = await self._thread(request)
        form = request.query_params.get("format", "json")
        if form not in ("json", "markdown"):
            raise HostError(ErrorCode.INVALID_ARGUMENT, "format must be json or markdown")
        session = await self._controls.find(principal, thread_id)
        as_json = form == "json"
        pieces = self._exports.as_json(session) if as_json else self._exports.as_markdown(session)
        name = f"conversation-{thread_id}.{'json' if as_json else 'md'}"
        headers = {**GUARDED, "Content-Disposition": f'attachment; filename="{name}"'}
        media_type = "application/json" if as_json else "text/markdown; charset=utf-8"
        return in_pieces(StreamingResponse(pieces, headers=headers, media_type=media_type))

    async def _thread(self, request: Request) -> tuple[Principal, str]:
        principal = await self._auth.principal(request.scope)
        return principal, await self._names.find(principal, request.path_params["thread"])


def _text(given: Mapping[str, Any], name: str, *, most: int = 512) -> str | None:
    value = given.get(name)
    if value is not None and (not isinstance(value, str) or len(value) > most):
        raise HostError(ErrorCode.INVALID_ARGUMENT, f"{name} must be text of at most {most} characters")
    return value or None
