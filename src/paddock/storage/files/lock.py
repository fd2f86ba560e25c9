"""The data directory and the lock that makes one process its owner. Knows nothing of what is stored in it."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from paddock.confinement.private import private_directory, private_file
from paddock.rules.errors import StorageUnavailableError

LOCK_FILE = "lock"
NAME_FILE = "host-id"


class DataDirectoryInUseError(StorageUnavailableError):
    """Another process owns the data directory."""


class DataDirectory:
    """A directory held by this process while the lock lasts; the system lets go of it even when we are killed."""

    @staticmethod
    @contextmanager
    def lock(path: Path) -> Generator[Path]:
        """Own `path` for the length of the block. Raises DataDirectoryInUseError naming the process that owns it."""
        make_directory(path)
        handle = _open(path / LOCK_FILE)
        try:
            _hold(handle, path)
            yield path
        finally:
            os.close(handle)


def host_id(path: Path) -> str:
    """Id of a host: the same at every start in this directory, which one process owns."""
    make_directory(path)
    file = path / NAME_FILE
    if not file.exists():
        private_file(file)
        file.write_text(f"{uuid4().hex}\n")
    return file.read_text().strip()


def make_directory(path: Path) -> None:
    """Make the directory for its owner's eyes only. Raises StorageUnavailableError when that cannot be."""
    try:
        private_directory(path)
    except OSError as error:
        raise StorageUnavailableError(f"the data directory {path} cannot be made: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise StorageUnavailableError(f"the data directory {path} cannot be written")


def synced(path: Path) -> Path:
    """A file or directory, once the disk has it."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
    return path


def _open(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageUnavailableError(
            f"the data directory {file.parent} cannot be written: {error.strerror}"
        ) from error


def _hold(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        pid = os.pread(handle, 32, 0).decode("ascii", "replace").strip() or "unknown"
        raise DataDirectoryInUseError(f"the data directory {path} is in use by process {pid}") from error
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
