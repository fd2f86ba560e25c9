"""The Node example over real stdio: the protocol is enough to write a runner in another language."""

import tomllib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from needs import needs
from paddock_sdk import HostCallError
from paddock_sdk.protocol.frames import AgentAPIError
from paddock_sdk.testing import PretendHost, pretend_host_for

pytestmark = [pytest.mark.anyio, pytest.mark.spec("wire/any-language")]
FOLDER = Path(__file__).parents[2] / "examples" / "node-runner"


@pytest.fixture(autouse=True)
def node() -> None:
    needs("node", "the runner in another language")


@asynccontextmanager
async def node_runner(**kept: Any) -> AsyncGenerator[PretendHost]:
    command = tomllib.loads((FOLDER / "paddock-plugin.toml").read_text())["plugin"]["command"]
    async with pretend_host_for(command, cwd=FOLDER, **kept) as host:
        yield host


async def test_it_counts_turns_in_state_and_quotes_the_history() -> None:
    async with node_runner(history=[("user", "早上好"), ("assistant", "hi")]) as host:
        first = await host.run("hello big world")
        second = await host.run("again")
        assert host.state["conversation"] == {"turns": 2}
    assert first.text == "hello big world (turn 1, before that: 早上好)"
    assert "".join(first.deltas) == first.text
    assert second.text == "again (turn 2, before that: hello big world)"
    assert first.types[-1] == "run.completed"


async def test_its_plugin_file_asks_for_what_its_manifest_asks_for() -> None:
    async with node_runner() as host:
        (manifest,) = host.manifests
    ceiling = tomllib.loads((FOLDER / "paddock-plugin.toml").read_text())["permissions"]
    asked = {name: value for name, value in manifest.permissions.to_wire().items() if value and name != "history_scope"}
    assert asked == ceiling


async def test_it_obeys_the_credit_of_a_long_answer() -> None:
    async with node_runner() as host:
        results = await host.run("word " * 2000)
    assert len(results.deltas) == 2001


async def never(_params: Any) -> None:
    await anyio.sleep_forever()


async def test_a_cancel_is_answered_when_the_run_has_ended() -> None:
    async with node_runner(calls={"history.page": never}) as host:
        run = await host.start("hello")
        await host.until_called("history.page")
        assert await run.cancel() == []


def refuse(_params: Any) -> None:
    raise HostCallError("state.get", AgentAPIError(code="rate_limited", message="slow down", retryable=True))


async def test_a_refused_call_fails_the_run_with_the_hosts_words() -> None:
    async with node_runner(calls={"state.get": refuse}) as host:
        results = await host.run("hello")
    assert results.terminal.to_wire()["data"] == {"code": "runner.error", "message": "slow down", "retryable": False}
