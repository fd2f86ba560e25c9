"""Move an embedded installation into a cluster, migrate its database, back it up and restore it."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from paddock.cli.output import FAILED, USAGE, CommandError, counted, fails_with, with_advice, write
from paddock.cli.plugin_work import sharing
from paddock.compose.cluster import blobs_of
from paddock.ports.artifacts import Blobs
from paddock.rules.agents.addresses import is_postgres
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows.rows import PluginRow
from paddock.runners.packages import PackageError
from paddock.settings import Settings
from paddock.storage.files import ABOUT, TABLES, backup
from paddock.storage.files.local import FileBlobs
from paddock.storage.files.lock import DataDirectory, DataDirectoryInUseError
from paddock.storage.sqlite.commands import has_database

PIECE = 1024 * 1024
NEEDS_STORE = "Say which database, with --store postgresql://... or PADDOCK_STORE."


def migrate(settings: Settings, *, only_check: bool) -> int:
    """Bring the schema up to date, or only say what is to come: 1 when something is, 2 when nobody can tell."""
    _need_postgres(settings)
    from paddock.storage.postgres.commands import examine
    from paddock.storage.postgres.migrate import bring_up_to_date

    if not only_check:
        with _store_fails_with(f"store = {settings.shown_store} cannot be used", USAGE):
            asyncio.run(bring_up_to_date(settings.store))
    state, says, advice = asyncio.run(examine(settings.store))
    sentence = f"{says}.{f' {advice}' if advice else ''}"
    if state == "fail":
        raise CommandError(sentence, exit_code=USAGE)
    write(f"{sentence}\n")
    return FAILED if "to come" in says or "empty" in says else 0


def import_from(directory: Path, settings: Settings) -> None:
    """Copy every row and installed plugin into the database, and every file to where files are kept."""
    _need_postgres(settings)
    if not has_database(directory):
        raise CommandError(
            f"{directory} holds no data of a host. Name the data directory of the host to import.", exit_code=USAGE
        )
    try:
        with DataDirectory.lock(directory):
            plugins, changed = sharing.brought_along(directory)
            moved, files = asyncio.run(_import(directory, settings, plugins))
    except DataDirectoryInUseError as error:
        raise CommandError(f"{error}. Stop that host first.", exit_code=USAGE) from error
    except StorageUnavailableError as error:
        raise CommandError(f"Nothing was imported: {with_advice(error)}") from error
    except (PackageError, OSError) as error:
        raise CommandError(f"Nothing was imported: the installed plugins cannot be read: {error}") from error
    for name, count in sorted(moved.items()):
        if count:
            write(f"{count:>10}  {name}\n")
    write(f"{files:>10}  stored files\n")
    for plugin in changed:
        write(f"{plugin} was changed after it was installed, so it was not taken along; install it anew.\n")
    write(f"Everything of {directory} is in {settings.shown_store}.\n")


def back_up_database(target: Path, settings: Settings) -> Mapping[str, Any]:
    """Copy the database as it is at one moment, and the bytes its rows name, wherever they are kept."""
    with _store_fails_with("Nothing was backed up"):
        return backup.make(target, lambda whole: asyncio.run(_copy_out(whole, settings)))


def restore_database(source: Path, settings: Settings) -> str:
    """Fill an empty database; return how much went where."""
    with _store_fails_with("Nothing was restored"), backup.unpacked(source, ABOUT) as whole:
        written, files = asyncio.run(_copy_in(whole, settings))
    rows = counted(sum(written.values()), "row")
    return f"{rows} and {counted(files, 'stored file')} in {settings.shown_store}"


async def _copy_out(whole: Path, settings: Settings) -> None:
    """Rows before their bytes: those removed meanwhile are missing, and then it is done again."""
    from paddock.storage.postgres.copying import copy_out

    source, target = blobs_of(settings), FileBlobs(whole / backup.BLOBS)
    await source.open()
    await target.open()
    try:
        for _ in range(backup.ATTEMPTS):
            shutil.rmtree(whole / TABLES, ignore_errors=True)
            needed = await copy_out(settings.store, whole)
            if await _all_kept(source, target, needed):
                return
    finally:
        await source.close()
        await target.close()
    raise StorageUnavailableError("files are missing that the database names")


async def _all_kept(source: Blobs, target: Blobs, names: Sequence[str]) -> bool:
    try:
        for name in names:
            async with target.keep(_pieces(source, name), max_bytes=1 << 62):
                pass
    except HostError:
        return False
    return True


async def _copy_in(whole: Path, settings: Settings) -> tuple[Mapping[str, int], int]:
    from paddock.storage.postgres.copying import copy_in

    files = await _move_files(whole, settings)  # bytes before their rows, as always
    return await copy_in(settings.store, whole), files


async def _import(directory: Path, settings: Settings, plugins: Sequence[PluginRow]) -> tuple[dict[str, int], int]:
    from paddock.storage.importing import import_directory

    files = await _move_files(directory, settings)  # bytes before their rows, as always
    return dict(await import_directory(directory, settings.store, plugins)), files


async def _move_files(directory: Path, settings: Settings) -> int:
    source, target, count = FileBlobs(directory / "blobs"), blobs_of(settings), 0
    if settings.artifacts == "embedded" and settings.data == directory:
        return 0
    await source.open()
    await target.open()
    async for names in source.older_than(0):
        for name in names:
            async with target.keep(_pieces(source, name), max_bytes=1 << 62):
                count += 1
    await target.close()
    return count


async def _pieces(source: Blobs, name: str) -> AsyncIterator[bytes]:
    at = 0
    while piece := await source.read(name, at, PIECE):
        yield piece
        at += len(piece)


def _store_fails_with(why: str, exit_code: int = FAILED) -> AbstractContextManager[None]:
    return fails_with(StorageUnavailableError, says=lambda error: f"{why}: {with_advice(error)}", exit_code=exit_code)


def _need_postgres(settings: Settings) -> None:
    if not is_postgres(settings.store):
        raise CommandError(NEEDS_STORE, exit_code=USAGE)
