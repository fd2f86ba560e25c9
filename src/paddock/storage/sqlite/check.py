"""Walks the logs of a file and says where they are not what was written. Reads only, on a connection of its own, and
each conversation in one state of the database, so a host may go on writing meanwhile.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from paddock.rules.log.chain import Damage, verify
from paddock.storage.sqlite.connection import Connection, open_reader
from paddock.storage.sqlite.reader import Reader
from paddock.storage.walk import Walk

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
        walk = Walk(reader.facts_in_order(session_id), reader.head(session_id), trimmed)
        return verify(walk, start=trimmed.digest) or walk.damage()
