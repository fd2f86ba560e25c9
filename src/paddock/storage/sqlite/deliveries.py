"""Platforms in SQLite: events that came, conversations, deliveries. How they are written, and what is asked of them."""

# ruff: noqa: S608 - the column lists are our own, values are always bound
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
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
from paddock.storage.sqlite.connection import Cursor
from paddock.storage.sqlite.reader import Reader

EVENT = "platform, event_id, session_id, run_id, body_hash, received_at"
PLACE = "session_id, platform, reply_target, updated_at"
DELIVERY = (
    "delivery_id, workspace_id, platform, session_id, run_id, number, body, created_at, status, attempts, due_at, "
    "detail, ended_at"
)
_ADD_EVENT = f"insert into platform_events ({EVENT}) values (?, ?, ?, ?, ?, ?) on conflict do nothing returning 1"
_SET_PLACE = f"""
insert into platform_conversations ({PLACE}) values (?, ?, ?, ?)
on conflict (session_id)
do update set platform = excluded.platform, reply_target = excluded.reply_target, updated_at = excluded.updated_at"""
_ADD = f"insert into deliveries ({DELIVERY}) values ({', '.join('?' * 13)}) on conflict do nothing"
_CLAIM = """
update deliveries set claim_token = ?2, claimed_until = ?3
 where delivery_id = ?1 and status = 'pending' and claimed_until <= ?4 and attempts = ?5"""
_OUTCOME = """
update deliveries set status = ?3, attempts = ?4, due_at = ?5, detail = ?6, ended_at = ?7, claimed_until = 0
 where delivery_id = ?1 and claim_token = ?2 and status = 'pending'"""
_AGAIN = """
update deliveries set status = 'pending', attempts = 0, due_at = ?2, ended_at = null, claimed_until = 0
 where delivery_id = ?1 and status = 'dead' returning 1"""
_DUE = f"""
select {DELIVERY} from (
  select {DELIVERY}, row_number() over (partition by workspace_id order by due_at, delivery_id) as turn
    from deliveries d
   where status = 'pending' and due_at <= ?1 and claimed_until <= ?1 and not exists (
     select 1 from deliveries e where e.session_id = d.session_id and e.status = 'pending' and e.number < d.number)) due
 order by turn, due_at, delivery_id limit ?2"""
_NEXT = """
select min(max(due_at, claimed_until)) from deliveries d
 where status = 'pending' and not exists (
   select 1 from deliveries e where e.session_id = d.session_id and e.status = 'pending' and e.number < d.number)"""
_LIST = f"""
select {DELIVERY} from deliveries
 where workspace_id = ?1 and (?2 is null or status = ?2) and (?3 is null or delivery_id < ?3)
 order by delivery_id desc limit ?4"""


def _write_event(cursor: Cursor, row: PlatformEventRow) -> None:
    if cursor.execute(_ADD_EVENT, astuple(row)).fetchone() is None:
        raise HostError(ErrorCode.CONFLICT, "this event was accepted already")


def _write_place(cursor: Cursor, row: PlatformConversationRow) -> None:
    cursor.execute(_SET_PLACE, astuple(row))


def _write(cursor: Cursor, row: DeliveryRow) -> None:
    cursor.execute(_ADD, astuple(row))


def _claim(cursor: Cursor, row: DeliveryClaim) -> None:
    cursor.execute(_CLAIM, astuple(row))


def _end(cursor: Cursor, row: DeliveryOutcome) -> None:
    cursor.execute(_OUTCOME, astuple(row))


def _again(cursor: Cursor, row: DeliveryAgain) -> None:
    if cursor.execute(_AGAIN, astuple(row)).fetchone() is None:
        raise HostError(ErrorCode.CONFLICT, "only what was given up can be delivered again")


DELIVERY_WRITES: Mapping[type, Callable[[Cursor, Any], None]] = {
    PlatformEventRow: _write_event,
    PlatformConversationRow: _write_place,
    DeliveryRow: _write,
    DeliveryClaim: _claim,
    DeliveryOutcome: _end,
    DeliveryAgain: _again,
}


class DeliveryReads(ABC):
    """The part of the store that looks these up."""

    @property
    @abstractmethod
    def _reader(self) -> Reader: ...

    async def platform_event(self, platform: str, event_id: str) -> PlatformEventRow | None:
        sql = f"select {EVENT} from platform_events where platform = ? and event_id = ?"
        found = self._reader.one(sql, (platform, event_id))
        return PlatformEventRow(*found) if found else None

    async def platform_conversation(self, session_id: str) -> PlatformConversationRow | None:
        found = self._reader.one(f"select {PLACE} from platform_conversations where session_id = ?", (session_id,))
        return PlatformConversationRow(*found) if found else None

    async def delivery(self, delivery_id: str) -> DeliveryRow | None:
        found = self._reader.one(f"select {DELIVERY} from deliveries where delivery_id = ?", (delivery_id,))
        return DeliveryRow(*found) if found else None

    async def deliveries(
        self, workspace_id: str, *, status: str | None = None, before: str | None = None, limit: int = 50
    ) -> Sequence[DeliveryRow]:
        return [DeliveryRow(*found) for found in self._reader.all(_LIST, (workspace_id, status, before, limit))]

    async def due_deliveries(self, now: float, *, limit: int = 100) -> Sequence[DeliveryRow]:
        return [DeliveryRow(*found) for found in self._reader.all(_DUE, (now, limit))]

    async def next_delivery_at(self) -> float | None:
        return self._reader.one(_NEXT)[0]

    async def delivery_claim(self, delivery_id: str) -> str:
        found = self._reader.one("select claim_token from deliveries where delivery_id = ?", (delivery_id,))
        return found[0] if found else ""
