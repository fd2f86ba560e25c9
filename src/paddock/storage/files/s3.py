"""Bytes in a bucket of an S3-compatible server, named by their hash, shared by all hosts. Whose they are is not known
here.

Nothing here needs conditional writes: the same name always has the same bytes, so writing them twice changes nothing.
Bytes are first gathered in a file beside, because their hash is their name and a row must never outlive its bytes.
"""

import secrets
import shutil
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256 as hash_of
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import anyio.to_thread
import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from paddock.ports.artifacts import Blob
from paddock.rules.errors import ErrorCode, FilesUnavailableError, HostError, StorageUnavailableError
from paddock.storage.files.lock import make_directory

HEAD_BYTES = 8192
GRACE = timedelta(minutes=10)
"""Younger bytes are left alone: another host may be writing their row at this moment. Strays are found later."""
GROUP = 256
SECONDS = timedelta(seconds=20)

_obstore = cast("Any", obstore)  # its types are its own affair


def store_at(address: str) -> S3Store:
    """`s3://bucket/prefix?endpoint=http://host:port&region=name`; keys and the rest come from AWS_* variables.

    Raises FilesUnavailableError.
    """
    parts = urlsplit(address)
    asked = dict(parse_qsl(parts.query))
    options: dict[str, Any] = {"client_options": {"timeout": SECONDS, "connect_timeout": timedelta(seconds=3)}}
    if endpoint := asked.get("endpoint"):
        options["endpoint"] = endpoint
        options["client_options"]["allow_http"] = endpoint.startswith("http://")
    try:
        return S3Store(
            parts.netloc,
            prefix=parts.path.strip("/") or None,
            region=asked.get("region", "us-east-1"),
            retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=10)},
            **options,
        )
    except BaseError as error:  # half of a pair of keys, for example
        raise _away(error) from error


