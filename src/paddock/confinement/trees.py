"""Work in directories that a stranger may write in: through open directories, never through a link, within bounds.

A name is looked up in an open directory and never followed when it is a link, so that whoever swaps it between two
steps gains nothing by it.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

MODE = 0o700
MAX_DEPTH = 100
MAX_ENTRIES = 1_000_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PLACE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
"""Only Linux can hold on to something without opening it."""
_SWAPPED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""It was there a moment ago, and is gone or something else by now."""


class Pinned(NamedTuple):
    """One file or directory, known by what it is and not only by its name."""

    path: Path
    device: int
    inode: int


def pinned(path: Path) -> Pinned:
    """Look at an absolute path no part of which is a link. Raises OSError, with the part that is one."""
    opened = os.open("/", _FOLDER)
    try:
        for part in path.parts[1:]:
            inner = _inner(opened, part, path)
            os.close(opened)
            opened = inner
        found = os.fstat(opened)
        return Pinned(path, found.st_dev, found.st_ino)
    finally:
        os.close(opened)


def known(path: Path) -> Pinned:
    """A path that nobody but the host's owner could have changed: it is taken by its name, and not compared."""
    return Pinned(path, 0, 0)


def _inner(folder: int, part: str, path: Path) -> int:
    inner = os.open(part, _PLACE, dir_fd=folder)
    if stat.S_ISLNK(os.fstat(inner).st_mode):
        os.close(inner)
        raise OSError(errno.ELOOP, f"{part} is a link", str(path))
    return inner


@contextmanager
def inside(root: Path, *names: str, make: bool = False) -> Generator[int]:
    """Open the directory that these names lead to below a root. The root may be reached through links, it is the
    host's; none of the names may be one. Raises OSError."""
    opened = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for name in names:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, MODE, dir_fd=opened)
            inner = os.open(name, _FOLDER, dir_fd=opened)
            os.close(opened)
            opened = inner
        yield opened
    finally:
        os.close(opened)


def walk(top: int) -> Iterator[tuple[int, "os.DirEntry[str]"]]:
    """Every entry below an open directory, each with the open directory that holds it.

    Raises OSError where a directory cannot be opened, and where there are more or deeper ones than anybody needs.
    """
    levels, count = [(top, os.scandir(top))], 0
    try:
        while levels:
            folder, entries = levels[-1]
            entry = next(entries, None)
            if entry is None:
                _leave(*levels.pop(), top)
                continue
            count += 1
            yield folder, entry
            if entry.is_dir(follow_symlinks=False) and (inner := _entered(folder, entry.name)) is not None:
                levels.append((inner, os.scandir(inner)))
            if len(levels) > MAX_DEPTH or count > MAX_ENTRIES:
                raise OSError(errno.E2BIG, "it holds too many or too deep directories")
    finally:
        for folder, entries in levels:
            _leave(folder, entries, top)


def _entered(folder: int, name: str) -> int | None:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in _SWAPPED:
            return None
        raise


def _leave(folder: int, entries: "Iterator[os.DirEntry[str]]", top: int) -> None:
    entries.close()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    if folder != top:
        os.close(folder)


def fits(top: int, most: int) -> bool:
    """Return true if the files below have at most so many bytes; a tree that cannot be counted does not fit."""
    total = 0
    try:
        for _folder, entry in walk(top):
            with suppress(FileNotFoundError):
                if not entry.is_dir(follow_symlinks=False):
                    total += entry.stat(follow_symlinks=False).st_size
            if total > most:
                return False
    except OSError:
        return False
    return True


def give(top: int, uid: int) -> None:
    """Make a directory that the host keeps for a plugin that plugin's user's, with what is in it.

    The directory itself comes last: its owner says that all of it was given. Only what had the same owner as the
    directory changes hands, so nothing that found its way here by a hard link does. Raises OSError.
    """
    before = os.fstat(top).st_uid
    if before == uid:
        return
    for folder, entry in walk(top):
        with suppress(FileNotFoundError):
            if entry.stat(follow_symlinks=False).st_uid == before:
                os.chown(entry.name, uid, uid, dir_fd=folder, follow_symlinks=False)
    os.fchown(top, uid, uid)


def remove(folder: int, name: str, tell: Callable[[str], None] = lambda _name: None) -> None:
    """Remove a tree below an open directory, however deep it is; what cannot be removed is told by its name.

    Directories inside are moved up to the top before they are emptied, so that depth costs neither memory nor open
    files, and no path is too long.
    """
    try:
        top = _opened_by_force(folder, name)
    except OSError as error:
        if error.errno not in _SWAPPED:
            tell(name)
        return
    try:
        _empty(top, tell)
    finally:
        os.close(top)
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError:
        tell(name)


def _empty(top: int, tell: Callable[[str], None]) -> None:
    stuck: set[str] = set()
    removed = 0
    while names := [name for name in _dissolve(top, top) if name not in stuck]:
        for name in names:
            if removed > MAX_ENTRIES or not _removed(top, name):
                stuck.add(name)
            removed += 1
    for name in stuck:
        tell(name)


def _removed(top: int, name: str) -> bool:
    """Return true once this directory is gone; the directories it held lie at the top by then."""
    try:
        inner = _opened_by_force(top, name)
        try:
            _dissolve(inner, top)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=top)
    except OSError:
        return False
    return True


def _dissolve(folder: int, top: int) -> list[str]:
    """Remove the files of a directory and move its directories to the top; the names of those that stay here."""
    with os.scandir(folder) as entries:
        found = list(entries)
    staying: list[str] = []
    for entry in found:
        with suppress(OSError):
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=folder)
            elif folder == top:
                staying.append(entry.name)
            else:
                os.close(_opened_by_force(folder, entry.name))
                os.rename(entry.name, f"x-{secrets.token_hex(16)}", src_dir_fd=folder, dst_dir_fd=top)
    return staying


def _opened_by_force(folder: int, name: str) -> int:
    """Open a directory for removal, also one that its owner closed to himself. Raises OSError."""
    try:
        opened = os.open(name, _FOLDER, dir_fd=folder)
    except PermissionError:
        place = os.open(name, _PLACE | os.O_DIRECTORY, dir_fd=folder)
        try:
            os.chmod(f"/proc/self/fd/{place}", MODE)  # noqa: PTH101 - by number: a name could be another's by now
            opened = os.open(name, _FOLDER, dir_fd=folder)
        finally:
            os.close(place)
    if os.fstat(opened).st_mode & MODE != MODE:
        with suppress(OSError):
            os.fchmod(opened, MODE)
    return opened
