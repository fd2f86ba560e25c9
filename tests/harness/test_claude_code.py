"""What is particular to Claude Code: what it is allowed when it is started, and how it says that nobody logged in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness.fixtures import KINDS, Desk, a_desk
from paddock_sdk.protocol.results import RunCompleted, RunFailed

pytestmark = pytest.mark.anyio


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with a_desk(KINDS["claude-code"], tmp_path) as made:
        yield made


async def test_only_the_hosts_own_tools_and_those_the_owner_names_need_no_question(desk: Desk) -> None:
    own = {"name": "host", "url": "http://127.0.0.1:9/mcp/run", "token_env": "PADDOCK_RUN_TOKEN"}
    wiki = {"name": "wiki", "url": "http://127.0.0.1:9/mcp"}
    desk.resources, desk.secrets = {"mcp": [own, wiki]}, {"mcp_token": "t0ken"}
    await desk.run("hello", allow=["mcp__wiki__look_up"])
    argv = desk.starts[0]["argv"]
    assert argv[argv.index("--allowedTools") + 1] == "mcp__host,mcp__wiki__look_up"


async def test_its_question_to_the_person_is_shown_as_one_and_answered_with_the_next_words(desk: Desk) -> None:
    asked = await desk.run("drinks")
    assert isinstance(asked.terminal, RunCompleted)
    assert asked.text == "What will you drink?\n- Tea: green\n- Coffee: black"
    [shown] = [one.data for one in asked if one.type == "message.completed"]
    assert shown.ui_hints == {"kind": "choices", "items": ["Tea", "Coffee"]}
    assert asked.types.count("tool.call.started") == asked.types.count("tool.call.completed") == 1
    await desk.run("Tea, please")
    assert desk.prompts[1] == f"You asked the user:\n{asked.text}\n\nThe user answers:\n\nTea, please"
    await desk.run("hello")
    assert desk.prompts[2] == "hello", "it was answered"


async def test_where_nobody_can_be_asked_its_question_is_its_own_to_answer(desk: Desk) -> None:
    desk.more = {"trigger": {"type": "message.received", "source": "scheduler"}}
    assert (await desk.run("drinks")).text == "I choose myself. "


async def test_what_would_need_it_to_live_on_after_the_turn_is_kept_from_its_model(desk: Desk) -> None:
    await desk.run("hello", deny=["WebFetch"])
    argv = desk.starts[0]["argv"]
    denied = argv[argv.index("--disallowedTools") + 1].split(",")
    assert {"CronCreate", "ScheduleWakeup", "ListAgents", "SendMessage", "WebFetch"} <= set(denied)


async def test_without_a_login_it_is_said_what_to_set(desk: Desk) -> None:
    end = (await desk.run("login")).terminal
    assert isinstance(end, RunFailed)
    assert end.data.code == "harness.unauthorized"
    assert "Not logged in" in end.data.message
    assert "config.api_key" in end.data.message
