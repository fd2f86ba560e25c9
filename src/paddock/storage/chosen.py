"""Which store an installation uses, so that every command opens the same. Loads only the one chosen."""

from pathlib import Path

from paddock.ports import Store
from paddock.ports.hosts import Hosts
from paddock.ports.knowledge import KnowledgeStore
from paddock.rules.agents.addresses import is_postgres
from paddock.rules.errors import needed_for
from paddock.storage.files.lock import host_id


def store_at(address: str, directory: Path, *, serving: bool = False, url: str = "") -> Store:
    """The store of a data directory, not opened yet. `serving`: as a host, which others reach at `url`."""
    if is_postgres(address):
        with needed_for("a store on PostgreSQL"):
            from paddock.storage.postgres import PostgresStore

        return PostgresStore(address, host_id=host_id(directory) if serving else "", url=url)
    from paddock.storage.sqlite import SqliteStore

    return SqliteStore(directory)


def hosts_in(store: Store) -> Hosts | None:
    """The register of hosts that share that store; None when it is this host's alone."""
    return getattr(store, "hosts", None)


def knowledge_in(store: Store) -> KnowledgeStore:
    from paddock.storage.tables.knowledge import HasWords, KnowledgeTables

    if not isinstance(store, HasWords):
        raise TypeError(f"{type(store).__name__} keeps no knowledge")
    return KnowledgeTables(store.engine, store.words)
