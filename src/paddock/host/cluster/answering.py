"""Doing what other hosts ask of this one; `forwarding.py` is the side that asks. Every request is answered once."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
import structlog

from paddock.host.cluster.forwarding import LOOK_SECONDS, ClusterLink, rung_within
from paddock.host.cluster.remote_requests import Reply, unpacked
from paddock.ports.bus import Subscription
from paddock.ports.hosts import PendingRequest
from paddock.rules.errors import ErrorCode, HostError, OwnedElsewhereError, StorageUnavailableError

log = structlog.get_logger("paddock.owners")

WORK_SECONDS = 8.0
AT_ONCE = 64

RequestHandlers = Mapping[type[Any], Callable[[Any], Awaitable[Any]]]
"""How each kind of request is done here. One may raise OwnedElsewhereError, and must not forward the request."""

_encode = msgspec.json.Encoder().encode


class Answering:
    def __init__(self, link: ClusterLink, handlers: RequestHandlers) -> None:
        self._link = link
        self._handlers = handlers
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._bell = asyncio.Event()
        self._heard: Subscription | None = None

    async def listen(self) -> None:
        """Hear the bell of this host's number; again whenever it has another."""
        await self._stop_listening()
        subject = self._link.live.subject("errands", str(self._link.hosts.boot))
        self._heard = await self._link.bus.subscribe(subject, lambda _: self._bell.set())

    async def keep_answering(self) -> None:
        """Do what others ask, for as long as the host runs."""
        while True:
            try:
                for request in await self._link.hosts.asked(limit=AT_ONCE):
                    if request.request_id not in self._busy and len(self._busy) < AT_ONCE:
                        self._start(request)
            except StorageUnavailableError:
                await asyncio.sleep(LOOK_SECONDS)
            except Exception:  # whatever it was, others still wait for answers
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
        if len(self._busy) >= AT_ONCE:  # more may wait than there was room for, and nobody rings for it again
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
            return _refusal(error)
        except (StorageUnavailableError, TimeoutError):
            return Reply(code=str(ErrorCode.UNAVAILABLE), message="the store cannot write now", retryable=True)
        except Exception:
            log.exception("a request of another host failed", action="owners.done")
            return Reply(code=str(ErrorCode.RUNTIME_ERROR), message="the host made a mistake; its log has the details")


def _refusal(error: HostError) -> Reply:
    return Reply(code=str(error.code), message=error.message, retryable=error.retryable, details=error.details)
