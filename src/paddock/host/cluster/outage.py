"""A store that is away for a moment: who waits for it, and how long.

What goes on at a host is its own for as long as it may count on its lease, and no longer does anybody wait. A write
that was never answered is sent again only when the log says that it was not taken, and the fence lets one of two pass.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import structlog

from paddock.ports import Batch, ConversationRecords, EventLog
from paddock.rules.cluster.leases import SURE_SECONDS
from paddock.rules.errors import StaleOwnerError, StorageUnavailableError

log = structlog.get_logger("paddock.outage")

LOOK_SECONDS = 0.2
"""How often each of those who wait looks whether the store is back."""
Answer = TypeVar("Answer")


class _Records(ConversationRecords, EventLog, Protocol):
    """The ports of the store that are used here."""


class Outage:
    """Waiting for one store. Without `held` nobody waits: no lease says how long."""

    def __init__(self, store: _Records, held: Callable[[], bool] | None = None) -> None:
        """`held`: whether what goes on here is this host's for certain, though the store be away."""
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
        """From now on nobody waits: this host is being stopped."""
        self._held = None

    async def settle(self, batch: Batch) -> None:
        """Have a batch on record whose append failed. Raises StaleOwnerError, or StorageUnavailableError when the
        store was away for too long."""
        end = _now() + SURE_SECONDS
        while await self.is_over(end):
            try:
                taken = await self._settle(batch)
            except StorageUnavailableError as error:
                log.info("a write waits", action="outage.settle", session_id=batch.session_id, reason=str(error))
            else:
                why = "its last write was taken" if taken else "its last write was sent again"
                log.info("a live run goes on", action="outage.over", session_id=batch.session_id, reason=why)
                return
        log.warning("a live run waited too long", action="outage.given_up", session_id=batch.session_id)
        raise StorageUnavailableError("the store was away for longer than this host may count on its lease")

    async def _settle(self, batch: Batch) -> bool:
        """Tell if the attempt whose answer was lost had taken effect."""
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
        """Tell if a batch is on record. If it brought the session to rest, another host may have gone on since."""
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
        """The answer to what may be asked twice, now or when the store is back. Raises StorageUnavailableError when it
        does not come back in time."""
        end = _now() + SURE_SECONDS
        while True:
            try:
                return await ask()
            except StorageUnavailableError:
                if not await self.is_over(end):
                    raise

    async def is_over(self, end: float | None = None) -> bool:
        """Wait for the store; False when it does not come back for as long as may be waited."""
        until = _now() + SURE_SECONDS if end is None else end
        while self.may_wait and _now() < until:
            await asyncio.sleep(LOOK_SECONDS)
            if self._store.healthy():  # whose it is now, the fence decides
                return True
        return False


def _now() -> float:
    return asyncio.get_running_loop().time()
