"""What is on record of platforms: events that came, conversations there, and what is delivered to them."""

from collections.abc import Sequence
from typing import Protocol

from paddock.rules.rows.deliveries import DeliveryRow, PlatformConversationRow, PlatformEventRow


class DeliveryRecords(Protocol):
    """Every read is of committed data. Rows are written with a session's facts, or by `Records.write`."""

    async def platform_event(self, platform: str, event_id: str) -> PlatformEventRow | None: ...
    async def platform_conversation(self, session_id: str) -> PlatformConversationRow | None: ...
    async def delivery(self, delivery_id: str) -> DeliveryRow | None: ...
    async def deliveries(
        self, workspace_id: str, *, status: str | None = None, before: str | None = None, limit: int = 50
    ) -> Sequence[DeliveryRow]:
        """A workspace's, the newest first; `before` is the id of the last one seen."""
        ...

    async def due_deliveries(self, now: float, *, limit: int = 100) -> Sequence[DeliveryRow]:
        """Pending ones whose time has come and that nobody has claimed: of each conversation only the first."""
        ...

    async def next_delivery_at(self) -> float | None:
        """When the next pending one is due."""
        ...

    async def delivery_claim(self, delivery_id: str) -> str:
        """The token of whoever claimed it last; empty when nobody did."""
        ...
