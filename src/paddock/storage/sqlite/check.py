"""Walks a session's log and says where it is not what was written. Reads only, on a connection of its own."""

from contextlib import closing
from pathlib import Path

from paddock.rules.chain import Damage, verify
from paddock.storage.sqlite.connection import open_reader
from paddock.storage.sqlite.reader import Reader
from paddock.storage.walk import Walk


def check_session(directory: Path, session_id: str) -> Damage | None:
    """The first damage of a session's log, or None. Blocks for as long as the log is long."""
    with closing(Reader(open_reader(directory))) as reader:
        walk = Walk(reader.facts_in_order(session_id), reader.head(session_id))
        return verify(walk) or walk.damage()
