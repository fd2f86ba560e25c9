"""Answers in chunks through both real ends: this host and the SDK in a child process."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from runners.house import House, News, eventually, house, plugin

pytestmark = pytest.mark.anyio
GOLDEN = Path(__file__).parents[1] / "protocol" / "golden" / "AgentRunContext.json"


class Words:
    """What a model says, one number after the other; then it may fall silent."""

    result: Mapping[str, Any]

    def __init__(self, count: int, *, silent: bool = False) -> None:
        self.result = {"usage": {"total_tokens": count}}
        self.closed = False
        self._words = self._say(count, silent)

    def __aiter__(self) -> AsyncIterator[Mapping[str, Any]]:
        return self._words

    async def aclose(self) -> None:
        await self._words.aclose()

    async def _say(self, count: int, silent: bool) -> AsyncGenerator[Mapping[str, Any]]:
        try:
            for number in range(count):
                yield {"chunk": {"role": "assistant", "content": f"{number} "}}
            if silent:
                await asyncio.Event().wait()
        finally:
            self.closed = True


async def run(here: House, words: Words) -> tuple[News, Any]:
    here.calls.answer = lambda _method, _params: words  # pyright: ignore[reportAttributeAccessIssue]
    news = News()
    context = json.loads(GOLDEN.read_text())
    context["runtime"].pop("deadline_at", None)
    handle = await here.gateway.start_run("plugin:test/streamer/default", context["run_id"], context, news)
    return news, handle


async def test_more_chunks_than_the_window_arrive_whole_and_in_order(tmp_path: Path) -> None:
    async with house(tmp_path, [plugin("streamer", "streamer.py")]) as here:
        words = Words(200)
        news, _ = await run(here, words)
        await news.over()
        assert news.text == [f"{number} " for number in range(200)]
        assert (news.results[-1].data, words.closed) == ({"usage": {"total_tokens": 200}}, True)


async def test_a_cancelled_run_ends_its_stream(tmp_path: Path) -> None:
    async with house(tmp_path, [plugin("streamer", "streamer.py")]) as here:
        words = Words(3, silent=True)
        news, handle = await run(here, words)
        await news.until(lambda news: len(news.text) == 3)
        assert not words.closed
        assert await handle.cancel("user")
        await eventually(lambda: words.closed)


async def test_a_cancelled_run_gives_up_the_model_it_waits_for(tmp_path: Path) -> None:
    began, given_up = asyncio.Event(), asyncio.Event()

    async def never(*_: object) -> Any:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    async with house(tmp_path, [plugin("asker", "asker.py")]) as here:
        here.calls.answer = never  # pyright: ignore[reportAttributeAccessIssue]
        news = News()
        context = json.loads(GOLDEN.read_text())
        context["runtime"].pop("deadline_at", None)
        handle = await here.gateway.start_run("plugin:test/asker/default", context["run_id"], context, news)
        await asyncio.wait_for(began.wait(), 30)
        assert await handle.cancel("user")
        await asyncio.wait_for(given_up.wait(), 30)
