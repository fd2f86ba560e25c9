"""Runs through a real child process: what goes right."""

from pathlib import Path

import pytest

from runners.house import house

pytestmark = pytest.mark.anyio


async def test_a_run_is_acknowledged_streams_and_completes(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        news, _ = await here.run("echo hello")
        await news.over()
        assert (news.acks, news.text, news.losses) == (1, ["hello"], [])
