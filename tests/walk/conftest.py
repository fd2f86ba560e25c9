from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from walk.hosts import HostProcess


@pytest.fixture
def new_host(tmp_path: Path) -> Iterator[Callable[..., HostProcess]]:
    """Makes hosts that are gone after the test, whatever happened in it."""
    made: list[HostProcess] = []

    def make(name: str = "data", **more: Any) -> HostProcess:
        host = HostProcess(tmp_path / name, **more)
        made.append(host)
        return host

    yield make
    for host in made:
        if host.process is not None and host.process.poll() is None:
            host.process.kill()
            host.process.wait(10)


@pytest.fixture
def host(new_host: Callable[..., HostProcess]) -> HostProcess:
    return new_host().start()
