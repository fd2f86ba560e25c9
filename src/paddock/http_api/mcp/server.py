"""One run as an MCP server. Each run has its own, with its own sessions: one run's session id means nothing to another.

What is asked for goes through the gate as a host call of the run. When the run ends, its calls are cancelled here,
whether or not the client thinks of it. Importing this module loads the MCP library, which takes seconds: see `door.py`.
"""

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import Any, cast

import msgspec
import structlog
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ImageContent,
    ListToolsResult,
    TextContent,
    Tool,
    ToolAnnotations,
)
from starlette.types import Message, Receive, Scope, Send

from paddock.host.runs.live_run import LiveRun
from paddock.host.runs.surroundings import NAME, caller_of
from paddock.http_api.edge.errors import refusal
from paddock.ports import HostCallHandler, Overloaded
from paddock.rules.access.limits import MAX_CALL_BYTES, MAX_RANGE_BYTES
from paddock.rules.conversations.attachments import IMAGES
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.log.events import event_id_of
from paddock.rules.run.tools import RunTool, params_of, run_tools

MAX_SESSIONS = 32
MAX_CALLS = 32
"""Calls of one run that may be under way here at once."""
IDLE_SECONDS = 600.0
LAST_WORDS_SECONDS = 0.5
"""How long answers to cancelled calls may take to be sent before the connections are closed."""
OVER = "the run has ended, and what it had under way with it"
BUSY = "too many calls of this run are under way; wait for some of them to end"

log = structlog.get_logger("paddock.mcp")

Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
_encode = msgspec.json.Encoder().encode


