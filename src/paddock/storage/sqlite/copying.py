"""A copy of the database as it is at one moment, made while others write it; and which bytes its rows need."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import cast

import apsw

from paddock.storage.sqlite.connection import FILE_NAME, Connection, open_reader, unavailable

_NEEDED = "select sha256 from artifacts union select sha256 from storage"


def copy_database(directory: Path, target: Path) -> None:
    """Write one state of the database of `directory` into the new file `target`. Raises StorageUnavailableError."""
    try:
        with closing(open_reader(directory)) as connection:
            connection.pragma("query_only", False)  # writes the other file only: this one was opened to be read
            connection.execute("vacuum into ?", (str(target),))
    except apsw.Error as error:
        raise unavailable(error) from error


def is_sound(directory: Path) -> str | None:
    """What SQLite itself finds wrong with the file, or None."""
    try:
        with closing(open_reader(directory)) as connection:
            found = connection.execute("pragma quick_check(1)").fetchone()[0]
    except apsw.Error as error:
        return str(error)
    return None if found == "ok" else str(found)


def needed_bytes(file: Path) -> Iterator[str]:
    """The hashes of all bytes that rows of this database name."""
    opened = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    with closing(cast("Connection", opened)) as connection:
        yield from (found[0] for found in connection.execute(_NEEDED))


def has_database(directory: Path) -> bool:
    return (directory / FILE_NAME).is_file()
