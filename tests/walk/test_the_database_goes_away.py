"""A host on PostgreSQL whose database stops and starts again: refused while it is away, nothing lost, no restart."""

from collections.abc import Callable, Iterator

import pytest

import loopback
from patience import at_most
from postgres_server import Server, new_server
from walk.conftest import alone
from walk.hosts import HostProcess, text_of, wait_until


@pytest.fixture
def server() -> Iterator[Server]:
    server = new_server()
    yield server
    server.let_go()


@alone
def test_a_host_refuses_while_its_database_is_away_and_goes_on_when_it_is_back(
    server: Server, new_host: Callable[..., HostProcess]
) -> None:
    host = new_host(env={"PADDOCK_STORE": server.new_database()}).start()
    before = host.post("before").json()["taskId"]
    assert "before" in text_of(host.events(before))

    server.stop()
    wait_until(lambda: loopback.get(f"{host.url}/readyz").status_code == 503, 30, "the host noticing")
    refused = host.post("while it is away")
    assert (refused.status_code, "Retry-After" in refused.headers) == (503, True)

    server.start()
    wait_until(lambda: loopback.get(f"{host.url}/readyz").status_code == 200, at_most(5), "being ready again")
    after = host.post("after").json()["taskId"]
    assert "after" in text_of(host.events(after))
    assert "before" in text_of(host.events(before))
    assert host.stop() == 0
