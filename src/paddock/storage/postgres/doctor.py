"""What `paddock doctor` says about a database: whether it can be used, and whether what it holds would survive."""

from typing import Literal

from paddock.rules.agents.addresses import place_of
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.rows.migrations import Refusal
from paddock.storage.postgres.connection import AWAY, Connection, advice_on, connect, unavailable
from paddock.storage.postgres.migrate import still_pending
from paddock.storage.shipped import shipped_migrations

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
        connection = await connect(address)
        try:
            return await _look(connection, place_of(address))
        finally:
            connection.terminate()
    except AWAY as error:
        return "fail", str(unavailable(error, address)), advice_on(error)
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
