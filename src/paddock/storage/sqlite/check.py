"""Walks a session's log and says where it is not what was written. Reads only, on a connection of its own."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from paddock.rules.chain import Damage, Head, StoredFact, verify
from paddock.storage.sqlite.connection import open_reader
from paddock.storage.sqlite.reader import Reader


def check_session(directory: Path, session_id: str) -> Damage | None:
    """The first damage of a session's log, or None. Blocks for as long as the log is long."""
    with closing(Reader(open_reader(directory))) as reader:
        head = reader.head(session_id)
        walk = _Walk(reader.facts_in_order(session_id), head)
        return verify(walk) or walk.damage()


class _Walk:
    """Passes facts on and remembers what the chain alone cannot see: the end of the log, and where facts stand."""

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
        if self._last != self._head.digest:
            return Damage(self._head.seq, "the log ends before its head")
        return self._misplaced