class S3Blobs:
    """The `Blobs` port over a bucket. `beside`: a directory of this host for bytes on their way."""

    def __init__(self, address: str, *, beside: Path, grace: timedelta = GRACE) -> None:
        self._store: Any = store_at(address)
        self._grace = grace.total_seconds()
        self._beside = beside / "unfinished"
        self._kept: Counter[str] = Counter()
        self._going: set[str] = set()

    async def open(self) -> None:
        """Say now, and not at the first file, when the bucket cannot be reached."""
        shutil.rmtree(self._beside, ignore_errors=True)
        make_directory(self._beside)
        await self.reach()

    async def reach(self) -> None:
        """Raises FilesUnavailableError when the bucket cannot be read, from here and with these keys."""
        await self._ask(_obstore.list_with_delimiter_async(self._store))

    async def close(self) -> None:
        """Nothing is held open."""

    @asynccontextmanager
    async def keep(self, pieces: AsyncIterable[bytes], *, max_bytes: int) -> AsyncGenerator[Blob]:
        beside = self._beside / secrets.token_hex(16)
        try:
            blob = await self._gather(beside, pieces, max_bytes)
            self._kept[blob.sha256] += 1
            self._going.discard(blob.sha256)
            try:
                await self._put(blob.sha256, beside)  # also when it is there: it is young again, so nobody removes it
                yield blob
                if await self._age(blob.sha256) is None:  # another host removed it just before our row was there
                    await self._put(blob.sha256, beside)
            finally:
                self._kept[blob.sha256] -= 1
                if not self._kept[blob.sha256]:
                    del self._kept[blob.sha256]
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)

    async def _gather(self, beside: Path, pieces: AsyncIterable[bytes], max_bytes: int) -> Blob:
        digest, size, head = hash_of(), 0, b""
        try:
            with beside.open("xb") as file:
                async for piece in pieces:
                    size += len(piece)
                    if size > max_bytes:
                        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"a file may have at most {max_bytes} bytes")
                    head += piece[: max(0, HEAD_BYTES - len(head))]
                    digest.update(piece)
                    await anyio.to_thread.run_sync(file.write, piece)
        except OSError as error:
            raise StorageUnavailableError(f"files cannot be gathered: {error.strerror or error}") from error
        return Blob(digest.hexdigest(), size, head)

    async def _put(self, name: str, beside: Path) -> None:
        await self._ask(_obstore.put_async(self._store, _path(name), beside))

    async def read(self, sha256: str, offset: int, length: int) -> bytes:
        if length <= 0 or offset >= (size := await self._size(sha256)):
            return b""
        end = min(size, offset + length)
        try:
            found = await _obstore.get_range_async(self._store, _path(sha256), start=offset, end=end)
        except FileNotFoundError:
            raise _lost(sha256) from None
        except (BaseError, OSError) as error:
            raise _away(error) from error
        if offset == 0 and end == size and hash_of(found).hexdigest() != sha256:
            raise HostError(ErrorCode.RUNTIME_ERROR, f"the stored bytes {sha256[:12]} are damaged")
        return bytes(found)

    async def _size(self, name: str) -> int:
        try:
            return int((await _obstore.head_async(self._store, _path(name)))["size"])
        except FileNotFoundError:
            raise _lost(name) from None
        except (BaseError, OSError) as error:
            raise _away(error) from error

    async def remove(self, sha256: str, *, needed: Callable[[], Awaitable[bool]]) -> bool:
        age = await self._age(sha256)
        if age is None:
            return True
        if sha256 in self._kept or age < self._grace:
            return False
        self._going.add(sha256)
        if await needed() or sha256 not in self._going:  # somebody came for it while we asked
            self._going.discard(sha256)
            return False
        self._going.discard(sha256)
        await self._ask(_obstore.delete_async(self._store, _path(sha256)))
        return True

    async def older_than(self, seconds: float) -> AsyncIterator[Sequence[str]]:
        before = datetime.fromtimestamp(time.time() - seconds, UTC)
        try:
            async for group in _obstore.list(self._store, chunk_size=GROUP):
                names = [one["path"].rpartition("/")[2] for one in group if one["last_modified"] < before]
                if names:
                    yield names
        except (BaseError, OSError) as error:
            raise _away(error) from error

    async def _age(self, name: str) -> float | None:
        try:
            found = await _obstore.head_async(self._store, _path(name))
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as error:
            raise _away(error) from error
        return (datetime.now(UTC) - found["last_modified"]).total_seconds()

    async def _ask(self, asked: Awaitable[Any]) -> Any:
        try:
            return await asked
        except (BaseError, OSError) as error:
            raise _away(error) from error


def _path(name: str) -> str:
    if len(name) != 64 or not name.isalnum():
        raise HostError(ErrorCode.RUNTIME_ERROR, "this is not the name of stored bytes")
    return f"{name[:2]}/{name}"


def _lost(name: str) -> HostError:
    return HostError(ErrorCode.RUNTIME_ERROR, f"the stored bytes {name[:12]} are lost")


def _away(error: Exception) -> FilesUnavailableError:
    return FilesUnavailableError(f"files cannot be stored or read: {_why(str(error))}")


def _why(said: str) -> str:
    """The library tells of a whole request with its answer; an operator wants to know what to look at."""
    for words, why in _SAYS:
        if any(word in said for word in words):
            return why
    return said.splitlines()[0][:200]


_KEYS = "look at AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_SAYS = (
    (("NoSuchBucket",), "there is no such bucket; make it, or name another"),
    (("Missing AccessKeyId", "Missing SecretAccessKey", "//169.254."), f"there are no keys to it; {_KEYS}"),
    (("403 Forbidden", "401 Unauthorized"), f"the keys do not open it; {_KEYS}"),
    (("certificate",), "the certificate of its server is not accepted"),
    (("error sending request",), "its server cannot be reached"),
)
"""Words in what the library says, the first that fit count. Keys that are missing are asked for at 169.254.x.x."""
