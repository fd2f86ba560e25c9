"""Writing into a directory that others write into as well: nothing outside it is reached, nothing of theirs is changed.

Every step of a path is opened without following links, so a link somebody put there leads nowhere. What we wrote is in
a ledger with its hash: a file that is not in it, or that has changed since, is somebody else's.
"""

import errno
import json
import os
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path, PurePosixPath
from secrets import token_hex
from typing import cast

LEDGER = ".paddock/projected.json"
MAX_LEDGER_BYTES = 4 * 1024 * 1024
MAX_COMPARED_BYTES = 64 * 1024 * 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ProjectionError(Exception):
    """Something cannot be written where it must be; the text says what and why."""


@lru_cache(maxsize=1024)
def steps(relative: str) -> tuple[str, ...]:
    """The parts of a path that stays inside. Raises ProjectionError for any other."""
    parts = PurePosixPath(relative).parts
    if not parts or relative.startswith("/") or any(part in {"..", "."} or "\0" in part for part in parts):
        raise ProjectionError(f"{relative!r} is no path inside the working directory")
    return parts


class Ground:
    """One working directory."""

    def __init__(self, directory: Path, ledger: str = LEDGER) -> None:
        self.directory = directory
        self._ledger = ledger
        try:
            self._root = os.open(directory, _FOLDER)
        except OSError as error:
            raise ProjectionError(f"the working directory {directory} cannot be used: {error.strerror}") from error
        self._known = self._read_ledger()
        self._read_known = dict(self._known)

    def close(self) -> None:
        os.close(self._root)

    # --- asking

    @property
    def known(self) -> tuple[str, ...]:
        """All that the ledger tells of."""
        return tuple(self._known)

    def exists(self, relative: str) -> bool:
        with suppress(OSError), self._folder(steps(relative)[:-1]) as folder:
            os.lstat(steps(relative)[-1], dir_fd=folder)
            return True
        return False

    def is_ours(self, relative: str) -> bool:
        """Tell if we wrote this file and nobody changed it since."""
        known = self._known.get(relative)
        return known is not None and known == self._hash(relative)

    # --- writing

    def write(self, relative: str, content: bytes, *, mode: int = 0o600) -> bool:
        """Put a file there; False when something of somebody else's is in the way, which is left as it is."""
        digest = sha256(content).hexdigest()
        if self.exists(relative):
            if not self.is_ours(relative):
                return False
            if self._known[relative] == digest and self._mode(relative) == mode:
                return True  # most of it is the same in every turn
        try:
            self._put(relative, content, mode)
        except OSError as error:
            if error.errno is None or not _in_the_way(error.errno):
                raise ProjectionError(f"{relative} cannot be written: {error.strerror}") from error
            return False
        self._known[relative] = digest
        return True

    def save(self) -> None:
        """Write the ledger down. One that lies there is replaced, whoever wrote it."""
        if self._known == self._read_known:
            return
        try:
            self._put(self._ledger, json.dumps(self._known, sort_keys=True).encode(), 0o600)
        except OSError as error:
            raise ProjectionError(f"{self._ledger} cannot be written: {error.strerror}") from error

    def remove(self, relative: str) -> bool:
        """Take away what is ours and unchanged, and directories that are empty then."""
        ours = self.is_ours(relative)
        if ours:
            parts = steps(relative)
            with suppress(OSError), self._folder(parts[:-1]) as folder:
                os.unlink(parts[-1], dir_fd=folder)
            self._remove_empty(parts[:-1])
        self._known.pop(relative, None)
        return ours

    def remove_ledger(self) -> None:
        """When nothing is left that it could tell of."""
        if not self._known:
            parts = steps(self._ledger)
            with suppress(OSError), self._folder(parts[:-1]) as folder:
                os.unlink(parts[-1], dir_fd=folder)
            self._remove_empty(parts[:-1])
        else:
            self.save()

    # --- within

    @contextmanager
    def _folder(self, parts: tuple[str, ...], *, make: bool = False) -> Generator[int]:
        folder = os.dup(self._root)
        try:
            for part in parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=folder)
                inner = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)

    def _put(self, relative: str, content: bytes, mode: int) -> None:
        *above, name = steps(relative)
        with self._folder(tuple(above), make=True) as folder:
            draft = f".{token_hex(8)}.paddock"
            opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode, dir_fd=folder)
            try:
                with os.fdopen(opened, "wb") as file:
                    os.fchmod(file.fileno(), mode)
                    file.write(content)
                os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(draft, dir_fd=folder)
                raise

    def _mode(self, relative: str) -> int | None:
        *above, name = steps(relative)
        with suppress(OSError), self._folder(tuple(above)) as folder:
            return stat.S_IMODE(os.lstat(name, dir_fd=folder).st_mode)
        return None

    def _hash(self, relative: str) -> str | None:
        content = self._read(relative, MAX_COMPARED_BYTES)
        return None if content is None else sha256(content).hexdigest()

    def _read(self, relative: str, most: int) -> bytes | None:
        """A plain file's content; None when there is none, or it is something else, or too large to be ours."""
        parts = steps(relative)
        with suppress(OSError), self._folder(parts[:-1]) as folder:
            opened = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            with os.fdopen(opened, "rb") as file:
                about = os.fstat(file.fileno())
                return file.read() if stat.S_ISREG(about.st_mode) and about.st_size <= most else None
        return None

    def _remove_empty(self, parts: tuple[str, ...]) -> None:
        for depth in range(len(parts), 0, -1):
            with suppress(OSError), self._folder(parts[: depth - 1]) as folder:
                os.rmdir(parts[depth - 1], dir_fd=folder)

    def _read_ledger(self) -> dict[str, str]:
        """Read the ledger of an earlier run; anything that is not a ledger counts as none."""
        try:
            said = json.loads(self._read(self._ledger, MAX_LEDGER_BYTES) or b"{}")
            known = cast("Mapping[object, object]", said if isinstance(said, dict) else {})
            return {path: known[path] for path in known if _is_entry(path, known[path])}  # pyright: ignore[reportReturnType]
        except (ValueError, RecursionError):
            return {}


def _is_entry(path: object, digest: object) -> bool:
    if not isinstance(path, str) or not isinstance(digest, str):
        return False
    with suppress(ProjectionError):
        steps(path)
        return True
    return False


def _in_the_way(code: int) -> bool:
    """A link, a file or a directory where we need the other: somebody else's, and left alone."""
    return code in {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY}
