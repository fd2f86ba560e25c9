"""Brings the schema of a database up to date: numbered steps, one transaction each, one host at a time. And the types
that rows travel as, which follow from the row types and are made when they are missing.
"""

from collections.abc import Sequence

import asyncpg

from paddock.rules.errors import StorageUnavailableError
from paddock.rules.rows.migrations import Migration, Refusal, pending
from paddock.storage.postgres.connection import Connection, connected
from paddock.storage.postgres.engine import run
from paddock.storage.postgres.group import ROW_TYPES
from paddock.storage.postgres.hosts import keep_hosts_out
from paddock.storage.tables.schema import STEPS, shipped_migrations

_LOCK = 0x7061_6464_6F63_6B01
"""Which advisory lock means "the schema is being changed"."""
PATIENCE_SECONDS = 60
"""How long to wait for another host that is changing the schema, and for one step."""
KEEPS_HOSTS_OUT = frozenset({"salted_digests"})
"""Steps that change how the log is kept: no host may write it meanwhile."""
_VERSIONS = """
create table if not exists schema_version (
    number integer primary key, name text not null, checksum text not null, applied_at timestamptz not null
)"""
_STAY = "alter table schema_version add column if not exists goes_with integer"
_APPLIED = "insert into schema_version (number, name, checksum, goes_with, applied_at) values ($1, $2, $3, $4, now())"
_STEPS = "select number, checksum, (to_jsonb(s) ->> 'goes_with')::integer from schema_version s"
"""The last column came later: where it is missing, it says nothing."""
_TYPES = """
select name from unnest($1::text[]) as wanted (name) where to_regtype(name) is null"""


async def bring_up_to_date(address: str, available: Sequence[Migration] | None = None) -> None:
    """Apply what is missing, on a connection of its own. Raises StorageUnavailableError with a sentence."""
    async with connected(address) as connection:  # with it goes the lock
        await migrate(connection, shipped_migrations("postgres") if available is None else available)


async def migrate(connection: Connection, available: Sequence[Migration]) -> None:
    if await _is_current(connection, available):
        return
    await connection.execute(f"set statement_timeout = '{PATIENCE_SECONDS}s'; set lock_timeout = '{PATIENCE_SECONDS}s'")
    await connection.execute("select pg_advisory_lock($1)", _LOCK, timeout=PATIENCE_SECONDS)
    await connection.execute(_VERSIONS)
    await connection.execute(_STAY)
    for step in await _missing(connection, available):
        await _apply(connection, step)
    for name in await _missing_types(connection):
        await connection.execute(f"create type {name} as ({ROW_TYPES[name]})")


async def _is_current(connection: Connection, available: Sequence[Migration]) -> bool:
    """Most starts change nothing, and need neither the lock nor the right to change the schema."""
    try:
        return not await _missing(connection, available) and not await _missing_types(connection)
    except asyncpg.UndefinedTableError:
        return False


async def _missing(connection: Connection, available: Sequence[Migration]) -> Sequence[Migration]:
    steps = await still_pending(connection, available)
    if isinstance(steps, Refusal):
        raise StorageUnavailableError(steps.sentence)
    return steps


async def _missing_types(connection: Connection) -> Sequence[str]:
    return [row[0] for row in await connection.fetch(_TYPES, list(ROW_TYPES))]


async def still_pending(connection: Connection, available: Sequence[Migration]) -> Sequence[Migration] | Refusal:
    rows = await connection.fetch(_STEPS)
    applied = {number: checksum for number, checksum, _ in rows}
    return pending(available, applied, {number: older for number, _, older in rows if older is not None})


async def _apply(connection: Connection, step: Migration) -> None:
    async with connection.transaction():  # a step is there whole or not at all
        await connection.execute(step.sql, timeout=PATIENCE_SECONDS)
        if step.name in KEEPS_HOSTS_OUT:
            await keep_hosts_out(connection)
        if (work := STEPS.get(step.name)) is not None:
            await run(connection, work())
        await connection.execute(_APPLIED, step.number, step.name, step.checksum, step.goes_with)
