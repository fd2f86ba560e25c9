"""Commands on the database of a data directory: bring its schema up to date, check its logs, compare and rebuild
tables, copy it.

What only looks may run beside a host that uses the directory: each conversation is seen in one state of the database.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

import apsw

from paddock.rules.errors import StorageUnavailableError
from paddock.rules.log.chain import Damage
from paddock.rules.log.projection import Difference
from paddock.rules.rows.migrations import Migration, Refusal, pending
from paddock.storage.sqlite.connection import FILE_NAME, Connection, open_reader, open_writer, unavailable
from paddock.storage.sqlite.engine import run
from paddock.storage.tables.log import checked
from paddock.storage.tables.rebuilding import compared, looked_at, put_right, session_numbers
from paddock.storage.tables.schema import STEPS, shipped_migrations
from paddock.storage.tables.statements import Answer, Work

_NEEDED = "select sha256 from artifacts union select sha256 from storage"


def check_session(directory: Path, session_id: str) -> Damage | None:
    """The first damage of a session's log, or None. Blocks for as long as the log is long."""
    with closing(open_reader(directory)) as connection, connection:
        return run(connection, checked(session_id))


def check_sessions(directory: Path) -> Iterator[tuple[str, Damage | None]]:
    """Every session, with the first damage of its log or None."""
    with closing(open_reader(directory)) as connection:
        yield from filter(None, _each(connection, looked_at))


def compare(directory: Path) -> Iterator[Difference]:
    """Every row of the data directory that is not what the log says."""
    with closing(open_reader(directory)) as connection:
        for found in _each(connection, compared):
            yield from found


def rebuild(directory: Path) -> Iterator[Difference]:
    """Compare and repair each conversation, in one transaction, before its differences are returned. For a file that no
    host is writing.
    """
    with closing(open_writer(directory)) as connection:
        migrate(connection)
        for found in _each(connection, put_right):
            yield from found


def _each(connection: Connection, work: Callable[[int], Work[Answer]]) -> Iterator[Answer]:
    last = -1
    while numbers := run(connection, session_numbers(last)):
        for number in numbers:
            with connection:
                answer = run(connection, work(number))
            yield answer
        last = numbers[-1]


def copy_database(directory: Path, target: Path) -> None:
    """Write one state of the database of `directory` into the new file `target`. Raises StorageUnavailableError."""
    try:
        with closing(open_reader(directory)) as connection:
            connection.pragma("query_only", False)  # writes the other file only: this one was opened to be read
            connection.execute("vacuum into ?", (str(target),))
    except apsw.Error as error:
        raise unavailable(error) from error


def is_sound(directory: Path) -> str | None:
    """Run SQLite's own check of the file; return its first complaint, or None."""
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


_VERSIONS = """
create table if not exists schema_version (
    number integer primary key, name text not null, checksum text not null, applied_at text not null
)"""


def migrate(connection: Connection, available: Sequence[Migration] | None = None) -> None:
    """Apply what is missing. Raises StorageUnavailableError with a sentence when the file is not ours to change."""
    connection.execute(_VERSIONS)
    applied: dict[int, str] = dict(connection.execute("select number, checksum from schema_version"))
    steps = pending(shipped_migrations("sqlite") if available is None else available, applied)
    if isinstance(steps, Refusal):
        raise StorageUnavailableError(steps.sentence)
    for step in steps:
        _apply(connection, step)


def _apply(connection: Connection, step: Migration) -> None:
    with connection:  # one transaction: a step is there whole or not at all
        connection.execute(step.sql)
        if (work := STEPS.get(step.name)) is not None:
            run(connection, work())
        connection.execute(
            "insert into schema_version (number, name, checksum, applied_at) values (?, ?, ?, datetime('now'))",
            (step.number, step.name, step.checksum),
        )
