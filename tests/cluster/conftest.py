import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nats_server import NatsServer
from postgres_server import a_database
from walk.hosts import NASTY, HostProcess

Hosts = Callable[..., HostProcess]

AGENTS = """
default_agent: echo
agents:
  echo: {runner: "plugin:paddock/echo/default"}
  slow: {runner: "plugin:test/slow/default"}
  listener: {runner: "plugin:test/slow/default", while_busy: steer}
"""


def heard(host: HostProcess, way: str = "bus") -> int:
    """How much of what others committed came to readers here over the bus; or out of the log, as they heard nothing."""
    with host.client() as client:
        found = re.search(rf'paddock_followed_total{{way="{way}"}} (\S+)', client.get("/metrics").text)
    assert found is not None
    return int(float(found[1]))


@pytest.fixture(scope="session")
def nats() -> Iterator[NatsServer]:
    server = NatsServer().start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with a_database() as address:
        yield address


@pytest.fixture(scope="module")
def new_host(tmp_path_factory: pytest.TempPathFactory, database: str, nats: NatsServer) -> Iterator[Hosts]:
    """Makes hosts of one cluster, each with a directory of its own; all are gone after the tests of a file."""
    made: list[HostProcess] = []
    home: Path = tmp_path_factory.mktemp("cluster")

    def make(name: str, **more: Any) -> HostProcess:
        env = {"PADDOCK_STORE": database, "PADDOCK_BUS": nats.url} | more.pop("env", {})
        host = HostProcess(home / name, agents=AGENTS, plugins=(NASTY,), env=env, **more)
        made.append(host)
        return host

    yield make
    for host in made:
        if host.process is not None and host.process.poll() is None:
            host.process.kill()
            host.process.wait(30)
