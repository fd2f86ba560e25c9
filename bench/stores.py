"""Where a bench keeps its data: the embedded store, a database that is named, or a PostgreSQL of its own."""

from collections.abc import Generator
from contextlib import contextmanager

from postgres_server import new_server


@contextmanager
def address(given: str) -> Generator[str]:
    """`given` as it is, but `new` is a server of its own, which syncs to the disk and ends with the block."""
    if given != "new":
        yield given
        return
    server = new_server(fsync="on")
    try:
        yield server.new_database()
    finally:
        server.let_go()
