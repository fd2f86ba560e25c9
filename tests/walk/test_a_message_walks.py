"""The whole path with real parts: HTTP in, a runner process, the log, and the stream out."""

import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

import loopback
from patience import at_most
from walk.conftest import EVERYWHERE, alone, hosts_of
from walk.hosts import NASTY, HostProcess, alive, events_in, text_of, wait_until

AGENTS = """
default_agent: echo
agents:
  echo: {runner: "plugin:paddock/echo/default"}
  slow: {runner: "plugin:test/slow/default"}
  brief: {runner: "plugin:test/slow/default", deadline_seconds: 1}
"""


pytestmark = pytest.mark.xdist_group("a_message_walks")


@pytest.fixture(scope="module", params=EVERYWHERE)
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    """One for all tests that leave it running; `slow` behaves as it is told."""
    with hosts_of(request, tmp_path_factory.mktemp("walk")) as make:
        host = make(agents=AGENTS, plugins=(NASTY,)).start()
        yield host
        assert host.stop() == 0


def test_a_message_is_answered_by_a_runner_and_streamed_out(host: HostProcess) -> None:
    accepted = host.post("hello big world", agent="echo")
    assert accepted.status_code == 202
    body = accepted.json()
    assert body.keys() == {"taskId", "threadId", "runId", "created"}
    assert body["created"] is True
    events = host.events(body["taskId"])
    assert [events[0].type, events[-1].type] == ["RUN_STARTED", "RUN_FINISHED"]
    assert text_of(events) == "hello big world"
    assert host.run(body["taskId"])["status"] == "completed"


@alone
def test_ready_within_three_seconds_and_gone_without_a_child(new_host: Callable[..., HostProcess]) -> None:
    new_host("warm", fresh=True).start().stop()
    begin = time.monotonic()
    host = new_host(fresh=True).start()
    assert loopback.get(f"{host.url}/readyz").status_code == 200
    assert time.monotonic() - begin < at_most(3)
    host.events(host.post().json()["taskId"])
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(host.pid)], capture_output=True, text=True, check=False
    )
    pids = [int(pid) for pid in children.stdout.split()]
    assert pids
    assert host.stop() == 0
    wait_until(lambda: not any(map(alive, pids)), 30, "the end of all children")


@alone
def test_runners_that_nobody_chose_start_when_they_are_called(new_host: Callable[..., HostProcess]) -> None:
    host = new_host().start()
    wait_until(lambda: runners_of(host), 30, "the first runner")
    host.events(host.post("hi", agent="assistant").json()["taskId"])
    assert runners_of(host) == {"local_agent"}
    host.events(host.post("hi", agent="echo").json()["taskId"])
    assert runners_of(host) == {"local_agent", "echo"}


def runners_of(host: HostProcess) -> set[str]:
    """Which official runners have a process."""
    below = psutil.Process(host.pid).children(recursive=True)
    lines = [" ".join(process.cmdline()) for process in below]
    return {line.rpartition("paddock_runners.")[2] for line in lines if "-m paddock_runners." in line}


def test_a_stream_can_be_taken_up_at_every_single_place(host: HostProcess) -> None:
    task = host.post("count 8 0.03", agent="slow").json()["taskId"]
    live = host.events(task)
    for index, event in enumerate(live):
        rest = host.events(task, after=event.id)
        assert [(one.id, one.data) for one in rest] == [(one.id, one.data) for one in live[index + 1 :]]
    assert [(one.id, one.data) for one in host.events(task)] == [(one.id, one.data) for one in live]


def test_the_same_run_posted_twenty_times_at_once_is_one_run(host: HostProcess) -> None:
    thread = str(uuid.uuid4())
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: host.post("hi", thread=thread, run="r1"), range(20)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.text for answer in answers}) == 1
    assert host.post("another body", thread=thread, run="r1").status_code == 409


def test_state_and_history_reach_the_runner_through_the_gate(host: HostProcess) -> None:
    thread = str(uuid.uuid4())
    said = [text_of(host.events(host.post("remember", thread=thread, agent="slow").json()["taskId"])) for _ in range(3)]
    assert said == ["1 0", "2 2", "3 4"]


