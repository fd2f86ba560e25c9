"""The watch over the event loop: what it counts, what it says, and what it leaves alone."""

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from paddock.telemetry import loop_watch
from paddock.telemetry.loop_watch import LoopWatch

pytestmark = pytest.mark.anyio
SECRET = "what somebody wrote"
SLOW = re.compile(r"(a+)+$")


@asynccontextmanager
async def watching() -> AsyncGenerator[LoopWatch]:
    watch = LoopWatch()
    watch.start()
    try:
        yield watch
    finally:
        await asyncio.to_thread(watch.stop)


def work_for(seconds: float, words: str = "") -> str:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return words


async def until(true: object) -> None:
    async with asyncio.timeout(20):
        while not true():  # type: ignore[operator]
            await asyncio.sleep(0.005)


async def test_a_stall_is_counted_with_its_length_and_the_place_where_it_was() -> None:
    with capture_logs() as lines:
        async with watching() as watch:
            await asyncio.sleep(0.06)
            work_for(0.4, SECRET)
            await until(lambda: watch.stalls)
    assert (watch.stalls, 0.3 < watch.worst < 0.6) == (1, True)
    [line] = [line for line in lines if line["action"] == "loop.stalled"]
    assert "test_loop_watch.work_for:" in line["where"]
    assert SECRET not in json.dumps(lines)


async def test_one_long_call_into_c_is_a_stall_though_nobody_could_look_meanwhile() -> None:
    with capture_logs() as lines:
        async with watching() as watch:
            async with asyncio.timeout(20):
                while not watch.stalls:  # a starved machine may let one pass unseen
                    await asyncio.sleep(0.06)
                    SLOW.match("a" * 23 + "b")
    assert watch.worst > 0.1
    assert [line["action"] for line in lines if line["action"] == "loop.stalled"]


async def test_many_short_callbacks_and_a_slow_machine_are_no_stall() -> None:
    async with watching() as watch:
        loop = asyncio.get_running_loop()
        for _ in range(3):
            for _ in range(300):
                loop.call_soon(work_for, 0.001)
            await asyncio.sleep(0.02)
        time.sleep(0.4)  # not at work: as a machine that has no time for us
        await asyncio.sleep(0.1)
    assert watch.stalls == 0


async def test_a_stall_that_does_not_end_is_told_of_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_watch, "STILL_SECONDS", 0.3)
    with capture_logs() as lines:
        async with watching() as watch:
            await asyncio.sleep(0.06)
            end = time.monotonic() + 20
            while not any(line["action"] == "loop.stalling" for line in list(lines)) and time.monotonic() < end:
                pass
    assert watch.worst > 0.2
    assert [line for line in lines if line["action"] == "loop.stalling"]


async def test_a_loop_that_was_asked_to_stop_and_answers_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_watch, "DEAF_SECONDS", 0.3)
    deaf: list[bool] = []
    async with watching() as watch:
        watch.expect_stop(lambda: deaf.append(True))
        await asyncio.sleep(0.6)
        assert not deaf
        time.sleep(0.6)
        await until(lambda: deaf)
    assert deaf == [True]


async def test_an_idle_loop_is_not_woken() -> None:
    async with watching() as watch:
        await asyncio.sleep(0.2)
        before = watch.questions
        await asyncio.sleep(1.0)
        assert watch.questions - before < 3
