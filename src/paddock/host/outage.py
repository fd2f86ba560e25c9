"""Waiting for a store that is away for a moment.

Live work waits for as long as this host may count on its lease. A write without an answer is sent again only when the
log does not have it, and the fence lets only one of the two through.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import structlog

from paddock.ports import Batch, ConversationRecords, EventLog
from paddock.rules.cluster import SURE_SECONDS
from paddock.rules.errors import StaleOwnerError, StorageUnavailableError

log = structlog.get_logger("paddock.outage")

LOOK_SECONDS = 0.2
"""How often a waiting task checks whether the store is back."""
Answer = TypeVar("Answer")


class _Records(ConversationRecords, EventLog, Protocol): ...


class Outage:
    def __init__(self, store: _Records, held: Callable[[], bool] | None = None) -> None:
        """`held`: whether this host still holds its lease. Without it nothing waits."""
        self._store = store
        self._held = held

    @property
    def may_wait(self) -> bool:
        return self._held is not None and self._held()

    @property
    def is_on(self) -> bool:
        """True while the store is away and live work waits for it."""
        return self._held is not None and not self._store.healthy() and self._held()

    def end(self) -> None:
        """Stop waiting: this host is shutting down."""
        self._held = None

    async def settle(self, batch: Batch) -> None:
        """Make sure a batch whose append failed is in the log. Raises StaleOwnerError, or StorageUnavailableError when
        the store is away for too long."""
        end = _now() + SURE_SECONDS
        while await self.is_over(end):
            try:
                stored = await self._settle(batch)
            except StorageUnavailableError as error:
                log.info("a write waits", action="outage.settle", session_id=batch.session_id, reason=str(error))
            else:
                why = "its last write was stored" if stored else "its last write was sent again"
                log.info("a live run goes on", action="outage.over", session_id=batch.session_id, reason=why)
                return
        log.warning("a live run waited too long", action="outage.given_up", session_id=batch.session_id)
        raise StorageUnavailableError("the store was away for longer than this host may count on its lease")

    async def _settle(self, batch: Batch) -> bool:
        """True when the first attempt was stored, False when the batch was sent again."""
        if await self._took(batch):
            return True
        try:
            await self._store.append(batch)
        except StaleOwnerError:
            if await self._took(batch):  # the lost attempt came through after all
                return True
            raise
        return False

    async def _took(self, batch: Batch) -> bool:
        """True when a batch is in the log. If it ended its session's work, another host may own the session since."""
        try:
            return await self._store.took(batch)
        except StaleOwnerError:
            if batch.rests and await self._is_in_the_log(batch):
                return True
            raise

    async def _is_in_the_log(self, batch: Batch) -> bool:
        found = await self._store.fact(batch.session_id, batch.after.seq)
        return found is not None and found.digest == batch.after.digest

    async def outlast(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask, and ask again once the store is back. Raises StorageUnavailableError when it stays away for too long."""
        end = _now() + SURE_SECONDS
        while True:
            try:
                return await ask()
            except StorageUnavailableError:
                if not await self.is_over(end):
                    raise

    async def is_over(self, end: float | None = None) -> bool:
        """Wait until the store is back; False when it does not come back in time."""
        until = _now() + SURE_SECONDS if end is None else end
        while self.may_wait and _now() < until:
            await asyncio.sleep(LOOK_SECONDS)
            if self._store.healthy():  # the fence decides who owns the session now
                return True
        return False


def _now() -> float:
    return asyncio.get_running_loop().time()
