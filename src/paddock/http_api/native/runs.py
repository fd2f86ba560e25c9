"""The native door: hand in a run, look at it, follow it, stop it. Strict: exactly the published shape or a 422."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.types import ASGIApp

from paddock.host.automation.automations import Automations
from paddock.host.conversations.client_history import ClientHistory
from paddock.host.conversations.inbox import Inbox, NewRun, ThreadNames
from paddock.host.people.principals import Principal
from paddock.host.runs.lookup import RunsView
from paddock.host.zones import is_time_zone
from paddock.http_api.ag_ui.event_types import FRAMES
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import JSON, Answered, Content, Operations, operation
from paddock.http_api.edge.requests import local, read_body, source_of
from paddock.http_api.edge.shapes import Accepted, Answer, Body, Count, Json, LastEventId, Moment, Query, about, seen
from paddock.http_api.streams.run_stream import RunStreams
from paddock.ports.attachments import AttachmentRef, Attachments
from paddock.rules.conversations.client_history import ClientMessage
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.payloads import RunEvent
from paddock.rules.log.projection import STEERED_INTO
from paddock.rules.rows.rows import TERMINAL_STATUSES, RunRow, RunStatus
from paddock.rules.run.input import (
    MAX_BODY_BYTES,
    MAX_MESSAGES,
    MAX_RUN_ID,
    NOT_SIGNED,
    TOO_LARGE,
    NativeInput,
    Problem,
    RunInputReader,
    World,
    with_attachments,
)
from paddock.rules.run.request_bodies import body_hash
from paddock.rules.schedule.schedule import Job
from paddock.rules.values import replace
from paddock_sdk.protocol.run_context import TriggerSource

RUNS = "/api/v1/agent/runs"
ONE = f"{RUNS}/{{run}}"
FindRun = Callable[[Principal, str, str | None], Awaitable[RunRow]]
RunName = Annotated[
    str,
    about("A taskId, or the caller's own runId when it names one run.", example="0199a8c4-5b1e-7c3a-9d2f-0123456789ab"),
]
EXAMPLE = {
    "threadId": "550e8400-e29b-41d4-a716-446655440000",
    "runId": "run-001",
    "state": {},
    "messages": [{"id": "msg-001", "role": "user", "content": "What is the weather in Oslo?"}],
    "tools": [],
    "context": [],
    "forwardedProps": {"runtime_mode": "chat"},
}

# --- a run as it is handed in: read by `rules/run/input.py`, which has the sentences of its table ---------------------

MessageId = Annotated[str, about(min_length=1, max_length=1024)]


class Asked(msgspec.Struct, rename="camel"):
    """A part of a run's input. What else it holds is passed over."""


class TextBlock(Asked, tag_field="type", tag="text"):
    text: str


class ImageBlock(Asked, tag_field="type", tag="binary"):
    mime_type: Annotated[str, about(pattern="^image/")]
    url: Annotated[str, about(min_length=1, max_length=4096)]
    id: str | UnsetType = UNSET
    filename: str | UnsetType = UNSET


class CalledFunction(Asked):
    name: str
    arguments: str


class FunctionCall(Asked):
    id: str
    type: Literal["function"]
    function: CalledFunction
    encrypted_value: str | None = None


class UserMessage(Asked, tag_field="role", tag="user"):
    id: MessageId
    content: str | list[TextBlock | ImageBlock]
    name: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET


class AssistantMessage(Asked, tag_field="role", tag="assistant"):
    id: MessageId
    content: str | None = None
    tool_calls: list[FunctionCall] | UnsetType = UNSET
    name: str | None = None
    encrypted_value: str | None = None


class SystemMessage(Asked, tag_field="role", tag="system"):
    id: MessageId
    content: str
    name: str | None = None
    encrypted_value: str | None = None


class DeveloperMessage(SystemMessage, tag="developer"):
    pass


class ToolMessage(Asked, tag_field="role", tag="tool"):
    id: MessageId
    content: str
    tool_call_id: str
    error: str | None = None
    encrypted_value: str | None = None


class ReasoningMessage(Asked, tag_field="role", tag="reasoning"):
    id: MessageId
    content: str
    encrypted_value: str | None = None


class ActivityMessage(Asked, tag_field="role", tag="activity"):
    id: MessageId
    activity_type: str
    content: Json


class ClientTime(Asked, rename=None):
    device_timezone: Annotated[str, about("An IANA zone.")]
    client_now_iso: Moment
    client_epoch_ms: Count


