"""Who serves a database: one host at a time holds its lock, through the connection that writes.

The lock ends with the connection. One that broke on our side may live on in the database for a while, with its lock and
perhaps a statement under way; it is ended before a new one takes its place.
"""

import asyncio

from paddock.rules.errors import StorageUnavailableError
from paddock.storage.postgres.connection import AWAY, Connection, unavailable

_LOCK = 0x7061_6464_6F63_6B02
"""Which advisory lock means "a host serves this database"."""
PATIENCE_SECONDS = 5.0
"""How long a host that was just killed may take to be gone from the database."""
_NAME = "paddock writer"
_END = """
select pg_terminate_backend(pid) from pg_stat_activity
 where pid = $1 and pid <> pg_backend_pid() and application_name = $2 and usename = current_user"""


async def own_database(connection: Connection, before: int, *, alone: bool, place: str) -> None:
    """Make this connection the writer's. `before` is the server's process of the one it follows, 0 for none."""
    try:
        await connection.execute("select set_config('application_name', $1, false)", _NAME)
        await connection.execute(_END, before, _NAME)
        if alone and not await _lock(connection):
            raise StorageUnavailableError(
                f"the database at {place} is served by another host: stop that one, or use another database"
            )
    except AWAY as error:
        raise unavailable(error) from error


async def _lock(connection: Connection) -> bool:
    end = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while not (taken := await connection.fetchval("select pg_try_advisory_lock($1)", _LOCK)):
        if asyncio.get_running_loop().time() > end:
            break
        await asyncio.sleep(0.1)
    return bool(taken)
