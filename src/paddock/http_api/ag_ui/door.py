"""The AG-UI door: one POST in, the run's events out. For stock AG-UI clients, of 1.0 and of the 0.x before it."""

from asyncio import to_thread
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import msgspec
import structlog
from starlette.requests import Request
from starlette.types import ASGIApp

from paddock.host.agents.agents import AgentBinding, Agents
from paddock.host.conversations.client_runs import ClientRuns
from paddock.host.conversations.inbox import Accepted, Inbox, NewRun, ThreadNames
from paddock.host.people.principals import Principal
from paddock.host.streams.open_streams import OpenStream
from paddock.host.zones import is_time_zone
from paddock.http_api.ag_ui.connect import ThreadSnapshot
from paddock.http_api.ag_ui.event_types import FRAMES
from paddock.http_api.ag_ui.input import AgUiInput, AgUiLimits, read_ag_ui_input, read_names
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import JSON, Content, Operations, operation
from paddock.http_api.edge.requests import local, read_body, source_of
from paddock.http_api.edge.shapes import Answer, Json, about, invalid
from paddock.http_api.streams.run_stream import Cursor, RunReader, RunStreams, WhenGone
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.run.request_bodies import InvalidInputError, body_hash
from paddock.rules.values import replace

log = structlog.get_logger(__name__)

AG_UI = "/api/v1/agent/ag-ui"
ONE_AGENT = f"{AG_UI}/{{agent}}"
EXAMPLE = {"threadId": "main", "runId": "1", "messages": [{"id": "1", "role": "user", "content": "hello"}]}
OURS = {
    "connect": "POST {endpoint}/connect: how the thread stands, then its live run",
    "rejoin": "GET /api/v1/agent/runs/{runId}/events with Last-Event-ID",
    "cancel": "POST /api/v1/agent/runs/{runId}/cancel",
    "history": "GET /api/v1/agent/history",
    "branches": "leave out or change a user message: the conversation goes on from there",
    "attachments": "POST /api/v1/agent/attachments",
}
SHORT_BODY = 128 * 1024
"""Bytes that are read at once. A longer body may hold a million small values, so it is read on a thread."""


AgentName = Annotated[str, about("The agent to talk to.", example="echo")]
Name = Annotated[str, about(min_length=1, max_length=512)]


class AgUiConnect(msgspec.Struct, rename="camel"):
    thread_id: Name
    run_id: Name | None = None
    protocol_version: str | None = None


class RunInput(msgspec.Struct, rename="camel", kw_only=True):
    """A run as AG-UI clients ask for it; read by `input.py`."""

    thread_id: Name
    run_id: Name
    messages: list[Json]
    protocol_version: str | None = None
    parent_run_id: str | None = None
    state: Any = None
    tools: list[Json] | None = None
    context: list[Json] | None = None
    forwarded_props: Any = None
    resume: list[Json] | None = None


class Capabilities(Answer):
    """In AG-UI's own shape; what is ours beside it is under `custom`. What is not said is not declared."""

    identity: Annotated[dict[str, str], about(example={"name": "Echo", "type": "paddock"})]
    transport: dict[str, bool]
    tools: Annotated[dict[str, bool], about(example={"supported": True})]
    state: dict[str, bool]
    multi_agent: dict[str, bool]
    multimodal: dict[str, dict[str, bool]]
    human_in_the_loop: dict[str, bool]
    custom: Json


