"""The adapter before a plugin of plain lines: both dialects, what it is told, what it may ask, how it ends."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from paddock_runners.langbot.about import About, AboutRunner
from paddock_runners.langbot.processes import Processes
from paddock_runners.langbot.runner import runners_of
from paddock_sdk.testing import PretendHost, RunResults, pretend_host
from walk.hosts import alive

pytestmark = pytest.mark.anyio

FAKE = Path(__file__).parent / "fakes" / "dev_plugin.py"
PERMISSIONS = {"models": ["invoke"], "history": ["page"], "storage": ["plugin", "binding"], "artifacts": ["read"]}
MANIFEST: dict[str, Any] = {"label": {"en_US": "Fake"}, "capabilities": {"streaming": True}, "permissions": PERMISSIONS}


@asynccontextmanager
async def a_plugin(*argv: str, kind: str = "AgentRunner", **host: Any) -> AsyncGenerator[PretendHost]:
    about = About((AboutRunner("default", kind, MANIFEST),), {"greeting": "hello"})
    processes = Processes((sys.executable, *argv), FAKE.parent)
    try:
        async with pretend_host(*runners_of(about, processes), **host) as there:
            yield there
    finally:
        await processes.end()


async def run(text: str, *argv: str, kind: str = "AgentRunner", **host: Any) -> RunResults:
    async with a_plugin(*(argv or (str(FAKE), kind)), kind=kind, **host) as there:
        return await there.run(text)


@pytest.mark.parametrize("kind", ["AgentRunner", "Runner"])
async def test_both_dialects_answer(kind: str) -> None:
    results = await run("good day", kind=kind)
    assert results.deltas == ["go", "od day"]
    assert results.types[-2:] == ["message.completed", "run.completed"]
    assert results.text == "good day"


async def test_it_is_told_the_run_in_words_it_takes() -> None:
    file = {"artifact_id": "a-1", "artifact_type": "file", "name": "notes.txt", "mime_type": "text/plain"}
    async with a_plugin(str(FAKE), artifacts={"a-1": b"tea"}) as there:
        asked = {"text": "context", "attachments": [file]}
        results = await there.run("context", input=asked, trigger={"type": "m", "source": "api", "timestamp": 1.5})
    told = json.loads(results.text)
    assert told["input"]["attachments"] == [
        {"type": "file", "mime_type": "text/plain", "name": "notes.txt", "id": "a-1"}
    ]
    [content] = [one for one in told["input"]["contents"] if one["type"] == "file_base64"]
    assert content == {"type": "file_base64", "file_base64": "data:text/plain;base64,dGVh", "file_name": "notes.txt"}
    assert told["trigger"]["timestamp"] == 1
    assert set(told["state"]) == {"conversation", "actor", "subject", "runner"}
    assert told["context"]["available_apis"]["steering_pull"] is False


@pytest.mark.parametrize(
    ("asked", "data"),
    [
        ('state_set {"scope": "runner", "key": "k", "value": [1]}', {"success": True}),
        ('state_get {"scope": "conversation", "key": "turns"}', {"value": 3}),
        ('state_list {"scope": "conversation", "prefix": "t"}', {"keys": ["turns"], "has_more": False}),
        ('state_delete {"scope": "conversation", "key": "none"}', {"success": False}),
        ('set_plugin_storage {"key": "k", "value_base64": "dGVh"}', {}),
        ("get_plugin_storage_keys {}", {"keys": []}),
        ("run_get {}", {"status": "running", "cancel_requested_at": None}),
        ("get_prompt {}", {"prompt": []}),
        ('get_langbot_version {"run_id": null}', {"version": "4.11.2"}),
    ],
)
async def test_its_calls_become_calls_of_the_host(asked: str, data: dict[str, Any]) -> None:
    results = await run(f"call {asked}", state={"conversation": {"turns": 3}})
    told = json.loads(results.text)
    assert told["code"] == 0
    assert {key: told["data"].get(key) for key in data} == data


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("get_bots {}", "invalid_argument"),
        ("vector_search {}", "invalid_argument"),
        ("run_claim {}", "invalid_argument"),
        ('run_get {"target_run_id": "another"}', "unauthorized"),
        ('state_get {"run_id": null, "scope": "runner", "key": "k"}', "unauthorized"),
        ('history_page {"run_id": "another"}', "unauthorized"),
        ('history_search {"query": "x"}', "unauthorized"),
        ('get_workspace_storage {"key": "k"}', "unauthorized"),
        ('get_plugin_storage {"key": "none"}', "not_found"),
        ('set_plugin_storage {"key": "k", "value_base64": "?"}', "invalid_argument"),
        ('state_get {"scope": "everything", "key": "k"}', "invalid_argument"),
        ('count_tokens {"llm_model_uuid": "of-somebody-else", "messages": []}', "unauthorized"),
        ('call_platform_api {"action": "send_message", "params": {}}', "invalid_argument"),
    ],
)
async def test_the_rest_is_refused_with_a_code_and_the_run_goes_on(asked: str, code: str) -> None:
    results = await run(f"call {asked}")
    told = json.loads(results.text)
    assert (told["code"], told["data"]["error"]["code"]) == (1, code)
    assert results.terminal.type == "run.completed"


async def test_a_long_question_and_a_long_answer_pass_in_pieces() -> None:
    results = await run("call state_set " + json.dumps({"scope": "runner", "key": "k", "value": "茶" * 60_000}))
    assert json.loads(results.text)["code"] == 0
    kept = await run(
        "call state_get " + json.dumps({"scope": "runner", "key": "k"}), state={"runner": {"k": "茶" * 60_000}}
    )
    assert json.loads(kept.text)["data"]["value"] == "茶" * 60_000


@pytest.mark.parametrize("spelling", ["error", "message"])
async def test_a_failure_is_read_in_both_spellings(spelling: str) -> None:
    end = (await run(f"failing {spelling}")).terminal
    assert end.model_dump()["data"] == {"code": "provider.busy", "message": "come back later", "retryable": True}


async def test_a_runner_that_looks_up_its_cancel_stops_by_itself() -> None:
    async with a_plugin(str(FAKE)) as there:
        going = await there.start("poll")
        await going.until(lambda said: bool(said.deltas))
        [child] = _children()
        await going.cancel()
        assert (await there.run("next")).text == "next"
        assert _children() == [child]


async def test_one_that_does_not_is_ended_with_its_process_when_its_neighbours_are_done() -> None:
    async with a_plugin(str(FAKE)) as there:
        neighbour, going = await there.start("poll"), await there.start("deaf")
        await neighbour.until(lambda said: bool(said.deltas))
        await going.until(lambda said: bool(said.deltas))
        [child] = _children()
        await going.cancel()
        assert alive(child)
        assert (await there.run("next")).text == "next"
        assert child not in (fresh := set(_children()) - {child})
        assert len(fresh) == 1
        await neighbour.cancel()
        assert not alive(child)


async def test_a_run_that_is_cancelled_while_its_files_are_read_keeps_no_process_alive() -> None:
    reading = asyncio.Event()

    async def never(_asked: Any) -> AsyncIterator[dict[str, Any]]:
        reading.set()
        await asyncio.Event().wait()
        yield {}

    file = {"artifact_id": "a-1", "artifact_type": "file", "name": "notes.txt", "mime_type": "text/plain"}
    async with a_plugin(str(FAKE), calls={"artifacts.open_stream": never}) as there, asyncio.timeout(30):
        stuck = await there.start("hello", input={"text": "hello", "attachments": [file]})
        await reading.wait()
        await stuck.cancel()
        going = await there.start("deaf")
        await going.until(lambda said: bool(said.deltas))
        [child] = _children()
        await going.cancel()
        assert not alive(child), "no other run is in it"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("-c", "print('hello')"), "its process ended before it said who it is"),
        (("-c", 'print(\'{"type": "chunk_data", "data": "", "offset": 7}\')'), "out of place"),
        ((str(FAKE), "Tool"), "does not know its AgentRunner 'default'"),
        (("/nowhere/at/all.py",), "its process ended"),
    ],
)
async def test_a_plugin_that_does_not_come_up_says_why(argv: tuple[str, ...], words: str) -> None:
    end = (await run("hello", *argv)).terminal.model_dump()
    assert end["data"]["code"] == "langbot.not_started"
    assert words in end["data"]["message"]


def _children() -> list[int]:
    below = psutil.Process().children(recursive=True)
    return [one.pid for one in below if str(FAKE) in _command(one)]


def _command(process: psutil.Process) -> list[str]:
    """Children of other tests may end, or wait to be reaped, just now: they have none."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []
