"""What is true of every harness runner, whatever its wire. The harness is a fake, the processes are real."""

import asyncio
import gc
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.fixtures import KINDS, Desk, Kind, a_desk, alive
from paddock.rules.access.permissions import BindingPolicy, allowance
from paddock_runners.harness.process import HURRIED
from paddock_runners.harness.wire import COOPERATIVE_SECONDS
from paddock_sdk import encoding
from paddock_sdk.protocol.frames import PluginInfo
from paddock_sdk.protocol.host_calls import HOST_CALLS
from paddock_sdk.protocol.results import RunCompleted, RunFailed
from paddock_sdk.testing import PretendRun
from patience import at_most

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_harness_that_asks_for_it_can_search_the_history(kind: str) -> None:
    manifest = KINDS[kind].runner().manifest(PluginInfo(author="paddock", name=kind))
    given = allowance(manifest, BindingPolicy(), frozenset(HOST_CALLS))
    assert {"history.page", "history.search"} <= given.actions


@pytest.fixture(params=sorted(KINDS))
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    async with a_desk(KINDS[request.param], tmp_path) as made:
        yield made


def failure(results: Any) -> tuple[str, str]:
    assert isinstance(results.terminal, RunFailed), results.types
    return results.terminal.data.code, results.terminal.data.message


async def test_words_are_streamed_and_said_once(desk: Desk) -> None:
    results = await desk.run("hello")
    assert results.deltas == ["hi ", "from ", "turn ", "1 "]
    assert [one.data.message.text for one in results if one.type == "message.completed"] == ["hi from turn 1 "]
    assert results.types[-1] == "run.completed"


async def test_calls_of_tools_have_a_beginning_and_an_end(desk: Desk) -> None:
    results = await desk.run("tool")
    calls = [one.data for one in results if one.type.startswith("tool.call")]
    assert [call.tool_name for call in calls] == [desk.kind.tool("Look")] * 4
    assert (calls[0].parameters, calls[1].result, calls[3].error) == ({"path": "."}, "a.txt", "no such file")
    said = [one.data.message.text for one in results if one.type == "message.completed"]
    assert said == ["Let me look. ", "One file. "]


async def test_the_next_turn_goes_on_with_the_session_in_a_new_process(desk: Desk) -> None:
    await desk.run("hello")
    kept = dict(desk.host.state["conversation"])
    results = await desk.run("hello")
    assert results.text == "hi from turn 2 "
    first, second = desk.starts
    assert (second["session"], second["pid"] == first["pid"]) == (kept["external.session_id"], False)
    assert kept["external.working_directory"] == str(desk.directory)


async def test_usage_is_what_this_turn_added(desk: Desk) -> None:
    for _ in range(2):
        results = await desk.run("hello")
        assert isinstance(results.terminal, RunCompleted)
        usage = results.terminal.data.usage
        assert usage is not None
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (15, 3, 18)
        if desk.kind.name != "codex":
            assert usage.to_wire()["cost_usd"] == 0.25


async def test_a_lost_session_is_said_and_begun_anew(desk: Desk) -> None:
    await desk.run("hello")
    for file in desk.directory.parent.rglob("fake-*"):
        file.unlink()
    results = await desk.run("hello")
    assert "no longer knows our earlier session" in results.text
    assert "hi from turn 1" in results.text
    assert (
        desk.host.state["conversation"]["external.session_id"] == next(desk.directory.parent.rglob("fake-*")).name[5:]
    )


async def test_a_session_of_another_directory_is_not_gone_on_with_and_that_is_said(desk: Desk, tmp_path: Path) -> None:
    await desk.run("hello")
    desk.directory = tmp_path / "elsewhere"
    desk.directory.mkdir()
    results = await desk.run("hello")
    assert "worked in another directory before; this is a new session" in results.text
    assert "hi from turn 1" in results.text
    assert isinstance(results.terminal, RunCompleted)
    assert results.terminal.data.usage is not None
    assert results.terminal.data.usage.total_tokens == 18, "nothing of the other session is counted off"
    assert desk.host.state["conversation"]["external.working_directory"] == str(desk.directory)
    assert (await desk.run("hello")).text == "hi from turn 2 "


async def test_the_session_is_kept_before_the_turn_ends(desk: Desk) -> None:
    run = await desk.start("hang")
    await run.until(lambda said: bool(said.deltas))
    assert desk.host.state["conversation"]["external.session_id"]
    await run.cancel()
    assert (await desk.run("hello")).text == "hi from turn 2 "