@dataclass(frozen=True, kw_only=True)
class AgUiDoor(Operations):
    group = "AG-UI"
    auth: Auth
    inbox: Inbox
    streams: RunStreams
    agents: Agents
    names: ThreadNames
    client_runs: ClientRuns
    standing: ThreadSnapshot
    limits: AgUiLimits = field(default_factory=AgUiLimits)

    @operation(
        "POST",
        (f"{ONE_AGENT}/connect", f"{AG_UI}/connect"),
        {200: "What was said as a snapshot, then the live run if there is one, as a stream of events."},
        errors=(404,),
        rate="streams",
        request=[Content(JSON, AgUiConnect, {"threadId": "main"})],
        response=[FRAMES],
    )
    async def connect(self, who: Principal, request: Request, agent: AgentName | None = None) -> ASGIApp:
        """Tell how a thread stands, and follow its live run (AG-UI)

        For a client that comes to a thread. Ends with the open interrupts of the last run, if any."""
        self._known(agent, who)
        body = await read_body(request, self.limits.body_bytes)
        try:
            name, run_id, dialect = read_names(body) if len(body) <= SHORT_BODY else await to_thread(read_names, body)
        except InvalidInputError as error:
            raise invalid(str(error)) from error
        thread_id = await self.names.find(who, name)
        return await self.standing.stream(
            who, thread_id, self.streams.peer(who, dialect, thread_id, run_id or "", name)
        )

    @operation(
        "GET",
        (f"{ONE_AGENT}/capabilities", f"{AG_UI}/capabilities"),
        {200: "The capabilities, in the official shape."},
        errors=(404,),
    )
    async def capabilities(self, who: Principal, agent: AgentName | None = None) -> Capabilities:
        """List what an AG-UI client may expect"""
        self._known(agent, who)
        return capabilities(self.agents.get(agent or "", who.workspace_id))

    @operation(
        "POST",
        (ONE_AGENT, AG_UI),
        {200: "The run, as a stream of AG-UI events."},
        errors=(404, 409),
        rate="streams",
        request=[Content(JSON, RunInput, EXAMPLE)],
        response=[FRAMES],
    )
    async def post(self, who: Principal, request: Request, agent: AgentName | None = None) -> ASGIApp:
        """Run an agent and stream its events (AG-UI)

        Tolerant: what is not known is passed over. Losing the connection cancels nothing."""
        self._known(agent, who)
        body = await read_body(request, self.limits.body_bytes)
        given = self._read(request, body) if len(body) <= SHORT_BODY else await to_thread(self._read, request, body)
        place = self.streams.open_streams.stream(who)
        try:
            return await self._stream(request, who, given, agent, place)
        except BaseException:
            place.leave()
            raise

    async def _stream(
        self, request: Request, who: Principal, given: AgUiInput, agent_id: str | None, place: OpenStream
    ) -> ASGIApp:
        headers = request.headers
        thread_id = await self.names.find(who, given.thread_name)
        last = headers.get("last-event-id")
        cursor = await self.streams.cursor(last, given.dialect, thread_id) if last else None
        diverged = False

        async def complete(new: NewRun, exists: bool) -> NewRun:
            nonlocal diverged
            # Client libraries send the whole conversation with every request; what is written by hand has what is new.
            tells_all = given.is_whole and "text/event-stream" in headers.get("accept", "").lower()
            done = await self.client_runs.completed(new, replace(given.told, tells_all=tells_all), exists=exists)
            diverged = done.diverged
            return done.new

        new = NewRun(
            principal=who,
            session_id=thread_id,
            client_run_id=given.run_id,
            body_hash=body_hash(given.document, agent_id),
            message={},
            text="",
            params=given.params,
            agent_id=agent_id,
            source=source_of(request.scope),
            door="ag-ui",
            thread_name=None if given.thread_name.lower() == thread_id else given.thread_name,
        )
        accepted = await self.inbox.accept(new, complete)
        peer = self.streams.peer(who, given.dialect, accepted.session_id, given.run_id, given.thread_name)
        gone = self._when_gone(who, accepted, agent_id)
        if cursor is not None and cursor.seq >= accepted.first_seq:
            return await self.streams.go_on(who, accepted, RunReader(peer, cursor, place, when_gone=gone))
        start = Cursor(given.dialect, accepted.first_seq, -1)
        shown = await self.standing.before_run(accepted, peer) if diverged else b""
        return await self.streams.open(who, accepted, RunReader(peer, start, place, shown, gone))

    def _when_gone(self, who: Principal, accepted: Accepted, agent_id: str | None) -> WhenGone | None:
        """Runs outlive their reader, unless the agent's owner would rather save the cost."""
        binding = self.agents.get(agent_id or self.agents.default_agent_id or "", who.workspace_id)
        if binding is None or not binding.extras.cancel_on_disconnect:
            return None
        return partial(self.inbox.cancel_by_id, accepted.run_id, who, "reader_gone")

    def _read(self, request: Request, body: bytes) -> AgUiInput:
        try:
            given = read_ag_ui_input(body, is_time_zone, self.limits, lambda url: local(request, url))
        except InvalidInputError as error:
            raise invalid(str(error)) from error
        if given.passed_over:
            log.warning("parts of an input were passed over", action="ag_ui.input", what=given.passed_over)
        return given

    def _known(self, agent_id: str | None, who: Principal) -> None:
        workspace = who.workspace_id
        if agent_id is not None and not self.agents.known(agent_id, workspace):
            known = ", ".join(binding.agent_id for binding in self.agents.list(workspace))
            raise HostError(ErrorCode.NOT_FOUND, f"there is no agent {agent_id!r}; known are: {known}")


def capabilities(binding: AgentBinding | None) -> Capabilities:
    named = {} if binding is None else {"name": binding.label, "description": binding.description}
    shows_tools = binding is None or binding.extras.frontend_tools is not False
    return Capabilities(
        identity={**named, "type": "paddock"},
        transport={"streaming": True, "websocket": False, "httpBinary": False, "resumable": False},
        tools={"supported": True, "parallelCalls": True, "clientProvided": shows_tools},
        state={"snapshots": False, "deltas": False},
        multi_agent={"supported": True, "handoffs": True},
        multimodal={"input": {"image": True, "audio": True, "video": True, "pdf": True, "file": True}},
        human_in_the_loop={"supported": True, "approvals": True, "interrupts": True, "approveWithEdits": False},
        custom={"paddock": OURS},
    )
