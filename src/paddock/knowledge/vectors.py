"""Nearness of meaning: vectors as float32 bytes, compared one by one. Numpy is imported when the first one comes."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import anyio.to_thread

from paddock.ports.knowledge import KnowledgeStore
from paddock.rules.errors import ErrorCode, HostError, needed_for

BLOCK = 4096
CACHED_ROWS = 256
"""Rows multiplied at once: they fit the processor's cache, and one thread does it; all at once costs ten times that."""
MAX_KEPT_BYTES = 256 * 1024 * 1024
"""Matrices kept between questions, the one asked longest ago given up first; a base beyond that is read each time."""

Place = tuple[str, str]


def packed(vectors: Sequence[Sequence[float]], expected: int) -> list[bytes]:
    """Unit vectors as bytes: then the nearest is the one with the largest product."""
    with needed_for("searching by meaning"):
        import numpy as np

    matrix = np.asarray(vectors, dtype=np.float32)
    if matrix.ndim != 2 or matrix.shape[0] != expected or not matrix.shape[1]:
        raise HostError(
            ErrorCode.RUNTIME_ERROR, "the embedding model answered with something that is no list of vectors"
        )
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return [row.tobytes() for row in matrix / np.where(lengths > 0, lengths, 1)]


class Vectors:
    """The nearest chunks of a base to a vector."""

    def __init__(self, store: KnowledgeStore) -> None:
        self._store = store
        self._kept: OrderedDict[Place, tuple[int, list[tuple[Any, Any]]]] = OrderedDict()

    async def nearest(self, place: Place, wanted: bytes, count: int) -> list[int]:
        """Numbers of chunks, nearest first. Vectors of another length (of an earlier model) do not count."""
        blocks = await self._blocks(place, len(wanted) // 4)
        return await anyio.to_thread.run_sync(_nearest, blocks, wanted, count)

    async def _blocks(self, place: Place, size: int) -> list[tuple[Any, Any]]:
        version = await self._store.version(*place)
        kept = self._kept.get(place)
        if kept is None or kept[0] != version:
            self._kept.pop(place, None)
            kept = (version, await self._read(place, size))
            self._kept[place] = kept
        self._kept.move_to_end(place)
        while self._kept and sum(_bytes(blocks) for _, blocks in self._kept.values()) > MAX_KEPT_BYTES:
            self._kept.popitem(last=False)
        return kept[1]

    async def _read(self, place: Place, size: int) -> list[tuple[Any, Any]]:
        import numpy as np

        blocks: list[tuple[Any, Any]] = []
        after = 0
        while rows := await self._store.vectors(*place, after=after, limit=BLOCK):
            after = rows[-1][0]
            fitting = [(number, vector) for number, vector in rows if len(vector) == 4 * size]
            if fitting:
                numbers = np.array([number for number, _ in fitting])
                matrix = np.frombuffer(b"".join(vector for _, vector in fitting), dtype=np.float32)
                blocks.append((numbers, matrix.reshape(len(fitting), size)))
        return blocks


def _nearest(blocks: Sequence[tuple[Any, Any]], wanted: bytes, count: int) -> list[int]:
    import numpy as np

    target = np.frombuffer(wanted, dtype=np.float32)
    best: list[tuple[float, int]] = []
    for numbers, matrix in blocks:
        parts = [matrix[at : at + CACHED_ROWS] @ target for at in range(0, len(matrix), CACHED_ROWS)]
        scores = np.concatenate(parts)
        top = np.argpartition(-scores, count)[:count] if count < len(scores) else np.arange(len(scores))
        best += zip(scores[top].tolist(), numbers[top].tolist(), strict=True)
    return [number for _, number in sorted(best, reverse=True)[:count]]


def _bytes(blocks: Sequence[tuple[Any, Any]]) -> int:
    return sum(numbers.nbytes + matrix.nbytes for numbers, matrix in blocks)
