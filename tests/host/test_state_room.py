"""A scope of state holds so many bytes and no more; a value that replaces another counts for what it adds."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from grants import a_grant
from paddock.host.calls import state as state_room
from paddock.host.calls.state import FRESH_SECONDS, RunnerState, StateQuota
from paddock.ports import Store
from paddock.rules.access.limits import MAX_STATE_SCOPE_BYTES, MAX_STATE_VALUE_BYTES
from paddock.rules.access.permissions import state_key
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow, StateRow
from paddock.settings import EMBEDDED
from paddock.storage.chosen import store_at
from paddock_sdk.protocol.host_calls import StateSetParams
from stores import QuickStore

pytestmark = pytest.mark.anyio
DECISION = AuditRow(1.0, "w", "user:ann", "state.set", "k", "conversation", "allowed", "in the grant")


def asked(key: str, size: int) -> StateSetParams:
    """To keep a value that is so many bytes of JSON."""
    return StateSetParams(run_id="run-1", scope="conversation", key=key, value="x" * (size - 2))


async def test_a_full_scope_takes_what_replaces_as_much_and_not_a_byte_more(store: QuickStore) -> None:
    grant = a_grant()
    key = state_key("conversation", grant)
    assert key is not None
    state = RunnerState(store)
    await store.write([StateRow(key, "rest", b"1" * (MAX_STATE_SCOPE_BYTES - 100), 1.0)])
    await state.set(grant, asked("mine", 100), DECISION)
    await state.set(grant, asked("mine", 100), DECISION)
    with pytest.raises(HostError) as refused:
        await state.set(grant, asked("mine", 101), DECISION)
    assert refused.value.code is ErrorCode.PAYLOAD_TOO_LARGE
    with pytest.raises(HostError):
        await state.set(grant, asked("another", 10), DECISION)


class Asked:
    """A store, and how often it was asked for the size of a scope."""

    def __init__(self, store: Store) -> None:
        self.times = 0
        self._store = store

    async def state_size(self, scope_key: str) -> int:
        self.times += 1
        return await self._store.state_size(scope_key)

    async def state(self, scope_key: str, key: str) -> bytes | None:
        return await self._store.state(scope_key, key)


class Rooms:
    """The room of state over a store and a clock that only moves when told."""

    def __init__(self, store: Store) -> None:
        self.now = 0.0
        self.asked = Asked(store)
        self.room = StateQuota(cast("Store", self.asked), lambda: self.now)
        self._store = store

    async def write(self, scope_key: str, key: str, size: int) -> bool:
        rows = [StateRow(scope_key, key, b"1" * size, 1.0)]
        return await self.room.write(scope_key, key, size, lambda: self._store.write(rows))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = store_at(EMBEDDED, tmp_path)
    await store.open()
    yield store
    await store.close()


async def test_any_number_of_writes_at_once_stays_within_the_cap(store: Store) -> None:
    rooms, size = Rooms(store), MAX_STATE_VALUE_BYTES
    taken = await asyncio.gather(*(rooms.write("s", f"k{n}", size) for n in range(40)))
    assert sum(taken) == MAX_STATE_SCOPE_BYTES // size
    assert await store.state_size("s") == MAX_STATE_SCOPE_BYTES


async def test_one_value_written_over_and_over_never_fills_its_scope(store: Store) -> None:
    rooms = Rooms(store)
    assert all([await rooms.write("s", "k", MAX_STATE_VALUE_BYTES) for _ in range(50)])
    assert all(await asyncio.gather(*(rooms.write("s", "k", MAX_STATE_VALUE_BYTES) for _ in range(50))))
    assert rooms.asked.times < 50


async def test_small_writes_ask_the_store_once_a_second_and_not_each_time(store: Store) -> None:
    rooms = Rooms(store)
    for _ in range(20):
        assert await rooms.write("s", "k", 10)
    assert rooms.asked.times == 1
    rooms.now += FRESH_SECONDS
    assert await rooms.write("s", "k", 10)
    assert rooms.asked.times == 2


async def test_what_others_wrote_counts_after_a_second(store: Store) -> None:
    rooms = Rooms(store)
    assert await rooms.write("s", "k", 10)
    await store.write([StateRow("s", "theirs", b"1" * (MAX_STATE_SCOPE_BYTES - 10), 1.0)])
    rooms.now += FRESH_SECONDS
    assert not await rooms.write("s", "more", 1)
    assert await rooms.write("s", "k", 10)
    await store.write([StateRow("s", "theirs", None, 1.0)])
    assert await rooms.write("s", "more", 1)


async def test_a_write_that_fails_leaves_its_scope_to_the_next(store: Store) -> None:
    rooms = Rooms(store)

    async def fail() -> None:
        raise ConnectionError

    for _ in range(2):  # once when the store was asked, once when it was not
        with pytest.raises(ConnectionError):
            await rooms.room.write("s", "k", 10, fail)
    rooms.now += FRESH_SECONDS
    async with asyncio.timeout(20):
        assert await rooms.write("s", "k", 10)


async def test_scopes_nobody_writes_are_forgotten(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_room, "MOST_SCOPES", 10)
    rooms = Rooms(store)
    for number in range(30):
        assert await rooms.write(f"s{number}", "k", 1)
    assert await rooms.write("s29", "k", 1)
    assert rooms.asked.times == 30
    assert await rooms.write("s0", "k", 1)
    assert rooms.asked.times == 31
