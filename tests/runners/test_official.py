"""The real runners, started as they are shipped, at both levels of isolation."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from needs import not_run
from paddock.runners.installed.catalog import Catalog
from paddock.runners.installed.plugins import Level, Plugin, load_plugin
from paddock.runners.processes.isolation import active_level
from runners.house import house

pytestmark = pytest.mark.anyio
NODE_EXAMPLE = Path(__file__).parents[2] / "examples" / "node-runner"


@pytest.fixture(params=["L0", "L1"])
def level(request: pytest.FixtureRequest) -> Level:
    if request.param == "L1" and active_level().level != "L1":
        not_run(f"real runners at isolation L1 ({active_level().why})")
    return request.param


async def introduced(data: Path, plugin: Plugin, level: Level) -> str:
    async with house(data, [replace(plugin, isolation=level)]) as here:
        [status] = await here.gateway.list_runners()
        assert (status.state, status.isolation, status.detail) == ("ready", level, "")
        return status.runner_id


async def test_echo_starts_and_introduces_itself(tmp_path: Path, level: Level) -> None:
    echo = Catalog.load(installed=tmp_path / "plugins").plugins["paddock/echo"]
    assert await introduced(tmp_path, echo, level) == "plugin:paddock/echo/default"


async def test_a_runner_in_another_language_starts_and_introduces_itself(tmp_path: Path, level: Level) -> None:
    if shutil.which("node") is None:
        not_run("the runner in JavaScript (node is not installed)")
    assert (await introduced(tmp_path, load_plugin(NODE_EXAMPLE), level)).startswith("plugin:examples/")
