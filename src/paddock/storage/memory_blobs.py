"""Bytes that live and die with the process: every promise of the `Blobs` port but durability."""

import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256 as digest_of

from paddock.ports.artifacts import Blob
from paddock.rules.errors import ErrorCode, HostError

HEAD_BYTES = 8192


class MemoryBlobs:
    def __init__(self) -> None:
        self._bytes: dict[str, tuple[bytes, float]] = {}
        self._kept: Counter[str] = Counter()
        self._kept_ever = 0

    async def open(self) -> None: ...
    async def close(self) -> None: ...

    @asynccontextmanager
    async def keep(self, pieces: AsyncIterable[bytes], *, max_bytes: int) -> AsyncGenerator[Blob]:
        content = bytearray()
        async for piece in pieces:
            content += piece
            if len(content) > max_bytes:
                raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"a file may have at most {max_bytes} bytes")
        name = digest_of(content).hexdigest()
        self._bytes[name] = bytes(content), time.time()
        self._kept[name] += 1
        self._kept_ever += 1
        try:
            yield Blob(name, len(content), bytes(content[:HEAD_BYTES]))
        finally:
            self._kept[name] -= 1

    async def read(self, sha256: str, offset: int, length: int) -> bytes:
        if sha256 not in self._bytes:
            raise HostError(ErrorCode.RUNTIME_ERROR, f"the stored bytes {sha256[:12]} are lost")
        return self._bytes[sha256][0][offset : offset + length]

    async def remove(self, sha256: str, *, needed: Callable[[], Awaitable[bool]]) -> bool:
        before = self._kept_ever
        if self._kept[sha256] or await needed() or self._kept_ever != before:
            return False
        self._bytes.pop(sha256, None)
        return True

    async def older_than(self, seconds: float) -> AsyncIterator[Sequence[str]]:
        before = time.time() - seconds
        yield [name for name, (_, at) in self._bytes.items() if at < before]
