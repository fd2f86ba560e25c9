"""What a host was doing for a run when it died is seen to by the hosts that are left, once, though none is started."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from contracts.test_calls import a_tool_call
from paddock.compose import Rooms, rooms_of
from paddock.compose.build import house_of
from paddock.rules.access.approvals import DECIDED
from paddock.rules.rows.calls import ApprovalRow, ApprovalStepRow
from paddock.settings import Settings
from paddock.storage.postgres import PostgresStore

pytestmark = pytest.mark.anyio


@pytest.fixture
async def left(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Rooms, Rooms, PostgresStore]]:
    """Two hosts that have been there for a while, and the store as one that is gone wrote it."""
    monkeypatch.setenv("PADDOCK_SECRET", "one secret for both of these hosts and long enough")
    gone = PostgresStore(database)
    async with AsyncExitStack() as stack:
        hosts = [rooms_of(Settings(data=tmp_path / name, store=database, discover_models=False)) for name in "ab"]
        for rooms in hosts:
            await stack.enter_async_context(house_of(rooms).running())
        await gone.open()
        stack.push_async_callback(gone.close)
        yield hosts[0], hosts[1], gone


async def until(true: Callable[[], Any]) -> None:
    with anyio.fail_after(60):
        while not await true():
            await asyncio.sleep(0.05)


async def test_an_action_on_a_platform_is_unknown_when_its_host_died_in_the_middle_of_it(
    left: tuple[Rooms, Rooms, PostgresStore],
) -> None:
    _, other, gone = left
    now = time.time()
    asked = ApprovalRow("ap_1", "w", "ann", "s", "run-1", "a", "message.edit", b"{}", b"{}", now - 90, now + 900)
    granted = ApprovalStepRow("ap_1", DECIDED, "granted", "user:ann", now - 61, "token", "")
    under_way = ApprovalRow("ap_2", "w", "ann", "s", "run-1", "a", "message.edit", b"{}", b"{}", now - 90, now + 900)
    just_now = ApprovalStepRow("ap_2", DECIDED, "granted", "user:ann", now, "token", "")
    await gone.write([asked, granted, under_way, just_now])

    async def outcome(approval_id: str) -> str:
        found = await other.ground.store.approval(approval_id)
        assert found is not None
        return found.outcome(now)

    async def is_unknown() -> bool:
        return await outcome("ap_1") == "unknown"

    await until(is_unknown)
    assert await outcome("ap_2") == "doing"
    told = [row.result for row in await gone.audit(run_id="run-1") if row.action == "platform.perform"]
    assert told == ["unknown"]


async def test_a_tool_call_is_unknown_when_its_host_died_in_the_middle_of_it(
    left: tuple[Rooms, Rooms, PostgresStore],
) -> None:
    _, other, gone = left
    await gone.write([a_tool_call("c1", "run-9")])

    async def is_unknown() -> bool:
        return [row.status for row in await other.ground.store.tool_calls("run-9")] == ["unknown"]

    await until(is_unknown)
    told = [row.result for row in await gone.audit(run_id="run-9") if row.action == "tools.call"]
    assert told == ["unknown"]