async def test_a_cancel_is_heard_and_the_process_is_gone(desk: Desk) -> None:
    run = await desk.start("hang")
    await run.until(lambda said: bool(said.deltas))
    began = time.monotonic()
    said = await run.cancel()
    assert time.monotonic() - began < at_most(1), "bench/ has the figure"
    assert not alive(desk.starts[0]["pid"])
    assert "run.completed" not in said.types


async def test_who_does_not_hear_a_cancel_is_killed_with_all_it_started(desk: Desk) -> None:
    run = await desk.start("deaf")
    await run.until(lambda said: bool(said.deltas))
    escaped = int((desk.directory / "escaped.pid").read_text())
    assert alive(escaped)
    began = time.monotonic()
    await run.cancel()
    assert time.monotonic() - began < at_most(2), "bench/ has the figure"
    assert not alive(desk.starts[0]["pid"])
    assert not alive(escaped)


async def test_all_that_a_cancel_waits_for_fits_into_the_time_a_host_gives_it() -> None:
    assert COOPERATIVE_SECONDS + sum(seconds for _, seconds in HURRIED) <= 2.0


async def test_an_exit_with_status_0_is_no_success(desk: Desk) -> None:
    code, words = failure(await desk.run("die"))
    assert code == "harness.ended"
    assert "something broke inside" in words


async def test_a_failure_is_told_in_the_harness_own_words(desk: Desk) -> None:
    results = await desk.run("fail")
    code, words = failure(results)
    assert code == "harness.failed"
    assert "the model is overloaded" in words
    assert results.text == ""


async def test_the_deadline_is_ours(desk: Desk) -> None:
    desk.seconds = 2.5
    assert failure(await desk.run("hang"))[0] == "deadline_exceeded"
    assert not alive(desk.starts[0]["pid"])


async def test_a_line_of_three_megabytes_is_read_and_shown_in_part(desk: Desk) -> None:
    results = await desk.run("big")
    shown = next(one.data.result for one in results if one.type == "tool.call.completed")
    assert shown.startswith("line\n")
    assert "3000000 characters in all" in shown
    assert results.text.strip().endswith("Read it.")


async def test_stray_prints_and_unknown_lines_are_left_alone(desk: Desk) -> None:
    assert (await desk.run("noise")).text == "clear "


# --- permission -------------------------------------------------------------------------------------------------------


async def test_a_person_is_asked_and_a_yes_allows_the_very_call_once(desk: Desk) -> None:
    asked = await desk.run("ask")
    assert "I need your approval for:" in asked.text
    assert isinstance(asked.terminal, RunCompleted)
    [interrupt] = asked.terminal.data.interrupts or []
    assert "rm x" in interrupt["message"]
    refused = next(one.data for one in asked if one.type == "tool.call.completed")
    assert "waits for the user's approval" in (refused.error or "")
    done = await desk.run("yes")
    assert "Removed." in done.text
    assert "The user approved this call" in desk.prompts[1]
    again = await desk.run("ask")
    assert "I need your approval" in again.text


async def test_anything_but_a_yes_is_a_no(desk: Desk) -> None:
    await desk.run("ask")
    results = await desk.run("what would that do?")
    assert "did not approve" in desk.prompts[1]
    assert "Removed." not in results.text
    assert desk.host.state["conversation"]["harness.waiting_for_approval"] == []


@pytest.mark.parametrize(
    ("settings", "source", "said"),
    [
        ({"on_permission": "deny"}, "api", "Then not. "),
        ({"on_permission": "allow"}, "api", "Removed. "),
        ({"allow": ["Rem*", "shell"]}, "api", "Removed. "),
        ({"on_permission": "allow", "deny": ["Remove", "shell"]}, "api", "Then not. "),
        ({"on_permission": "ask"}, "scheduler", "Then not. "),
    ],
)
async def test_settings_answer_for_the_person(desk: Desk, settings: Any, source: str, said: str) -> None:
    desk.more = {"trigger": {"type": "message.received", "source": source}}
    results = await desk.run("ask", **settings)
    assert results.text == said
    assert results.types[-1] == "run.completed"
    assert results.types.count("tool.call.started") == results.types.count("tool.call.completed") == 1


# --- what it gets to see ----------------------------------------------------------------------------------------------


