"""Fires jobs: finds those that are due, hands each in like any other run, and sleeps until the next tick.

A tick leads to one run. Its row is written in the commit of the run under a unique key, so neither a restart nor a
second host can fire it twice. Claims only keep two hosts from trying at once.
"""

import asyncio
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Protocol

import msgspec
import structlog

from paddock.host.agents.agents import Agents
from paddock.host.audit import by_host
from paddock.host.conflicts import written_first
from paddock.host.conversations.inbox import Inbox
from paddock.host.ids import new_id
from paddock.host.people.principals import Principal
from paddock.host.session.arrivals import Accepted, Firing, NewRun
from paddock.host.zones import find_zone
from paddock.ports import ApiKeys, AutomationRecords
from paddock.ports.places import Places
from paddock.ports.waiting import rung_within, until
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.log.payloads import SCHEDULE, RunEvent
from paddock.rules.rows.automation import AutomationRow, JobClaim, JobFreed, JobGoesOn, JobMoves, TickRow
from paddock.rules.rows.rows import AuditRow
from paddock.rules.schedule.schedule import Due, Job, ScheduleError, due, from_body

log = structlog.get_logger("paddock.scheduler")

CLAIM_SECONDS = 60.0
ACCEPT_SECONDS = 45.0
"""Less than a claim lasts, so that no work goes on under an expired claim."""
AT_ONCE = 8
EACH = 6
"""How many ticks are fired at the same time, and how many of one workspace."""
TAKE = 50
RETRY_SECONDS = 1.0
LEFT_SECONDS = 3.0
"""How long a full host leaves a tick to the other hosts."""
AGAIN_SECONDS = 5.0
"""After this pause a tick that could not be fired is tried again, here or at another host."""
REMOVED = "all keys of the job's user were revoked; it goes on when they have one again"


class _Records(AutomationRecords, ApiKeys, Protocol): ...


