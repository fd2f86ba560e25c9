"""What is particular to the adapters of Claude Code and Codex: how they tell calls, failures and refusals."""

import json
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from harness.fixtures import FAKES, KINDS, Desk, a_desk
from paddock_runners.claude_code import NEVER
from paddock_sdk.protocol.results import RunFailed
from paddock_sdk.testing import RunResults

pytestmark = pytest.mark.anyio


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with a_desk(KINDS["acp"], tmp_path) as made:
        made.config = {"command": [str(FAKES / "adapters.py")], "on_permission": "deny"}
        yield made


def told(results: RunResults, kind: str) -> Any:
    return next(one.data for one in results if one.type == f"tool.call.{kind}")


def failure(results: RunResults) -> tuple[str, str]:
    assert isinstance(results.terminal, RunFailed)
    return results.terminal.data.code, results.terminal.data.message


async def test_a_call_is_told_with_all_its_arguments_also_when_they_come_in_pieces(desk: Desk) -> None:
    results = await desk.run("pieces")
    assert told(results, "started").parameters == {"file_path": "a.txt", "content": "hello"}
    assert told(results, "completed").result == "written", "as the tool said it, not as it is drawn"


async def test_what_a_command_printed_is_heard_and_its_words_are_not_its_name(desk: Desk) -> None:
    results = await desk.run("command")
    assert told(results, "started").tool_name == "execute"
    assert told(results, "completed").result == "a.txt\nb.txt\n"


async def test_the_hosts_own_tools_are_known_by_their_server(desk: Desk) -> None:
    own = told(await desk.run("own"), "completed")
    assert (own.tool_name, own.result) == ("mcp.host.keep", "kept")
    assert "do not allow it" in told(await desk.run("foreign"), "completed").error


@pytest.mark.parametrize("words", ["disguised", "tail"])
async def test_a_command_written_like_a_tool_of_the_host_is_refused_and_the_end_of_the_turn_explained(
    desk: Desk, words: str
) -> None:
    results = await desk.run(words)
    assert (desk.directory / "answered.txt").read_text() == "cancel"
    code, why = failure(results)
    assert (code, "not allowed to do what it asked for" in why) == ("harness.refused", True)


async def test_a_turn_that_failed_is_no_success_though_it_ends_like_one(desk: Desk) -> None:
    results = await desk.run("trouble")
    assert failure(results) == ("harness.failed", "adapters.py: The provider is down.")
    assert results.text == ""


async def test_a_key_that_is_refused_in_the_middle_is_said_as_such(desk: Desk) -> None:
    code, why = failure(await desk.run("login"))
    assert (code, "config.api_key" in why) == ("harness.unauthorized", True)


async def test_a_question_that_comes_after_a_cancel_is_answered_so_that_it_can_stop(desk: Desk) -> None:
    run = await desk.start("late", on_permission="allow")
    await run.until(lambda results: bool(results.deltas))
    await run.cancel()
    assert (desk.directory / "answered.txt").read_text() == "cancelled"


async def test_notices_stay_out_of_the_models_words_but_errors_are_told(desk: Desk) -> None:
    assert (await desk.run("noticed")).text == "Clear words.(Hook failed: no such file)\n\n"
    offered = json.loads((desk.directory / "client.json").read_text())
    assert offered["clientCapabilities"]["session"] == {"notices": {}}


async def test_a_line_nobody_can_read_ends_the_turn_instead_of_letting_it_wait(desk: Desk) -> None:
    code, why = failure(await desk.run("unreadable"))
    assert (code, "cannot be read" in why) == ("harness.ended", True)


async def test_instructions_are_given_in_the_protocols_own_word_where_the_agent_has_it(desk: Desk) -> None:
    await desk.run("command", preset="claude", deny=["Bash"])
    opened = json.loads((desk.directory / "opened.json").read_text())
    assert opened["systemPrompt"]["mode"] == "append"
    assert "What this session is" in opened["systemPrompt"]["content"][0]["text"]
    options = opened["_meta"]["claudeCode"]["options"]
    assert options["disallowedTools"] == [*NEVER, "Bash"]
    assert (options["settingSources"], options["strictMcpConfig"]) == (["project"], True)


async def test_codex_finds_its_provider_in_a_file_that_names_the_key_and_does_not_hold_it(desk: Desk) -> None:
    await desk.run("command", preset="codex", api_key="s3cret", base_url="http://127.0.0.1:9/v1")
    [file] = desk.directory.parent.rglob(".codex/config.toml")
    written = tomllib.loads(file.read_text())
    assert written["model_providers"][written["model_provider"]]["base_url"] == "http://127.0.0.1:9/v1"
    assert "model" not in written, "its own choice when none is named"
    assert "s3cret" not in file.read_text()


async def test_a_model_or_mode_it_does_not_have_is_said_with_those_it_has(desk: Desk) -> None:
    code, why = failure(await desk.run("command", model="mars"))
    assert (code, "config.model is 'mars'" in why) == ("agent.config_invalid", True)
    assert "it offers sol, luna" in why
    assert "config.mode is 'fast'" in failure(await desk.run("command", mode="fast"))[1]