class RunServer:
    """The MCP server of one run."""

    def __init__(self, run: LiveRun, on_call: HostCallHandler, *, overloaded: Overloaded, spawn: Spawn) -> None:
        self.caller = caller_of(run)
        self._run = run
        self._on_call = on_call
        self._overloaded = overloaded
        self._tools = run_tools(run.agent, run.grant)
        self._under_way: set[asyncio.Task[Mapping[str, Any]]] = set()
        self._requests: set[asyncio.Task[Any]] = set()
        self._ended = asyncio.Event()
        self._standing = asyncio.Event()
        server: Server[Any] = Server(
            NAME,
            version=version("paddock"),
            instructions="Tools of the host this conversation lives in. They work while the present turn lasts.",
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        self._manager = StreamableHTTPSessionManager(
            server, session_idle_timeout=IDLE_SECONDS, max_request_body_size=MAX_CALL_BYTES, max_sessions=MAX_SESSIONS
        )
        spawn(self._serve())

    def end(self) -> None:
        """The run is over: cancel what it has under way, let the answers out, close."""
        for call in self._under_way:
            call.cancel()
        self._ended.set()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        await self._standing.wait()
        task = asyncio.ensure_future(self._manager.handle_request(scope, receive, sending))
        self._requests.add(task)
        try:
            await task
        except asyncio.CancelledError:
            task.cancel()
            if not self._ended.is_set():
                raise
        except RuntimeError:
            if not self._ended.is_set():
                raise
        finally:
            self._requests.discard(task)
        if not begun:
            await refusal(HostError(ErrorCode.UNAUTHENTICATED, OVER))(scope, receive, send)

    async def _serve(self) -> None:
        try:
            async with self._manager.run():
                self._standing.set()
                await self._ended.wait()
                await self._let_answers_out()
        finally:  # also when the house stops: nobody waits for what will not come
            self._ended.set()
            self._standing.set()
            for request in list(self._requests):
                request.cancel()

    async def _let_answers_out(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_SECONDS):
                while self._under_way:
                    await asyncio.wait(set(self._under_way))
                await asyncio.sleep(LAST_WORDS_SECONDS / 2)

    # --- what MCP asks

    async def _list(self, _ctx: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[_told(tool) for tool in self._tools.values()])

    async def _call(self, _ctx: Any, params: CallToolRequestParams) -> CallToolResult:
        tool = self._tools.get(params.name)
        try:
            if tool is None:
                return said(await self._refused(params), is_error=True)
            answer = await self._through_the_gate(tool, params.arguments or {})
        except HostError as error:
            return said(f"{error.code}: {error.message}", is_error=True)
        except StorageUnavailableError:
            return said("runtime_error: the host's store is away; try again shortly", is_error=True)
        return await answered(tool.method, answer, self._file)

    async def _refused(self, params: CallToolRequestParams) -> str:
        """Ask the gate for a tool that this run does not have: it refuses, and records the call."""
        asked = {"run_id": self._run.run_id, "tool_name": params.name, "parameters": params.arguments or {}}
        try:
            await self._on_call(self.caller, "tools.call", asked, len(_encode(asked)))
        except HostError as error:
            return f"{error.code}: {error.message}"
        return f"there is no tool {params.name[:64]!r}"

    async def _through_the_gate(self, tool: RunTool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Make one host call of the run. It is cancelled when the run ends."""
        if self._ended.is_set():
            raise HostError(ErrorCode.UNAUTHORIZED, OVER)
        asked = params_of(tool, self._run.grant, arguments, self._event_id())
        if len(self._under_way) >= MAX_CALLS:
            self._overloaded(self.caller, tool.method, asked, 0)
            raise HostError(ErrorCode.RATE_LIMITED, BUSY, retryable=True)
        call = asyncio.ensure_future(self._asked(tool.method, asked))
        self._under_way.add(call)
        try:
            return await call
        except asyncio.CancelledError:
            call.cancel()
            if self._ended.is_set():
                raise HostError(ErrorCode.UNAUTHORIZED, OVER) from None
            raise
        finally:
            self._under_way.discard(call)

    async def _asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = await self._on_call(self.caller, method, params, len(_encode(params)))
        return msgspec.json.decode(answer) if isinstance(answer, msgspec.Raw) else answer

    async def _file(self, artifact_id: str) -> bytes | None:
        """Return a file that this run may read; None if it is too large to show."""
        if "artifacts.read_range" not in self._run.grant.actions:
            return None
        content, more = bytearray(), True
        while more and len(content) <= SHOWN_BYTES:
            asked = {"run_id": self._run.run_id, "artifact_id": artifact_id, "offset": len(content)}
            try:
                piece = await self._asked("artifacts.read_range", {**asked, "length": MAX_RANGE_BYTES})
            except HostError:
                return None
            content += b64decode(str(piece.get("content_base64") or ""))
            more = bool(piece.get("has_more"))
        return bytes(content) if len(content) <= SHOWN_BYTES else None

    def _event_id(self) -> str:
        given = self._run.session.find_input(self._run.run_id)
        return event_id_of(self._run.grant.scope.session_id, given.seq if given else 0)


def _told(tool: RunTool) -> Tool:
    hints = ToolAnnotations(read_only_hint=True, open_world_hint=False) if tool.read_only else None
    schema = {"type": "object", **tool.parameters}
    return Tool(name=tool.name, description=tool.description, input_schema=schema, annotations=hints)


# --- answers of host calls as MCP content: plain text, because models read that best, and pictures as pictures --------


SHOWN_BYTES = 3_750_000
"""A picture's, so that it stays below the five million characters providers take; a larger one is only named."""

ReadFile = Callable[[str], Awaitable[bytes | None]]


def said(text: str, *, is_error: bool = False) -> CallToolResult:
    words = TextContent(type="text", text=text)
    return CallToolResult(content=[words], structured_content=_wrapped(text), is_error=is_error)


async def answered(method: str, answer: Mapping[str, Any], read: ReadFile) -> CallToolResult:
    """Convert an answer: a tool's text as it is, files by type, everything else as JSON. `read` gets a file's bytes."""
    match method:
        case "tools.call":
            return await _of_tool(answer, read)
        case "artifacts.read_range":
            shown = await _picture(answer, read) if not answer.get("offset") else None
            return CallToolResult(content=[shown]) if shown is not None else said(_file_text(answer))
        case _:
            return said(_encode(answer).decode())


async def _of_tool(answer: Mapping[str, Any], read: ReadFile) -> CallToolResult:
    parts = _parts(answer.get("result"))
    if not any(part.get("type") in {"image", "file"} for part in parts):
        return said(_tool_text(answer), is_error=bool(answer.get("is_error")))
    content: list[ContentBlock] = [await _block(part, read) for part in parts]
    if answer.get("artifact"):
        content.append(TextContent(type="text", text=_whole(answer)))
    return CallToolResult(content=content)


def _parts(result: Any) -> list[Mapping[str, Any]]:
    parts = cast("list[Any]", result) if isinstance(result, list) else []
    return [cast("Mapping[str, Any]", part) for part in parts] if all(isinstance(one, dict) for one in parts) else []


async def _block(part: Mapping[str, Any], read: ReadFile) -> ContentBlock:
    if part.get("type") == "image" and (shown := await _picture(part, read)) is not None:
        return shown
    if part.get("type") == "text" and isinstance(part.get("text"), str):
        return TextContent(type="text", text=part["text"])
    return TextContent(type="text", text=_encode(part).decode())


async def _picture(about: Mapping[str, Any], read: ReadFile) -> ImageContent | None:
    """Return the picture that an answer refers to; None if it is no picture or too large."""
    kind, artifact_id = about.get("mime_type"), about.get("artifact_id")
    if kind not in IMAGES or not isinstance(artifact_id, str):
        return None
    content = await read(artifact_id)
    return ImageContent(data=b64encode(content).decode(), mime_type=str(kind)) if content else None


def _wrapped(text: str) -> dict[str, Any] | None:
    """Only for text that is JSON and no object, such as a number. Gemini CLI takes JSON text for structured content,
    which must be an object, and fails the call if it is none; where we say it ourselves it leaves the text alone."""
    if not text.startswith(tuple('-0123456789["tfn')):
        return None
    try:
        return {"result": value} if not isinstance(value := json.loads(text), dict) else None
    except (ValueError, RecursionError):
        return None


def _tool_text(answer: Mapping[str, Any]) -> str:
    result = answer.get("result")
    text = result if isinstance(result, str) else _encode(result).decode() if result is not None else ""
    if not answer.get("artifact"):
        return text
    return f"{text}\n\n{_whole(answer)}" if text else _whole(answer)


def _whole(answer: Mapping[str, Any]) -> str:
    about = cast("Mapping[str, Any]", answer["artifact"])
    return f"The whole result is the file {about.get('artifact_id')}; read it with artifact_read."


def _file_text(answer: Mapping[str, Any]) -> str:
    """Return text as text. Other bytes stay base64, with the fields of the answer."""
    content = b64decode(str(answer.get("content_base64") or ""))
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return _encode(answer).decode()
    if "\0" in text:
        return _encode(answer).decode()
    more = answer.get("has_more")
    return f"{text}\n\n[more follows from offset {int(answer['offset']) + len(content)}]" if more else text
