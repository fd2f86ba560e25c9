"""The audit trail: one row for each decision.

Denials and effects are written together with what they decide. Allowed reads and the usage of models follow within
50 ms, and always before the end of their run. Events that strangers can cause are counted: the first is a row, and one
more row gives the number of those that followed within a minute.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from paddock.ports import Rows
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.rows.rows import AuditRow, NotedRow
from paddock.rules.values import replace

log = structlog.get_logger("paddock.audit")

FLUSH_SECONDS = 0.02
MAX_PENDING = 10_000
RETRY_SECONDS = 1.0
COUNT_SECONDS = 60.0
MAX_COUNTED = 1000
"""Kinds of rows that are counted apart; further kinds are counted together, without an actor."""


def by_host(
    action: str,
    resource: str,
    *,
    at: float,
    result: str,
    reason: str,
    workspace_id: str = "",
    scope: str = "",
    run_id: str | None = None,
    session_id: str | None = None,
) -> AuditRow:
    """The audit row of a decision that the host took by itself."""
    return AuditRow(
        time=at,
        workspace_id=workspace_id,
        actor="host",
        action=action,
        resource=resource,
        scope=scope,
        result=result,
        reason=reason,
        run_id=run_id,
        session_id=session_id,
    )


class Audit:
    def __init__(self, records: Rows, spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]) -> None:
        self._records = records
        self._spawn = spawn
        self._pending: list[NotedRow] = []
        self._timer: asyncio.TimerHandle | None = None
        self._under_way: set[asyncio.Task[None]] = set()
        self._counted: dict[tuple[str, ...], tuple[AuditRow, int]] = {}

    def soon(self, row: NotedRow) -> None:
        """Write this row shortly, together with others."""
        self._pending.append(row)
        if len(self._pending) >= MAX_PENDING:
            self._go()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._go)

    def counted(self, row: AuditRow) -> None:
        """Write the first row of a kind and count those that follow within a minute: for what anybody can cause."""
        kind = (row.workspace_id, row.actor, row.action, row.resource, row.result, row.reason)
        if kind not in self._counted and len(self._counted) >= MAX_COUNTED:
            row = replace(row, workspace_id="", actor="", resource="", reason="of many kinds")
            kind = ("", "", row.action, "", row.result, row.reason)
        if kind in self._counted:
            self._counted[kind] = row, self._counted[kind][1] + 1
            return
        self._counted[kind] = row, 0
        self.soon(row)
        asyncio.get_running_loop().call_later(COUNT_SECONDS, self._write_count, kind)

    def _write_count(self, kind: tuple[str, ...]) -> None:
        row, more = self._counted.pop(kind, (None, 0))
        if row is not None and more:
            self.soon(replace(row, reason=f"{row.reason}; {more} more within {COUNT_SECONDS:g} seconds"))

    async def close(self) -> None:
        """Write everything that waits, counts included. Raises StorageUnavailableError."""
        for kind in list(self._counted):
            self._write_count(kind)
        self._rest()
        await self.flush()

    def hand_over(self, run_id: str) -> list[NotedRow]:
        """Take out the waiting rows of a run, to be written with its end."""
        if not self._pending:
            return []
        mine = [row for row in self._pending if row.run_id == run_id]
        if mine:
            self._pending = [row for row in self._pending if row.run_id != run_id]
        if not self._pending:
            self._rest()
        return mine

    async def flush(self) -> None:
        """Write the rows that wait, and wait for rows that are being written. Raises StorageUnavailableError."""
        await self._write()
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def _write(self) -> None:
        rows, self._pending = self._pending, []
        try:
            if rows:
                await self._records.write(rows)
        except StorageUnavailableError:
            waiting = [*rows, *self._pending]
            self._pending = waiting[:MAX_PENDING]
            if len(waiting) > MAX_PENDING:
                lost = len(waiting) - MAX_PENDING
                log.warning("rows are lost: the store is away and too many wait", action="audit.flush", rows=lost)
            raise

    def _go(self) -> None:
        self._rest()
        task = self._spawn(self._try())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def _rest(self) -> None:
        """Stop the timer: it would write the rows of the next run too early."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _try(self) -> None:
        try:
            await self._write()
        except StorageUnavailableError:
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(RETRY_SECONDS, self._go)
            log.warning("audit rows could not be written: the store is away", action="audit.flush")
