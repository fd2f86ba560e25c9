"""What is particular to the Agent Client Protocol: presets, loading, and agents that say little when they ask."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from harness.fixtures import FAKES, KINDS, Desk, a_desk
from paddock_runners.acp import Acp
from paddock_runners.acp.gemini import set_aside
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


@pytest.mark.parametrize(
    ("titled", "settings", "says"),
    [
        ("other:add (host MCP Server)", {"on_permission": "deny"}, "Removed. "),
        ("execute:add (host MCP Server)", {"on_permission": "deny"}, "Then not. "),
        ("execute:mcp_host_add", {"on_permission": "deny"}, "Then not. "),
        ("other:erase (wiki MCP Server)", {"on_permission": "deny"}, "Then not. "),
        ("other:erase (wiki MCP Server)", {"on_permission": "deny", "allow": ["mcp__wiki__erase"]}, "Removed. "),
        ("other:erase (wiki MCP Server)", {"on_permission": "allow", "deny": ["mcp__wiki__*"]}, "Then not. "),
    ],
)
async def test_tools_of_servers_are_known_by_name_and_commands_are_never_taken_for_one(
    desk: Desk, titled: str, settings: Any, says: str
) -> None:
    assert (await desk.run("ask", command=[ACP, f"--titled={titled}"], **settings)).text == says


async def test_opencode_is_told_to_ask_about_the_tools_of_further_servers(desk: Desk) -> None:
    desk.resources = {"mcp": [{"name": "wiki", "url": "http://127.0.0.1:9/mcp"}]}
    await desk.run("hello", preset="opencode", api_key="s3cret", model="m")
    [file] = desk.directory.parent.rglob("opencode.json")
    asked = {"edit": "ask", "bash": "ask", "webfetch": "ask", "wiki_*": "ask"}
    assert json.loads(file.read_text())["permission"] == asked


async def test_one_that_takes_no_instructions_is_told_them_once_in_a_session_and_again_when_they_changed(
    desk: Desk,
) -> None:
    for instructions in ("Be brief.", "Be brief.", "Be long.", "Be long."):
        await desk.run("hello", instructions=instructions)
    assert [page.rpartition("\n")[2] for page in desk.pages] == ["Be brief.", "", "Be long.", ""]
    assert desk.prompts == ["hello"] * 4
    for file in desk.directory.parent.rglob("fake-*"):
        file.unlink()
    assert "no longer knows our earlier session" in (await desk.run("hello", instructions="Be long.")).text
    assert desk.pages[-1].endswith("Be long."), "a new session knows nothing"


@pytest.mark.parametrize("has_its_own", [False, True])
async def test_gemini_reads_its_instructions_by_itself_unless_the_user_has_a_file_there(
    desk: Desk, has_its_own: bool
) -> None:
    if has_its_own:
        (desk.directory / "GEMINI.md").write_text("mine")
    await desk.run("hello", preset="gemini", instructions="Be brief.")
    assert [page.endswith("Be brief.") for page in desk.pages] == [has_its_own]
    assert (desk.directory / "GEMINI.md").read_text() == ("mine" if has_its_own else "@CONTEXT.md\n")


def test_a_session_of_gemini_is_not_overwritten_by_a_turn_in_the_same_minute(tmp_path: Path) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "work" / "chats"
    chats.mkdir(parents=True)
    for name, text in {"02-0a1b2c3d": "all of it", "03-0a1b2c3d": "stub", "02-99999999": "another's"}.items():
        (chats / f"session-2026-11-17T19-{name}.jsonl").write_text(text)
    aside = chats / "session-2000-01-01T00-00-0a1b2c3d.jsonl"
    for _ in range(2):
        set_aside(tmp_path, "0a1b2c3d-ede1-480e-8e32-6c1fd07c88f7")
        assert aside.read_text() == "all of it"
    set_aside(tmp_path, "../../*")
    assert len(list(chats.iterdir())) == 2


async def test_one_that_wants_a_login_before_it_goes_on_has_not_lost_its_session(desk: Desk) -> None:
    await desk.run("hello")
    out = await desk.run("hello", command=[ACP, "--logged-out"])
    assert isinstance(out.terminal, RunFailed)
    assert out.terminal.data.code == "harness.unauthorized"
    assert (await desk.run("hello")).text == "hi from turn 2 "


async def test_it_is_called_by_its_name(desk: Desk) -> None:
    results = await desk.run("fail", preset="kimi-code")
    assert isinstance(results.terminal, RunFailed)
    assert results.terminal.data.message.startswith("Kimi Code: ")


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
