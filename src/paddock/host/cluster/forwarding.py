"""Doing something with a session, wherever it is worked on: here, or by asking the host that has it.

What is asked is on record before that host is woken, and so is its answer (`answering.py`); a ring that is lost costs
time. When the host that was asked is gone, the session is anybody's, and the asking host goes on with it itself.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import uuid4

import msgspec
import structlog

from paddock.host.cluster.remote_requests import RemoteRequest, Reply, decode_reply, packed
from paddock.host.streams.live import Live
from paddock.ports.bus import Bus, Subscription
from paddock.ports.hosts import ASKED_SECONDS, Hosts, PendingRequest
from paddock.rules.errors import ErrorCode, HostError, OwnedElsewhereError, StorageUnavailableError

log = structlog.get_logger("paddock.owners")

PATIENCE_SECONDS = ASKED_SECONDS
"""Time a caller waits for the host that has its session; after that it is told to try again."""
LOOK_SECONDS = 1.0
"""How often a host looks for requests nobody rang for, and an asking one for its answer; oftener without a bus."""
LOOK_OFTEN = 0.1
MOVED_SECONDS = 0.02

Result = TypeVar("Result")
ToSend = Callable[[], Awaitable[RemoteRequest]]
"""Makes what is asked, when it takes something to make it."""


@dataclass(frozen=True, slots=True)
class ClusterLink:
    """The way to the other hosts: the register in the store they share, the bus, and the live words on it."""

    hosts: Hosts
    bus: Bus
    live: Live
    bus_is_named: bool = False
    """Somebody named the bus, so that its absence is worth a word."""

    def bus_is_away(self) -> bool:
        """Tell whether a bus is set and cannot be reached; everything works without it, only later."""
        return self.bus_is_named and not self.bus.healthy()

    def look_seconds(self) -> float:
        return LOOK_SECONDS if self.bus.healthy() else LOOK_OFTEN


class Forwarding:
    """Asks other hosts. Without a link there is only this one."""

    def __init__(self, link: ClusterLink | None = None) -> None:
        self._link = link
        self._waiting: dict[str, asyncio.Event] = {}
        self._heard: Subscription | None = None

    async def here_or_at_owner(
        self, here: Callable[[], Awaitable[Result]], request: RemoteRequest | ToSend, answer: type[Result]
    ) -> Result:
        """Do it here, or have it done where the session is. Raises HostError."""
        end: float | None = None
        pause = 0.0  # often it was only our memory that was old, and one look tells
        while True:
            try:
                return await here()
            except OwnedElsewhereError as elsewhere:
                now = asyncio.get_running_loop().time()
                end = now + PATIENCE_SECONDS if end is None else end
                if now >= end:
                    raise
                told = await self._send(elsewhere.boot, request, end) if elsewhere.boot else None
            if told is not None:
                return msgspec.json.decode(told, type=answer)
            await asyncio.sleep(pause)
            pause = MOVED_SECONDS

    async def ask(self, boot: int, request: RemoteRequest, *, seconds: float) -> bool:
        """Have one host do something that is about no session; False: it did not. Raises nothing for its refusal."""
        try:
            return await self._ask(boot, request, asyncio.get_running_loop().time() + seconds) is not None
        except (HostError, StorageUnavailableError) as error:
            log.warning("another host did not do what it was asked", action="owners.ask", boot=boot, reason=str(error))
            return False

    async def listen(self) -> None:
        """Hear when answers are there."""
        if self._link is not None and self._heard is None:
            self._heard = await self._link.bus.subscribe(self._link.live.subject("answers"), self._answered)

    async def stop(self) -> None:
        heard, self._heard = self._heard, None
        if heard is not None:
            await heard.stop()

    async def _send(self, boot: int, request: RemoteRequest | ToSend, end: float) -> bytes | None:
        return await self._ask(boot, await request() if callable(request) else request, end)

    async def _ask(self, boot: int, request: RemoteRequest, end: float) -> bytes | None:
        """The answer; None when the session is not there any more, or that host is gone."""
        if self._link is None:
            return None
        request_id, rung = uuid4().hex, asyncio.Event()
        self._waiting[request_id] = rung
        try:
            await self._link.hosts.ask(boot, PendingRequest(request_id, packed(request)))
            self._link.bus.publish(self._link.live.subject("errands", str(boot)), b"")
            reply = await self._answer_to(self._link, request_id, rung, end)
        finally:
            del self._waiting[request_id]
        if reply is None or reply.moved:
            return None
        if reply.code is not None:
            raise HostError(ErrorCode(reply.code), reply.message, retryable=reply.retryable, details=reply.details)
        return bytes(reply.body)

    async def _answer_to(self, link: ClusterLink, request_id: str, rung: asyncio.Event, end: float) -> Reply | None:
        while True:
            answer, there = await link.hosts.answered(request_id)
            if answer is not None:
                return decode_reply(answer)
            if not there:
                return None
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                text = "the host that has this conversation does not answer; try again shortly"
                raise HostError(ErrorCode.UNAVAILABLE, text, retryable=True)
            await rung_within(rung, min(left, link.look_seconds()))

    def _answered(self, request_id: bytes) -> None:
        if (waiting := self._waiting.get(request_id.decode())) is not None:
            waiting.set()


async def rung_within(bell: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await bell.wait()
    except TimeoutError:
        return
    finally:
        bell.clear()
