"""Walks the logs of a file and says where they are not what was written. Reads only, on a connection of its own, and
each conversation in one state of the database, so a host may go on writing meanwhile.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from paddock.rules.chain import ANCHOR, Damage, Head, StoredFact, verify
from paddock.storage.sqlite.connection import Connection, open_reader
from paddock.storage.sqlite.reader import Reader

PAGE = 500
_SESSIONS = "select session_no, session_id from sessions where session_no > ? order by session_no limit ?"


def check_session(directory: Path, session_id: str) -> Damage | None:
    """The first damage of a session's log, or None. Blocks for as long as the log is long."""
    with closing(open_reader(directory)) as connection:
        return _check(connection, session_id)


def check_sessions(directory: Path) -> Iterator[tuple[str, Damage | None]]:
    """Every session, with the first damage of its log or None."""
    with closing(open_reader(directory)) as connection:
        last = -1
        while page := connection.execute(_SESSIONS, (last, PAGE)).fetchall():
            for _, session_id in page:
                yield session_id, _check(connection, session_id)
            last = page[-1][0]


def _check(connection: Connection, session_id: str) -> Damage | None:
    reader = Reader(connection)
    with connection:  # one state of the database: the head belongs to these facts
        trimmed = reader.trimmed(session_id)
        walk = _Walk(reader.facts_in_order(session_id), reader.head(session_id), trimmed)
        return verify(walk, start=trimmed.digest) or walk.damage()


class _Walk:
    """Passes facts on and remembers what the chain alone cannot see: both ends of the log, and where facts stand."""

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
        if self._last != self._head.digest:
            return Damage(self._head.seq, "the log ends before its head")
        if not self._anchored:
            return Damage(self._trimmed.seq, "the beginning is missing and no fact says that it was trimmed")
        return self._misplaced


def _is_of(anchor: StoredFact, trimmed: Head) -> bool:
    told: dict[str, Any] = anchor.read_payload() or {}
    return (told.get("through"), told.get("digest")) == (trimmed.seq, trimmed.digest.hex())
