"""A walk along a session's log that sees what the chain alone cannot: the end of the log, and where facts stand."""

from collections.abc import Iterator

from paddock.rules.chain import Damage, Head, StoredFact


class Walk:
    """Passes facts on in order of number and remembers what it saw."""

    def __init__(self, facts: Iterator[StoredFact], head: Head) -> None:
        self._facts = facts
        self._head = head
        self._last = b""
        self._misplaced: Damage | None = None

    def __iter__(self) -> Iterator[StoredFact]:
        for fact in self._facts:
            if fact.position != (fact.read_metadata().get("first_seq") or fact.seq):
                self._misplaced = self._misplaced or Damage(fact.seq, "stands in the wrong place")
            self._last = self._last if fact.is_delta else fact.digest
            yield fact

    def damage(self) -> Damage | None:
        """What is wrong although every link holds, or None. To be asked after the walk."""
        if self._last != self._head.digest:
            return Damage(self._head.seq, "the log ends before its head")
        return self._misplaced
