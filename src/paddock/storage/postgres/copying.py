"""A PostgreSQL store as files, of one moment and by the server's own COPY; and back into one that is empty.

What belongs to a database and not to what is kept in it (its hosts, their errands) is left out, and so is what it adds
up by itself. The bytes that rows name are moved by whoever asks. A copy goes back into a schema of the same step; it is
text, every value as PostgreSQL writes and reads it in any version and on any machine, which its binary form does not
promise.
"""

import json
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, cast

from paddock.rules.errors import StorageUnavailableError
from paddock.storage.files import ABOUT, TABLES
from paddock.storage.postgres.connection import Connection, connected
from paddock.storage.postgres.hosts import refuse_while_served
from paddock.storage.postgres.migrate import bring_up_to_date

STOP_THEM = "stop them first: they would not end what was going on when the backup was made"
OUR_OWN = ("schema_version", "hosts", "errands", "probes", "model_spent")
PATIENCE_SECONDS = 24 * 3600.0
"""How long one table may take."""
_COLUMNS = """
select table_name, column_name from information_schema.columns
 where table_schema = current_schema() and is_generated = 'NEVER' and table_name <> all($1::text[])
 order by table_name, ordinal_position"""
_REFERENCES = """
select a.relname, b.relname from pg_constraint c join pg_class a on a.oid = c.conrelid
  join pg_class b on b.oid = c.confrelid where c.contype = 'f'"""
_SEQUENCES = "select sequencename::text, last_value from pg_sequences where schemaname = current_schema()"
_NEEDED = "select sha256 from artifacts union select sha256 from storage"
_ANYTHING = "select exists (select 1 from sessions) or exists (select 1 from api_keys) or exists (select 1 from audit)"
_STEP = "select max(number) from schema_version"
_ONE_MOMENT = "begin isolation level repeatable read read only"
_SETTLED = """
select set_config('statement_timeout', '0', false), set_config('idle_in_transaction_session_timeout', '0', false),
       set_config('client_encoding', 'UTF8', false), set_config('bytea_output', 'hex', false),
       set_config('extra_float_digits', '1', false), set_config('datestyle', 'ISO, YMD', false),
       set_config('intervalstyle', 'postgres', false), set_config('timezone', 'UTC', false)"""
"""No hurry, and texts that say exactly what is there, whatever the server is set to."""
TEXT, BINARY = "text", "binary"


async def copy_out(address: str, place: Path) -> Sequence[str]:
    """Write the database of one moment into `place`; the hashes of all bytes its rows name. Raises
    StorageUnavailableError."""
    async with connected(address) as connection:
        await connection.execute(_SETTLED)
        await connection.execute(_ONE_MOMENT)
        (place / TABLES).mkdir(mode=0o700)
        for table, columns in (await _tables(connection)).items():
            file = place / TABLES / f"{table}.copy"
            await _any(connection).copy_from_table(
                table, output=str(file), columns=columns, format=TEXT, timeout=PATIENCE_SECONDS
            )
        about = {
            "format": TEXT,
            "server": await connection.fetchval("show server_version"),
            "step": await connection.fetchval(_STEP),
            "columns": await _tables(connection),
            "sequences": {name: value for name, value in await connection.fetch(_SEQUENCES) if value is not None},
        }
        (place / ABOUT).write_text(json.dumps(about, indent=1, sort_keys=True), encoding="utf-8")
        return [found[0] for found in await connection.fetch(_NEEDED)]


async def copy_in(address: str, place: Path) -> Mapping[str, int]:
    """Everything that `copy_out` wrote, in one transaction, into a database that holds nothing; how many rows of each
    table. Raises StorageUnavailableError."""
    about: dict[str, Any] = json.loads((place / ABOUT).read_text(encoding="utf-8"))
    await bring_up_to_date(address)
    async with connected(address) as connection:
        await connection.execute(_SETTLED)
        async with connection.transaction():
            await _check(connection, about)
            written = await _fill(connection, place, about)
            await refuse_while_served(connection, STOP_THEM)  # nor has one come meanwhile
            return written


async def _check(connection: Connection, about: Mapping[str, Any]) -> None:
    if await connection.fetchval(_ANYTHING):
        raise StorageUnavailableError("the database holds data already: restore into one that is empty")
    await refuse_while_served(connection, STOP_THEM)
    step = await connection.fetchval(_STEP)
    if step != about["step"]:
        raise StorageUnavailableError(
            f"the backup has schema step {about['step']} and this version of paddock has {step}: restore it with the "
            "version that made it, then upgrade"
        )


async def _fill(connection: Connection, place: Path, about: Mapping[str, Any]) -> Mapping[str, int]:
    written = dict[str, int]()
    columns: Mapping[str, list[str]] = about["columns"]
    for table in await _in_order(connection, columns):
        done = await _any(connection).copy_to_table(
            table,
            source=str(place / TABLES / f"{table}.copy"),
            columns=columns[table],
            format=about.get("format", BINARY),  # until now it was, and nobody said so
            timeout=PATIENCE_SECONDS,
        )
        written[table] = int(str(done).rpartition(" ")[2])
    for name, value in cast("dict[str, int]", about["sequences"]).items():
        await connection.fetch("select setval($1::text::regclass, $2)", name, value)
    return written


async def _tables(connection: Connection) -> dict[str, list[str]]:
    tables = dict[str, list[str]]()
    for table, column in await connection.fetch(_COLUMNS, list(OUR_OWN)):
        tables.setdefault(table, []).append(column)
    return tables


async def _in_order(connection: Connection, tables: Mapping[str, Any]) -> Sequence[str]:
    order = TopologicalSorter[str]({table: set[str]() for table in tables})
    for table, other in await connection.fetch(_REFERENCES):
        if table in tables and other in tables and table != other:
            order.add(table, other)
    return list(order.static_order())


def _any(connection: Connection) -> Any:
    """The library's own connection: nobody else of us copies tables."""
    return connection
