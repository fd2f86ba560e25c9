"""Every storage plug passes the same contract: a plug joins by one word in PLUGS and one line in `open_plug`."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paddock.ports import Store
from paddock.storage.postgres import PostgresStore
from paddock.storage.sqlite import SqliteStore
from postgres_server import a_database

PLUGS = ["sqlite", "postgres"]


@contextmanager
def open_plug(name: str, directory: Path) -> Iterator[Store]:
    """A store over nothing, to be opened; what it needed is gone afterwards."""
    match name:
        case "sqlite":
            yield SqliteStore(directory / "data")
        case _:
            with a_database() as address:
                yield PostgresStore(address)


@pytest.fixture(params=PLUGS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    with open_plug(request.param, tmp_path) as plug:
        await plug.open()
        yield plug
        await plug.close()
