"""What is particular to Codex: how it asks, and what `deny` keeps from it although it would not ask."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from harness.fixtures import KINDS, Desk, a_desk
from paddock_sdk.protocol.results import RunFailed
from paddock_sdk.testing import RunResults

pytestmark = pytest.mark.anyio
WIKI = {"name": "wiki", "url": "http://127.0.0.1:9/mcp"}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with a_desk(KINDS["codex"], tmp_path) as made:
        made.resources = {"mcp": [WIKI]}
        yield made


def opened(desk: Desk) -> Any:
    return json.loads((desk.directory / "opened.json").read_text())


def calls(results: RunResults) -> list[str]:
    return [one.data.tool_name for one in results if one.type == "tool.call.started"]


async def test_a_yes_to_a_tool_of_a_server_is_for_the_arguments_that_were_shown(desk: Desk) -> None:
    asked = await desk.run("ask", args=["--server=tea"])
    assert '- mcp__wiki__look_up {"word":"tea"}' in asked.text
    assert calls(asked) == ["mcp__wiki__look_up"], "one call is told once"
    assert "I need your approval" in (await desk.run("yes", args=["--server=coffee"])).text
    done = await desk.run("yes", args=["--server=coffee"])
    assert "Removed." in done.text


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"deny": ["mcp__wiki__look_up"], "on_permission": "allow"}, "Then not. "),
        ({"deny": ["mcp__wiki__*"], "on_permission": "allow"}, "Then not. "),
        ({"allow": ["mcp__wiki__look_up"], "on_permission": "deny"}, "Removed. "),
        ({"allow": ["mcp__wiki__erase"], "on_permission": "deny"}, "Then not. "),
    ],
)
async def test_tools_of_servers_are_allowed_and_denied_by_their_names(desk: Desk, settings: Any, says: str) -> None:
    assert (await desk.run("ask", args=["--server=tea"], **settings)).text == says


async def test_it_asks_before_every_call_of_a_further_server_and_never_before_the_hosts_own(desk: Desk) -> None:
    own = {"name": "host", "url": "http://127.0.0.1:9/mcp/run", "token_env": "PADDOCK_RUN_TOKEN"}
    desk.resources, desk.secrets = {"mcp": [own, WIKI]}, {"mcp_token": "t0ken"}
    await desk.run("hello")
    servers = opened(desk)["config"]["mcp_servers"]
    assert {name: one["default_tools_approval_mode"] for name, one in servers.items()} == {
        "host": "approve",
        "wiki": "prompt",
    }


async def test_a_server_that_asks_something_of_a_person_is_declined(desk: Desk) -> None:
    await desk.run("elicit", on_permission="allow")
    assert (desk.directory / "elicited.txt").read_text() == "decline"


async def test_what_is_denied_and_needs_no_question_is_not_offered_to_its_model(desk: Desk) -> None:
    await desk.run("hello")
    assert not {"features", "web_search"} & set(opened(desk)["config"])
    await desk.run("hello", deny=["shell", "web_*"])
    config = opened(desk)["config"]
    assert (config["features"], config["web_search"]) == ({"shell_tool": False, "unified_exec": False}, "disabled")


async def test_patches_can_be_denied_only_where_it_must_ask_for_them(desk: Desk) -> None:
    results = await desk.run("hello", deny=["apply_*"])
    assert isinstance(results.terminal, RunFailed)
    assert results.terminal.data.code == "agent.config_invalid"
    assert "config.sandbox: read-only" in results.terminal.data.message
    assert (await desk.run("hello", deny=["apply_*"], sandbox="read-only")).text == "hi from turn 1 "


async def test_a_provider_without_a_key_is_asked_without_one(desk: Desk) -> None:
    await desk.run("hello", base_url="http://127.0.0.1:9/v1")
    [start] = desk.starts
    assert "http://127.0.0.1:9/v1" in " ".join(start["argv"])
    assert "env_key" not in " ".join(start["argv"]), "it would refuse to begin without that variable"
    await desk.run("hello", base_url="http://127.0.0.1:9/v1", api_key="k3y")
    assert 'env_key = "PADDOCK_CODEX_API_KEY"' in " ".join(desk.starts[1]["argv"])
    assert desk.starts[1]["env"]["PADDOCK_CODEX_API_KEY"] == "k3y"


async def test_a_provider_that_cannot_be_reached_is_said_instead_of_waiting_for_the_deadline(desk: Desk) -> None:
    assert (await desk.run("offline 3")).text == "you said offline 3 ", "it came back"
    gone = (await desk.run("offline 4")).terminal
    assert isinstance(gone, RunFailed)
    assert (gone.data.code, gone.data.retryable) == ("harness.failed", True)
    assert "its model's provider cannot be reached: Connection failed" in gone.data.message
