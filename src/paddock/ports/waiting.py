"""Waits that end: for a bell, and for work on a thread that a host which stops does not wait for."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


LOOK_SECONDS = 15.0
"""The longest rest of a task that polls: rows of other hosts are noticed by then."""
LEAST_SECONDS = 0.05


def until(moment: float | None, now: float) -> float:
    """Seconds until a moment, within bounds."""
    return LOOK_SECONDS if moment is None else min(max(moment - now, LEAST_SECONDS), LOOK_SECONDS)


async def rung_within(bell: asyncio.Event, seconds: float) -> None:
    """Wait so long, or until the bell rings."""
    try:
        async with asyncio.timeout(seconds):
            await bell.wait()
    except TimeoutError:
        return
    finally:
        bell.clear()


async def on_own_thread(name: str, work: Callable[Given, Result], *given: Given.args, **named: Given.kwargs) -> Result:
    """Call on a daemon thread: a call that never returns does not keep the host from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def settle(told: Callable[[], None]) -> None:
        if not done.done():
            told()

    def go() -> None:
        try:
            told = partial(done.set_result, work(*given, **named))
        except Exception as error:  # noqa: BLE001 - raised at the await below
            told = partial(done.set_exception, error)
        with suppress(RuntimeError):  # the host has ended
            loop.call_soon_threadsafe(settle, told)

    Thread(target=go, name=name, daemon=True).start()
    return await done
