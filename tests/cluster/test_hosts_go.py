"""Hosts that die, stall, lose the bus or are stopped while others are there: nothing is lost, nothing is done twice."""

import os
import signal
import threading
import time
import uuid

import pytest

from cluster.conftest import Hosts
from nats_server import NatsServer
from patience import at_most
from postgres_server import Server, database_of, shared_server
from walk.hosts import Event, HostProcess, text_of, wait_until

TAKE_OVER_SECONDS = 15.0
"""Lease and five seconds."""


@pytest.fixture(scope="module")
def survivor(new_host: Hosts) -> HostProcess:
    return new_host("survivor").start()


@pytest.fixture(scope="module")
def server(database: str) -> Server:
    return shared_server()


def begun(host: HostProcess, text: str = "count 4000 0.01") -> tuple[str, list[Event]]:
    task = host.post(text, agent="slow").json()["taskId"]
    seen = host.events(task, stop_when=lambda event: event.type == "TEXT_MESSAGE_CONTENT")
    return task, seen


def test_a_stream_goes_on_at_another_host_when_its_own_dies(survivor: HostProcess, new_host: Hosts) -> None:
    doomed = new_host("doomed").start()
    task, seen = begun(doomed)
    thread = doomed.run(task)["threadId"]
    waiting = doomed.post("and then", thread=thread, agent="echo").json()["taskId"]
    doomed.kill()
    died = time.monotonic()
    rest = survivor.events(task, after=seen[-1].id)
    assert time.monotonic() - died < at_most(TAKE_OVER_SECONDS)
    run = survivor.run(task)
    assert (run["status"], run["code"]) == ("failed", "host_lost")
    whole = survivor.events(task)
    assert [(one.id, one.data) for one in seen + rest] == [(one.id, one.data) for one in whole]
    assert [one.type for one in whole].count("RUN_ERROR") == 1
    assert survivor.finished(waiting)["status"] == "completed"  # what waited in line goes on


def test_a_host_that_stalled_past_its_lease_writes_nothing_when_it_wakes(
    survivor: HostProcess, new_host: Hosts, server: Server, database: str
) -> None:
    sleeper = new_host("sleeper").start()
    task, _ = begun(sleeper)
    assert sleeper.process is not None
    os.kill(sleeper.process.pid, signal.SIGSTOP)
    try:
        run = survivor.finished(task, at_most(TAKE_OVER_SECONDS))
    finally:
        os.kill(sleeper.process.pid, signal.SIGCONT)
    assert (run["status"], run["code"]) == ("failed", "host_lost")
    before = [(one.id, one.data) for one in survivor.events(task)]
    wait_until(
        lambda: "stale_owner" in server.sql("select result from audit", database_of(database)), 10, "the refusal"
    )
    wait_until(lambda: sleeper.client().get("/readyz").status_code == 200, 30, "the sleeper being back")
    assert [(one.id, one.data) for one in sleeper.events(task)] == before
    assert sleeper.finished(sleeper.post("hello").json()["taskId"])["status"] == "completed"
    assert sleeper.stop() == 0


def test_a_host_that_is_stopped_lets_turns_finish_and_hands_the_rest_over(
    survivor: HostProcess, new_host: Hosts
) -> None:
    leaving = new_host("leaving").start()
    short, _ = begun(leaving, "count 100 0.02")
    long, _ = begun(leaving)
    waiting = leaving.post("next", thread=leaving.run(long)["threadId"], agent="echo").json()["taskId"]
    assert leaving.process is not None
    began = time.monotonic()
    leaving.process.send_signal(signal.SIGTERM)
    assert leaving.process.wait(60) == 0
    assert time.monotonic() - began < at_most(12)
    assert survivor.finished(short)["status"] == "completed"
    assert survivor.finished(long)["code"] == "host_shutdown"
    assert survivor.finished(waiting)["status"] == "completed"


def test_without_the_bus_everything_still_works_and_it_is_used_again_when_it_is_back(
    survivor: HostProcess, new_host: Hosts, nats: NatsServer
) -> None:
    other = new_host("other").start()
    nats.kill()
    try:
        thread = str(uuid.uuid4())
        task = survivor.post("count 150 0.01", thread=thread, agent="slow").json()["taskId"]
        assert other.post("after it", thread=thread, agent="echo").status_code == 202
        assert text_of(other.events(task)).split() == [str(number) for number in range(150)]
    finally:
        nats.start()
    wait_until(lambda: "bus is back" in "".join(other.output + survivor.output), 30, "the bus being back")
    task = survivor.post("count 50 0.01", agent="slow").json()["taskId"]
    assert len(text_of(other.events(task)).split()) == 50
    other.stop()


def test_of_hosts_that_start_at_once_each_is_ready_and_an_agent_made_at_one_is_known_to_all(
    survivor: HostProcess, new_host: Hosts
) -> None:
    pair = [new_host("one"), new_host("two")]
    starting = [threading.Thread(target=host.start) for host in pair]
    for one in starting:
        one.start()
    for one in starting:
        one.join()
    with pair[0].client() as client:
        made = client.put("/api/v1/agents/made", json={"runner": "plugin:paddock/echo/default"})
        assert made.status_code in {200, 201}, made.text
    wait_until(lambda: pair[1].post("hi", agent="made").status_code == 202, 30, "the agent being known")
    with pair[1].client() as client:
        assert client.delete("/api/v1/agents/made").status_code in {200, 204}
    wait_until(lambda: survivor.post("hi", agent="made").status_code == 404, 30, "the agent being gone")
