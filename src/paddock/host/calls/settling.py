"""Settles calls of tools and models that a dead host left behind: their run is over and nobody knows what came of them.

They are found at the next start, or by another host, and recorded as unknown. Nothing is called again.
"""

import asyncio
from collections.abc import Callable
from math import inf

import structlog

from paddock.ports import CallRecords
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.rows.calls import ModelUsageRow, ToolCallRow
from paddock.rules.rows.rows import AuditRow
from paddock.rules.values import replace

log = structlog.get_logger("paddock.calls")

SETTLE_SECONDS = 5.0
"""Seconds that a cancelled call waits until its end is recorded."""
GRACE_SECONDS = SETTLE_SECONDS + 1.0
"""Seconds after the end of a run until the outcome of its open calls is recorded as unknown."""
SETTLE_EVERY_SECONDS = 2.0


class Settling:
    def __init__(self, records: CallRecords, clock: Callable[[], float]) -> None:
        self._records = records
        self._clock = clock

    async def settle(self, *, alone: bool = True) -> int:
        """Record calls without an outcome whose run is over as unknown: their host is gone.

        When not `alone`, a host may just have ended the run and be about to write the outcome.
        """
        now = self._clock()
        since = inf if alone else now - GRACE_SECONDS
        tools = await self._records.unanswered_tool_calls(over_since=since)
        models = await self._records.unanswered_model_calls(over_since=since)
        for row in (*tools, *models):
            await self._records.write([_unknown(row, now), _decision(row, now)])
        if tools or models:
            text = "calls whose run is over have no outcome"
            log.warning(text, action="calls.settle", tools=len(tools), models=len(models))
        return len(tools) + len(models)

    async def keep_settling(self) -> None:
        """Settle calls again and again for as long as the host runs, where no other host does it."""
        while True:
            await asyncio.sleep(SETTLE_EVERY_SECONDS)
            try:
                await self.settle(alone=False)
            except StorageUnavailableError as error:
                log.info("calls without an outcome are looked for later", action="calls.settle", reason=str(error))


def _unknown(row: ToolCallRow | ModelUsageRow, now: float) -> ToolCallRow | ModelUsageRow:
    if isinstance(row, ToolCallRow):
        return replace(row, status="unknown", ended_at=now)
    return replace(row, result="unknown", ended_at=now)


def _decision(row: ToolCallRow | ModelUsageRow, now: float) -> AuditRow:
    of_a_tool = isinstance(row, ToolCallRow)
    return AuditRow(
        time=now,
        workspace_id=row.workspace_id,
        actor="host",
        action="tools.call" if of_a_tool else f"models.{row.operation}",
        resource=row.tool_name if of_a_tool else row.model_id,
        scope="",
        result="unknown",
        reason=f"call {row.call_id} was made and its outcome was never learned; it is not made again",
        run_id=row.run_id,
        session_id=row.session_id,
    )
