"""Small JSON values that a runner keeps with the host, by scope. Every method takes the grant that allows it."""

from collections.abc import Mapping

import msgspec

from paddock.host.calls.state_quota import StateQuota
from paddock.host.calls.work import CallHandler
from paddock.ports import KeptRecords
from paddock.rules.access.limits import MAX_STATE_SCOPE_BYTES
from paddock.rules.access.permissions import Grant, state_key
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import version_of
from paddock.rules.rows.rows import AuditRow, StateRow
from paddock_sdk.protocol.host_calls import (
    Deleted,
    StateDeleteParams,
    StateGetParams,
    StateGetResult,
    StateSetParams,
    StateSetResult,
)


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

    async def get(self, grant: Grant, asked: StateGetParams) -> StateGetResult:
        found = await self._records.state(_key(asked.scope, grant), asked.key)
        if found is None:
            return StateGetResult(found=False)
        return StateGetResult(value=msgspec.json.decode(found), found=True, version=version_of(found))

    async def set(self, grant: Grant, asked: StateSetParams, audit: AuditRow) -> StateSetResult:
        """Keep a value; with an expected version only if it is still the one that was read."""
        key = _key(asked.scope, grant)
        value = msgspec.json.encode(asked.value)
        row = StateRow(key, asked.key, value, audit.time, asked.expected_version)
        if not await self._room.write(key, asked.key, len(value), lambda: self._records.write([row, audit])):
            raise HostError(
                ErrorCode.PAYLOAD_TOO_LARGE,
                f"the {asked.scope} scope would hold more than {MAX_STATE_SCOPE_BYTES} bytes; delete old keys first",
            )
        return StateSetResult(ok=True, version=version_of(value))

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
