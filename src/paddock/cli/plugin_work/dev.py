"""`paddock runner dev`: run a plugin from its working directory and attach it to a running host, again after each save.

The plugin is any program that speaks the runner protocol on its standard input and output; here its lines are carried
over a WebSocket. The other hosts of a cluster get a process each. A lost host is looked for again; a plugin that ends,
is refused or cannot be read waits for the next save, because until then nothing would be different.
"""

import asyncio
import json
import os
from asyncio.subprocess import Process
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import websockets
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket

from paddock.cli.client import UNAUTHENTICATED, UNAVAILABLE, HostClient, HostGoneError, RefusedError, at, connect
from paddock.cli.output import USAGE, CommandError, command, counted, fails_with
from paddock.cli.plugin_work import dev_relay as relay
from paddock.cli.plugin_work.dev_cluster import DevCluster
from paddock.runners.installed.plugins import Plugin, PluginError, load_plugin
from paddock.runners.packages.contents import LEFT_OUT, OWN_DIRECTORY, holds_data
from paddock_sdk.protocol.results import TERMINAL_TYPES

POLL_SECONDS = 0.3

Stamps = dict[str, tuple[int, int]]


def snapshot(directory: Path) -> Stamps:
    """Every file with its time and size; a save changes one of them."""
    stamps: Stamps = {}
    for top, names, files in os.walk(directory):
        names[:] = [name for name in names if name not in LEFT_OUT and not holds_data(f"{top}/{name}")]
        for name in files:
            path = os.path.join(top, name)  # noqa: PTH118 - thousands of files, twice a second
            with suppress(OSError):
                found = os.stat(path)  # noqa: PTH116
                stamps[path] = (found.st_mtime_ns, found.st_size)
    return stamps


async def changed(directory: Path, before: Stamps) -> None:
    """Return when something was saved since then."""
    while snapshot(directory) == before:  # noqa: ASYNC110 - files have no event to wait for without another library
        await asyncio.sleep(POLL_SECONDS)


class RunsUnderWay:
    def __init__(self) -> None:
        self._runs: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._runs)

    def heard(self, line: bytes) -> None:
        """A line from the host: it begins a run, or has it stopped, and then nobody waits for it any more."""
        if b'"run_agent"' in line and (started := _params(line, "run_agent")):
            self._runs.add(str(started["context"]["run_id"]))
        elif b'"cancel_run"' in line:
            self._runs.discard(str(_params(line, "cancel_run").get("run_id")))
        self._look()

    def said(self, line: bytes) -> None:
        """A line from the plugin, perhaps the last one of a run."""
        if b'"run.' in line:
            params = _params(line, "run_result")
            if params.get("type") in TERMINAL_TYPES:
                self._runs.discard(str(params.get("run_id")))
                self._look()

    async def over(self) -> None:
        """Wait until none is under way."""
        await self._idle.wait()

    def _look(self) -> None:
        self._idle.clear() if self._runs else self._idle.set()


def _params(line: bytes, method: str) -> dict[str, Any]:
    """Return the parameters of a frame of this method; empty for other frames."""
    try:
        frame: Any = json.loads(line)
        return cast("dict[str, Any]", frame["params"]) if frame["method"] == method else {}
    except (ValueError, LookupError, TypeError):
        return {}


RETRY_SECONDS = 1.0
FINISH_SECONDS = 30.0
"""How long runs of the old version may go on after a save."""
ON_SAVE = "it is tried again when you save"


def dev(directory: Path, *, url: str | None, data: Path | None) -> None:
    """Work until Ctrl-C. The first contact must succeed; later ones are tried again."""
    _check(directory)
    work = DevSession(directory.resolve(), url, data)
    work.host().call("GET", "/readyz")
    with suppress(KeyboardInterrupt):
        asyncio.run(work.until_interrupted())


def _check(directory: Path) -> None:
    with fails_with(PluginError, exit_code=USAGE):
        load_plugin(directory)
    if holds_data(directory):
        raise CommandError(f"{directory} is where a host keeps its data. {OWN_DIRECTORY}", exit_code=USAGE)


