"""The echo runner, without a host."""

import tomllib
from pathlib import Path

import pytest

import paddock_runners.echo
from paddock_runners.echo import EchoRunner
from paddock_sdk.testing import pretend_host

pytestmark = pytest.mark.anyio
FOLDER = Path(paddock_runners.echo.__file__).parent


@pytest.mark.parametrize("text", ["hello", "hello big  world\n", " 前 后 ", "   ", ""])
async def test_it_says_back_exactly_what_it_heard_in_pieces_and_as_a_whole(text: str) -> None:
    async with pretend_host(EchoRunner()) as host:
        results = await host.run(text)
    assert "".join(results.deltas) == text
    assert results.text == text
    assert results.types[-2:] == ["message.completed", "run.completed"]


async def test_it_speaks_word_by_word() -> None:
    async with pretend_host(EchoRunner()) as host:
        results = await host.run("one two three")
    assert results.deltas == ["one ", "two ", "three"]


async def test_it_asks_nothing_of_the_host_and_for_nothing() -> None:
    async with pretend_host(EchoRunner()) as host:
        await host.run("hello")
        permissions = host.manifests[0].permissions.to_wire()
    assert host.calls == []
    assert {name: asked for name, asked in permissions.items() if asked} == {"history_scope": "conversation"}


def test_it_is_at_most_twenty_lines_and_its_plugin_file_starts_it() -> None:
    assert len((FOLDER / "__init__.py").read_text().splitlines()) <= 20
    plugin = tomllib.loads((FOLDER / "paddock-plugin.toml").read_text())["plugin"]
    assert plugin["command"] == ["python", "-m", "paddock_runners.echo"]
    assert (plugin["author"], plugin["name"]) == ("paddock", "echo")
