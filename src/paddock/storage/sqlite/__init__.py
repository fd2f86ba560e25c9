"""The embedded store: one SQLite file in one data directory, one writer. Nothing outside this folder knows SQLite."""

from paddock.storage.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
