"""The bus between hosts, over NATS. Core messages only: nothing is kept there, so nothing there can be lost.

A server that is away is looked for again for as long as the bus is open; what is said meanwhile is not said at all, and
readers go back to the store.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress
from typing import Any, cast

import nats
import nats.errors
import structlog

from paddock.ports.bus import Heard, nobody
from paddock.rules.agents.addresses import without_secrets
from paddock_sdk.causes import cause_of

log = structlog.get_logger("paddock.bus")

CONNECT_SECONDS = 2.0
RETRY_SECONDS = 0.5
FLUSH_SECONDS = 2.0
PING_SECONDS = 2
MAX_PINGS = 2
"""A server that left so many unanswered when the next is due counts as away: six seconds of silence."""
PONG_SECONDS = 60.0
"""Longer than any answer is waited for: by then the connection is another one."""
MAX_WAITING = 10_000
"""Words on their way out; more are dropped, oldest first: who misses them finds them in the store."""
MAX_BYTES = 1024 * 1024
"""What every NATS server takes unless told otherwise; the one we are connected to says what it takes."""
PENDING_BYTES = 8 * 1024 * 1024

_nats = cast("Any", nats)  # its types are its own affair


class _Subscription:
    def __init__(self, bus: "NatsBus", subject: str, heard: Heard) -> None:
        self._bus = bus
        self.subject = subject
        self.heard = heard
        self.stopped = False
        self.asked_for: asyncio.Task[None] | None = None
        self.held: Any = None

    async def on_message(self, message: Any) -> None:
        if not self.stopped:  # the server may not know yet
            self.heard(message.data)

    async def stop(self) -> None:
        await self._bus.drop(self)


class NatsBus:
    """The `Bus` port over one connection to a NATS server or cluster of them."""

    def __init__(self, address: str) -> None:
        self._servers = [part.strip() for part in address.split(",") if part.strip()]
        self._connection: Any = None
        self._subscriptions: set[_Subscription] = set()
        self._waiting: deque[tuple[str, bytes]] = deque(maxlen=MAX_WAITING)
        self._bell = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._asked: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        """The library has given the connection up for good."""
        self._on_lost: Callable[[], None] = nobody
        self.problem = ""

    @property
    def max_bytes(self) -> int:
        return int(self._connection.max_payload) if self.healthy() else MAX_BYTES

    async def open(self, on_lost: Callable[[], None] = nobody) -> None:
        self._on_lost = on_lost
        with suppress(*AWAY):
            await self._connect()
        self._tasks = [asyncio.create_task(self._speak()), asyncio.create_task(self._stay_connected())]

    async def close(self) -> None:
        await _end(self._tasks)
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(*AWAY):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await connection.close()
        await _end(self._asked)

    def healthy(self) -> bool:
        return self._connection is not None and bool(self._connection.is_connected)

    def publish(self, subject: str, word: bytes) -> None:
        if self.healthy():
            self._waiting.append((subject, word))
            self._bell.set()

    async def subscribe(self, subject: str, heard: Heard) -> _Subscription:
        subscription = _Subscription(self, subject, heard)
        self._subscriptions.add(subscription)
        try:
            await self._tell(subscription)
        except BaseException:  # who wanted to hear it has gone meanwhile
            subscription.stopped = True
            self._later(self.drop(subscription))
            raise
        return subscription

    async def drop(self, subscription: _Subscription) -> None:
        subscription.stopped = True
        self._subscriptions.discard(subscription)
        if subscription.asked_for is not None:
            await asyncio.wait({subscription.asked_for})
        if subscription.held is not None:
            with suppress(*AWAY):
                await subscription.held.unsubscribe()

    async def _tell(self, subscription: _Subscription) -> None:
        if self._connection is not None:  # the library also takes it while the server is away, and tells it then
            # To its end, also when its reader has gone meanwhile: what is half asked for cannot be taken back.
            subscription.asked_for = self._later(self._ask_for(subscription))
            await asyncio.wait({subscription.asked_for})
            if self.healthy():
                await self._reach_the_server()

    async def _ask_for(self, subscription: _Subscription) -> None:
        with suppress(*AWAY):
            await self._listen(subscription)

    async def _listen(self, subscription: _Subscription) -> None:
        subscription.held = await self._connection.subscribe(subscription.subject, cb=subscription.on_message)

    async def _reach_the_server(self) -> None:
        """Until it has what we sent, if it answers soon. A wait may end early, as its reader has gone; the question
        stays: an answer that nobody waits for ends what the library hears with, and the host would be deaf."""
        await asyncio.wait({self._later(self._ask(self._connection))}, timeout=FLUSH_SECONDS)

    def _later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Done whoever waits for it, until the bus is closed."""
        task = asyncio.create_task(work)
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        return task

    async def _ask(self, connection: Any) -> None:
        with suppress(*AWAY):
            await connection.flush(PONG_SECONDS)

    async def _connect(self) -> None:
        async with asyncio.timeout(CONNECT_SECONDS):  # told to try for ever, the library does so the first time too
            self._connection = await self._connected()
        self.problem = ""
        for subscription in list(self._subscriptions):
            await self._listen(subscription)

    async def _connected(self) -> Any:
        return await _nats.connect(
            servers=self._servers,
            name="paddock",
            no_echo=True,
            connect_timeout=CONNECT_SECONDS,
            max_reconnect_attempts=-1,
            reconnect_time_wait=RETRY_SECONDS,
            allow_reconnect=True,
            ping_interval=PING_SECONDS,
            max_outstanding_pings=MAX_PINGS,
            pending_size=PENDING_BYTES,
            skip_subject_validation=True,  # they are all made here, and said by the thousand
            disconnected_cb=self._lost,
            closed_cb=self._given_up,
            reconnected_cb=self._back,
            error_cb=self._wrong,
        )

    async def _stay_connected(self) -> None:
        """The library comes back by itself once it was there, unless a server sent it away, as one does whose
        accounts are changed. That, and the first time, are ours to see to."""
        while True:
            self._ended.clear()
            while self._connection is None or self._connection.is_closed:
                await asyncio.sleep(RETRY_SECONDS)
                with suppress(*AWAY):
                    await self._connect()
                    log.info("the bus is there", action="bus.connected")
            await self._ended.wait()

    async def _speak(self) -> None:
        while True:
            await self._bell.wait()
            self._bell.clear()
            while self._waiting and self.healthy():
                with suppress(*AWAY):  # one that cannot be said keeps no other from being said
                    while self._waiting:
                        await self._connection.publish(*self._waiting.popleft())
            self._waiting.clear()

    async def _lost(self) -> None:
        if self._connection is None:
            return  # it was closed here
        log.warning("the bus is away; streams are read from the store", action="bus.lost")
        self._on_lost()

    async def _given_up(self) -> None:
        self._ended.set()

    async def _back(self) -> None:
        self.problem = ""
        log.warning("the bus is back", action="bus.back")

    async def _wrong(self, error: Exception) -> None:
        """Said once: the library tries again twice a second. Who is not let in would look in vain for a server that is
        away."""
        reason = without_secrets(cause_of(error))
        if isinstance(error, OSError | SILENT):
            self.problem = self.problem or reason
            log.debug("the bus says", action="bus.error", reason=reason)
        elif reason != self.problem:
            self.problem = reason
            log.warning("the bus does not take us", action="bus.refused", reason=reason)


async def _end(tasks: Collection[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


SILENT = nats.errors.UnexpectedEOF | nats.errors.StaleConnectionError | nats.errors.NoServersError
"""Other words for a server that is away."""
AWAY = (nats.errors.Error, OSError, TimeoutError)
