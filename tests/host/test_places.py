"""Shared things take turns by workspace, and who waits is bounded, of one workspace and in all."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any, cast

import pytest

from paddock.host.platforms.deliveries import Deliveries
from paddock.host.runs.outcomes import Outcomes
from paddock.ports.places import Places
from paddock.ports.platforms import Posted
from paddock.rules.access.limits import next_after
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.deliveries import DeliveryRow
from stores import QuickStore

pytestmark = pytest.mark.anyio


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_workspace_with_much_to_do_delays_another_by_one_turn() -> None:
    places, order = Places(1, waiting=100, waiting_in_all=1000), list[str]()

    async def work(workspace: str) -> None:
        async with places.taken(workspace):
            order.append(workspace)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(50):
            group.create_task(work("loud"))
        await settled()
        for _ in range(3):
            group.create_task(work("quiet"))
    came = [place for place, workspace in enumerate(order) if workspace == "quiet"]
    assert came[-1] - came[0] <= 4
    assert came[0] <= 6


async def test_one_workspace_never_has_all_places_where_that_is_said() -> None:
    places = Places(4, each=3, waiting=10, waiting_in_all=100)
    async with AsyncExitStack() as stack:
        for _ in range(3):
            await stack.enter_async_context(places.taken("loud"))
        fourth = asyncio.create_task(stack.enter_async_context(places.taken("loud")))
        await settled()
        assert (fourth.done(), places.in_line) == (False, 1)
        await stack.enter_async_context(places.taken("quiet"))  # at once
        fourth.cancel()
        await asyncio.wait([fourth])
        assert places.in_line == 0


@pytest.mark.parametrize(("each", "most"), [("loud", 3), (None, 5)])
async def test_who_waits_is_bounded_of_one_workspace_and_in_all(each: str | None, most: int) -> None:
    places = Places(1, waiting=3, waiting_in_all=5)

    async def hold(workspace: str) -> None:
        async with places.taken(workspace):
            await asyncio.sleep(3600)

    tasks = [asyncio.create_task(hold("first"))]
    await settled()
    tasks += [asyncio.create_task(hold(each or f"w{number}")) for number in range(most)]
    await settled()
    assert places.in_line == most
    with pytest.raises(HostError) as refused:
        async with places.taken(each or "one more"):
            pass
    assert (refused.value.code, refused.value.retryable) == (ErrorCode.RATE_LIMITED, True)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert places.in_line == 0
    async with places.taken("loud"):  # whoever was cancelled, waiting or at work, gave its place back
        pass


async def test_many_who_give_up_in_one_moment_leave_their_places_to_the_next() -> None:
    places = Places(1, waiting=5000, waiting_in_all=5000)
    many = 3000

    async def wait(workspace: str) -> None:
        async with places.taken(workspace):
            pass

    async with places.taken("first"):
        given_up = [asyncio.create_task(wait("loud")) for _ in range(many)]
        last = asyncio.create_task(wait("quiet"))
        await settled()
        assert places.in_line == many + 1
        for task in given_up:
            task.cancel()  # and the place is given back before any of them runs
    async with asyncio.timeout(30):
        await last
        await asyncio.wait(given_up)
    assert places.in_line == 0


async def test_a_workspace_that_is_alone_has_all_places_until_another_comes() -> None:
    places = Places(4, each=3, alone=4, waiting=10, waiting_in_all=100)
    async with AsyncExitStack() as loud:
        for _ in range(4):
            await loud.enter_async_context(places.taken("loud"))
        quiet = asyncio.create_task(loud.enter_async_context(places.taken("quiet")))
        await settled()
        assert not quiet.done()
        quiet.cancel()
        await asyncio.wait([quiet])
    async with AsyncExitStack() as stack:
        for _ in range(3):
            await stack.enter_async_context(places.taken("loud"))
        fourth = asyncio.create_task(stack.enter_async_context(places.taken("loud")))
        await settled()
        assert not fourth.done(), "one place is kept for those who came before"
        fourth.cancel()
        await asyncio.wait([fourth])


async def test_who_closes_waits_for_all_that_are_at_work_or_in_line() -> None:
    places, order = Places(1, waiting=10, waiting_in_all=10), list[str]()

    async def work(name: str) -> None:
        async with places.taken(name):
            await settled()
            order.append(name)

    async def close() -> None:
        await places.emptied()
        order.append("closed")

    await places.emptied()  # nobody is there
    async with asyncio.TaskGroup() as group:
        group.create_task(work("one"))
        group.create_task(work("two"))
        await asyncio.sleep(0)
        group.create_task(close())
    assert order == ["one", "two", "closed"]


def test_workspaces_have_their_turn_by_name() -> None:
    assert [next_after(["a", "b", "c"], last) for last in ("", "a", "b", "c", "bb")] == ["a", "b", "c", "a", "c"]


class SlowPlatforms:
    """Platforms whose webhooks never answer, but for one."""

    def __init__(self) -> None:
        self.told = asyncio.Event()

    def find(self, name: str) -> str:
        return name

    async def post(self, platform: str, _delivery: str, _body: bytes, *, seconds: float) -> Posted:
        assert seconds > 0
        if platform == "slow":
            await asyncio.sleep(3600)
        self.told.set()
        return Posted(200)


async def test_webhooks_that_do_not_answer_keep_none_of_another_workspace_waiting() -> None:
    store, platforms = QuickStore(), SlowPlatforms()
    await store.open()
    slow = [DeliveryRow(f"s{n}", "loud", "slow", f"s{n}", "r", 1, b"{}", 1.0, due_at=1.0) for n in range(100)]
    await store.write([*slow, DeliveryRow("q", "quiet", "quick", "q", "r", 1, b"{}", 1.0, due_at=2.0)])
    working = asyncio.create_task(
        Deliveries(store, cast("Any", platforms), outcomes=Outcomes(store), clock=lambda: 10.0).run()
    )
    async with asyncio.timeout(20):
        await platforms.told.wait()
    working.cancel()
    await asyncio.wait([working])
