"""Retention: deletes silent sessions, trims the beginnings of long ones, and deletes rows by age.

It works in small parts with pauses, so that messages are not held up, and tries again next time when the store is
away. Each sweep writes one audit row for each kind of row it deleted.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Protocol

import structlog

from paddock.host.audit import by_host
from paddock.host.keeping.deletion import PART, Deletion
from paddock.host.keeping.sweeping import its_turn
from paddock.host.session.sessions import Sessions
from paddock.ports import ConversationRecords, KeepingRecords
from paddock.ports.records import OldRows
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.log.chain import Head
from paddock.rules.log.forgetting import OldSession, Periods, before, trim_through
from paddock.rules.rows.rows import AuditRow, SessionRow

SWEEP_SECONDS = 6 * 3600.0
FIRST_SWEEP_SECONDS = 120.0
PAUSE_SECONDS = 0.01
"""The pause between two parts."""
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
"""Rows that are deleted by age, each with the name of its period."""

log = structlog.get_logger("paddock.retention")


class _Records(ConversationRecords, KeepingRecords, Protocol): ...


@dataclass(eq=False)
class Retention:
    store: _Records
    sessions: Sessions
    deletion: Deletion
    _: KW_ONLY
    clock: Callable[[], float]
    periods: Periods = field(default_factory=Periods)
    may_work: Callable[[], bool] = lambda: True
    """Whether this host is the one that sweeps for all."""

    async def keep_sweeping(self, chance: Callable[[], float]) -> None:
        """Sweep for as long as the host runs, at random times so that hosts do not coincide."""
        await asyncio.sleep(FIRST_SWEEP_SECONDS * (0.5 + chance()))
        while True:
            await its_turn(self.may_work)
            try:
                await self.sweep()
            except (StorageUnavailableError, HostError) as error:
                log.warning("could not forget what is past its time", action="retention.sweep", error=str(error))
            except Exception:  # the next sweep tries again
                log.exception("could not forget what is past its time", action="retention.sweep")
            await asyncio.sleep(SWEEP_SECONDS * (0.9 + chance() / 5))

    async def sweep(self) -> dict[str, int]:
        """Delete everything past its period; returns the counts by kind."""
        await self.deletion.purge()
        now, counts = self.clock(), dict[str, int]()
        if (old := before(now, self.periods.conversations)) is not None:
            counts["conversations"], counts["trimmed"] = await self._sweep_conversations(old, now)
        for kind, period in AGED:
            limit = before(now, getattr(self.periods, period))
            if limit is not None and (kind != "runs" or self.periods.conversations):
                counts[kind] = await self._sweep_rows(kind, limit)
        found = {kind: count for kind, count in counts.items() if count}
        if found:
            await self.store.write([_swept(kind, count, now) for kind, count in found.items()])
            log.info("forgot what is past its time", action="retention.sweep", **found)
        if found or self.deletion.scrub_wanted:
            self.deletion.scrub_wanted = False
            await self.store.scrub()
        return found

    async def _sweep_rows(self, kind: OldRows, limit: float) -> int:
        total = 0
        while count := await self.store.forget_old(kind, limit, limit=PART):
            total += count
            await asyncio.sleep(PAUSE_SECONDS)
            if count < PART:
                break
        return total

    async def _sweep_conversations(self, old: float, now: float) -> tuple[int, int]:
        deleted = trimmed = last = 0
        while page := await self.store.sessions_opened_before(old, after=last):
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
        """Work on one conversation; a failure is logged, so that the others have their turn."""
        try:
            return await work
        except StorageUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - such as a damaged log
            about = {"session_id": session.session_id, "reason": str(error)[:300]}
            log.warning("a conversation could not be forgotten yet", action="retention.forget", **about)
            return False

    async def _forget(self, session: OldSession, old: float) -> bool:
        return await self.deletion.forget(_row(session), None, buried_at=None, silent_since=old)

    async def _trim(self, session: OldSession, old: float, now: float) -> bool:
        """Trim the old beginning of a conversation part by part; True when anything was trimmed."""
        any_went = False
        while (through := await self._old_part(session.session_id, old)) is not None:
            if not await self.sessions.trim(session.session_id, through, session.updated_at, now):
                break  # it is in use; next time
            any_went = True
            await asyncio.sleep(PAUSE_SECONDS)
        return any_went

    async def _old_part(self, session_id: str, old: float) -> Head | None:
        if not any(fact.time < old for fact in await self.store.oldest_facts(session_id, limit=1)):
            return None
        facts = await self.store.oldest_facts(session_id, limit=2 * PART)
        turns = {fact.turn_id for fact in facts if fact.turn_id is not None}
        runs = [await self.store.run(run_id) for run_id in sorted(turns)]
        return trim_through(facts, {run.run_id: run for run in runs if run is not None}, old)


def _swept(kind: str, count: int, now: float) -> AuditRow:
    reason = f"{count} past their time"
    return by_host("retention.sweep", kind, at=now, scope="host", result="allowed", reason=reason)


def _row(session: OldSession) -> SessionRow:
    return SessionRow(session.session_id, session.workspace_id, session.user_id, 0.0)
