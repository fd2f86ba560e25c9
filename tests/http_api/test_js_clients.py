"""The official JavaScript clients, 1.0 and the last 0.x, against our door: what they accept is what counts."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from host.scripted import AtRunner
from http_api.doors import Doors, open_doors
from http_api.ordering import Ordering
from npm_packages import installed
from walk.hosts import HostProcess

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]
HERE = Path(__file__).parent / "js"
CLIENTS = pytest.mark.parametrize("client", ["1", "0"], ids=["client-1.0.0", "client-0.0.59"])


@pytest.fixture(scope="session")
def driver() -> Path:
    """The driver with the clients installed beside it, once per version of the lock file."""
    files = [HERE / name for name in ("package.json", "package-lock.json", "drive.mjs")]
    place = installed("ag-ui-clients", files, what="the official AG-UI clients")
    return place / "drive.mjs"


class Seen:
    """What the client made of it."""

    def __init__(self, output: bytes) -> None:
        lines: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines()]
        self.events = [line["event"] for line in lines if "event" in line]
        self.ended = [line["ended"] for line in lines if "ended" in line]
        self.messages: list[dict[str, Any]] = lines[-1]["messages"]
        ordering = Ordering()
        for event in self.events:
            ordering.take(event)

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]


async def drive(driver: Path, url: str, client: str, *steps: str | dict[str, Any], thread: str = "main") -> Seen:
    texts = [step if isinstance(step, str) else json.dumps(step) for step in steps]
    process = await asyncio.create_subprocess_exec(
        "node", str(driver), url, client, thread, *texts, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), 60)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
            await process.wait()
    assert process.returncode == 0, errors.decode()
    return Seen(output)


@pytest.mark.spec("http/ag-ui-clients")
@CLIENTS
async def test_a_stock_client_chats_with_the_real_host_turn_after_turn(
    driver: Path, client: str, tmp_path: Path
) -> None:
    host = await asyncio.to_thread(HostProcess(data=tmp_path / "data").start)
    try:
        seen = await drive(driver, f"{host.url}/api/v1/agent/ag-ui/echo", client, "hello 世界", "and again")
    finally:
        await asyncio.to_thread(host.stop)
    assert seen.ended == ["resolved", "resolved"]
    assert [message["role"] for message in seen.messages] == ["user", "assistant", "user", "assistant"]
    assert [message["content"] for message in seen.messages[1::2]] == ["hello 世界", "and again"]
    assert [(event["threadId"], event["runId"]) for event in seen.events if event["type"] == "RUN_FINISHED"] == [
        ("main", "run-0"),
        ("main", "run-1"),
    ]


AGENTS = """
agents:
  careful:
    runner: plugin:paddock/local-agent/default
    models: [demo]
    config: {model: demo, approve: [calculate]}
