"""`paddock runner dev`: run a plugin from its working directory and attach it to a running host, again after each save.

The plugin is any program that speaks the runner protocol on its standard input and output; here its lines are carried
over a WebSocket. A lost host is looked for again, a plugin that ends waits for the next save.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import websockets
from websockets.asyncio.client import ClientConnection, connect

from paddock.cli.client import UNAVAILABLE, HostClient, HostGoneError, RefusedError
from paddock.cli.failures import USAGE, CommandError
from paddock.runners.catalog import Plugin, PluginError, load_plugin
from paddock.runners.packages.contents import LEFT_OUT

FRAME_BYTES = 4 * 1024 * 1024
POLL_SECONDS = 0.3
POLITE_SECONDS = 2.0
RETRY_SECONDS = 1.0

Stamps = dict[str, tuple[int, int]]


def read(directory: Path) -> Plugin:
    """The plugin as the host would load it."""
    try:
        return load_plugin(directory)
    except PluginError as error:
        raise CommandError(str(error), exit_code=USAGE) from error


def dev(plugin: Plugin, client: Callable[[], HostClient]) -> int:
    """Until Ctrl-C. The first contact must work; later ones are tried again."""
    client().call("GET", "/readyz")
    with suppress(KeyboardInterrupt):
        asyncio.run(_until_interrupted(plugin, client))
    return 0


async def _until_interrupted(plugin: Plugin, client: Callable[[], HostClient]) -> None:
    _say(f"watching {plugin.directory}; Ctrl-C stops")
    while True:
        stamps = snapshot(plugin.directory)
        try:
            again_after_save = await _attached(plugin, client(), stamps)
        except (HostGoneError, RefusedError, OSError, websockets.WebSocketException) as error:
            if isinstance(error, RefusedError) and error.status != UNAVAILABLE:
                raise
            _say(f"no host to attach to ({error}); trying again")
            await asyncio.sleep(RETRY_SECONDS)
            continue
        if again_after_save:
            await _changed(plugin.directory, stamps)
            _say("saved; starting again")


async def _attached(plugin: Plugin, client: HostClient, stamps: Stamps) -> bool:
    """One plugin process on one connection. True: start again after a save; False: at once, the host went away."""
    token = await asyncio.to_thread(_mint, plugin, client)
    async with connect(_address(client.url, token), max_size=FRAME_BYTES, compression=None) as socket:
        process = await _start(plugin)
        news = asyncio.create_task(_announce(plugin, client))
        try:
            return await _carry(plugin, process, socket, stamps)
        finally:
            news.cancel()
            await asyncio.shield(_stop(process))


async def _announce(plugin: Plugin, client: HostClient) -> None:
    """Say so when the host offers the plugin's runners, which is after it has asked the plugin about them."""
    with suppress(CommandError):  # a host that went away is somebody else's news
        while not (runners := await asyncio.to_thread(_attached_runners, plugin, client)):  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # the host has no event for this
        _say(f"attached {', '.join(runners)} to {client.url}")
        agents = await asyncio.to_thread(client.call, "GET", "/api/v1/agents")
        _say(_how_to_chat(agents["agents"], runners))


def _attached_runners(plugin: Plugin, client: HostClient) -> list[str]:
    listed: list[dict[str, Any]] = client.call("GET", "/api/v1/runners")["runners"]
    return [one["runnerId"] for one in listed if one["plugin"] == plugin.id and one["state"] == "attached"]


def _how_to_chat(agents: list[dict[str, Any]], runners: list[str]) -> str:
    known = [agent["agentId"] for agent in agents if agent["runnerId"] in runners]
    if known:
        return f'try it: paddock chat --agent {known[-1]} "hello"'
    return f"no agent uses it yet; name one in the host's agents file, with  runner: {runners[0]}"


def _mint(plugin: Plugin, client: HostClient) -> str:
    answer = client.call("POST", "/api/v1/runners/attach-tokens", {"author": plugin.author, "name": plugin.name})
    return str(answer["token"])


def _address(url: str, token: str) -> str:
    return f"ws{url.removeprefix('http')}/api/v1/runners/attach?token={quote(token, safe='')}"


async def _start(plugin: Plugin) -> Process:
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


async def _carry(plugin: Plugin, process: Process, socket: ClientConnection, stamps: Stamps) -> bool:
    """Carry lines both ways until one side ends or a file is saved."""
    saved = asyncio.create_task(_changed(plugin.directory, stamps))
    to_plugin = asyncio.create_task(_to_plugin(socket, process))
    to_host = asyncio.create_task(_to_host(process, socket))
    work = {saved, to_plugin, to_host}
    try:
        done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in work:
            task.cancel()
        results = await asyncio.gather(*work, return_exceptions=True)
    for error in results:
        if isinstance(error, Exception) and not isinstance(error, OSError | websockets.WebSocketException):
            raise error
    if saved in done:
        return True
    if to_host in done and not isinstance(to_host.exception(), websockets.WebSocketException):
        _say(f"the plugin ended with exit code {await process.wait()}; it starts again when you save")
        return True
    _say(f"the host closed the connection{_why(socket)}; trying again")
    await asyncio.sleep(RETRY_SECONDS)
    return False


def _why(socket: ClientConnection) -> str:
    return f" ({socket.close_reason})" if socket.close_reason else ""


async def _to_plugin(socket: ClientConnection, process: Process) -> None:
    assert process.stdin is not None
    async for message in socket:
        process.stdin.write((message.encode() if isinstance(message, str) else message) + b"\n")
        await process.stdin.drain()


async def _to_host(process: Process, socket: ClientConnection) -> None:
    assert process.stdout is not None
    while line := await _next_line(process.stdout):
        if line.lstrip().startswith(b"{"):
            await socket.send(line.rstrip(b"\r\n").decode("utf-8", "replace"))
        elif line.strip():
            _say(f"not a frame, ignored: {line.decode('utf-8', 'replace').rstrip()[:200]}")


async def _next_line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readline()
    except ValueError as error:
        raise CommandError(
            f"The plugin wrote a line over {FRAME_BYTES // 1024**2} MiB, more than a frame may hold."
        ) from error


async def _stop(process: Process) -> None:
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


def snapshot(directory: Path) -> Stamps:
    """Every file with its time and size; a save changes one of them."""
    stamps: Stamps = {}
    for top, names, files in os.walk(directory):
        names[:] = [name for name in names if name not in LEFT_OUT]
        for name in files:
            path = os.path.join(top, name)  # noqa: PTH118 - thousands of files, twice a second
            with suppress(OSError):
                found = os.stat(path)  # noqa: PTH116
                stamps[path] = (found.st_mtime_ns, found.st_size)
    return stamps


async def _changed(directory: Path, before: Stamps) -> None:
    while snapshot(directory) == before:  # noqa: ASYNC110 - files have no event to wait for without another library
        await asyncio.sleep(POLL_SECONDS)


def _say(text: str) -> None:
    sys.stderr.write(f"[dev] {text}\n")
    sys.stderr.flush()
