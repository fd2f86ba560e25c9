"""Backups of an embedded data directory: made while a host uses it, whole or not there at all, and restored elsewhere.

A backup is a directory, or the same in one `.tar` file: the database, the bytes its rows name, installed plugins, and
a manifest with the SHA-256 of every file. Keys are in it as hashes, as they are in the database. Not in it: the agents
file, `paddock.toml`, the homes of runners and the Python environments of plugins.
"""

import json
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, cast

from paddock.confinement.private import private_file
from paddock.rules.errors import StorageUnavailableError
from paddock.rules.values import Value
from paddock.storage.files import ABOUT, TABLES
from paddock.storage.files.lock import synced
from paddock.storage.sqlite.commands import check_sessions, copy_database, has_database, is_sound, needed_bytes
from paddock.storage.sqlite.connection import FILE_NAME

MANIFEST = "manifest.json"
FORMAT = 1
BLOBS, PLUGINS = "blobs", "plugins"
HELD = frozenset({MANIFEST, FILE_NAME, BLOBS, PLUGINS, ABOUT, TABLES})
"""Nothing else lies at the top of a backup: no settings, no secrets, nothing that a host would read by its name."""
ENVIRONMENT = ".venv"
"""What a plugin's requirements were installed into. It works in its own place only, so it is made again there."""
ATTEMPTS = 5
"""How often the database is copied again because bytes it names were removed before they could be copied."""


class BackupError(StorageUnavailableError):
    """A backup cannot be made or used. The text is one sentence for a person."""


# --- making -----------------------------------------------------------------------------------------------------------


def back_up(data: Path, target: Path) -> Mapping[str, Any]:
    """Make a backup of `data` at `target`, a directory or a file ending in .tar; its manifest. Raises BackupError."""
    if not has_database(data):
        raise BackupError(f"{data} holds no data of a host: there is no {FILE_NAME} in it")
    return make(target, lambda whole: _fill(data, whole, link=target.suffix == ".tar"))


def make(target: Path, fill: Callable[[Path], None]) -> Mapping[str, Any]:
    """A backup at `target` of what `fill` puts into a directory: whole, with its manifest, or not there at all."""
    if os.path.lexists(target):
        raise BackupError(f"{target} exists already; choose another name")
    with _refusals("the backup"), _beside(target) as staged:
        whole = staged / "backup"
        whole.mkdir(mode=0o700)
        fill(whole)
        manifest = _write_manifest(whole)
        if target.suffix == ".tar":
            synced(_packed(whole, staged / "backup.tar")).replace(target)
        else:
            whole.replace(target)
        synced(target.parent)
    return manifest


def _fill(data: Path, whole: Path, *, link: bool) -> None:
    """Bytes first, then the database, then what was added between: no row of the copy lacks its bytes."""
    for name in _names(data / BLOBS):
        _take_bytes(data, whole, name, link=link)
    for _ in range(ATTEMPTS):
        (whole / FILE_NAME).unlink(missing_ok=True)
        copy_database(data, whole / FILE_NAME)
        needed = set(needed_bytes(whole / FILE_NAME))
        if all(_take_bytes(data, whole, name, link=link) for name in sorted(needed)):
            break
    else:
        raise BackupError(
            "files are missing from the data directory that its database names; run `paddock admin verify`"
        )
    for name in set(_names(whole / BLOBS)) - needed:
        _blob(whole, name).unlink()
    if (data / PLUGINS).is_dir():
        shutil.copytree(data / PLUGINS, whole / PLUGINS, ignore=shutil.ignore_patterns(ENVIRONMENT))


def _take_bytes(data: Path, whole: Path, name: str, *, link: bool) -> bool:
    """Copy or link bytes into the backup; False if they are missing. Stored bytes never change, so a link will do."""
    source, target = _blob(data, name), _blob(whole, name)
    if target.exists():
        return True
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        _link_or_copy(source, target, link=link)
    except FileNotFoundError:
        target.unlink(missing_ok=True)
        return False
    return True


