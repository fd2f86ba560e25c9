"""Looking after the data: verify, rebuild, back up, restore; delete a conversation, erase a message.

What only reads may run beside a host. What writes the directory takes its lock, or asks the host that holds it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from hashlib import sha256
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from paddock.cli.client import connect
from paddock.cli.data.cluster import secret_apart, secret_needed
from paddock.cli.hosting import presence
from paddock.cli.output import FAILED, USAGE, CommandError, counted, with_advice, write
from paddock.compose.cluster import blobs_of
from paddock.ports.artifacts import Blobs
from paddock.rules.agents.addresses import is_postgres
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.rows.rebuilding import Difference
from paddock.settings import Settings
from paddock.storage.files import backup as backups
from paddock.storage.files.lock import DataDirectory, DataDirectoryInUseError
from paddock.storage.files.verifying import Looked, look
from paddock.storage.sqlite.commands import compare, has_database, rebuild

PIECE = 1024 * 1024
Found = TypeVar("Found")


def _look_in_database(settings: Settings) -> list[Looked]:
    return _all(settings, _looked_at(settings))


def _compare_database(settings: Settings) -> list[Difference]:
    from paddock.storage.postgres import commands as rebuilding

    return _all(settings, rebuilding.compare(settings.store))


def _rebuild_database(settings: Settings) -> list[Difference]:
    from paddock.storage.postgres import commands as rebuilding

    return _all(settings, rebuilding.rebuild(settings.store))


def _all(settings: Settings, found: AsyncIterator[Found]) -> list[Found]:
    async def gather() -> list[Found]:
        return [one async for one in found]

    try:
        return asyncio.run(gather())
    except StorageUnavailableError as error:
        raise CommandError(f"{settings.of_whom(error)}: {with_advice(error)}", exit_code=USAGE) from error


async def _looked_at(settings: Settings) -> AsyncIterator[Looked]:
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


SHOWN = 50
"""So many findings are printed; all are counted."""
SESSIONS = "/api/v1/agent/sessions"


def verify_all(data: Path | None, settings: Settings) -> int:
    counts = {"conversation": 0, "bytes": 0}
    problems: list[str] = []
    for looked in _looked(data, settings):
        counts[looked.kind] = counts.get(looked.kind, 0) + 1
        if looked.problem is not None:
            problems.append(looked.sentence)
    _show(problems)
    seen = f"{counted(counts['conversation'], 'conversation')} and {counted(counts['bytes'], 'stored file')}"
    found = counted(len(problems), "problem") if problems else "everything is as it was written"
    write(f"Looked at {seen}: {found}.\n")
    return FAILED if problems else 0


def _looked(data: Path | None, settings: Settings) -> Iterable[Looked]:
    if not is_postgres(settings.store):
        return look(_existing(data))
    return _look_in_database(settings)


def rebuild_all(data: Path | None, settings: Settings, *, only_check: bool) -> int:
    if only_check:
        found = _show(one.sentence for one in _compared(data, settings))
        write(f"{found} rows differ from the log.\n" if found else "Runs and transcripts are what the log says.\n")
        return FAILED if found else 0
    found = _show(one.sentence for one in _rebuilt(data, settings))
    write(f"{found} rows were put right.\n" if found else "Runs and transcripts are what the log says.\n")
    return 0


def _compared(data: Path | None, settings: Settings) -> Iterable[Difference]:
    return _compare_database(settings) if is_postgres(settings.store) else compare(_existing(data))


def _rebuilt(data: Path | None, settings: Settings) -> Iterable[Difference]:
    if is_postgres(settings.store):
        return _rebuild_database(settings)
    directory = _existing(data)
    try:
        with DataDirectory.lock(directory):
            return list(rebuild(directory))
    except DataDirectoryInUseError as error:
        text = f"{error}. Stop that host first, or only compare, with --check."
        raise CommandError(text, exit_code=USAGE) from error


def back_up(target: Path, data: Path | None, settings: Settings) -> int:
    if is_postgres(settings.store):
        from paddock.cli.data.cluster import back_up_database

        return back_up_database(target.absolute(), settings)
    directory = _existing(data)
    manifest = backups.back_up(directory, target.absolute())
    write(f"Backed up {counted(len(manifest['files']), 'file')} in {target}.\n")
    write(secret_apart(directory))
    return 0


def restore(source: Path, data: Path | None, settings: Settings) -> int:
    if is_postgres(settings.store):
        from paddock.cli.data.cluster import restore_database

        return restore_database(source.absolute(), settings)
    if not presence.asked_for(data):
        raise CommandError("Say where to restore to, with --data DIR: a new directory.", exit_code=USAGE)
    directory = presence.data_directory(data).absolute()
    manifest = backups.restore(source.absolute(), directory)
    problems = _show(looked.sentence for looked in look(directory) if looked.problem is not None)
    write(f"Restored {counted(len(manifest['files']), 'file')} in {directory}.\n")
    write(secret_needed(directory))
    if problems:
        write(f"{problems} problems were in the data when it was backed up; they are named above.\n")
    return FAILED if problems else 0


def delete_thread(thread: str, *, url: str | None, data: Path | None) -> int:
    connect(url, data).call("DELETE", f"{SESSIONS}/{quote(thread, safe='')}")
    write(f"Conversation {thread} is deleted.\n")
    return 0


def erase(thread: str, item: str, *, files: bool, url: str | None, data: Path | None) -> int:
    path = f"{SESSIONS}/{quote(thread, safe='')}/items/{quote(item, safe='')}/erase"
    told = connect(url, data).call("POST", path, {"artifacts": files})
    more = f" and {told['artifacts']} of its files" if files else ""
    write(f"Message {item} of conversation {thread}{more} is erased.\n")
    return 0


def _existing(data: Path | None) -> Path:
    directory = presence.data_directory(data).absolute()
    if not has_database(directory):
        raise CommandError(f"{directory} holds no data of a host. Say where it is with --data DIR.", exit_code=USAGE)
    return directory


def _show(sentences: Iterable[str]) -> int:
    count = 0
    for count, sentence in enumerate(sentences, start=1):
        if count <= SHOWN:
            write(sentence + "\n")
    if count > SHOWN:
        write(f"... and {count - SHOWN} more.\n")
    return count
