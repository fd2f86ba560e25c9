"""Puts on record what became of effects: at once, or as soon as the store is back.

What a tool or a platform did cannot be taken back when the store goes away before the outcome is written. The outcome
is kept here then and written later. What does not fit, and what is lost with the host, is settled from the record,
which says that something was begun.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from paddock.ports import Rows
from paddock.rules.cluster.leases import SURE_SECONDS
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.rows.rows import Apart

log = structlog.get_logger("paddock.outcomes")

WAIT_SECONDS = SURE_SECONDS
"""How long somebody is kept waiting for the store: as long as a live run waits for it."""
LOOK_SECONDS = 0.2
MAX_KEPT, MAX_KEPT_EACH = 2048, 512
"""Outcomes kept for a store that is away, and of them those of one workspace."""
Answer = TypeVar("Answer")


class Outcomes:
    def __init__(self, store: Rows) -> None:
        self._store = store
        self._tasks: set[asyncio.Task[bool]] = set()
        self.kept: Counter[str] = Counter()
        """How many wait for the store, by workspace."""

    async def record(self, workspace_id: str, rows: Sequence[Apart], *, seconds: float | None = WAIT_SECONDS) -> bool:
        """Write the rows that tell an outcome. False: the store was away for so long, and they are written later.

        `seconds` None: for as long as the house stands. Giving up the wait takes nothing back. Raises HostError when
        the store refuses these very rows.
        """
        task = self._begin(workspace_id, rows)
        done, _ = await asyncio.wait({task}, timeout=seconds)
        return bool(done) and await task

    def later(self, workspace_id: str, rows: Sequence[Apart]) -> None:
        """Write these rows; nobody waits for it."""
        self._begin(workspace_id, rows)

    async def outlast(self, ask: Callable[[], Awaitable[Answer]], *, for_ever: bool = False) -> Answer:
        """The answer to what may be asked twice, now or when the store is back. Raises StorageUnavailableError when it
        does not come back in time; `for_ever`: for as long as the house stands."""
        end = None if for_ever else asyncio.get_running_loop().time() + WAIT_SECONDS
        while True:
            try:
                return await ask()
            except StorageUnavailableError:
                if not await self._is_back(end):
                    raise

    async def close(self) -> None:
        """Give up what the store has not taken by now. Whoever wants it taken waits a moment before."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def written(self) -> None:
        """Wait until nothing is left to be written."""
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    # --- within ------------------------------------------------------------------------------------------------------

    def _begin(self, workspace_id: str, rows: Sequence[Apart]) -> asyncio.Task[bool]:
        task = asyncio.get_running_loop().create_task(self._see_to(workspace_id, rows))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[bool]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("an outcome was refused by the store", action="outcomes.record", reason=str(error))

    async def _see_to(self, workspace_id: str, rows: Sequence[Apart]) -> bool:
        try:
            await self._store.write(rows)
        except StorageUnavailableError as error:
            about = {"action": "outcomes.record", "reason": str(error)}
        else:
            return True
        if self.kept.total() >= MAX_KEPT or self.kept[workspace_id] >= MAX_KEPT_EACH:
            log.warning("an outcome could not be recorded and too many wait; it will count as unknown", **about)
            return False
        log.warning("an outcome is recorded when the store is back", **about)
        self.kept[workspace_id] += 1
        try:
            await self._write_when_back(rows)
        finally:
            self.kept[workspace_id] -= 1
            if not self.kept[workspace_id]:
                del self.kept[workspace_id]
        return True

    async def _write_when_back(self, rows: Sequence[Apart]) -> None:
        """Written twice, when the first attempt was taken and not answered, they say the same."""
        while True:
            await self._is_back()
            try:
                await self._store.write(rows)
            except StorageUnavailableError:
                continue
            else:
                return

    async def _is_back(self, end: float | None = None) -> bool:
        """Wait for the store; False when it is not back by the end that is given."""
        now = asyncio.get_running_loop().time
        while end is None or now() < end:
            await asyncio.sleep(LOOK_SECONDS)
            if self._store.healthy():
                return True
        return False
