"""One MCP server: started or called, its tools listed, started again when it dies. Calls go through while it is up.

The official SDK speaks the protocol; it is slow to import and is imported only when there is a server. Whatever a
server does, a call of its tools is an answer within its time.
"""

import asyncio
import binascii
import math
import sys
import time
from base64 import b64decode
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from typing import Any

import anyio
import anyio.to_thread
import structlog

from paddock.ports.places import Places
from paddock.ports.tools import ToolAnswer, ToolFile, ToolInfo, ToolUse
from paddock.rules.agents.specs import McpServerSpec, tool_name
from paddock.rules.errors import HostError
from paddock.rules.run.restart import Failure, rest_for
from paddock.tools.catalog import encoded, failed, text_part
from paddock.tools.mcp_child import NOT_STARTED
from paddock.tools.mcp_transports import logged, over_http, over_stdio, was_lost
from paddock_sdk.causes import cause_of


def answer_of(result: Any) -> ToolAnswer:
    parts: Sequence[Any] = result.content or ()
    texts = [part.text for part in parts if part.type == "text"]
    if result.is_error:
        return failed("\n".join(texts) or "the tool failed and gave no reason")
    structure = result.structured_content
    if any(_base64_in(part) is not None for part in parts):
        # a server that gives structure says it in words as well; one that does not is helped out
        before = [] if texts or structure is None else [text_part(encoded(structure).decode())]
        return ToolAnswer(b"", parts=(*before, *map(_part, parts)))
    if structure is not None:
        return ToolAnswer(encoded(structure))
    if len(texts) == len(parts):
        return ToolAnswer(encoded("\n".join(texts)))
    return ToolAnswer(encoded([_dumped(part) for part in parts]))


def _part(part: Any) -> Mapping[str, Any] | ToolFile:
    data = _base64_in(part)
    if data is None:
        return _dumped(part)
    about = getattr(part, "resource", part)
    try:
        content = b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return text_part(
            f"(a file came along, {about.mime_type or 'of no kind'}, that cannot be read: it is not base64)"
        )
    if (text := _text_in(part, content)) is not None:
        return {"type": "resource", "resource": {"uri": str(about.uri), "mimeType": about.mime_type, "text": text}}
    name = str(about.uri).rstrip("/").rsplit("/", 1)[-1] if part.type == "resource" else None
    return ToolFile(content, about.mime_type, name)


def _text_in(part: Any, content: bytes) -> str | None:
    if part.type != "resource" or (part.resource.mime_type or "").startswith("image/"):
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _base64_in(part: Any) -> str | None:
    if part.type in {"image", "audio"}:
        return part.data
    return getattr(part.resource, "blob", None) if part.type == "resource" else None


def _dumped(part: Any) -> dict[str, Any]:
    return part.model_dump(mode="json", exclude_none=True)


log = structlog.get_logger("paddock.mcp")

SDK = ("mcp", "mcp.types", "mcp.client.streamable_http", "httpx2")
START_SECONDS = 30.0
AT_ONCE = 32
"""Calls of one server at once; more wait their turn, workspace by workspace, within their own time."""
EACH = 24
"""Of them, calls of one workspace, so that the next one finds a place at once."""
WAITING, WAITING_IN_ALL = 256, 2048
MAX_TOOLS = 500
MAX_DESCRIPTION = 4000
BROKEN_STATUS = 500
ANEW = "it began anew"
ENDED = "it ended"
NOT_YET = "it has not been started yet"


