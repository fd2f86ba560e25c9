"""The audit trail: rows are written soon and together, and a flush means that all of them are on record."""

import asyncio
from typing import Any

import anyio
import pytest

from paddock.host.audit import Audit
from paddock.rules.rows.rows import AuditRow
from stores import QuickStore

pytestmark = pytest.mark.anyio


class SlowStore(QuickStore):
    """A store whose first write waits until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = anyio.Event()
        self.go_on = anyio.Event()

    async def write(self, rows: Any) -> None:
        if not self.begun.is_set():
            self.begun.set()
            await self.go_on.wait()
        await super().write(rows)


async def test_a_flush_waits_for_rows_that_are_being_written_already() -> None:
    store = SlowStore()
    await store.open()
    audit = Audit(store, asyncio.create_task)
    audit.soon(AuditRow(1.0, "default", "ann", "run.start", "r1", "", "allowed", "in the grant"))
    await store.begun.wait()
    flushing = asyncio.create_task(audit.flush())
    await anyio.sleep(0)
    assert not flushing.done()
    store.go_on.set()
    await flushing
    assert len(await store.audit(limit=10)) == 1
    await store.close()
