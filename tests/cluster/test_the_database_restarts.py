"""PostgreSQL that restarts under live runs: they wait and go on, every word once; only a long absence ends them."""

import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.outages import ENDLESS, PATIENT, Cluster, Losing, a_cluster, beats_missed, went_on
from nats_server import NatsServer
from patience import at_most
from postgres_server import USER, Server, database_of, new_server
from walk.hosts import TERMINAL, HostProcess, wait_until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = new_server()
    yield server
    server.let_go()


@pytest.fixture
def cluster(server: Server, nats: NatsServer, tmp_path: Path) -> Iterator[Cluster]:
    address = server.new_database()
    with a_cluster(server, address, [address, address], nats, tmp_path) as cluster:
        yield cluster


def is_refused_soon(host: HostProcess, text: str, **about: str) -> bool:
    began = time.monotonic()
    refused = host.post(text, **about)
    in_time = time.monotonic() - began < at_most(1)
    return (refused.status_code, "Retry-After" in refused.headers, in_time) == (503, True, True)


def cancelled(host: HostProcess, task: str) -> int:
    with host.client() as client:
        return client.post(f"/api/v1/agent/runs/{task}/cancel").status_code


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_live_runs_wait_for_a_database_that_restarts_and_lose_and_double_nothing(cluster: Cluster, how: str) -> None:
    runs = [cluster.begin(host) for host in cluster.hosts for _ in range(3)]
    cluster.stop(how)
    assert is_refused_soon(cluster.hosts[0], "while it is away")
    cluster.misses_beats(1)
    cluster.start()
    for run in runs:
        run.ends_well()


def test_a_cancel_that_comes_meanwhile_ends_the_run_when_the_database_is_back(cluster: Cluster) -> None:
    runs = [cluster.begin(cluster.hosts[0], ENDLESS) for _ in cluster.hosts]
    cluster.stop()
    wishes = [cluster.pool.submit(cancelled, host, run.task) for host, run in zip(cluster.hosts, runs, strict=True)]
    cluster.misses_beats(1)
    cluster.start()
    assert [wish.result(PATIENT) for wish in wishes] == [202, 202]
    for run in runs:
        assert run.ended()["status"] == "cancelled"


def test_a_database_that_is_away_for_longer_than_a_lease_ends_a_run_once(cluster: Cluster) -> None:
    run = cluster.begin(cluster.hosts[0], ENDLESS)
    cluster.stop("immediate")
    assert cluster.hosts[0].says("a live run waited too long")
    cluster.start()
    end = run.ended()
    assert (end["status"], end["code"]) in {("failed", "storage_unavailable"), ("failed", "host_lost")}
    for reader in run.readers:
        assert [event.type for event in reader.seen if event.type in TERMINAL] == ["RUN_ERROR"]
        assert reader.words == [str(number) for number in range(len(reader.words))]
    assert len({tuple(reader.words) for reader in run.readers}) == 1


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_host_that_is_stopped_while_the_database_is_away_ends_in_time(cluster: Cluster, hosts: int) -> None:
    leaving, other = cluster.hosts
    if hosts == 1:
        assert other.stop() == 0
        cluster.hosts = [leaving]
    run = cluster.begin(leaving, ENDLESS)
    cluster.stop()
    assert leaving.process is not None
    began = time.monotonic()
    leaving.process.send_signal(signal.SIGTERM)
    assert leaving.process.wait(PATIENT) == 0
    took = time.monotonic() - began
    print(f"stopped within {took:.1f} s")
    assert took < at_most(10)
    cluster.server.start()
    leaving.start()
    end = leaving.finished(run.task, PATIENT)
    assert (end["status"], end["code"] in {"host_restarted", "host_lost", "storage_unavailable"}) == ("failed", True)


@pytest.fixture
def way(server: Server) -> Iterator[Losing]:
    way = Losing(server.home / ".s.PGSQL.5432")
    yield way
    way.close()


@pytest.fixture
def apart(server: Server, way: Losing, nats: NatsServer, tmp_path: Path) -> Iterator[Cluster]:
    """The first host takes the way on which something may get lost, the second does not."""
    address = server.new_database()
    by_the_way = f"postgresql://{USER}@127.0.0.1:{way.port}/{database_of(address)}"
    with a_cluster(server, address, [by_the_way, address], nats, tmp_path) as cluster:
        yield cluster


@pytest.mark.parametrize("lost", [("answer", "request"), ("request", "answer")])
def test_a_commit_whose_outcome_is_unknown_is_neither_lost_nor_made_twice(
    apart: Cluster, way: Losing, lost: tuple[str, ...]
) -> None:
    runs = [apart.begin(apart.hosts[0]) for _ in range(4)]
    for what in lost:
        before = went_on(apart.hosts[0])
        way.will_lose(what)
        assert way.has_lost()
        wait_until(lambda before=before: went_on(apart.hosts[0]) > before, PATIENT, "a run going on")
    for run in runs:
        run.ends_well()
    became = "was stored" if lost[0] == "answer" else "was sent again"
    assert apart.hosts[0].says("a live run goes on", became)


@pytest.mark.parametrize(("lost", "status"), [("answer", "failed"), ("request", "completed")])
def test_a_message_whose_commit_was_not_answered_is_refused_soon_and_asked_again_has_one_answer(
    apart: Cluster, way: Losing, lost: str, status: str
) -> None:
    host, label = apart.hosts[0], uuid.uuid4().hex
    asked = {"thread": str(uuid.uuid4()), "run": label, "agent": "echo"}
    way.will_lose(lost, label.encode())
    assert is_refused_soon(host, "hello", **asked)
    assert way.has_lost()
    wait_until(lambda: host.post("hello", **asked).status_code == 202, PATIENT, "being taken")
    tasks = {one.post("hello", **asked).json()["taskId"] for one in apart.hosts}
    end = host.finished(tasks.pop())
    assert (len(tasks), end["status"], end.get("code")) == (
        0,
        status,
        "storage_unavailable" if lost == "answer" else None,
    )
    count = apart.server.sql(f"select count(*) from runs where client_run_id = '{label}'", database_of(apart.address))
    assert count.strip() == "1"


def test_a_host_whose_way_to_the_database_is_cut_for_a_moment_keeps_its_runs(apart: Cluster, way: Losing) -> None:
    run = apart.begin(apart.hosts[0])
    missed = beats_missed(apart.hosts[0])
    way.shut()
    wait_until(lambda: beats_missed(apart.hosts[0]) > missed, PATIENT, "a beat failing")
    way.is_shut = False
    run.ends_well()


def test_a_host_whose_way_to_the_database_is_cut_for_longer_than_its_lease_loses_its_runs_once(
    apart: Cluster, way: Losing
) -> None:
    run = apart.begin(apart.hosts[0], ENDLESS)
    way.shut()
    end = apart.hosts[1].finished(run.task, PATIENT)
    assert (end["status"], end["code"]) == ("failed", "host_lost")
    way.is_shut = False
    run.ended()
    for reader in run.readers:
        assert [event.type for event in reader.seen if event.type in TERMINAL] == ["RUN_ERROR"]