async def test_it_sees_its_token_and_nothing_of_ours(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "of the runner")
    monkeypatch.setenv("WANTED", "by name")
    desk.resources = {"mcp": [{"name": "host", "url": "http://127.0.0.1:9/mcp/run", "token_env": "PADDOCK_MCP_TOKEN"}]}
    desk.secrets = {"mcp_token": "t0ken-of-this-run"}
    await desk.run("hello", env=["WANTED"])
    [start] = desk.starts
    assert start["env"]["PADDOCK_MCP_TOKEN"] == "t0ken-of-this-run"
    assert start["env"]["WANTED"] == "by name"
    assert "SOME_SECRET" not in start["env"]
    assert "t0ken" not in " ".join(start["argv"])
    files = [path for path in desk.directory.parent.rglob("*") if path.is_file() and path.name != "started.jsonl"]
    assert not [path for path in files if b"t0ken" in path.read_bytes()]


async def test_context_files_are_kept_or_removed_as_the_owner_wants(desk: Desk) -> None:
    await desk.run("hello")
    assert (desk.directory / "agent-context.json").exists()
    await desk.run("hello", projection="remove")
    assert not (desk.directory / "agent-context.json").exists()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"on_permission": "maybe"}, "config.on_permission must be one of: ask, deny, allow"),
        ({"args": "--x"}, "config.args must be a list of texts"),
        ({"env": ["NOT_THERE"]}, "config.env names NOT_THERE, which this runner does not have"),
        ({"home": "relative"}, "config.home must be the absolute path"),
    ],
)
async def test_a_wrong_setting_is_one_sentence(desk: Desk, settings: Any, says: str) -> None:
    code, words = failure(await desk.run("hello", **settings))
    assert code == "agent.config_invalid"
    assert says in words


async def test_a_program_that_is_not_there_is_named_with_what_to_do(desk: Desk) -> None:
    missing = ["no-such-program"] if desk.kind.name == "acp" else "no-such-program"
    code, words = failure(await desk.run("hello", command=missing))
    assert code == "harness.not_installed"
    assert "paddock harness doctor" in words


async def test_one_of_another_version_is_said_in_its_own_words_with_where_to_look(desk: Desk, tmp_path: Path) -> None:
    program = tmp_path / "old-one"
    program.write_text('#!/bin/sh\necho "error: unrecognized option" >&2\nexit 2\n')
    program.chmod(0o755)
    code, words = failure(await desk.run("hello", command=[str(program)] if desk.kind.name == "acp" else str(program)))
    assert code == "harness.not_started"
    assert "error: unrecognized option" in words
    assert "`paddock harness doctor`" in words


async def test_a_start_that_fails_while_the_host_is_slow_leaves_nothing_behind_for_the_log(tmp_path: Path) -> None:
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, about: complaints.append(about["message"]))
    program = tmp_path / "none"
    program.write_text("#!/bin/sh\nexit 2\n")
    program.chmod(0o755)
    calls = {"state.set": lambda _: asyncio.get_running_loop().create_future()}
    async with a_desk(KINDS["claude-code"], tmp_path, calls=calls) as desk:
        assert failure(await desk.run("hello", command=str(program)))[0] == "harness.not_started"
    gc.collect()
    assert complaints == []


@pytest.mark.parametrize("name", ["claude-code", "codex"])
async def test_a_further_server_that_is_not_reached_is_said_until_it_is_known(name: str, tmp_path: Path) -> None:
    async with a_desk(KINDS[name], tmp_path) as desk:
        first = await desk.run("hello", args=["--dead=wiki"])
        assert first.text.startswith("hi from turn 1 ")
        assert "could not reach the MCP server wiki" in first.text
        assert isinstance(first.terminal, RunCompleted)
        assert (await desk.run("hello", args=["--dead=wiki"])).text == "hi from turn 2 "
        assert (await desk.run("hello")).text == "hi from turn 3 "
        assert "could not reach" in (await desk.run("hello", args=["--dead=wiki"])).text


@asynccontextmanager
async def words_on_their_way(kind: Kind, place: Path, text: str) -> AsyncIterator[PretendRun]:
    """A run that has begun to speak, and further words that wait for it."""
    item = {"event": {"event_id": "e", "event_type": "message.received", "source": "api"}, "input": {"text": "hello"}}
    waits = [[{**item, "claimed_run_id": "r", "runner_id": "x"}]]
    calls = {"steering.pull": lambda _: {"items": waits.pop() if waits else []}}
    async with a_desk(kind, place, calls=calls) as desk:
        run = await desk.start(text)
        await run.until(lambda said: bool(said.deltas))
        desk.host.send(encoding.notification("steering_available", {"run_id": run.run_id, "waiting": 1}))
        yield run


