"""Delivery of messages to platforms: in order, signed, tried again for hours, and then kept as failed.

A delivery is stored in the commit of its fact, so a host that dies loses none. An attempt without a known end is made
again with the same `webhook-id`, by which a platform recognises it.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Protocol

import msgspec
import structlog

from paddock.host.audit import by_host
from paddock.host.ids import new_id
from paddock.host.people.principals import Principal
from paddock.host.platforms.platforms import POST_SECONDS, Platform, Platforms
from paddock.host.runs.outcomes import Outcomes
from paddock.ports import ConversationRecords, DeliveryRecords, KeptRecords
from paddock.ports.places import Places
from paddock.ports.platforms import Posted
from paddock.ports.waiting import rung_within, until
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.log.payloads import as_object
from paddock.rules.platforms.deliveries import after_failure
from paddock.rules.rows.deliveries import DeliveryAgain, DeliveryClaim, DeliveryOutcome, DeliveryRow
from paddock.rules.rows.rows import Apart, AuditRow

log = structlog.get_logger("paddock.deliveries")

CLAIM_SECONDS = 60.0
AT_ONCE, EACH = 8, 4
"""How many deliveries are tried at the same time, and how many of one workspace."""
TAKE, TAKE_OF_ONE = 64, 16
"""How many deliveries are tried or wait for a free slot, and how many of one workspace."""
RETRY_SECONDS = 1.0
MARK_OF_A_FILE = b'"artifact_id"'
"""Text in the body of every delivery of a file, and of few others."""
GONE = 410
"""The HTTP status of a webhook that does not exist any more."""

Address = Callable[[str, str, str], str | None]
"""Returns a signed URL of a file for (workspace, user, artifact), if there is one."""


class _Records(ConversationRecords, DeliveryRecords, KeptRecords, Protocol): ...


@dataclass(eq=False)
class Deliveries:
    records: _Records
    platforms: Platforms
    _: KW_ONLY
    outcomes: Outcomes
    clock: Callable[[], float]
    address: Address = lambda _workspace, _user, _artifact: None
    _bell: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _under_way: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """Deliveries that are tried now or wait for a free slot, and their workspaces."""

    def __post_init__(self) -> None:
        self._places = Places(AT_ONCE, each=EACH, waiting=TAKE, waiting_in_all=TAKE)

    def wake(self) -> None:
        self._bell.set()

    async def run(self) -> None:
        """Deliver what is due, for as long as the host runs. A slow platform does not hold up other workspaces."""
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    for row in await self._due():
                        group.create_task(self._try_and_ring(row))
                    pause = until(await self.records.next_delivery_at(), self.clock())
                except (HostError, StorageUnavailableError) as error:
                    log.warning("deliveries cannot be looked at now", action="deliveries.look", reason=str(error))
                    pause = RETRY_SECONDS
                await rung_within(self._bell, max(pause, RETRY_SECONDS) if self._under_way else pause)

    async def send_due(self) -> int:
        """Try every delivery that is due, one per conversation; returns how many attempts were completed."""
        return sum(await asyncio.gather(*(self._in_turn(row) for row in await self._due())))

    # --- for administrators ------------------------------------------------------------------------------------------

    async def list(
        self, who: Principal, *, status: str | None, before: str | None, limit: int
    ) -> Sequence[DeliveryRow]:
        return await self.records.deliveries(who.workspace_id, status=status, before=before, limit=limit)

    async def again(self, who: Principal, delivery_id: str) -> DeliveryRow:
        """Deliver once more what was given up."""
        row = await self._find(who, delivery_id)
        now = self.clock()
        session_id = row.session_id
        audit = who.audit(
            "deliveries.again", delivery_id, at=now, scope=session_id, run_id=row.run_id, session_id=session_id
        )
        await self.records.write([DeliveryAgain(delivery_id, now), audit])
        self.wake()
        return await self._find(who, delivery_id)

    async def _find(self, who: Principal, delivery_id: str) -> DeliveryRow:
        row = await self.records.delivery(delivery_id)
        if row is None or row.workspace_id != who.workspace_id:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such delivery")
        return row

    async def _due(self) -> Sequence[DeliveryRow]:
        found = await self.records.due_deliveries(self.clock(), limit=TAKE)
        begun: list[DeliveryRow] = []
        for row in found:
            mine = sum(1 for workspace in self._under_way.values() if workspace == row.workspace_id)
            if row.delivery_id not in self._under_way and len(self._under_way) < TAKE and mine < TAKE_OF_ONE:
                self._under_way[row.delivery_id] = row.workspace_id
                begun.append(row)
        return begun

    async def _try_and_ring(self, row: DeliveryRow) -> None:
        await self._in_turn(row)
        self._bell.set()

    async def _in_turn(self, row: DeliveryRow) -> bool:
        try:
            return await self._tried(row)
        finally:
            self._under_way.pop(row.delivery_id, None)

    async def _tried(self, row: DeliveryRow) -> bool:
        async with self._places.taken(row.workspace_id):
            try:
                return await self._deliver(row)
            except (HostError, StorageUnavailableError) as error:
                log.warning("a delivery is tried again", action="deliveries.deliver", reason=str(error))
            except Exception:
                log.exception("a delivery failed in the host", action="deliveries.deliver", delivery=row.delivery_id)
            return False

    async def _deliver(self, row: DeliveryRow) -> bool:
        token, now = new_id(), self.clock()
        await self.records.write([DeliveryClaim(row.delivery_id, token, now + CLAIM_SECONDS, now, row.attempts)])
        if await self.records.delivery_claim(row.delivery_id) != token:
            return False
        platform = self.platforms.find(row.platform)
        if platform is None:
            posted = Posted(None, f"platform {row.platform!r} is not set up any more")
        else:
            body = await self._with_address(platform, row)
            posted = await self.platforms.post(platform, row.delivery_id, body, seconds=POST_SECONDS)
        await self.outcomes.record(row.workspace_id, self._outcome(row, token, posted), seconds=None)
        return True

    async def _with_address(self, platform: Platform, row: DeliveryRow) -> bytes:
        """The body, with a signed URL if it delivers a file. It is signed at each attempt, as it soon expires."""
        if MARK_OF_A_FILE not in row.body:
            return row.body
        body = msgspec.json.decode(row.body)
        file = as_object(as_object(body.get("message")).get("artifact"))
        if not await self._was_shown(str(file.get("artifact_id")), row):
            return row.body
        who = platform.principal
        url = self.address(who.workspace_id, who.user_id, str(file["artifact_id"]))
        return row.body if url is None else msgspec.json.encode({**body, "attachments": [{**file, "url": url}]})

    async def _was_shown(self, artifact_id: str, row: DeliveryRow) -> bool:
        """True when the file is shown in the conversation the delivery goes to; a message may name any file."""
        file, run = await self.records.artifact(artifact_id), await self.records.run(row.run_id)
        if file is None or run is None or not file.published:
            return False
        return (file.conversation_id, file.thread_id) == (row.session_id, run.subthread_id)

    def _outcome(self, row: DeliveryRow, token: str, posted: Posted) -> Sequence[Apart]:
        now, attempts = self.clock(), row.attempts + 1
        if posted.ok:
            done = DeliveryOutcome(row.delivery_id, token, "delivered", attempts, None, "", now)
            return [done, _tried(row, "delivered", f"answered {posted.status}", now)]
        why = f"answered {posted.status}" if posted.status is not None else posted.problem
        due_at = after_failure(attempts, now, retry_after=posted.retry_after, gone=posted.status == GONE)
        if due_at is not None:
            return [DeliveryOutcome(row.delivery_id, token, "pending", attempts, due_at, why[:500], None)]
        log.warning("a delivery was given up", action="deliveries.dead", delivery=row.delivery_id, reason=why)
        dead = DeliveryOutcome(row.delivery_id, token, "dead", attempts, None, why[:500], now)
        return [dead, _tried(row, "dead", why[:500], now)]


def _tried(row: DeliveryRow, result: str, reason: str, now: float) -> AuditRow:
    return by_host(
        "deliveries.deliver",
        row.delivery_id,
        at=now,
        workspace_id=row.workspace_id,
        scope=row.session_id,
        result=result,
        reason=reason,
        run_id=row.run_id,
        session_id=row.session_id,
    )


def type_of(row: DeliveryRow) -> str:
    return str(msgspec.json.decode(row.body).get("type"))
