"""The AG-UI door: one POST in, the run's events out. For stock AG-UI clients, of 1.0 and of the 0.x before it."""

from asyncio import to_thread
from collections.abc import Awaitable, Callable, Sequence

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from paddock.host.agents.agents import Agents
from paddock.host.conversations.client_runs import ClientRuns, Told
from paddock.host.conversations.inbox import Accepted, Inbox, NewRun
from paddock.host.conversations.thread_names import ThreadNames
from paddock.host.people.principals import Principal
from paddock.host.streams.open_streams import Place
from paddock.http_api.ag_ui.capabilities import capabilities
from paddock.http_api.ag_ui.connect import ThreadSnapshot
from paddock.http_api.ag_ui.input import AgUiInput, AgUiLimits, read_ag_ui_input, read_names
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response, read_body
from paddock.http_api.edge.public_urls import local
from paddock.http_api.edge.routing import route
from paddock.http_api.edge.sources import source_of
from paddock.http_api.native.time_zones import is_time_zone
from paddock.http_api.streams.run_streams import RunStreams, peer_of
from paddock.rules.conversations.client_history import ClientMessage, Media
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.run.context import TriggerSource
from paddock.rules.run.input import body_hash
from paddock.rules.run.input_shapes import InvalidInputError
from paddock.rules.values import replace

log = structlog.get_logger(__name__)

AG_UI = "/api/v1/agent/ag-ui"
SHORT_BODY = 128 * 1024
"""Bytes that are read at once. A longer body may hold a million small values, so it is read on a thread."""


