"""PostgreSQL that restarts under live runs: they wait and go on, every word once; only a long absence ends them."""

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from cluster.conftest import AGENTS
from nats_server import NatsServer
from patience import at_most
from postgres_server import USER, Server, database_of, new_server
from walk.conftest import assert_database_as_written
from walk.detour import Detour
from walk.hosts import NASTY, TERMINAL, Event, HostProcess, events_in, start_together, text_of, wait_until

WORDS = 250
TASK = f"count {WORDS} 0.02"
"""Words for five seconds: more than a restart takes."""
ENDLESS = "count 25000 0.01"
PATIENT = 60.0
EVENTS = "/api/v1/agent/runs/{}/events"


class Reader:
    """Reads a run from its beginning to its end, at one host, going on from where it stood when a stream is cut."""

    def __init__(self, host: HostProcess, task: str, enough: threading.Event) -> None:
        self.seen: list[Event] = []
        self._host = host
        self._enough = enough
        self._url = EVENTS.format(task)

    @property
    def is_over(self) -> bool:
        return bool(self.seen) and self.seen[-1].type in TERMINAL

    @property
    def words(self) -> list[str]:
        return text_of(self.seen).split()

    def read(self) -> "Reader":
        with self._host.client() as client:
            while not self.is_over and not self._enough.wait(0.02):
                with suppress(httpx.HTTPError):
                    self._read_on(client)
        return self

    def _read_on(self, client: httpx.Client) -> None:
        headers = {"Last-Event-ID": self.seen[-1].id} if self.seen else {}
        with client.stream("GET", self._url, headers=headers) as answer:
            assert answer.status_code in {200, 503}, answer.read()
            if answer.status_code == 200:
                self.seen += (event for event in events_in(answer.iter_lines()))

    def heard_all(self) -> bool:
        places = [event.id for event in self.seen]
        ends = [event.type for event in self.seen if event.type in TERMINAL]
        return (
            self.words == [str(number) for number in range(WORDS)]
            and len(set(places)) == len(places)
            and ends == ["RUN_FINISHED"]
        )


@dataclass
class Followed:
    """A run and who reads it."""

    host: HostProcess
    task: str
    readers: list[Reader]
    reading: list["Future[Reader]"]

    def ended(self) -> dict[str, Any]:
        """What is on record of its end, when all who read it have heard of it."""
        for one in self.reading:
            one.result(2 * PATIENT)
        return self.host.finished(self.task)

    def ends_well(self) -> None:
        end = self.ended()
        assert end["status"] == "completed", end
        assert all(reader.heard_all() for reader in self.readers), [reader.words for reader in self.readers]


class Cluster:
    """Two hosts over one database, and who reads their runs."""

    def __init__(self, server: Server, address: str, hosts: list[HostProcess]) -> None:
        self.server = server
        self.address = address
        self.hosts = hosts
        self.pool = ThreadPoolExecutor(32)
        self.enough = threading.Event()
        """Nobody has to read on."""

    def begin(self, host: HostProcess, text: str = TASK) -> "Followed":
        """A run at this host, followed at every host; it speaks already."""
        task = host.post(text, agent="slow").json()["taskId"]
        readers = [Reader(one, task, self.enough) for one in self.hosts]
        reading = [self.pool.submit(reader.read) for reader in readers]
        wait_until(lambda: all(reader.words for reader in readers), PATIENT, "its first words everywhere")
        return Followed(host, task, readers, reading)

    def stop(self, how: str = "fast") -> None:
        self.server.stop(how)
        for host in self.hosts:
            wait_until(lambda host=host: not ready(host), PATIENT, "the host noticing")

    def start(self) -> None:
        self.server.start()
        for host in self.hosts:
            wait_until(lambda host=host: ready(host), PATIENT, "being ready again")

    def misses_beats(self, count: int) -> None:
        """So long as that every host could not show that it is there so many times."""
        before = [beats_missed(host) for host in self.hosts]
        wait_until(
            lambda: all(beats_missed(host) - had >= count for host, had in zip(self.hosts, before, strict=True)),
            PATIENT,
            "beats failing",
        )


