"""Workspaces take turns at the search index, and what waits for it is bounded of one workspace and in all."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contracts.conftest import open_plug
from contracts.test_search import asked as asked_for_items
from contracts.test_thread_search import asked, hold
from paddock.rules.errors import ErrorCode, HostError
from paddock.storage.postgres import search as postgres_indexing
from paddock.storage.postgres import thread_search as postgres_threads
from paddock.storage.search import in_parts as indexing
from paddock.storage.search import thread_filling
from paddock.storage.sqlite import search as sqlite_indexing
from paddock.storage.sqlite import thread_search as sqlite_threads

pytestmark = pytest.mark.anyio
SMALL = 4


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    for module in (sqlite_indexing, postgres_indexing, sqlite_threads):
        monkeypatch.setattr(module, "PART", SMALL)
    monkeypatch.setattr(postgres_threads, "PART", 1)
    with open_plug(request.param, tmp_path) as plug:
        await plug.open()
        yield plug
        await plug.close()


async def until(true: Any) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0)


async def test_a_long_conversation_of_one_workspace_delays_the_search_of_another_by_a_part(store: Any) -> None:
    await hold(store, "long", *["hay"] * 120, workspace_id="loud")
    await hold(store, "short", *["needle"] * SMALL * 2, workspace_id="quiet")
    catching_up = [asyncio.create_task(store._indexing.catch_up("long")) for _ in range(3)]
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await store._indexing.catch_up("short")
        assert not any(task.done() for task in catching_up)
        await asyncio.wait(catching_up)
    for name, word, many in (("long", "hay", 100), ("short", "needle", SMALL * 2)):
        assert len(await store.search(name, asked_for_items(word, limit=100))) == many


async def test_conversations_that_are_due_are_indexed_by_turns_of_their_workspaces(store: Any) -> None:
    order: list[str] = []
    add_part = store._indexing.add_part

    async def noted(session_id: str) -> bool:
        order.append(session_id)
        return await add_part(session_id)

    store._indexing.add_part = noted
    names = [f"loud-{number}" for number in range(12)]
    for name in names:
        await hold(store, name, *["hay"] * SMALL * 3, workspace_id="loud")
    await hold(store, "quiet", *["hay"] * SMALL * 3, workspace_id="quiet")
    for name in (*names, "quiet"):
        store._indexing._line_up(name)
    await until(lambda: set(order) == {*names, "quiet"} and not store._indexing._lines)
    assert max(place for place, name in enumerate(order) if name == "quiet") < 16  # of some fifty


async def test_conversations_that_are_due_are_bounded_and_found_all_the_same(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "MAX_DUE", 2)
    monkeypatch.setattr(indexing, "MAX_DUE_IN_ALL", 8)
    begun, go_on = asyncio.Event(), asyncio.Event()
    catch_up = store._indexing.catch_up

    async def held(session_id: str) -> None:
        begun.set()
        await go_on.wait()
        await catch_up(session_id)

    monkeypatch.setattr(store._indexing, "catch_up", held)
    names = [f"loud-{number}" for number in range(8)]
    for name in names:
        await hold(store, name, *["hay"] * SMALL, workspace_id="loud")
        store._indexing._line_up(name)
    await begun.wait()
    await until(lambda: not store._indexing._due)
    await store._indexing.workspace_of(names[0])  # whatever was looked up before this is sorted
    assert len(store._indexing._lines["loud"]) == 2
    store._indexing._due = dict.fromkeys(map(str, range(8)))
    store._indexing._line_up("one more")
    assert "one more" not in store._indexing._due
    go_on.set()
    await until(lambda: not store._indexing._lines)
    assert len(await store.search(names[-1], asked_for_items("hay"))) == SMALL


async def test_searches_that_wait_for_the_index_are_bounded(store: Any) -> None:
    await hold(store, "long", *["hay"] * 8, workspace_id="loud")
    places = store._indexing._places
    async with places.taken("somebody"):
        waiting = [asyncio.create_task(store._indexing.catch_up("long")) for _ in range(indexing.WAITING)]
        await until(lambda: places.in_line == indexing.WAITING)
        with pytest.raises(HostError) as refused:
            await store._indexing.catch_up("long")
        assert refused.value.code == ErrorCode.RATE_LIMITED
    async with asyncio.timeout(30):
        await asyncio.gather(*waiting)


async def test_few_parts_for_finding_conversations_are_put_in_at_once_and_workspaces_take_turns(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_filling, "PATIENCE_SECONDS", 30.0)
    threads = store._thread_indexing
    at_work = {"now": 0, "most": 0}
    owner = threads if hasattr(threads, "_perform") else threads._reader
    name = "_perform" if hasattr(threads, "_perform") else "perform"
    perform = getattr(owner, name)

    async def counted(*given: Any, **more: Any) -> Any:
        at_work["now"] += 1
        at_work["most"] = max(at_work.values())
        await asyncio.sleep(0.002)
        try:
            return await perform(*given, **more)
        finally:
            at_work["now"] -= 1

    monkeypatch.setattr(owner, name, counted)
    for number in range(20):
        await hold(store, f"loud-{number}", *["hay"] * SMALL * 2, workspace_id="loud", user_id=f"user-{number}")
    await hold(store, "quiet", "needle", workspace_id="quiet")
    loud = [
        asyncio.create_task(store.find_sessions(asked("hay", workspace_id="loud", user_id=f"user-{number}")))
        for number in range(20)
    ]
    await until(lambda: at_work["now"])
    answer = await store.find_sessions(asked("needle", workspace_id="quiet"))
    assert (len(answer.threads), answer.complete) == (1, True)
    assert not all(task.done() for task in loud)
    found = await asyncio.gather(*loud)
    assert all(one.complete and len(one.threads) == 1 for one in found)
    assert at_work["most"] <= thread_filling.AT_ONCE
