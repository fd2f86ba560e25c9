"""A disk that refuses or stalls on demand: a thin layer below SQLite, so everything above it is the real thing."""

from collections.abc import Generator
from contextlib import contextmanager
from threading import Event

import apsw


class FaultyDisk(apsw.VFS):
    """While `failing`, every fsync of every file opened through it fails; while `moving` is clear, every one waits."""

    NAME = "faulty-disk"

    def __init__(self) -> None:
        self.failing = False
        self.syncs = 0
        self.moving = Event()
        self.moving.set()
        self.stalled = Event()
        """Set as soon as an fsync waits."""
        super().__init__(self.NAME, "unix", makedefault=True)

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return _File(self, name, flags)


class _File(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("unix", name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        if self._disk.failing:
            raise apsw.IOError("the disk is broken")
        if not self._disk.moving.is_set():
            self._disk.stalled.set()
            self._disk.moving.wait()
        self._disk.syncs += 1
        super().xSync(flags)


@contextmanager
def faulty_disk() -> Generator[FaultyDisk]:
    disk = FaultyDisk()
    try:
        yield disk
    finally:
        apsw.set_default_vfs("unix")
        disk.unregister()