@dataclass(eq=False)
class McpServer:
    """Owned by one task, `run`; asked by many."""

    name: str
    spec: McpServerSpec
    _: KW_ONLY
    reveal: Callable[[str], str]
    """Turns a reference into its secret."""
    mark: Mapping[str, str]
    """Our processes carry it in their environment."""
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self.tools: Mapping[str, tuple[str, ToolInfo]] = {}
        """By the name tools have here: the name they have there, and what is known of them. Kept while it restarts."""
        self.problem: str | None = NOT_YET
        """For whoever runs the host: all workspaces share the server, and a library may quote anything."""
        self._places = Places(AT_ONCE, each=EACH, waiting=WAITING, waiting_in_all=WAITING_IN_ALL)
        self._session: Any = None
        self._changed = asyncio.Event()
        self._gone = asyncio.Event()
        self._up = asyncio.Event()
        self._forgotten = False
        """A server over HTTP that began anew does not know this session: what it was asked in it was not done."""
        self._not_started = self._complaint = ""
        self._broken = 0
        """How often it answered over HTTP that it, or whoever stands before it, broke: what was asked may be done."""
        self._settled = asyncio.Event()
        """The first attempt is over, one way or the other."""
        self._failures: deque[Failure] = deque(maxlen=64)
        self._callers: Counter[str] = Counter()
        """Workspaces with a call at the server now."""
        self._lost_callers: set[str] = set()
        """Workspaces whose calls were lost with the present life of the server."""

    async def run(self) -> None:
        while True:
            try:
                await self._serve()
                self.problem = self.problem or ENDED
            except Exception as error:  # noqa: BLE001 - whatever a server does, the host goes on
                self.problem = ANEW if self._forgotten else self._not_started or cause_of(error)[:300]
            self._session = None
            self._settled.set()
            _leave_if_cancelled()
            pause = self._pause_after_failure()
            about = {"server": self.name, "reason": self.problem, "again_in": pause}
            log.warning("an MCP server is down", action="mcp.down", **about)
            await asyncio.sleep(pause)

    def _pause_after_failure(self) -> float:
        """Count the failure against the workspaces with a call in it; one workspace costs others a second at most."""
        now, callers = time.monotonic(), frozenset({*self._callers, *self._lost_callers})
        self._failures.append(Failure(now, callers))
        return rest_for(self._failures, None, now=now).seconds

    async def settled(self, seconds: float) -> None:
        """Wait for the first attempt to start it, but not for ever."""
        with anyio.move_on_after(seconds):
            await self._settled.wait()

    async def call(self, use: ToolUse) -> ToolAnswer:
        seconds = max(0.0, min(self.spec.timeout_seconds, use.deadline_at - self.clock()))
        try:
            async with asyncio.timeout(seconds) as limit:
                await self._places.enter(use.workspace_id)
        except TimeoutError:
            return failed(f"{use.name}: its turn did not come within {seconds:.3g} seconds; it was not called")
        except HostError as error:
            return failed(f"{use.name}: {error.message}")
        self._callers[use.workspace_id] += 1
        try:
            return await self._call_now(use, until=limit.when(), seconds=seconds)
        finally:
            self._callers[use.workspace_id] -= 1
            self._callers += Counter()
            self._places.leave(use.workspace_id)

    async def _call_now(self, use: ToolUse, *, until: float | None, seconds: float) -> ToolAnswer:
        """`seconds` is the whole time of the call, `until` its end on the clock of the event loop."""
        session, (theirs, _) = self._session, self.tools[use.name]
        if session is None:
            return failed(f"the MCP server {self.name} is down{self._why(self.problem)}; try again later")
        if (rest := rest_for(self._failures, use.workspace_id, now=time.monotonic()).seconds) > 0:
            often = "it went down in calls of this workspace"
            return failed(f"the MCP server {self.name} rests ({often}); try again in {math.ceil(rest)} seconds")
        broken = self._broken
        try:
            async with asyncio.timeout_at(until):
                return answer_of(await self._asked(session, theirs, dict(use.parameters)))
        except TimeoutError:
            text = f"{use.name} did not answer within {seconds:.3g} seconds; whether it did its work is not known"
            return failed(text, unknown=True)
        except Exception as error:  # noqa: BLE001 - an answer to the model, whatever it was
            if not (self._gone.is_set() or was_lost(error) or self._broken > broken):
                return failed(f"{use.name} failed: {cause_of(error)[:300]}")
            self._lost_callers.add(use.workspace_id)
            why = self._why((self.problem or ENDED) if self._gone.is_set() else None)
            text = f"the MCP server {self.name} was lost in the call{why}; whether it did its work is not known"
            return failed(text, unknown=True)

    async def _asked(self, session: Any, tool: str, parameters: dict[str, Any]) -> Any:
        try:
            return await session.call_tool(tool, parameters)
        except Exception:
            if not self._forgotten:
                raise
        await self._up.wait()
        return await self._session.call_tool(tool, parameters)

    async def _serve(self) -> None:
        self._gone.clear()
        self._lost_callers.clear()
        self._forgotten, self._not_started = False, ""
        async with self._connected() as session:
            self._session = session
            try:
                await self._list()
                self.problem = None
                self._settled.set()
                self._up.set()
                log.info("an MCP server is up", action="mcp.up", server=self.name, tools=len(self.tools))
                await self._until_gone()
            finally:  # before the session is closed: a call that is under way then is not known to have been made
                self._session = None
                self._up.clear()
                self._gone.set()

    async def _until_gone(self) -> None:
        gone = asyncio.ensure_future(self._gone.wait())
        try:
            while not gone.done():
                changed = asyncio.ensure_future(self._changed.wait())
                try:
                    await asyncio.wait({gone, changed}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                if self._changed.is_set() and not gone.done():
                    self._changed.clear()
                    await self._list()
        finally:
            gone.cancel()

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Any]:
        await anyio.to_thread.run_sync(_load)
        from mcp import ClientSession

        async with (
            self._transport() as (read, write),
            self._watched(read) as ours,
            ClientSession(ours, write, message_handler=self._heard) as session,
        ):
            with anyio.fail_after(START_SECONDS):
                await session.initialize()
            yield session

    @asynccontextmanager
    async def _transport(self) -> AsyncGenerator[tuple[Any, Any]]:
        if self.spec.url is not None:
            headers = {key: self.reveal(value) for key, value in self.spec.headers.items()}
            async with over_http(self.spec.url, headers, self._seen) as streams:
                yield streams
        else:
            env = {key: self.reveal(value) for key, value in self.spec.env.items()} | dict(self.mark)
            command = [sys.executable, "-m", "paddock.tools.mcp_child", str(self.spec.command), *self.spec.args]
            async with (
                logged(self.name, self._told) as errors,
                over_stdio(command, env, errors, self._complain) as streams,
            ):
                yield streams

    @asynccontextmanager
    async def _watched(self, read: Any) -> AsyncGenerator[Any]:
        """Pass the stream on, and signal its end: the SDK does not tell that a server is gone."""
        send, receive = anyio.create_memory_object_stream[Any](16)

        async def pass_on() -> None:
            try:
                async with send:
                    async for message in read:
                        await send.send(message)
            finally:
                self._session, self.problem = None, self.problem or ENDED
                self._gone.set()

        async with anyio.create_task_group() as group:
            group.start_soon(pass_on)
            try:
                yield receive
            finally:
                group.cancel_scope.cancel()

    async def _seen(self, response: Any) -> None:
        request = response.request
        self._broken += response.status_code >= BROKEN_STATUS
        if response.status_code == 404 and request.method == "POST" and "mcp-session-id" in request.headers:
            self.problem, self._forgotten = ANEW, True
            self._up.clear()
            self._gone.set()

    def _complain(self, problem: str) -> None:
        self.problem = self._complaint = problem

    def _why(self, problem: str | None) -> str:
        """A problem as a caller is told it: the host's own sentences, never those of a library or a program."""
        return f" ({problem})" if problem and problem in (ENDED, NOT_YET, ANEW, self._complaint) else ""

    def _told(self, line: str) -> None:
        """A program that does not exist is named; what a running one says is for the host's log alone."""
        if line.startswith(f"{self.spec.command} {NOT_STARTED}"):
            self._not_started = line[:300]

    async def _heard(self, message: Any) -> None:
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            self._changed.set()

    async def _list(self) -> None:
        from mcp.types import PaginatedRequestParams

        found: dict[str, tuple[str, ToolInfo]] = {}
        cursor: str | None = None
        while True:
            params = PaginatedRequestParams(cursor=cursor) if cursor else None
            with anyio.fail_after(START_SECONDS):
                page = await self._session.list_tools(params=params)
            for tool in page.tools:
                if (info := self._info(tool)) is not None:
                    found[info.name] = (tool.name, info)
            cursor = page.next_cursor
            if not cursor or len(found) >= MAX_TOOLS:
                break
        self.tools = found

    def _info(self, tool: Any) -> ToolInfo | None:
        if self.spec.tools is not None and tool.name not in self.spec.tools:
            return None
        name = tool_name(self.name, tool.name)
        if name is None:
            log.warning("a tool has no usable name", action="mcp.list", server=self.name, tool=str(tool.name)[:100])
            return None
        hints = tool.annotations
        return ToolInfo(
            name=name,
            tool_type="mcp",
            description=(tool.description or tool.title or tool.name)[:MAX_DESCRIPTION],
            parameters=tool.input_schema,
            source=self.name,
            read_only=bool(hints is not None and hints.read_only_hint),
        )


def _load() -> None:
    """Load the SDK, which takes a second: on a thread, so that the host goes on meanwhile."""
    for name in SDK:
        import_module(name)


def _leave_if_cancelled() -> None:
    """A line that breaks in the moment we are told to stop may raise its own error instead of what stops us."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
