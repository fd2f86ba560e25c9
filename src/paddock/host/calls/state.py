"""Small JSON values that a runner keeps with the host, by scope, within a limit for each scope.

Every method takes the grant that allows it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from paddock.host.calls.work import NOT_GRANTED, CallHandler
from paddock.ports import KeptRecords
from paddock.rules.access.limits import MAX_STATE_SCOPE_BYTES
from paddock.rules.access.permissions import Grant, state_key
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import version_of
from paddock.rules.rows.rows import AuditRow, StateRow
from paddock_sdk.protocol import host_calls


class RunnerState:
    def __init__(self, records: KeptRecords) -> None:
        self._records = records
        self._room = StateQuota(records)

    @property
    def work(self) -> Mapping[str, CallHandler]:
        return {
            "state.get": CallHandler(read=self.get),
            "state.set": CallHandler(write=self.set),
            "state.delete": CallHandler(write=self.delete),
        }

    async def get(self, grant: Grant, asked: host_calls.StateGetParams) -> host_calls.StateGetResult:
        found = await self._records.state(_key(asked.scope, grant), asked.key)
        if found is None:
            return host_calls.StateGetResult(found=False)
        return host_calls.StateGetResult(value=msgspec.json.decode(found), found=True, version=version_of(found))

    async def set(self, grant: Grant, asked: host_calls.StateSetParams, audit: AuditRow) -> host_calls.StateSetResult:
        """Keep a value; with an expected version only if the value has not changed since."""
        key = _key(asked.scope, grant)
        value = msgspec.json.encode(asked.value)
        row = StateRow(key, asked.key, value, audit.time, asked.expected_version)
        if not await self._room.write(key, asked.key, len(value), lambda: self._records.write([row, audit])):
            raise HostError(
                ErrorCode.PAYLOAD_TOO_LARGE,
                f"the {asked.scope} scope would hold more than {MAX_STATE_SCOPE_BYTES} bytes; delete old keys first",
            )
        return host_calls.StateSetResult(ok=True, version=version_of(value))

    async def delete(self, grant: Grant, asked: host_calls.StateDeleteParams, audit: AuditRow) -> host_calls.Deleted:
        key = _key(asked.scope, grant)
        found = await self._records.state(key, asked.key)
        await self._records.write([StateRow(key, asked.key, None, audit.time), audit])
        return host_calls.Deleted(deleted=found is not None)


def _key(scope: str, grant: Grant) -> str:
    key = state_key(scope, grant)
    if key is None:
        raise HostError(ErrorCode.UNAUTHORIZED, NOT_GRANTED)
    return key


FRESH_SECONDS = 1.0
"""Seconds that a size read from the store is used; afterwards other hosts may have written too much."""
MOST_SCOPES = 10_000
"""Scopes remembered; a forgotten one is read again when it is written to."""


class _Scope:
    """One scope: an upper bound of its size, when that was read, and how many writes are under way."""

    __slots__ = ("at_most", "exact", "idle", "read_at", "under_way")

    def __init__(self) -> None:
        self.at_most = 0
        self.read_at = float("-inf")
        self.under_way = 0
        self.idle = asyncio.Event()
        self.idle.set()
        self.exact = asyncio.Lock()
        """Held while the store is read, until that write is over."""

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
        """Write a value of so many bytes if its scope has room for it. A value that it replaces counts as freed."""
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
