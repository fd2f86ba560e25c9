"""The AG-UI door: one POST in, the run's events out. For stock AG-UI clients, of 1.0 and of the 0.x before it."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.agents import Agents
from paddock.host.inbox import Inbox, NewRun
from paddock.host.principals import Principal
from paddock.http_api.ag_ui_input import MAX_BODY_BYTES, TOO_LARGE, AgUiInput, read_ag_ui_input
from paddock.http_api.auth import Auth
from paddock.http_api.bodies import json_response, read_body
from paddock.http_api.routing import route
from paddock.http_api.run_streams import RunStreams, peer_of
from paddock.http_api.stream import RunStream
from paddock.http_api.threads import thread_of
from paddock.http_api.time_zones import is_time_zone
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.run_input import body_hash
from paddock.rules.run_input_shapes import InvalidInputError

AG_UI = "/api/v1/agent/ag-ui"


class AgUiDoor:
    def __init__(self, *, auth: Auth, inbox: Inbox, streams: RunStreams, agents: Agents) -> None:
        self._auth = auth
        self._inbox = inbox
        self._streams = streams
        self._agents = agents

    def routes(self) -> Sequence[BaseRoute]:
        base = AG_UI
        return [
            route("POST", f"{base}/{{agent}}", self.post),
            route("POST", base, self.post),
            route("GET", f"{base}/{{agent}}/capabilities", self.capabilities),
            route("GET", f"{base}/capabilities", self.capabilities),
        ]

    async def post(self, request: Request) -> RunStream:
        principal = await self._auth.principal(request.scope)
        agent_id = self._agent_of(request, principal)
        given = _read(await read_body(request, MAX_BODY_BYTES, TOO_LARGE))
        new = NewRun(
            principal=principal,
            thread_id=thread_of(principal, given.thread_name),
            client_run_id=given.run_id,
            body_hash=body_hash(given.document, agent_id),
            message=given.message,
            text=given.text,
            params=given.params,
            agent_id=agent_id,
            door="ag-ui",
        )
        accepted = await self._inbox.accept(new)
        peer = peer_of(given.dialect, accepted.thread_id, given.run_id, given.thread_name)
        return await self._streams.from_the_start(
            principal, accepted.thread_id, accepted.task_id, accepted.first_seq, peer
        )

    async def capabilities(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        binding = self._agents.get(self._agent_of(request, principal) or "", principal.workspace_id)
        identity = {} if binding is None else {"name": binding.label, "description": binding.description}
        extras = {
            "rejoin": "GET /api/v1/agent/runs/{runId}/events with Last-Event-ID",
            "cancel": "POST /api/v1/agent/runs/{runId}/cancel",
        }
        answer = {
            "identity": {**identity, "type": "paddock"},
            "transport": {"streaming": True, "websocket": False, "httpBinary": False, "resumable": False},
            "tools": {"supported": True, "clientProvided": False},
            "multimodal": {"input": {"image": False, "audio": False, "video": False, "pdf": False, "file": False}},
            "custom": {"paddock": extras},
        }
        return json_response(answer)

    def _agent_of(self, request: Request, principal: Principal) -> str | None:
        agent_id: str | None = request.path_params.get("agent")
        workspace = principal.workspace_id
        if agent_id is not None and not self._agents.known(agent_id, workspace):
            known = ", ".join(binding.agent_id for binding in self._agents.list(workspace))
            raise HostError(ErrorCode.NOT_FOUND, f"there is no agent {agent_id!r}; known are: {known}")
        return agent_id


def _read(body: bytes) -> AgUiInput:
    try:
        return read_ag_ui_input(body, is_time_zone)
    except InvalidInputError as error:
        raise HostError(ErrorCode.INVALID_ARGUMENT, str(error)) from error
