"""Waiting for room: in turn, not for ever, and never past those who were there first."""

import asyncio
from contextlib import ExitStack

import pytest

from paddock.host import admission as admissions
from paddock.host.admission import Admission
from paddock.rules.errors import ErrorCode, HostError

pytestmark = pytest.mark.anyio


async def test_who_finds_no_room_is_told_when_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admissions, "WAIT_SECONDS", 0.01)
    host = Admission(1)
    with host.entering("a"):
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
        with host.entering(workspace):
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
            runs.enter_context(host.entering("only"))
    assert host.turned_away == 0


async def test_who_has_its_share_is_told_that_and_not_that_the_host_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admissions, "WAIT_SECONDS", 0.01)
    host = Admission(20)
    await host.enter("quiet")
    with ExitStack() as runs:
        while host.has_room("noisy"):
            runs.enter_context(host.entering("noisy"))
        with pytest.raises(HostError, match="your workspace has its share of this host"):
            await host.enter("noisy")
        assert not host.full


async def test_a_host_that_is_being_stopped_lets_nobody_in() -> None:
    host = Admission(10)
    host.closed = True
    with pytest.raises(HostError, match="being stopped"):
        await host.enter("a")
