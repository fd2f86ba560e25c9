"""Platforms in PostgreSQL: events that came, conversations, deliveries, as they are written and looked up."""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import astuple

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.deliveries import (
    DeliveryAgain,
    DeliveryClaim,
    DeliveryOutcome,
    DeliveryRow,
    PlatformConversationRow,
    PlatformEventRow,
)
from paddock.storage.postgres.connection import Connection
from paddock.storage.postgres.reader import HasReader

EVENT = "platform, event_id, session_id, run_id, body_hash, received_at"
PLACE = "session_id, platform, reply_target, updated_at"
DELIVERY = (
    "delivery_id, workspace_id, platform, session_id, run_id, number, body, created_at, status, attempts, due_at, "
    "detail, ended_at"
)
_ADD_EVENT = f"insert into platform_events ({EVENT}) values ($1, $2, $3, $4, $5, $6) on conflict do nothing returning 1"
_SET_PLACE = f"""
insert into platform_conversations ({PLACE}) values ($1, $2, $3, $4)
on conflict (session_id)
do update set platform = excluded.platform, reply_target = excluded.reply_target, updated_at = excluded.updated_at"""
_ADD = f"insert into deliveries ({DELIVERY}) values ({', '.join(f'${n}' for n in range(1, 14))}) on conflict do nothing"
_CLAIM = """
update deliveries set claim_token = $2, claimed_until = $3
 where delivery_id = $1 and status = 'pending' and claimed_until <= $4 and attempts = $5"""
_OUTCOME = """
update deliveries set status = $3, attempts = $4, due_at = $5, detail = $6, ended_at = $7, claimed_until = 0
 where delivery_id = $1 and claim_token = $2 and status = 'pending'"""
_AGAIN = """
update deliveries set status = 'pending', attempts = 0, due_at = $2, ended_at = null, claimed_until = 0
 where delivery_id = $1 and status = 'dead' returning 1"""
_DUE = f"""
select {DELIVERY} from (
  select {DELIVERY}, row_number() over (partition by workspace_id order by due_at, delivery_id) as turn
    from deliveries d
   where status = 'pending' and due_at <= $1 and claimed_until <= $1 and not exists (
     select 1 from deliveries e where e.session_id = d.session_id and e.status = 'pending' and e.number < d.number)) due
 order by turn, due_at, delivery_id limit $2"""
_NEXT = """
select min(greatest(due_at, claimed_until)) from deliveries d
 where status = 'pending' and not exists (
   select 1 from deliveries e where e.session_id = d.session_id and e.status = 'pending' and e.number < d.number)"""
_LIST = f"""
select {DELIVERY} from deliveries
 where workspace_id = $1 and ($2::text is null or status = $2) and ($3::text is null or delivery_id < $3)
 order by delivery_id desc limit $4"""


async def _write_event(connection: Connection, row: PlatformEventRow) -> None:
    if not await connection.fetch(_ADD_EVENT, *astuple(row)):
        raise HostError(ErrorCode.CONFLICT, "this event was accepted already")


async def _write_place(connection: Connection, row: PlatformConversationRow) -> None:
    await connection.fetch(_SET_PLACE, *astuple(row))


async def _write(connection: Connection, row: DeliveryRow) -> None:
    await connection.fetch(_ADD, *astuple(row))


async def _claim(connection: Connection, row: DeliveryClaim) -> None:
    await connection.fetch(_CLAIM, *astuple(row))


async def _end(connection: Connection, row: DeliveryOutcome) -> None:
    await connection.fetch(_OUTCOME, *astuple(row))


async def _again(connection: Connection, row: DeliveryAgain) -> None:
    if not await connection.fetch(_AGAIN, *astuple(row)):
        raise HostError(ErrorCode.CONFLICT, "only what was given up can be delivered again")


DELIVERY_WRITES: Mapping[type, Callable[[Connection, Any], Awaitable[None]]] = {
    PlatformEventRow: _write_event,
    PlatformConversationRow: _write_place,
    DeliveryRow: _write,
    DeliveryClaim: _claim,
    DeliveryOutcome: _end,
    DeliveryAgain: _again,
}


class DeliveryReads(HasReader):
    """The part of the store that looks these up."""

    async def platform_event(self, platform: str, event_id: str) -> PlatformEventRow | None:
        sql = f"select {EVENT} from platform_events where platform = $1 and event_id = $2"
        found = await self.reader.one(sql, platform, event_id)
        return PlatformEventRow(*found) if found else None

    async def platform_conversation(self, session_id: str) -> PlatformConversationRow | None:
        found = await self.reader.one(f"select {PLACE} from platform_conversations where session_id = $1", session_id)
        return PlatformConversationRow(*found) if found else None

    async def delivery(self, delivery_id: str) -> DeliveryRow | None:
        found = await self.reader.one(f"select {DELIVERY} from deliveries where delivery_id = $1", delivery_id)
        return DeliveryRow(*found) if found else None

    async def deliveries(
        self, workspace_id: str, *, status: str | None = None, before: str | None = None, limit: int = 50
    ) -> Sequence[DeliveryRow]:
        return [DeliveryRow(*found) for found in await self.reader.all(_LIST, workspace_id, status, before, limit)]

    async def due_deliveries(self, now: float, *, limit: int = 100) -> Sequence[DeliveryRow]:
        return [DeliveryRow(*found) for found in await self.reader.all(_DUE, now, limit)]

    async def next_delivery_at(self) -> float | None:
        return (await self.reader.one(_NEXT))[0]

    async def delivery_claim(self, delivery_id: str) -> str:
        found = await self.reader.one("select claim_token from deliveries where delivery_id = $1", delivery_id)
        return found[0] if found else ""
