"""A database that falls silent and closes nothing is noticed in time for live runs, and by hosts that are stopped."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.outages import ENDLESS, PATIENT, Cluster, a_cluster, ready
from cluster.test_the_database_restarts import is_refused_soon
from nats_server import NatsServer
from patience import at_most
from postgres_server import USER, Server, database_of, new_server
from walk.detour import Detour
from walk.hosts import wait_until

pytestmark = pytest.mark.spec("http/silent-database")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = new_server()
    yield server
    server.let_go()


@pytest.fixture
def way(server: Server) -> Iterator[Detour]:
    way = Detour(server.home / ".s.PGSQL.5432")
    yield way
    way.close()


@pytest.fixture
def cluster(server: Server, way: Detour, nats: NatsServer, tmp_path: Path) -> Iterator[Cluster]:
    address = server.new_database()
    by_the_way = f"postgresql://{USER}@127.0.0.1:{way.port}/{database_of(address)}"
    with a_cluster(server, address, [by_the_way, by_the_way], nats, tmp_path) as cluster:
        yield cluster
        server.signal_all(signal.SIGCONT)


def test_live_runs_go_on_over_new_connections_when_the_old_ones_carry_nothing_any_more(
    cluster: Cluster, way: Detour
) -> None:
    runs = [cluster.begin(host) for host in cluster.hosts for _ in range(3)]
    way.swallow()
    for run in runs:
        run.ends_well()


def test_a_paused_database_is_noticed_in_time_and_live_runs_go_on_when_it_does(cluster: Cluster) -> None:
    runs = [cluster.begin(host) for host in cluster.hosts for _ in range(3)]
    began = time.monotonic()
    cluster.server.signal_all(signal.SIGSTOP)
    for host in cluster.hosts:
        wait_until(lambda host=host: not ready(host), PATIENT, "the host noticing")
    print(f"noticed after {time.monotonic() - began:.1f} s")
    refused = is_refused_soon(cluster.hosts[0], "while it is silent")
    cluster.server.signal_all(signal.SIGCONT)
    assert refused
    for run in runs:
        run.ends_well()


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize("noticed", [False, True])
def test_a_host_that_is_stopped_while_the_database_is_silent_ends_in_time(
    cluster: Cluster, hosts: int, noticed: bool
) -> None:
    leaving, other = cluster.hosts
    if hosts == 1:
        assert other.stop() == 0
        cluster.hosts = [leaving]
    run = cluster.begin(leaving, ENDLESS)
    cluster.server.signal_all(signal.SIGSTOP)
    if noticed:
        wait_until(lambda: not ready(leaving), PATIENT, "the host noticing")
    assert leaving.process is not None
    began = time.monotonic()
    leaving.process.send_signal(signal.SIGTERM)
    code = leaving.process.wait(PATIENT)
    took = time.monotonic() - began
    cluster.server.signal_all(signal.SIGCONT)
    print(f"stopped within {took:.1f} s")
    assert code == 0
    assert took < at_most(10)
    leaving.start()
    end = leaving.finished(run.task, PATIENT)
    assert (end["status"], end["code"] in {"host_restarted", "host_lost", "storage_unavailable"}) == ("failed", True)
