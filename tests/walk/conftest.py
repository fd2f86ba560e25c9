import asyncio
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from nats_server import NatsServer
from paddock.storage.files.backup import look
from paddock.storage.postgres import commands as rebuilding
from paddock.storage.sqlite.commands import compare, has_database
from postgres_server import a_database
from s3_server import an_imitation_of_s3
from walk.hosts import HostProcess
from walk.two_hosts import TwoHosts

ONE, TWO = "one host", "two hosts"
EVERYWHERE = [ONE, TWO]
"""The embedded default, and two hosts of a cluster with the client at the wrong one. A test of this room runs on each,
unless it says that it is about one host: `@alone`."""
alone = pytest.mark.parametrize("new_host", [ONE], indirect=True)
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


def assert_as_written(data: Path) -> None:
    """Whatever a test did to its host: the logs verify, and the tables beside them are what they say."""
    if has_database(data):
        assert [looked.sentence for looked in look(data) if looked.problem] == []
        assert [difference.sentence for difference in compare(data)] == []


async def assert_database_as_written(address: str) -> None:
    assert [(session, damage.what) async for session, damage in rebuilding.check(address) if damage] == []
    assert [difference.sentence async for difference in rebuilding.compare(address)] == []


@pytest.fixture(scope="session")
def engines() -> Iterator[dict[str, str]]:
    """What the hosts of a cluster share beside their database."""
    nats = NatsServer().start()
    with an_imitation_of_s3() as bucket:
        yield {"PADDOCK_BUS": nats.url, "PADDOCK_ARTIFACTS": bucket, **KEYS}
    nats.kill()


@contextmanager
def hosts_of(request: pytest.FixtureRequest, home: Path) -> Generator[Callable[..., HostProcess]]:
    """Makes hosts, each alone or in fact two, as the test is run; they are gone afterwards, whatever happened in it."""
    made: list[HostProcess] = []
    with ExitStack() as stack:
        shared: dict[str, str] = {}
        if request.param == TWO:
            shared = {"PADDOCK_STORE": stack.enter_context(a_database()), **request.getfixturevalue("engines")}

        def make(name: str = "data", **more: Any) -> HostProcess:
            env = shared | more.pop("env", {})
            made.append((TwoHosts if shared else HostProcess)(home / name, env=env, **more))
            return made[-1]

        yield make
        for host in made:
            host.end()
            assert_as_written(host.data)
        if shared:
            asyncio.run(assert_database_as_written(shared["PADDOCK_STORE"]))


@pytest.fixture(params=EVERYWHERE)
def new_host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., HostProcess]]:
    with hosts_of(request, tmp_path) as make:
        yield make


@pytest.fixture
def host(new_host: Callable[..., HostProcess]) -> HostProcess:
    return new_host().start()
