"""The signing keys that all hosts on one database share: the first host gives them, and each has the same file."""

import asyncio
from pathlib import Path

from paddock.storage.postgres.connection import AWAY, Connection, connect, unavailable
from paddock.storage.signing_keys import content, fresh, put, rotated

_GIVE = "insert into signing_keys (body, changed_at) values ($1, now()) on conflict do nothing"
_THEIRS = "select body from signing_keys"
_LOCKED = f"{_THEIRS} for update"
_CHANGE = "update signing_keys set body = $1, changed_at = now()"


async def agree(address: str, path: Path) -> None:
    """Make the file what all hosts have. Raises StorageUnavailableError."""
    mine = await asyncio.to_thread(content, path)
    connection = await connect(address)
    try:
        theirs = await _theirs(connection, mine)
    except AWAY as error:
        raise unavailable(error, address) from error
    finally:
        connection.terminate()
    if theirs != mine:
        await asyncio.to_thread(put, path, theirs)


async def rotate(address: str, now: float) -> str:
    """A new key signs from now on, at every host as soon as it has heard of it; its name. Raises
    StorageUnavailableError."""
    connection = await connect(address)
    try:
        await _theirs(connection, fresh())
        async with connection.transaction():
            body, name = rotated(bytes(await connection.fetchval(_LOCKED)), now)
            await connection.execute(_CHANGE, body)
    except AWAY as error:
        raise unavailable(error, address) from error
    finally:
        connection.terminate()
    return name


async def _theirs(connection: Connection, mine: bytes) -> bytes:
    found = await connection.fetchval(_THEIRS)
    if found is None:
        await connection.execute(_GIVE, mine)
        found = await connection.fetchval(_THEIRS)
    return bytes(found)
