"""A disk that refuses on demand: a thin layer below SQLite, so everything above it is the real thing."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw


class FaultyDisk(apsw.VFS):
    """While `failing`, every fsync of every database file opened through it fails like a broken disk's."""

    NAME = "faulty-disk"

    def __init__(self) -> None:
        self.failing = False
        self.syncs = 0
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
        self._disk.syncs += 1
        super().xSync(flags)


@contextmanager
def faulty_disk() -> Iterator[FaultyDisk]:
    disk = FaultyDisk()
    try:
        yield disk
    finally:
        apsw.set_default_vfs("unix")
        disk.unregister()