@pytest.mark.parametrize("name", ["claude-code", "codex"])
async def test_words_in_the_middle_of_a_turn_are_taken_in(name: str, tmp_path: Path) -> None:
    async with words_on_their_way(KINDS[name], tmp_path, "steer") as run:
        assert "You added: hello" in (await run.results()).text


@pytest.mark.parametrize("name", ["claude-code", "codex"])
async def test_words_that_come_too_late_for_the_turn_begin_another_in_the_same_run(name: str, tmp_path: Path) -> None:
    async with words_on_their_way(KINDS[name], tmp_path, "late") as run:
        results = await run.results()
    assert [one.data.message.text for one in results if one.type == "message.completed"] == [
        "Before. ",
        "hi from turn 2 ",
    ]
    assert isinstance(results.terminal, RunCompleted)
    assert results.terminal.data.usage is not None
    assert results.terminal.data.usage.total_tokens == 36, "both turns are counted"


async def test_an_input_without_words_is_told_as_what_it_is(desk: Desk) -> None:
    desk.more = {"event": {"event_id": "e", "event_type": "calendar.due", "source": "x", "data": {"title": "tea"}}}
    await desk.run("")
    assert desk.prompts == ['This happened: calendar.due\n{"title": "tea"}']
    file = {"artifact_id": "a1", "name": "plan.pdf", "mime_type": "application/pdf"}
    desk.more = {"input": {"text": "read this", "attachments": [file]}}
    await desk.run("read this")
    assert "- plan.pdf (application/pdf, id a1), not laid out: there is no such artifact" in desk.prompts[1]


SHOWN = {
    "claude-code": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "UE5H"}},
    "codex": {"type": "localImage", "path": "{path}"},
    "acp": {"type": "image", "mimeType": "image/png", "data": "UE5H"},
}


@pytest.mark.parametrize("kind", sorted(KINDS))
async def test_files_are_laid_out_and_pictures_are_shown_in_the_harness_own_form(kind: str, tmp_path: Path) -> None:
    files = {"a1": ("../.ssh/plan.pdf", "application/pdf"), "a2": ("tea.png", "image/png")}
    refs = [{"artifact_id": key, "name": name, "mime_type": mime} for key, (name, mime) in files.items()]
    async with a_desk(KINDS[kind], tmp_path, artifacts={"a1": b"%PDF", "a2": b"PNG"}) as desk:
        desk.more = {"input": {"text": "hello there", "attachments": refs}}
        await desk.run("hello there")
        plan, picture = sorted(desk.directory.glob(".paddock/attachments/*/*"))
        assert (plan.name, plan.read_bytes()) == ("1-plan.pdf", b"%PDF")
        assert (picture.name, picture.read_bytes()) == ("2-tea.png", b"PNG")
        for file, key in ((plan, "a1"), (picture, "a2")):
            assert f"- {file.relative_to(desk.directory)} ({files[key][1]}, id {key})" in desk.prompts[0]
        expected = {name: str(picture) if value == "{path}" else value for name, value in SHOWN[kind].items()}
        assert json.loads((desk.directory / "pictures.jsonl").read_text()) == expected


async def test_attached_files_are_taken_away_with_the_other_files_when_that_is_the_policy(tmp_path: Path) -> None:
    async with a_desk(KINDS["codex"], tmp_path, artifacts={"a1": b"PNG"}) as desk:
        desk.more = {"input": {"text": "hello", "attachments": [{"artifact_id": "a1", "mime_type": "image/png"}]}}
        await desk.run("hello", projection="remove")
        assert "attachments/" in desk.prompts[0]
        assert not (desk.directory / ".paddock").exists()


async def test_two_conversations_at_once_have_nothing_in_common(tmp_path: Path) -> None:
    kind = KINDS["claude-code"]
    async with a_desk(kind, tmp_path / "one") as one, a_desk(kind, tmp_path / "two") as two:
        os.environ["HOME"] = str(tmp_path)
        await asyncio.gather(one.run("hello"), two.run("hello"))
        homes = {start["env"]["HOME"] for desk in (one, two) for start in desk.starts}
        assert len(homes) == 2
