"""Which store an installation uses: one function, so that every command opens the same. Loads only the one chosen."""

from pathlib import Path

from paddock.ports import Store
from paddock.rules.addresses import is_postgres


def store_at(address: str, directory: Path, *, serving: bool = False) -> Store:
    """The store of a data directory, not opened yet. `serving`: as the one host that may serve it."""
    if is_postgres(address):
        from paddock.storage.postgres import PostgresStore

        return PostgresStore(address, alone=serving)
    from paddock.storage.sqlite import SqliteStore

    return SqliteStore(directory)
