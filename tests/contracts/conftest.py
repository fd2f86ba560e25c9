"""Every storage plug passes the same contract: a plug joins by one word in PLUGS and one line in `open_plug`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from paddock.ports import Store
from paddock.storage.memory import open_memory_store
from paddock.storage.sqlite import SqliteStore

PLUGS = ["memory", "sqlite"]


def open_plug(name: str, directory: Path) -> Store:
    return {"memory": open_memory_store, "sqlite": lambda: SqliteStore(directory / "data")}[name]()


@pytest.fixture(params=PLUGS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    plug = open_plug(request.param, tmp_path)
    await plug.open()
    yield plug
    await plug.close()
