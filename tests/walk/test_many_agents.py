"""Several agents in one conversation, with real parts: steering through the wire, members through a crash."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from walk.hosts import NASTY, HostProcess, text_of, wait_until

AGENTS = """
default_agent: echo
agents:
  echo: {runner: "plugin:paddock/echo/default"}
  slow: {runner: "plugin:test/slow/default", while_busy: steer}
"""
SESSIONS = "/api/v1/agent/sessions"


@pytest.fixture
def host(new_host: Callable[..., HostProcess]) -> HostProcess:
    return new_host(agents=AGENTS, plugins=(NASTY,)).start()


def control(host: HostProcess, thread: str, subtype: str, **payload: Any) -> None:
    with host.client() as client:
        answer = client.post(f"{SESSIONS}/{thread}/control", json={"subtype": subtype, "payload": payload})
        assert answer.status_code == 202, answer.text


def session(host: HostProcess, thread: str) -> dict[str, Any]:
    with host.client() as client:
        return client.get(f"{SESSIONS}/{thread}").json()


def test_input_in_the_middle_of_a_run_reaches_its_runner(host: HostProcess) -> None:
    thread = str(uuid.uuid4())
    task = host.post("listen", thread=thread, agent="slow").json()["taskId"]
    wait_until(lambda: host.run(task)["status"] == "running", what="the run starting")
    steered = host.post("in French, please", thread=thread).json()["taskId"]
    assert text_of(host.events(task)) == "listening in French, please"
    run = host.run(steered)
    assert (run["status"], run["steeredInto"]) == ("completed", task)
    told = [event.data for event in host.events(steered)]
    assert {"type": "CUSTOM", "name": "paddock.turn.steered", "value": {"steeredInto": task}} in told


def test_members_and_a_closed_door_survive_a_crash(host: HostProcess) -> None:
    thread = str(uuid.uuid4())
    host.events(host.post("hi", thread=thread).json()["taskId"])
    control(host, thread, "INVITE_AGENT", agent_id="slow", activate=True)
    wait_until(lambda: session(host, thread)["activeAgentId"] == "slow", what="the invitation")
    host.kill()
    host.start()
    assert session(host, thread)["agentsInSession"] == ["echo", "slow"]
    assert session(host, thread)["activeAgentId"] == "slow"
    control(host, thread, "SESSION_CLOSE")
    wait_until(lambda: session(host, thread)["closed"], what="the close")
    host.kill()
    host.start()
    assert session(host, thread)["closed"]
    assert host.post("hi", thread=thread).status_code == 409
    control(host, thread, "SESSION_OPEN")
    wait_until(lambda: not session(host, thread)["closed"], what="the opening")
    assert host.post("hi", thread=thread).status_code == 202


def test_a_removal_in_the_middle_of_a_turn_ends_even_when_the_host_is_killed(host: HostProcess) -> None:
    thread = str(uuid.uuid4())
    task = host.post("deaf", thread=thread, agent="slow").json()["taskId"]
    wait_until(lambda: host.run(task)["status"] == "running", what="the run starting")
    control(host, thread, "REMOVE_AGENT", agent_id="slow")
    host.kill()
    host.start()
    wait_until(lambda: not session(host, thread)["transactions"], what="the removal's end")
    assert session(host, thread)["agentsInSession"] == []
    assert host.run(task)["status"] == "cancelled"
