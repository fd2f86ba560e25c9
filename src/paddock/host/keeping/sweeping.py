"""Sweeping of files: expired artifacts, unfinished uploads, and bytes without a row.

Rows are deleted first and their bytes after. A crash in between leaves bytes without a row, which are looked for.
"""

import asyncio
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import structlog

from paddock.host.audit import by_host
from paddock.host.calls.artifacts import free
from paddock.ports import KeptRecords
from paddock.ports.artifacts import Blobs
from paddock.rules.access.permissions import UPLOADS
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows.rows import ArtifactGone, ArtifactRow, AuditRow, StorageRow

SWEEP_SECONDS = 600.0
TURN_SECONDS = 30.0
"""How often a host checks whether it has become the one that sweeps."""
LOOK_FOR_STRAYS_EVERY = 36
"""Sweeps between two looks at all bytes: six hours."""
GRACE_SECONDS = 3600.0
"""An expired artifact cannot be read, but its bytes stay this long for work in progress."""
UPLOAD_SECONDS = 3600.0
"""How long an unfinished upload is kept."""

log = structlog.get_logger("paddock.sweeping")


async def its_turn(may_work: Callable[[], bool]) -> None:
    """Wait until it is this host's turn."""
    while not may_work():  # noqa: ASYNC110 - the turn changes when hosts come and go
        await asyncio.sleep(TURN_SECONDS)


@dataclass(eq=False)
class Sweeper:
    records: KeptRecords
    blobs: Blobs
    _: KW_ONLY
    clock: Callable[[], float]
    may_work: Callable[[], bool] = lambda: True
    """Whether this host is the one that sweeps for all."""

    async def keep_sweeping(self) -> None:
        """Sweep for as long as the host runs."""
        rounds = 0
        while True:
            await its_turn(self.may_work)
            try:
                await self.sweep()
                if rounds % LOOK_FOR_STRAYS_EVERY == 0:
                    await self.remove_strays()
            except (StorageUnavailableError, HostError) as error:
                log.warning("could not sweep", action="artifacts.sweep", error=str(error))
            except Exception:  # the next sweep tries again
                log.exception("could not sweep", action="artifacts.sweep")
            rounds += 1
            await asyncio.sleep(SWEEP_SECONDS)

    async def sweep(self) -> int:
        """Delete expired artifacts and unfinished uploads; returns how many rows."""
        return await self._expired() + await self._unfinished()

    async def _expired(self) -> int:
        count = 0
        while rows := await self.records.expired_artifacts(self.clock() - GRACE_SECONDS):
            gone = [ArtifactGone(row.artifact_id) for row in rows]
            await self.records.write([*gone, *(self._forgotten(row) for row in rows)])
            await free(self.records, self.blobs, [row.sha256 for row in rows])
            count += len(rows)
        return count

    def _forgotten(self, row: ArtifactRow) -> AuditRow:
        return by_host(
            "artifact.forget",
            row.artifact_id,
            at=self.clock(),
            workspace_id=row.workspace_id,
            scope=row.conversation_id or "",
            result="allowed",
            reason="past its time",
            run_id=row.run_id,
            session_id=row.conversation_id,
        )

    async def _unfinished(self) -> int:
        count, now = 0, self.clock()
        while rows := await self.records.stored_before(UPLOADS, now - UPLOAD_SECONDS):
            await self.records.write([StorageRow(row.area_key, row.key, None, 0, now) for row in rows])
            await free(self.records, self.blobs, [row.sha256 for row in rows if row.sha256 is not None])
            count += len(rows)
        return count

    async def remove_strays(self) -> int:
        """Remove old bytes without a row; returns how many."""
        count = 0
        async for names in self.blobs.older_than(GRACE_SECONDS):
            count += await free(self.records, self.blobs, names)
        if count:
            log.info("bytes that no row needs were removed", action="artifacts.strays", count=count)
        return count