class ForwardedProps(Body, rename=None):
    runtime_mode: Literal["chat", "automation"]
    client_time: ClientTime | UnsetType = UNSET


class ClientTool(Asked):
    name: str
    description: str
    parameters: Json


class ClientContext(Asked):
    description: str
    value: str


RunMessage = (
    UserMessage | AssistantMessage | SystemMessage | DeveloperMessage | ToolMessage | ReasoningMessage | ActivityMessage
)


class RunAgentInput(Asked):
    thread_id: Annotated[str, about(schema={"format": "uuid"})]
    run_id: Annotated[str, about(min_length=1, max_length=MAX_RUN_ID)]
    messages: Annotated[
        list[RunMessage], about("Exactly one user message, and it comes first.", min_length=1, max_length=MAX_MESSAGES)
    ]
    forwarded_props: ForwardedProps
    parent_run_id: str | UnsetType = UNSET
    state: Any = None
    tools: list[ClientTool] | UnsetType = UNSET
    context: list[ClientContext] | UnsetType = UNSET


class NewRunQuery(Query):
    agent: (
        Annotated[str, about("Who answers; else the thread's active agent, else the default one.", example="echo")]
        | None
    ) = None


# --- a run as it is answered ------------------------------------------------------------------------------------------


class Usage(Answer):
    """Calls and tokens of a run's models. A cost of null: only models without a price were asked."""

    model_calls: Count
    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count
    cost: float | None
    unpriced_calls: Count | None = None


class Run(Answer):
    task_id: str
    thread_id: str
    run_id: str
    status: Annotated[RunStatus, about(example="completed")]
    created_at: Moment
    agent_id: Annotated[str, about(example="echo")] | None = None
    code: str | None = None
    message: str | None = None
    steered_into: Annotated[str, about("The run that took this one's input in.")] | None = None
    started_at: Moment | None = None
    ended_at: Moment | None = None
    deadline_at: Moment | None = None
    usage: Usage | None = None


class RunQuery(Query):
    thread_id: Annotated[str, about("Which thread a runId is of, when it names runs in several.")] | None = None


class FollowQuery(RunQuery):
    after: Annotated[str, about("A cursor: the id of the last event the reader has.", example="1.7.1")] | None = None
    last_event_id: LastEventId | None = None
    dialect: (
        Annotated[Literal["1", "0"], about("1 for AG-UI 1.0, 0 for 0.x.", must="be 1 (AG-UI 1.0) or 0 (AG-UI 0.x)")]
        | None
    ) = None


