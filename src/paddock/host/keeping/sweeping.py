"""Forgets what nobody needs: artifacts past their time, parts of values never finished, bytes without a row.

Rows go first, bytes after. Whatever a crash leaves in between is bytes without a row, and those are looked for.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from paddock.ports import KeptRecords
from paddock.ports.artifacts import Blobs
from paddock.rules.access.areas import UPLOADS
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows.rows import ArtifactGone, ArtifactRow, AuditRow, StorageRow

SWEEP_SECONDS = 600.0
TURN_SECONDS = 30.0
"""How often a host asks whether it has become the one that sweeps."""
LOOK_FOR_STRAYS_EVERY = 36
"""Sweeps between two looks at all bytes: six hours."""
GRACE_SECONDS = 3600.0
"""Nobody may read an artifact past its time; it is removed later, so that no work in progress loses its bytes."""
UPLOAD_SECONDS = 3600.0
"""How long the parts of a value wait for its last."""

log = structlog.get_logger("paddock.sweeping")


async def its_turn(may_work: Callable[[], bool]) -> None:
    """Until this host is the one to do it."""
    while not may_work():  # noqa: ASYNC110 - whose turn it is changes when hosts come and go
        await asyncio.sleep(TURN_SECONDS)


async def free(records: KeptRecords, blobs: Blobs, hashes: Sequence[str]) -> int:
    """Remove those of these bytes that no row needs; how many."""
    used = await records.blobs_in_use(hashes)
    removed = 0
    for name in sorted({*hashes} - used):
        removed += await blobs.remove(name, needed=lambda name=name: _needed(records, name))
    return removed


async def _needed(records: KeptRecords, name: str) -> bool:
    return bool(await records.blobs_in_use([name]))


class Sweeper:
    def __init__(
        self,
        records: KeptRecords,
        blobs: Blobs,
        *,
        clock: Callable[[], float],
        may_work: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_work`: whether it is this host that sweeps, where several share what is swept: hosts that start together
        would all do the same at the same moment, and each would say that it did."""
        self._records = records
        self._blobs = blobs
        self._clock = clock
        self.may_work = may_work

    async def keep_sweeping(self) -> None:
        """For as long as the house stands. A store that is away is tried again next time."""
        rounds = 0
        while True:
            await its_turn(self.may_work)
            try:
                await self.sweep()
                if rounds % LOOK_FOR_STRAYS_EVERY == 0:
                    await self.remove_strays()
            except (StorageUnavailableError, HostError) as error:
                log.warning("could not sweep", action="artifacts.sweep", error=str(error))
            except Exception:  # whatever it was, the next sweep is to come
                log.exception("could not sweep", action="artifacts.sweep")
            rounds += 1
            await asyncio.sleep(SWEEP_SECONDS)

    async def sweep(self) -> int:
        """Forget what is past its time; how many rows."""
        return await self._expired() + await self._unfinished()

    async def _expired(self) -> int:
        count = 0
        while rows := await self._records.expired_artifacts(self._clock() - GRACE_SECONDS):
            gone = [ArtifactGone(row.artifact_id) for row in rows]
            await self._records.write([*gone, *(self._forgotten(row) for row in rows)])
            await free(self._records, self._blobs, [row.sha256 for row in rows])
            count += len(rows)
        return count

    def _forgotten(self, row: ArtifactRow) -> AuditRow:
        return AuditRow(
            time=self._clock(),
            workspace_id=row.workspace_id,
            actor="host",
            action="artifact.forget",
            resource=row.artifact_id,
            scope=row.conversation_id or "",
            result="allowed",
            reason="past its time",
            run_id=row.run_id,
            session_id=row.conversation_id,
        )

    async def _unfinished(self) -> int:
        count, now = 0, self._clock()
        while rows := await self._records.stored_before(UPLOADS, now - UPLOAD_SECONDS):
            await self._records.write([StorageRow(row.area_key, row.key, None, 0, now) for row in rows])
            await free(self._records, self._blobs, [row.sha256 for row in rows if row.sha256 is not None])
            count += len(rows)
        return count

    async def remove_strays(self) -> int:
        """Remove bytes without a row that have lain there a while; how many."""
        count = 0
        async for names in self._blobs.older_than(GRACE_SECONDS):
            count += await free(self._records, self._blobs, names)
        if count:
            log.info("bytes that no row needs were removed", action="artifacts.strays", count=count)
        return count
