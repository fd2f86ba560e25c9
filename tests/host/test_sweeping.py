"""Sweeping what several hosts share is one host's business: else each would do it, and say that it did."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from paddock.compose import rooms_of
from paddock.host.keeping import retention as retention_room
from paddock.host.keeping import sweeping
from paddock.host.keeping.retention import Retention
from paddock.host.keeping.sweeping import Sweeper
from paddock.settings import Settings
from stores import QuickBlobs, QuickStore


@pytest.mark.anyio
async def test_only_the_host_whose_turn_it_is_sweeps_and_one_whose_turn_it_becomes(
    store: QuickStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweeping, "TURN_SECONDS", 0.0)
    asked, swept = list[bool](), asyncio.Event()

    def its_turn() -> bool:
        asked.append(len(asked) >= 3)
        return asked[-1]

    nothing = cast("Any", None)
    sweeper = Sweeper(store, QuickBlobs(), clock=lambda: 0.0, may_work=its_turn)
    retention = Retention(store, nothing, nothing, clock=lambda: 0.0, may_work=its_turn)

    async def sweep() -> int:
        assert asked == [False, False, False, True]
        swept.set()
        return 0

    monkeypatch.setattr(retention_room, "FIRST_SWEEP_SECONDS", 0.0)
    for one, keep in ((sweeper, sweeper.keep_sweeping), (retention, lambda: retention.keep_sweeping(lambda: 0.0))):
        asked.clear()
        swept.clear()
        monkeypatch.setattr(one, "sweep", sweep)
        sweeping_on = asyncio.create_task(keep())
        async with asyncio.timeout(30):
            await swept.wait()
        sweeping_on.cancel()


def test_where_hosts_share_everything_who_has_not_joined_them_sweeps_nothing(tmp_path: Path) -> None:
    address = "postgresql://nobody@127.0.0.1:9/nothing"
    alone = rooms_of(Settings(data=tmp_path)).upkeep
    shared = rooms_of(Settings(data=tmp_path, store=address, artifacts="s3://bucket")).upkeep
    own_files = rooms_of(Settings(data=tmp_path, store=address)).upkeep
    assert [host.sweeper.may_work() for host in (alone, shared, own_files)] == [True, False, True]
    assert [host.retention.may_work() for host in (alone, shared, own_files)] == [True, False, False]