def test_a_stray_print_never_breaks_the_wire(host: HostProcess) -> None:
    assert text_of(host.events(host.post("print", agent="slow").json()["taskId"])) == "printed"


def test_a_crash_is_one_clear_failure_and_the_next_run_is_served(host: HostProcess) -> None:
    neighbour = host.post("still here", agent="echo").json()["taskId"]
    task = host.post("crash", agent="slow").json()["taskId"]
    events = host.events(task)
    assert (events[-1].type, events[-1].data["code"]) == ("RUN_ERROR", "runner.crashed")
    assert "3" in events[-1].data["message"]
    assert text_of(events) == "half a "
    assert text_of(host.events(neighbour)) == "still here"
    assert text_of(host.events(host.post("again", agent="slow").json()["taskId"])) == "again"


def test_a_cancel_stops_the_run_and_a_second_one_changes_nothing(host: HostProcess) -> None:
    task = host.post("count 1000 0.05", agent="slow").json()["taskId"]
    host.events(task, stop_when=lambda event: event.type == "TEXT_MESSAGE_CONTENT")
    with host.client() as client:
        begin = time.monotonic()
        assert client.post(f"/api/v1/agent/runs/{task}/cancel").status_code == 202
        events = host.events(task)
        assert time.monotonic() - begin < at_most(3)
        assert (events[-1].type, events[-1].data["outcome"]) == ("RUN_FINISHED", {"type": "cancelled"})
        again = client.post(f"/api/v1/agent/runs/{task}/cancel")
    assert (again.status_code, again.json()["status"]) == (200, "cancelled")
    assert [event.id for event in host.events(task)] == [event.id for event in events]


def test_a_runner_that_hears_no_cancel_is_stopped_within_three_seconds(host: HostProcess) -> None:
    task = host.post("deaf", agent="slow").json()["taskId"]
    wait_until(lambda: host.run(task)["status"] == "running", 30, "the run's start")
    begin = time.monotonic()
    with host.client() as client:
        client.post(f"/api/v1/agent/runs/{task}/cancel")
    assert host.finished(task, at_most(3))["status"] == "cancelled"
    assert time.monotonic() - begin < at_most(3)
    assert text_of(host.events(host.post("next", agent="slow").json()["taskId"])) == "next"


def test_a_run_past_its_deadline_fails_with_that_code(host: HostProcess) -> None:
    task = host.post("hang", agent="brief").json()["taskId"]
    assert host.finished(task, 30)["code"] == "deadline_exceeded"
    assert [event.type for event in host.events(task)] == ["RUN_STARTED", "RUN_ERROR"]


def test_a_disconnected_reader_does_not_stop_the_run(host: HostProcess) -> None:
    task = host.post("count 10 0.05", agent="slow").json()["taskId"]
    first = host.events(task, stop_when=lambda event: event.type == "TEXT_MESSAGE_CONTENT")
    assert host.finished(task)["status"] == "completed"
    rest = host.events(task, after=first[-1].id)
    assert text_of(first + rest) == "".join(f"{number} " for number in range(10))


def test_the_standard_door_answers_a_stock_client_in_one_request(host: HostProcess) -> None:
    body = {"threadId": "main", "runId": "r", "messages": [{"id": "m", "role": "user", "content": "hi there"}]}
    with host.client() as client, client.stream("POST", "/api/v1/agent/ag-ui/echo", json=body) as answer:
        assert answer.status_code == 200
        events = list(events_in(answer.iter_lines()))
    assert text_of(events) == "hi there"
    assert [event.type for event in events if event.type.startswith("RUN_")] == ["RUN_STARTED", "RUN_FINISHED"]


def test_no_grandchild_survives_its_host(new_host: Callable[..., HostProcess], tmp_path: Path) -> None:
    host, file = new_host(agents=AGENTS, plugins=(NASTY,)).start(), tmp_path / "pid"
    host.post(f"children {file}", agent="slow")
    wait_until(lambda: file.exists() and file.read_text(), 30, "the grandchild's birth")
    pid = int(file.read_text())
    assert alive(pid)
    host.kill()
    wait_until(lambda: not alive(pid), 30, "the grandchild's end")
