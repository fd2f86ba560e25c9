"""Answers in chunks that are cut off: the run hears why, the source is closed, and the next call is answered."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import msgspec
import pytest

from paddock.ports import Caller
from paddock.runners.wire.calls import RUN_IS_OVER, WireCalls, WireLimits
from paddock.runners.wire.frames import Frame
from paddock_sdk.protocol.frames import INVALID_REQUEST

pytestmark = pytest.mark.anyio
PATIENCE = 30.0


class Source:
    """Says one word, then waits for ever; `then` is called when it is asked for the next."""

    result: Mapping[str, Any] = {}

    def __init__(self, then: Callable[[], None] = lambda: None, *, stays: bool = True) -> None:
        self.waits, self.closed = asyncio.Event(), asyncio.Event()
        self._then = then
        self._stays = stays
        self._words = self._say()

    def __aiter__(self) -> AsyncGenerator[Mapping[str, Any]]:
        return self._words

    async def aclose(self) -> None:
        await self._words.aclose()

    async def _say(self) -> AsyncGenerator[Mapping[str, Any]]:
        try:
            yield {"word": 1}
            self._then()
            self.waits.set()
            if self._stays:
                await asyncio.Event().wait()
        finally:
            self.closed.set()


class Wire:
    """Calls over nothing: what is answered is kept."""

    def __init__(self) -> None:
        self.said: dict[int, Mapping[str, Any]] = {}
        self.sources: dict[int, Source] = {}
        self._news = asyncio.Event()
        self.calls = WireCalls(
            Caller("a/b", "1"),
            self._handle,
            {"stream"},
            send=self._take,
            drained=_at_once,
            limits=WireLimits(calls_at_once=1),
        )

    def ask(self, number: int, source: Source) -> None:
        self.sources[number] = source
        self.calls.take(Frame(id=number, method="stream", params={"run_id": "r", "number": number}), 10)

    async def answer(self, number: int) -> Mapping[str, Any]:
        async with asyncio.timeout(PATIENCE):
            while number not in self.said:
                self._news.clear()
                await self._news.wait()
        return self.said[number]

    async def _handle(self, caller: Caller, method: str, params: Any, size: int) -> Any:
        return self.sources[params["number"]]

    def _take(self, line: bytes) -> None:
        frame = msgspec.json.decode(line)
        if "method" not in frame:
            self.said[frame["id"]] = frame
            self._news.set()


async def _at_once() -> None:
    return None


async def test_a_stream_whose_run_ends_says_so_and_the_call_behind_it_is_answered() -> None:
    wire, first, second = Wire(), Source(), Source(stays=False)
    wire.ask(1, first)
    wire.ask(2, second)  # waits for the task of the first
    await asyncio.wait_for(first.waits.wait(), PATIENCE)
    wire.calls.run_over("r")
    wire.calls.run_over("r")
    assert (await wire.answer(1))["error"]["data"]["message"] == RUN_IS_OVER
    assert first.closed.is_set()
    assert (await wire.answer(2))["result"] == {}
    assert second.closed.is_set()


async def test_a_call_with_the_id_of_one_that_is_not_answered_gets_an_error_at_once() -> None:
    wire, first = Wire(), Source()
    wire.ask(1, first)
    await asyncio.wait_for(first.waits.wait(), PATIENCE)
    wire.ask(2, Source(stays=False))  # waits for the task of the first
    for number in (1, 2):
        wire.ask(number, Source(stays=False))
        refused = wire.said.pop(number)["error"]
        assert refused["code"] == INVALID_REQUEST
        assert "a call of this id is still being answered" in refused["data"]["message"]
    wire.calls.run_over("r")
    assert (await wire.answer(1))["error"]["data"]["message"] == RUN_IS_OVER
    assert "result" in await wire.answer(2)
    del wire.said[1]
    wire.ask(1, Source(stays=False))
    assert "result" in await wire.answer(1), "an id that was answered is free again"


async def test_a_stream_may_end_its_own_run_with_its_last_word() -> None:
    wire, second = Wire(), Source(stays=False)
    wire.ask(1, Source(lambda: wire.calls.run_over("r"), stays=False))
    wire.ask(2, second)
    assert (await wire.answer(1))["result"] == {}
    assert (await wire.answer(2))["result"] == {}


async def test_a_connection_that_closes_when_a_run_ends_answers_nothing_more() -> None:
    wire, source = Wire(), Source()
    wire.ask(1, source)
    await asyncio.wait_for(source.waits.wait(), PATIENCE)
    wire.calls.run_over("r")
    wire.calls.close()
    await asyncio.wait_for(source.closed.wait(), PATIENCE)
    await asyncio.sleep(0)
    assert wire.said == {}
