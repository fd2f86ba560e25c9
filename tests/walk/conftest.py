from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paddock.storage.sqlite.copying import has_database
from paddock.storage.sqlite.rebuilding import compare
from paddock.storage.verifying import look
from postgres_server import a_database
from walk.hosts import HostProcess


def assert_as_written(data: Path) -> None:
    """Whatever a test did to its host: the logs verify, and the tables beside them are what they say."""
    if has_database(data):
        assert [looked.sentence for looked in look(data) if looked.problem] == []
        assert [difference.sentence for difference in compare(data)] == []


@pytest.fixture(params=["embedded", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the hosts of a test keep conversations; a test that asks for it runs once on each."""
    if request.param == "embedded":
        yield "embedded"
    else:
        with a_database() as address:
            yield address


@pytest.fixture
def new_host(tmp_path: Path) -> Iterator[Callable[..., HostProcess]]:
    """Makes hosts that are gone after the test, whatever happened in it."""
    made: list[HostProcess] = []

    def make(name: str = "data", *, store: str = "embedded", **more: Any) -> HostProcess:
        env = {"PADDOCK_STORE": store} | more.pop("env", {})
        host = HostProcess(tmp_path / name, env=env, **more)
        made.append(host)
        return host

    yield make
    for host in made:
        if host.process is not None and host.process.poll() is None:
            host.process.kill()
            host.process.wait(30)
        assert_as_written(host.data)


@pytest.fixture
def host(new_host: Callable[..., HostProcess], store: str) -> HostProcess:
    return new_host(store=store).start()
