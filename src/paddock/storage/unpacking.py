"""The files of a backup's `.tar`, laid out in a directory. Nothing else than plain files, and nothing outside of it.

Written out here because `tarfile` learned to refuse what leads outside only in Python 3.11.4, and Debian 12 has 3.11.2.
"""

import shutil
import tarfile
from pathlib import Path, PurePosixPath

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
