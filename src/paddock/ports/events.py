"""The log read backward, for whoever asks what happened in a conversation."""

from collections.abc import Sequence
from typing import Protocol

from paddock.rules.chain import StoredFact


class EventRecords(Protocol):
    async def events(
        self, session_id: str, *, kinds: Sequence[str], before: int | None = None, limit: int = 50
    ) -> Sequence[StoredFact]:
        """Facts of these kinds that are not addressed to an agent and stand before a position, newest first."""
        ...

    async def fact(self, session_id: str, seq: int) -> StoredFact | None: ...
