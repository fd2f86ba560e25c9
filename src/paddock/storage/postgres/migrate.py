"""Brings the schema of a database up to date: numbered steps, one transaction each, one host at a time."""

from collections.abc import Sequence

import asyncpg

from paddock.rules.errors import StorageUnavailableError
from paddock.rules.migrations import Migration, Refusal, pending
from paddock.storage.postgres.connection import AWAY, Connection, connect, unavailable
from paddock.storage.shipped import shipped_migrations

_LOCK = 0x7061_6464_6F63_6B01
"""Which advisory lock means "the schema is being changed"."""
PATIENCE_SECONDS = 60
"""How long to wait for another host that is changing the schema, and for one step."""
_VERSIONS = """
create table if not exists schema_version (
    number integer primary key, name text not null, checksum text not null, applied_at timestamptz not null
)"""
_APPLIED = "insert into schema_version (number, name, checksum, applied_at) values ($1, $2, $3, now())"


async def bring_up_to_date(address: str, available: Sequence[Migration] | None = None) -> None:
    """Apply what is missing, on a connection of its own. Raises StorageUnavailableError with a sentence."""
    connection = await connect(address)
    try:
        await migrate(connection, shipped_migrations("postgres") if available is None else available)
    except AWAY as error:
        raise unavailable(error, address) from error
    finally:
        connection.terminate()  # with it goes the lock


async def migrate(connection: Connection, available: Sequence[Migration]) -> None:
    if await _is_current(connection, available):
        return
    await connection.execute(f"set statement_timeout = '{PATIENCE_SECONDS}s'; set lock_timeout = '{PATIENCE_SECONDS}s'")
    await connection.execute("select pg_advisory_lock($1)", _LOCK, timeout=PATIENCE_SECONDS)
    await connection.execute(_VERSIONS)
    for step in await _missing(connection, available):
        await _apply(connection, step)


async def _is_current(connection: Connection, available: Sequence[Migration]) -> bool:
    """Most starts change nothing, and need neither the lock nor the right to change the schema."""
    try:
        return not await _missing(connection, available)
    except asyncpg.UndefinedTableError:
        return False


async def _missing(connection: Connection, available: Sequence[Migration]) -> Sequence[Migration]:
    applied = {row[0]: row[1] for row in await connection.fetch("select number, checksum from schema_version")}
    steps = pending(available, applied)
    if isinstance(steps, Refusal):
        raise StorageUnavailableError(steps.sentence)
    return steps


async def _apply(connection: Connection, step: Migration) -> None:
    async with connection.transaction():  # a step is there whole or not at all
        await connection.execute(step.sql, timeout=PATIENCE_SECONDS)
        await connection.execute(_APPLIED, step.number, step.name, step.checksum)
