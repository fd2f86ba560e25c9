"""A walk along a session's log that sees what the chain alone cannot: both ends of the log, and where facts stand."""

from collections.abc import Iterator
from typing import Any

from paddock.rules.log.chain import ANCHOR, Damage, Head, StoredFact


class Walk:
    """Passes facts on in order of number and remembers what it saw. `trimmed` is the last fact that was trimmed."""

    def __init__(self, facts: Iterator[StoredFact], head: Head, trimmed: Head) -> None:
        self._facts = facts
        self._head = head
        self._trimmed = trimmed
        self._last = trimmed.digest
        self._anchored = not trimmed.seq
        self._misplaced: Damage | None = None

    def __iter__(self) -> Iterator[StoredFact]:
        for fact in self._facts:
            if fact.position != (fact.read_metadata().get("first_seq") or fact.seq):
                self._misplaced = self._misplaced or Damage(fact.seq, "stands in the wrong place")
            if fact.kind == ANCHOR:
                self._anchored = self._anchored or _is_of(fact, self._trimmed)
            self._last = self._last if fact.is_delta else fact.digest
            yield fact

    def damage(self) -> Damage | None:
        """What is wrong although every link holds, or None. To be asked after the walk."""
        if self._last != self._head.digest:
            return Damage(self._head.seq, "the log ends before its head")
        if not self._anchored:
            return Damage(self._trimmed.seq, "the beginning is missing and no fact says that it was trimmed")
        return self._misplaced


def _is_of(anchor: StoredFact, trimmed: Head) -> bool:
    told: dict[str, Any] = anchor.read_payload() or {}
    return (told.get("through"), told.get("digest")) == (trimmed.seq, trimmed.digest.hex())
