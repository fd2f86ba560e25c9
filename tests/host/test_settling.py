"""What a dead host was asking a model is on record as unknown, and counts."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contracts.builders import Owner, a_run, said
from contracts.conftest import PLUGS, open_plug
from contracts.test_calls import used
from paddock.host.calls.settling import Settling
from paddock.ports import Store
from paddock.rules.values import replace

pytestmark = pytest.mark.anyio


@pytest.fixture(params=PLUGS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    with open_plug(request.param, tmp_path) as store:
        await store.open()
        yield store
        await store.close()


@pytest.mark.spec("gate/questions")
async def test_what_a_dead_host_asked_is_unknown_after_a_restart_and_counts_for_the_budget(store: Store) -> None:
    owner = await Owner.of(store)
    await owner.write(said("hi"), rows=[a_run("run-1")])
    begun = used("u1", result="started", total_tokens=10, estimated=True)
    await store.write([begun])
    assert await Settling(store, lambda: 200.0).settle() == 0, "its run is live"
    await owner.write(rows=[a_run("run-1", status="failed")])
    assert await Settling(store, lambda: 200.0).settle() == 1
    assert await Settling(store, lambda: 200.0).settle() == 0
    assert await store.model_usage("run-1") == [replace(begun, result="unknown", ended_at=200.0)]
    assert (await store.spent(run_id="run-1")).total_tokens == 10
    (row,) = await store.audit(run_id="run-1")
    assert (row.action, row.resource, row.result, row.actor) == ("models.invoke", "demo", "unknown", "host")
