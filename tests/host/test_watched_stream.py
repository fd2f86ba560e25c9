"""An answer in pieces ends by its deadline, whichever piece that falls on, and by nobody else's cancel in disguise."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from paddock.host.calls.watched_stream import WatchedStream
from paddock.rules.errors import ErrorCode, HostError

pytestmark = pytest.mark.anyio
SOON = 0.02


class Source:
    """Some pieces at once, then a wait without end."""

    result: Mapping[str, Any] = {}

    def __init__(self, pieces: int, *, stubborn: bool = False) -> None:
        self._pieces = pieces
        self._stubborn = stubborn
        self.waits = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        for number in range(self._pieces):
            yield {"piece": number}
        try:
            self.waits.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not self._stubborn:
                raise
        yield {"piece": "after the cancel"}


async def read(stream: WatchedStream, into: list[Any]) -> None:
    async for piece in stream:
        into.append(piece["piece"])  # noqa: PERF401 - what came before an error is to be seen


@pytest.mark.parametrize("pieces", [0, 1, 3])
async def test_a_source_that_goes_silent_ends_at_the_deadline_and_what_it_said_before_counts(pieces: int) -> None:
    noted: list[HostError | None] = []
    said: list[Any] = []
    with pytest.raises(HostError) as late:
        await read(WatchedStream(Source(pieces), SOON, noted.append), said)
    assert late.value.code is ErrorCode.DEADLINE_EXCEEDED
    assert said == list(range(pieces))
    assert noted == [None if pieces else late.value]
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_a_source_that_swallows_the_cancel_is_heard_once_more_and_then_it_is_late() -> None:
    said: list[Any] = []
    with pytest.raises(HostError) as late:
        await read(WatchedStream(Source(1, stubborn=True), SOON, lambda _: None), said)
    assert (late.value.code, said) == (ErrorCode.DEADLINE_EXCEEDED, [0, "after the cancel"])
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_somebody_elses_cancel_stays_a_cancel() -> None:
    source = Source(0)
    reading = asyncio.create_task(read(WatchedStream(source, 30.0, lambda _: None), []))
    await source.waits.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_a_stream_that_was_closed_rings_nobody() -> None:
    stream = WatchedStream(Source(1), SOON, lambda _: None)
    assert (await anext(aiter(stream)))["piece"] == 0
    await stream.aclose()
    await asyncio.sleep(2 * SOON)  # past its deadline: nothing is cancelled
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()
