"""One process of a plugin under work and one connection to a host: started, carried for line by line, stopped."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import quote

import websockets
from websockets.asyncio.client import ClientConnection

from paddock.cli.client import HostClient
from paddock.cli.output import CommandError
from paddock.rules.agents.addresses import TOKENS, attach_address
from paddock.runners.installed.plugins import Plugin

FRAME_BYTES = 4 * 1024 * 1024
POLITE_SECONDS = 2.0
AGAINST_THE_RULES = frozenset({1002, 1003, 1007, 1008, 1009})
"""Close codes that say the plugin did wrong; those from 4000 on are the host's own refusals."""
Heard = Callable[[bytes], object]


def mint(plugin: Plugin, client: HostClient) -> str:
    """The plugin file's ceiling goes along: what is tried here may do no more than what will be installed."""
    ceiling = plugin.ceiling.model_dump(exclude_defaults=True)
    body = {"author": plugin.author, "name": plugin.name, "permissions": ceiling}
    return str(client.call("POST", TOKENS, body)["token"])


def address(url: str, token: str) -> str:
    """Return the address where a runner attaches to a host."""
    return f"{attach_address(url)}?token={quote(token, safe='')}"


def through(url: str, door: str, token: str) -> str:
    """Return the address where one host relays a runner to another."""
    return f"{address(url, token)}&host={quote(door, safe='')}"


def with_token(door: str, token: str) -> str:
    return f"{door}?token={quote(token, safe='')}"


def refuses(close_code: int | None) -> bool:
    return close_code is not None and (close_code >= 4000 or close_code in AGAINST_THE_RULES)


async def start(plugin: Plugin) -> Process:
    argv = [
        str(plugin.python or sys.executable) if plugin.command[0] == "python" else plugin.command[0],
        *plugin.command[1:],
    ]
    environ = {**os.environ, "PADDOCK_PLUGIN": plugin.id, "PYTHONUNBUFFERED": "1"}
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            cwd=plugin.directory,
            env=environ,
            stdin=PIPE,
            stdout=PIPE,
            limit=FRAME_BYTES + 2,
            start_new_session=True,  # Ctrl-C is for us; the plugin is then asked politely
        )
    except OSError as error:
        raise CommandError(f"Cannot start {argv[0]}: {error.strerror}.") from error


async def first_of(*work: asyncio.Task[None]) -> set[asyncio.Task[None]]:
    """Those that ended first; the others are stopped. A lost connection is no error here, anything else is."""
    try:
        done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in work:
            task.cancel()
        results = await asyncio.gather(*work, return_exceptions=True)
    for error in results:
        if isinstance(error, Exception) and not isinstance(error, OSError | websockets.WebSocketException):
            raise error
    return done


async def to_plugin(socket: ClientConnection, process: Process, heard: Heard) -> None:
    assert process.stdin is not None
    async for message in socket:
        line = message.encode() if isinstance(message, str) else message
        heard(line)
        process.stdin.write(line + b"\n")
        await process.stdin.drain()


async def to_host(process: Process, socket: ClientConnection, said: Heard = lambda _: None) -> None:
    assert process.stdout is not None
    while line := await _next_line(process.stdout):
        if line.lstrip().startswith(b"{"):
            await socket.send(line.rstrip(b"\r\n").decode("utf-8", "replace"))
            said(line)
        elif line.strip():
            say(f"not a frame, ignored: {line.decode('utf-8', 'replace').rstrip()[:200]}")


async def _next_line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readline()
    except ValueError as error:
        raise CommandError(
            f"The plugin wrote a line over {FRAME_BYTES // 1024**2} MiB, more than a frame may hold. "
            "Have it send less at once."
        ) from error


async def stop(process: Process) -> None:
    """Ask by closing its input, then firmly: the whole group, so that nothing it started stays."""
    if process.stdin is not None:
        process.stdin.close()
    for demand in (None, signal.SIGTERM, signal.SIGKILL):
        if demand is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, demand)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), POLITE_SECONDS)
            break
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def say(text: str) -> None:
    sys.stderr.write(f"[dev] {text}\n")
    sys.stderr.flush()
