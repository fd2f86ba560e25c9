"""Does something with a session where it is owned: here, or by a request to the host that owns it.

`Forwarding` asks, `Answering` does what other hosts ask. Request and answer are stored before the other host is rung,
so a lost ring costs time only. If the host that was asked is gone, the asking host takes the session over.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

import msgspec
import structlog

from paddock.host.cluster.remote_requests import RemoteRequest, Reply, decode_reply, packed, unpacked
from paddock.host.streams.live import Live
from paddock.ports.bus import Bus, Subscription
from paddock.ports.hosts import ASKED_SECONDS, Hosts, PendingRequest
from paddock.ports.waiting import rung_within
from paddock.rules.errors import ErrorCode, HostError, OwnedElsewhereError, StorageUnavailableError

log = structlog.get_logger("paddock.owners")

PATIENCE_SECONDS = ASKED_SECONDS
"""How long a caller waits for the owner of its session before it gets an error."""
LOOK_SECONDS = 1.0
"""How often a host looks for requests and answers without being rung."""
LOOK_OFTEN = 0.1
"""The same while the bus is away."""
MOVED_SECONDS = 0.02
WORK_SECONDS = 8.0
"""How long this host works on a request of another one."""
AT_ONCE = 64

Result = TypeVar("Result")
ToSend = Callable[[], Awaitable[RemoteRequest]]
"""Makes the request when it is needed."""
RequestHandlers = Mapping[type[Any], Callable[[Any], Awaitable[Any]]]
"""The handler of each request. It may raise OwnedElsewhereError, and must not forward the request."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class ClusterLink:
    """The connection to the other hosts: the register in the shared store, the bus, and live words on it."""

    hosts: Hosts
    bus: Bus
    live: Live
    bus_is_named: bool = False
    """True when the settings name a bus, so that its absence is reported."""

    def bus_is_away(self) -> bool:
        """True when a named bus cannot be reached. Everything works without it, but slower."""
        return self.bus_is_named and not self.bus.healthy()

    def look_seconds(self) -> float:
        return LOOK_SECONDS if self.bus.healthy() else LOOK_OFTEN


class Forwarding:
    """Asks other hosts. Without a link this host is the only one."""

    def __init__(self, link: ClusterLink | None = None) -> None:
        self._link = link
        self._waiting: dict[str, asyncio.Event] = {}
        self._heard: Subscription | None = None

    async def here_or_at_owner(
        self, here: Callable[[], Awaitable[Result]], request: RemoteRequest | ToSend, answer: type[Result]
    ) -> Result:
        """Do it here, or at the host that owns the session. Raises HostError."""
        end: float | None = None
        pause = 0.0  # often only our cached owner was old, and the first look shows it
        while True:
            try:
                return await here()
            except OwnedElsewhereError as elsewhere:
                now = asyncio.get_running_loop().time()
                end = now + PATIENCE_SECONDS if end is None else end
                if now >= end:
                    raise
                body = await self._ask(elsewhere.boot, request, end) if elsewhere.boot else None
            if body is not None:
                return msgspec.json.decode(body, type=answer)
            await asyncio.sleep(pause)
            pause = MOVED_SECONDS

    async def ask(self, boot: int, request: RemoteRequest, *, seconds: float) -> bool:
        """Ask one host for something that concerns no session. False if it refuses or does not answer."""
        try:
            return await self._ask(boot, request, asyncio.get_running_loop().time() + seconds) is not None
        except (HostError, StorageUnavailableError) as error:
            log.warning("another host did not do what it was asked", action="owners.ask", boot=boot, reason=str(error))
            return False

    async def listen(self) -> None:
        if self._link is not None and self._heard is None:
            self._heard = await self._link.bus.subscribe(self._link.live.subject("answers"), self._answered)

    async def stop(self) -> None:
        heard, self._heard = self._heard, None
        if heard is not None:
            await heard.stop()

    async def _ask(self, boot: int, request: RemoteRequest | ToSend, end: float) -> bytes | None:
        """The answer; None when the session has moved or that host is gone."""
        asked = await request() if callable(request) else request
        if self._link is None:
            return None
        request_id, rung = uuid4().hex, asyncio.Event()
        self._waiting[request_id] = rung
        try:
            await self._link.hosts.ask(boot, PendingRequest(request_id, packed(asked)))
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


class Answering:
    def __init__(self, link: ClusterLink, handlers: RequestHandlers) -> None:
        self._link = link
        self._handlers = handlers
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._bell = asyncio.Event()
        self._heard: Subscription | None = None

    async def listen(self) -> None:
        """Listen for the bell of this host's boot number; called again when the number changes."""
        await self._stop_listening()
        subject = self._link.live.subject("errands", str(self._link.hosts.boot))
        self._heard = await self._link.bus.subscribe(subject, lambda _: self._bell.set())

    async def keep_answering(self) -> None:
        while True:
            try:
                for request in await self._link.hosts.asked(limit=AT_ONCE):
                    if request.request_id not in self._busy and len(self._busy) < AT_ONCE:
                        self._start(request)
            except StorageUnavailableError:
                await asyncio.sleep(LOOK_SECONDS)
            except Exception:  # other hosts still wait for answers
                log.exception("requests of other hosts could not be looked for", action="owners.answering")
                await asyncio.sleep(LOOK_SECONDS)
            await rung_within(self._bell, self._link.look_seconds())

    async def stop(self) -> None:
        busy = list(self._busy.values())
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)
        await self._stop_listening()

    async def _stop_listening(self) -> None:
        heard, self._heard = self._heard, None
        if heard is not None:
            await heard.stop()

    def _start(self, request: PendingRequest) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(request))
        self._busy[request.request_id] = task
        task.add_done_callback(lambda _: self._free(request.request_id))

    def _free(self, request_id: str) -> None:
        if len(self._busy) >= AT_ONCE:  # requests may wait that there was no room for, and nobody rings for them again
            self._bell.set()
        self._busy.pop(request_id, None)

    async def _answer(self, request: PendingRequest) -> None:
        reply = await self._done(request)
        try:
            await self._link.hosts.answer(request.request_id, _encode(reply))
        except StorageUnavailableError as error:
            log.warning("an answer could not be recorded", action="owners.answer", reason=str(error))
        self._link.bus.publish(self._link.live.subject("answers"), request.request_id.encode())

    async def _done(self, pending: PendingRequest) -> Reply:
        try:
            request = unpacked(pending.body)
        except (msgspec.MsgspecError, KeyError):
            log.warning("a request cannot be read", action="owners.done", errand=pending.request_id)
            text = "the host that has this conversation is of another release and does not know this; try again shortly"
            return Reply(code=str(ErrorCode.UNAVAILABLE), message=text, retryable=True)
        try:
            async with asyncio.timeout(WORK_SECONDS):
                done = await self._handlers[type(request)](request)
            return Reply(msgspec.Raw(_encode(done)))
        except OwnedElsewhereError:
            return Reply(moved=True)
        except HostError as error:
            return Reply(code=str(error.code), message=error.message, retryable=error.retryable, details=error.details)
        except (StorageUnavailableError, TimeoutError):
            return Reply(code=str(ErrorCode.UNAVAILABLE), message="the store cannot write now", retryable=True)
        except Exception:
            log.exception("a request of another host failed", action="owners.done")
            return Reply(code=str(ErrorCode.RUNTIME_ERROR), message="the host made a mistake; its log has the details")
