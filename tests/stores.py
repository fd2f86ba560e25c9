"""A real SQLite store for a test, on a file of its own that is gone afterwards.

The schema is applied once in a process and copied from then on, into memory where the machine has a directory for that.
"""

import shutil
import tempfile
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

import apsw

from paddock.ports import Store
from paddock.rules.errors import StorageUnavailableError
from paddock.storage.files.local import FileBlobs
from paddock.storage.files.lock import make_directory
from paddock.storage.sqlite import SqliteStore
from paddock.storage.sqlite.commands import migrate
from paddock.storage.sqlite.connection import FILE_NAME

IN_MEMORY = Path("/dev/shm")
AnyStore = TypeVar("AnyStore", bound=Store)


class QuickStore(SqliteStore):
    """A store to be opened; its file stays as long as this object, so it may be closed and opened again."""

    def __init__(self) -> None:
        super().__init__(a_directory(self))
        make_directory(self._directory)
        (self._directory / FILE_NAME).write_bytes(_empty())

    @property
    def is_idle(self) -> bool:
        """Is nothing of this store being written?"""
        with suppress(StorageUnavailableError):
            return self.writer.idle.is_set()
        return True


class QuickBlobs(FileBlobs):
    """Stored bytes in a directory that goes with this object; ready, also before `open`."""

    def __init__(self) -> None:
        super().__init__(a_directory(self))
        self._prepare()


def a_directory(owner: object) -> Path:
    """A directory that is removed when its owner is no longer used."""
    made = tempfile.mkdtemp(prefix="paddock-test-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None)
    weakref.finalize(owner, shutil.rmtree, made, ignore_errors=True)
    return Path(made) / "data"


@cache
def _empty() -> bytes:
    """A database file with the newest schema and nothing in it."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / FILE_NAME
        connection = apsw.Connection(str(file))
        connection.pragma("journal_mode", "wal")
        migrate(connection)  # pyright: ignore[reportArgumentType]
        connection.close()
        return file.read_bytes()


@asynccontextmanager
async def opened(store: AnyStore) -> AsyncGenerator[AnyStore]:
    """This store, open; closed afterwards. One that is open already stays so."""
    if store.healthy():
        yield store
        return
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def reached_otherwise(store: QuickStore) -> QuickStore:
    """The same store as another host reaches it, without what a test's subclass does to it."""
    other = object.__new__(QuickStore)
    object.__setattr__(other, "__dict__", store.__dict__)
    return other
