"""What is particular to the Agent Client Protocol: presets, loading, and agents that say little when they ask."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness.fixtures import FAKES, KINDS, Desk, a_desk
from paddock_runners.acp import Acp
from paddock_runners.acp.presets import PRESETS
from paddock_runners.harness.config import ConfigError
from paddock_sdk.protocol.results import RunFailed

pytestmark = pytest.mark.anyio
ACP = str(FAKES / "acp.py")


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with a_desk(KINDS["acp"], tmp_path) as made:
        yield made


async def test_a_session_that_can_only_be_loaded_is_not_told_again(desk: Desk) -> None:
    await desk.run("hello", command=[ACP, "--load"])
    results = await desk.run("hello", command=[ACP, "--load"])
    assert results.text == "hi from turn 2 "
    assert "replayed" not in "".join(results.deltas)


async def test_a_yes_is_for_the_call_that_was_shown_even_if_only_words_describe_it(desk: Desk) -> None:
    terse = {"command": [ACP, "--terse"]}
    assert "May I run rm x" in (await desk.run("ask", **terse)).text
    assert "Removed." in (await desk.run("yes", **terse)).text


async def test_an_agent_that_does_not_say_what_it_would_do_is_refused(desk: Desk) -> None:
    results = await desk.run("ask", command=[ACP, "--vague"])
    assert results.text == "Then not. "
    refused = next(one.data for one in results if one.type == "tool.call.completed")
    assert "does not say what exactly" in (refused.error or "")


async def test_the_hosts_own_tools_need_no_permission_besides_the_hosts(desk: Desk) -> None:
    results = await desk.run("ask", command=[ACP, "--own"], on_permission="deny")
    assert results.text == "Removed. "


async def test_without_a_command_or_a_preset_there_is_nothing_to_start(desk: Desk) -> None:
    results = await desk.run("hello", command=[])
    assert isinstance(results.terminal, RunFailed)
    assert "config.command must be the command line of an ACP agent" in results.terminal.data.message


async def test_a_preset_can_be_started_by_another_command_and_gets_its_key_in_its_variable(desk: Desk) -> None:
    await desk.run("hello", preset="claude", api_key="s3cret", base_url="http://127.0.0.1:9")
    [start] = desk.starts
    assert (start["env"]["ANTHROPIC_API_KEY"], start["env"]["ENABLE_TOOL_SEARCH"]) == ("s3cret", "false")
    assert start["env"]["CLAUDE_CONFIG_DIR"] == f"{start['env']['HOME']}/.claude"


async def test_settings_that_must_be_in_a_file_name_the_key_and_do_not_hold_it(desk: Desk) -> None:
    await desk.run("hello", preset="kimi-code", api_key="s3cret", base_url="http://127.0.0.1:9/v1", model="k")
    [start] = desk.starts
    written = (Path(start["env"]["KIMI_CODE_HOME"]) / "config.toml").read_text()
    assert start["env"]["PADDOCK_KIMI_API_KEY"] == "s3cret"
    assert 'api_key_env = "PADDOCK_KIMI_API_KEY"' in written
    assert "s3cret" not in written
    results = await desk.run("hello", preset="kimi-code", api_key="s3cret", model='k"\n[evil]')
    assert isinstance(results.terminal, RunFailed)
    assert "must be plain text" in results.terminal.data.message


async def test_skills_are_also_seen_by_one_that_looks_for_them_at_home(desk: Desk) -> None:
    (desk.directory / ".agents" / "skills" / "tea").mkdir(parents=True)
    for _ in range(2):
        await desk.run("hello", preset="kimi-code")
    assert (Path(desk.starts[-1]["env"]["HOME"]) / ".agents" / "skills" / "tea").is_dir()


def test_every_preset_can_be_chosen_and_no_other() -> None:
    chosen = {name: Acp().settings({"preset": name}).line for name in PRESETS}
    assert chosen["kimi-code"] == ("kimi", "acp")
    assert chosen["gemini"] == ("gemini", "--acp")
    assert len(chosen) == 5
    with pytest.raises(ConfigError, match=r"config.preset must be one of: custom, kimi-code"):
        Acp().settings({"preset": "emacs"})
