"""Where a run is put is chosen run by run: a process is shared only by runs that may see the same."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from needs import install, not_run
from paddock.ports import Placement
from paddock.runners.isolation import active_level
from runners.house import House, News, eventually, house, marked, plugin

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", autouse=True)
def bubblewrap() -> None:
    if install("bubblewrap", "bwrap"):
        active_level.cache_clear()
    if active_level().level != "L1":
        not_run(f"the tests of runs at isolation L1 ({active_level().why})")


async def tried(here: House, attempt: str, placement: Placement) -> Any:
    news, run_id = News(), str(uuid4())
    context = {"run_id": run_id, "input": {"text": attempt}}
    await here.gateway.start_run("plugin:test/nasty/default", run_id, context, news, placement)
    await news.over()
    assert news.losses == []
    return news.results[-1].data


async def test_a_confined_run_sees_its_own_directory_and_what_it_was_shown_and_no_other(tmp_path: Path) -> None:
    one, two, shown = tmp_path / "one", tmp_path / "two", tmp_path / "shown"
    for folder in (one, two, shown):
        folder.mkdir()
    (shown / "SKILL.md").touch()
    mine = Placement(isolation="L1", directory=str(one), directory_is_ours=True, visible=(str(shown),))
    async with house(tmp_path, [plugin(program="prober.py")]) as here:
        assert "value" in await tried(here, f"write {one}/mine", mine)
        assert (await tried(here, f"list {shown}", mine))["value"] == ["SKILL.md"]
        assert (await tried(here, f"list {two}", mine)).get("error")
        assert (await tried(here, f"write {shown}/x", mine)).get("error")
        theirs = Placement(isolation="L1", directory=str(two), directory_is_ours=True)
        assert (await tried(here, f"list {one}", theirs)).get("error")
        assert (await tried(here, f"list {two}", Placement()))["value"] == [], "at L0 nothing is hidden"
    assert (one / "mine").read_text() == "x"


async def test_a_process_that_saw_a_directory_goes_with_its_run(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    async with house(tmp_path, [plugin(program="prober.py")]) as here:
        await tried(here, "list /", Placement())
        before = set(marked(here.mark))
        confined = Placement(isolation="L1", directory=str(tmp_path / "one"), directory_is_ours=True)
        await tried(here, "list /", confined)
        await eventually(lambda: set(marked(here.mark)) <= before)


async def test_a_confined_plugin_with_network_is_refused_while_anybody_may_call(tmp_path: Path) -> None:
    async def because() -> str | None:
        return "no API key exists yet"

    online = plugin(program="prober.py", isolation="L1", network=True)
    async with house(tmp_path, [online], network_refused=because) as here:
        news, _ = await here.run("list /")
        assert news.losses == [
            ("runner.start_failed", "test/nasty may use the network from isolation L1, and no API key exists yet")
        ]
