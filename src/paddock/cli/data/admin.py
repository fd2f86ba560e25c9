"""Look after the data: verify, rebuild, back up, restore.

What only reads may run beside a host. What writes the directory takes its lock.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from paddock.cli.data import cluster
from paddock.cli.output import FAILED, USAGE, CommandError, counted, fails_with, with_advice, write
from paddock.compose.cluster import blobs_of
from paddock.ports.artifacts import Blobs
from paddock.rules.agents.addresses import is_postgres
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.log.projection import Difference
from paddock.settings import Settings
from paddock.storage.files import backup as backups
from paddock.storage.files.backup import Looked, look
from paddock.storage.files.cluster_secret import FILE_NAME, VARIABLE
from paddock.storage.files.lock import DataDirectory, DataDirectoryInUseError
from paddock.storage.sqlite.commands import compare, has_database
from paddock.storage.sqlite.commands import rebuild as rebuild_rows

PIECE = 1024 * 1024
Found = TypeVar("Found")
SHOWN = 50
"""So many findings are printed; all are counted."""
AS_THE_LOG_SAYS = "Runs and transcripts are what the log says.\n"


def verify(settings: Settings) -> int:
    """Exit 1 when something is missing or damaged."""
    looked = look(_existing(settings)) if not is_postgres(settings.store) else _all(settings, _looked_at(settings))
    counts = {"conversation": 0, "bytes": 0}
    problems: list[str] = []
    for one in looked:
        counts[one.kind] = counts.get(one.kind, 0) + 1
        if one.problem is not None:
            problems.append(one.sentence)
    _show(problems)
    seen = f"{counted(counts['conversation'], 'conversation')} and {counted(counts['bytes'], 'stored file')}"
    found = counted(len(problems), "problem") if problems else "everything is as it was written"
    write(f"Looked at {seen}: {found}.\n")
    return FAILED if problems else 0


def rebuild(settings: Settings, *, only_check: bool) -> int:
    """With `only_check`, exit 1 when something differs."""
    found = _show(one.sentence for one in (_compared if only_check else _rebuilt)(settings))
    if not found:
        write(AS_THE_LOG_SAYS)
        return 0
    write(f"{found} rows differ from the log.\n" if only_check else f"{found} rows were put right.\n")
    return FAILED if only_check else 0


def back_up(target: Path, settings: Settings) -> None:
    if is_postgres(settings.store):
        manifest = cluster.back_up_database(target.absolute(), settings)
    else:
        manifest = backups.back_up(_existing(settings), target.absolute())
    write(f"Backed up {counted(len(manifest['files']), 'file')} in {target}.\n")
    where = settings.data / FILE_NAME
    write(
        f"Not in it: the cluster's secret ({where if where.exists() else VARIABLE}). Keep it as safely, in another "
        "place: without it the settings of agents made over the API cannot be opened.\n"
    )


def restore(source: Path, settings: Settings) -> int:
    """Exit 1 when the data were damaged already when they were backed up."""
    problems = 0
    if is_postgres(settings.store):
        restored = cluster.restore_database(source.absolute(), settings)
    else:
        if "data" not in settings.model_fields_set:
            raise CommandError("Say where to restore to, with --data DIR: a new directory.", exit_code=USAGE)
        manifest = backups.restore(source.absolute(), settings.data)
        problems = _show(looked.sentence for looked in look(settings.data) if looked.problem is not None)
        restored = f"{counted(len(manifest['files']), 'file')} in {settings.data}"
    write(f"Restored {restored}.\n")
    write(
        f"Before a host starts on it, bring the cluster's secret: set {VARIABLE}, or put the file {FILE_NAME} into "
        f"{settings.data}. Without it the settings of agents made over the API have to be written again.\n"
    )
    if problems:
        write(f"{problems} problems were in the data when it was backed up; they are named above.\n")
    return FAILED if problems else 0


def _compared(settings: Settings) -> Iterable[Difference]:
    if not is_postgres(settings.store):
        return compare(_existing(settings))
    from paddock.storage.postgres import commands

    return _all(settings, commands.compare(settings.store))


def _rebuilt(settings: Settings) -> Iterable[Difference]:
    if is_postgres(settings.store):
        from paddock.storage.postgres import commands

        return _all(settings, commands.rebuild(settings.store))
    directory = _existing(settings)
    says = "{}. Stop that host first, or only compare, with --check.".format
    with fails_with(DataDirectoryInUseError, says=says, exit_code=USAGE), DataDirectory.lock(directory):
        return list(rebuild_rows(directory))


def _all(settings: Settings, found: AsyncIterator[Found]) -> list[Found]:
    async def gather() -> list[Found]:
        return [one async for one in found]

    try:
        return asyncio.run(gather())
    except StorageUnavailableError as error:
        raise CommandError(f"{settings.of_whom(error)}: {with_advice(error)}", exit_code=USAGE) from error


async def _looked_at(settings: Settings) -> AsyncIterator[Looked]:
    from paddock.storage.postgres import commands

    async for session_id, damage in commands.check(settings.store):
        yield Looked("conversation", session_id, f"fact {damage.seq}: {damage.what}" if damage else None)
    blobs = blobs_of(settings)
    await blobs.open()
    try:
        looked = [(name, await _problem_of(blobs, name)) async for name in commands.needed_bytes(settings.store)]
    finally:
        await blobs.close()
    wrong = {name for name, problem in looked if problem}
    still = {name async for name in commands.needed_bytes(settings.store) if name in wrong} if wrong else wrong
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


def _existing(settings: Settings) -> Path:
    if not has_database(settings.data):
        raise CommandError(
            f"{settings.data} holds no data of a host. Say where it is with --data DIR.", exit_code=USAGE
        )
    return settings.data


def _show(sentences: Iterable[str]) -> int:
    count = 0
    for count, sentence in enumerate(sentences, start=1):
        if count <= SHOWN:
            write(sentence + "\n")
    if count > SHOWN:
        write(f"... and {count - SHOWN} more.\n")
    return count
