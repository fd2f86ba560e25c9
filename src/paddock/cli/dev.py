"""`paddock runner dev`: run a plugin from its working directory and attach it to a running host, again after each save.

The plugin is any program that speaks the runner protocol on its standard input and output; here its lines are carried
over a WebSocket. A lost host is looked for again; a plugin that ends, is refused or cannot be read waits for the next
save, because until then nothing would be different.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import websockets
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket

from paddock.cli.client import UNAVAILABLE, HostClient, HostGoneError, RefusedError, connect
from paddock.cli.failures import USAGE, CommandError
from paddock.cli.program import command
from paddock.cli.watching import Stamps, changed, snapshot
from paddock.runners.packages.contents import OWN_DIRECTORY, holds_data
from paddock.runners.plugins import Plugin, PluginError, load_plugin

FRAME_BYTES = 4 * 1024 * 1024
POLITE_SECONDS = 2.0
RETRY_SECONDS = 1.0
ON_SAVE = "it is tried again when you save"
AGAINST_THE_RULES = frozenset({1002, 1003, 1007, 1008, 1009})
"""Close codes that say the plugin did wrong; those from 4000 on are the host's own refusals."""


def dev(directory: Path, *, url: str | None, data: Path | None) -> int:
    """Until Ctrl-C. The first contact must work; later ones are tried again."""
    _check(directory)
    work = Work(directory.resolve(), url, data)
    work.host().call("GET", "/readyz")
    with suppress(KeyboardInterrupt):
        asyncio.run(work.until_interrupted())
    return 0


def _check(directory: Path) -> None:
    try:
        load_plugin(directory)
    except PluginError as error:
        raise CommandError(str(error), exit_code=USAGE) from error
    if holds_data(directory):
        raise CommandError(f"{directory} is where a host keeps its data. {OWN_DIRECTORY}", exit_code=USAGE)


@dataclass(slots=True)
class Work:
    """One plugin under work and the host it is tried on. Each step says whether only a save can change anything."""

    directory: Path
    url: str | None
    data: Path | None
    _was_attached: bool = False
    _no_host: str = field(default="")
    """What was said of a missing host; said again only when it changes."""

    def host(self) -> HostClient:
        return connect(self.url, self.data)

    async def until_interrupted(self) -> None:
        _say(f"watching {self.directory}; Ctrl-C stops")
        while True:
            stamps = snapshot(self.directory)
            if await self._try(stamps):
                await changed(self.directory, stamps)
                _say("saved; starting again")

    async def _try(self, stamps: Stamps) -> bool:
        """The plugin as it is saved now, on the host that is there now."""
        try:
            return await self._attached(load_plugin(self.directory), self.host(), stamps)
        except (HostGoneError, OSError, websockets.WebSocketException) as error:
            if _is_refusal(error):
                _say(f"the host refused it: {error}; {ON_SAVE}")
                return True
            return await self._wait_for_a_host(str(error))
        except RefusedError as error:
            if error.status == UNAVAILABLE:
                return await self._wait_for_a_host(str(error))
            if not self._was_attached:
                raise
            _say(f"the host refused it: {error}; {ON_SAVE}")
        except (PluginError, CommandError) as error:
            _say(f"{str(error).rstrip('.')}; {ON_SAVE}")
        return True

    async def _wait_for_a_host(self, why: str) -> bool:
        if why != self._no_host:
            _say(f"no host to attach to, trying again: {why}")
        self._no_host = why
        await asyncio.sleep(RETRY_SECONDS)
        return False

    async def _attached(self, plugin: Plugin, client: HostClient, stamps: Stamps) -> bool:
        """One plugin process on one connection."""
        token = await asyncio.to_thread(_mint, plugin, client)
        async with open_socket(_address(client.url, token), max_size=FRAME_BYTES, compression=None) as socket:
            self._no_host = ""
            process = await _start(plugin)
            news = asyncio.create_task(self._announce(plugin, client))
            try:
                return await _carry(plugin, process, socket, stamps)
            finally:
                news.cancel()
                await asyncio.shield(_stop(process))

    async def _announce(self, plugin: Plugin, client: HostClient) -> None:
        """Say so when the host offers the plugin's runners, which is after it has asked the plugin about them."""
        with suppress(CommandError):  # a host that went away is somebody else's news
            while not (runners := await asyncio.to_thread(_attached_runners, plugin, client)):  # noqa: ASYNC110
                await asyncio.sleep(0.1)  # the host has no event for this
            self._was_attached = True
            _say(f"attached {', '.join(runners)} to {client.url}")
            agents = await asyncio.to_thread(client.call, "GET", "/api/v1/agents")
            _say(self._how_to_chat(agents["agents"], runners))

    def _how_to_chat(self, agents: list[dict[str, Any]], runners: list[str]) -> str:
        known = [agent["agentId"] for agent in agents if agent["runnerId"] in runners]
        if known:
            return f'try it: {command("chat", url=self.url, data=self.data)} --agent {known[-1]} "hello"'
        return f"no agent uses it yet; name one in the host's agents file, with  runner: {runners[0]}"


def _is_refusal(error: Exception) -> bool:
    """The host is there and does not want this plugin as it is."""
    if isinstance(error, websockets.InvalidStatus):
        return 400 <= error.response.status_code < 500
    return isinstance(error, websockets.ConnectionClosed) and _refuses(error.rcvd.code if error.rcvd else None)


def _refuses(close_code: int | None) -> bool:
    return close_code is not None and (close_code >= 4000 or close_code in AGAINST_THE_RULES)


def _attached_runners(plugin: Plugin, client: HostClient) -> list[str]:
    listed: list[dict[str, Any]] = client.call("GET", "/api/v1/runners")["runners"]
    return [one["runnerId"] for one in listed if one["plugin"] == plugin.id and one["state"] == "attached"]


def _mint(plugin: Plugin, client: HostClient) -> str:
    """The plugin file's ceiling goes along: what is tried here may do no more than what will be installed."""
    ceiling = plugin.ceiling.model_dump(exclude_defaults=True)
    body = {"author": plugin.author, "name": plugin.name, "permissions": ceiling}
    return str(client.call("POST", "/api/v1/runners/attach-tokens", body)["token"])


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
    """Carry lines both ways until one side ends or a file is saved. False: the host went away and may come back."""
    saved = asyncio.create_task(changed(plugin.directory, stamps))
    to_plugin = asyncio.create_task(_to_plugin(socket, process))
    to_host = asyncio.create_task(_to_host(process, socket))
    done = await _first_of(saved, to_plugin, to_host)
    if saved in done:
        return True
    if _refuses(socket.close_code):
        _say(f"the host refused it: {socket.close_reason or 'it gave no reason, its log may'}; {ON_SAVE}")
        return True
    if to_host in done and not isinstance(to_host.exception(), websockets.WebSocketException):
        _say(f"the plugin ended with exit code {await process.wait()}; it starts again when you save")
        return True
    _say(f"the host closed the connection{_why(socket)}; trying again")
    await asyncio.sleep(RETRY_SECONDS)
    return False


async def _first_of(*work: asyncio.Task[None]) -> set[asyncio.Task[None]]:
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


def _say(text: str) -> None:
    sys.stderr.write(f"[dev] {text}\n")
    sys.stderr.flush()