def ready(host: HostProcess) -> bool:
    with host.client() as client:
        return client.get("/readyz").status_code == 200


def beats_missed(host: HostProcess) -> int:
    return sum("a beat failed" in line for line in list(host.output))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = new_server()
    yield server
    server.let_go()


@pytest.fixture
def cluster(server: Server, nats: NatsServer, tmp_path: Path) -> Iterator[Cluster]:
    address = server.new_database()
    yield from a_cluster(server, address, [address, address], nats, tmp_path)


def a_cluster(server: Server, address: str, ways: list[str], nats: NatsServer, home: Path) -> Iterator[Cluster]:
    """Hosts that reach the same database, each on its way. Afterwards its logs verify, and its tables say the same."""
    hosts = [
        HostProcess(
            home / f"host-{number}",
            agents=AGENTS,
            plugins=(NASTY,),
            env={"PADDOCK_STORE": way, "PADDOCK_BUS": nats.url},
        )
        for number, way in enumerate(ways)
    ]
    start_together(hosts)
    cluster = Cluster(server, address, hosts)
    try:
        yield cluster
    finally:
        cluster.enough.set()
        for host in hosts:
            host.end()
        cluster.pool.shutdown(wait=False, cancel_futures=True)
    asyncio.run(assert_database_as_written(address))


def went_on(host: HostProcess) -> int:
    """How often a run that waited for the database went on."""
    return sum("a live run goes on" in line for line in list(host.output))


def cancelled(host: HostProcess, task: str) -> int:
    with host.client() as client:
        return client.post(f"/api/v1/agent/runs/{task}/cancel").status_code


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_live_runs_wait_for_a_database_that_restarts_and_lose_and_double_nothing(cluster: Cluster, how: str) -> None:
    runs = [cluster.begin(host) for host in cluster.hosts for _ in range(3)]
    cluster.stop(how)
    refused = cluster.hosts[0].post("while it is away")
    assert (refused.status_code, "Retry-After" in refused.headers) == (503, True)
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


class Losing(Detour):
    """A way to PostgreSQL on which something of the connection that writes gets lost, and the connection with it."""

    def __init__(self, there: Path) -> None:
        super().__init__(there)
        self._writers: set[socket.socket] = set()
        self._loses: str | None = None
        self._lost = threading.Event()

    def lose(self, what: str) -> None:
        """The next `request`, which then never happened, or the next `answer`, to something that did happen."""
        self._lost.clear()
        self._loses = what
        assert self._lost.wait(PATIENT), f"no {what} came"

    def loses(self, here: socket.socket, words: bytes, *, answered: bool) -> bool:
        if not answered and b"paddock writer" in words:
            self._writers.add(here)
        if here not in self._writers or self._loses != ("answer" if answered else "request"):
            return False
        self._loses = None
        self._writers.discard(here)
        self._lost.set()
        return True


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
    yield from a_cluster(server, address, [by_the_way, address], nats, tmp_path)


@pytest.mark.parametrize("lost", [("answer",), ("request",), ("answer", "request", "answer")])
def test_a_commit_whose_outcome_is_unknown_is_neither_lost_nor_made_twice(
    apart: Cluster, way: Losing, lost: tuple[str, ...]
) -> None:
    runs = [apart.begin(apart.hosts[0]) for _ in range(4)]
    for what in lost:
        before = went_on(apart.hosts[0])
        way.lose(what)
        wait_until(lambda before=before: went_on(apart.hosts[0]) > before, PATIENT, "a run going on")
    for run in runs:
        run.ends_well()
    became = "was taken" if lost[0] == "answer" else "was sent again"
    assert apart.hosts[0].says("a live run goes on", became)
