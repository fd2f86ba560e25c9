"""Free room of state scopes, known without asking the store at each write. No values live here.

For each scope in use this remembers what it can hold at most: what was read, and all that was written since. While that
is under the cap a write goes ahead at once. When it is not, or is no longer fresh because others write the scope too
(results of runs, other hosts), the writes under way are waited for and the store is asked what is true; so on one host
no number of writes at the same time gets past the cap.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from paddock.ports import KeptRecords
from paddock.rules.access.limits import MAX_STATE_SCOPE_BYTES

FRESH_SECONDS = 1.0
"""For so long what was read counts as true; afterwards others may have written too much."""
MOST_SCOPES = 10_000
"""Scopes remembered; one that is forgotten costs a question when it is written again."""


class _Scope:
    """One scope: what it can hold at most, when that was read, and how many writes are not over."""

    __slots__ = ("at_most", "exact", "idle", "read_at", "under_way")

    def __init__(self) -> None:
        self.at_most = 0
        self.read_at = float("-inf")
        self.under_way = 0
        self.idle = asyncio.Event()
        self.idle.set()
        self.exact = asyncio.Lock()
        """Held while the store is asked and until that write is over."""

    @property
    def is_quiet(self) -> bool:
        return self.under_way == 0 and not self.exact.locked()

    def takes_at_once(self, size: int, now: float) -> bool:
        fresh = now - self.read_at < FRESH_SECONDS
        return fresh and not self.exact.locked() and self.at_most + size <= MAX_STATE_SCOPE_BYTES

    def begin(self, size: int) -> None:
        self.at_most += size
        self.under_way += 1
        self.idle.clear()

    def end(self) -> None:
        self.under_way -= 1
        if self.under_way == 0:
            self.idle.set()


class StateQuota:
    def __init__(self, records: KeptRecords, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._records = records
        self._monotonic = monotonic
        self._scopes: dict[str, _Scope] = {}

    async def write(self, scope_key: str, key: str, size: int, write: Callable[[], Awaitable[None]]) -> bool:
        """Write a value of so many bytes if its scope has room for it. What it replaces counts for what it frees."""
        scope = self._scopes.get(scope_key) or self._meet(scope_key)
        if scope.takes_at_once(size, self._monotonic()):
            scope.begin(size)
            try:
                await write()
            finally:
                scope.end()
            return True
        async with scope.exact:
            await scope.idle.wait()
            if fits := await self._fits(scope, scope_key, key, size):
                await write()
            return fits

    async def _fits(self, scope: _Scope, scope_key: str, key: str, size: int) -> bool:
        now = self._monotonic()
        held = await self._records.state_size(scope_key)
        scope.at_most, scope.read_at = held + size, now
        if scope.at_most <= MAX_STATE_SCOPE_BYTES:
            return True
        old = await self._records.state(scope_key, key) or b""
        return scope.at_most - len(old) <= MAX_STATE_SCOPE_BYTES

    def _meet(self, scope_key: str) -> _Scope:
        if len(self._scopes) >= MOST_SCOPES:
            quiet = [name for name, scope in self._scopes.items() if scope.is_quiet]
            for name in quiet[: MOST_SCOPES // 10]:
                del self._scopes[name]
        scope = self._scopes[scope_key] = _Scope()
        return scope
