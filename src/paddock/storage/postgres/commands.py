"""Commands on a database: check its logs, compare and rebuild tables, examine it, share signing keys.

Each on a connection of its own. What only looks sees each conversation in one state of the database, so hosts may go
on; what puts right is for a database that no host serves, and locks each conversation while it is at it.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Literal

from paddock.rules.agents.addresses import place_of
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.log.chain import Damage
from paddock.rules.log.projection import Difference
from paddock.rules.rows.migrations import Refusal
from paddock.storage.files.signing_keys import content, fresh, rotated, write
from paddock.storage.postgres.connection import Connection, advice_on, connected
from paddock.storage.postgres.engine import rows_of, run
from paddock.storage.postgres.hosts import refuse_while_served
from paddock.storage.postgres.migrate import bring_up_to_date, still_pending
from paddock.storage.tables.rebuilding import NEEDED, PAGE, compared, looked_at, put_right, session_numbers
from paddock.storage.tables.schema import shipped_migrations
from paddock.storage.tables.statements import Answer, Work

_LOOKING = "begin isolation level repeatable read read only"


async def check(address: str) -> AsyncIterator[tuple[str, Damage | None]]:
    """Every session, with the first damage of its log or None."""
    async with connected(address) as connection:
        async for found in _each(connection, looked_at, _LOOKING):
            if found is not None:
                yield found


async def compare(address: str) -> AsyncIterator[Difference]:
    """Every row that is not what the log says."""
    async with connected(address) as connection:
        async for found in _each(connection, compared, _LOOKING):
            for difference in found:
                yield difference


async def rebuild(address: str) -> AsyncIterator[Difference]:
    """Compare and repair each conversation, in one transaction, before its differences are returned.

    Raises StorageUnavailableError while a host serves the database.
    """
    await bring_up_to_date(address)
    async with connected(address) as connection:
        await refuse_while_served(connection, "stop them first, or only compare, with --check")
        async for found in _each(connection, put_right, "begin"):
            for difference in found:
                yield difference


async def needed_bytes(address: str) -> AsyncIterator[str]:
    """The hash of everything that an artifact or a storage area needs."""
    async with connected(address) as connection:
        last = ""
        while page := await rows_of(connection, NEEDED.sql, after=last, limit=PAGE):
            for row in page:
                yield row[0]
            last = page[-1][0]


async def _each(connection: Connection, work: Callable[[int], Work[Answer]], begin: str) -> AsyncGenerator[Answer]:
    """Run a work for each session. Stopping in the middle changes nothing: the connection ends with the command."""
    last = -1
    while numbers := await run(connection, session_numbers(last)):
        for number in numbers:
            await connection.execute(begin)
            answer = await run(connection, work(number))
            await connection.execute("commit")
            yield answer
        last = numbers[-1]


OLDEST = 14
"""The oldest major version that its makers still mend."""
Verdict = tuple[Literal["ok", "note", "fail"], str, str]

_SETTINGS = """
select current_setting('server_version'), current_setting('server_version_num')::int / 10000,
       current_setting('fsync') = 'on' and current_setting('full_page_writes') = 'on',
       current_setting('server_encoding')"""
_REACHED = "select max(number) from schema_version"


async def examine(address: str) -> Verdict:
    """State, what it is, and what to do about it. Changes nothing."""
    try:
        async with connected(address) as connection:
            return await _look(connection, place_of(address))
    except StorageUnavailableError as error:
        return "fail", str(error), advice_on(error)


async def _look(connection: Connection, place: str) -> Verdict:
    version, major, durable, encoding = await connection.fetchrow(_SETTINGS)
    says = f"PostgreSQL {version} at {place}, {await _schema(connection)}"
    if encoding != "UTF8":
        return "fail", f"{says}, encoding {encoding}", "Create the database with encoding UTF8."
    if not durable:
        return "note", f"{says}; it may lose what it confirmed", "Set fsync and full_page_writes to on."
    if major < OLDEST:
        return "note", says, f"Use PostgreSQL {OLDEST} or newer."
    return "ok", says, ""


async def _schema(connection: Connection) -> str:
    if not await connection.fetchval("select to_regclass('schema_version') is not null"):
        return "empty: the first start makes the schema"
    shipped = shipped_migrations("postgres")
    missing = await still_pending(connection, shipped)
    if isinstance(missing, Refusal):
        raise StorageUnavailableError(missing.sentence)
    if (reached := await connection.fetchval(_REACHED)) > shipped[-1].number:
        return f"schema {reached}: a newer Paddock made it, and it goes along with this one"
    return f"{len(missing)} schema step(s) to come" if missing else "schema up to date"


# --- the signing keys that all hosts share: the first host gives them, and each has the same file ---------------------

_GIVE = "insert into signing_keys (body, changed_at) values ($1, now()) on conflict do nothing"
_THEIRS = "select body from signing_keys"
_LOCKED = f"{_THEIRS} for update"
_CHANGE = "update signing_keys set body = $1, changed_at = now()"


async def agree(address: str, path: Path) -> None:
    """Make the file what all hosts have. Raises StorageUnavailableError."""
    mine = await asyncio.to_thread(content, path)
    async with connected(address) as connection:
        theirs = await _theirs(connection, mine)
    if theirs != mine:
        await asyncio.to_thread(write, path, theirs, replace=True)


async def rotate(address: str, now: float) -> str:
    """A new key signs from now on, at every host as soon as it has heard of it; its name. Raises
    StorageUnavailableError."""
    async with connected(address) as connection:
        await _theirs(connection, fresh())
        async with connection.transaction():
            body, name = rotated(bytes(await connection.fetchval(_LOCKED)), now)
            await connection.execute(_CHANGE, body)
    return name


async def _theirs(connection: Connection, mine: bytes) -> bytes:
    found = await connection.fetchval(_THEIRS)
    if found is None:
        await connection.execute(_GIVE, mine)
        found = await connection.fetchval(_THEIRS)
    return bytes(found)
