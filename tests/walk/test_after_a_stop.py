"""SIGTERM: what runs ends visibly, and what waits in line is worked off by the next start, as after a crash."""

import signal
import uuid
from collections.abc import Callable

import pytest

from walk.conftest import alone
from walk.hosts import NASTY, Event, HostProcess, text_of, wait_until

AGENTS = """
default_agent: slow
agents:
  slow: {runner: "plugin:test/slow/default"}
  other: {runner: "plugin:test/slow/default"}
"""


@pytest.fixture
def host(new_host: Callable[..., HostProcess]) -> HostProcess:
    return new_host(agents=AGENTS, plugins=(NASTY,)).start()


@pytest.mark.spec("queue/survives-a-stop")
def test_what_waited_in_line_is_worked_off_by_the_next_start(host: HostProcess) -> None:
    thread = str(uuid.uuid4())
    first = host.post("count 1000 0.05", thread=thread).json()["taskId"]
    host.events(first, stop_when=lambda event: event.type == "TEXT_MESSAGE_CONTENT")
    waiting = [host.post(text, thread=thread).json()["taskId"] for text in ("two", "three")]
    mentioned = host.post("four", thread=thread, agent="other").json()["taskId"]
    assert host.run(mentioned)["status"] == "queued"
    assert host.stop() == 0
    host.start()
    assert (host.finished(first)["status"], host.run(first)["code"]) == ("failed", "host_shutdown")
    assert [text_of(host.events(task)) for task in (*waiting, mentioned)] == ["two", "three", "four"]
    assert host.run(mentioned)["agentId"] == "other"


@alone
def test_the_live_runs_end_is_on_record_before_the_host_is_gone(host: HostProcess) -> None:
    """Its client is told at once, not by the next start."""
    thread = str(uuid.uuid4())
    first = host.post("count 1000 0.05", thread=thread).json()["taskId"]
    second = host.post("two", thread=thread).json()["taskId"]
    process = host.process
    assert process is not None

    told: list[Event] = []

    def stop_it(event: Event) -> bool:
        if event.type == "TEXT_MESSAGE_CONTENT" and not told:
            process.send_signal(signal.SIGTERM)  # once: a second one does not wait
            told.append(event)
        return False

    seen = host.events(first, stop_when=stop_it)
    assert (seen[-1].type, seen[-1].data["code"]) == ("RUN_ERROR", "host_shutdown")
    assert process.wait(60) == 0
    host.start()
    assert text_of(host.events(second)) == "two"


@alone
def test_input_that_comes_right_after_the_start_stands_behind_what_waited(host: HostProcess) -> None:
    thread = str(uuid.uuid4())
    first = host.post("count 1000 0.05", thread=thread).json()["taskId"]
    waiting = [host.post(f"count {number} 0.02", thread=thread).json()["taskId"] for number in (3, 4, 5)]
    assert host.stop() == 0
    host.start()
    last = host.post("last", thread=thread).json()["taskId"]
    wait_until(lambda: host.run(last)["status"] == "completed", what="the last answer")
    assert host.run(first)["code"] == "host_shutdown"
    ended = [host.run(task)["endedAt"] for task in (*waiting, last)]
    assert ended == sorted(ended)
    assert [host.run(task)["status"] for task in waiting] == ["completed"] * 3
