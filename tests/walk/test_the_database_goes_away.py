"""A host on PostgreSQL whose database stops and starts again: refused while it is away, nothing lost, no restart."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from postgres_server import Server, new_server
from walk.hosts import HostProcess, text_of, wait_until


@pytest.fixture
def server() -> Iterator[Server]:
    server = new_server()
    yield server
    server.let_go()


def test_a_host_refuses_while_its_database_is_away_and_goes_on_when_it_is_back(
    server: Server, new_host: Callable[..., HostProcess]
) -> None:
    host = new_host(store=server.new_database()).start()
    before = host.post("before").json()["taskId"]
    assert text_of(host.events(before)) == "before"

    server.stop()
    wait_until(lambda: httpx.get(f"{host.url}/readyz").status_code == 503, 5, "the host noticing")
    refused = host.post("while it is away")
    assert (refused.status_code, "Retry-After" in refused.headers) == (503, True)

    server.start()
    wait_until(lambda: httpx.get(f"{host.url}/readyz").status_code == 200, 5, "being ready again")
    after = host.post("after").json()["taskId"]
    assert text_of(host.events(after)) == "after"
    assert text_of(host.events(before)) == "before"
    assert host.stop() == 0


def test_a_second_host_on_the_same_database_is_refused_and_the_first_goes_on(
    server: Server, new_host: Callable[..., HostProcess]
) -> None:
    address = server.new_database()
    first, second = new_host("first", store=address).start(), new_host("second", store=address)
    with pytest.raises(AssertionError, match="is served by another host: stop that one, or use another database"):
        second.start()
    assert second.process is not None
    assert second.process.wait(5) == 2
    assert text_of(first.events(first.post("still here").json()["taskId"])) == "still here"
