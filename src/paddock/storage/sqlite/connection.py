"""How a connection to the database file is opened, and what SQLite's errors mean to us. No queries live here."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, cast

import apsw

from paddock.confinement.private import private_file
from paddock.rules.errors import StorageUnavailableError

FILE_NAME = "paddock.db"
BUSY_MILLISECONDS = 50
"""How long to wait for another program that holds the file. Hardly at all: it is ours, and readers ask on the loop."""
WRITER_CACHE, READER_CACHE = -32_768, -2_048
"""KiB of pages kept. A reader's are thrown away by every commit, so many of them would only cost the throwing."""
WAL_PAGES = 4_000
"""Pages in the write-ahead log before a commit also moves them into the database: 16 MiB."""

with suppress(apsw.MisuseError):  # somebody else in this process has used SQLite already: then it stays as it is
    apsw.config(
        apsw.SQLITE_CONFIG_MEMSTATUS, False
    )  # nobody reads these statistics, and every allocation pays for them


class Cursor(Protocol):
    """Subset of apsw's cursor that is used here."""

    def execute(self, statements: str, bindings: Sequence[Any] = ...) -> "Cursor": ...
    def executemany(self, statements: str, sequenceofbindings: Sequence[Sequence[Any]]) -> "Cursor": ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """Subset of apsw's connection that is used here. As a context manager it is a transaction, or a savepoint."""

    def execute(self, statements: str, bindings: Sequence[Any] = ...) -> Cursor: ...
    def pragma(self, name: str, value: str | int | bool) -> Any: ...
    def cursor(self) -> Cursor: ...
    def close(self) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, etype: object, evalue: object, etraceback: object) -> bool | None: ...
    @property
    def in_transaction(self) -> bool: ...


def open_writer(directory: Path) -> Connection:
    """The one connection that writes. A commit returns only when the disk has it."""
    with suppress(OSError):  # SQLite says better what is wrong
        private_file(directory / FILE_NAME)  # what it makes beside it gets the same rights
    connection = _open(directory, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    connection.pragma("cache_size", WRITER_CACHE)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.pragma("wal_autocheckpoint", WAL_PAGES)
    connection.pragma("secure_delete", True)  # what is deleted or replaced is overwritten, not only let go of
    connection.pragma("journal_size_limit", 2 * WAL_PAGES * 4096)
    return connection


def open_reader(directory: Path) -> Connection:
    """A connection that sees what is committed and can change nothing."""
    connection = _open(directory, apsw.SQLITE_OPEN_READONLY)
    connection.pragma("cache_size", READER_CACHE)
    connection.pragma("query_only", True)
    return connection


def _open(directory: Path, flags: int) -> Connection:
    flags |= apsw.SQLITE_OPEN_NOMUTEX  # a connection is handed from thread to thread and never used by two at once
    opened = apsw.Connection(str(directory / FILE_NAME), flags=flags, statementcachesize=200)
    opened.set_busy_timeout(BUSY_MILLISECONDS)
    connection = cast("Connection", opened)
    connection.pragma("foreign_keys", False)
    connection.pragma("temp_store", "memory")
    return connection


def unavailable(error: Exception) -> StorageUnavailableError:
    """Say in one sentence what the disk or the file refused."""
    match error:
        case apsw.FullError():
            what = "the disk is full"
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.CantOpenError():
            what = "the database cannot be written here (read-only directory or missing rights)"
        case apsw.CorruptError() | apsw.NotADBError():
            what = "the database file is damaged"
        case apsw.BusyError() | apsw.LockedError():
            what = "another program holds the database"
        case apsw.IOError():
            what = "the disk failed"
        case _:
            what = "the database refused"
    return StorageUnavailableError(f"{what}: {error}")
