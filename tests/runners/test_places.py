"""Where a run is put is chosen run by run: a process is shared only by runs that may see the same."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from needs import install, not_run
from paddock.confinement.homes import Homes
from paddock.ports import Placement
from paddock.runners.processes.isolation import active_level
from runners.house import House, News, eventually, house, marked, plugin

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", autouse=True)
def bubblewrap() -> None:
    if install("bubblewrap", "bwrap"):
        active_level.cache_clear()
    if active_level().level != "L1":
        not_run(f"the tests of runs at isolation L1 ({active_level().why})")


async def heard(here: House, attempt: str, placement: Placement) -> News:
    news, run_id = News(), str(uuid4())
    context = {"run_id": run_id, "input": {"text": attempt}}
    await here.gateway.start_run("plugin:test/nasty/default", run_id, context, news, placement)
    return await news.over()


async def tried(here: House, attempt: str, placement: Placement) -> Any:
    news = await heard(here, attempt, placement)
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


async def test_of_its_plugins_home_a_confined_run_sees_one_conversation_and_changes_nothing_else(
    tmp_path: Path,
) -> None:
    (tmp_path / "one").mkdir()
    home = tmp_path / "runners" / "test" / "nasty"
    mine, theirs = home / "conversations" / "a1", home / "conversations" / "b2"
    async with house(tmp_path, [plugin(program="prober.py")]) as here:
        first = Placement(isolation="L1", directory=str(tmp_path / "one"), directory_is_ours=True, conversation="a1")
        second = Placement(isolation="L1", directory=str(tmp_path / "one"), directory_is_ours=True, conversation="b2")
        assert "value" in await tried(here, f"write {mine}/session", first)
        assert "value" in await tried(here, f"write {theirs}/session", second)
        (home / "program").write_text("installed here by the operator")
        assert (await tried(here, f"list {home}/conversations", first))["value"] == ["a1"]
        assert (await tried(here, f"read {theirs}/session", first))["error"] == "FileNotFoundError"
        assert (await tried(here, f"read {mine}/session", first))["value"] == "x", "its own is there in its next turn"
        assert (await tried(here, f"read {home}/program", first))["value"].startswith("installed")
        for path in (home / "program", home / "new", home / "conversations" / "new", theirs / "new"):
            assert (await tried(here, f"write {path}", first)).get("error"), path
    assert (theirs / "session").read_text() == "x"
    assert {path.stat().st_uid for path in (home, mine, theirs)} == {home.stat().st_uid}
    assert (home / "conversations").stat().st_uid == os.geteuid(), "the directory above them is the host's"


async def test_a_confined_run_is_not_led_elsewhere_by_a_link_in_its_plugins_home(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "of the host").touch()
    home = tmp_path / "runners" / "test" / "nasty"
    home.mkdir(parents=True)
    (home / "conversations").symlink_to(tmp_path / "secret")
    async with house(tmp_path, [plugin(program="prober.py")]) as here:
        placement = Placement(isolation="L1", directory=str(tmp_path / "one"), conversation="a1")
        assert (await tried(here, f"list {home}/conversations", placement))["value"] == ["a1"]
        (home / "conversations").unlink()
        (home / "conversations").symlink_to(tmp_path / "secret")
        assert (await tried(here, f"list {home}/conversations", placement))["error"] == "FileNotFoundError"
    assert [path.name for path in (tmp_path / "secret").iterdir()] == ["of the host"]


def known(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return (found.st_uid, found.st_mode, found.st_nlink, found.st_mtime_ns)


async def test_a_plugin_that_swaps_directories_for_links_all_the_time_leads_the_host_nowhere(tmp_path: Path) -> None:
    work, secret = tmp_path / "one", tmp_path / "secret"
    work.mkdir()
    secret.mkdir(mode=0o700)
    (secret / "key").write_text("of the host")
    before = [known(secret), known(secret / "key")]
    kept = tmp_path / "runners" / "test" / "nasty" / "conversations"
    async with house(tmp_path, [plugin(program="prober.py", isolation="L1")]) as here:
        for path in (kept / "a1", kept):
            await tried(here, f"swap {path}={secret}", Placement())
        seen: set[str] = set()
        for number in range(24):
            place = Placement(isolation="L1", directory=str(work), directory_is_ours=True, conversation="a1")
            news = await heard(here, f"list {kept / 'a1' if number % 2 else kept}", place)
            seen |= {name for result in news.results for name in result.data.get("value") or ()}
    assert "key" not in seen
    assert [known(secret), known(secret / "key")] == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives users away")
def test_two_that_are_first_confined_at_once_get_the_user_each_has(tmp_path: Path) -> None:
    homes = [tmp_path / "test" / f"plugin{number}" for number in range(4)]
    for home in homes:
        home.mkdir(parents=True)
        for number in range(200):
            (home / str(number)).touch()
    kept = Homes(tmp_path)
    with ThreadPoolExecutor(16) as pool:
        users = list(pool.map(lambda home: kept.own_user("test", home.name), homes * 4))
    assert users[:4] * 4 == users
    assert len(set(users)) == 4


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
