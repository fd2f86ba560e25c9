"""Hosts over a database that goes away: runs that are followed at all of them, and a way that loses words."""

import asyncio
import socket
import threading
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from cluster.conftest import AGENTS
from nats_server import NatsServer
from postgres_server import Server
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


def went_on(host: HostProcess) -> int:
    """How often a run that waited for the database went on."""
    return sum("a live run goes on" in line for line in list(host.output))


@contextmanager
def a_cluster(server: Server, address: str, ways: list[str], nats: NatsServer, home: Path) -> Generator[Cluster]:
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


class Losing(Detour):
    """A way to PostgreSQL that can be shut, or lose something of the connection that writes, and that one with it."""

    def __init__(self, there: Path) -> None:
        super().__init__(there)
        self.is_shut = False
        self._writers: set[socket.socket] = set()
        self._asked: set[socket.socket] = set()
        self._loses: tuple[str, bytes] | None = None
        self._lost = threading.Event()

    def shut(self) -> None:
        self.is_shut = True
        self.cut()

    def will_lose(self, what: str, about: bytes = b"") -> None:
        """The next `request` that has these words in it, which then never happened, or the `answer` to one that did."""
        self._lost.clear()
        self._asked.clear()
        self._loses = what, about

    def has_lost(self) -> bool:
        return self._lost.wait(PATIENT)

    def loses(self, here: socket.socket, words: bytes, *, answered: bool) -> bool:
        if not answered and b"paddock writer" in words:
            self._writers.add(here)
        if self._loses is None or here not in self._writers:
            return self.is_shut
        what, about = self._loses
        if not answered and about in words:
            self._asked.add(here)
        if here not in self._asked or answered != (what == "answer"):
            return self.is_shut
        self._loses = None
        self._lost.set()
        return True
