"""Small JSON values that a runner keeps with the host, by scope. Every method takes the grant that allows it."""

from collections.abc import Mapping

import msgspec

from paddock.host.work import Work
from paddock.ports import Records
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.limits import MAX_STATE_SCOPE_BYTES
from paddock.rules.permissions import Grant, state_key
from paddock.rules.rows import AuditRow, StateRow
from paddock.rules.versions import version_of
from paddock_sdk.protocol.host_calls import (
    Deleted,
    StateDeleteParams,
    StateGetParams,
    StateGetResult,
    StateSetParams,
    StateSetResult,
)


class RunnerState:
    def __init__(self, records: Records) -> None:
        self._records = records

    @property
    def work(self) -> Mapping[str, Work]:
        return {
            "state.get": Work(read=self.get),
            "state.set": Work(write=self.set),
            "state.delete": Work(write=self.delete),
        }

    async def get(self, grant: Grant, asked: StateGetParams) -> StateGetResult:
        found = await self._records.state(_key(asked.scope, grant), asked.key)
        if found is None:
            return StateGetResult(found=False)
        return StateGetResult(value=msgspec.json.decode(found), found=True, version=version_of(found))

    async def set(self, grant: Grant, asked: StateSetParams, audit: AuditRow) -> StateSetResult:
        """Keep a value; with an expected version only if it is still the one that was read."""
        key = _key(asked.scope, grant)
        value = msgspec.json.encode(asked.value)
        if not await self._fits(key, asked.key, len(value)):
            raise HostError(
                ErrorCode.PAYLOAD_TOO_LARGE,
                f"the {asked.scope} scope would hold more than {MAX_STATE_SCOPE_BYTES} bytes; delete old keys first",
            )
        await self._records.write([StateRow(key, asked.key, value, audit.time, asked.expected_version), audit])
        return StateSetResult(ok=True, version=version_of(value))

    async def _fits(self, scope_key: str, key: str, size: int) -> bool:
        """Whether a scope has room for a value; what it replaces is looked at only when that decides."""
        held = await self._records.state_size(scope_key)
        if held + size <= MAX_STATE_SCOPE_BYTES:
            return True
        old = await self._records.state(scope_key, key) or b""
        return held - len(old) + size <= MAX_STATE_SCOPE_BYTES

    async def delete(self, grant: Grant, asked: StateDeleteParams, audit: AuditRow) -> Deleted:
        key = _key(asked.scope, grant)
        found = await self._records.state(key, asked.key)
        await self._records.write([StateRow(key, asked.key, None, audit.time), audit])
        return Deleted(deleted=found is not None)


def _key(scope: str, grant: Grant) -> str:
    key = state_key(scope, grant)
    if key is None:
        raise HostError(ErrorCode.UNAUTHORIZED, "this run may not do that")
    return key
