"""Looking after a PostgreSQL database and the files its rows name, for `paddock admin verify` and `rebuild`."""

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import TypeVar

from paddock.cli.failures import USAGE, CommandError, with_advice
from paddock.compose.cluster import blobs_of
from paddock.ports.artifacts import Blobs
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows.rebuilding import Difference
from paddock.settings import Settings
from paddock.storage.files.verifying import Looked

PIECE = 1024 * 1024
Found = TypeVar("Found")


def look(settings: Settings) -> list[Looked]:
    """Every log, and every file that a row names."""
    return _all(settings, _look(settings))


def compare(settings: Settings) -> list[Difference]:
    """Every row that is not what the log says."""
    from paddock.storage.postgres import commands as rebuilding

    return _all(settings, rebuilding.compare(settings.store))


def rebuild(settings: Settings) -> list[Difference]:
    """The same, put right."""
    from paddock.storage.postgres import commands as rebuilding

    return _all(settings, rebuilding.rebuild(settings.store))


def _all(settings: Settings, found: AsyncIterator[Found]) -> list[Found]:
    async def gather() -> list[Found]:
        return [one async for one in found]

    try:
        return asyncio.run(gather())
    except StorageUnavailableError as error:
        raise CommandError(f"{settings.of_whom(error)}: {with_advice(error)}", exit_code=USAGE) from error


async def _look(settings: Settings) -> AsyncIterator[Looked]:
    from paddock.storage.postgres import commands as rebuilding

    async for session_id, damage in rebuilding.check(settings.store):
        yield Looked("conversation", session_id, f"fact {damage.seq}: {damage.what}" if damage else None)
    blobs = blobs_of(settings)
    await blobs.open()
    try:
        looked = [(name, await _problem_of(blobs, name)) async for name in rebuilding.needed_bytes(settings.store)]
    finally:
        await blobs.close()
    wrong = {name for name, problem in looked if problem}
    still = {name async for name in rebuilding.needed_bytes(settings.store) if name in wrong} if wrong else wrong
    for name, problem in looked:  # what was removed with its row meanwhile is not missing
        yield Looked("bytes", name, problem if name in still else None)


async def _problem_of(blobs: Blobs, name: str) -> str | None:
    digest, at = sha256(), 0
    try:
        while piece := await blobs.read(name, at, PIECE):
            digest.update(piece)
            at += len(piece)
    except HostError as error:
        return error.message
    return None if digest.hexdigest() == name else "damaged: not what their name says"
