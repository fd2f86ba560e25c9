"""The files of a plugin package, read whole into memory and checked before anything is written anywhere.

It holds plain files: a name that leads out, a link, a device or a bomb makes the whole package refused.
A host's data directory that lies among them holds keys and conversations: it is left out, whatever it is called.
What was read here is what gets installed, so nobody can change it between the look and the yes. Where the files come
from is the business of `trees.py` and `archives.py`.
"""

import hashlib
import os
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

PLUGIN_FILE = "paddock-plugin.toml"
TOP_FILES = frozenset({PLUGIN_FILE, "manifest.yaml"})
"""One of these lies at the top of a package: ours, or that of a LangBot plugin."""
MAX_ENTRIES = 512
MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_TOTAL_BYTES = 64 * 1024 * 1024
MAX_RATIO = 100
MAX_PATH_BYTES = 1024
MAX_NAME_BYTES = 255
LEFT_OUT = frozenset({".git", ".hg", ".venv", "__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".paddock"})
"""What tools leave in a working directory: never part of a package, wherever it comes from."""
DATA_FILES = frozenset({"local-token", "serve.json", "paddock.db"})
"""A directory that holds one of these is a host's data directory."""
OWN_DIRECTORY = "Move the plugin into a directory of its own."
BYTECODE = "__pycache__"
ENVIRONMENT = ".venv"


class PackageError(Exception):
    """The package cannot be used; the text says why, in a sentence."""


@dataclass(frozen=True, slots=True)
class PackageFile:
    path: str
    """Relative, with '/', as it will lie in the plugin's directory."""
    content: bytes
    executable: bool


@dataclass(frozen=True, slots=True)
class Contents:
    """Every file of a package, in order of path."""

    files: tuple[PackageFile, ...]
    data_directories: tuple[str, ...] = ()
    """Hosts' data directories that were found among the files and left out."""

    @property
    def sha256(self) -> str:
        """One number for the whole tree: paths, executable bits and bytes, each with its length in front."""
        return tree_hash(self.files)

    def read(self, path: str) -> bytes | None:
        return next((file.content for file in self.files if file.path == path), None)


def tree_hash(files: Iterable[PackageFile]) -> str:
    total = hashlib.sha256(b"paddock-package-1\n")
    for file in sorted(files, key=lambda one: one.path):
        name = file.path.encode()
        total.update(b"%d:%s:%d:%d:" % (len(name), name, file.executable, len(file.content)))
        total.update(file.content)
    return total.hexdigest()


@dataclass(frozen=True, slots=True)
class PackageDirectory:
    path: str
    is_data: bool = False


def in_order(files: Iterable[PackageFile]) -> tuple[PackageFile, ...]:
    return tuple(sorted(files, key=lambda file: file.path))


def checked(entries: Iterable[PackageFile | PackageDirectory]) -> Contents:
    """The files, under the package's top, if names and sums stay within the rules."""
    files, seen, data = list[PackageFile](), dict[str, str](), set[str]()
    total = 0
    for count, entry in enumerate(entries, start=1):
        if count > MAX_ENTRIES:
            raise PackageError(f"The package holds more than {MAX_ENTRIES} entries.")
        _check_name(entry.path)
        if isinstance(entry, PackageFile):
            total += len(entry.content)
            _check_unique(entry.path, seen)
            files.append(entry)
        elif entry.is_data:
            data.add(entry.path)
        if total > MAX_TOTAL_BYTES:
            raise PackageError(f"The package holds more than {MAX_TOTAL_BYTES // 1024**2} MiB.")
    _check_no_file_is_a_directory(files)
    files, found = _without_data(_under_top(files))
    return Contents(in_order(files), tuple(sorted(data | found)))


def _without_data(files: list[PackageFile]) -> tuple[list[PackageFile], set[str]]:
    """In an archive a data directory shows only once all of its files are known."""
    data = {parent for parent, _, name in (file.path.rpartition("/") for file in files) if name in DATA_FILES}
    if "" in data:
        raise PackageError(f"The package is where a host keeps its data. {OWN_DIRECTORY}")
    inside = tuple(f"{directory}/" for directory in data)
    return [file for file in files if not file.path.startswith(inside)], data


def _check_name(path: str) -> None:
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or "\\" in path:
        raise PackageError(f"The package names a file outside itself: {path!r}.")
    if any(not part or part == "." for part in parts) or not path.isprintable():
        raise PackageError(f"The package holds a file with an impossible name: {path!r}.")
    if len(_encoded(path)) > MAX_PATH_BYTES or any(len(_encoded(part)) > MAX_NAME_BYTES for part in parts):
        raise PackageError(f"The package holds a file with a name that is too long: {path[:80]!r}...")


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise PackageError(f"The package holds a file whose name is not UTF-8: {text!r}.") from error


def _check_unique(path: str, seen: dict[str, str]) -> None:
    """Two names that some file systems take for one would overwrite each other there."""
    folded = unicodedata.normalize("NFC", path).casefold()
    if folded in seen:
        raise PackageError(f"The package holds {seen[folded]!r} and {path!r}, which some systems take for one file.")
    seen[folded] = path


def _check_no_file_is_a_directory(files: list[PackageFile]) -> None:
    names = {unicodedata.normalize("NFC", file.path).casefold() for file in files}
    for name in names:
        if any(str(parent) in names for parent in PurePosixPath(name).parents):
            raise PackageError(f"The package has a file where it also has a directory: {name!r}.")


def _under_top(files: list[PackageFile]) -> list[PackageFile]:
    """Archives are often made of one directory; the package is then what lies in it."""
    files = [file for file in files if LEFT_OUT.isdisjoint(file.path.split("/"))]
    tops = {file.path.partition("/")[0] for file in files}
    if TOP_FILES.isdisjoint(file.path for file in files) and len(tops) == 1:
        prefix = f"{tops.pop()}/"
        files = [PackageFile(file.path.removeprefix(prefix), file.content, file.executable) for file in files]
    if TOP_FILES.isdisjoint(file.path for file in files):
        raise PackageError(f"The package has no {PLUGIN_FILE} at its top.")
    return files


def check_kind(mode: int, name: str) -> None:
    if stat.S_ISLNK(mode):
        raise PackageError(f"The package holds a link ({name!r}); it may hold plain files only.")
    if not stat.S_ISREG(mode):
        raise PackageError(f"The package holds a device or another special file ({name!r}).")


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def bounded(file: _Readable, name: str) -> bytes:
    content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise PackageError(f"The package holds a file over {MAX_FILE_BYTES // 1024**2} MiB ({name!r}).")
    return content


def read_tree(directory: Path) -> Contents:
    """Read an installed directory: everything counts but bytecode and the environment made for it.

    What looks like a data directory counts here too: none was installed, and nothing may hide behind its name.
    """
    left_out = frozenset({BYTECODE, ENVIRONMENT})
    files = (_from_disk(path, name) for path, name in _walk(directory, left_out))
    return Contents(in_order(file for file in files if isinstance(file, PackageFile)))


def holds_data(directory: Path | str) -> bool:
    """Return true if a host keeps its data here, or will: plugins can be installed before its first start."""
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