@dataclass(eq=False)
class Scheduler:
    store: _Records
    inbox: Inbox
    _: KW_ONLY
    agents: Agents
    clock: Callable[[], float]
    tokens: bool = False
    """Users may also sign in by token, so a user without keys is not taken for removed."""
    _bell: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        self._places = Places(AT_ONCE, each=EACH, waiting=TAKE, waiting_in_all=TAKE)

    def wake(self) -> None:
        self._bell.set()

    async def run(self) -> None:
        """Fire what is due, for as long as the host runs."""
        while True:
            try:
                await self.run_due()
                pause = await self._pause()
            except (HostError, StorageUnavailableError) as error:
                log.warning("jobs cannot be looked at now", action="automations.look", reason=str(error))
                pause = RETRY_SECONDS
            await rung_within(self._bell, pause)

    async def run_due(self) -> int:
        """Handle every job that is due; returns how many. A full host leaves new ticks to other hosts for a moment."""
        if self.inbox.closed:
            return 0
        left = 0.0 if self.inbox.has_room else LEFT_SECONDS
        found = await self.store.due_automations(self.clock() - left, limit=TAKE)
        await asyncio.gather(*(self._in_turn(row) for row in found))
        return len(found)

    async def fire_now(self, row: AutomationRow) -> Accepted:
        """Start a run of the job now; its schedule stays as it is."""
        return await self._fire(row, from_body(row.body), Firing(row.job_id, self.clock(), None, "manual"))

    async def _pause(self) -> float:
        if not self.inbox.has_room:
            return RETRY_SECONDS
        return until(await self.store.next_automation_at(), self.clock())

    async def _in_turn(self, row: AutomationRow) -> None:
        async with self._places.taken(row.workspace_id):
            try:
                async with asyncio.timeout(ACCEPT_SECONDS):
                    await self._handle(row)
            except (HostError, StorageUnavailableError, TimeoutError) as error:
                log.warning("a tick is tried again", action="automations.fire", job=row.job_id, reason=str(error))
            except Exception:
                log.exception("a job cannot be fired", action="automations.fire", job=row.job_id)

    async def _handle(self, row: AutomationRow) -> None:
        now, tick, token = self.clock(), row.next_at, new_id()
        if tick is None:
            return
        await self.store.write([JobClaim(row.job_id, tick, token, now + CLAIM_SECONDS, now)])
        if await self.store.job_claim(row.job_id) != token:
            return
        known = await self.store.automation(row.job_id)
        if known is None or not known.enabled or known.next_at != tick:
            return  # its user changed it meanwhile
        try:
            await self._handle_claimed(known, tick, now)
        except (HostError, StorageUnavailableError):
            await self.store.write([JobFreed(row.job_id, token, self.clock() + AGAIN_SECONDS)])
            raise

    async def _handle_claimed(self, row: AutomationRow, tick: float, now: float) -> None:
        job = from_body(row.body)
        found = _what_is_due(job, tick, now)
        if isinstance(found, str):
            await self._record(row, TickRow(row.job_id, tick, "refused", now, reason=found))
        elif found.skipped is not None:
            await self._skip(row, found, now)
        elif found.fire is not None:
            await self._fire_tick(row, job, Firing(row.job_id, found.fire, found.next_at))
        else:
            await self._record(row, TickRow(row.job_id, tick, "skipped", now, next_at=found.next_at))

    async def _skip(self, row: AutomationRow, found: Due, now: float) -> None:
        """Record missed ticks as skipped. One that is to be fired all the same becomes due at once."""
        assert found.skipped is not None
        first, last = found.skipped
        upcoming = found.fire if found.fire is not None else found.next_at
        why = "no host was running to fire it"
        await self._record(row, TickRow(row.job_id, first, "skipped", now, through=last, reason=why, next_at=upcoming))
        self.wake()

    async def _fire_tick(self, row: AutomationRow, job: Job, firing: Firing) -> None:
        if await self.store.tick(row.job_id, firing.tick) is not None:
            await self._go_on(row, firing.next_at)  # an edit moved the job back to a tick that was fired
            return
        try:
            await self._check_owner(row)
            await self._fire(row, job, firing)
        except HostError as error:
            if error.retryable or error.code is ErrorCode.UNAVAILABLE:
                raise
            if await self.store.automation(row.job_id) is None:
                return
            refused = TickRow(
                row.job_id, firing.tick, "refused", self.clock(), reason=error.message[:500], next_at=firing.next_at
            )
            await self._record(row, refused)

    async def _check_owner(self, row: AutomationRow) -> None:
        """Raises UNAUTHORIZED for a user whose keys were all revoked."""
        keys = () if self.tokens else await self.store.api_keys(row.workspace_id, user_id=row.user_id)
        if keys and all(key.revoked_at is not None for key in keys):
            raise HostError(ErrorCode.UNAUTHORIZED, REMOVED)

    async def _record(self, row: AutomationRow, tick: TickRow) -> None:
        if not await written_first(self.store, [tick, _judged(row, tick)]):
            await self._go_on(row, tick.next_at)  # it is recorded already

    async def _go_on(self, row: AutomationRow, next_at: float | None) -> None:
        """Move the job to its next tick, unless it was moved meanwhile."""
        assert row.next_at is not None
        await self.store.write([JobGoesOn(row.job_id, row.next_at, next_at)])

    async def _fire(self, row: AutomationRow, job: Job, firing: Firing) -> Accepted:
        agent_id = job.agent_id or self.agents.default_agent_id
        if agent_id is None or not self.agents.known(agent_id, row.workspace_id):
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"there is no agent {agent_id!r} any more; change the job")
        try:
            return await self.inbox.accept(_new_run(row, job, agent_id, firing))
        except HostError as error:
            if error.code is not ErrorCode.NOT_FOUND:
                raise
        await self.store.write([JobMoves(row.job_id, row.thread_id, new_id())])  # its conversation was deleted
        moved = await self.store.automation(row.job_id)
        if moved is None:
            raise HostError(ErrorCode.NOT_FOUND, "the automation was deleted")
        return await self.inbox.accept(_new_run(moved, job, agent_id, firing))


def _what_is_due(job: Job, tick: float, now: float) -> Due | str:
    zone = find_zone(job.time_zone)
    if zone is None:
        return f"the time zone {job.time_zone!r} is not known here any more; change the job"
    try:
        return due(job.schedule, zone, tick, now, job.missed)
    except ScheduleError as error:
        return str(error)


def _new_run(row: AutomationRow, job: Job, agent_id: str, firing: Firing) -> NewRun:
    when = datetime.fromtimestamp(firing.tick, UTC).isoformat().replace("+00:00", "Z")
    label = f"{firing.result}-{when}"
    data = {"job_id": row.job_id, "job_name": job.name, "tick": when, "manual": firing.result == "manual"}
    return NewRun(
        principal=Principal(row.workspace_id, row.user_id),
        session_id=row.thread_id,
        client_run_id=label,
        body_hash=sha256(msgspec.json.encode((row.job_id, label))).digest(),
        message={"id": f"{row.job_id}.{label}", "content": job.prompt},
        text=job.prompt,
        params=job.params(),
        agent_id=agent_id,
        source="scheduler",
        door="scheduler",
        event=RunEvent(
            SCHEDULE,
            event_time=firing.tick,
            data=data,
            subject={"subject_type": "schedule", "subject_id": row.job_id, "data": {"name": job.name}},
            tools=job.enabled_tools,
        ),
        time_zone=job.time_zone,
        cause=firing,
    )


def _judged(row: AutomationRow, tick: TickRow) -> AuditRow:
    return by_host(
        "automations.tick",
        row.job_id,
        at=tick.at,
        workspace_id=row.workspace_id,
        scope=row.thread_id,
        result=tick.result,
        reason=tick.reason,
        session_id=row.thread_id,
    )
