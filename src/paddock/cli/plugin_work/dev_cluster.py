"""The plugin under work at the other hosts of a cluster: a process and a connection for each, while that host is there.

The first host says which others there are, when it is met and whenever that changes. One that cannot be reached at its
own address, as behind a load balancer, is reached through the address of the first. A connection that is lost is made
again; a host that refuses the plugin is left alone until the next save.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import websockets
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket

from paddock.cli.output import CommandError
from paddock.cli.plugin_work import dev_relay as relay
from paddock.runners.installed.plugins import Plugin

RETRY_SECONDS = 1.0
REACH_SECONDS = 5.0
"""How long a host may take to answer before another way to it is tried."""
MOST = 64
"""How many other hosts are served."""
NO_TOKEN = 4401
"""That host has not heard of the token; another one may do."""


class DevCluster:
    def __init__(self, plugin: Plugin, token: Callable[[], str], front: str) -> None:
        self._plugin = plugin
        self._token = token
        self._front = front
        self._wanted: frozenset[str] = frozenset()
        self._there: dict[str, asyncio.Task[None]] = {}

    def heard(self, line: bytes) -> None:
        """A line from the first host. Only one that tells of other hosts means something here."""
        if b'"peers"' not in line or (peers := _peers_in(line)) is None:
            return
        self._wanted = frozenset(peers[:MOST])
        for door in self._wanted - self._there.keys():
            self._there[door] = asyncio.get_running_loop().create_task(self._serve(door))

    async def stop(self) -> None:
        self._wanted, serving = frozenset(), list(self._there.values())
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _serve(self, door: str) -> None:
        try:
            while door in self._wanted and await self._attached(door):  # noqa: ASYNC110 - a host has no event for us
                await asyncio.sleep(RETRY_SECONDS)
        finally:
            del self._there[door]

    async def _attached(self, door: str) -> bool:
        """Once, until it ends; whether to try again."""
        with suppress(CommandError, OSError, websockets.WebSocketException):  # whoever meets the first host says why
            socket = await self._reached(door, await asyncio.to_thread(self._token))
            async with socket:
                process = await relay.start(self._plugin)
                try:
                    carried = relay.to_plugin(socket, process, lambda _: None), relay.to_host(process, socket)
                    await relay.first_of(*map(asyncio.create_task, carried))
                finally:
                    await asyncio.shield(relay.stop(process))
            if relay.refuses(socket.close_code) and socket.close_code != NO_TOKEN:
                relay.say(f"{door} refused it: {socket.close_reason or 'it gave no reason, its log may'}")
                return False
        return True

    async def _reached(self, door: str, token: str) -> ClientConnection:
        try:
            reached = await _open(relay.with_token(door, token))
        except (OSError, websockets.WebSocketException):  # a timeout is an OSError too
            reached = await _open(relay.through(self._front, door, token))
            relay.say(f"also at {door}, through {self._front}")
        else:
            relay.say(f"also at {door}")
        return reached


async def _open(address: str) -> ClientConnection:
    return await open_socket(address, max_size=relay.FRAME_BYTES, compression=None, open_timeout=REACH_SECONDS)


def _peers_in(line: bytes) -> list[str] | None:
    try:
        frame: Any = json.loads(line)
        if frame["method"] not in ("initialize", "peers"):
            return None
        return [str(door) for door in cast("list[Any]", frame["params"]["peers"])]
    except (ValueError, LookupError, TypeError):
        return None
