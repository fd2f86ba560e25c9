"""Plugins that come, change and go under a gateway: where runs go, how long old ones may stay, what is left of them."""

import asyncio
from pathlib import Path

import anyio
import pytest

from paddock.rules.errors import HostError
from paddock.runners.installed.catalog import Catalog
from paddock.runners.installed.plugins import Plugin
from runners.house import eventually, house, marked, plugin

pytestmark = pytest.mark.anyio

RUNNER = "plugin:test/nasty/default"


def only(*plugins: Plugin) -> Catalog:
    return Catalog({each.id: each for each in plugins})


async def test_a_plugin_that_stayed_as_it_was_keeps_its_process(tmp_path: Path) -> None:
    async with house(tmp_path) as there:
        await (await there.run("echo"))[0].over()
        before, names = marked(there.mark), there.gateway.names("w", installed=True)
        assert there.gateway.replace_plugins(only(plugin())) == {}
        assert there.gateway.names("w", installed=True) is names
        assert marked(there.mark) == before


async def test_names_are_new_when_a_plugin_was_replaced_so_that_nothing_old_is_believed(tmp_path: Path) -> None:
    async with house(tmp_path) as there:
        all_names, attached = (there.gateway.names("w", installed=which) for which in (True, False))
        manifest = await there.gateway.manifest(RUNNER)
        assert there.gateway.replace_plugins(only(plugin(version="2"))) == {"test/nasty": "replaced 0.1 by 2"}
        assert there.gateway.names("w", installed=True) is not all_names
        assert there.gateway.names("w", installed=False) is not attached
        assert await there.gateway.manifest(RUNNER) is not manifest


async def test_a_run_that_does_not_end_in_time_is_told_so_and_nothing_of_it_stays(tmp_path: Path) -> None:
    async with house(tmp_path, retire_seconds=0.2) as there:
        news, _ = await there.run("hang")
        await news.until(lambda heard: heard.acks == 1)
        assert there.gateway.replace_plugins(only()) == {"test/nasty": "removed 0.1"}
        await news.over(20)
        assert news.code == "runner.replaced"
        await eventually(lambda: marked(there.mark) == [], 20)
        with pytest.raises(HostError, match="there is no runner"):
            await there.gateway.manifest(RUNNER)


async def test_a_plugin_replaced_while_it_is_asked_for_answers_as_the_new_one(tmp_path: Path) -> None:
    async with house(tmp_path) as there:
        asked = asyncio.ensure_future(there.run("echo"))
        await asyncio.sleep(0)
        there.gateway.replace_plugins(only(plugin(version="2")))
        with anyio.fail_after(30):
            news, _ = await asked
            await news.over(30)
        assert news.losses == []


async def test_a_gateway_that_stops_ends_those_that_were_to_finish_too(tmp_path: Path) -> None:
    async with house(tmp_path) as there:
        news, _ = await there.run("hang")
        await news.until(lambda heard: heard.acks == 1)
        there.gateway.replace_plugins(only(plugin(version="2")))
        with anyio.fail_after(20):
            await there.gateway.stop()
        assert news.code == "host_shutdown"
