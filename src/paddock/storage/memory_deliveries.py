"""Platforms in memory: events that came, conversations, deliveries. A part of the memory store."""

from collections.abc import Iterable, Sequence
from typing import Any

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people.turns import in_turn
from paddock.rules.rows.deliveries import (
    AboutPlatforms,
    DeliveryAgain,
    DeliveryClaim,
    DeliveryOutcome,
    DeliveryRow,
    PlatformConversationRow,
    PlatformEventRow,
)
from paddock.rules.values import replace


class MemoryDeliveries:
    def __init__(self) -> None:
        super().__init__()
        self._platform_events: dict[tuple[str, str], PlatformEventRow] = {}
        self._places: dict[str, PlatformConversationRow] = {}
        self._deliveries: dict[str, DeliveryRow] = {}
        self._delivery_claims: dict[str, DeliveryClaim] = {}

    async def platform_event(self, platform: str, event_id: str) -> PlatformEventRow | None:
        return self._platform_events.get((platform, event_id))

    async def platform_conversation(self, session_id: str) -> PlatformConversationRow | None:
        return self._places.get(session_id)

    async def delivery(self, delivery_id: str) -> DeliveryRow | None:
        return self._deliveries.get(delivery_id)

    async def deliveries(
        self, workspace_id: str, *, status: str | None = None, before: str | None = None, limit: int = 50
    ) -> Sequence[DeliveryRow]:
        mine = [row for row in self._deliveries.values() if row.workspace_id == workspace_id]
        wanted = [row for row in mine if status in (None, row.status) and (before is None or row.delivery_id < before)]
        return sorted(wanted, key=lambda row: row.delivery_id, reverse=True)[:limit]

    async def due_deliveries(self, now: float, *, limit: int = 100) -> Sequence[DeliveryRow]:
        due = [row for row in self._first_ones() if _when(row) <= now and not self._is_taken(row.delivery_id, now)]
        return in_turn(sorted(due, key=lambda row: (_when(row), row.delivery_id)))[:limit]

    async def next_delivery_at(self) -> float | None:
        return min((max(_when(row), self._taken_until(row.delivery_id)) for row in self._first_ones()), default=None)

    def _first_ones(self) -> Iterable[DeliveryRow]:
        """Of each conversation the one that must go before the others."""
        first: dict[str, DeliveryRow] = {}
        for row in sorted(self._pending(), key=lambda row: row.number):
            first.setdefault(row.session_id, row)
        return first.values()

    async def delivery_claim(self, delivery_id: str) -> str:
        claim = self._delivery_claims.get(delivery_id)
        return claim.token if claim else ""

    def _pending(self) -> Iterable[DeliveryRow]:
        return (row for row in self._deliveries.values() if row.status == "pending")

    def _is_taken(self, delivery_id: str, now: float) -> bool:
        return self._taken_until(delivery_id) > now

    def _taken_until(self, delivery_id: str) -> float:
        claim = self._delivery_claims.get(delivery_id)
        return claim.until if claim is not None else 0.0

    def _check_platforms(self, rows: Sequence[Any]) -> None:
        """Before anything is written."""
        seen = set(self._platform_events)
        for row in rows:
            if isinstance(row, PlatformEventRow):
                if (row.platform, row.event_id) in seen:
                    raise HostError(ErrorCode.CONFLICT, "this event was accepted already")
                seen.add((row.platform, row.event_id))
            elif isinstance(row, DeliveryAgain):
                known = self._deliveries.get(row.delivery_id)
                if known is None or known.status != "dead":
                    raise HostError(ErrorCode.CONFLICT, "only what was given up can be delivered again")

    def _write_about_platform(self, row: AboutPlatforms) -> None:
        match row:
            case PlatformEventRow():
                self._platform_events[row.platform, row.event_id] = row
            case PlatformConversationRow():
                self._places[row.session_id] = row
            case DeliveryRow():
                self._deliveries.setdefault(row.delivery_id, row)
            case DeliveryClaim():
                self._claim_delivery(row)
            case DeliveryOutcome():
                self._end_delivery(row)
            case DeliveryAgain():
                known = self._deliveries[row.delivery_id]
                again = replace(known, status="pending", attempts=0, due_at=row.now, ended_at=None)
                self._deliveries[row.delivery_id] = again
                self._free(row.delivery_id)

    def _claim_delivery(self, row: DeliveryClaim) -> None:
        known = self._deliveries.get(row.delivery_id)
        if known is None or (known.status, known.attempts) != ("pending", row.attempts):
            return
        if not self._is_taken(row.delivery_id, row.now):
            self._delivery_claims[row.delivery_id] = row

    def _end_delivery(self, row: DeliveryOutcome) -> None:
        known, claim = self._deliveries.get(row.delivery_id), self._delivery_claims.get(row.delivery_id)
        if known is None or known.status != "pending" or claim is None or claim.token != row.token:
            return
        ended = {"status": row.status, "attempts": row.attempts, "due_at": row.due_at, "detail": row.detail}
        self._deliveries[row.delivery_id] = replace(known, **ended, ended_at=row.ended_at)
        self._free(row.delivery_id)

    def _free(self, delivery_id: str) -> None:
        if (claim := self._delivery_claims.get(delivery_id)) is not None:
            self._delivery_claims[delivery_id] = replace(claim, until=0.0)

    def _forget_deliveries(self, session_id: str) -> None:
        self._places.pop(session_id, None)
        self._platform_events = {k: row for k, row in self._platform_events.items() if row.session_id != session_id}
        self._deliveries = {k: row for k, row in self._deliveries.items() if row.session_id != session_id}


def _when(row: DeliveryRow) -> float:
    return row.due_at if row.due_at is not None else float("inf")