class AgUiDoor:
    def __init__(
        self,
        *,
        auth: Auth,
        inbox: Inbox,
        streams: RunStreams,
        agents: Agents,
        names: ThreadNames,
        client_runs: ClientRuns,
        standing: ThreadSnapshot,
        limits: AgUiLimits | None = None,
    ) -> None:
        self._auth = auth
        self._inbox = inbox
        self._streams = streams
        self._agents = agents
        self._names = names
        self._client_runs = client_runs
        self._standing = standing
        self._limits = limits or AgUiLimits()

    def routes(self) -> Sequence[BaseRoute]:
        base, one = AG_UI, f"{AG_UI}/{{agent}}"
        return [
            route("GET", f"{one}/capabilities", self.capabilities),
            route("GET", f"{base}/capabilities", self.capabilities),
            route("POST", f"{one}/connect", self.connect),
            route("POST", f"{base}/connect", self.connect),
            route("POST", one, self.post),
            route("POST", base, self.post),
        ]

    async def post(self, request: Request) -> ASGIApp:
        principal = await self._auth.principal(request.scope)
        agent_id = self._agent_of(request, principal)
        body = await self._body(request)
        given = self._read(request, body) if len(body) <= SHORT_BODY else await to_thread(self._read, request, body)
        place = self._streams.place(principal)
        try:
            told = _told(given, request.headers.get("accept", ""))
            return await self._stream(request, principal, given, told, agent_id, place)
        except BaseException:
            place.leave()
            raise

    async def _stream(
        self,
        request: Request,
        principal: Principal,
        given: AgUiInput,
        told: Told,
        agent_id: str | None,
        place: Place,
    ) -> ASGIApp:
        source, last = source_of(request.scope), request.headers.get("last-event-id")
        thread_id = await self._names.find(principal, given.thread_name)
        start = await self._streams.check_cursor(last, given.dialect, thread_id)
        accepted, diverged = await self._accept(principal, thread_id, given, told, agent_id, source)
        peer = peer_of(given.dialect, accepted.thread_id, given.run_id, given.thread_name)
        gone = self._when_gone(principal, accepted, agent_id)
        if start is not None and start.seq >= accepted.first_seq:
            return await self._streams.go_on(principal, accepted, peer, start, place=place, when_gone=gone)
        shown = await self._standing.before_run(principal, accepted, peer) if diverged else b""
        stream = await self._streams.from_the_start(
            principal, accepted, peer, place=place, after_start=shown, when_gone=gone
        )
        return stream if gone is None else stream.__call__  # not the short way, which does not look for its reader

    async def connect(self, request: Request) -> ASGIApp:
        principal = await self._auth.principal(request.scope)
        self._agent_of(request, principal)
        body = await self._body(request)
        try:
            name, run_id, dialect = read_names(body) if len(body) <= SHORT_BODY else await to_thread(read_names, body)
        except InvalidInputError as error:
            raise HostError(ErrorCode.INVALID_ARGUMENT, str(error)) from error
        thread_id = await self._names.find(principal, name)
        return await self._standing.stream(principal, thread_id, peer_of(dialect, thread_id, run_id or "", name))

    async def capabilities(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        agent_id = self._agent_of(request, principal)
        return json_response(capabilities(self._agents.get(agent_id or "", principal.workspace_id)))

    async def _accept(
        self,
        principal: Principal,
        thread_id: str,
        given: AgUiInput,
        told: Told,
        agent_id: str | None,
        source: TriggerSource,
    ) -> tuple[Accepted, bool]:
        diverged = False

        async def complete(new: NewRun, exists: bool) -> NewRun:
            nonlocal diverged
            done = await self._client_runs.completed(new, told, exists=exists)
            diverged = done.diverged
            return done.new

        new = NewRun(
            principal=principal,
            thread_id=thread_id,
            client_run_id=given.run_id,
            body_hash=body_hash(given.document, agent_id),
            message={},
            text="",
            params=given.params,
            agent_id=agent_id,
            source=source,
            door="ag-ui",
            thread_name=None if given.thread_name.lower() == thread_id else given.thread_name,
        )
        return await self._inbox.accept(new, complete), diverged

    def _when_gone(
        self, principal: Principal, accepted: Accepted, agent_id: str | None
    ) -> Callable[[], Awaitable[None]] | None:
        """Runs outlive their reader, unless the agent's owner would rather save the cost."""
        binding = self._agents.get(agent_id or self._agents.default_agent_id or "", principal.workspace_id)
        if binding is None or not binding.extras.cancel_on_disconnect:
            return None

        async def cancel() -> None:
            await self._inbox.cancel_by_id(accepted.task_id, principal, "reader_gone")

        return cancel

    async def _body(self, request: Request) -> bytes:
        most = self._limits.body_bytes
        return await read_body(request, most, f"the body exceeds {most} bytes")

    def _read(self, request: Request, body: bytes) -> AgUiInput:
        try:
            given = read_ag_ui_input(body, is_time_zone, self._limits)
        except InvalidInputError as error:
            raise HostError(ErrorCode.INVALID_ARGUMENT, str(error)) from error
        if given.passed_over:
            log.warning("parts of an input were passed over", action="ag_ui.input", what=given.passed_over)
        return replace(given, told=[_local(request, message) for message in given.told])

    def _agent_of(self, request: Request, principal: Principal) -> str | None:
        agent_id: str | None = request.path_params.get("agent")
        workspace = principal.workspace_id
        if agent_id is not None and not self._agents.known(agent_id, workspace):
            known = ", ".join(binding.agent_id for binding in self._agents.list(workspace))
            raise HostError(ErrorCode.NOT_FOUND, f"there is no agent {agent_id!r}; known are: {known}")
        return agent_id


def _local(request: Request, message: ClientMessage) -> ClientMessage:
    """Make paths of the addresses of files that lie at the host this client talks to."""
    if isinstance(message.content, str):
        return message
    parts = [
        replace(part, url=local(request, part.url)) if isinstance(part, Media) and part.url else part
        for part in message.content
    ]
    return replace(message, content=parts)


def _told(given: AgUiInput, accept: str) -> Told:
    """What the client tells. AG-UI's client libraries send a whole input, ask for a stream of events and tell the whole
    conversation; a request written by hand mostly has only what is new."""
    tells_all = given.is_whole and "text/event-stream" in accept.lower()
    return Told(given.told, given.raw, given.instructions, given.resume, given.unseen, tells_all)
