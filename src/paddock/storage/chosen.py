"""Which store an installation uses, so that every command opens the same. Loads only the one chosen."""

from pathlib import Path

from paddock.ports import Store
from paddock.ports.knowledge import KnowledgeStore
from paddock.rules.addresses import is_postgres


def store_at(address: str, directory: Path, *, serving: bool = False) -> Store:
    """The store of a data directory, not opened yet. `serving`: as the one host that may serve it."""
    if is_postgres(address):
        from paddock.storage.postgres import PostgresStore

        return PostgresStore(address, alone=serving)
    from paddock.storage.sqlite import SqliteStore

    return SqliteStore(directory)


def knowledge_in(store: Store) -> KnowledgeStore:
    """Knowledge as that store keeps it, in the same database."""
    from paddock.storage.sqlite import SqliteStore

    if isinstance(store, SqliteStore):
        from paddock.storage.sqlite.knowledge import SqliteKnowledge

        return SqliteKnowledge(store)
    from paddock.storage.postgres import PostgresStore
    from paddock.storage.postgres.knowledge import PostgresKnowledge

    if isinstance(store, PostgresStore):
        return PostgresKnowledge(store)
    raise TypeError(f"{type(store).__name__} keeps no knowledge")
