"""A package that lies open in a directory, and one that is installed."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from paddock.runners.packages.contents import (
    BYTECODE,
    DATA_FILES,
    ENVIRONMENT,
    LEFT_OUT,
    OWN_DIRECTORY,
    Contents,
    PackageDirectory,
    PackageError,
    PackageFile,
    bounded,
    check_kind,
    in_order,
)


def read_tree(directory: Path) -> Contents:
    """The same for an installed directory: everything counts but bytecode and the environment made for it.

    What looks like a data directory counts here too: none was installed, and nothing may hide behind its name.
    """
    left_out = frozenset({BYTECODE, ENVIRONMENT})
    files = (_from_disk(path, name) for path, name in _walk(directory, left_out))
    return Contents(in_order(file for file in files if isinstance(file, PackageFile)))


def holds_data(directory: Path | str) -> bool:
    """Whether a host keeps its data here, or will: plugins can be installed before its first start."""
    return any(os.path.lexists(f"{directory}/{name}") for name in (*DATA_FILES, "plugins/installed.json"))


def from_directory(top: Path) -> Iterator[PackageFile | PackageDirectory]:
    if holds_data(top):
        raise PackageError(f"{top} is where a host keeps its data. {OWN_DIRECTORY}")
    for path, name in _walk(top, LEFT_OUT, is_left_out=holds_data):
        yield _from_disk(path, name)


def _walk(
    top: Path, left_out: frozenset[str], *, is_left_out: Callable[[Path], bool] = lambda _: False
) -> Iterator[tuple[Path, str]]:
    for directory, names, files in os.walk(top, followlinks=False, onerror=_raise):
        names[:] = sorted(name for name in names if name not in left_out)
        for name in names + sorted(files):
            path = Path(directory, name)
            yield path, path.relative_to(top).as_posix()
        names[:] = [name for name in names if not is_left_out(Path(directory, name))]


def _raise(error: OSError) -> None:
    raise error


def _from_disk(path: Path, name: str) -> PackageFile | PackageDirectory:
    kind = path.lstat().st_mode
    if stat.S_ISDIR(kind):
        return PackageDirectory(name, is_data=holds_data(path))
    check_kind(kind, name)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        now = os.fstat(file.fileno()).st_mode
        check_kind(now, name)
        return PackageFile(name, bounded(file, name), bool(now & stat.S_IXUSR))
