"""Transports of MCP servers: a child process over its pipes, or an address over streamable HTTP. Every message has a
bounded length.

The official client's own way reads lines of any length and copies what it has for every piece that arrives: a result of
200 MB would keep the host busy for minutes. Everything above the lines is still the official client's.
"""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TextIO

import anyio
import anyio.to_thread
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from paddock.rules.run.request_bodies import JsonValues, holds_more_values
from paddock_sdk import outbound

log = structlog.get_logger("paddock.mcp")

MAX_MESSAGE = 16 * 1024 * 1024
MAX_LOGGED_LINES = 50
"""Of what a server says on standard error, per start."""
LAST_WORDS_SECONDS = 1.0
POLITE_SECONDS = 2.0
"""How long a server that is ended has for each step: to see its input end, to hear the first signal, to be gone."""
MAX_VALUES = 100_000
"""Values of JSON in one message: making them takes far longer than reading text."""
SHORT = 64 * 1024
"""Bytes of a message that is read at once; a longer one is counted and read on a thread."""
TOO_MANY = f"it said more than {MAX_VALUES} values in one message"
TOO_LONG = f"it said more than {MAX_MESSAGE // (1024 * 1024)} MiB in one message"


@asynccontextmanager
async def over_stdio(
    command: Sequence[str], env: Mapping[str, str], errors: TextIO, complain: Callable[[str], None]
) -> AsyncGenerator[tuple[Any, Any]]:
    """The streams that the official session is made of. `complain` hears why a server is not listened to any more."""
    from mcp.client.stdio import get_default_environment

    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=errors,
        env={**get_default_environment(), **env},
        start_new_session=True,
        limit=MAX_MESSAGE,
    )
    heard, read = anyio.create_memory_object_stream[Any](0)
    write, said = anyio.create_memory_object_stream[Any](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_hear, process, heard, complain)
            group.start_soon(_say, process, said)
            try:
                yield read, write
            finally:
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)
        for stream in (heard, read, write, said):
            stream.close()


async def _hear(process: Process, heard: MemoryObjectSendStream[Any], complain: Callable[[str], None]) -> None:
    assert process.stdout is not None
    async with heard:
        with suppress(anyio.BrokenResourceError):  # nobody listens any more
            while line := await _line(process.stdout, complain):
                if len(line) <= SHORT:
                    await heard.send(_message(line))
                elif await anyio.to_thread.run_sync(holds_more_values, line, MAX_VALUES):
                    complain(TOO_MANY)
                    return
                else:
                    await heard.send(await anyio.to_thread.run_sync(_message, line))


async def _line(stdout: asyncio.StreamReader, complain: Callable[[str], None]) -> bytes:
    try:
        return await stdout.readuntil(b"\n")
    except asyncio.IncompleteReadError:
        return b""
    except asyncio.LimitOverrunError:
        complain(TOO_LONG)
        return b""


def _message(line: bytes) -> Any:
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _say(process: Process, said: MemoryObjectReceiveStream[Any]) -> None:
    assert process.stdin is not None
    with suppress(OSError):  # it is gone; whoever reads from it sees that
        async for message in said:
            text: str = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(f"{text}\n".encode())
            await process.stdin.drain()


async def _end(process: Process) -> None:
    """Its input ends, then it and all it started are asked to end, then they are ended."""
    assert process.stdin is not None
    process.stdin.close()
    for demand in (None, signal.SIGTERM, signal.SIGKILL):
        if demand is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, demand)
        with anyio.move_on_after(POLITE_SECONDS):
            await process.wait()
            return


@asynccontextmanager
async def logged(name: str, heard: Callable[[str], None]) -> AsyncGenerator[TextIO]:
    """Somewhere for a server to complain: its first lines go to the host's log, the rest nowhere."""
    reading, writing = os.pipe()
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=64 * 1024)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb"))

    async def tell() -> None:
        count = 0
        while piece := await reader.read(4096):
            for line in piece.decode("utf-8", "replace").splitlines():
                count += 1
                heard(line)
                if count <= MAX_LOGGED_LINES:
                    log.info(line[:500], action="mcp.stderr", server=name)

    telling = asyncio.ensure_future(tell())
    try:
        with os.fdopen(writing, "w") as errors:
            yield errors
    except Exception:
        await asyncio.wait({telling}, timeout=LAST_WORDS_SECONDS)  # it has ended: what it said last is on its way
        raise
    finally:
        telling.cancel()
        transport.close()


SILENT_SECONDS = 30.0
"""To connect and to send. A call has its own time, and between calls the server may be silent."""
PIECE = 16 * 1024
MAX_LINES = 50_000
"""Lines of one message that is streamed; a message that is written by a program has one."""
_EMPTY_LINES = (b"\n\n", b"\r\r", b"\r\n\r\n")
CLOSED, UNREADABLE = -32000, -32700
"""What the official client says of a request whose answer was lost on the way, in the codes of JSON-RPC."""


@asynccontextmanager
async def over_http(
    url: str, headers: Mapping[str, str], seen: Callable[[Any], Awaitable[None]]
) -> AsyncGenerator[tuple[Any, Any]]:
    """The streams that the official session is made of. `seen` is shown every response before it is read."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def bounded(response: Any) -> None:
        kind = response.headers.get("content-type", "")
        if kind.startswith("application/json"):
            response.stream = _stream_of(_whole(response.stream), response.stream)
        elif kind.startswith("text/event-stream"):
            response.stream = _stream_of(events_in(response.stream), response.stream)

    timeout, hooks = httpx2.Timeout(SILENT_SECONDS, read=None), {"response": [seen, bounded]}
    async with (
        outbound.client("any", headers=dict(headers), timeout=timeout, event_hooks=hooks) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
    ):
        yield streams[0], streams[1]


def was_lost(error: BaseException) -> bool:
    """Return true if a call was sent and no readable answer came."""
    return getattr(getattr(error, "error", None), "code", None) in {CLOSED, UNREADABLE}


def _stream_of(pieces: AsyncIterator[bytes], stream: Any) -> Any:
    """The pieces as the client takes them; closing them closes the stream they come from."""
    import httpx2

    class Stream(httpx2.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return pieces

        async def aclose(self) -> None:
            await stream.aclose()

    return Stream()


def _refused(why: str) -> Exception:
    import httpx2

    return httpx2.StreamError(why)


async def _whole(stream: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    message = bytearray()
    async for piece in stream:
        message += piece
        if len(message) > MAX_MESSAGE:
            raise _refused(TOO_LONG)
    if len(message) > SHORT and await anyio.to_thread.run_sync(holds_more_values, bytes(message), MAX_VALUES):
        raise _refused(TOO_MANY)
    yield bytes(message)


async def events_in(stream: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Messages one after the other, each ended by an empty line."""
    values, lines, before = JsonValues(MAX_VALUES), 0, b""
    async for received in stream:
        for start in range(0, len(received), PIECE):
            piece = received[start : start + PIECE]
            if (rest := _after_empty_line(before + piece)) is not None:
                values.begin_anew()
                lines = 0
            lines += piece.count(b"\n") + piece.count(b"\r")
            if values.feed(piece if rest is None else rest) or lines > MAX_LINES:
                raise _refused(TOO_MANY)
            before = piece[-3:]
            yield piece
            await asyncio.sleep(0)  # whoever reads it may take a while


def _after_empty_line(text: bytes) -> bytes | None:
    ends = [place + len(empty) for empty in _EMPTY_LINES if (place := text.rfind(empty)) >= 0]
    return text[max(ends) :] if ends else None
