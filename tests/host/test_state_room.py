"""A scope of state holds so many bytes and no more; a value that replaces another counts for what it adds."""

import pytest

from grants import a_grant
from paddock.host.runner_state import RunnerState
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.limits import MAX_STATE_SCOPE_BYTES
from paddock.rules.permissions import state_key
from paddock.rules.rows import AuditRow, StateRow
from paddock.storage.memory import open_memory_store
from paddock_sdk.protocol.host_calls import StateSetParams

pytestmark = pytest.mark.anyio
DECISION = AuditRow(1.0, "w", "user:ann", "state.set", "k", "conversation", "allowed", "in the grant")


def asked(key: str, size: int) -> StateSetParams:
    """To keep a value that is so many bytes of JSON."""
    return StateSetParams(run_id="run-1", scope="conversation", key=key, value="x" * (size - 2))


async def test_a_full_scope_takes_what_replaces_as_much_and_not_a_byte_more() -> None:
    grant = a_grant()
    key = state_key("conversation", grant)
    assert key is not None
    store = open_memory_store()
    await store.open()
    state = RunnerState(store)
    await store.write([StateRow(key, "rest", b"1" * (MAX_STATE_SCOPE_BYTES - 100), 1.0)])
    await state.set(grant, asked("mine", 100), DECISION)
    await state.set(grant, asked("mine", 100), DECISION)
    with pytest.raises(HostError) as refused:
        await state.set(grant, asked("mine", 101), DECISION)
    assert refused.value.code is ErrorCode.PAYLOAD_TOO_LARGE
    with pytest.raises(HostError):
        await state.set(grant, asked("another", 10), DECISION)