"""
COLOUR = {"name": "pick_colour", "description": "The user picks a colour.", "parameters": {"type": "object"}}


@pytest.fixture(scope="module")
def careful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    """A host with an agent that asks before it calculates; every test has a thread of its own in it."""
    host = HostProcess(data=tmp_path_factory.mktemp("careful"), agents=AGENTS).start()
    yield host
    host.stop()


def door(host: HostProcess) -> str:
    return f"{host.url}/api/v1/agent/ag-ui/careful"


@pytest.mark.spec("http/ag-ui-clients")
@CLIENTS
async def test_a_stock_client_answers_its_own_tool_and_the_agent_goes_on(
    driver: Path, client: str, careful: HostProcess
) -> None:
    step = {"say": "call pick_colour {}", "tools": [COLOUR], "answer": {"pick_colour": "blue"}}
    seen = await drive(driver, door(careful), client, step, thread=f"tool-{client}")
    assert seen.ended == ["resolved", "resolved"]
    assert [one["role"] for one in seen.messages] == ["user", "assistant", "tool", "assistant"]
    assert seen.messages[-1]["content"] == "pick_colour: blue"


@pytest.mark.spec("http/ag-ui-clients")
@CLIENTS
@pytest.mark.parametrize(("word", "answer"), [("approve", "calculate: 42"), ("deny", "calculate failed: the user did")])
async def test_a_stock_client_answers_a_question_and_the_agent_acts_on_it(
    driver: Path, client: str, careful: HostProcess, word: str, answer: str
) -> None:
    step = {"say": 'call calculate {"expression": "6*7"}', "resume": word}
    seen = await drive(driver, door(careful), client, step, thread=f"{word}-{client}")
    assert seen.ended == ["resolved", "resolved"]
    ends = [event for event in seen.events if event["type"] == "RUN_FINISHED"]
    assert ends[0]["outcome"]["interrupts"][0]["reason"] == "tool_call"
    assert seen.messages[-1]["content"].startswith(answer)


@pytest.mark.spec("http/ag-ui-branches")
@CLIENTS
async def test_a_stock_client_edits_its_first_message_and_the_conversation_begins_with_it(
    driver: Path, client: str, careful: HostProcess
) -> None:
    thread = f"edit-{client}"
    edit = {"say": "I have no name", "edit": True}
    seen = await drive(driver, door(careful), client, "my name is Ada", edit, "what is my name", thread=thread)
    assert seen.ended == ["resolved"] * 3
    assert [one["content"] for one in seen.messages if one["role"] == "user"] == ["I have no name", "what is my name"]
    assert "Ada" not in seen.messages[-1]["content"]


@pytest.mark.spec("http/ag-ui-clients")
@CLIENTS
async def test_a_stock_client_asks_again_leaves_and_goes_on(driver: Path, client: str, careful: HostProcess) -> None:
    leaving = {"say": "my name is Ada", "leave": "RUN_STARTED"}
    seen = await drive(
        driver, door(careful), client, "hello", {"again": True}, leaving, "what is my name", thread=f"again-{client}"
    )
    contents = [(one["role"], one.get("content")) for one in seen.messages]
    assert contents[0] == ("user", "hello")
    assert [content for role, content in contents if role == "user"] == ["hello", "my name is Ada", "what is my name"]
    assert "Ada" in str(contents[-1][1])
    assert "MESSAGES_SNAPSHOT" in seen.types
    kept = await asyncio.to_thread(history, careful, f"again-{client}")
    said = [one["content"] for one in kept]
    assert "I will remember that your name is Ada." in said  # whether or not the client stayed to hear it
    assert contents[-1][1] == said[-1] == "Your name is Ada."


def history(host: HostProcess, thread: str) -> list[dict[str, Any]]:
    answer = httpx.get(f"{host.url}/api/v1/agent/history", params={"threadId": thread}, timeout=30)
    return list(answer.json()["messages"])


async def everything(doors: Doors, run: AtRunner) -> None:
    run.delta("let me ")
    await doors.recorded(run.run_id, "let me ")
    run.say("tool.call.started", tool_call_id="t1", tool_name="weather", parameters={"city": "Oslo"})
    run.say("tool.call.completed", tool_call_id="t1", tool_name="weather", result={"sky": "grey"})
    run.message("let me see: grey")
    run.say("state.updated", scope="conversation", key="k", value=1)
    run.message("")
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    run.say("run.completed", usage=usage, pending_tool_call_ids=["t9"])


async def a_cancel(doors: Doors, run: AtRunner) -> None:
    run.delta("half")
    await doors.recorded(run.run_id, "half")
    run.may_stop.set()
    await doors.client.post(f"/api/v1/agent/runs/{run.run_id}/cancel")


async def a_crash(doors: Doors, run: AtRunner) -> None:
    run.delta("half")
    await doors.recorded(run.run_id, "half")
    run.listener.lost("runner.crashed", "it fell over")


Play = Callable[[Doors, AtRunner], Awaitable[None]]


async def play(driver: Path, client: str, script: Play) -> Seen:
    async with open_doors() as doors:
        driving = asyncio.create_task(drive(driver, f"{doors.url}/api/v1/agent/ag-ui", client, "go"))
        run = await asyncio.wait_for(doors.gateway.started.get(), 60)
        run.listener.acknowledged()
        await script(doors, run)
        return await driving


@pytest.mark.spec("http/ag-ui-clients")
@CLIENTS
async def test_text_tools_custom_events_and_open_calls_are_accepted(driver: Path, client: str) -> None:
    seen = await play(driver, client, everything)
    assert seen.ended == ["resolved"]
    assert [message["role"] for message in seen.messages] == ["user", "assistant", "assistant", "tool", "assistant"]
    said = {message["role"]: message.get("content") for message in seen.messages[:4]}
    assert (seen.messages[1]["content"], said["tool"]) == ("let me see: grey", '{"sky":"grey"}')
    assert "CUSTOM" in seen.types
    finished = seen.events[-1]
    assert finished["type"] == "RUN_FINISHED"
    assert finished.get("outcome") == ({"type": "success", "pendingToolCallIds": ["t9"]} if client == "1" else None)


@pytest.mark.spec("http/ag-ui-clients")
@CLIENTS
async def test_a_cancelled_run_ends_well_for_either_client(driver: Path, client: str) -> None:
    seen = await play(driver, client, a_cancel)
    assert seen.ended == ["resolved"]
    assert seen.messages[1]["content"] == "half"
    last = seen.events[-1]
    assert last.get("outcome", {}).get("type") == "cancelled" if client == "1" else last["code"] == "cancelled"


@pytest.mark.spec("http/ag-ui-clients")
@CLIENTS
async def test_a_failed_run_is_seen_as_failed(driver: Path, client: str) -> None:
    seen = await play(driver, client, a_crash)
    last = seen.events[-1]
    assert (last["type"], last["code"], last["message"]) == ("RUN_ERROR", "runner.crashed", "it fell over")
    assert seen.messages[1]["content"] == "half"