@dataclass(slots=True)
class DevSession:
    """One plugin under work and the host it is tried on. Each step says whether only a save can change anything."""

    directory: Path
    url: str | None
    data: Path | None
    _was_attached: bool = False
    _no_host: str = field(default="")
    """What was said of a missing host; said again only when it changes."""
    _cluster: DevCluster | None = None
    """The same at the other hosts of a cluster."""

    def host(self) -> HostClient:
        return connect(self.url, self.data)

    async def until_interrupted(self) -> None:
        relay.say(f"watching {self.directory}; Ctrl-C stops")
        saved: Stamps | None = None
        while True:
            stamps = snapshot(self.directory)
            if stamps != saved:  # perhaps while a host was looked for
                await self._leave_the_others()
            saved = stamps
            if await self._try(stamps):
                await self._leave_the_others()
                await changed(self.directory, stamps)
                relay.say("saved; starting again")

    async def _try(self, stamps: Stamps) -> bool:
        """The plugin as it is saved now, on the host that is there now."""
        try:
            return await self._attached(load_plugin(self.directory), self.host(), stamps)
        except (HostGoneError, OSError, websockets.WebSocketException) as error:
            if _is_refusal(error):
                relay.say(f"the host refused it: {error}; {ON_SAVE}")
                return True
            return await self._wait_for_a_host(str(error))
        except RefusedError as error:
            if error.status == UNAVAILABLE or (error.status == UNAUTHENTICATED and self._was_attached):
                return await self._wait_for_a_host(str(error))  # a host that starts anew has another local token
            if not self._was_attached:
                raise
            relay.say(f"the host refused it: {error}; {ON_SAVE}")
        except (PluginError, CommandError) as error:
            relay.say(f"{str(error).rstrip('.')}; {ON_SAVE}")
        return True

    async def _wait_for_a_host(self, why: str) -> bool:
        if why != self._no_host:
            relay.say(f"no host to attach to, trying again: {why}")
        self._no_host = why
        await asyncio.sleep(RETRY_SECONDS)
        return False

    async def _attached(self, plugin: Plugin, client: HostClient, stamps: Stamps) -> bool:
        token = await asyncio.to_thread(relay.mint, plugin, client)
        async with open_socket(
            relay.address(client.url, token), max_size=relay.FRAME_BYTES, compression=None
        ) as socket:
            self._no_host = ""
            process = await relay.start(plugin)
            self._cluster = self._cluster or DevCluster(plugin, lambda: relay.mint(plugin, self.host()), client.url)
            news = asyncio.create_task(self._announce(plugin, client))
            try:
                return await _carry(plugin, process, socket, stamps, self._cluster.heard)
            finally:
                news.cancel()
                await asyncio.shield(relay.stop(process))

    async def _leave_the_others(self) -> None:
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            await cluster.stop()

    async def _announce(self, plugin: Plugin, client: HostClient) -> None:
        """Say so when the host offers the plugin's runners, which is after it has asked the plugin about them."""
        with suppress(CommandError):  # a host that went away is somebody else's news
            while not (runners := await asyncio.to_thread(_attached_runners, plugin, client)):  # noqa: ASYNC110
                await asyncio.sleep(0.1)  # the host has no event for this
            self._was_attached = True
            relay.say(f"attached {', '.join(runners)} to {client.url}")
            agents = await asyncio.to_thread(client.call, "GET", at("agents"))
            relay.say(self._how_to_chat(agents["agents"], runners))

    def _how_to_chat(self, agents: list[dict[str, Any]], runners: list[str]) -> str:
        known = [agent["agentId"] for agent in agents if agent["runnerId"] in runners]
        if known:
            return f'try it: {command("chat", url=self.url, data=self.data)} --agent {known[-1]} "hello"'
        return f"no agent uses it yet; name one in the host's agents file, with  runner: {runners[0]}"


def _is_refusal(error: Exception) -> bool:
    """The host is there and does not want this plugin as it is."""
    if isinstance(error, websockets.InvalidStatus):
        return 400 <= error.response.status_code < 500
    return isinstance(error, websockets.ConnectionClosed) and relay.refuses(error.rcvd.code if error.rcvd else None)


def _attached_runners(plugin: Plugin, client: HostClient) -> list[str]:
    listed: list[dict[str, Any]] = client.call("GET", at("runners"))["runners"]
    return [one["runnerId"] for one in listed if one["plugin"] == plugin.id and one["state"] == "attached"]


async def _carry(
    plugin: Plugin, process: Process, socket: ClientConnection, stamps: Stamps, heard: relay.Heard
) -> bool:
    """Carry lines both ways until one side ends or a file is saved. False: the host went away and may come back."""
    runs = RunsUnderWay()
    saved = asyncio.create_task(_saved(plugin.directory, stamps, runs))
    to_the_plugin = asyncio.create_task(relay.to_plugin(socket, process, lambda line: (heard(line), runs.heard(line))))
    to_the_host = asyncio.create_task(relay.to_host(process, socket, runs.said))
    done = await relay.first_of(saved, to_the_plugin, to_the_host)
    if saved in done:
        return True
    if relay.refuses(socket.close_code):
        relay.say(f"the host refused it: {socket.close_reason or 'it gave no reason, its log may'}; {ON_SAVE}")
        return True
    if to_the_host in done and not isinstance(to_the_host.exception(), websockets.WebSocketException):
        relay.say(f"the plugin ended with exit code {await process.wait()}; it starts again when you save")
        return True
    relay.say(f"the host closed the connection{_why(socket)}; trying again")
    await asyncio.sleep(RETRY_SECONDS)
    return False


async def _saved(directory: Path, stamps: Stamps, runs: RunsUnderWay) -> None:
    """Return when a file was saved and the runs of that moment are over, or took too long."""
    await changed(directory, stamps)
    if runs:
        are = "is" if len(runs) == 1 else "are"
        relay.say(
            f"saved; {counted(len(runs), 'run')} {are} under way and may finish first, for {FINISH_SECONDS:g} s at most"
        )
    with suppress(TimeoutError):
        await asyncio.wait_for(runs.over(), FINISH_SECONDS)


def _why(socket: ClientConnection) -> str:
    return f" ({socket.close_reason})" if socket.close_reason else ""
