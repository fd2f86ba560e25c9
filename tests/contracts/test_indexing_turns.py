"""Workspaces take turns at the search index, and what waits for it is bounded of one workspace and in all."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from contracts.builders import an_item
from contracts.conftest import PLUGS, open_plug
from contracts.search_index import index
from contracts.test_search import asked as asked_for_items
from contracts.test_thread_search import asked, hold
from paddock.ports import Batch, Store
from paddock.ports.places import Places
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import Head
from paddock.storage.postgres.search import PostgresIndex
from paddock.storage.search import history, threads
from paddock.storage.search.history import HistorySearch
from paddock.storage.sqlite.search import SqliteIndex
from paddock.storage.tables.statements import Engine

pytestmark = pytest.mark.anyio
SMALL = 4


@pytest.fixture(params=PLUGS)
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Store]:
    monkeypatch.setattr(history, "PART", SMALL)
    for one in (SqliteIndex, PostgresIndex):
        monkeypatch.setattr(one, "CONVERSATIONS", 1)
        monkeypatch.setattr(one, "MESSAGES", SMALL)
    with open_plug(request.param, tmp_path) as plug:
        await plug.open()
        yield plug
        await plug.close()


class Eager(SqliteIndex):
    ENOUGH: int = 1


class Slow(HistorySearch):
    """An index in which nothing gets on until it may. A conversation is called `<workspace>-<number>`."""

    def __init__(self, parts: int = 1) -> None:
        super().__init__(cast("Engine", None), Eager())
        self.parts = parts
        """So many parts a conversation has."""
        self.asked: list[str] = []
        self.order: list[str] = []
        self.may_go_on = asyncio.Event()

    async def workspace_of(self, session_id: str) -> str:
        self.asked.append(session_id)
        return session_id.partition("-")[0]

    async def add_part(self, session_id: str) -> bool:
        self.order.append(session_id)
        await self.may_go_on.wait()
        return self.order.count(session_id) < self.parts


@asynccontextmanager
async def slow(parts: int = 1) -> AsyncGenerator[Slow]:
    found = Slow(parts)
    yield found
    await found.stop()


def wrote(found: Slow, *names: str) -> None:
    """Let the index hear that something new was said in each of these."""
    for name in names:
        found.count(Batch(name, 1, Head(), Head(), [], [an_item(1, name)]))


async def until(parts: Sequence[str], many: int) -> None:
    async with asyncio.timeout(30):
        while len(parts) < many:
            await asyncio.sleep(0)


async def test_a_long_conversation_of_one_workspace_delays_the_search_of_another_by_a_part(store: Store) -> None:
    await hold(store, "long", *["hay"] * 120, workspace_id="loud")
    await hold(store, "short", *["needle"] * SMALL * 2, workspace_id="quiet")
    catching_up = [asyncio.create_task(index(store, "long")) for _ in range(3)]
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await index(store, "short")
        assert not any(task.done() for task in catching_up)
        await asyncio.wait(catching_up)
    for name, word, many in (("long", "hay", 100), ("short", "needle", SMALL * 2)):
        assert len(await store.search(name, asked_for_items(word, limit=100))) == many


async def test_conversations_that_are_due_are_indexed_by_turns_of_their_workspaces() -> None:
    names = [f"loud-{number}" for number in range(12)]
    async with slow(parts=3) as found:
        wrote(found, *names, "quiet-0")
        await until(found.asked, len(names) + 3)  # one of each workspace is asked for again when it is its turn
        found.may_go_on.set()
        await until(found.order, 3 * len(names) + 3)
    assert Counter(found.order) == dict.fromkeys([*names, "quiet-0"], 3)
    assert max(place for place, name in enumerate(found.order) if name == "quiet-0") < 8


async def test_conversations_that_are_due_are_bounded_and_found_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_DUE", 2)
    async with slow() as found:
        wrote(found, "loud-0")
        await until(found.order, 1)
        wrote(found, *(f"loud-{number}" for number in range(1, 8)), "quiet-0")
        await until(found.asked, 11)
        found.may_go_on.set()
        await until(found.order, 4)
        await found.catch_up("loud-7")
    assert found.order[:4] == ["loud-0", "quiet-0", "loud-1", "loud-2"]
    assert found.order[4:] == ["loud-7"], "a search has indexed what nobody remembered"


async def test_conversations_that_are_due_are_bounded_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_DUE_IN_ALL", 8)
    async with slow() as found:
        wrote(found, *(f"loud-{number}" for number in range(20)))  # before anybody could look whose they are
        await until(found.asked, 9)
        wrote(found, "loud-20", "quiet-0")
        await until(found.asked, 11)
        found.may_go_on.set()
        await until(found.order, 9)
        await found.catch_up("quiet-0")
    assert found.order == [*(f"loud-{number}" for number in range(8)), "loud-20", "quiet-0"]
    assert found.asked.count("quiet-0") == 2, "when it was written and when somebody searched, and not as one in line"


async def test_searches_that_wait_for_the_index_are_bounded() -> None:
    async with slow() as found:
        searches = [asyncio.create_task(found.catch_up("loud-0")) for _ in range(1 + history.WAITING + 1)]
        [refused], _ = await asyncio.wait(searches, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        error = refused.exception()
        assert isinstance(error, HostError)
        assert error.code == ErrorCode.RATE_LIMITED
        found.may_go_on.set()
        async with asyncio.timeout(30):
            await asyncio.gather(*(search for search in searches if search is not refused))


async def test_few_parts_for_finding_conversations_are_put_in_at_once_and_workspaces_take_turns(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "PATIENCE_SECONDS", 30.0)
    taken, at_work, most = Places.taken, 0, 0

    @asynccontextmanager
    async def counted(self: Places, workspace: str) -> AsyncGenerator[None]:
        nonlocal at_work, most
        async with taken(self, workspace):
            at_work += 1
            most = max(most, at_work)
            try:
                yield
            finally:
                at_work -= 1

    monkeypatch.setattr(Places, "taken", counted)
    for number in range(20):
        await hold(store, f"loud-{number}", *["hay"] * SMALL * 2, workspace_id="loud", user_id=f"user-{number}")
    await hold(store, "quiet", "needle", workspace_id="quiet")
    loud = [
        asyncio.create_task(store.find_sessions(asked("hay", workspace_id="loud", user_id=f"user-{number}")))
        for number in range(20)
    ]
    async with asyncio.timeout(30):
        while not at_work:
            await asyncio.sleep(0)
    answer = await store.find_sessions(asked("needle", workspace_id="quiet"))
    assert (len(answer.threads), answer.complete) == (1, True)
    assert not all(task.done() for task in loud)
    found = await asyncio.gather(*loud)
    assert all(one.complete and len(one.threads) == 1 for one in found)
    assert most <= threads.AT_ONCE
