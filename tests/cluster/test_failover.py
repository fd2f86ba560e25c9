"""A standby takes over from a database that is gone: live runs wait for it and go on, every word once."""

import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cluster.outages import Cluster, a_cluster, ready
from nats_server import NatsServer
from postgres_server import USER, Server, database_of, new_server, new_standby
from walk.detour import Detour
from walk.hosts import wait_until

pytestmark = [pytest.mark.long, pytest.mark.spec("http/failover")]

PATIENT = 60.0


@pytest.fixture
def primary() -> Iterator[Server]:
    server = new_server()
    yield server
    with suppress(OSError, ValueError, AssertionError):
        server.signal_all(signal.SIGCONT)
        server.stop("immediate")
    server.let_go()


@pytest.fixture
def standby(primary: Server) -> Iterator[Server]:
    server = new_standby(primary)
    yield server
    server.let_go()


def go_on(cluster: Cluster, standby: Server, database: str) -> None:
    """Runs that were live when the primary went are brought to their end by the standby, and new ones are taken."""
    standby.promote()
    for host in cluster.hosts:
        wait_until(lambda host=host: ready(host), PATIENT, "being ready again")
    asked = {"thread": str(uuid.uuid4()), "run": uuid.uuid4().hex, "agent": "echo"}
    wait_until(lambda: cluster.hosts[0].post("after", **asked).status_code == 202, PATIENT, "being taken")
    task = cluster.hosts[0].post("after", **asked).json()["taskId"]
    assert cluster.hosts[1].finished(task, PATIENT)["status"] == "completed"
    assert standby.sql(f"select count(*) from runs where run_id = '{task}'", database).strip() == "1"


@pytest.mark.parametrize("how", ["crashes", "falls silent"])
def test_an_address_that_names_both_machines_leads_to_the_one_that_takes_writes(
    primary: Server, standby: Server, nats: NatsServer, tmp_path: Path, how: str
) -> None:
    name = database_of(primary.new_database())
    address = f"postgresql://{USER}@/{name}?host={primary.home},{standby.home}"
    with a_cluster(primary, standby.url(name), [address, address], nats, tmp_path) as cluster:
        runs = [cluster.begin(host) for host in cluster.hosts for _ in range(3)]
        began = time.monotonic()
        if how == "crashes":
            primary.stop("immediate")
        else:
            primary.signal_all(signal.SIGSTOP)
        go_on(cluster, standby, name)
        print(f"ready again after {time.monotonic() - began:.1f} s")
        for run in runs:
            run.ends_well()


def test_an_address_that_moves_leads_to_the_standby_while_the_old_primary_hangs(
    primary: Server, standby: Server, nats: NatsServer, tmp_path: Path
) -> None:
    name, way = database_of(primary.new_database()), Detour(primary.home / ".s.PGSQL.5432")
    address = f"postgresql://{USER}@127.0.0.1:{way.port}/{name}"
    try:
        with a_cluster(primary, standby.url(name), [address, address], nats, tmp_path) as cluster:
            runs = [cluster.begin(host) for host in cluster.hosts for _ in range(3)]
            began = time.monotonic()
            primary.signal_all(signal.SIGSTOP)
            way.lead(standby.home / ".s.PGSQL.5432")
            go_on(cluster, standby, name)
            print(f"ready again after {time.monotonic() - began:.1f} s")
            for run in runs:
                run.ends_well()
    finally:
        way.close()
