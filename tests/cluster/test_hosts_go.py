"""Hosts that die, stall, lose the bus or are stopped while others are there: nothing is lost, nothing is done twice."""

import os
import signal
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cluster.conftest import Hosts, heard
from nats_server import NatsServer
from patience import at_most
from postgres_server import Server, database_of, shared_server
from walk.detour import Detour
from walk.hosts import Event, HostProcess, start_together, text_of, wait_until

END_BEATS = """
with beats as materialized (select pid from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and query ~ 'beat_at|pg_postmaster_start_time')
select now(), count(*) from beats where pg_terminate_backend(pid)"""
"""Ends the connections of which the last question was a host's beat."""
ENDLESS = "count 25000 0.01"
"""Longer than any test waits; whoever asks for it stops it."""
TAKE_OVER_SECONDS = 15.0
"""Lease and five seconds."""


@pytest.fixture(scope="module")
def survivor(new_host: Hosts) -> HostProcess:
    return new_host("survivor").start()


@pytest.fixture(scope="module")
def way_to_the_bus(nats: NatsServer) -> Iterator[Detour]:
    detour = Detour(nats.port)
    yield detour
    detour.close()


@pytest.fixture(scope="module")
def late(survivor: HostProcess, new_host: Hosts, way_to_the_bus: Detour) -> HostProcess:
    """A host that joins when the other is at work already."""
    return new_host("late", env={"PADDOCK_BUS": f"nats://127.0.0.1:{way_to_the_bus.port}"})


@pytest.fixture(scope="module")
def server(database: str) -> Server:
    return shared_server()


def begun(host: HostProcess, text: str = "count 4000 0.01") -> tuple[str, list[Event]]:
    task = host.post(text, agent="slow").json()["taskId"]
    seen = host.events(task, stop_when=lambda event: event.type == "TEXT_MESSAGE_CONTENT")
    return task, seen


def cancel(host: HostProcess, task: str) -> None:
    with host.client() as client:
        assert client.post(f"/api/v1/agent/runs/{task}/cancel").status_code in {200, 202}


def followed(host: HostProcess, task: str, *, words: int) -> list[Event]:
    """What a host tells of a run until so much of it came over the bus, or to the run's end."""
    before, seen = heard(host), list[Event]()

    def enough(event: Event) -> bool:
        seen.append(event)
        return len(seen) % 25 == 0 and heard(host) > before + words

    host.events(task, stop_when=enough)
    assert heard(host) > before + words, "it did not come over the bus"
    return seen


def test_a_host_that_joins_later_reads_live_what_goes_on_and_stops_it(survivor: HostProcess, late: HostProcess) -> None:
    task, _ = begun(survivor, ENDLESS)
    late.start()
    assert text_of(followed(late, task, words=40)).startswith("0 1 2 3 ")
    cancel(late, task)
    assert survivor.finished(task)["status"] == "cancelled"


def test_a_host_whose_way_to_the_bus_is_cut_hears_again_and_its_readers_miss_nothing(
    survivor: HostProcess, late: HostProcess, way_to_the_bus: Detour
) -> None:
    task, _ = begun(survivor, "count 200 0.01")
    assert way_to_the_bus.cut() == 1
    assert text_of(late.events(task)).split() == [str(number) for number in range(200)]
    assert late.says("the bus is back")
    task, _ = begun(survivor, ENDLESS)
    followed(late, task, words=20)
    cancel(late, task)


def test_a_host_whose_connection_for_beats_is_ended_by_the_database_keeps_what_it_owns(
    survivor: HostProcess, server: Server, database: str
) -> None:
    name = database_of(database)
    task, _ = begun(survivor, "count 300 0.01")
    hosts = "select boot from hosts where gone is null order by boot"
    there = server.sql(hosts, name)
    at, ended = server.sql(END_BEATS, name).strip().split("|")
    assert int(ended) == len(there.split())
    silent = f"select boot from hosts where gone is null and beat_at < timestamptz '{at}'"
    wait_until(lambda: not server.sql(silent, name).strip(), 20, "all hosts beating again")
    assert survivor.finished(task)["status"] == "completed"
    assert server.sql(hosts, name) == there


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
        lambda: "stale_owner" in server.sql("select result from audit", database_of(database)), 30, "the refusal"
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
    wait_until(lambda: "being stopped" in leaving.client().get("/readyz").text, 30, "it saying so")
    refused = leaving.post("too late")
    assert (refused.status_code, "Retry-After" in refused.headers) == (503, True)
    assert leaving.process.wait(60) == 0
    assert time.monotonic() - began < at_most(12)
    assert survivor.finished(short)["status"] == "completed"
    assert survivor.finished(long)["code"] == "host_shutdown"
    assert survivor.finished(waiting)["status"] == "completed"


def test_without_the_bus_everything_still_works_and_it_is_used_again_when_it_is_back(
    survivor: HostProcess, late: HostProcess, nats: NatsServer
) -> None:
    other = late
    nats.kill()
    try:
        thread = str(uuid.uuid4())
        task = survivor.post("count 150 0.01", thread=thread, agent="slow").json()["taskId"]
        assert other.post("after it", thread=thread, agent="echo").status_code == 202
        assert text_of(other.events(task)).split() == [str(number) for number in range(150)]
        ready = other.client().get("/readyz")
        assert (ready.status_code, "the bus is away" in ready.text) == (200, True)
        task, _ = begun(survivor, ENDLESS)
        read = heard(other, "log")
        reading = ThreadPoolExecutor(1).submit(followed, other, task, words=20)
        wait_until(lambda: heard(other, "log") > read, 30, "a reader that begins without the bus")
    finally:
        nats.start()
    reading.result(120)
    cancel(other, task)
    assert "the bus is away" not in other.client().get("/readyz").text


def test_of_hosts_that_start_at_once_each_is_ready_and_an_agent_made_at_one_is_known_to_all(
    survivor: HostProcess, new_host: Hosts
) -> None:
    pair = [new_host("one"), new_host("two")]
    start_together(pair)
    with pair[0].client() as client:
        made = client.put("/api/v1/agents/made", json={"runner": "plugin:paddock/echo/default"})
        assert made.status_code in {200, 201}, made.text
    wait_until(lambda: pair[1].post("hi", agent="made").status_code == 202, 30, "the agent being known")
    with pair[1].client() as client:
        assert client.delete("/api/v1/agents/made").status_code in {200, 204}
    wait_until(lambda: survivor.post("hi", agent="made").status_code == 404, 30, "the agent being gone")
