"""A runner that takes long to start, or never does: accepted is what is on record, and nobody waits for a process."""

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from walk.conftest import alone
from walk.hosts import NASTY, HostProcess, text_of, wait_until

AGENTS = """
default_agent: quick
agents:
  quick: {runner: "plugin:test/slow/default"}
  late: {runner: "plugin:test/late/default", deadline_seconds: 60}
  broken: {runner: "plugin:test/broken/default"}
  dying: {runner: "plugin:test/dying/default"}
  missing: {runner: "plugin:nobody/nothing/default"}
"""
FILE = '[plugin]\nauthor = "test"\nname = "{name}"\nversion = "1"\ncommand = ["python", "runner.py"]\n'
LATE = """import time
from pathlib import Path

from paddock_sdk import AgentRunner, completed, message, serve

while not Path({gate!r}).exists():
    time.sleep(0.02)


class Late(AgentRunner):
    async def run(self, ctx, api):
        yield message("at last: " + (ctx.input.text or ""))
        yield completed()


serve(Late())
"""


DYING = """import os

from paddock_sdk import AgentRunner, completed, serve


class Dying(AgentRunner):
    async def run(self, ctx, api):
        os._exit(3)
        yield completed()


serve(Dying())
"""


def a_plugin(home: Path, name: str, source: str) -> None:
    (home / name).mkdir(parents=True)
    (home / name / "paddock-plugin.toml").write_text(FILE.format(name=name))
    (home / name / "runner.py").write_text(source)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """The slow runner shakes hands once this file is there."""
    return tmp_path / "gate"


@pytest.fixture
def host(new_host: Callable[..., HostProcess], tmp_path: Path, gate: Path) -> HostProcess:
    plugins = tmp_path / "plugins"
    shutil.copytree(NASTY / "slow", plugins / "slow")
    a_plugin(plugins, "late", LATE.format(gate=str(gate)))
    a_plugin(plugins, "broken", "raise SystemExit(3)\n")
    a_plugin(plugins, "dying", DYING)
    return new_host(agents=AGENTS, plugins=(plugins,)).start()


@pytest.mark.spec("http/accepted-before-the-runner", "input/granted-late")
def test_a_run_is_accepted_before_its_runner_has_shaken_hands(host: HostProcess, gate: Path) -> None:
    answer = host.post("hello", agent="late")
    assert answer.status_code == 202
    task = answer.json()["taskId"]
    assert host.run(task)["status"] == "running"
    assert "deadlineAt" not in host.run(task), "its time begins when its runner is there"
    gate.touch()
    events = host.events(task)
    assert [event.type for event in events][-1] == "RUN_FINISHED"
    assert text_of(events) == "at last: hello"
    run = host.run(task)
    assert (run["status"], run["agentId"]) == ("completed", "late")
    assert run["deadlineAt"] > run["startedAt"]


def test_a_run_whose_runner_is_not_there_yet_can_be_stopped(host: HostProcess, gate: Path) -> None:
    thread = str(uuid.uuid4())
    task = host.post("hello", thread=thread, agent="late").json()["taskId"]
    with host.client() as client:
        assert client.post(f"/api/v1/agent/runs/{task}/cancel").status_code == 202
    assert host.finished(task)["status"] == "cancelled"
    gate.touch()
    again = host.post("again", thread=thread, agent="late").json()["taskId"]
    assert text_of(host.events(again)) == "at last: again"


def test_what_waits_behind_such_a_run_follows_it(host: HostProcess, gate: Path) -> None:
    thread = str(uuid.uuid4())
    first = host.post("one", thread=thread, agent="late").json()["taskId"]
    second = host.post("two", thread=thread, agent="late").json()["taskId"]
    assert host.run(second)["status"] == "queued"
    gate.touch()
    assert text_of(host.events(first)) == "at last: one"
    assert text_of(host.events(second)) == "at last: two"


@pytest.mark.parametrize(
    ("agent", "code", "words"),
    [
        ("broken", "runner.start_failed", "did not start"),
        ("missing", "runner.not_found", "there is no runner"),
    ],
)
def test_a_run_whose_runner_cannot_start_fails_visibly(host: HostProcess, agent: str, code: str, words: str) -> None:
    answer = host.post("hello", agent=agent)
    assert answer.status_code == 202
    task = answer.json()["taskId"]
    run = host.finished(task)
    assert (run["status"], run["code"]) == ("failed", code)
    assert words in run["message"]
    last = host.events(task)[-1]
    assert (last.type, last.data["code"]) == ("RUN_ERROR", code)


def test_an_agent_that_does_not_exist_is_still_refused_at_once(host: HostProcess) -> None:
    answer = host.post("hello", agent="nobody")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_no_control_waits_for_a_runner_either(host: HostProcess, gate: Path) -> None:
    """A handover is confirmed, and who takes over starts when it can."""
    thread = str(uuid.uuid4())
    asked = host.post("handover late", thread=thread, agent="quick").json()["taskId"]
    host.finished(asked)
    with host.client() as client:
        answer = client.post(f"/api/v1/agent/sessions/{thread}/control", json={"subtype": "HANDOVER_CONFIRM"})
    assert answer.status_code < 300, answer.text
    gate.touch()
    wait_until(lambda: "at last" in transcript(host, thread), what="the other agent's answer")


@pytest.mark.spec("handover/falls-back")
@pytest.mark.parametrize("dead", ["dying", "missing"])
def test_a_handover_to_an_agent_that_cannot_run_falls_back(host: HostProcess, dead: str) -> None:
    thread = str(uuid.uuid4())
    host.finished(host.post(f"handover {dead}", thread=thread, agent="quick").json()["taskId"])
    with host.client() as client:
        answer = client.post(f"/api/v1/agent/sessions/{thread}/control", json={"subtype": "HANDOVER_CONFIRM"})
        assert answer.status_code < 300, answer.text

        def settled() -> bool:
            seen = client.get(f"/api/v1/agent/sessions/{thread}").json()
            return not seen["transactions"] and not seen["inflight"] and seen["activeAgentId"] == "quick"

        wait_until(settled, what="the first agent being active again")
    if dead == "dying":
        assert host.run(answer.json()["turnId"])["status"] == "failed"
    task = host.post("still there?", thread=thread).json()["taskId"]
    assert text_of(host.events(task)) == "still there?"
    assert host.run(task)["agentId"] == "quick"


@alone
def test_a_crash_while_the_runner_starts_leaves_no_run_without_an_end(host: HostProcess, gate: Path) -> None:
    thread = str(uuid.uuid4())
    first = host.post("one", thread=thread, agent="late").json()["taskId"]
    second = host.post("two", thread=thread, agent="late").json()["taskId"]
    host.kill()
    host.start()
    assert host.finished(first)["code"] == "host_restarted"
    gate.touch()
    assert text_of(host.events(second)) == "at last: two"


def transcript(host: HostProcess, thread: str) -> str:
    with host.client() as client:
        answer: httpx.Response = client.get("/api/v1/agent/history", params={"threadId": thread})
    return " ".join(message["content"] for message in answer.json()["messages"])
