"""Retention: deletes silent sessions, trims the beginnings of long ones, and deletes rows by age.

Nothing here runs on the way of a message: parts are small, others come between them, and a store that is away is tried
again next time. Each sweep leaves one audit row for each kind of thing it forgot.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import structlog

from paddock.host.keeping.deletion import PART, Deletion
from paddock.host.keeping.sweeping import its_turn
from paddock.host.session.sessions import Sessions
from paddock.ports import ConversationRecords, KeepingRecords
from paddock.ports.keeping import OldRows
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.log.chain import Head
from paddock.rules.log.retention import OldSession, Periods, before, trim_through
from paddock.rules.rows.rows import AuditRow, SessionRow

SWEEP_SECONDS = 6 * 3600.0
FIRST_SWEEP_SECONDS = 120.0
PAUSE_SECONDS = 0.01
"""Between two parts: whoever talks goes first."""
AGED: Sequence[tuple[OldRows, str]] = (
    ("tool_calls", "calls"),
    ("model_usage", "calls"),
    ("approvals", "calls"),
    ("deliveries", "calls"),
    ("platform_events", "calls"),
    ("automation_ticks", "calls"),
    ("audit", "audit"),
    ("runs", "audit"),
    ("tombstones", "audit"),
)
"""Rows that go by age, and whose period says when."""

log = structlog.get_logger("paddock.retention")


class _Records(ConversationRecords, KeepingRecords, Protocol):
    """The ports of the store that are used here."""


class Retention:
    def __init__(
        self,
        store: _Records,
        sessions: Sessions,
        deletion: Deletion,
        *,
        clock: Callable[[], float],
        periods: Periods | None = None,
        may_work: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_work`: whether it is this host that forgets, where several share what is forgotten."""
        self._store = store
        self._sessions = sessions
        self._deletion = deletion
        self._clock = clock
        self._periods = periods or Periods()
        self.may_work = may_work

    async def keep_sweeping(self, chance: Callable[[], float]) -> None:
        """For as long as the house stands, and never all hosts at the same moment."""
        await asyncio.sleep(FIRST_SWEEP_SECONDS * (0.5 + chance()))
        while True:
            await its_turn(self.may_work)
            try:
                await self.sweep()
            except (StorageUnavailableError, HostError) as error:
                log.warning("could not forget what is past its time", action="retention.sweep", error=str(error))
            except Exception:  # whatever it was, the next sweep is to come
                log.exception("could not forget what is past its time", action="retention.sweep")
            await asyncio.sleep(SWEEP_SECONDS * (0.9 + chance() / 5))

    async def sweep(self) -> dict[str, int]:
        """Forget what is past its time: how much of each kind. One audit row for each kind."""
        await self._deletion.purge()
        now, counts = self._clock(), dict[str, int]()
        if (old := before(now, self._periods.conversations)) is not None:
            counts["conversations"], counts["trimmed"] = await self._sweep_conversations(old, now)
        for kind, period in AGED:
            limit = before(now, getattr(self._periods, period))
            if limit is not None and (kind != "runs" or self._periods.conversations):
                counts[kind] = await self._sweep_rows(kind, limit)
        found = {kind: count for kind, count in counts.items() if count}
        if found:
            await self._store.write([self._swept(kind, count, now) for kind, count in found.items()])
            log.info("forgot what is past its time", action="retention.sweep", **found)
        if found or self._deletion.scrub_wanted:
            self._deletion.scrub_wanted = False
            await self._store.scrub()
        return found

    async def _sweep_rows(self, kind: OldRows, limit: float) -> int:
        total = 0
        while count := await self._store.forget_old(kind, limit, limit=PART):
            total += count
            await asyncio.sleep(PAUSE_SECONDS)
            if count < PART:
                break
        return total

    async def _sweep_conversations(self, old: float, now: float) -> tuple[int, int]:
        deleted = trimmed = last = 0
        while page := await self._store.sessions_opened_before(old, after=last):
            for session in page:
                if session.updated_at < old:
                    deleted += await self._try(session, self._forget(session, old))
                else:
                    trimmed += await self._try(session, self._trim(session, old, now))
                await asyncio.sleep(0)
            last = page[-1].number
            await asyncio.sleep(PAUSE_SECONDS)
        return deleted, trimmed

    async def _try(self, session: OldSession, work: Awaitable[bool]) -> bool:
        """One conversation that cannot be read or forgotten keeps no other from it."""
        try:
            return await work
        except StorageUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - also a log that is damaged
            about = {"session_id": session.session_id, "reason": str(error)[:300]}
            log.warning("a conversation could not be forgotten yet", action="retention.forget", **about)
            return False

    async def _forget(self, session: OldSession, old: float) -> bool:
        return await self._deletion.forget(_row(session), None, buried_at=None, silent_since=old)

    async def _trim(self, session: OldSession, old: float, now: float) -> bool:
        """Trim a conversation that is still used, part by part; whether anything went."""
        any_went = False
        while (through := await self._old_part(session.session_id, old)) is not None:
            if not await self._sessions.trim(session.session_id, through, session.updated_at, now):
                break  # it is in use; next time
            any_went = True
            await asyncio.sleep(PAUSE_SECONDS)
        return any_went

    async def _old_part(self, session_id: str, old: float) -> Head | None:
        if not any(fact.time < old for fact in await self._store.oldest_facts(session_id, limit=1)):
            return None
        facts = await self._store.oldest_facts(session_id, limit=2 * PART)
        turns = {fact.turn_id for fact in facts if fact.turn_id is not None}
        runs = [await self._store.run(turn_id) for turn_id in sorted(turns)]
        return trim_through(facts, {run.run_id: run for run in runs if run is not None}, old)

    def _swept(self, kind: str, count: int, now: float) -> AuditRow:
        return AuditRow(
            time=now,
            workspace_id="",
            actor="host",
            action="retention.sweep",
            resource=kind,
            scope="host",
            result="allowed",
            reason=f"{count} past their time",
        )


def _row(session: OldSession) -> SessionRow:
    return SessionRow(session.session_id, session.workspace_id, session.user_id, 0.0)
