"""Bytes in files named by their hash, under one directory. Whose they are is not known here.

A file appears whole or not at all: written beside, synced, renamed, and the directory synced. Its name is its hash, so
no name of anybody else ever becomes a path. One process owns the directory.
"""

import asyncio
import os
import re
import secrets
import shutil
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import file_digest, sha256
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar, TypeVarTuple

import anyio.to_thread

from paddock.ports.artifacts import Blob
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.storage.files.lock import make_directory, synced


class Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...


T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

HEAD_BYTES = 8192
WALK_GROUP = 256
MAX_CHECKED = 4096
"""Files whose bytes were compared with their name since the start, so that not every range costs a reading of all."""
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


class FileBlobs:
    """The `Blobs` port over a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._kept: Counter[str] = Counter()
        self._going: set[str] = set()
        self._checked: OrderedDict[str, tuple[int, int]] = OrderedDict()

    async def open(self) -> None:
        await _on_a_thread(self._prepare)

    async def close(self) -> None:
        """Nothing is held open."""

    def _prepare(self) -> None:
        make_directory(self._directory)
        shutil.rmtree(self._unfinished, ignore_errors=True)  # of a process that died while writing
        make_directory(self._unfinished)

    @property
    def _unfinished(self) -> Path:
        return self._directory / "unfinished"

    def _path(self, name: str) -> Path:
        if not _HASH.fullmatch(name):
            raise HostError(ErrorCode.RUNTIME_ERROR, "this is not the name of stored bytes")
        return self._directory / name[:2] / name

    @asynccontextmanager
    async def keep(self, pieces: AsyncIterable[bytes], *, max_bytes: int) -> AsyncGenerator[Blob]:
        beside = self._unfinished / secrets.token_hex(16)
        try:
            blob = await self._write(beside, pieces, max_bytes)
            self._kept[blob.sha256] += 1  # before looking whether it is there: from here on `remove` leaves it alone
            self._going.discard(blob.sha256)
            try:
                await _on_a_thread(self._settle, beside, blob.sha256)
                yield blob
            finally:
                self._kept[blob.sha256] -= 1
                if not self._kept[blob.sha256]:
                    del self._kept[blob.sha256]
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)

    async def _write(self, beside: Path, pieces: AsyncIterable[bytes], max_bytes: int) -> Blob:
        digest, size, head = sha256(), 0, b""
        file = await _on_a_thread(_create, beside)
        try:
            async for piece in pieces:
                size += len(piece)
                if size > max_bytes:
                    raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"a file may have at most {max_bytes} bytes")
                if len(head) < HEAD_BYTES:
                    head += piece[: HEAD_BYTES - len(head)]
                await _on_a_thread(_append, file, piece, digest)
            await _on_a_thread(_sync, file)
        finally:
            with suppress(OSError):  # what matters was synced before
                file.close()
        return Blob(digest.hexdigest(), size, head)

    def _settle(self, beside: Path, name: str) -> None:
        path = self._path(name)
        if path.exists():
            os.utime(path)  # somebody needs it again: not old
            return
        if not path.parent.exists():
            make_directory(path.parent)
            synced(self._directory)
        beside.replace(path)
        synced(path.parent)

    async def read(self, sha256: str, offset: int, length: int) -> bytes:
        return await _on_a_thread(self._read, sha256, offset, length)

    def _read(self, name: str, offset: int, length: int) -> bytes:
        path = self._path(name)
        try:
            with path.open("rb") as file:
                self._check(name, file)
                file.seek(offset)
                return file.read(length)
        except FileNotFoundError:
            raise HostError(ErrorCode.RUNTIME_ERROR, f"the stored bytes {name[:12]} are lost") from None

    def _check(self, name: str, file: BufferedReader) -> None:
        """Bytes that are not what they were are never handed out as good."""
        found = os.fstat(file.fileno())
        seen = (found.st_mtime_ns, found.st_size)
        if self._checked.get(name) == seen:
            return
        if file_digest(file, sha256).hexdigest() != name:
            raise HostError(ErrorCode.RUNTIME_ERROR, f"the stored bytes {name[:12]} are damaged")
        self._checked[name] = seen
        if len(self._checked) > MAX_CHECKED:
            with suppress(KeyError):
                self._checked.popitem(last=False)

    async def remove(self, sha256: str, *, needed: Callable[[], Awaitable[bool]]) -> bool:
        if sha256 in self._kept:
            return False
        self._going.add(sha256)
        if await needed() or sha256 not in self._going:  # somebody came for it while we asked
            self._going.discard(sha256)
            return False
        self._going.discard(sha256)
        try:
            self._path(sha256).unlink(missing_ok=True)  # on the loop: nobody can begin to keep it in between
        except OSError as error:
            raise StorageUnavailableError(f"stored bytes cannot be removed: {error.strerror}") from error
        self._checked.pop(sha256, None)
        return True

    async def older_than(self, seconds: float) -> AsyncIterator[Sequence[str]]:
        names = self._names(time.time() - seconds)
        while group := await _on_a_thread(lambda: list(islice(names, WALK_GROUP))):
            yield group
            await asyncio.sleep(0)

    def _names(self, before: float) -> Iterator[str]:
        for path in self._directory.glob("??/*"):
            with suppress(OSError):
                if _HASH.fullmatch(path.name) and path.stat().st_mtime < before:
                    yield path.name


async def _on_a_thread(work: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    """Do something with the disk, and say in the house's words what it refused."""
    try:
        return await anyio.to_thread.run_sync(work, *arguments)
    except OSError as error:
        raise StorageUnavailableError(f"files cannot be stored or read: {error.strerror or error}") from error


def _create(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def _append(file: BinaryIO, piece: bytes, digest: Hash) -> None:
    file.write(piece)
    digest.update(piece)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
