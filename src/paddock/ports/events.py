"""The log read backward, for whoever asks what happened in a conversation."""

from collections.abc import Sequence
from typing import Protocol

from paddock.rules.log.chain import StoredFact
from paddock.rules.rows.calls import PlacedCall
from paddock.rules.rows.deliveries import DeliveryRow
from paddock.rules.rows.rows import WHOLE, View


class EventRecords(Protocol):
    async def events(
        self, session_id: str, *, kinds: Sequence[str], before: int | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[StoredFact]:
        """Facts of these kinds that stand before a position, newest first. Facts of no run are of every thread."""
        ...

    async def fact(self, session_id: str, seq: int) -> StoredFact | None: ...
    async def placed_calls(
        self, session_id: str, *, before: tuple[int, int] | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[PlacedCall]:
        """Calls of tools by the runs of a conversation that stand before (fact, number), newest first."""
        ...

    async def placed_call(self, call_id: str) -> PlacedCall | None: ...
    async def deliveries_of_session(
        self, session_id: str, *, before: int | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[DeliveryRow]:
        """What was to be delivered of a conversation, with a number below `before`, newest first."""
        ...
