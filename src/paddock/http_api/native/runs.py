"""The native door: hand in a run, look at it, follow it, stop it. Strict: exactly the published shape or a 422."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date
from functools import lru_cache, partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from paddock.host.automation.automations import Automations
from paddock.host.conversations.client_history import ClientHistory
from paddock.host.conversations.inbox import Inbox, NewRun
from paddock.host.conversations.thread_names import ThreadNames
from paddock.host.people.principals import Principal
from paddock.host.runs.lookup import RunsView
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response, read_body
from paddock.http_api.edge.public_urls import local
from paddock.http_api.edge.routing import RUNS, route
from paddock.http_api.edge.sources import source_of
from paddock.http_api.native.time_zones import is_time_zone
from paddock.http_api.streams.run_streams import RunStreams
from paddock.ports.attachments import AttachmentRef, Attachments
from paddock.rules.conversations.client_history import ClientMessage
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.projection import STEERED_INTO
from paddock.rules.rows.rows import TERMINAL_STATUSES, RunRow
from paddock.rules.run.context import TriggerSource
from paddock.rules.run.events import RunEvent
from paddock.rules.run.input import (
    MAX_BODY_BYTES,
    NOT_SIGNED,
    TOO_LARGE,
    NativeInput,
    Problem,
    World,
    body_hash,
    read_run_input,
    with_attachments,
)
from paddock.rules.schedule.automations import Job
from paddock.rules.values import replace

EPOCH_DAY = date(1970, 1, 1).toordinal()
FindRun = Callable[[Principal, str, str | None], Awaitable[RunRow]]


class RunsDoor:
    def __init__(
        self,
        *,
        auth: Auth,
        names: ThreadNames,
        history: ClientHistory,
        inbox: Inbox,
        runs: RunsView,
        streams: RunStreams,
        attachments: Attachments,
        automations: Automations | None = None,
    ) -> None:
        self._auth = auth
        self._names = names
        self._history = history
        self._attachments = attachments
        self._automations = automations
        self._inbox = inbox
        self._runs = runs
        self._streams = streams

    def routes(self) -> Sequence[BaseRoute]:
        base = RUNS
        return [
            route("POST", base, self.post),
            route("GET", f"{base}/{{run}}/events", self.events),
            route("POST", f"{base}/{{run}}/cancel", self.cancel),
            route("GET", f"{base}/{{run}}", self.get),
        ]

    async def post(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        body = await read_body(request, MAX_BODY_BYTES, TOO_LARGE)
        given, job = await self._read(principal, body)
        agent = request.query_params.get("agent") if request.scope["query_string"] else None
        new = _new_run(principal, given, agent, source_of(request.scope))
        asked = new if job is None else _of_a_job(new, job)
        complete = partial(self._completed, given, [local(request, url) for url in given.urls])
        accepted = await self._inbox.accept(asked, complete if given.urls or _answers(given.params) else None)
        answer = {
            "taskId": accepted.task_id,
            "threadId": given.thread_as_sent,
            "runId": accepted.run_id,
            "created": accepted.created,
        }
        return json_response(answer, 202)

    async def _read(self, principal: Principal, body: bytes) -> tuple[NativeInput, Job | None]:
        """The request, and the job whose thread it is on when it asks for automation. Whether it is the caller's job is
        asked only then; to know it the request is read once more, so that the first rule it breaks still answers."""
        asked: list[str] = []
        given = read_run_input(body, World(is_time_zone, lambda thread_id: bool(asked.append(thread_id))))
        found = await self._automations.of_thread(principal, asked[0]) if asked and self._automations else None
        if found is not None:
            given = read_run_input(body, World(is_time_zone, lambda _thread_id: True))
        if isinstance(given, Problem):
            raise HostError(given.code, given.message, details={"reason": given.reason} if given.reason else {})
        return given, found.job if found is not None else None

    async def _completed(self, given: NativeInput, urls: Sequence[str], new: NewRun, exists: bool) -> NewRun:
        """Add the files of the message and the answers to tool calls that wait for them; other answers reach the runner
        as they came. Asked once: a retry gets its answer although an address has expired since."""
        answers = await self._history.answers(new.thread_id, _answers(new.params)) if exists else ()
        files = [await self._file(new.principal, url, new.thread_id) for url in urls]
        if not files:
            return replace(new, supplied=answers)
        return replace(
            new,
            message=with_attachments(given, [file.block() for file in files]).message,
            attachments=[file.artifact() for file in files],
            rows=[*new.rows, *(file.attached(new.thread_id) for file in files)],
            supplied=answers,
        )

    async def get(self, request: Request) -> Response:
        _, run = await self._find(request, self._runs.find)
        usage = await self._runs.usage(run)
        return json_response({**as_json(run), **({"usage": usage} if usage else {})})

    async def events(self, request: Request) -> ASGIApp:
        principal, run = await self._find(request, self._runs.find)
        return await self._streams.from_a_cursor(request, principal, run)

    async def cancel(self, request: Request) -> Response:
        found, run = await self._inbox.outage.outlast(partial(self._stop, request))
        return json_response(as_json(run), 200 if found.status in TERMINAL_STATUSES else 202)

    async def _stop(self, request: Request) -> tuple[RunRow, RunRow]:
        """The run before and after; to ask for it twice is to ask for it once."""
        principal, found = await self._find(request, self._runs.find_to_stop)
        return found, await self._inbox.cancel(found, principal)

    async def _file(self, principal: Principal, url: str, thread_id: str) -> AttachmentRef:
        """What a URL of the message stands for. It is looked up, never fetched."""
        found = await self._attachments.resolve(
            url, workspace_id=principal.workspace_id, user_id=principal.user_id, thread_id=thread_id
        )
        if found is None or not found.mime_type.startswith("image/"):
            raise HostError(ErrorCode.INVALID_ARGUMENT, NOT_SIGNED)
        return found

    async def _find(self, request: Request, find: FindRun) -> tuple[Principal, RunRow]:
        principal = await self._auth.principal(request.scope)
        name = request.query_params.get("threadId")
        thread_id = None if name is None else await self._names.find(principal, name)
        return principal, await find(principal, request.path_params["run"], thread_id)


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
        thread_id=given.thread_id,
        client_run_id=given.run_id,
        body_hash=body_hash(given.document, agent_id),
        message=given.message,
        text=given.text,
        params=given.params,
        agent_id=agent_id,
        source=source,
    )


def _of_a_job(new: NewRun, job: Job) -> NewRun:
    """In automation the job says which tools and which context; what the client sends of that does not count."""
    params = {**new.params, "context": [dict(one) for one in job.context]}
    return replace(new, params=params, agent_id=new.agent_id or job.agent_id, event=RunEvent(tools=job.enabled_tools))


def as_json(run: RunRow) -> Mapping[str, Any]:
    """A run as callers see it; what is not known yet is left out."""
    seen = {
        "taskId": run.run_id,
        "threadId": run.session_id,
        "runId": run.client_run_id or run.run_id,
        "agentId": run.agent_id or None,
        "status": run.status,
        "code": run.code,
        "message": run.message if run.code != STEERED_INTO else None,
        "steeredInto": run.message if run.code == STEERED_INTO else None,
        "createdAt": iso(run.created_at),
        "startedAt": iso(run.started_at),
        "endedAt": iso(run.ended_at),
        "deadlineAt": iso(run.deadline_at),
    }
    return {key: value for key, value in seen.items() if value is not None}


def iso(seconds: float | None) -> str | None:
    """A moment as the API says it, in UTC to the millisecond. Pages hold hundreds of them, so the date is kept."""
    if seconds is None:
        return None
    days, millis = divmod(round(seconds * 1_000_000) // 1000, 86_400_000)
    minutes, millis = divmod(millis, 60_000)
    return f"{_date(days)}T{minutes // 60:02}:{minutes % 60:02}:{millis // 1000:02}.{millis % 1000:03}Z"


@lru_cache(maxsize=1024)
def _date(days: int) -> str:
    return date.fromordinal(EPOCH_DAY + days).isoformat()
