"""What is noted while a host stops is on record too."""

from pathlib import Path

import pytest

from contracts.builders import a_decision
from paddock.compose.build import house_of
from paddock.compose.rooms import rooms_of
from paddock.settings import Settings
from paddock.storage.sqlite import SqliteStore

pytestmark = pytest.mark.anyio


async def test_what_is_noted_while_a_host_stops_is_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = rooms_of(Settings(data=tmp_path))
    gateway = type(rooms.machinery.gateway)
    stop = gateway.stop

    async def noted() -> None:
        await stop(rooms.machinery.gateway)
        rooms.ground.audit.soon(a_decision("the last thing a run used"))

    monkeypatch.setattr(gateway, "stop", lambda _: noted())
    async with house_of(rooms).running():
        pass
    store = SqliteStore(tmp_path)
    await store.open()
    noted_rows = [row.reason for row in await store.audit()]
    await store.close()
    assert "the last thing a run used" in noted_rows
