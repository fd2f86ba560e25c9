"""Many conversations at once, on the embedded store: nobody waits for ever, and each is open when it is said to be."""

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest

from host.scripted import small_house
from paddock.host.people.principals import DEV
from paddock.storage.sqlite import SqliteStore

pytestmark = pytest.mark.anyio
AT_ONCE = 100


async def test_a_hundred_conversations_opened_at_once_are_all_open(tmp_path: Path) -> None:
    async with small_house(store=SqliteStore(tmp_path)) as house:
        for _ in range(3):  # more than stay in memory, so that some are let go and loaded again
            threads = [str(uuid4()) for _ in range(AT_ONCE)]
            answers = await asyncio.gather(*(house.controls.open(DEV, thread) for thread in threads))
            waits = [
                house.controls.settled(thread, answer.tx_id) for thread, answer in zip(threads, answers, strict=True)
            ]
            await asyncio.gather(*waits)
            seen = [(await house.controls.snapshot(DEV, thread)).summary.closed for thread in threads]
            assert seen == [False] * AT_ONCE
