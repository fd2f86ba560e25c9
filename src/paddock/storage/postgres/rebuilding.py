"""Looks over a whole database: logs that verify, tables that are what the logs say; and puts the tables right.

On a connection of its own. What only looks sees each conversation in one state of the database, so hosts may go on;
what puts right is for a database that no host serves, and locks each conversation while it is at it.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

from paddock.rules.log.chain import Damage
from paddock.rules.rows.rebuilding import Difference
from paddock.storage.postgres.connection import AWAY, Connection, connect, unavailable
from paddock.storage.postgres.engine import rows_of, run
from paddock.storage.postgres.migrate import bring_up_to_date
from paddock.storage.postgres.ownership import refuse_while_served
from paddock.storage.tables.rebuilding import NEEDED, PAGE, compared, looked_at, put_right, session_numbers
from paddock.storage.tables.statements import Answer, Work

_LOOKING = "begin isolation level repeatable read read only"


async def check(address: str) -> AsyncIterator[tuple[str, Damage | None]]:
    """Every session, with the first damage of its log or None."""
    async with _connected(address) as connection:
        async for found in _each(connection, looked_at, _LOOKING):
            if found is not None:
                yield found


async def compare(address: str) -> AsyncIterator[Difference]:
    """Every row that is not what the log says."""
    async with _connected(address) as connection:
        async for found in _each(connection, compared, _LOOKING):
            for difference in found:
                yield difference


async def rebuild(address: str) -> AsyncIterator[Difference]:
    """The same, and each conversation is put right, in one transaction, before its differences are told.

    Raises StorageUnavailableError while a host serves the database.
    """
    await bring_up_to_date(address)
    async with _connected(address) as connection:
        await refuse_while_served(connection, "stop them first, or only compare, with --check")
        async for found in _each(connection, put_right, "begin"):
            for difference in found:
                yield difference


async def needed_bytes(address: str) -> AsyncIterator[str]:
    """The hash of everything that an artifact or a storage area needs."""
    async with _connected(address) as connection:
        last = ""
        while page := await rows_of(connection, NEEDED.sql, after=last, limit=PAGE):
            for row in page:
                yield row[0]
            last = page[-1][0]


async def _each(connection: Connection, work: Callable[[int], Work[Answer]], begin: str) -> AsyncGenerator[Answer]:
    """Whoever stops in the middle has changed nothing: the connection ends with the command."""
    last = -1
    while numbers := await run(connection, session_numbers(last)):
        for number in numbers:
            await connection.execute(begin)
            answer = await run(connection, work(number))
            await connection.execute("commit")
            yield answer
        last = numbers[-1]


@asynccontextmanager
async def _connected(address: str) -> AsyncGenerator[Connection]:
    connection = await connect(address)
    try:
        yield connection
    except AWAY as error:
        raise unavailable(error, address) from error
    finally:
        connection.terminate()
