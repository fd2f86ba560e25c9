"""Which sessions may be on file: a small filter in memory, so that a new session is opened without looking for it.

It errs to one side only: a session on file is never called new. It can promise that because one process owns the file
and every session it writes was claimed first. No queries live here.
"""

from collections.abc import Iterable

FIRST_BITS, MOST_BITS = 1 << 19, 1 << 23
"""The first part takes 64 KiB and the next four times as much, up to one MiB each: a small house needs little."""
BITS_EACH = 16
"""Bits for each session, of which two are set: one new session in seventy is looked for in vain in a full part."""
MOST = 200_000
"""Sessions read at start, a matter of tenths of a second. With more on file every session is looked for."""
_APART = 23
"""The two places of a session come from different bits of its hash."""


class _Part:
    """So many sessions, two bits each."""

    __slots__ = ("_bits", "_mask", "room", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.room = size // BITS_EACH
        self._bits = bytearray(size // 8)
        self._mask = size - 1

    def has(self, mixed: int) -> int:
        bits, one, other = self._bits, mixed & self._mask, mixed >> _APART & self._mask
        return bits[one >> 3] >> (one & 7) & bits[other >> 3] >> (other & 7) & 1

    def add(self, mixed: int) -> None:
        bits, one, other = self._bits, mixed & self._mask, mixed >> _APART & self._mask
        bits[one >> 3] |= 1 << (one & 7)
        bits[other >> 3] |= 1 << (other & 7)
        self.room -= 1


class KnownSessions:
    """Sessions that may exist."""

    def __init__(self) -> None:
        self._parts = [_Part(FIRST_BITS)]
        self._complete = False

    def fill(self, session_ids: Iterable[str]) -> None:
        """Learn all that are on file. Before that every session may be."""
        for session_id in session_ids:
            self.claimed(session_id)
        self._complete = True

    def claimed(self, session_id: str) -> bool:
        """Remember a session that may be written from now on; False when it was certainly not on file before."""
        mixed = hash(session_id)
        for part in self._parts:
            if part.has(mixed):
                return True
        last = self._parts[-1]
        if not last.room:
            last = _Part(min(4 * last.size, MOST_BITS))
            self._parts.append(last)
        last.add(mixed)
        return not self._complete
