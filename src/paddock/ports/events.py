"""The log read backward, for whoever asks what happened in a conversation."""

from collections.abc import Sequence
from typing import Protocol

from paddock.rules.chain import StoredFact
from paddock.rules.rows import WHOLE, View


class EventRecords(Protocol):
    async def events(
        self, session_id: str, *, kinds: Sequence[str], before: int | None = None, limit: int = 50, view: View = WHOLE
    ) -> Sequence[StoredFact]:
        """Facts of these kinds that stand before a position, newest first. Facts of no run are of every thread."""
        ...

    async def fact(self, session_id: str, seq: int) -> StoredFact | None: ...
