"""The connection that writes: one that broke on our side may live on in the database for a while, perhaps with a
statement under way; it is ended before a new one takes its place.

Hosts share a lock through it. A host from before there could be several holds that lock alone, so the two never meet.
"""

import asyncio

from paddock.rules.cluster.leases import LEASE_SECONDS
from paddock.rules.errors import StorageUnavailableError
from paddock.storage.postgres.connection import AWAY, Connection, unavailable

_LOCK = 0x7061_6464_6F63_6B02
"""Which advisory lock means "hosts serve this database"."""
PATIENCE_SECONDS = 5.0
"""How long an old host that was just stopped may take to be gone from the database."""
_NAME = "paddock writer"
# ruff: noqa: S608 - the numbers are our own, values are always bound
_SERVING = f"""
select count(*) from hosts where gone is null and beat_at > clock_timestamp() - interval '{LEASE_SECONDS} s'"""
_END = """
select pg_terminate_backend(pid) from pg_stat_activity
 where pid = $1 and pid <> pg_backend_pid() and application_name = $2 and usename = current_user"""


async def own_connection(connection: Connection, before: int, *, serving: bool, place: str) -> None:
    """Make this connection the writer's. `before` is the server's process of the one it follows, 0 for none."""
    try:
        await connection.execute("select set_config('application_name', $1, false)", _NAME)
        await connection.execute(_END, before, _NAME)
        if serving and not await _lock(connection):
            raise StorageUnavailableError(
                f"the database at {place} is served by a host of an older Paddock: stop that one first"
            )
    except AWAY as error:
        raise unavailable(error) from error


async def refuse_while_served(connection: Connection, advice: str) -> None:
    """Raises StorageUnavailableError when hosts serve this database: they would not know what happens under them."""
    if serving := await connection.fetchval(_SERVING):
        raise StorageUnavailableError(f"{serving} host(s) serve this database; {advice}")


async def keep_hosts_out(connection: Connection) -> None:
    """Keep hosts out until the transaction ends. Raises StorageUnavailableError when one serves this database."""
    if not await _lock(connection, "select pg_try_advisory_xact_lock($1)"):
        text = "this upgrade changes how the log is kept: stop all hosts that serve this database, then start one"
        raise StorageUnavailableError(text)


async def _lock(connection: Connection, sql: str = "select pg_try_advisory_lock_shared($1)") -> bool:
    end = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while not (taken := await connection.fetchval(sql, _LOCK)):
        if asyncio.get_running_loop().time() > end:
            break
        await asyncio.sleep(0.1)
    return bool(taken)
