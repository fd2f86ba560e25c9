"""Waiting for room: in turn, not for ever, and never past those who were there first."""

import asyncio
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import pytest

from paddock.host.runs import live_runs as admissions
from paddock.host.runs.live_runs import Admission
from paddock.rules.errors import ErrorCode, HostError

pytestmark = pytest.mark.anyio


@contextmanager
def a_run(host: Admission, workspace: str) -> Generator[None]:
    host.entered(workspace)
    try:
        yield
    finally:
        host.left(workspace)


async def test_who_finds_no_room_is_told_when_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admissions, "WAIT_SECONDS", 0.01)
    host = Admission(1)
    with a_run(host, "a"):
        assert host.full
        with pytest.raises(HostError) as refused:
            await host.enter("b")
    assert (refused.value.code, refused.value.details["retry_after"]) == (ErrorCode.UNAVAILABLE, 2)
    assert not host.full
    await host.enter("b")


async def test_a_noisy_workspace_does_not_keep_a_quiet_one_waiting() -> None:
    host, order = Admission(2), list[str]()

    async def run(workspace: str) -> None:
        await host.enter(workspace)
        with a_run(host, workspace):
            order.append(workspace)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(50):
            group.create_task(run("noisy"))
        group.create_task(run("quiet"))
    assert len(order) == 51
    assert order.index("quiet") < 5


async def test_a_host_with_one_workspace_is_full_when_it_says_so_and_not_before() -> None:
    host = Admission(20)
    with ExitStack() as runs:
        while not host.full:
            await host.enter("only")
            runs.enter_context(a_run(host, "only"))
    assert host.turned_away == 0


async def test_who_has_its_share_is_told_that_and_not_that_the_host_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admissions, "WAIT_SECONDS", 0.01)
    host = Admission(20)
    await host.enter("quiet")
    with ExitStack() as runs:
        while host.has_room("noisy"):
            runs.enter_context(a_run(host, "noisy"))
        with pytest.raises(HostError, match="your workspace has its share of this host"):
            await host.enter("noisy")
        assert not host.full


async def test_a_host_that_is_being_stopped_lets_nobody_in() -> None:
    host = Admission(10)
    host.closed = True
    with pytest.raises(HostError, match="being stopped"):
        await host.enter("a")


async def test_runs_that_end_at_the_same_moment_let_in_as_many_as_they_were_and_no_more() -> None:
    host, most = Admission(30), 0

    async def run(may_end: asyncio.Event) -> None:
        nonlocal most
        await host.enter("w")
        with a_run(host, "w"):
            most = max(most, host.busy["w"])
            await may_end.wait()

    first, later = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(30):
            group.create_task(run(first))
        await asyncio.sleep(0)
        for _ in range(200):
            group.create_task(run(later))
        await until_waiting(host, 200)
        first.set()
        await until_waiting(host, 170)
        later.set()
    assert most == 30
    assert not host.busy


async def test_who_gives_up_when_let_in_leaves_the_place_to_the_next() -> None:
    host, inside = Admission(1), asyncio.Event()

    async def run() -> None:
        await host.enter("w")
        with a_run(host, "w"):
            inside.set()

    with a_run(host, "w"):
        gives_up = asyncio.create_task(run())
        next_one = asyncio.create_task(run())
        await until_waiting(host, 2)
    gives_up.cancel()
    async with asyncio.timeout(1):
        await inside.wait()
    await next_one


async def until_waiting(host: Admission, count: int) -> None:
    async with asyncio.timeout(30):
        while host.waiting() != count:
            await asyncio.sleep(0)


async def test_who_waits_when_a_host_is_stopped_is_not_let_in_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admissions, "WAIT_SECONDS", 0.05)
    host = Admission(1)
    with a_run(host, "w"):
        waiting = asyncio.create_task(host.enter("w"))
        await until_waiting(host, 1)
        host.closed = True
    with pytest.raises(HostError, match="being stopped"):
        await waiting