@dataclass(frozen=True, kw_only=True)
class RunsDoor(Operations):
    group = "Runs"
    auth: Auth
    names: ThreadNames
    history: ClientHistory
    inbox: Inbox
    runs: RunsView
    streams: RunStreams
    attachments: Attachments
    automations: Automations | None = None

    @operation(
        "POST",
        RUNS,
        {202: "The run is on record."},
        errors=(404, 409),
        rate="runs",
        request=[Content(JSON, RunAgentInput, EXAMPLE)],
        parameters=NewRunQuery,
    )
    async def post(self, who: Principal, request: Request) -> Accepted:
        """Hand in a run

        Strict: exactly this shape. camelCase and snake_case are both read. The same request again gets the same answer;
        another one under the same runId is a 409."""
        body = await read_body(request, MAX_BODY_BYTES, TOO_LARGE)
        given, job = await self._read(who, body)
        agent = request.query_params.get("agent") if request.scope["query_string"] else None
        new = _new_run(who, given, agent, source_of(request.scope))
        asked = new if job is None else _of_a_job(new, job)
        complete = partial(self._completed, given, [local(request, url) for url in given.urls])
        run = await self.inbox.accept(asked, complete if given.urls or _answers(given.params) else None)
        return Accepted(run.run_id, given.thread_as_sent, run.client_run_id, run.created)

    async def _read(self, who: Principal, body: bytes) -> tuple[NativeInput, Job | None]:
        """Read the request, and look up the job of its thread if it asks for automation."""
        reader, asked = RunInputReader(body), list[str]()
        given = reader.read(World(is_time_zone, lambda thread_id: bool(asked.append(thread_id))))
        found = await self.automations.of_thread(who, asked[0]) if asked and self.automations else None
        if found is not None:
            given = reader.read(World(is_time_zone, lambda _thread_id: True))
        if isinstance(given, Problem):
            raise HostError(given.code, given.message, details={"reason": given.reason} if given.reason else {})
        return given, found.job if found is not None else None

    async def _completed(self, given: NativeInput, urls: Sequence[str], new: NewRun, exists: bool) -> NewRun:
        """Add the files of the message and the answers to tool calls that wait for them; other answers reach the runner
        as they came. Asked once: a retry gets its answer although an address has expired since."""
        answers = await self.history.answers(new.session_id, _answers(new.params)) if exists else ()
        files = [await self._file(new.principal, url, new.session_id) for url in urls]
        if not files:
            return replace(new, supplied=answers)
        return replace(
            new,
            message=with_attachments(given, [file.block() for file in files]).message,
            attachments=[file.artifact() for file in files],
            rows=[*new.rows, *(file.attached(new.session_id) for file in files)],
            supplied=answers,
        )

    @operation("GET", ONE, {200: "The run as it is now."}, errors=(404, 409))
    async def get(self, who: Principal, run: RunName, query: RunQuery) -> Run:
        """Look at a run"""
        found = await self._find(who, run, query, self.runs.find)
        return run_seen(found, await self.runs.usage(found))

    @operation(
        "GET",
        f"{ONE}/events",
        {200: "Its events, from the beginning or after a cursor, to its end."},
        errors=(404, 409, 410),
        rate="streams",
        response=[FRAMES],
    )
    async def events(self, who: Principal, run: RunName, query: FollowQuery) -> ASGIApp:
        """Follow a run"""
        found = await self._find(who, run, query, self.runs.find)
        cursor = query.last_event_id or query.after
        return await self.streams.from_a_cursor(who, found, cursor, query.dialect, query.thread_id)

    @operation(
        "POST", f"{ONE}/cancel", {202: "The wish is on record.", 200: "It had ended already."}, errors=(404, 409)
    )
    async def cancel(self, who: Principal, run: RunName, query: RunQuery) -> Answered[Run]:
        """Stop a run"""
        before, after = await self.inbox.outage.outlast(partial(self._stop, who, run, query))
        return Answered(run_seen(after), 200 if before.status in TERMINAL_STATUSES else 202)

    async def _stop(self, who: Principal, run: str, query: RunQuery) -> tuple[RunRow, RunRow]:
        found = await self._find(who, run, query, self.runs.find_to_stop)
        return found, await self.inbox.cancel(found, who)

    async def _file(self, principal: Principal, url: str, thread_id: str) -> AttachmentRef:
        """Look up the file of a URL in the message. Nothing is fetched."""
        found = await self.attachments.resolve(
            url, workspace_id=principal.workspace_id, user_id=principal.user_id, session_id=thread_id
        )
        if found is None or not found.mime_type.startswith("image/"):
            raise HostError(ErrorCode.INVALID_ARGUMENT, NOT_SIGNED)
        return found

    async def _find(self, who: Principal, run: str, query: RunQuery, find: FindRun) -> RunRow:
        name = query.thread_id
        return await find(who, run, None if name is None else await self.names.find(who, name))


def _answers(params: Mapping[str, Any]) -> list[ClientMessage]:
    tools = (message for message in params.get("messages") or () if message["role"] == "tool")
    return [
        ClientMessage(
            message["id"],
            "tool",
            text=message["content"],
            tool_call_id=message["toolCallId"],
            error=message.get("error"),
        )
        for message in tools
    ]


def _new_run(principal: Principal, given: NativeInput, agent_id: str | None, source: TriggerSource) -> NewRun:
    return NewRun(
        principal=principal,
        session_id=given.thread_id,
        client_run_id=given.run_id,
        body_hash=body_hash(given.document, agent_id),
        message=given.message,
        text=given.text,
        params=given.params,
        agent_id=agent_id,
        source=source,
    )


def _of_a_job(new: NewRun, job: Job) -> NewRun:
    """Take context and tools from the job; those in the request are ignored."""
    params = {**new.params, "context": [dict(one) for one in job.context]}
    return replace(new, params=params, agent_id=new.agent_id or job.agent_id, event=RunEvent(tools=job.enabled_tools))


def run_seen(run: RunRow, usage: Mapping[str, Any] | None = None) -> Run:
    return seen(Run, run, **run_fields(run, usage))


def run_fields(run: RunRow, usage: Mapping[str, Any] | None = None) -> Json:
    """Collect the fields of a run that have another name in its row; what is not known yet is left out."""
    steered = run.code == STEERED_INTO
    return {
        "task_id": run.run_id,
        "thread_id": run.session_id,
        "run_id": run.client_run_id or run.run_id,
        "agent_id": run.agent_id or None,
        "message": None if steered else run.message,
        "steered_into": run.message if steered else None,
        "usage": msgspec.convert(usage, Usage) if usage else None,
    }
