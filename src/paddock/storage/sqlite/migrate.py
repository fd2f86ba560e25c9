"""Brings the schema of a file up to date: numbered steps, one transaction each, never a file from the future."""

from collections.abc import Sequence

from paddock.rules.errors import StorageUnavailableError
from paddock.rules.rows.migrations import Migration, Refusal, pending
from paddock.storage.sqlite.connection import Connection
from paddock.storage.sqlite.engine import run
from paddock.storage.tables.schema import STEPS, shipped_migrations

_VERSIONS = """
create table if not exists schema_version (
    number integer primary key, name text not null, checksum text not null, applied_at text not null
)"""


def migrate(connection: Connection, available: Sequence[Migration] | None = None) -> None:
    """Apply what is missing. Raises StorageUnavailableError with a sentence when the file is not ours to change."""
    connection.execute(_VERSIONS)
    applied: dict[int, str] = dict(connection.execute("select number, checksum from schema_version"))
    steps = pending(migrations() if available is None else available, applied)
    if isinstance(steps, Refusal):
        raise StorageUnavailableError(steps.sentence)
    for step in steps:
        _apply(connection, step)


def migrations() -> Sequence[Migration]:
    """The steps shipped with this program, in order."""
    return shipped_migrations("sqlite")


def _apply(connection: Connection, step: Migration) -> None:
    with connection:  # one transaction: a step is there whole or not at all
        connection.execute(step.sql)
        if (work := STEPS.get(step.name)) is not None:
            run(connection, work())
        connection.execute(
            "insert into schema_version (number, name, checksum, applied_at) values (?, ?, ?, datetime('now'))",
            (step.number, step.name, step.checksum),
        )
