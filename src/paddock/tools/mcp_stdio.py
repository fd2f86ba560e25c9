"""An MCP server as a child process, spoken to in lines over its pipes, each of a bounded length.

The official client's own way reads lines of any length and copies what it has for every piece that arrives: a result of
200 MB would keep the host busy for minutes. Everything above the lines is still the official client's.
"""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TextIO

import anyio
import anyio.to_thread
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from paddock.rules.run.input import holds_more_values

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
    """Hand on what the server says, until it ends or says too much at once."""
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
    """What a line means; one that means nothing is handed on as the error it is."""
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