def _link_or_copy(source: Path, target: Path, *, link: bool) -> None:
    if link:
        try:
            target.hardlink_to(source)
        except FileNotFoundError:
            raise
        except OSError:  # another file system, or one without links
            pass
        else:
            return
    shutil.copyfile(source, target)


def _names(blobs: Path) -> Iterator[str]:
    return (path.name for path in blobs.glob("??/*") if path.is_file())


def _blob(directory: Path, name: str) -> Path:
    return directory / BLOBS / name[:2] / name


def _write_manifest(whole: Path) -> Mapping[str, Any]:
    files = {
        str(path.relative_to(whole)): {"sha256": _digest(path), "size": path.stat().st_size}
        for path in sorted(whole.rglob("*"))
        if path.is_file()
    }
    manifest = {"format": FORMAT, "paddock": version("paddock"), "created_at": time.time(), "files": files}
    for name in files:
        synced(whole / name)
    (whole / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    synced(whole / MANIFEST)
    synced(whole)
    return manifest


def _packed(whole: Path, file: Path) -> Path:
    with tarfile.open(file, "w", dereference=False) as archive:
        archive.add(whole / MANIFEST, MANIFEST)
        for path in sorted(whole.rglob("*")):
            if path.name != MANIFEST or path.parent != whole:
                archive.add(path, str(path.relative_to(whole)), recursive=False)
    file.chmod(0o600)
    return file


# --- using ------------------------------------------------------------------------------------------------------------


def restore(backup: Path, data: Path) -> Mapping[str, Any]:
    """Make the data directory `data`, which must not exist or be empty, of a backup. Raises BackupError.

    Nothing appears under `data` before every file was found to be what the manifest says.
    """
    if os.path.lexists(data) and (not data.is_dir() or any(data.iterdir())):
        raise BackupError(f"{data} is not empty; a backup is restored into a new directory")
    if not backup.exists():
        raise BackupError(f"there is no backup {backup}")
    with _refusals("the restored data"), _beside(data) as staged:
        whole = staged / "restored"
        _unpack(backup, whole)
        manifest = _checked(whole, FILE_NAME)
        for name in needed_bytes(whole / FILE_NAME):
            if not _blob(whole, name).is_file():
                raise BackupError(f"the stored bytes {name[:12]} are missing from the backup")
        (whole / MANIFEST).unlink()
        whole.chmod(0o700)
        for file in (path for path in whole.iterdir() if path.is_file()):
            private_file(file)
        if data.is_dir():
            data.rmdir()
        whole.replace(data)
        synced(data.parent)
    return manifest


@contextmanager
def unpacked(backup: Path, holding: str) -> Generator[Path]:
    """A backup as a directory beside it, every file of which was found to be what the manifest says; gone afterwards.

    `holding`: what a backup of the wanted kind has.
    """
    if not backup.exists():
        raise BackupError(f"there is no backup {backup}")
    with _refusals("the unpacked backup"), _beside(backup) as staged:
        whole = staged / "unpacked"
        _unpack(backup, whole)
        _checked(whole, holding)
        yield whole


def _unpack(backup: Path, whole: Path) -> None:
    if backup.is_dir():
        if (strange := _strange_in(backup)) is not None:
            raise BackupError(f"{strange} is no plain file, so this is no backup")
        shutil.copytree(backup, whole)
        return
    whole.mkdir(mode=0o700)
    try:
        with tarfile.open(backup, "r:") as archive:
            unpack(archive, whole)
    except (tarfile.TarError, KeyError, FileExistsError) as error:
        raise BackupError(f"{backup} is no backup, or is damaged: {error}") from error


def _strange_in(backup: Path) -> Path | None:
    """A link or a device, which no backup holds and which would be copied for what it leads to."""
    entries = (path for path in backup.rglob("*") if path.is_symlink() or not (path.is_file() or path.is_dir()))
    return next(entries, None)


def _checked(whole: Path, holding: str) -> Mapping[str, Any]:
    manifest = _manifest(whole, holding)
    files: Mapping[str, Mapping[str, Any]] = manifest["files"]
    there = {str(path.relative_to(whole)) for path in whole.rglob("*") if path.is_file()}
    if strange := sorted(there - files.keys() - {MANIFEST}):
        raise BackupError(f"the backup holds {strange[0]}, which its manifest does not name")
    if strange := sorted(name for name in there if PurePosixPath(name).parts[0] not in HELD):
        raise BackupError(f"the backup holds {strange[0]}, which no backup does")
    for name, said in files.items():
        if name not in there:
            raise BackupError(f"{name} is missing from the backup")
        if _digest(whole / name) != said["sha256"]:
            raise BackupError(f"{name} is damaged: it is not what was backed up")
    return manifest


def _manifest(whole: Path, holding: str) -> Mapping[str, Any]:
    try:
        manifest = cast("dict[str, Any]", json.loads((whole / MANIFEST).read_text(encoding="utf-8")))
        known, files = manifest["format"], manifest["files"]
        _ = [said["sha256"] for said in files.values()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BackupError(f"this is no backup, or it is damaged: its {MANIFEST} cannot be read") from error
    if known != FORMAT:
        raise BackupError(f"this backup has the format {known}; this version of paddock reads {FORMAT}")
    if holding not in files:
        kind = "a PostgreSQL database: say which, with --store" if ABOUT in files else f"something else: no {holding}"
        raise BackupError(f"this is a backup of {kind}")
    return manifest


@contextmanager
def _beside(target: Path) -> Generator[Path]:
    """A directory next to the target, on the same file system, that is gone afterwards."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)


@contextmanager
def _refusals(what: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise BackupError(f"{what} cannot be written: {error.strerror or error}") from error


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


OURS = 0o755
"""Of an entry's mode only this is taken over: whether it is a program counts, since plugins are pinned with that."""


def unpack(archive: tarfile.TarFile, whole: Path) -> None:
    """Lay out all entries below `whole`. Raises TarError for one that is no plain file, or leads elsewhere."""
    for entry in archive:
        place = whole / _inner(entry.name)
        if entry.isdir():
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        else:
            _write(archive, entry, place)


def _inner(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise tarfile.ReadError(f"{name!r} leads outside of the backup")
    return path


def _write(archive: tarfile.TarFile, entry: tarfile.TarInfo, place: Path) -> None:
    if not (entry.isfile() or entry.islnk()):  # one file under two names is written as both
        raise tarfile.ReadError(f"{entry.name!r} is no plain file")
    source = archive.extractfile(entry)
    if source is None:
        raise tarfile.ReadError(f"{entry.name!r} has no bytes")
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with source, place.open("xb") as target:
        shutil.copyfileobj(source, target)
    place.chmod(entry.mode & OURS | 0o600)


# --- is everything what was written? ----------------------------------------------------------------------------------


class Looked(Value, frozen=True):
    """One thing that was looked at, and what is wrong with it."""

    kind: str
    """database, conversation or bytes"""
    name: str
    problem: str | None = None

    @property
    def sentence(self) -> str:
        return f"{self.kind} {self.name}: {self.problem}"


def look(data: Path) -> Iterator[Looked]:
    yield Looked("database", FILE_NAME, is_sound(data))
    for session_id, damage in check_sessions(data):
        yield Looked("conversation", session_id, f"fact {damage.seq}: {damage.what}" if damage else None)
    for name in needed_bytes(data / FILE_NAME):
        yield Looked("bytes", name, _problem_of(data, name))


def _problem_of(data: Path, name: str) -> str | None:
    """Bytes that were removed since their row was read are not missing: whoever removes a row does that next."""
    try:
        with _blob(data, name).open("rb") as file:
            return None if file_digest(file, "sha256").hexdigest() == name else "damaged: not what their name says"
    except FileNotFoundError:
        return "missing" if name in set(needed_bytes(data / FILE_NAME)) else None
