"""Records the outcomes of effects: at once, or as soon as the store is back.

An effect of a tool or a platform cannot be undone when the store goes away before its outcome is written. The outcome
is kept here and written later. An outcome that does not fit, or is lost with the host, is settled from the record,
which says that something was begun.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from paddock.ports import Rows
from paddock.rules.cluster import SURE_SECONDS
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.rows.rows import Apart

log = structlog.get_logger("paddock.outcomes")

WAIT_SECONDS = SURE_SECONDS
"""Seconds to wait for the store: as long as a live run waits for it."""
LOOK_SECONDS = 0.2
MAX_KEPT, MAX_KEPT_EACH = 2048, 512
"""Most outcomes kept while the store is away, in all and of one workspace."""
Answer = TypeVar("Answer")


class Outcomes:
    def __init__(self, store: Rows) -> None:
        self._store = store
        self._tasks: set[asyncio.Task[bool]] = set()
        self.kept: Counter[str] = Counter()
        """Outcomes that wait for the store, by workspace."""

    async def record(self, workspace_id: str, rows: Sequence[Apart], *, seconds: float | None = WAIT_SECONDS) -> bool:
        """Write the rows of an outcome. Returns False when the store is away for that long; they are written later.

        With `seconds` None wait for as long as the host runs. Cancelling the wait takes nothing back. Raises HostError
        when the store refuses these rows.
        """
        task = self._begin(workspace_id, rows)
        done, _ = await asyncio.wait({task}, timeout=seconds)
        return bool(done) and await task

    def later(self, workspace_id: str, rows: Sequence[Apart]) -> None:
        self._begin(workspace_id, rows)

    async def outlast(self, ask: Callable[[], Awaitable[Answer]], *, for_ever: bool = False) -> Answer:
        """Return the answer to a read, now or when the store is back. Raises StorageUnavailableError when it does not
        come back in time; with `for_ever` wait for as long as the host runs."""
        end = None if for_ever else asyncio.get_running_loop().time() + WAIT_SECONDS
        while True:
            try:
                return await ask()
            except StorageUnavailableError:
                if not await self._is_back(end):
                    raise

    async def close(self) -> None:
        """Drop the outcomes that the store has not taken. Call `written` before to wait for them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def written(self) -> None:
        if self._tasks:
            await asyncio.wait(set(self._tasks))

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
        """Write the rows when the store is back. The same rows may be written twice."""
        while True:
            await self._is_back()
            try:
                await self._store.write(rows)
            except StorageUnavailableError:
                continue
            else:
                return

    async def _is_back(self, end: float | None = None) -> bool:
        now = asyncio.get_running_loop().time
        while end is None or now() < end:
            await asyncio.sleep(LOOK_SECONDS)
            if self._store.healthy():
                return True
        return False
